"""Tables of StarVZ and pj_dump: states and links of a task runtime, as CSV or Parquet, in ms."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, Any

from elbowroom.errors import UsageError
from elbowroom.trace.overlap.event_rows import EventRows, RowLane, StoredRows
from elbowroom.trace.overlap.json_events import ByteSource, lines_of
from elbowroom.trace.overlap.readers import HEAD
from elbowroom.trace.overlap.readers.states import link_class, messages_of, rank_of, state_class

FORMAT = "starvz"
WRITTEN_BY = "tables of StarVZ or pj_dump (.csv, .parquet)"
_STATES, _LINKS = ("application", "starpu", "paje.state", "states"), ("link", "paje.link", "links")
_PLACES = ("resourceid", "container", "resource")
_MS = 10**6
_LINES = 1 << 16
"""Of text, that are read at once."""
_STATE_COLUMNS = ["nature", "container", "type", "start", "end", "duration", "depth", "value"]
_LINK_COLUMNS = ["nature", "container", "type", "start", "end", "duration", "size", "origin", "dest", "key"]
_SOURCE = re.compile(r"^\s*(State|Link|Container|Variable|Event)\s*,", re.MULTILINE)


def is_of(start: bytes) -> bool:
    """Whether the file is one, by its first bytes."""
    head = start.decode("utf-8", "replace")
    words = {word.strip(' "').lower() for word in head.split("\n", 1)[0].split(",")}
    return _SOURCE.match(head) is not None or (
        {"start", "end"} <= words and bool(words & {*_PLACES, "origin"}) and bool(words & {"value", "dest"})
    )


def is_folder(path: Path) -> bool:
    """Whether a folder holds its tables."""
    return any(_table(path, name) is not None for name in (*_STATES, *_LINKS))


def read(path: Path, store: IO[bytes]) -> StoredRows:
    """The states and links of a file or a folder, in `store`. UsageError where the columns are missing or
    damaged.
    """
    rows = EventRows(store)
    if path.is_dir():
        files = [file for name in (*_STATES, *_LINKS) if (file := _table(path, name)) is not None]
    else:
        files = [path]
    for file in files:
        for table in _tables(file):
            _add(rows, table, file)
    return rows.stored(FORMAT, notes=("times are taken as ms",))


def _table(folder: Path, name: str) -> Path | None:
    ends = (".parquet", ".csv", ".csv.gz")
    return next((file for end in ends if (file := folder / f"{name}{end}").is_file()), None)


def _tables(file: Path) -> Iterator[dict[str, list[Any]]]:
    """Columns by name in small letters, block by block; of pj_dump's text states and links apart."""
    from pyarrow import ArrowException, csv, input_stream, parquet

    try:
        if file.suffix == ".parquet":
            table = parquet.ParquetFile(file)
            yield _columns(table.schema_arrow.empty_table())
            yield from map(_columns, table.iter_batches())
            return
        with open(file, "rb") as stream:
            packed = "gzip" if stream.read(2) == b"\x1f\x8b" else None
            head = ByteSource(stream).read()[:HEAD]
        if _SOURCE.match(head.decode("utf-8", "replace")) is None:
            with input_stream(file, compression=packed) as data, csv.open_csv(data) as batches:
                yield _columns(batches.schema.empty_table())
                yield from map(_columns, batches)
            return
    except (ArrowException, OSError, ValueError) as error:
        what = f"cannot be read ({str(error).splitlines()[0][:120]})"
        raise UsageError(what, field="trace", value=str(file), hint="write it again with StarVZ") from error
    yield from _of_text(file)


def _of_text(file: Path) -> Iterator[dict[str, list[Any]]]:
    """The states and links of pj_dump's text, some lines at once."""
    lines = lines_of(file, "StarVZ")
    for block in iter(lambda: list(islice(lines, _LINES)), []):
        rows = [[word.strip() for word in one.decode("utf-8", "replace").split(",")] for one in block]
        for nature, names in (("State", _STATE_COLUMNS), ("Link", _LINK_COLUMNS)):
            chosen = [row for row in rows if row[0] == nature and len(row) >= len(names)]
            yield {name: [row[at] for row in chosen] for at, name in enumerate(names)}


def _columns(table: Any) -> dict[str, list[Any]]:
    wanted = {*_PLACES, "start", "end", "value", "type", "origin", "dest", "node"}
    return {
        name.strip().lower(): table.column(at).to_pylist()
        for at, name in enumerate(table.schema.names)
        if name.strip().lower() in wanted
    }


def _add(rows: EventRows, table: dict[str, list[Any]], file: Path) -> None:
    links = "origin" in table
    place = next((name for name in (("origin",) if links else _PLACES) if name in table), None)
    missing = [name for name in ("start", "end") if name not in table]
    if missing or place is None or (not links and "value" not in table):
        raise UsageError(
            f"lacks the columns {', '.join(missing or ['ResourceId', 'Value'])}",
            field="trace",
            value=str(file),
            hint="give application and link tables of StarVZ, or the output of pj_dump",
        )
    count = len(table["start"])
    types = table.get("type") or [""] * count
    nodes = table.get("node") or [None] * count
    values = types if links else table["value"]
    for where, type_name, value, node, start, end in zip(
        table[place], types, values, nodes, table["start"], table["end"], strict=True
    ):
        rank = f"rank {node}" if node is not None else _rank(str(where))
        kind = link_class(str(value or "message")) if links else state_class(str(value), str(type_name))
        if kind is None:
            continue
        began, ended = _ns(start), _ns(end)
        if began is None or ended is None:
            rows.impossible += 1
            continue
        rows.add(kind, messages_of(rank) if links else RowLane(rank, str(where)), began, ended)


def _rank(resource: str) -> str:
    """StarPU-MPI names resources `0_CPU3`; others name the rank (`rank-2`)."""
    if match := re.match(r"(\d+)_", resource):
        return f"rank {int(match[1])}"
    return rank_of([resource]) or "the program"


def _ns(value: Any) -> int | None:
    try:
        return round(float(value) * _MS)
    except (TypeError, ValueError, OverflowError):
        return None
