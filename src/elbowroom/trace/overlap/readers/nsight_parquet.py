"""Nsight Systems' Parquet export (`nsys export --type parquetdir`): one file for each table."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import IO, Any

from elbowroom.trace.overlap.event_rows import StoredRows
from elbowroom.trace.overlap.readers.nsight import ROWS, TABLES, read_tables

FORMAT = "nsight"
WRITTEN_BY = "Nsight Systems' parquetdir"


def is_folder(path: Path) -> bool:
    """Whether a folder is such an export."""
    return any(_table_name(file) in TABLES for file in path.glob("*.parquet"))


def read(path: Path, store: IO[bytes]) -> StoredRows:
    """The events of a folder, in `store`, as of the SQLite export with the same tables. Tables that cannot be
    read are left out, and that is a doubt. UsageError where none holds events.
    """
    from pyarrow import ArrowException, parquet

    doubts = []
    # A database of no name is on disk, as far as it is large.
    with closing(sqlite3.connect("")) as base:
        for file in sorted(path.glob("*.parquet")):
            name = _table_name(file)
            if name not in TABLES:
                continue
            try:
                _copy(base, name, parquet.ParquetFile(file))
            except (ArrowException, OSError, ValueError) as error:
                doubts.append(
                    f"{file.name} cannot be read ({str(error).splitlines()[0][:80]}), and is left out"
                )
        return read_tables(base, path, store, doubts)


def _table_name(file: Path) -> str:
    return file.stem.rsplit(".", 1)[-1]


def _copy(base: sqlite3.Connection, name: str, file: Any) -> None:
    columns = [one for one in file.schema_arrow.names if one in TABLES[name]]
    if not {"start", "end"} <= set(columns) and name not in ("StringIds", "TARGET_INFO_GPU"):
        raise ValueError("it has no begin or no end")
    quoted = ", ".join(f'"{one}"' for one in columns)
    base.execute(f"CREATE TABLE {name} ({quoted})")
    marks = ", ".join("?" * len(columns))
    for batch in file.iter_batches(ROWS, columns=columns):
        rows = zip(*(batch.column(one).to_pylist() for one in columns), strict=True)
        base.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
