"""How fast traces are merged, and in how much memory.

    python benchmarks/trace_merge.py [--events 100000000] [--outputs] [--folder DIR] [--program FOLDER]
                                     [--json]

Makes a trace (32 B an event: 3.2 GB for 1e8) of 8 ranks with 4 threads each, whose clocks differ, with
messages, in a folder that is removed afterwards (default: the temporary one). It is checked, which merges it:
all threads in one order, times corrected, messages matched. To reach: 5 million events a second, at most
500 MB in memory at once, every event and message there, no tachyon but those that were put in.

With --outputs a trace of a twentieth as many events is written as each output, and the rates are told.

--program names a folder with trace-maker and trace-reader, else they are built (a minute). Exit code 1 where
one is missed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from command import Command, status

LEAST_RATE = 5e6
"""Events a second."""
MOST_MEMORY = 500e6
"""Bytes, resident at once."""
OUTPUTS = ("pftrace", "json", "otf2", "paje", "columns")
"""The graph of tasks is none of all events."""
TACHYONS = 100


def programs(folder: Path | None, scratch: Path) -> Path:
    """The folder of trace-maker and trace-reader."""
    reader = os.environ.get("ELBOWROOM_TRACE_READER")
    beside = Path(reader).parent if reader else None  # a build with tests has both
    for built in filter(None, (folder, beside)):
        if (built / "trace-maker").exists():
            return built
    sources = Path(__file__).resolve().parent.parent / "lib" / "trace" / "merge"
    built = scratch / "build"
    subprocess.run(
        ["cmake", "-G", "Ninja", "-S", sources, "-B", built], check=True, stdout=subprocess.DEVNULL
    )
    build = ["cmake", "--build", built, "--target", "trace-maker", "trace-reader"]
    subprocess.run(build, check=True, stdout=subprocess.DEVNULL)
    return built


def made(tools: Path, folder: Path, events: int) -> dict[str, int]:
    """A new trace of about so many events, and what is in it."""
    if shutil.disk_usage(folder.parent).free < 40 * events:
        raise SystemExit(f"{folder.parent}: {40 * events / 1e9:.1f} GB are needed; name another --folder")
    size = ["--events", str(events), "--ranks", "8", "--threads", "4", "--tachyons", str(TACHYONS)]
    done = subprocess.run([tools / "trace-maker", folder, *size], check=True, capture_output=True)
    found: dict[str, int] = json.loads(done.stdout)
    return found


def timed(command: list[str | Path]) -> dict[str, Any]:
    """Seconds, the largest resident memory in bytes, and the JSON document that a command printed."""
    with tempfile.TemporaryFile() as told:
        begun = time.perf_counter()
        process = subprocess.Popen(command, stdout=told)
        _, status, used = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - begun
        code = process.returncode = os.waitstatus_to_exitcode(status)
        if code not in (0, 3):
            raise SystemExit(f"{command[0]} ended with {code}")
        told.seek(0)
        text = told.read()
    return {
        "seconds": seconds,
        "processor_seconds": used.ru_utime + used.ru_stime,
        "bytes": used.ru_maxrss * 1024,
        "told": json.loads(text) if text else None,
    }


def checked(tools: Path, folder: Path, events: int) -> dict[str, Any]:
    """The rate and the memory of checking a trace, and whether all was found in it."""
    inside = made(tools, folder, events)
    found = timed([tools / "trace-reader", "check", folder])
    told = found["told"]
    return {
        "events": inside["events"],
        "seconds": found["seconds"],
        "processor_seconds": found["processor_seconds"],
        "events_per_second": inside["events"] / found["seconds"],
        "bytes": found["bytes"],
        "whole": all(told[name] == inside[name] for name in ("events", "messages", "tachyons"))
        and told["suspect"] == told["unmatched"] == 0
        and told["monotone"],
    }


def written(tools: Path, folder: Path, events: int) -> dict[str, dict[str, float]]:
    """The same of each output."""
    inside = made(tools, folder, events)
    found = {}
    for name in OUTPUTS:
        out = folder.parent / f"out.{name}"
        one = timed([tools / "trace-reader", "merge", folder, "--to", name, "-o", out])
        size = sum(path.stat().st_size for path in (out.rglob("*") if out.is_dir() else [out]))
        found[name] = {
            "events_per_second": inside["events"] / one["seconds"],
            "bytes": one["bytes"],
            "written": size,
        }
        if out.is_dir():
            shutil.rmtree(out)
        else:
            out.unlink()
    return found


def show(result: dict[str, Any]) -> None:
    """For a person."""
    check = result["check"]
    print(
        f"check: {check['events']} events in {check['seconds']:.1f} s: "
        f"{check['events_per_second'] / 1e6:.1f} M events/s (to reach {LEAST_RATE / 1e6:.0f}), "
        f"{check['bytes'] / 1e6:.0f} MB (at most {MOST_MEMORY / 1e6:.0f}), "
        f"{'all there' if check['whole'] else 'NOT ALL THERE'}"
    )
    for name, one in result.get("outputs", {}).items():
        print(
            f"{name}: {one['events_per_second'] / 1e6:.2f} M events/s, "
            f"{one['bytes'] / 1e6:.0f} MB in memory, {one['written'] / 1e6:.0f} MB written"
        )


def main() -> int:
    parser = Command(__doc__, smoke="--events 100000")
    parser.add_argument("--events", type=int, default=100_000_000)
    parser.add_argument("--outputs", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--program", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        scratch = Path(name)
        tools = programs(options.program, scratch)
        result: dict[str, Any] = {"check": checked(tools, scratch / "trace", options.events)}
        shutil.rmtree(scratch / "trace")
        if options.outputs:
            result["outputs"] = written(tools, scratch / "trace", max(options.events // 20, 1000))
    print(json.dumps(result, indent=2)) if options.json else show(result)
    check = result["check"]
    reached = check["events_per_second"] >= LEAST_RATE and check["bytes"] <= MOST_MEMORY and check["whole"]
    return status(options, not reached)


if __name__ == "__main__":
    sys.exit(main())
