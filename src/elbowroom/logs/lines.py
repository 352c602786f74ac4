"""The lines of a log without the launcher's marks, and the rows of a table with their checks."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import repeat

from elbowroom.errors import UsageError
from elbowroom.logs.table import Cell, LogColumn, Table

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_TIME = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?(?:\s|$)")
_LABELS = (
    (re.compile(r"\[[^\]\s]+\](?:<std(?:out|err)>:\s?|:? |:?$)"), 0.5),  # mpirun --tag-output, mpiexec -l
    (re.compile(r"\s*\d+:(?!\s+\d+ +B|\s+\d+ bytes)(?:\s|$)"), 0.5),  # srun --label, but not NetPIPE's rows
    (re.compile(r"[A-Za-z][\w.-]*(?::|\s+\|)(?:\s|$)"), 0.9),  # pdsh, clush, docker compose
)
"""What launchers write in front of each line, and the share of lines that have it at least: in front of a few
lines, it is the text of a program.
"""
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_MISSING = ("N/A", "n/a", "-")
_STARTS_WITH_NUMBER = re.compile(r"[+-]?\.?\d")
_SENTENCE = re.compile(r"\d+ [A-Za-z]+ [A-Za-z]")  # "1 more process has sent ..." of a launcher
_BREAK = re.compile(r"#|[-=*_]{5,}|$")
TOLERANCE = 0.02
"""By how much two columns of a row that say the same may differ beyond their rounding."""


class Line:
    """A line: its number in the file, counted from 1, and its text without marks and trailing blanks.

    The last line of a file that does not end with a line feed is not `complete`.
    """

    __slots__ = ("complete", "number", "text")

    def __init__(self, number: int, text: str, complete: bool = True) -> None:
        self.number, self.text, self.complete = number, text, complete

    @property
    def cells(self) -> list[str]:
        """Its words."""
        return self.text.split()

    @property
    def is_row(self) -> bool:
        """Whether it looks like measured values: at least two numbers and nothing else but N/A."""
        cells = re.split(r"[\s,]+", self.text.strip(" ,"))
        return len(cells) > 1 and all(_NUMBER.fullmatch(cell) or cell in _MISSING for cell in cells)


def clean(text: str) -> list[Line]:
    """The lines of a log without times, labels of launchers and indentation, which copies of a log have."""
    raw = [_COLOUR.sub("", line).rstrip() for line in re.split(r"\r\n|\n|\r", text)]
    raw = _without(_TIME, raw, 0.5, most=1.0)
    for label, share in _LABELS:
        raw = _without(label, raw, share, most=0.25)
    return [Line(number, line.strip(), number < len(raw)) for number, line in enumerate(raw, start=1)]


def _without(mark: re.Pattern[str], lines: list[str], share: float, most: float) -> list[str]:
    """The lines without a mark, if at least a `share` of those that are not blank have it, two or more. At
    `most` so large a part of the marks may differ: numbers of rows and names of values do, labels repeat.
    """
    marks = [match[0].strip() for line in lines if line and (match := mark.match(line))]
    few = len(set(marks)) <= max(most * len(marks), 1)
    if few and len(marks) >= max(share * sum(map(bool, lines)), 2):
        return [mark.sub("", line, count=1) for line in lines]
    return lines


class LogSection:
    """The lines of a log from one where a benchmark begins; an importer takes them one by one.

    `ends` says whether another benchmark begins at a line: the section ends before it.
    """

    def __init__(
        self, benchmark: str, lines: Sequence[Line], start: int, source: str, ends: Callable[[Line], bool]
    ) -> None:
        self.benchmark, self.source = benchmark, source
        self._lines, self._ends = lines, ends
        self.position, self._first = start, start

    def peek(self) -> Line | None:
        """The next line, None at the end of the section."""
        if self.position >= len(self._lines):
            return None
        line = self._lines[self.position]
        return None if self.position > self._first and self._ends(line) else line

    def take(self) -> Line | None:
        """The next line, which is passed."""
        line = self.peek()
        self.position += line is not None
        return line

    def peek_row(self) -> Line | None:
        """The next line that begins with a number, None if the section has no other."""
        rest = self._lines[self.position :]
        return next((line for line in rest if _STARTS_WITH_NUMBER.match(line.text.strip())), None)

    def search(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The first match in the lines of the section that are left; no line is passed."""
        position = self.position
        match = None
        while match is None and (line := self.take()) is not None:
            match = pattern.search(line.text)
        self.position = position
        return match

    def find(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Passes lines up to one in which the pattern is, and that line; at the end None. Rows on the way are
        of no known table and not passed.
        """
        return next((match for line in self.lines() if (match := pattern.search(line.text))), None)

    def lines(self) -> Iterator[Line]:
        """Passes lines one by one up to a row, which is of no known table."""
        while (line := self.peek()) is not None and not line.is_row:
            self.position += 1
            yield line

    def above(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The nearest match in the lines above the section, at most 100 lines back."""
        for line in reversed(self._lines[max(self._first - 100, 0) : self._first]):
            if match := pattern.search(line.text):
                return match
        return None

    def error(self, line: Line | int, message: str, hint: str) -> UsageError:
        """The error of a line."""
        number = line if isinstance(line, int) else line.number
        text = self._lines[number - 1].text.strip()[:60]
        return UsageError(f"{self.source} line {number}: {message}", field="log", value=text, hint=hint)

    def number(self, line: int, name: str, text: str) -> int | float:
        """The number in a cell; UsageError with the line if it is none."""
        if not _NUMBER.fullmatch(text):
            raise self.error(line, f"{name}: {text!r} is not a number", "the line is damaged")
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)

    def table(
        self,
        test: str,
        columns: Sequence[LogColumn],
        *,
        separator: str | None = None,
        drop: str = "",
        row: re.Pattern[str] = _STARTS_WITH_NUMBER,
        skip: re.Pattern[str] | None = None,
        settings: dict[str, int | float | str] | None = None,
        rising: str = "",
    ) -> Table:
        """The rows that follow, up to a blank line, a comment, a rule or another benchmark. Lines of a
        launcher or a library between them are passed, and those that match `skip`.

        `drop` is a character after words of the first column. `row` matches lines that are rows (default:
        their first word is a number). `rising` names a column whose values rise: where they do not, two
        outputs were mixed. UsageError with the line where a row has other cells than the columns, or none
        follows.
        """
        start, rows, lines = self.position, list[tuple[Cell, ...]](), list[int]()
        digits: dict[str, int] = {}
        while (line := self.peek()) is not None:
            text = line.text.strip()
            words = text.replace(drop, " ") if drop else text
            if _BREAK.match(text):
                if rows:
                    break
            elif row.match(text) and not (skip and skip.search(text)) and not _SENTENCE.match(text):
                cells = self._cells(line, columns, [cell.strip() for cell in words.split(separator)])
                self._check_digits(line, columns, cells, digits)
                rows.append(tuple(map(self._value, columns, cells, repeat(line.number))))
                lines.append(line.number)
            self.position += 1
        if not rows:
            number = self._lines[max(start - 1, 0)].number
            raise self.error(number, f"no values follow the heading of {test}", "the log was cut here")
        table = Table(
            self.benchmark, test, tuple(columns), tuple(rows), tuple(lines), self.source, settings or {}
        )
        if not self._lines[lines[-1] - 1].complete and (
            len(rows) == 1 or not all(column.same_digits for column in columns)
        ):
            hint = "the log was cut here; if it was not, end the line"
            raise self.error(lines[-1], "the log ends within this line", hint)
        if rising:
            self.check_rising(table, rising)
        return table

    def _cells(self, line: Line, columns: Sequence[LogColumn], cells: list[str]) -> tuple[str, ...]:
        if len(cells) != len(columns):
            hint = "two outputs are mixed here, or the line was cut"
            raise self.error(line, f"{len(cells)} values where {len(columns)} columns are named", hint)
        for column, cell in zip(columns, cells, strict=True):
            if not column.text and cell not in _MISSING:
                self.number(line.number, column.name, cell)
        return tuple(cells)

    def _value(self, column: LogColumn, cell: str, line: int) -> Cell:
        if column.text:
            return cell
        return None if cell in _MISSING else self.number(line, column.name, cell)

    def _check_digits(
        self, line: Line, columns: Sequence[LogColumn], cells: Sequence[str], digits: dict[str, int]
    ) -> None:
        for column, cell in zip(columns, cells, strict=True):
            if column.text or not column.same_digits or cell in _MISSING:
                continue
            count = len(cell.partition(".")[2])
            if digits.setdefault(column.name, count) != count:
                message = (
                    f"{column.name}: {cell} has {count} digits after the point, {digits[column.name]} above"
                )
                raise self.error(line, message, "the number was cut, or two outputs are mixed here")

    def check_rising(self, table: Table, name: str) -> None:
        """UsageError for the first row whose value is not above that of the row before."""
        values = table.values(name)
        for before, value, number in zip(values, values[1:], table.lines[1:], strict=False):
            if isinstance(before, (int, float)) and isinstance(value, (int, float)) and 0 < value <= before:
                message = f"{name} {value} follows {before}, where it should rise"
                raise self.error(number, message, "two outputs are mixed here; give each its own file")

    def check_constant(
        self,
        table: Table,
        quantity: Callable[[dict[str, Cell]], float | None],
        what: str,
        expected: float | None = None,
    ) -> None:
        """UsageError for the first row where `quantity` of its cells is not `expected` (default: that of most
        rows): two columns that say the same do not agree.
        """
        names = [column.name for column in table.columns]
        values = [quantity(dict(zip(names, row, strict=True))) for row in table.rows]
        known = sorted(value for value in values if value is not None)
        if not known:
            return
        usual = known[len(known) // 2] if expected is None else expected
        for value, number in zip(values, table.lines, strict=True):
            if value is not None and abs(value - usual) > TOLERANCE * abs(usual):
                raise self.error(number, f"{what} do not agree", "a number of this line is damaged")
