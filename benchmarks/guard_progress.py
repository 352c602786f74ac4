"""What the lever `progress` of a guard gains where a progress thread shares a rank's core, and its verdict
where the thread has a core of its own (docs/reference/guard-levers.md).

    python benchmarks/guard_progress.py [--pairs 5] [--steps 1000] [--rows 8192]

The stencil of guard_stencil.c with MPICH_ASYNC_PROGRESS=1 and a thread a rank, as it is and under `elbowroom
guard --levers progress` in turns: two ranks on two cores, where the threads of MPICH poll on the cores that
compute, and one rank on two cores, where nothing is to be gained. Goals: `pays` in all runs of the first, in
none of the second. Needs MPICH and two cores of its own.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from command import Command, status

from elbowroom.errors import ElbowroomError
from elbowroom.launch.mpi import Mpi, find_mpi

SOURCE = Path(__file__).with_name("guard_stencil.c")
CASES = {"a thread on each rank's core": 2, "a core for the thread": 1}
"""And their numbers of ranks."""


def run(words: list[str]) -> float:
    """Seconds of a step in the second half of a run."""
    env = {**os.environ, "MPICH_ASYNC_PROGRESS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False)
    shown = re.search(r"(\S+) s in the second half", done.stdout)
    if shown is None:
        raise SystemExit(f"{' '.join(words)}: {done.stdout[-1000:]}{done.stderr[-2000:]}")
    return float(shown[1])


def pairs(mpi: Mpi, folder: Path, ranks: int, options: Any) -> tuple[list[str], list[str], np.ndarray]:
    """Verdicts and chosen settings of the guarded runs, and the gain of each on the run before or behind."""
    program, receipt = folder / "stencil", folder / "receipt.json"
    sizes = [str(options.steps), str(options.rows), "9", "marks"]
    plain = [str(mpi.launcher), "-n", str(ranks), str(program), *sizes]
    own = [sys.executable, "-m", "elbowroom", "guard", "--levers", "progress", "--receipt", str(receipt)]
    verdicts, chosen, gains = [], [], []
    for number in range(options.pairs):
        both = [plain, [*own, "--", *plain]]
        times = [run(words) for words in both[:: 1 if number % 2 else -1]][:: 1 if number % 2 else -1]
        written = json.loads(receipt.read_text())
        verdicts.append(written["verdict"])
        chosen.append(written["chosen"])
        gains.append(1 - times[1] / times[0])
    return verdicts, chosen, np.array(gains)


def main() -> int:
    parser = Command(__doc__, smoke="--pairs 1 --steps 20 --rows 64")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=8192)
    options = parser.parse_args()
    try:
        mpi = find_mpi("mpich")
    except ElbowroomError as error:
        print(f"not measured: {error.sentence()}")
        return 0
    missed = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        compiler = mpi.compiler.replace("mpicxx", "mpicc")
        subprocess.run([compiler, "-O3", "-fopenmp", "-o", folder / "stencil", SOURCE], check=True)
        for case, ranks in CASES.items():
            verdicts, chosen, gains = pairs(mpi, folder, ranks, options)
            shown = ", ".join(f"{verdict} ({arm})" for verdict, arm in zip(verdicts, chosen, strict=True))
            print(f"{case}: {shown}; gain {np.median(gains):+.1%} ({gains.min():+.1%} to {gains.max():+.1%})")
            expected = ranks > 1
            missed += [case] if any((verdict == "pays") != expected for verdict in verdicts) else []
    for case in missed:
        print(f"missed: {case}")
    return status(options, missed)


if __name__ == "__main__":
    sys.exit(main())
