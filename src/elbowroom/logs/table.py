"""A table that a benchmark printed: columns with units, rows, and the line of each row."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

Cell = int | float | str | None
"""A number as printed, a word, or None where the benchmark printed N/A."""


class LogColumn(msgspec.Struct, frozen=True):
    """A column: its name, its unit as printed ("" for counts and words), and whether its values are numbers.

    `key` columns say what a row is of (a size, a pair of ranks); the others are measured. `same_digits`: all
    numbers of the column have the same digits after the point, so that a number that was cut is seen.
    """

    name: str
    unit: str = ""
    key: bool = False
    text: bool = False
    same_digits: bool = True


class Table(msgspec.Struct, frozen=True):
    """A table as printed. Nothing is converted: values are in the unit of their column.

    `benchmark` is the importer's name, `test` what the benchmark calls its test, `settings` what stands above
    the rows (version, ranks, pairs, operation). `lines` are the line numbers of the rows in `source`.
    """

    benchmark: str
    test: str
    columns: tuple[LogColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    lines: tuple[int, ...]
    source: str
    settings: dict[str, int | float | str] = {}

    def values(self, name: str) -> list[Cell]:
        """The cells of a column."""
        index = [column.name for column in self.columns].index(name)
        return [row[index] for row in self.rows]

    def column(self, name: str) -> LogColumn | None:
        """The column of that name, None if the table has none."""
        return next((column for column in self.columns if column.name == name), None)

    def keyed(self) -> Iterator[tuple[tuple[Cell, ...], dict[str, Cell]]]:
        """Each row as its key and its measured values by name."""
        for row in self.rows:
            pairs = list(zip(self.columns, row, strict=True))
            key = tuple(cell for column, cell in pairs if column.key)
            yield key, {column.name: cell for column, cell in pairs if not column.key}
