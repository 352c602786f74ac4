"""Reads the logs of benchmarks: importers recognise their part by its content."""

from __future__ import annotations

import gzip
import re
import zlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from elbowroom.errors import UsageError
from elbowroom.files import read_document
from elbowroom.logs.lines import Line, LogSection, clean
from elbowroom.logs.table import Table
from elbowroom.plugins import Registry


class Importer(msgspec.Struct, frozen=True):
    """What reads the log of one benchmark.

    `starts` is in the first line of its output, wherever the log has others; `read` gives the tables of the
    section that begins there, and leaves the section's position behind what it has read. `sample` is a short
    output, which tests and documentation read.
    """

    name: str
    title: str
    starts: re.Pattern[str]
    read: Callable[[LogSection], Iterable[Table]]
    sample: str
    continues: re.Pattern[str] | None = None
    """Lines that match `starts` and continue a section that has begun."""


class Log(msgspec.Struct, frozen=True):
    """What a log held: its tables, and the lines that look like values and are in none of them."""

    source: str
    tables: tuple[Table, ...]
    ignored: tuple[int, ...] = ()

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """The importers that read it, in the order of the file."""
        return tuple(dict.fromkeys(table.benchmark for table in self.tables))


IMPORTERS: Registry[Importer] = Registry.of_modules(
    "importers", "importer", Importer, "elbowroom.logs.importers"
)
"""All importers: elbowroom's own and those of installed packages."""


def is_log(path: Path) -> bool:
    """Whether a benchmark begins anywhere in the file. UsageError where it cannot be read."""
    known = IMPORTERS.all()
    lines = clean(_text(path))
    return any(importer.starts.search(line.text) for line in lines for importer in known)


def read_log(path: Path) -> Log:
    """The tables of a log, plain or gz. UsageError names file and line where a table is damaged, and what
    can be read where nothing is known.
    """
    text = _text(path)
    if "\0" in text:
        raise UsageError("is a binary file, not a log", field="log", value=str(path), hint=_hint())
    return parse_log(text, str(path))


def _text(path: Path) -> str:
    data = read_document(path, field="log", hint="name the output of a benchmark")
    if data[:2] == b"\x1f\x8b":
        try:
            data = gzip.decompress(data)
        except (EOFError, OSError, zlib.error) as error:
            hint = "copy it again"
            what = f"the compressed file is damaged or cut ({error})"
            raise UsageError(what, field="log", value=str(path), hint=hint) from error
    return data.decode("utf-8", errors="replace")


def parse_log(text: str, source: str, known: Sequence[Importer] | None = None) -> Log:
    """The tables in the text of a log; `known` are the importers to try (default: all)."""
    known = IMPORTERS.all() if known is None else known
    lines = clean(text)

    def importer_at(line: Line) -> Importer | None:
        return next((importer for importer in known if importer.starts.search(line.text)), None)

    tables, ignored, position = list[Table](), list[int](), 0
    while position < len(lines):
        importer = importer_at(lines[position])
        if importer is None:
            if lines[position].is_row:
                ignored.append(lines[position].number)
            position += 1
            continue
        section = LogSection(importer.name, lines, position, source, partial(_ends, importer, importer_at))
        tables += importer.read(section)
        position = max(section.position, position + 1)
    if not tables:
        raise UsageError("is not the log of a known benchmark", field="log", value=source, hint=_hint())
    return Log(source, tuple(tables), tuple(ignored))


def _ends(importer: Importer, importer_at: Callable[[Line], Importer | None], line: Line) -> bool:
    """Whether another section begins at a line."""
    other = importer_at(line)
    continues = other is importer and importer.continues is not None and importer.continues.search(line.text)
    return other is not None and not continues


def _hint() -> str:
    titles = ", ".join(importer.title for importer in IMPORTERS.all())
    return f"known are {titles}; curves of both sides are a CSV file (elbowroom help predict)"
