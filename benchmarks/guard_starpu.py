"""What the lever `starpu` of a guard gains, of what the best known order of tasks gains, and what it costs
where there is nothing to gain (docs/reference/guard-levers.md).

    python benchmarks/guard_starpu.py [--rounds 10] [--policies eager,lws,dmdas] [--json]
    python benchmarks/guard_starpu.py --rounds 0 --pairs 20 --keep FOLDER [--minutes 3.5]

The program (guard_starpu.c) has its tasks in the site's order, in the best known one, and in the site's under
each setting of the lever, block by block in random order; so each round gives a pair of neighbours for each.
`--pairs`: whole runs of it in turns, as it is, in the best order, and under `elbowroom guard`, where each
run resumes the receipt of the one before. A gain is 1 - time / time in the site's order: the pseudo-median of
the rounds or pairs with its 95 % interval of signed ranks. `--keep`: a run that is interrupted, or ends after
`--minutes`, continues there. Needs two cores of its own, StarPU and Open MPI.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from command import Command, status

from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi
from elbowroom.launch.starpu import find_starpu
from elbowroom.stats.signed_ranks import pseudo_median, rank_interval

ROOT = Path(__file__).parents[1]
ARMS = {"best": "best", "1": "placebo", "2": "prefer", "3": "spare", "4": "hold"}
"""Of the program, and what they are called."""
GOAL_GAIN = 0.1
GOAL_SHARE = 0.8
GOAL_LOSS = 0.005


class Graph(NamedTuple):
    """A step: its memory-bound tasks and those of its chain, of 1 ms each, and its messages."""

    memory: int
    chain: int
    messages: int


def graphs_of(bursts: Graph) -> dict[str, Graph]:
    """By name; without messages there is nothing to gain."""
    return {
        "bursts": bursts,
        "no messages": bursts._replace(messages=0),
    }


def compiled(folder: Path, mpi: Mpi) -> Path:
    """The program, with the library of the board in it."""
    program = folder / "guard_starpu"
    flags = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "starpu-1.3"], capture_output=True, text=True, check=True
    ).stdout.split()
    includes = [f"-I{ROOT / name}" for name in ("include", "lib")]
    for name in ("guard", "board"):
        words = ["c++", "-std=c++20", "-O2", "-c", '-DELBOWROOM_VERSION="0"', *includes]
        subprocess.run(
            [*words, "-o", folder / f"{name}.o", ROOT / "lib" / "guard" / f"{name}.cpp"], check=True
        )
    words = [mpi.compiler.replace("mpicxx", "mpicc"), "-O2", *includes, "-o", str(program)]
    source = Path(__file__).with_suffix(".c")
    objects = [folder / "guard.o", folder / "board.o"]
    subprocess.run([*words, source, *objects, *flags, "-lstdc++"], check=True)
    return program


class Runs:
    """Runs of the program in a `folder`, under a `policy` of StarPU."""

    def __init__(self, folder: Path, mpi: Mpi, policy: str, *, marked: bool = True) -> None:
        """Compiles it where it is not there yet. `marked`: which tasks are memory-bound is not learnt."""
        self._folder, self._mpi = folder, mpi
        program = folder / "guard_starpu"
        self._program = program if program.exists() else compiled(folder, mpi)
        self._env = {**os.environ, "STARPU_SCHED": policy, "STARPU_HOME": str(folder), "STARPU_SILENT": "1"}
        if marked:
            self._env["ELBOW_GUARD_MEMORY_BOUND"] = "sum_up"

    def words(self, *arguments: object, variables: Mapping[str, str] | None = None) -> list[str]:
        """The command line."""
        words = [self._mpi.launcher, "-n", "2", "--oversubscribe", "--bind-to", "none"]
        words += ["--allow-run-as-root"] if os.getuid() == 0 else []
        words += ["env", *(f"{name}={value}" for name, value in variables.items())] if variables else []
        return [*words, str(self._program), *map(str, arguments)]

    def run(self, words: Sequence[str]) -> list[list[str]]:
        """What it printed, in words."""
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=self._env)
        if done.returncode != 0:
            raise SystemExit(f"{' '.join(words)}: {done.stdout[-1000:]}{done.stderr[-2000:]}")
        print(done.stderr, end="", file=sys.stderr)
        return [line.split() for line in done.stdout.splitlines()]

    def arguments(self, graph: Graph, *more: object) -> list[object]:
        """Those of the program for a graph; what takes 1 ms is measured once in the folder."""
        file = self._folder / "sizes.txt"
        if not file.exists():
            file.write_text(" ".join(self.run(self.words())[0]))
        lines, products, _ = file.read_text().split()
        return [lines, products, *graph, *more]

    def blocks(self, graph: Graph, steps: int, rounds: int) -> dict[str, list[float]]:
        """Seconds of a step, by arm and round."""
        libraries = build.trace_libraries(self._mpi)
        preloads = [libraries / f"libelbow_guard_{name}.so" for name in ("mpi", "starpu")]
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            variables = {"LD_PRELOAD": ":".join(map(str, preloads)), "ELBOW_GUARD": f"{folder}/board"}
            words = self.words(*self.arguments(graph, steps, rounds, "site", *ARMS), variables=variables)
            result: dict[str, list[float]] = {}
            for arm, value, _ in self.run(words):
                result.setdefault(arm, []).append(float(value))
        return result

    def whole(self, graph: Graph, steps: int, way: str) -> dict[str, Any]:
        """A run of its own: seconds of a step, and the verdict where it is `guarded`."""
        words = self.words(*self.arguments(graph, steps, 1, "site" if way == "guarded" else way))
        if way != "guarded":
            return {"seconds": float(self.run(words)[0][1])}
        receipt = self._folder / f"{self._env['STARPU_SCHED']}-{'-'.join(map(str, graph))}.json"
        own = [sys.executable, "-m", "elbowroom", "guard", "--levers", "starpu", "--receipt", str(receipt)]
        own += ["--resume", str(receipt)] if receipt.exists() else []
        seconds = float(self.run([*own, "--", *words])[0][1])
        written = json.loads(receipt.read_text())
        return {"seconds": seconds, "verdict": written["verdict"], "chosen": written["chosen"]}


def gain(site: Sequence[float], other: Sequence[float]) -> tuple[float, float, float]:
    """And its interval."""
    logs = np.log(np.array(site) / np.array(other))
    ends = rank_interval(logs, 0.95) or (-np.inf, np.inf)
    low, middle, high = (float(-np.expm1(-log)) for log in (ends[0], pseudo_median(logs), ends[1]))
    return middle, low, high


def line(policy: str, graph: str, row: Mapping[str, tuple[float, float, float]]) -> str:
    """A row as it is printed."""
    words = [f"{name} {value:+.1%} [{low:+.1%}, {high:+.1%}]" for name, (value, low, high) in row.items()]
    return f"{policy}, {graph}: {'; '.join(words)}"


def pairs(
    runs: Runs, graph: Graph, options: argparse.Namespace, file: Path, ways: Sequence[str], end: float
) -> dict[str, list[dict[str, Any]]]:
    """Whole runs of each way in turns: those in `file`, and more until `end`."""
    rows = [json.loads(text) for text in file.read_text().splitlines()] if file.exists() else []
    while len(rows) < options.pairs and time.monotonic() < end:
        order = ways[:: 1 if len(rows) % 2 else -1]
        rows.append({way: runs.whole(graph, options.run_steps, way) for way in order})
        with file.open("a") as all_rows:
            all_rows.write(json.dumps(rows[-1]) + "\n")
    return {way: [row[way] for row in rows] for way in ways}


def print_pairs(policy: str, name: str, done: Mapping[str, list[dict[str, Any]]]) -> list[str]:
    """The goals that are missed."""
    seconds = {way: [row["seconds"] for row in rows] for way, rows in done.items()}
    if not seconds["site"]:
        return []
    row = {way: gain(seconds["site"], times) for way, times in seconds.items() if way != "site"}
    verdicts = [one["verdict"] for one in done["guarded"]]
    shown = ", ".join(f"{word} {verdicts.count(word)}" for word in sorted(set(verdicts)))
    print(f"{line(policy, name, row)}; {len(verdicts)} pairs, verdicts: {shown}", flush=True)
    value, low, _ = row["guarded"]
    if len(row) == 1:
        missed = ["off or cannot say in all runs"] if "pays" in verdicts else []
        return missed + (["a loss of at most 0.5 %"] if low < -GOAL_LOSS else [])
    missed = ["80 % of the best order's gain"] if low <= 0 or value < GOAL_SHARE * row["best"][0] else []
    return missed + (["a gain of 10 % by the best order"] if row["best"][0] < GOAL_GAIN else [])


def main() -> int:
    parser = Command(
        __doc__,
        smoke="--rounds 1 --graph 4,4,1 --steps 1 --policies eager --pairs 1 --run-steps 3 --graphs bursts",
    )
    parser.add_argument("--rounds", type=int, default=10, help="blocks of each order and setting")
    parser.add_argument("--pairs", type=int, default=0, help="of whole runs")
    parser.add_argument(
        "--graph",
        type=lambda text: Graph(*map(int, text.split(","))),
        default=Graph(100, 60, 4),
        metavar="MEMORY,CHAIN,MESSAGES",
        help="tasks of 1 ms that read memory, those of the chain, and messages of a step",
    )
    parser.add_argument("--steps", type=int, default=1, help="of a block")
    parser.add_argument("--run-steps", type=int, default=30, help="of a whole run")
    parser.add_argument("--policies", type=lambda text: text.split(","), default=["eager", "lws", "dmdas"])
    parser.add_argument("--graphs", type=lambda text: text.split(","), default=["bursts", "no messages"])
    parser.add_argument("--unmarked", action="store_true", help="which tasks are memory-bound is learnt")
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--minutes", type=float, default=1e6, help="then no pair begins any more")
    parser.add_argument("--json", action="store_true")
    options: argparse.Namespace = parser.parse_args()
    end = time.monotonic() + 60 * options.minutes
    mpi = find_starpu().mpi
    if shutil.which("mpirun.openmpi") is None or len(os.sched_getaffinity(0)) < 2:
        print("needs Open MPI and two cores: not measured")
        return 0
    rows, missed = [], []
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(options.keep or scratch).absolute()
        folder.mkdir(exist_ok=True)
        graphs = {name: graph for name, graph in graphs_of(options.graph).items() if name in options.graphs}
        for policy in options.policies:
            runs = Runs(folder, mpi, policy, marked=not options.unmarked)
            for name, graph in graphs.items():
                if options.rounds:
                    times = runs.blocks(graph, options.steps, options.rounds)
                    row = {ARMS[arm]: gain(times["site"], times[arm]) for arm in ARMS}
                    rows.append({"policy": policy, "graph": name, "gains": row})
                    if not options.json:
                        print(line(policy, name, row), flush=True)
                if options.pairs:
                    ways = ["site", "guarded", *(["best"] if name == "bursts" else [])]
                    file = folder / f"{policy}-{name.replace(' ', '-')}.jsonl"
                    missed += print_pairs(policy, name, pairs(runs, graph, options, file, ways, end))
    if options.json:
        print(json.dumps(rows, indent=1))
    for goal in missed:
        print(f"missed: {goal}")
    return status(options, missed)


if __name__ == "__main__":
    sys.exit(main())
