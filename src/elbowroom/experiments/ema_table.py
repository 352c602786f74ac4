"""What extraneous accesses did, as a table: a few rows for each case in place of hundreds of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from elbowroom.draw.numbers import number
from elbowroom.experiments.ema_cases import Case, cases, kind_text, region_text, who_text
from elbowroom.machine.topology import Machine
from elbowroom.stats import sides
from elbowroom.stats.floors import Estimate, Region
from elbowroom.stats.result import PointResult

COLUMNS = ("accesses", "floor", "median", "d1", "d9", "rise", "95 %", "control")
MEANING = (
    "One-way times in us. floor: the fastest message of a size, median over sizes; rise: of the floor over "
    "the row above; control: the same of the messages without accesses among them."
)


class Told(msgspec.Struct, frozen=True, kw_only=True):
    """The table of one case, as text."""

    title: str
    rows: tuple[tuple[str, ...], ...]
    below: str


def tables(results: Sequence[PointResult], machine: Machine) -> tuple[Told, ...]:
    """A table for each case; empty for runs without extraneous accesses."""
    return tuple(_told(case) for case in cases(results, machine))


def _told(case: Case) -> Told:
    return Told(
        title=f"{who_text(case)}, {kind_text(case)}, {case.sizes} sizes",
        rows=tuple(_cells(case, row) for row in case.regions),
        below=_below(case),
    )


def _cells(case: Case, row: Region) -> tuple[str, ...]:
    times = (row.floor, row.median, row.d1, row.d9)
    rise = ("", "") if row.rise is None else (f"{row.rise.value:+.1%}", _ends(row.rise))
    control = "" if row.control is None else _ends(row.control)
    name = region_text(case, row.name)
    return (name, *(number(time, 4) for time in times), *rise, control)


def _ends(found: Estimate) -> str:
    return f"{100 * found.low:+.1f}..{100 * found.high:+.1f}"


def _below(case: Case) -> str:
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


def table_object(results: Sequence[PointResult], machine: Machine) -> dict[str, Any]:
    """The same as plain data, with the bounds of every window and the sides compared; empty without any."""
    found = cases(results, machine)
    if not found:
        return {}
    return {
        "unit": "us",
        "cases": [_case_object(case) for case in found],
        "sides": [
            {"access": one.access, "size": one.size, "data": one.data, "barrier": one.barrier}
            | msgspec.to_builtins(difference)
            for one in found
            for other in found
            if (one.who, other.who) == ("sender", "receiver")
            and one.alike(other)
            and (difference := sides.difference(one.windows, other.windows, one.levels)) is not None
        ],
    }


def _case_object(case: Case) -> dict[str, Any]:
    first = sides.first_observation(case.windows, case.regions)
    return {
        **{name: getattr(case, name) for name in ("who", "access", "size", "data", "barrier", "n")},
        "caches": {f"L{level}": edge for level, edge in case.levels.items()},
        "regions": msgspec.to_builtins(case.regions),
        "after": msgspec.to_builtins(case.scatter),
        "without": msgspec.to_builtins(case.scatter_without),
        "first_observation": msgspec.to_builtins(first),
        "bounds": {
            f"{of}_{'after' if after else 'without'}": msgspec.to_builtins(case.bounds(of, after=after))
            for of in _OF
            for after in (True, False)
        },
    }


_OF: tuple[sides.Of, ...] = ("mean", "minimum")
