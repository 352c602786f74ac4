"""Traces of Nsight Systems, exported as SQLite (`nsys export --type sqlite`)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import numpy as np

from elbowroom.errors import UsageError
from elbowroom.trace.overlap.event_rows import EventRows, RowLane, StoredRows
from elbowroom.trace.overlap.events import NONE, EventClass, launch_detail
from elbowroom.trace.overlap.tables import STEPS

FORMAT = "nsight"
WRITTEN_BY = "Nsight Systems' SQLite"
ROWS = 1 << 14
_LARGEST, _LONGEST = 2**62, 2**52
"""ns: later times are damage, and what lasts longer."""
_KERNELS, _COPIES, _SETS = (f"CUPTI_ACTIVITY_KIND_{name}" for name in ("KERNEL", "MEMCPY", "MEMSET"))
_CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
_MPI = ("MPI_COLLECTIVES_EVENTS", "MPI_P2P_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS")
_COPY_NAMES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
"""copyKind of CUPTI (CUpti_ActivityMemcpyKind)."""
_ON_DEVICE = ("deviceId", "streamId", "correlationId", "globalPid")
_PROCESS = 24
"""globalTid: the process is in the bits from here on; the thread below."""


_RANGE = ("start", "end", "globalTid", "textId")
_SIZES = (
    *("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"),
    *("staticSharedMemory", "dynamicSharedMemory"),
)
"""How a kernel was launched."""
TABLES: dict[str, tuple[str, ...]] = {
    "StringIds": ("id", "value"),
    "TARGET_INFO_GPU": ("smCount",),
    "NVTX_EVENTS": (*_RANGE, "text"),
    _CALLS: ("start", "end", "globalTid", "correlationId"),
    _KERNELS: (
        *("start", "end", *_ON_DEVICE, "demangledName", "shortName", "mangledName"),
        *_SIZES,
    ),
    **dict.fromkeys((_COPIES, _SETS), ("start", "end", *_ON_DEVICE, "copyKind")),
    **dict.fromkeys(_MPI, _RANGE),
}
"""The tables of an export that are read, and their columns."""


_DAMAGE = (sqlite3.Error, UnicodeDecodeError)
"""Of a database; the latter where Python cannot decode what SQLite says of it."""


def is_of(start: bytes) -> bool:
    """Whether a file is a database of SQLite, by its first bytes."""
    return start.startswith(b"SQLite format 3\0")


def read(path: Path, store: IO[bytes]) -> StoredRows:
    """The events of a file, in `store`. UsageError where it is no such export, or damaged at its begin; what
    is damaged later ends early, and that is a doubt.
    """
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)) as base:
            return read_tables(base, path, store)
    except _DAMAGE as error:
        raise UsageError(
            f"cannot be read as SQLite ({error})", field="trace", value=str(path), hint="export it again"
        ) from error


def read_tables(
    base: sqlite3.Connection, path: Path, store: IO[bytes], doubts: Sequence[str] = ()
) -> StoredRows:
    """The events of a database with the tables of an export, in `store`; `doubts`: what is known of it
    already.
    """
    table = _NsightTable(EventRows(store))
    table.doubts += doubts
    try:
        base.text_factory = lambda data: data.decode("utf-8", "replace")
        names = {row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not names & {_KERNELS, *_MPI, "NVTX_EVENTS"}:
            raise UsageError(
                "has no events of Nsight Systems (kernels, MPI, NVTX)",
                field="trace",
                value=str(path),
                hint="export it again: nsys export --type sqlite, or --type parquetdir",
            )
        table.read(base, names)
    except _DAMAGE as error:
        if not len(table.rows):
            raise
        table.doubts.append(f"{path.name} is damaged ({error}): the events before that are analysed")
    return table.stored()


class _NsightTable:
    """What is known of a file while its tables are read. Classes are (name, category, detail), lanes (whether
    on a device, process or device of one, thread or stream).
    """

    def __init__(self, rows: EventRows) -> None:
        self.rows = rows
        self.doubts: list[str] = []
        self.strings: dict[Any, str] = {}
        self.multiprocessors: int | None = None

    def read(self, base: sqlite3.Connection, names: set[str]) -> None:
        """All tables that hold events."""
        if "StringIds" in names:
            self.strings = dict(base.execute("SELECT id, value FROM StringIds"))
        if "TARGET_INFO_GPU" in names and "smCount" in _columns(base, "TARGET_INFO_GPU"):
            counts = [row[0] for row in base.execute("SELECT smCount FROM TARGET_INFO_GPU")]
            self.multiprocessors = next((one for one in counts if type(one) is int and one > 0), None)
        if "NVTX_EVENTS" in names:
            self._ranges(base)
        _find_launches(base, names)
        if _KERNELS in names:
            self._kernels(base)
        for table, category in ((_COPIES, "memcpy"), (_SETS, "memset")):
            if table in names:
                self._memory(base, table, category)
        for table in _MPI:
            if table in names:
                self._calls(base, table)

    def _kernels(self, base: sqlite3.Connection) -> None:
        columns = _columns(base, _KERNELS)
        name = next((one for one in ("demangledName", "shortName", "mangledName") if one in columns), "NULL")
        sizes = [one if one in columns else "NULL" for one in _SIZES]
        for rows in _blocks(base, _on_device(columns, _KERNELS, [name, *sizes])):
            kinds = [(self._text(row[8]), "kernel", _launch(row[9:])) for row in rows]
            self._add(rows, kinds, _streams(rows), launches=True)

    def _memory(self, base: sqlite3.Connection, table: str, category: str) -> None:
        columns = _columns(base, table)
        for rows in _blocks(base, _on_device(columns, table, [_column(columns, "copyKind")])):
            kinds = [
                (f"{category} {_COPY_NAMES.get(row[8], row[8] or '')}".strip(), category, "") for row in rows
            ]
            self._add(rows, kinds, _streams(rows), launches=True)

    def _calls(self, base: sqlite3.Connection, table: str) -> None:
        columns = _columns(base, table)
        chosen = f'start, "end", {_column(columns, "globalTid")}, {_column(columns, "textId")}'
        for rows in _blocks(base, f"SELECT {chosen} FROM {table}"):
            kinds = [(self._text(row[3]), "mpi", "") for row in rows]
            self._add(rows, kinds, [self._thread(row[2]) for row in rows])

    def _ranges(self, base: sqlite3.Connection) -> None:
        """Named ranges: they name steps, and what NCCL launched."""
        columns = _columns(base, "NVTX_EVENTS")
        more = [_column(columns, name) for name in ("globalTid", "text", "textId")]
        chosen = f'start, "end", {", ".join(more)}'
        for rows in _blocks(base, f'SELECT {chosen} FROM NVTX_EVENTS WHERE "end" IS NOT NULL'):
            kinds = []
            for row in rows:
                name = row[3] if isinstance(row[3], str) else self._text(row[4])
                kinds.append((name, "step" if STEPS.match(name) else "nvtx", ""))
            self._add(rows, kinds, [self._thread(row[2]) for row in rows])

    def _text(self, number: Any) -> str:
        return number if isinstance(number, str) else self.strings.get(number, "unnamed")

    def _thread(self, number: Any) -> tuple[bool, Any, Any]:
        return False, _process(number), number if isinstance(number, int) else 0

    def _add(self, rows: list[Any], kinds: list[Any], lanes: list[Any], *, launches: bool = False) -> None:
        """`launches`: the rows have when an event was issued, and the range that launched it (_on_device)."""
        usable = [
            index
            for index, row in enumerate(rows)
            if type(row[0]) is int
            and type(row[1]) is int
            and abs(row[0]) < _LARGEST
            and abs(row[1]) < _LARGEST
            and row[1] >= row[0]
        ]
        self.rows.impossible += len(rows) - len(usable)
        numbers = self.rows.kinds
        known = [rows[index] for index in usable]
        start = np.array([row[0] for row in known], dtype=np.int64)
        issued, launched = start, np.full(len(start), NONE)
        if launches:
            called = [row[0] if row[6] is None else min(row[6], row[0]) for row in known]
            ranges = [NONE if row[7] is None else numbers[row[7], "nvtx", ""] for row in known]
            issued, launched = (np.array(one, dtype=np.int64) for one in (called, ranges))
        self.rows.add_launched(
            np.array([numbers[kinds[index]] for index in usable], dtype=np.int64),
            np.array([self.rows.lanes[lanes[index]] for index in usable], dtype=np.int64),
            start,
            np.minimum([row[1] for row in known], start + _LONGEST),
            issued,
            launched,
        )

    def stored(self) -> StoredRows:
        """All of it."""
        owners = dict(zip(self.rows.lanes, self._owners(), strict=True))
        return self.rows.stored(
            FORMAT,
            kind_of=lambda key: EventClass(name=key[0], category=key[1], detail=key[2]),
            lane_of=lambda key: RowLane(owners[key], str(key[2]), key[0]),
            timed=True,
            doubts=tuple(self.doubts),
            multiprocessors=self.multiprocessors,
        )

    def _owners(self) -> Iterator[str]:
        """The rank of each lane: one for each device, with the process that uses it alone; for each process
        where there is none, or where it uses several.
        """
        units = list(dict.fromkeys(owner for on_device, owner, _ in self.rows.lanes if on_device))
        numbers = [device for _, device in units]
        titles = {
            (process, device): f"device {device}"
            + (f" of process {process}" if numbers.count(device) > 1 else "")
            for process, device in units
        }
        for on_device, owner, _ in self.rows.lanes:
            used = [unit for unit in units if unit[0] == owner]
            if on_device:
                yield titles[owner]
            elif len(units) == 1 or len(used) == 1:
                yield titles[used[0] if used else units[0]]
            else:
                yield f"process {owner}"


def _streams(rows: list[Any]) -> list[Any]:
    return [(True, (_process(row[5]), row[2]), row[3]) for row in rows]


def _find_launches(base: sqlite3.Connection, names: set[str]) -> None:
    """Temporary tables, on disk: when each call of CUDA began (`calls`), and the NVTX range around the call
    that launched a kernel (`ranges`): NCCL names its own. Both by process and correlation.
    """
    keys = "(process INT, correlation INT, {}, PRIMARY KEY (process, correlation)) WITHOUT ROWID"
    base.execute(f"CREATE TEMP TABLE calls {keys.format('start INT')}")
    base.execute(f"CREATE TEMP TABLE ranges {keys.format('text TEXT')}")
    if _CALLS not in names:
        return
    columns = _columns(base, _CALLS)
    thread, correlation = (_column(columns, name) for name in ("globalTid", "correlationId"))
    numbers = " AND ".join(f"typeof({one}) = 'integer'" for one in ("start", thread, correlation))
    base.execute(
        f"INSERT OR IGNORE INTO calls SELECT {thread} >> {_PROCESS}, {correlation}, start FROM {_CALLS} "
        f"WHERE {numbers} AND abs(start) < {_LARGEST}"
    )
    if "NVTX_EVENTS" not in names:
        return
    columns = _columns(base, "NVTX_EVENTS")
    shown, join = "n.text", ""
    if "textId" in columns and "StringIds" in names:
        shown, join = "COALESCE(n.text, s.value)", "LEFT JOIN StringIds s ON s.id = n.textId"
    integers = " AND ".join(f"typeof(n.{one}) = 'integer'" for one in ("globalTid", "start", '"end"'))
    ranges = base.execute(
        f'SELECT n.globalTid, n.start, n."end", {shown} FROM NVTX_EVENTS n {join} '
        f"WHERE {integers} AND {shown} LIKE '%nccl%' ORDER BY n.globalTid, n.start"
    )
    calls = base.execute(
        f"SELECT {thread}, start, {correlation} FROM {_CALLS} WHERE {numbers} ORDER BY {thread}, start"
    )
    base.executemany("INSERT OR REPLACE INTO ranges VALUES (?, ?, ?)", _within(ranges, calls))


def _on_device(columns: set[str], table: str, more: Sequence[str]) -> str:
    """What selects events of a device: begin, end, device, stream, correlation, process, when it was issued,
    the range that launched it, and `more` columns.
    """
    chosen = ["start", '"end"', *(_column(columns, one) for one in _ON_DEVICE)]
    *_, correlation, process = (f"t.{one}" if one in columns else "NULL" for one in _ON_DEVICE)
    shown = [one if one == "NULL" else f"t.{one}" for one in (*chosen, *more)]
    shown[6:6] = ["c.start", "r.text"]
    return (
        f"SELECT {', '.join(shown)} FROM {table} t "
        f"LEFT JOIN calls c ON c.process = {process} >> {_PROCESS} AND c.correlation = {correlation} "
        f"LEFT JOIN ranges r ON r.process = COALESCE({process}, 0) >> {_PROCESS} "
        f"AND r.correlation = {correlation}"
    )


def _process(number: Any) -> int:
    return number >> _PROCESS if isinstance(number, int) else 0


@cache
def _launch(sizes: Sequence[Any]) -> str:
    """The detail of a kernel by _SIZES, which may be NULL."""
    grid, block = sizes[:3], sizes[3:6]
    if grid[0] is None:
        return ""
    shared = sum(one for one in sizes[6:] if isinstance(one, int))
    return launch_detail(grid, () if block[0] is None else block, shared)


def _columns(base: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in base.execute(f"PRAGMA table_info({table})")}


def _column(columns: set[str], name: str) -> str:
    return name if name in columns else "NULL"


def _blocks(base: sqlite3.Connection, query: str) -> Iterator[list[Any]]:
    cursor = base.execute(query)
    while rows := cursor.fetchmany(ROWS):
        yield rows


def _within(ranges: Iterator[Any], calls: Iterator[Any]) -> Iterator[tuple[int, int, str]]:
    """Process and correlation of each call that lies in a range of its thread, and the last such range; both
    are in order of thread and time.
    """
    following = next(ranges, None)
    open_: list[Any] = []
    for thread, start, correlation in calls:
        while following is not None and (following[0], following[1]) <= (thread, start):
            open_.append(following)
            following = next(ranges, None)
        open_ = [one for one in open_ if one[0] == thread and one[2] >= start]
        if open_:
            yield _process(thread), correlation, open_[-1][3]
