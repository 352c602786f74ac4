"""Tables as data, in words: what `show` prints and the report lists."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec


class TextTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table of text. `left`: the columns that are aligned to the left, by number; the others hold numbers.

    `marked`: cells (row, column) that show interference. `below`: sentences about this table; `legend`: what
    its columns mean, which several tables may share. `points`: ids of the results that it shows in full.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: tuple[int, ...] = (0,)
    marked: tuple[tuple[int, int], ...] = ()
    below: tuple[str, ...] = ()
    legend: str = ""
    points: tuple[str, ...] = ()

    def sentences(self, following: Sequence[TextTable] = ()) -> tuple[str, ...]:
        """What is said below it; the legend only where the next of the `following` tables has another."""
        repeated = bool(following) and following[0].legend == self.legend
        return (*self.below, *([self.legend] if self.legend and not repeated else []))
