"""Folders with the tables of logs (`elbowroom import`): what benchmarks printed, value by value."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path

import msgspec

from elbowroom.documents import DocumentFormat, encode
from elbowroom.logs.reader import Log
from elbowroom.logs.table import Table
from elbowroom.store.folder import create_folder
from elbowroom.version import __version__

FILE = "tables.json"


class StoredTables(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of logs. `ignored`: lines of each file that look like values and are in no table."""

    schema: str = "elbowroom/tables"
    version: int = 1
    elbowroom: str = __version__
    created: str
    command: tuple[str, ...] = ()
    tables: tuple[Table, ...]
    ignored: dict[str, tuple[int, ...]] = {}

    @property
    def benchmarks(self) -> str:
        """The benchmarks that printed them, in their order."""
        return ", ".join(dict.fromkeys(table.benchmark for table in self.tables))

    @property
    def rows(self) -> int:
        """Rows of all tables."""
        return sum(len(table.rows) for table in self.tables)


TABLES_FORMAT = DocumentFormat(
    kind=StoredTables,
    schema="elbowroom/tables",
    version=1,
    name="tables",
    hint="import the logs again",
)


def store_tables(logs: Sequence[Log], out: Path, command: Sequence[str] = ()) -> StoredTables:
    """Makes a folder of the tables of logs. UsageError when `out` exists, MachineError when the disk refuses;
    then nothing is written.
    """
    stored = StoredTables(
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        command=tuple(command),
        tables=tuple(table for log in logs for table in log.tables),
        ignored={log.source: log.ignored for log in logs if log.ignored},
    )
    create_folder(out, {FILE: encode(stored)})
    return stored


def has_tables(path: Path) -> bool:
    """Whether a folder is one of tables."""
    return (path / FILE).is_file()


def read_tables(path: Path) -> StoredTables:
    """The tables in a folder; UsageError where they cannot be read."""
    return TABLES_FORMAT.read(path / FILE)
