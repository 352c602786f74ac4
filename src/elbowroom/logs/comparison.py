"""Tables of two folders of logs beside each other: rows with the same key, and what repetitions show."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from elbowroom.errors import UsageError
from elbowroom.logs.table import Cell, LogColumn, Table

FEWEST = 3
"""Values of a row on each side from which there is an interval."""
DURATIONS = ("s", "sec", "ms", "us", "usec", "microseconds", "ns", "nsec", "cycles", "cycle")

Place = tuple[str, str, tuple[tuple[str, Cell], ...], str]
"""Benchmark, test, the row's key by name, and the column."""


class TableChange(msgspec.Struct, frozen=True, kw_only=True):
    """A value of a row in both folders, in `unit`: the medians of its repetitions (`values_a`, `values_b`),
    and b/a - 1. With at least FEWEST values on both sides `low` and `high` are its 95 % interval (Welch, in
    logarithms); otherwise they are None, and the change may be noise. `better`: `same` where it may be.
    """

    benchmark: str
    test: str
    row: dict[str, Cell]
    column: str
    unit: str
    a: float
    b: float
    values_a: int
    values_b: int
    change: float | None
    low: float | None = None
    high: float | None = None
    significant: bool = False
    better: str = "same"

    @property
    def name(self) -> str:
        """`osu latency, size 8`."""
        row = ", ".join(f"{name} {value}" for name, value in self.row.items())
        return f"{self.benchmark} {self.test}{', ' if row else ''}{row}"


class TableComparison(msgspec.Struct, frozen=True, kw_only=True):
    """What `compare --json` prints of two folders of tables. `only_a`, `only_b`: values of one alone."""

    schema: str = "elbowroom/compare-tables"
    version: int = 1
    a: str
    b: str
    at_least: float
    sentence: str
    changes: tuple[TableChange, ...]
    significant: int
    only_a: int
    only_b: int


def compare_tables(
    a: tuple[str, Sequence[Table]], b: tuple[str, Sequence[Table]], at_least: float
) -> TableComparison:
    """Two folders, by name and tables. A table that a folder has several times is a repetition. UsageError
    where they have no value in common, or the same one in two units.
    """
    first, second = _values(a[1]), _values(b[1])
    common = [place for place in first if place in second]
    if not common:
        tests = [sorted({f"{one.benchmark} {one.test}" for one in tables}) for _, tables in (a, b)]
        raise UsageError(
            f"has no value in common with {a[0]}: {', '.join(tests[1])}; {', '.join(tests[0])}",
            field="run",
            value=b[0],
            hint="compare logs of one benchmark, with the same sizes or pairs",
        )
    for place in common:
        units = first[place][0].unit, second[place][0].unit
        if units[0] != units[1]:
            raise UsageError(
                f"{place[0]} {place[1]}: {place[3]} is in {units[1]}, and in {units[0]} in {a[0]}",
                field="run",
                value=b[0],
                hint="run the benchmark again in the same units",
            )
    changes = tuple(
        _change(place, first[place][0], first[place][1], second[place][1], at_least) for place in common
    )
    return TableComparison(
        a=a[0],
        b=b[0],
        at_least=at_least,
        sentence=_sentence(changes, at_least),
        changes=changes,
        significant=sum(one.significant for one in changes),
        only_a=len(first) - len(common),
        only_b=len(second) - len(common),
    )


def _values(tables: Iterable[Table]) -> dict[Place, tuple[LogColumn, list[float]]]:
    """Of each measured column of each row its values, one for each table that has it."""
    values: dict[Place, tuple[LogColumn, list[float]]] = {}
    for table in tables:
        keys = [one.name for one in table.columns if one.key]
        for key, measured in table.keyed():
            for name, cell in measured.items():
                column = table.column(name)
                if column is None or column.text or not column.unit or not isinstance(cell, int | float):
                    continue
                place = table.benchmark, table.test, tuple(zip(keys, key, strict=True)), name
                values.setdefault(place, (column, []))[1].append(float(cell))
    return values


def _change(
    place: Place, column: LogColumn, first: Sequence[float], second: Sequence[float], at_least: float
) -> TableChange:
    a, b = float(np.median(first)), float(np.median(second))
    change = low = high = None
    if min(*first, *second) > 0:
        change = b / a - 1
        if min(len(first), len(second)) >= FEWEST:
            value, far = _welch(np.log(first), np.log(second))
            change, low, high = (math.expm1(one) for one in (value, value - far, value + far))
    significant = low is not None and high is not None and change is not None
    significant = significant and (low > 0 or high < 0) and abs(change) >= at_least  # type: ignore[operator, arg-type]
    better = "same"
    if significant:
        more = column.unit.lower() not in DURATIONS
        better = "b" if (b > a) == more else "a"
    return TableChange(
        benchmark=place[0],
        test=place[1],
        row=dict(place[2]),
        column=place[3],
        unit=column.unit,
        a=a,
        b=b,
        values_a=len(first),
        values_b=len(second),
        change=change,
        low=low,
        high=high,
        significant=significant,
        better=better,
    )


def _welch(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """The difference of two means, and how far the ends of its 95 % interval are."""
    from scipy.special import stdtrit

    parts = first.var(ddof=1) / first.size, second.var(ddof=1) / second.size
    value = float(second.mean() - first.mean())
    if not sum(parts):
        return value, 0.0
    degrees = sum(parts) ** 2 / (parts[0] ** 2 / (first.size - 1) + parts[1] ** 2 / (second.size - 1))
    return value, float(stdtrit(degrees, 0.975)) * math.sqrt(sum(parts))


def _sentence(changes: Sequence[TableChange], at_least: float) -> str:
    """What changed, in one sentence."""
    known = [one for one in changes if one.change is not None]
    largest = max(known, key=lambda one: abs(one.change or 0.0), default=None)
    if largest is None:
        return f"No ratio can be made of {len(changes)} values: they are 0 or less."
    shown = f"{largest.column} of {largest.name}, {largest.change:+.1%}"
    if all(one.low is None for one in changes):
        few = f"No verdict: no value is there {FEWEST} times on both sides, so a change may be noise"
        return f"{few}; the largest difference of {len(changes)} values: {shown}."
    significant = [one for one in changes if one.significant]
    if not significant:
        return f"No change of {100 * at_least:.3g} % or more is shown in {len(changes)} values."
    worse = sum(one.better == "a" for one in significant)
    changed = f"{len(significant)} of {len(changes)} values changed"
    return f"{changed}, {worse} for the worse; the largest: {shown}."
