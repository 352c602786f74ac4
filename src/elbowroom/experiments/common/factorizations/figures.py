"""Performance by tree, as Figs. 4.9 to 4.14 of the thesis: over the order of the matrix, or tree by tree
where there is one matrix only.
"""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.experiments.common.factorizations.rows import BUILDS, TASKS, FactorRow, rows, sizes
from elbowroom.experiments.common.sentences import grouped
from elbowroom.machine.topology import Machine
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Interval

RATE = Axis(label="Gflop/s", reach=0.0)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """Gflop/s over the order, a line for each tree and build; of one matrix a point for each."""
    table = [(row, rate) for row in rows(results) if (rate := row.gflops) is not None]
    if not table:
        return ()
    task = table[0][0].program.task
    over_order = len(sizes([row for row, _ in table])) > 1
    ways = tuple(dict.fromkeys(row.program.way for row, _ in table))
    x_axis = Axis(label="Rows of the matrix") if over_order else Axis(label="Tree of broadcasts", names=ways)
    lines = grouped(table, lambda entry: _line(entry[0], over_order))
    return (
        Figure(
            name=f"{task}-performance",
            title=f"{TASKS[task]} by tree, {table[0][0].program.grid} processes",
            x=x_axis,
            left=RATE,
            series=tuple(_series(group, ways, over_order) for group in lines.values()),
            caption="By LAPACK's count of operations; none: a message for each recipient. 95 % intervals.",
        ),
    )


def _line(row: FactorRow, over_order: bool) -> tuple[object, ...]:
    place = (row.program.build, row.item.n)
    return (*place, row.program.way) if over_order else place


def _series(group: Sequence[tuple[FactorRow, Interval]], ways: tuple[str, ...], over_order: bool) -> Series:
    first = group[0][0]
    build = BUILDS[first.program.build]
    banded = any(rate.low != rate.high for _, rate in group)
    return Series(
        name=f"{first.program.way} ({build})" if over_order else build,
        side="computation",
        style="line",
        x=tuple(float(row.program.rows if over_order else ways.index(row.program.way)) for row, _ in group),
        y=tuple(rate.value for _, rate in group),
        low=tuple(rate.low for _, rate in group) if banded else (),
        high=tuple(rate.high for _, rate in group) if banded else (),
        points=tuple(row.item.id for row, _ in group),
        drawn="curve" if over_order else "points",
        value="Gflop/s",
        band="95 % interval",
    )
