"""Rows of a run of factorizations: a tree in a build on one matrix, its time, and its broadcasts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from elbowroom.experiments.common.sentences import grouped
from elbowroom.points import FactorizationProgram, running
from elbowroom.results.result import Kept, PointResult, Summary
from elbowroom.stats.interval import Interval

SCHEDULING = "scheduling"
"""The flag of points where two computing threads share a core."""

NONE = "none"
"""A message for each recipient."""

BUILDS = {"inline": "inline", "starpu": "StarPU"}
TASKS = {"cholesky": "Cholesky factorization", "qr": "QR factorization"}


class FactorRow(msgspec.Struct, frozen=True, kw_only=True):
    """A point that was measured."""

    program: FactorizationProgram
    item: PointResult

    @property
    def time(self) -> Summary | None:
        """A factorization while messages travel, us, of the slowest process."""
        return None if self.item.steps is None else self.item.steps.total

    @property
    def gflops(self) -> Interval | None:
        """10^9 operations in a second, as LAPACK counts them."""
        if self.time is None or not self.time.median > 0:
            return None
        low, high = self.time.ends(self.time.median)
        rates = [self.program.flops / time * 1e-3 for time in (self.time.median, high, low)]
        return Interval(value=rates[0], low=rates[1], high=rates[2])

    @property
    def kept(self) -> Kept | None:
        """What tasks keep of their speed while messages travel."""
        return self.item.comp.kept

    @property
    def takes_turns(self) -> bool:
        """Whether its processes compute on one core in turns."""
        return SCHEDULING in self.item.flags

    def fact(self, name: str) -> float | None:
        """What the program reported of one run of all processes."""
        return self.item.facts.get(name)

    @property
    def where(self) -> str:
        """`32 x 32 tiles of 128 on 2x2`, for messages."""
        one = self.program
        return f"{one.tiles} x {one.columns} tiles of {one.block} on {one.grid} processes"


def rows(results: Sequence[PointResult]) -> tuple[FactorRow, ...]:
    """A row for each point with values, as the plan orders them."""
    return tuple(
        FactorRow(program=program, item=item)
        for item, program in running(results, FactorizationProgram)
        if item.status != "failed"
    )


def cases(table: Sequence[FactorRow]) -> tuple[tuple[FactorRow, ...], ...]:
    """The rows that differ in their trees only."""
    return tuple(
        tuple(group)
        for group in grouped(
            table, lambda row: (row.program.build, row.program.tiles, row.program.columns, row.item.n)
        ).values()
    )


def sizes(table: Sequence[FactorRow]) -> tuple[tuple[FactorRow, ...], ...]:
    """The rows of each matrix."""
    return tuple(
        tuple(group)
        for group in grouped(table, lambda row: (row.program.tiles, row.program.columns)).values()
    )


def pairs(table: Sequence[FactorRow]) -> Iterator[tuple[FactorRow, FactorRow]]:
    """Each tree after what it is compared with, a message for each recipient."""
    for group in cases(table):
        without = next((row for row in group if row.program.way == NONE), None)
        if without is not None:
            yield from ((without, row) for row in group if row is not without)


def gain(without: FactorRow, tree: FactorRow) -> Interval | None:
    """How many times as fast the tree is, with the widest interval of both times; None if not measured."""
    slow, fast = without.time, tree.time
    if slow is None or fast is None or slow.bounds is None or fast.bounds is None or not fast.bounds[0] > 0:
        return None
    value = slow.median / fast.median
    return Interval(value=value, low=slow.bounds[0] / fast.bounds[1], high=slow.bounds[1] / fast.bounds[0])
