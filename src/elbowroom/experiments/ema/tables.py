"""What extraneous accesses did, as a table: a few rows for each case in place of hundreds of windows."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.table import TextTable
from elbowroom.experiments.ema.cases import AccessCase, cases, kind_text, region_text, who_text
from elbowroom.experiments.ema.findings import percent
from elbowroom.experiments.ema.floors import CacheRegion
from elbowroom.machine.topology import Machine
from elbowroom.quantities import number, span
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Interval

COLUMNS = ("accesses", "floor", "median", "d1", "d9", "rise", "95 %", "control")
MEANING = (
    "One-way times in us. floor: the fastest message of a size, median over sizes; rise: of the floor over "
    "the row above; control: the same of the messages without accesses among them."
)


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[TextTable, ...]:
    """A table for each case: floors between caches in place of hundreds of windows."""
    return tuple(_table(case) for case in cases(results, machine))


def _table(case: AccessCase) -> TextTable:
    averages = _averages(case)
    return TextTable(
        title=f"{who_text(case)}, {kind_text(case)}, {case.sizes} sizes",
        columns=COLUMNS,
        rows=tuple(_cells(case, row) for row in case.regions),
        below=(averages,) if averages else (),
        legend=MEANING,
        points=tuple(item.id for item in case.windows),
    )


def _cells(case: AccessCase, row: CacheRegion) -> tuple[str, ...]:
    times = (row.floor, row.median, row.d1, row.d9)
    rise = ("", "") if row.rise is None else (f"{percent(row.rise.value)}%", _ends(row.rise))
    control = "" if row.control is None else _ends(row.control)
    name = region_text(case, row.name)
    return (name, *(number(time, 4) for time in times), *rise, control)


def _ends(estimate: Interval) -> str:
    """Without a plus: the table has 80 columns."""
    return span(percent(estimate.low).lstrip("+"), percent(estimate.high).lstrip("+"))


def _averages(case: AccessCase) -> str:
    """Averages and their variance, with and without."""
    after, without = case.scatter, case.scatter_without
    if after is None or without is None:
        return ""
    return (
        f"Averages of the sizes: {number(after.average.value, 4)} us on average, variance "
        f"{number(after.variance.value, 3)} us² ({number(after.variance.low, 3)} to "
        f"{number(after.variance.high, 3)}); without accesses {number(without.average.value, 4)} us, "
        f"{number(without.variance.value, 3)} us²."
    )
