"""What measured and simulated factorizations of tiled matrices share: grids of processes, and operations."""

from __future__ import annotations

import re
from typing import Literal

from elbowroom.errors import UsageError

Task = Literal["cholesky", "qr"]

MOST_TILES = 1000
"""On a side, as in apps/factorizations. More take hours to simulate."""

_GRID = re.compile(r"([1-9][0-9]{0,3})x([1-9][0-9]{0,3})")


def parse_grid(grid: str | int) -> tuple[int, int]:
    """Rows and columns of processes of `14x14`; UsageError for anything else."""
    match = _GRID.fullmatch(str(grid))
    if match is None:
        raise UsageError("is not rows x columns", field="grid", value=grid, hint="for instance 2x2")
    return int(match[1]), int(match[2])


def count_flops(task: Task, rows: int, columns: int) -> float:
    """Operations to factorize a matrix of `rows` x `columns` elements to the leading orders, as LAPACK
    counts them (Working Note 41, Appendix C); those of tiled QR are more.
    """
    if task == "cholesky":
        return rows**3 / 3
    small, large = min(rows, columns), max(rows, columns)
    return 2 * small**2 * (large - small / 3)
