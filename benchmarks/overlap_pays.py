"""MPI_Allreduce beside a computation: what `run collectives` says, and what a program gains by following it.

    python benchmarks/overlap_pays.py [--size 1MiB] [--megabits 1000] [--rounds 7] [--out runs/pays]

Once between two ranks of this host (shared memory), and as root once between two hosts in network namespaces
whose link is a token bucket. `elbowroom run collectives` measures forms and progress policies beside TRIAD;
benchmarks/allreduce_step.c then runs each of them, in alternating order. Prints the overlap, what the
computation keeps and the reason of the loss, and the time of the program's step. docs/guide/
does-overlapping-pay.md cites it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from command import Command

ROOT = Path(__file__).parents[1]
sys.path += [str(ROOT / "src"), str(ROOT / "tests")]

from elbowroom.launch.launcher import Launch  # noqa: E402
from elbowroom.launch.mpi import find_mpi  # noqa: E402
from elbowroom.quantities import parse_size  # noqa: E402
from linked_hosts import LinkedHosts, linked_hosts  # noqa: E402

WAYS = (("blocking", "none"), ("nonblocking", "none"), ("nonblocking", "test"))
PART = 8192 * 24
"""Bytes of a part of the program's computation."""
ROOT_ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
SHARED_ENV = {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self,sm", "OMPI_MCA_smsc": "^cma,xpmem,knem"}


def started(command: list[str], hosts: LinkedHosts | None) -> str:
    """What a command prints, started here or on the first of the hosts."""
    environment = ROOT_ENV | ({} if hosts else SHARED_ENV)
    launch = Launch(command=tuple(command), env=environment)
    if hosts is not None:
        launch = hosts.on_first(launch)
    done = subprocess.run(
        launch.command, env={**os.environ, **launch.env}, capture_output=True, text=True, check=False
    )
    if done.returncode not in (0, 3):
        raise SystemExit(f"{' '.join(command)}: {done.stderr[-2000:]}")
    return done.stdout


def measured(out: Path, options: Any, hosts: LinkedHosts | None) -> dict[tuple[str, str], dict[str, Any]]:
    """The points of a run of `collectives`, by form and policy; on a busy machine some have no overlap."""
    words = ["run", "collectives", "--set", "operations=allreduce", "--set", "forms=blocking,nonblocking"]
    words += ["--sizes", options.size, "--out", str(out), "--no-report", "--json"]
    words += [] if options.repeat is None else ["--repeat", str(options.repeat)]
    words += [] if hosts is None else ["--hosts", ",".join(hosts.addresses.values())]
    shown = json.loads(started([sys.executable, "-m", "elbowroom", *words], hosts))
    points = [point for point in shown["points"] if point.get("overlap") is not None]
    return {(point["call"]["form"], point["call"].get("progress", "none")): point for point in points}


def steps(program: Path, parts: int, size: int, rounds: int, hosts: LinkedHosts | None) -> dict[Any, Any]:
    """Times of the program's step (s) by form and policy; ("none", "none"): without communication."""
    where = ["--oversubscribe"] if hosts is None else ["--host", ",".join(hosts.addresses.values())]
    mpirun = str(find_mpi().launcher)
    times: dict[Any, list[float]] = {way: [] for way in (("none", "none"), *WAYS)}
    for number in range(rounds):
        for way in list(times)[:: 1 if number % 2 else -1]:
            command = [mpirun, "-n", "2", *where, str(program), *way, str(size), str(parts)]
            times[way].append(float(re.findall(r"time per step: (\S+) s", started(command, hosts))[0]))
    return times


def compared(name: str, out: Path, program: Path, options: Any, hosts: LinkedHosts | None) -> None:
    """One table: the run beside the program."""
    found = measured(out / name, options, hosts)
    if WAYS[0] not in found:
        print(f"{name}: n/a, the run has no overlap of the blocking form\n", flush=True)
        return
    size = parse_size(options.size, "size")
    # As long as the collective takes alone.
    alone = found["blocking", "none"]["overlapped"]["message"]["value"]
    each = np.median(steps(program, 64, size, 1, hosts)["none", "none"]) / 64
    times = steps(program, max(1, round(alone / each)), size, options.rounds, hosts)
    now = np.array(times[WAYS[0]])
    print(f"{name}: MPI_Allreduce of {options.size}, {alone * 1e3:.3g} ms alone")
    print("form         progress  overlap  OSU's  TRIAD keeps  reason        step      less (d1 to d9)")
    for way in WAYS:
        point, own = found.get(way), np.array(times[way])
        gains = np.percentile(1 - own / now, (10, 50, 90))
        figures = f"{'n/a':>7}  {'n/a':>5}  {'n/a':>11}  {'':12s}"
        if point is not None:
            kept = point["overlapped"]["kept_comp"]["value"]
            figures = (
                f"{point['overlap']:7.2f}  {point['osu_overlap']:5.2f}  {kept:11.2f}  {point['reason']:12s}"
            )
        print(
            f"{way[0]:12s} {way[1]:8s} {figures} {np.median(own) * 1e3:6.2f} ms "
            f"{gains[1]:7.1%} ({gains[0]:.1%} to {gains[2]:.1%})"
        )
    print(f"computation alone {np.median(times['none', 'none']) * 1e3:.2f} ms\n", flush=True)


def main() -> int:
    """Both networks."""
    parser = Command(__doc__, smoke="--rounds 1 --size 64KiB --repeat 1 --no-hosts")
    parser.add_argument("--size", default="1MiB")
    parser.add_argument("--megabits", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--repeat", type=int, help="repetitions of `run collectives`")
    parser.add_argument("--no-hosts", action="store_true", help="leave the two namespaces out")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        program = folder / "allreduce_step"
        compiler = Path(find_mpi().launcher).with_name("mpicc")
        source = str(ROOT / "benchmarks" / "allreduce_step.c")
        subprocess.run([str(compiler), "-O2", source, "-o", str(program)], check=True)
        out = options.out or folder
        compared("shared-memory", out, program, options, None)
        if not options.no_hosts and os.geteuid() == 0 and shutil.which("ip"):
            hosts = stack.enter_context(linked_hosts(folder, "ab"))
            for name in "ab":
                hosts.limit(name, options.megabits)
            compared("two-hosts", out, program, options, hosts)
    return 0


if __name__ == "__main__":
    sys.exit(main())
