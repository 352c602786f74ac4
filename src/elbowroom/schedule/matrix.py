"""Slowdowns of pairs as CSV: a column for each measured application, a row for each companion.

A value is the runtime beside the companion in percent of the exclusive runtime. Lines with # are comments.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Sequence
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.errors import UsageError, closest

Array = NDArray[np.float64]

MOST_APPLICATIONS = 400
"""A pairing of more takes minutes."""

LEAST_PERCENT = 10.0
"""Values that are all below this are ratios, not percent."""

_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?%?", re.ASCII)
_SHAPE = "a first line with the applications, then one line for each companion"


class Matrix(msgspec.Struct, frozen=True, kw_only=True):
    """`percent[i][j]`: the runtime of application j beside application i, in percent of its exclusive one."""

    names: tuple[str, ...]
    percent: tuple[tuple[float, ...], ...]

    def array(self) -> Array:
        """The values: rows are companions, columns are measured applications."""
        return np.array(self.percent, dtype=float)

    def slowdown(self, measured: str, companion: str) -> float:
        """Runtime of `measured` beside `companion` over its exclusive runtime."""
        return self.percent[self.names.index(companion)][self.names.index(measured)] / 100


class _MatrixLine(NamedTuple):
    number: int
    cells: list[str]


def parse_matrix(text: str, where: str) -> Matrix:
    """A matrix from CSV; UsageError that names the row, the column and the value."""
    head, *rows = _lines(text, where, field="matrix")
    names = tuple(head.cells[1:])
    _check_names(names, "column", where)
    if len(names) > MOST_APPLICATIONS:
        raise _wrong(f"has {len(names)} applications, more than {MOST_APPLICATIONS}", where, "give fewer")
    companions = tuple(row.cells[0] for row in rows)
    _check_names(companions, "row", where)
    for name in dict.fromkeys((*companions, *names)):
        if name not in names or name not in companions:
            lacks, has = ("column", "row") if name in companions else ("row", "column")
            raise _wrong(f"has a {has} {name!r} and no {lacks} of it", where, f"add the {lacks}")
    by_name = {row.cells[0]: _row(row, names, where, field="matrix") for row in rows}
    matrix = Matrix(names=names, percent=tuple(by_name[name] for name in names))
    if matrix.array().max() < LEAST_PERCENT:
        raise _wrong("holds ratios, not percent of the exclusive runtime", where, "multiply all by 100")
    return matrix


def parse_half(text: str, where: str) -> dict[str, float]:
    """Runtimes with half of the cores on twice the nodes, in percent of those with all cores, from CSV.

    Either a line of applications and a line of percents, or a table with the columns `all_s` and `half_s`.
    """
    head, *rows = _lines(text, where, field="half")
    if {"all_s", "half_s"} <= set(head.cells):
        _check_names(tuple(row.cells[0] for row in rows), "row", where, field="half")
        return {row.cells[0]: _ratio(head, row, where) for row in rows}
    _check_names(tuple(head.cells), "column", where, field="half")
    if len(rows) != 1:
        raise _wrong(
            f"has {len(rows)} lines of values, not one",
            where,
            "give applications and their percents, or the columns all_s and half_s",
            field="half",
        )
    line = _MatrixLine(rows[0].number, ["half", *rows[0].cells])
    return dict(zip(head.cells, _row(line, tuple(head.cells), where, field="half"), strict=True))


def check_half(half: dict[str, float], names: Sequence[str]) -> None:
    """UsageError for an application without a runtime on half of the cores."""
    for name in names:
        if name not in half:
            raise UsageError("has no runtime on half of the cores", field="half", value=name, hint="add it")


def check_known(name: str, names: Sequence[str], *, field: str) -> None:
    """UsageError for an application that the matrix does not have."""
    if name not in names:
        raise UsageError("is not in the matrix", field=field, value=name, hint=closest(name, names))


def _lines(text: str, where: str, *, field: str) -> list[_MatrixLine]:
    """The lines that are not comments, with their numbers; at least two."""
    lines: list[_MatrixLine] = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#"):
            try:
                cells = next(csv.reader([line], strict=True))
            except csv.Error as error:
                raise _wrong(
                    f"is damaged in line {number} ({error})", where, "correct it", field=field
                ) from error
            lines.append(_MatrixLine(number, [cell.strip() for cell in cells]))
    if len(lines) < 2:
        raise _wrong("has no values", where, f"give {_SHAPE}", field=field)
    return lines


def _check_names(names: Sequence[str], kind: str, where: str, field: str = "matrix") -> None:
    known: set[str] = set()
    for place, name in enumerate(names, start=1):
        if not name or not name.isprintable():
            raise _wrong(f"has no name in {kind} {place}", where, "name the application", field=field)
        if name in known:
            raise _wrong(f"has two {kind}s {name!r}", where, "remove one of them", field=field)
        known.add(name)
    if not names:
        raise _wrong(f"has no {kind}s", where, f"give {_SHAPE}", field=field)


def _row(row: _MatrixLine, names: Sequence[str], where: str, *, field: str) -> tuple[float, ...]:
    cells = row.cells[1:]
    if len(cells) > len(names):
        raise _wrong(
            f"has {len(cells)} values in row {row.cells[0]!r} (line {row.number}), and {len(names)} columns",
            where,
            "remove what is too much",
            field=field,
        )
    cells += [""] * (len(names) - len(cells))
    return tuple(
        _percent(cell, row, name, where, field=field) for cell, name in zip(cells, names, strict=True)
    )


def _percent(cell: str, row: _MatrixLine, column: str, where: str, *, field: str) -> float:
    place = f"in row {row.cells[0]!r}, column {column!r} (line {row.number})"
    if not cell:
        raise _wrong(f"has no value {place}", where, "measure this pair, or predict it", field=field)
    value = float(cell.rstrip("%")) if _NUMBER.fullmatch(cell) else math.nan
    if not (value > 0 and math.isfinite(value)):
        raise _wrong(f"has {cell[:40]!r} {place}", where, "give a positive number, in percent", field=field)
    return value


def _ratio(head: _MatrixLine, row: _MatrixLine, where: str) -> float:
    cells = dict(zip(head.cells, row.cells, strict=False))
    whole, half = (
        _percent(cells.get(name, ""), row, name, where, field="half") for name in ("all_s", "half_s")
    )
    return 100 * half / whole


def _wrong(message: str, where: str, hint: str, *, field: str = "matrix") -> UsageError:
    return UsageError(message, field=field, value=where, hint=hint)
