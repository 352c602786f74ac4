"""Factorizations on simulated clusters: the counts of their broadcasts, and what trees are worth to QR.

    python benchmarks/factorizations.py [--times FILE] [--only NAME] [--json]

The task graphs and broadcasts of lib/taskflow run over simulated flows; kernels take the time that they
take on one core here (`factorizations-inline times --block 320`), or as in FILE. Processes have 27 workers
and a link of 6 GB/s and 2 us. Checks the counts of Cholesky's broadcasts (14 x 14 processes, 120 tiles), and
that trees speed up QR on 1 x 196 processes at least five times; exit code 1 where one is missed. All times
are simulated; curves as those of the thesis: `elbowroom broadcast curves`. Takes half a minute.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from command import Command, status

from elbowroom.broadcast.factorizations import (
    FactorizationRequest,
    KernelTimes,
    factorization_document,
    read_step_times,
)
from elbowroom.launch.executables import simulate_factorization, time_steps

BLOCK = 320
WORKERS = 27
BANDWIDTH, LATENCY = 6e9, 2e-6
COUNTS = {"data": 7259, "broadcasts": 7257, "messages": 167648, "most_recipients": 26}
"""Of Cholesky's with 120 tiles on 14 x 14 processes (thesis, section 4.4.2)."""

LEAST_GAIN = 5.0
"""Of QR's best tree on 1 x 196 processes (thesis, Fig. 4.14: 5 with binomial trees, 7 with binary ones)."""


class Case(NamedTuple):
    """A factorization and its trees; `figure`: of the thesis."""

    name: str
    figure: str
    task: str
    rows: int
    columns: int
    grid: tuple[int, int]
    trees: tuple[str, ...]


CASES = (
    Case("cholesky-14", "4.10a", "cholesky", 120, 120, (14, 14), ("none", "binomial", "binary")),
    Case("cholesky-small", "4.10b", "cholesky", 60, 60, (20, 20), ("none", "binomial", "binary")),
    Case("qr-196", "4.14", "qr", 20, 392, (1, 196), ("none", "binomial", "binary")),
)


def rows(times: KernelTimes, only: str | None, scale: float) -> Iterator[dict[str, Any]]:
    """A row for each tree of each case."""
    for case in CASES:
        if only not in (None, case.name):
            continue
        for tree in case.trees:
            request = FactorizationRequest(
                task=case.task,  # type: ignore[arg-type]
                rows=round(scale * case.rows),
                columns=round(scale * case.columns),
                grid=case.grid,
                tree=tree,
                times=times,
                workers=WORKERS,
                bandwidth=BANDWIDTH,
                latency=LATENCY,
            )
            document = factorization_document(simulate_factorization(request), request)
            yield {
                "name": case.name,
                "figure": case.figure,
                "task": case.task,
                "grid": f"{case.grid[0]}x{case.grid[1]}",
                "tree": tree,
                "seconds": document.time_us * 1e-6,
                "Tflop_s": document.Gflop_s / 1000,
                "busy": document.busy,
                "data": document.data,
                "broadcasts": document.broadcasts,
                "messages": document.messages,
                "most_recipients": document.most_recipients,
            }


def misses(found: list[dict[str, Any]]) -> Iterator[str]:
    """A sentence for each bound that is not met."""
    for row in found:
        if row["name"] == "cholesky-14":
            for key, value in COUNTS.items():
                if row[key] != value:
                    yield f"{row['name']}: {row[key]} {key} instead of {value}"
    times = {row["tree"]: row["seconds"] for row in found if row["name"] == "qr-196"}
    if times:
        gain = times.pop("none") / min(times.values())
        if gain < LEAST_GAIN:
            yield f"qr-196: the best tree is {gain:.2f} times as fast as no tree, and not {LEAST_GAIN:g}"


def main() -> int:
    parser = Command(__doc__, smoke="--only cholesky-small --scale 0.2")
    parser.add_argument("--times", help="times of the kernels")
    parser.add_argument("--only", choices=[case.name for case in CASES])
    parser.add_argument("--scale", type=float, default=1, help="factor of the numbers of tiles")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    times = time_steps(BLOCK) if given.times is None else read_step_times(given.times)
    found = []
    for row in rows(times, given.only, given.scale):
        found.append(row)
        if not given.json:
            print(
                f"{row['figure']:>6} {row['name']:<12} {row['grid']:>6} {row['tree']:<9} "
                f"{row['seconds']:8.3f} s {row['Tflop_s']:7.1f} Tflop/s, busy {row['busy']:.0%}, "
                f"{row['broadcasts']} broadcasts, {row['messages']} messages",
                flush=True,
            )
    if given.json:
        print(json.dumps({"times": times.seconds, "rows": found}, indent=1))
    missed = list(misses(found))
    for sentence in missed:
        print(f"missed: {sentence}", file=sys.stderr)
    return status(given, missed)


if __name__ == "__main__":
    sys.exit(main())
