"""Overlapped steps as CSV: times alone, loss ratios, and how long each took.

    label,t_comp,t_comm,l_comp,l_comm,measured
    4 nodes,124.58,0.86,1.104,2.28,131.38

All times in one unit. `label`, `measured` and the loss ratios may be left out, as columns or as empty cells;
ratios must then be given otherwise. Lines that start with # are comments.
"""

from __future__ import annotations

from pathlib import Path

from elbowroom.errors import UsageError, closest
from elbowroom.files import data_folder, read_text
from elbowroom.models.overlap.law import OverlappedStep, Trial, check
from elbowroom.store.curves import CsvReader

COLUMNS = ("label", "t_comp", "t_comm", "l_comp", "l_comm", "measured")
FOLDER = data_folder("machines") / "steps"
NEEDED = ("t_comp", "t_comm")


def published() -> tuple[str, ...]:
    """The names of the published tables of steps."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.csv")))


def read_steps(source: str, l_comp: float | None = None, l_comm: float | None = None) -> list[Trial]:
    """The steps in a file, or in a published table of that name, in order.

    `l_comp` and `l_comm` are used for steps that have none in the table.

    UsageError names the file, the line, the field and a hint.
    """
    path = FOLDER / f"{source}.csv" if source in published() else Path(source)
    text = read_text(path, field="table", hint=f"name a CSV file, or one of: {', '.join(published())}")
    return _StepsReader(source, {"l_comp": l_comp, "l_comm": l_comm}).trials(text)


class _StepsReader(CsvReader):
    """Reads one table."""

    def __init__(self, name: str, given: dict[str, float | None]) -> None:
        super().__init__(name)
        self.given = given

    def trials(self, text: str) -> list[Trial]:
        lines = [
            (number, line)
            for number, line in enumerate(text.splitlines(), start=1)
            if line.strip() and not line.lstrip().startswith("#")
        ]
        if not lines:
            raise self.error("names no columns", "columns", None, f"write {','.join(COLUMNS)}", 1)
        columns = self._columns(*lines[0])
        if len(lines) == 1:
            raise self.error("no steps follow the columns", "rows", None, "add a line for each", lines[0][0])
        return [self._trial(number, columns, line) for number, line in lines[1:]]

    def _columns(self, number: int, line: str) -> list[str]:
        columns = self.cells(number, line)
        for name in columns:
            if name not in COLUMNS:
                raise self.error("unknown column", "columns", name, closest(name, COLUMNS), number)
            if columns.count(name) > 1:
                raise self.error("this column appears twice", "columns", name, "keep one", number)
        for name in NEEDED:
            if name not in columns:
                raise self.error("this column is missing", "columns", name, "add the times alone", number)
        return columns

    def _trial(self, number: int, columns: list[str], line: str) -> Trial:
        cells = self.cells(number, line)
        if len(cells) != len(columns):
            message = f"{len(cells)} cells where {len(columns)} columns are named"
            raise self.error(message, "row", line[:60], "write numbers with a decimal point", number)
        row = dict(zip(columns, cells, strict=True))
        values = {name: self._value(number, name, row.get(name, "")) for name in COLUMNS[1:]}
        measured = values.pop("measured")
        times = {name: value for name, value in values.items() if value is not None}
        for name in COLUMNS[1:5]:
            if name not in times:
                hint = (
                    f"fill it in, or give --{name.replace('_', '-')}" if name in self.given else "fill it in"
                )
                raise self.error("is missing", name, None, hint, number)
        try:
            step = OverlappedStep(**times)
            if measured is not None:
                check(
                    "measured", measured, low=0.0, above=True, what="a time", hint="leave it empty if unknown"
                )
        except UsageError as error:
            raise self.error(error.message, error.field, error.value, error.hint, number) from error
        return Trial(label=row.get("label", "") or f"line {number}", step=step, measured=measured)

    def _value(self, number: int, name: str, text: str) -> float | None:
        if not text:
            return self.given.get(name)
        try:
            return float(text)
        except ValueError as error:
            raise self.error("is not a number", name, text, "for instance 12.5", number) from error
