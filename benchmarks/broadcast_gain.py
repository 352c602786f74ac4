"""What trees are worth to a factorization by a schedule of its tasks and messages, beside simulations.

    python benchmarks/broadcast_gain.py [--count 60] [--seed 1] [--json]

Draws combinations of task, matrix, grid, cores, network and tree, simulates each with and without trees, and
compares the gain with that of a schedule (lib/taskflow/schedule.cpp), to which nothing is fitted. Exit code 1
where a gain differs by more than 15 %. Takes some ten seconds of CPU time.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any, NamedTuple

import msgspec
from command import Command, status

from elbowroom.broadcast.curves import AT_ONCE
from elbowroom.broadcast.factorizations import (
    STEPS,
    FactorizationBounds,
    FactorizationRequest,
    KernelTimes,
)
from elbowroom.launch.executables import bound_factorization, simulate_factorization
from elbowroom.points.factorizations import Task

TASKS: tuple[Task, ...] = ("cholesky", "qr")
BOUND = 0.15
BLOCK = 320
FLOPS = {
    "potrf": 1 / 3, "trsm": 1.0, "syrk": 1.0, "gemm": 2.0,
    "geqrt": 4 / 3, "ormqr": 2.0, "tpqrt": 2.0, "tpmqrt": 4.0,
}  # fmt: skip
"""Of the kernels, in units of the third power of a tile's rows."""

EFFICIENCY = {
    "potrf": 0.6, "trsm": 0.55, "syrk": 0.9, "gemm": 1.0,
    "geqrt": 0.6, "ormqr": 0.75, "tpqrt": 0.65, "tpmqrt": 0.85,
}  # fmt: skip
"""Of the rate of products (two-core-vm-step-times.json, rounded)."""


class Combination(NamedTuple):
    """What was drawn: fields of a request and a tree; then, without the tree and with it, the least times and
    that of the schedule, and the simulated seconds.
    """

    fields: dict[str, Any]
    tree: str
    bounds: tuple[FactorizationBounds, FactorizationBounds]
    seconds: tuple[float, float]


def kernel_times(core_gflops: float) -> KernelTimes:
    """On a core that multiplies tiles at that rate."""
    seconds = {step: FLOPS[step] * BLOCK**3 / (core_gflops * 1e9 * EFFICIENCY[step]) for step in STEPS}
    return KernelTimes(block=BLOCK, seconds=seconds)


def requests(random: Random, task: Task) -> Iterator[tuple[dict[str, Any], str]]:
    """What is drawn: fields of a request without its tree, and the tree."""
    while True:
        if task == "cholesky":
            side = random.randint(3, 8)
            grid, rows = (side, side), random.randint(2 * side, 5 * side)
            columns = rows
        else:
            grid = random.choice(((1, 16), (1, 24), (1, 32), (2, 12), (2, 16), (4, 8)))
            rows = random.randint(6, 16)
            columns = random.randint(2, 4) * rows
        yield (
            {
                "task": task,
                "rows": rows,
                "columns": columns,
                "grid": grid,
                "times": kernel_times(random.choice((10.0, 20.0, 40.0))),
                "workers": random.choice((4, 8, 16, 28)),
                "bandwidth": 1e9 * 2 ** random.uniform(-1, 4),
                "latency": 1e-6 * 2 ** random.uniform(-1, 3),
            },
            random.choice(("binomial", "binary")),
        )


def simulate(fields: dict[str, Any], tree: str) -> Combination:
    """Both, and their bounds."""
    asked = [FactorizationRequest(**fields, tree=name) for name in ("none", tree)]
    without, with_tree = map(bound_factorization, asked)
    slow, quick = (simulate_factorization(one).seconds for one in asked)
    return Combination(fields, tree, (without, with_tree), (slow, quick))


def simulate_all(count: int, seed: int) -> list[Combination]:
    """So many combinations, half of each task."""
    drawn = []
    for index, task in enumerate(TASKS):
        combinations = requests(Random(2 * seed + index), task)
        drawn += [next(combinations) for _ in range((count + 1 - index) // 2)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda one: simulate(*one), drawn))


def row_of(one: Combination) -> dict[str, Any]:
    """As it is printed; `least`: milliseconds without the tree and with it."""
    simulated = one.seconds[0] / one.seconds[1]
    predicted = one.bounds[0].schedule / one.bounds[1].schedule
    fields = one.fields
    return {
        "task": fields["task"],
        "grid": f"{fields['grid'][0]}x{fields['grid'][1]}",
        "tiles": f"{fields['rows']}x{fields['columns']}",
        "workers": fields["workers"],
        "GB_s": fields["bandwidth"] / 1e9,
        "tree": one.tree,
        "simulated": simulated,
        "predicted": predicted,
        "error": predicted / simulated - 1,
        "seconds": one.seconds,
        "least_ms": [{name: 1e3 * s for name, s in msgspec.structs.asdict(b).items()} for b in one.bounds],
    }


def line(row: dict[str, Any]) -> str:
    """With the least times of the worse side."""
    least = ", ".join(f"{name} {one:.0f} to {other:.0f}" for (name, one), other in zip(
        row["least_ms"][0].items(), row["least_ms"][1].values(), strict=True))  # fmt: skip
    return (
        f"{row['task']:<8} {row['tiles']:>6} {row['grid']:>5} {row['workers']:>2} cores "
        f"{row['GB_s']:5.2f} GB/s {row['tree']:<8} simulated {row['simulated']:5.2f} "
        f"model {row['predicted']:5.2f} {row['error']:+.0%}   ms: {least}"
    )


def main() -> int:
    parser = Command(__doc__, smoke="--count 2")
    parser.add_argument("--count", type=int, default=60, help="combinations")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = [row_of(one) for one in simulate_all(given.count, given.seed)]
    missed = [row for row in rows if abs(row["error"]) > BOUND]
    if given.json:
        print(json.dumps({"rows": rows}))
    else:
        for row in rows:
            print(line(row) + (": MISSED" if row in missed else ""))
        print(f"{len(rows) - len(missed)} of {len(rows)} within {BOUND:.0%}")
    return status(given, missed)


if __name__ == "__main__":
    sys.exit(main())
