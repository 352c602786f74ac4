"""Tables of text: at most 20 rows unless `--rows` says otherwise, and as wide as the terminal."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click

from elbowroom.cli.console import console, print_wrapped, screen_width, styled
from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

Item = TypeVar("Item")

MOST_ROWS = 20
"""Rows of a table that are printed without `--rows`."""
ALL = "all"
LARGEST_LOSSES = "the largest losses,"
"""Which rows are shown, of a table whose weights are losses."""

_limit: ContextVar[int | None] = ContextVar("limit", default=None)


def parse_rows(text: str) -> int | None:
    """`all` or a number of rows; None for all. UsageError for anything else."""
    if text.strip().lower() == ALL:
        return None
    if not (text.isascii() and text.isdecimal() and int(text[:9]) > 0 and len(text) < 9):
        raise UsageError("is not a number of rows", field="rows", value=text, hint="give all, or 1 or more")
    return int(text)


class _RowCount(click.ParamType):  # type: ignore[type-arg]
    """The value of `--rows`."""

    name = "rows"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Text as it was typed, once it is known to be valid."""
        parse_rows(str(value))
        return str(value)


rows_option = click.option(
    "--rows",
    "table_rows",
    type=_RowCount(),
    metavar="N|all",
    help=f"Print so many rows of each table; default: at most {MOST_ROWS}.",
)


@contextlib.contextmanager
def rows_limited(rows: str | None) -> Iterator[None]:
    """Meanwhile tables have as many rows as `--rows` says, at most 20 where it is not given."""
    token = _limit.set(MOST_ROWS if rows is None else parse_rows(rows))
    try:
        yield
    finally:
        _limit.reset(token)


class ShownTable:
    """Rows below heads. Several rows may belong together: they are shown or left out as one.

    Before a head: `>` for a column that is aligned right, `~` for one that may be wrapped, `<` or nothing for
    others.
    """

    def __init__(self, heads: Sequence[str], *, with_heads: bool = True) -> None:
        self.heads, self.with_heads = tuple(heads), with_heads
        self._groups: list[tuple[float, list[tuple[str | Text, ...]]]] = []

    def add_row(self, *cells: str | Text, weight: float = 0.0) -> None:
        """One row. Of too many rows those of the largest weight are shown."""
        self._groups.append((weight, [cells]))

    def add_group(self, rows: Sequence[Sequence[str | Text]], weight: float = 0.0) -> None:
        """Rows that belong together."""
        self._groups.append((weight, [tuple(row) for row in rows]))

    def chosen(self, limit: int | None) -> tuple[list[tuple[str | Text, ...]], int]:
        """The rows to show, in their order, and how many are left out; at least one group is shown."""
        count = sum(len(rows) for _, rows in self._groups)
        if limit is None or count <= limit:
            return [row for _, rows in self._groups for row in rows], 0
        order = sorted(range(len(self._groups)), key=lambda at: -self._groups[at][0])
        kept, shown = list[int](), 0
        for at in order:
            size = len(self._groups[at][1])
            if kept and shown + size > limit:
                break
            kept.append(at)
            shown += size
        return [row for at in sorted(kept) for row in self._groups[at][1]], count - shown


def new_table(*heads: str, with_heads: bool = True) -> ShownTable:
    """An empty table with a column for each head."""
    return ShownTable(heads, with_heads=with_heads)


def print_table(table: ShownTable, first: str = "the first") -> None:
    """Prints a table; of one with too many rows, also which (`first`) of how many are shown, and how to see
    all. Where the terminal is too narrow for it, each row becomes a paragraph of heads and cells.
    """
    rows, left = table.chosen(_limit.get())
    if screen_width() < _natural_width(table, rows):
        _print_stacked(table, rows)
    else:
        console().print(_rich_table(table, rows))
    print_left_out(left, len(rows) + left, first)


def print_left_out(left: int, count: int, first: str) -> None:
    """Which rows (`first`) of `count` are shown where some are `left` out, and how to see all."""
    if left:
        print_wrapped(f"Shown: {first} {count - left} of {count} rows; all: --rows all.")


def most_telling(items: Sequence[Item], weight: Callable[[Item], float]) -> list[Item]:
    """As many items as a table may have rows: those of the largest weight, in their order."""
    limit = _limit.get()
    if limit is None or len(items) <= limit:
        return list(items)
    kept = sorted(range(len(items)), key=lambda at: -weight(items[at]))[:limit]
    return [items[at] for at in sorted(kept)]


def _rich_table(table: ShownTable, rows: Sequence[Sequence[str | Text]]) -> Table:
    from rich.table import Table  # slow to load, and nothing that --json or --help needs

    shown = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    shown.show_header = table.with_heads
    for head in table.heads:
        justify: Literal["left", "right"] = "right" if head.startswith(">") else "left"
        shown.add_column(_name(head), justify=justify, no_wrap=not head.startswith("~"))
    for row in rows:
        shown.add_row(*row)
    return shown


def _name(head: str) -> str:
    return head[1:] if head[:1] in tuple("<>~") else head


def _natural_width(table: ShownTable, rows: Sequence[Sequence[str | Text]]) -> int:
    """Columns that it needs: of a column that may be wrapped, its longest word."""
    widths = []
    for place, head in enumerate(table.heads):
        texts = [*_name(head).split("\n"), *(str(row[place]) for row in rows if place < len(row))]
        pieces = [word for text in texts for word in text.split()] if head.startswith("~") else texts
        widths.append(max(map(len, pieces), default=0))
    return sum(widths) + len(widths) - 1


def _print_stacked(table: ShownTable, rows: Sequence[Sequence[str | Text]]) -> None:
    names = [" ".join(_name(head).split()) for head in table.heads]
    for row in rows:
        cells = [(name, " ".join(str(cell).split())) for name, cell in zip(names, row, strict=False)]
        text = ", ".join(f"{name} {cell}".strip() for name, cell in cells if cell)
        for line in textwrap.wrap(text, screen_width(), subsequent_indent="  ", break_on_hyphens=False):
            console().print(styled(line), soft_wrap=True)
