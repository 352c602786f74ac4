"""Tables by columns: each says its name and its text for a row, how it is aligned, and what it marks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from elbowroom.draw.figure import TextTable
from elbowroom.quantities import number
from elbowroom.stats.interval import Added, Interval, Kept, Summary

Row = TypeVar("Row")
Value = float | Added | Interval | Kept | Summary | None


@dataclass(frozen=True)
class Column(Generic[Row]):
    """A column; its text is None for what is not known, which is shown as a dash. `left`: aligned to the
    left, as words are; `marked`: whether a row's cell shows interference; `shown`: whether it is there.
    """

    name: str
    text: Callable[[Row], str | None]
    left: bool = False
    marked: Callable[[Row], bool] = lambda _: False
    shown: bool = True


def table(title: str, rows: Sequence[Row], columns: Sequence[Column[Row]], **others: Any) -> TextTable:
    """A line for each row; `others` are the other fields of the table."""
    shown = [column for column in columns if column.shown]
    return TextTable(
        title=title,
        columns=tuple(column.name for column in shown),
        rows=tuple(tuple(_cell(column.text(row)) for column in shown) for row in rows),
        left=tuple(at for at, column in enumerate(shown) if column.left),
        marked=tuple(
            (line, at)
            for line, row in enumerate(rows)
            for at, column in enumerate(shown)
            if column.marked(row)
        ),
        **others,
    )


def _cell(text: str | None) -> str:
    return "-" if text is None else text


def formatted(value: Value, form: str) -> str | None:
    """The value, or the one inside an interval or a summary, in a format such as `.0%`."""
    known = _middle(value)
    return None if known is None else format(known, form)


def rounded(value: Value, digits: int = 3, unit: float = 1.0) -> str | None:
    """The same with so many significant digits, divided by `unit`."""
    known = _middle(value)
    return None if known is None else number(known / unit, digits)


def _middle(value: Value) -> float | None:
    if isinstance(value, Summary):
        return value.median
    return value.value if isinstance(value, Added | Interval | Kept) else value
