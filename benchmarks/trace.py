"""What an event costs: elbow_trace beside FxT and LTTng-UST, in one run, in turn.

    python benchmarks/trace.py [--repeats 9] [--rounds 40] [--json]

CPU time of one event with a number of 32 bits and two of 64, ns: medians over repeats, each the median of its
rounds of 100,000 events. Ratios are those within a repeat, so that a machine that becomes slower does not
change them. `alone`: nothing but the clock is read. The bars are those of lib/trace; a program or daemon that
is not there is n/a, with the reason. Exit code 1 where a bar is missed.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from command import Command, status

from elbowroom.launch.build import trace_libraries

ROOT = Path(__file__).parents[1]
SESSION = "elbow-benchmark"


@dataclass(frozen=True)
class Bar:
    """A figure, or its ratio to another one in the same repeat, is at most `limit`."""

    title: str
    figure: str
    limit: float
    to: str | None = None


BARS = (
    Bar("counter of the processor, ns", "counter", 12),
    Bar("CLOCK_MONOTONIC_RAW, ns", "raw", 25),
    Bar("category that is off, ns", "off", 0.5),
    Bar("two threads / one", "two threads", 1.1, "counter"),
    Bar("elbow_trace / FxT", "counter", 0.5, "FxT"),
    Bar("elbow_trace / FxT, two threads", "two threads", 0.5, "FxT two threads"),
)


def build(folder: Path) -> Path:
    """The programs, over the recorder as users have it; those of recorders that are not installed are left
    out.
    """
    source = ROOT / "lib" / "trace" / "benchmark"
    recorder = f"-DELBOW_TRACE_FOLDER={trace_libraries()}"
    for command in (
        ["cmake", "-S", str(source), "-B", str(folder), "-G", "Ninja", recorder],
        ["cmake", "--build", str(folder), "--target", "programs"],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stdout[-4000:] + done.stderr[-4000:])
    return folder


def median_of(command: list[str], **environment: str) -> float:
    """ns of one event, CPU time."""
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment})
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"{command[0]} ended with code {done.returncode}")
    return statistics.median(json.loads(done.stdout))


def lttng(*arguments: str) -> None:
    done = subprocess.run(["lttng", "--no-sessiond", *arguments], capture_output=True, text=True, timeout=60)
    if done.returncode != 0:
        raise RuntimeError(f"lttng {arguments[0]}: {(done.stderr or done.stdout).strip().splitlines()[-1]}")


@contextmanager
def session(folder: Path) -> Iterator[str | None]:
    """LTTng records elbow_benchmark:event meanwhile; yields why it does not, or None."""
    if shutil.which("lttng-sessiond") is None or shutil.which("lttng") is None:
        yield "lttng-tools is not installed"
        return
    pid_file = folder / "sessiond.pid"
    command = ["lttng-sessiond", "--no-kernel", "--daemonize", f"--pidfile={pid_file}"]
    started = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if started.returncode != 0:
        last = (started.stderr or started.stdout).strip().splitlines()[-1:]
        yield f"lttng-sessiond does not start: {' '.join(last)}"
        return
    try:
        try:
            lttng("create", SESSION, f"--output={folder / 'lttng'}")
            # A flight recorder, as ours is here: nothing is dropped, and nothing waits for the disk.
            lttng("enable-channel", "--userspace", "--overwrite", "--subbuf-size=4M", "--num-subbuf=4", "all")
            lttng("enable-event", "--userspace", "--channel=all", "elbow_benchmark:*")
            lttng("start")
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            yield str(error)
            return
        yield None
        lttng("destroy", SESSION)
    finally:
        pid = int(pid_file.read_text())
        os.kill(pid, signal.SIGTERM)
        for _ in range(100):
            if not Path(f"/proc/{pid}").exists():
                break
            time.sleep(0.05)


def measurements(programs: Path, folder: Path, rounds: int) -> dict[str, Callable[[], float]]:
    """What is measured in each repeat, in this order, so that what is compared are neighbours."""

    def own(mode: str, threads: int, program: str = "elbow", **environment: str) -> Callable[[], float]:
        words = [mode, str(threads), str(rounds)]

        def run() -> float:
            # Each process has a folder of its own: those of one job would share it.
            command = [str(programs / f"benchmark_{program}"), tempfile.mkdtemp(dir=folder), *words]
            return median_of(command, **environment)

        return run

    def fxt(threads: int) -> Callable[[], float]:
        command = [str(programs / "benchmark_fxt"), str(folder / "fxt"), str(threads), str(rounds)]
        return lambda: median_of(command)

    def lttng_ust(threads: int) -> Callable[[], float]:
        command = [str(programs / "benchmark_lttng"), str(threads), str(rounds)]
        return lambda: median_of(command)

    found = {
        "off": own("off", 1),
        "raw alone": own("on", 1, program="clock", ELBOW_CLOCK="raw"),
        "raw": own("on", 1, ELBOW_CLOCK="raw"),
    }
    if (programs / "benchmark_fxt").exists():
        found["FxT"] = fxt(1)
    found["counter alone"] = own("on", 1, program="clock")
    found["counter"] = own("on", 1)
    found["two threads"] = own("on", 2)
    if (programs / "benchmark_fxt").exists():
        found["FxT two threads"] = fxt(2)
    if (programs / "benchmark_lttng").exists():
        found["LTTng-UST"] = lttng_ust(1)
        found["LTTng-UST two threads"] = lttng_ust(2)
    return found


def missing(programs: Path, why_no_session: str | None) -> dict[str, str]:
    """What is not measured, and why."""
    found = {}
    if not (programs / "benchmark_fxt").exists():
        found["FxT"] = "libfxt-dev is not installed"
    if not (programs / "benchmark_lttng").exists():
        found["LTTng-UST"] = "liblttng-ust-dev is not installed"
    elif why_no_session is not None:
        found["LTTng-UST"] = why_no_session
    return found


def measured(repeats: int, rounds: int) -> tuple[dict[str, list[float]], dict[str, str]]:
    """ns of one event in each repeat, by what was measured; and what was not, with the reason."""
    figures: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        programs = build(folder / "build")
        with session(folder) as why:
            work = measurements(programs, folder, rounds)
            absent = missing(programs, why)
            if why is not None:
                work = {title: run for title, run in work.items() if not title.startswith("LTTng")}
            for _ in range(repeats):
                for title, run in list(work.items()):
                    try:
                        figures.setdefault(title, []).append(run())
                    except RuntimeError as error:
                        if not title.startswith(("FxT", "LTTng")):
                            raise
                        absent[title] = str(error)
                        del work[title]
                        figures.pop(title, None)
    return figures, absent


def judged(figures: dict[str, list[float]], absent: dict[str, str]) -> list[dict[str, Any]]:
    """Each bar with what was reached."""
    rows = []
    for bar in BARS:
        row: dict[str, Any] = {"bar": bar.title, "limit": bar.limit}
        if bar.to is not None and bar.to not in figures:
            row |= {"reached": None, "verdict": "n/a", "reason": absent.get(bar.to.split(" two")[0], "")}
        else:
            values = figures[bar.figure]
            if bar.to is not None:
                values = [value / other for value, other in zip(values, figures[bar.to], strict=True)]
            reached = statistics.median(values)
            row |= {"reached": reached, "verdict": "pass" if reached <= bar.limit else "miss"}
        rows.append(row)
    return rows


def main() -> int:
    parser = Command(__doc__, smoke="--repeats 1 --rounds 2")
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--rounds", type=int, default=40, help="of 100,000 events, in each repeat")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    figures, absent = measured(asked.repeats, asked.rounds)
    bars = judged(figures, absent)
    if asked.json:
        print(json.dumps({"event_ns": figures, "absent": absent, "bars": bars}, indent=1))
    else:
        for title, values in figures.items():
            spread = f"{min(values):.2f} to {max(values):.2f}"
            print(f"{title:<24} {statistics.median(values):7.2f} ns ({spread})")
        for title, reason in absent.items():
            print(f"{title:<24}     n/a: {reason}")
        for row in bars:
            reached = "n/a" if row["reached"] is None else f"{row['reached']:.2f}"
            print(f"{row['bar']:<32} {reached:>6} (at most {row['limit']:g}): {row['verdict']}")
    return status(asked, any(row["verdict"] == "miss" for row in bars))


if __name__ == "__main__":
    sys.exit(main())
