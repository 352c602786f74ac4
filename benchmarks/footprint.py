"""How many cache lines a message touches in the MPI library: the footprint in core/caches/pattern.hpp.

    python benchmarks/footprint.py [--mpi PREFIX] [--sizes 4,400,1024]

Two ranks under callgrind, whose first level of 1 MiB is emptied before each message, so that every line that
a call touches misses once. Prints lines of MPI_Send and MPI_Recv, with and without a barrier before them,
buffer and shared cell among them. The receiver waits when the message comes; what it touches meanwhile
counts.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from command import Command

from elbowroom.errors import ElbowroomError
from elbowroom.launch.mpi import Mpi, find_mpi, launch_environment

SOURCE = Path(__file__).parents[1] / "core" / "caches" / "check" / "touched_lines.cpp"
CACHES = ("--D1=1048576,16,64", "--LL=2097152,16,64")
RANKS = ("counted_send", "counted_receive")


def lines(mpi: Mpi, program: Path, size: int, barrier: bool, rounds: int) -> list[float]:
    """Lines that one message touches on each side."""
    command = [mpi.launcher, "-n", "2", "--oversubscribe"]
    out = program.parent / f"callgrind.{size}.{int(barrier)}"
    # The process that sends calls one of the functions, the one that receives the other: files of both.
    toggles = [f"--toggle-collect={name}" for name in RANKS]
    command += ["valgrind", "-q", "--tool=callgrind", "--cache-sim=yes", *CACHES, *toggles]
    command += [f"--callgrind-out-file={out}.%p", str(program), str(size), str(int(barrier)), str(rounds)]
    subprocess.run(
        command, check=True, capture_output=True, timeout=600, env=os.environ | launch_environment()
    )
    found = {}
    for file in out.parent.glob(f"{out.name}.*"):
        text = file.read_text()
        side = next((name for name in RANKS if f"({name}" in text or f" {name}" in text), None)
        events = re.search(r"^events: (.*)$", text, re.MULTILINE)
        totals = re.search(r"^totals: (.*)$", text, re.MULTILINE)
        if side is not None and events is not None and totals is not None:
            told = dict(zip(events[1].split(), map(int, totals[1].split()), strict=False))
            found[side] = (told.get("D1mr", 0) + told.get("D1mw", 0)) / rounds
    return [found[name] for name in RANKS]


def main() -> int:
    smoke = "--sizes 4 --rounds 5 --barriers 0"
    parser = Command("Cache lines that a message accesses in the MPI library.", smoke)
    parser.add_argument("--mpi", help="prefix of an Open MPI; the embedded one without")
    parser.add_argument("--sizes", default="4,400,1024", help="bytes")
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--barriers", default="0,1", help="without, and after a barrier")
    chosen = parser.parse_args()
    try:
        mpi = find_mpi(chosen.mpi)
    except ElbowroomError as error:
        print(error.sentence(), file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "touched_lines"
        environment = os.environ | {"OMPI_CXX": os.environ.get("CXX", "c++")}
        build = [mpi.compiler, "-std=c++20", "-O2", "-DOMPI_SKIP_MPICXX", "-o", str(program), str(SOURCE)]
        subprocess.run(build, check=True, env=environment)
        print(f"{mpi.kind} {mpi.version}: lines of 64 B that one message touches")
        for size in map(int, chosen.sizes.split(",")):
            for barrier in (word != "0" for word in chosen.barriers.split(",")):
                sent, received = lines(mpi, program, size, barrier, chosen.rounds)
                after = "after a barrier" if barrier else ""
                print(f"{size:>6} B  MPI_Send {sent:6.1f}  MPI_Recv {received:6.1f}  {after}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
