"""What tracing costs a program over StarPU: the same tasks without, with the adapter asleep, and traced.

    python benchmarks/trace_starpu.py [--repeat 7] [--tasks 10000] [--workers 1,2] [--json]

Axes of the thesis (chapter 3): empty tasks and tasks of 20 us (Figs 3.8, 3.9: under pressure, and not), all
categories or the tasks' alone (3.8), numbers of workers (3.10). The kinds of runs take turns; each number is
the median of ratios of neighbours, with its 95 % bootstrap interval. `us` is the least time of a task without
tracing: what the ratio is of.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from command import Command, status

from elbowroom.launch import build

KINDS: dict[str, dict[str, str] | None] = {
    "without": None,
    "asleep": {},
    "tasks": {"ELBOW_TRACE_CATEGORIES": "task"},
    "all": {"ELBOW_TRACE_CATEGORIES": ""},
}
"""Environments: no adapter, nothing to trace, tasks and their dependencies, everything."""
CASES = [(0, 0), (1, 0), (3, 0), (3, 20_000)]
"""Pieces of data that each task uses, and how long it runs, ns."""
ROUNDS = 5


def timed(program: Path, libraries: Path, kind: str, arguments: list[str], tasks: int) -> tuple[float, bool]:
    """Seconds of a round of tasks (the median, without the first), and whether its trace is whole: workers
    that wait record more on a busy machine.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("ELBOW_TRACE_")}
    settings, whole = KINDS[kind], True
    with tempfile.TemporaryDirectory() as folder:
        if settings is not None:
            environment["LD_PRELOAD"] = str(libraries / "libelbow_trace_starpu.so")
        if settings:
            room = 1 << (ROUNDS * tasks * 12 * 32 - 1).bit_length()
            environment |= settings | {"ELBOW_TRACE_DIRECTORY": folder, "ELBOW_TRACE_BYTES": str(room)}
        said = subprocess.run(
            [str(program), *arguments], env=environment, capture_output=True, text=True, check=True
        ).stdout
        if settings:
            end = json.loads((Path(folder) / "rank-00000.jsonl").read_text().splitlines()[-1])
            whole = end["record"] == "end" and not end["lost"] and end["recorded"] >= ROUNDS * tasks * 2
    return float(np.median([int(line) for line in said.splitlines()][1:])) / 1e9, whole


def interval(values: np.ndarray[Any, np.dtype[np.float64]]) -> tuple[float, float, float]:
    """The median and its 95 % bootstrap interval."""
    drawn = np.random.default_rng(0).choice(values, (2000, len(values)))
    low, high = np.percentile(np.median(drawn, axis=1), [2.5, 97.5])
    return float(np.median(values)), float(low), float(high)


def measured(program: Path, libraries: Path, asked: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each number of workers, case and kind of run."""
    rows = []
    for workers in asked.workers:
        for data, spin in CASES:
            arguments = [str(workers), str(asked.tasks), str(data), str(spin), str(ROUNDS)]
            seconds: dict[str, list[float]] = {kind: [] for kind in KINDS}
            damaged = 0
            for turn in range(asked.repeat):
                order = list(KINDS) if turn % 2 == 0 else list(KINDS)[::-1]
                for kind in order:
                    took, whole = timed(program, libraries, kind, arguments, asked.tasks)
                    seconds[kind].append(took)
                    damaged += not whole
            without = np.array(seconds["without"])
            row = {"workers": workers, "data": data, "spin_us": spin / 1e3, "damaged": damaged}
            row["us"] = float(without.min()) / asked.tasks * 1e6
            for kind in list(KINDS)[1:]:
                row[kind] = interval(np.array(seconds[kind]) / without)
                added = (np.array(seconds[kind]) - without) / asked.tasks * 1e9
                row[f"{kind}_ns"] = float(np.median(added))
            rows.append(row)
            print(line(row), file=sys.stderr if asked.json else sys.stdout, flush=True)
    return rows


def line(row: dict[str, Any]) -> str:
    """A row as it is printed."""
    said = f"{row['workers']} workers, {row['data']} data, {row['spin_us']:g} us: {row['us']:.2f} us a task;"
    for kind in list(KINDS)[1:]:
        median, low, high = row[kind]
        said += f" {kind} x{median:.3f} ({low:.3f} to {high:.3f}), {row[f'{kind}_ns']:+.0f} ns;"
    return said.rstrip(";") + (f"; {row['damaged']} traces are not whole: MISSED" if row["damaged"] else "")


def main() -> int:
    parser = Command(__doc__, smoke="--repeat 1 --tasks 100 --workers 1")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument(
        "--workers", type=lambda text: [int(word) for word in text.split(",")], default=[1, 2]
    )
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    libraries = build.trace_libraries()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "tasks"
        source = str(Path(__file__).with_suffix(".c"))
        flags = subprocess.run(
            ["pkg-config", "--cflags", "--libs", "starpu-1.3"], capture_output=True, text=True, check=True
        ).stdout.split()
        subprocess.run(["cc", "-O2", "-o", str(program), source, *flags], check=True)
        rows = measured(program, libraries, asked)
    if asked.json:
        print(json.dumps(rows, indent=1))
    return status(asked, any(row["damaged"] for row in rows))


if __name__ == "__main__":
    sys.exit(main())
