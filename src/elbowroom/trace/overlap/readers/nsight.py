"""Traces of Nsight Systems, exported as SQLite (`nsys export --type sqlite`)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from elbowroom.errors import UsageError
from elbowroom.trace.overlap.events import NONE, EventClass, Events, Ints, Lane
from elbowroom.trace.overlap.tables import STEPS, Columns, Numbering, check_memory, events

FORMAT = "nsight"
WRITTEN_BY = "Nsight Systems' SQLite"
ROWS = 1 << 16
_LARGEST = 2**62
_IMPOSSIBLE = "events have an impossible time (an end before the begin, or no number), and are left out"
_KERNELS, _COPIES, _SETS = (f"CUPTI_ACTIVITY_KIND_{name}" for name in ("KERNEL", "MEMCPY", "MEMSET"))
_CALLS = "CUPTI_ACTIVITY_KIND_RUNTIME"
_MPI = ("MPI_COLLECTIVES_EVENTS", "MPI_P2P_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS")
_COPY_NAMES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
"""copyKind of CUPTI (CUpti_ActivityMemcpyKind)."""
_ON_DEVICE = ("deviceId", "streamId", "correlationId", "globalPid")
_PROCESS = 24
"""globalTid: the process is in the bits from here on; the thread below."""


_RANGE = ("start", "end", "globalTid", "textId")
TABLES: dict[str, tuple[str, ...]] = {
    "StringIds": ("id", "value"),
    "TARGET_INFO_GPU": ("smCount",),
    "NVTX_EVENTS": (*_RANGE, "text"),
    _CALLS: ("start", "end", "globalTid", "correlationId"),
    _KERNELS: (
        *("start", "end", *_ON_DEVICE, "demangledName", "shortName", "mangledName"),
        *("gridX", "gridY", "gridZ"),
    ),
    **dict.fromkeys((_COPIES, _SETS), ("start", "end", *_ON_DEVICE, "copyKind")),
    **dict.fromkeys(_MPI, _RANGE),
}
"""The tables of an export that are read, and their columns."""


def is_of(start: bytes) -> bool:
    """Whether a file is a database of SQLite, by its first bytes."""
    return start.startswith(b"SQLite format 3\0")


def read(path: Path) -> Events:
    """The events of a file. UsageError where it is no such export, or damaged at its begin; what is damaged
    later ends early, and that is a doubt.
    """
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)) as base:
            return read_tables(base, path)
    except sqlite3.Error as error:
        raise UsageError(
            f"cannot be read as SQLite ({error})", field="trace", value=str(path), hint="export it again"
        ) from error


def read_tables(base: sqlite3.Connection, path: Path, doubts: Sequence[str] = ()) -> Events:
    """The events of a database with the tables of an export; `doubts`: what is known of it already."""
    table = _NsightTable()
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
    except sqlite3.Error as error:
        if not len(table.classes):
            raise
        table.doubts.append(f"{path.name} is damaged ({error}): the events before that are analysed")
    return table.events()


class _NsightTable:
    """What is known of a file while its tables are read."""

    def __init__(self) -> None:
        self.classes, self.lanes, self.ranks = Numbering(), Numbering(), Numbering()
        self.kind, self.lane, self.start, self.end, self.launched, self.issued = (Columns() for _ in range(6))
        self.processes = Numbering()
        self.calls = _CudaCalls(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))
        self.doubts: list[str] = []
        self.impossible = 0
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
        if _CALLS in names:
            self.calls = self._read_calls(base)
        if _KERNELS in names:
            self._kernels(base, self._launches(base, names))
        for table, category in ((_COPIES, "memcpy"), (_SETS, "memset")):
            if table in names:
                self._memory(base, table, category)
        for table in _MPI:
            if table in names:
                self._calls(base, table)

    def _kernels(self, base: sqlite3.Connection, launched: dict[tuple[int, int], str]) -> None:
        columns = _columns(base, _KERNELS)
        name = next((one for one in ("demangledName", "shortName", "mangledName") if one in columns), "NULL")
        grid = [one if one in columns else "NULL" for one in ("gridX", "gridY", "gridZ")]
        chosen = [
            "start",
            '"end"',
            *(_column(columns, one) for one in _ON_DEVICE),
        ]
        for rows in _blocks(base, f"SELECT {', '.join([*chosen, name, *grid])} FROM {_KERNELS}"):
            kinds = []
            for row in rows:
                detail = "" if row[7] is None else f"grid {row[7]}x{row[8]}x{row[9]}"
                kinds.append((self._text(row[6]), "kernel", detail))
            launchers = [launched.get((_process(row[5]), row[4])) for row in rows] if launched else None
            self._add(rows, kinds, self._streams(rows), launchers, self._issued(rows))

    def _memory(self, base: sqlite3.Connection, table: str, category: str) -> None:
        columns = _columns(base, table)
        chosen = ["start", '"end"', *(_column(columns, one) for one in (*_ON_DEVICE, "copyKind"))]
        for rows in _blocks(base, f"SELECT {', '.join(chosen)} FROM {table}"):
            kinds = [
                (f"{category} {_COPY_NAMES.get(row[6], row[6] or '')}".strip(), category, "") for row in rows
            ]
            self._add(rows, kinds, self._streams(rows), None, self._issued(rows))

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

    def _launches(self, base: sqlite3.Connection, names: set[str]) -> dict[tuple[int, int], str]:
        """By process and correlation the NVTX range around the call that launched a kernel: NCCL names its
        own.
        """
        if not {_CALLS, "NVTX_EVENTS"} <= names:
            return {}
        columns = _columns(base, "NVTX_EVENTS")
        text = "COALESCE(n.text, s.value)" if "textId" in columns else "n.text"
        join = (
            "LEFT JOIN StringIds s ON s.id = n.textId" if "textId" in columns and "StringIds" in names else ""
        )
        shown = text if join else "n.text"
        ranges = base.execute(
            f'SELECT n.globalTid, n.start, n."end", {shown} FROM NVTX_EVENTS n {join} '
            f"WHERE n.\"end\" IS NOT NULL AND {shown} LIKE '%nccl%' ORDER BY n.globalTid, n.start"
        ).fetchall()
        if not ranges:
            return {}
        calls = base.execute(
            f"SELECT globalTid, start, correlationId FROM {_CALLS} ORDER BY globalTid, start"
        )
        return _within(ranges, calls)

    def _read_calls(self, base: sqlite3.Connection) -> _CudaCalls:
        key, start = Columns(), Columns()
        columns = _columns(base, _CALLS)
        chosen = f"start, {_column(columns, 'globalTid')}, {_column(columns, 'correlationId')}"
        for rows in _blocks(base, f"SELECT {chosen} FROM {_CALLS}"):
            known = [row for row in rows if type(row[0]) is int and abs(row[0]) < _LARGEST]
            key.add([self._key(row[1], row[2]) for row in known])
            start.add([row[0] for row in known])
        order = np.argsort(key.whole(), kind="stable")
        return _CudaCalls(key.whole()[order], start.whole()[order])

    def _key(self, process: Any, correlation: Any) -> int:
        """One number for a process and a correlation; NONE where either is not recorded."""
        if type(correlation) is not int or not 0 <= correlation < 1 << 40 or type(process) is not int:
            return NONE
        return self.processes[_process(process)] << 40 | correlation

    def _issued(self, rows: list[Any]) -> Ints:
        """When the host called what started on the device; NONE where that is not recorded."""
        return self.calls.at(np.array([self._key(row[5], row[4]) for row in rows], dtype=np.int64))

    def _streams(self, rows: list[Any]) -> list[Any]:
        return [(True, (_process(row[5]), row[2]), row[3]) for row in rows]

    def _text(self, number: Any) -> str:
        return number if isinstance(number, str) else self.strings.get(number, "unnamed")

    def _thread(self, number: Any) -> tuple[bool, Any, Any]:
        return False, _process(number), number if isinstance(number, int) else 0

    def _add(
        self,
        rows: list[Any],
        kinds: list[Any],
        lanes: list[Any],
        launchers: list[Any] | None = None,
        issued: Ints | None = None,
    ) -> None:
        usable = [
            index
            for index, row in enumerate(rows)
            if type(row[0]) is int
            and type(row[1]) is int
            and abs(row[0]) < _LARGEST
            and abs(row[1]) < _LARGEST
            and row[1] >= row[0]
        ]
        self.impossible += len(rows) - len(usable)
        check_memory(len(self.kind) + len(usable))
        start = np.array([rows[index][0] for index in usable], dtype=np.int64)
        self.start.add(start)
        called = start if issued is None else issued[usable]
        self.issued.add(np.where(called == NONE, start, np.minimum(called, start)))
        self.end.add([rows[index][1] for index in usable])
        self.kind.add([self.classes[kinds[index]] for index in usable])
        self.lane.add([self.lanes[lanes[index]] for index in usable])
        known = launchers or [None] * len(rows)
        self.launched.add(
            [NONE if known[index] is None else self.classes[(known[index], "nvtx", "")] for index in usable]
        )

    def events(self) -> Events:
        """All of it as columns."""
        lanes = [
            Lane(rank=self.ranks[name], name=str(row), device=on_device)
            for name, (on_device, _, row) in zip(self._owners(), self.lanes, strict=True)
        ]
        start: Ints = self.start.whole()
        classes = [
            EventClass(name=name, category=category, detail=detail) for name, category, detail in self.classes
        ]
        origin = int(start.min()) if len(start) else 0
        return events(
            format="nsight",
            classes=classes,
            lanes=lanes,
            ranks=list(self.ranks),
            kind=self.kind.whole(),
            lane=self.lane.whole(),
            start=start - origin,
            duration=np.minimum(self.end.whole() - start, 2**52),
            launched=self.launched.whole(),
            issued=self.issued.whole() - origin,
            notes=(f"{self.impossible} {_IMPOSSIBLE}",) if self.impossible else (),
            doubts=tuple(self.doubts),
            multiprocessors=self.multiprocessors,
        )

    def _owners(self) -> Iterator[str]:
        """The rank of each lane: one for each device, with the process that uses it alone; for each process
        where there is none, or where it uses several.
        """
        units = list(dict.fromkeys(owner for on_device, owner, _ in self.lanes if on_device))
        numbers = [device for _, device in units]
        titles = {
            (process, device): f"device {device}"
            + (f" of process {process}" if numbers.count(device) > 1 else "")
            for process, device in units
        }
        for on_device, owner, _ in self.lanes:
            used = [unit for unit in units if unit[0] == owner]
            if on_device:
                yield titles[owner]
            elif len(units) == 1 or len(used) == 1:
                yield titles[used[0] if used else units[0]]
            else:
                yield f"process {owner}"


@dataclass(frozen=True)
class _CudaCalls:
    """Calls of CUDA in order of process and correlation, and when they began."""

    key: Ints
    start: Ints

    def at(self, wanted: Ints) -> Ints:
        """The begin of each wanted call; NONE where it is not recorded."""
        if not len(self.key):
            return np.full(len(wanted), NONE, dtype=np.int64)
        place = np.minimum(np.searchsorted(self.key, wanted), len(self.key) - 1)
        return np.where((self.key[place] == wanted) & (wanted != NONE), self.start[place], NONE)


def _process(number: Any) -> int:
    return number >> _PROCESS if isinstance(number, int) else 0


def _columns(base: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in base.execute(f"PRAGMA table_info({table})")}


def _column(columns: set[str], name: str) -> str:
    return name if name in columns else "NULL"


def _blocks(base: sqlite3.Connection, query: str) -> Iterator[list[Any]]:
    cursor = base.execute(query)
    while rows := cursor.fetchmany(ROWS):
        yield rows


def _within(ranges: list[Any], calls: Iterator[Any] | Any) -> dict[tuple[int, int], str]:
    """The last range that a call lies in, on its thread; both are in order of thread and time."""
    by_call: dict[tuple[int, int], str] = {}
    at = 0
    open_: list[Any] = []
    for thread, start, correlation in calls:
        while at < len(ranges) and (ranges[at][0], ranges[at][1]) <= (thread, start):
            open_.append(ranges[at])
            at += 1
        open_ = [one for one in open_ if one[0] == thread and one[2] >= start]
        if open_:
            by_call[_process(thread), correlation] = open_[-1][3]
    return by_call
