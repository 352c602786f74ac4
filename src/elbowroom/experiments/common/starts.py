"""What several starts of the program say of a run: how much of the variation is between them, and where."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import msgspec

from elbowroom.draw.figure import TextTable
from elbowroom.experiments.common import tables
from elbowroom.experiments.common.tables import Column
from elbowroom.quantities import format_size
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import StartVariation

KEY = "starts"
MOST_ROWS = 10
"""Values that the table lists; `show --json` has all."""

Named = tuple[PointResult, str, str, StartVariation]
"""A point, its side, the value (alone, together, kept), and how it varies."""


def variations(points: Sequence[PointResult]) -> Iterator[Named]:
    """All values of a run with several starts."""
    for point in points:
        for side_name, side in (("computation", point.comp), ("communication", point.comm)):
            for name, value in (("alone", side.alone), ("together", side.together), ("kept", side.kept)):
                if value is not None and not isinstance(value.variation, msgspec.UnsetType):
                    yield point, side_name, name, value.variation


def finding(points: Sequence[PointResult], wanted: int) -> Finding:
    """How much of the variation is between starts, all points together. `wanted`: starts of the plan."""
    named = list(variations(points))
    values = [item for _, _, name, item in named if name != "kept"]
    ratios = [item for _, _, name, item in named if name == "kept"]
    if not values:
        text = (
            "Variation between starts of the program is unknown: no value was measured in two starts, and "
            "twice in one of them."
        )
        return Finding(key=KEY, level="note", text=text, values={"starts": wanted})
    share, kept = _share(values), _share(ratios) if ratios else None
    of_kept = "" if kept is None else f"; of the variation of what sides kept, {kept:.0%}"
    text = (
        f"Of the variation of the values alone and together, {share:.0%} is between starts of the program, "
        f"the rest between repetitions of one start ({wanted} starts, {len(values)} values){of_kept}. All "
        "intervals hold for other starts too."
    )
    numbers: dict[str, float | int | str | None] = {
        "starts": wanted,
        "values": len(values),
        "share": share,
        "share_kept": kept,
        "between": math.sqrt(sum(item.between**2 for item in values) / len(values)),
        "within": math.sqrt(sum(item.within**2 for item in values) / len(values)),
    }
    return Finding(key=KEY, level="note", text=text, values=numbers)


def _share(items: Sequence[StartVariation]) -> float:
    """Of the sum of all variances."""
    between, within = (sum(getattr(item, name) ** 2 for item in items) for name in ("between", "within"))
    return between / (between + within) if between + within > 0 else 0.0


def table(points: Sequence[PointResult]) -> TextTable | None:
    """The values that vary most between starts; None where no value tells."""
    named = sorted(variations(points), key=lambda item: -item[3].between)
    if not named:
        return None
    columns: tuple[Column[Named], ...] = (
        Column("point", lambda row: f"{row[0].kernel} n={row[0].n} {format_size(row[0].size)}", left=True),
        Column("side", lambda row: row[1], left=True),
        Column("value", lambda row: row[2], left=True),
        Column("between", lambda row: f"{row[3].between:.2%}"),
        Column("within", lambda row: f"{row[3].within:.2%}"),
        Column("share", lambda row: f"{row[3].share:.0%}"),
        Column("95 %", lambda row: row[3].text(".0%") if row[3].bounds is not None else ""),
    )
    others = len(named) - MOST_ROWS
    return tables.table(
        "Variation between starts of the program",
        named[:MOST_ROWS],
        columns,
        below=(f"The {others} other values vary less between starts.",) if others > 0 else (),
        legend=(
            "between, within: standard deviation between starts, and between repetitions of one start; "
            "share: of the variance that is between starts."
        ),
    )
