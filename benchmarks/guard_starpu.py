"""What the lever `starpu` of a guard gains, of what the best known order of tasks gains, and what it costs
where there is nothing to gain (docs/reference/guard-levers.md).

    python benchmarks/guard_starpu.py [--rounds 20] [--policies eager,lws,dmdas] [--json]

The program (guard_starpu.c) has its tasks in the site's order, in the best known one, and in the site's with
the lever, block by block in random order; so each round gives a pair of neighbours for each. A gain is
1 - time / time in the site's order: the pseudo-median of the rounds with its 95 % interval of signed ranks.
Needs two cores of its own, StarPU and Open MPI.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from command import Command, status

from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi
from elbowroom.launch.starpu import find_starpu
from elbowroom.stats.signed_ranks import pseudo_median, rank_interval

ROOT = Path(__file__).parents[1]
ARMS = {"best": "best", "1": "placebo", "2": "prefer", "4": "hold"}
"""Of the program, and what they are called."""
GOAL_SHARE = 0.8
GOAL_LOSS = 0.005


def compiled(folder: Path, mpi: Mpi) -> Path:
    """The program, with the library of the board in it."""
    program = folder / "guard_starpu"
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "starpu-1.3"], capture_output=True, text=True, check=True
    ).stdout.split()
    for name in ("guard", "board"):
        words = [
            "c++",
            "-std=c++20",
            "-O2",
            "-c",
            '-DELBOWROOM_VERSION="0"',
            f"-I{ROOT}/include",
            f"-I{ROOT}/lib",
        ]
        subprocess.run(
            [*words, "-o", folder / f"{name}.o", ROOT / "lib" / "guard" / f"{name}.cpp"], check=True
        )
    words = [mpi.compiler.replace("mpicxx", "mpicc"), "-O2", f"-I{ROOT}/include", "-o", program]
    source = Path(__file__).with_suffix(".c")
    objects = [folder / "guard.o", folder / "board.o"]
    subprocess.run([*words, source, *objects, *flags, "-lstdc++"], check=True)
    return program


def seconds(program: Path, mpi: Mpi, policy: str, sizes: list[int]) -> dict[str, list[float]]:
    """Of a step, by arm and round."""
    libraries = build.trace_libraries(mpi)
    preloads = [libraries / f"libelbow_guard_{name}.so" for name in ("mpi", "starpu")]
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        told = {
            "LD_PRELOAD": ":".join(map(str, preloads)),
            "ELBOW_GUARD": f"{folder}/board",
            "STARPU_SCHED": policy,
            "STARPU_HOME": folder,
        }
        words = [mpi.launcher, "-n", "2", "--oversubscribe", "--bind-to", "none"]
        words += ["--allow-run-as-root"] if os.getuid() == 0 else []
        words += ["env", *(f"{name}={value}" for name, value in told.items()), str(program)]
        settings = [arm for arm in ARMS if arm != "best"]
        done = subprocess.run(
            [*words, *map(str, sizes), *settings], capture_output=True, text=True, check=True
        )
    print(done.stderr, end="", file=sys.stderr)
    result: dict[str, list[float]] = {}
    for line in done.stdout.splitlines():
        arm, value, _ = line.split()
        result.setdefault(arm, []).append(float(value))
    return result


def gains(times: dict[str, list[float]]) -> dict[str, tuple[float, float, float]]:
    """Of each arm: the gain and its interval."""
    site = np.array(times["site"])
    result = {}
    for arm, name in ARMS.items():
        logs = np.log(site / np.array(times[arm]))
        ends = rank_interval(logs, 0.95) or (-np.inf, np.inf)
        low, middle, high = (float(-np.expm1(-log)) for log in (ends[0], pseudo_median(logs), ends[1]))
        result[name] = (middle, low, high)
    return result


def line(policy: str, graph: str, row: dict[str, tuple[float, float, float]]) -> str:
    """A row as it is printed."""
    words = [f"{name} {value:+.1%} [{low:+.1%}, {high:+.1%}]" for name, (value, low, high) in row.items()]
    return f"{policy}, {graph}: {'; '.join(words)}"


def main() -> int:
    parser = Command(__doc__, smoke="--rounds 1 --tasks 4 --steps 1 --policies eager")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--tasks", type=int, default=48, help="of each kind in a step, 1 ms each")
    parser.add_argument("--steps", type=int, default=3, help="of a block")
    parser.add_argument("--policies", type=lambda text: text.split(","), default=["eager", "lws", "dmdas"])
    parser.add_argument("--json", action="store_true")
    asked: argparse.Namespace = parser.parse_args()
    mpi = find_starpu().mpi
    if shutil.which("mpirun.openmpi") is None or len(os.sched_getaffinity(0)) < 2:
        print("needs Open MPI and two cores: not measured")
        return 0
    rows, missed = [], False
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder), mpi)
        for policy in asked.policies:
            for graph, messages in (("bursts", 1), ("nothing to gain", 0)):
                sizes = [asked.tasks, messages, asked.steps, asked.rounds]
                row = gains(seconds(program, mpi, policy, sizes))
                rows.append({"policy": policy, "graph": graph, "gains": row})
                if not asked.json:
                    print(line(policy, graph, row), flush=True)
                if messages:
                    missed |= row["prefer"][1] <= 0 or row["prefer"][0] < GOAL_SHARE * row["best"][0]
                else:
                    missed |= row["prefer"][1] < -GOAL_LOSS
    if asked.json:
        print(json.dumps(rows, indent=1))
    return status(asked, missed)


if __name__ == "__main__":
    sys.exit(main())
