"""apps/kernels beside OpenBLAS itself: the same calls on the same blocks and cores, as tasks and in plain
loops, in turns in one process; and StarPU's results beside OpenMP's.

    python benchmarks/kernels_apps.py [--rounds 9]

One rank, one computing core. Exit code 1 when a median ratio of CG or GEMM is below 0.9, or the builds differ
by more than 1e-12.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from typing import Any

from command import Command, status

from elbowroom.errors import ElbowroomError
from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi, find_mpi
from elbowroom.launch.starpu import find_starpu

LEAST = 0.9
AGREE = 1e-12
CASES = {"cg": (6144, 512), "gemm": (1536, 256), "cg-sparse": (409600, 6400)}


def ask(program: Path, mpi: Mpi, ranks: int, task: str, divide: int, *words: str) -> dict[str, Any]:
    """The record of one `solve`."""
    order, block = (size // divide for size in CASES[task])
    launcher = [str(Path(mpi.compiler).parent / "mpirun"), "--bind-to", "none", "--oversubscribe"]
    command = [*launcher, "-n", str(ranks), str(program), "solve", "--json", "--task", task]
    command += ["--order", str(order), "--block", str(block), *words]
    settings = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        "OMPI_MCA_mpi_yield_when_idle": "1",
        "OMP_WAIT_POLICY": "passive",  # the team must not spin beside the plain loop
    }
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, **settings}, timeout=600
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if done.returncode != 0 or not lines:
        raise SystemExit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def compared(name: str, program: Path, mpi: Mpi, options: argparse.Namespace) -> bool:
    """Prints the ratios of one build; whether those that count reach the goal."""
    reached = True
    for task in options.tasks:
        record = ask(program, mpi, 1, task, options.divide, "--compare", str(options.rounds))
        (rank,) = record["ranks"]
        ratios = [tasks / plain for tasks, plain in zip(rank["tasks"], rank["plain"], strict=True)]
        ratio = median(ratios)
        counts = task != "cg-sparse"
        reached = reached and (ratio >= LEAST or not counts)
        text = f"{name:7} {task:10} tasks {median(rank['tasks']) / 1e3:7.2f} Gflop/s"
        plain = f"plain {median(rank['plain']) / 1e3:7.2f}"
        print(f"{text}  {plain}  ratio {ratio:.3f} ({min(ratios):.3f} to {max(ratios):.3f})", flush=True)
    return reached


def main() -> int:
    """The exit code."""
    parser = Command(__doc__.splitlines()[0], smoke="--rounds 1 --divide 16 --tasks gemm")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--divide", type=int, default=1, help="orders and blocks by this")
    parser.add_argument("--tasks", type=lambda text: text.split(","), default=list(CASES))
    options = parser.parse_args()
    reached = True
    programs: dict[str, tuple[Path, Mpi]] = {}
    for name in ("openmp", "starpu"):
        try:
            mpi = find_starpu().mpi if name == "starpu" else find_mpi()
            programs[name] = build.application(f"kernels-{name}", mpi), mpi
        except ElbowroomError as error:
            print(f"{name}: n/a, {error.sentence()}")
            continue
        reached = compared(name, *programs[name], options) and reached
    if len(programs) == 2:
        for task in options.tasks:
            one, other = (
                ask(*programs[name], 2, task, options.divide)["facts"]["checksum"] for name in programs
            )
            apart = abs(one - other) / abs(one)
            reached = reached and apart <= AGREE
            print(f"{task:10} checksums of OpenMP and StarPU differ by {apart:.1e}")
    return status(options, not reached)


if __name__ == "__main__":
    sys.exit(main())
