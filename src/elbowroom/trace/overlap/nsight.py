"""Traces of Nsight Systems, exported as SQLite (`nsys export --type sqlite`)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from elbowroom.errors import UsageError
from elbowroom.trace.overlap.chrome import STEP
from elbowroom.trace.overlap.events import NONE, EventClass, Events, Ints, Lane
from elbowroom.trace.overlap.tables import Columns, Numbering, check_memory, events

ROWS = 1 << 16
_KERNELS, _COPIES, _SETS = (f"CUPTI_ACTIVITY_KIND_{name}" for name in ("KERNEL", "MEMCPY", "MEMSET"))
_MPI = ("MPI_COLLECTIVES_EVENTS", "MPI_P2P_EVENTS", "MPI_START_WAIT_EVENTS", "MPI_OTHER_EVENTS")
_COPY_NAMES = {1: "HtoD", 2: "DtoH", 8: "DtoD", 9: "HtoH", 10: "PtoP"}
"""copyKind of CUPTI (CUpti_ActivityMemcpyKind)."""
_PROCESS = 24
"""globalTid: the process is in the bits from here on; the thread below."""


def read_nsight(path: Path) -> Events:
    """The events of a file. UsageError where it is no such export, or damaged at its begin; what is damaged
    later ends early, and that is a doubt.
    """
    table = _Table()
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)) as base:
            base.text_factory = lambda data: data.decode("utf-8", "replace")
            names = {row[0] for row in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
            if not names & {_KERNELS, *_MPI, "NVTX_EVENTS"}:
                raise UsageError(
                    "has no events of Nsight Systems (kernels, MPI, NVTX)",
                    field="trace",
                    value=str(path),
                    hint="export it again: nsys export --type sqlite",
                )
            table.read(base, names)
    except sqlite3.Error as error:
        if not len(table.classes):
            raise UsageError(
                f"cannot be read as SQLite ({error})", field="trace", value=str(path), hint="export it again"
            ) from error
        table.doubts.append(f"{path.name} is damaged ({error}): the events before that are analysed")
    return table.events()


class _Table:
    """What is known of a file while its tables are read."""

    def __init__(self) -> None:
        self.classes, self.lanes, self.ranks = Numbering(), Numbering(), Numbering()
        self.kind, self.lane, self.start, self.end, self.launched = (Columns() for _ in range(5))
        self.doubts: list[str] = []
        self.strings: dict[Any, str] = {}
        self.launchers: dict[int, str] = {}

    def read(self, base: sqlite3.Connection, names: set[str]) -> None:
        """All tables that hold events."""
        if "StringIds" in names:
            self.strings = dict(base.execute("SELECT id, value FROM StringIds"))
        if "NVTX_EVENTS" in names:
            self._ranges(base)
        if _KERNELS in names:
            self._kernels(base, self._launches(base, names))
        for table, category in ((_COPIES, "memcpy"), (_SETS, "memset")):
            if table in names:
                self._memory(base, table, category)
        for table in _MPI:
            if table in names:
                self._calls(base, table)

    def _kernels(self, base: sqlite3.Connection, launched: dict[int, str]) -> None:
        columns = _columns(base, _KERNELS)
        name = next((one for one in ("demangledName", "shortName", "mangledName") if one in columns), "NULL")
        grid = [one if one in columns else "NULL" for one in ("gridX", "gridY", "gridZ")]
        chosen = [
            "start",
            '"end"',
            *(_column(columns, one) for one in ("deviceId", "streamId", "correlationId")),
        ]
        for rows in _blocks(base, f"SELECT {', '.join([*chosen, name, *grid])} FROM {_KERNELS}"):
            kinds = []
            for row in rows:
                detail = "" if row[6] is None else f"grid {row[6]}x{row[7]}x{row[8]}"
                kinds.append((self._text(row[5]), "kernel", detail))
            launchers = [launched.get(row[4]) for row in rows] if launched else [None] * len(rows)
            self._add(rows, kinds, [(True, row[2], row[3]) for row in rows], launchers)

    def _memory(self, base: sqlite3.Connection, table: str, category: str) -> None:
        columns = _columns(base, table)
        chosen = ["start", '"end"', *(_column(columns, one) for one in ("deviceId", "streamId", "copyKind"))]
        for rows in _blocks(base, f"SELECT {', '.join(chosen)} FROM {table}"):
            kinds = [
                (f"{category} {_COPY_NAMES.get(row[4], row[4] or '')}".strip(), category, "") for row in rows
            ]
            self._add(rows, kinds, [(True, row[2], row[3]) for row in rows])

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
                kinds.append((name, "step" if STEP.match(name) else "nvtx", ""))
            self._add(rows, kinds, [self._thread(row[2]) for row in rows])

    def _launches(self, base: sqlite3.Connection, names: set[str]) -> dict[int, str]:
        """By correlation the NVTX range around the call that launched a kernel: NCCL names its own."""
        if not {"CUPTI_ACTIVITY_KIND_RUNTIME", "NVTX_EVENTS"} <= names:
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
            "SELECT globalTid, start, correlationId FROM CUPTI_ACTIVITY_KIND_RUNTIME "
            "ORDER BY globalTid, start"
        )
        return _within(ranges, calls)

    def _text(self, number: Any) -> str:
        return number if isinstance(number, str) else self.strings.get(number, "unnamed")

    def _thread(self, number: Any) -> tuple[bool, Any, Any]:
        whole = number if isinstance(number, int) else 0
        return False, whole >> _PROCESS, whole

    def _add(
        self, rows: list[Any], kinds: list[Any], lanes: list[Any], launchers: list[Any] | None = None
    ) -> None:
        usable = [
            index
            for index, row in enumerate(rows)
            if type(row[0]) is int and type(row[1]) is int and abs(row[0]) < 2**62 and abs(row[1]) < 2**62
        ]
        check_memory(len(self.kind) + len(usable))
        self.start.add([rows[index][0] for index in usable])
        self.end.add([rows[index][1] for index in usable])
        self.kind.add([self.classes[kinds[index]] for index in usable])
        self.lane.add([self.lanes[lanes[index]] for index in usable])
        known = launchers or [None] * len(rows)
        self.launched.add(
            [NONE if known[index] is None else self.classes[(known[index], "nvtx", "")] for index in usable]
        )

    def events(self) -> Events:
        """All of it as columns: one rank for each device; for each process where there is none, or one."""
        devices = {key[1] for key in self.lanes if key[0]}
        lanes = []
        for on_device, owner, row in self.lanes:
            if len(devices) == 1:
                name = f"device {next(iter(devices))}"
            else:
                name = f"{'device' if on_device else 'process'} {owner}"
            lanes.append(Lane(rank=self.ranks[name], name=str(row), device=on_device))
        start: Ints = self.start.whole()
        classes = [
            EventClass(name=name, category=category, detail=detail) for name, category, detail in self.classes
        ]
        steps = len({one.name for one in classes if one.category == "step"})
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
            steps=steps or None,
            doubts=tuple(self.doubts),
        )


def _columns(base: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in base.execute(f"PRAGMA table_info({table})")}


def _column(columns: set[str], name: str) -> str:
    return name if name in columns else "NULL"


def _blocks(base: sqlite3.Connection, query: str) -> Iterator[list[Any]]:
    cursor = base.execute(query)
    while rows := cursor.fetchmany(ROWS):
        yield rows


def _within(ranges: list[Any], calls: Iterator[Any] | Any) -> dict[int, str]:
    """The last range that a call lies in, on its thread; both are in order of thread and time."""
    found: dict[int, str] = {}
    at = 0
    open_: list[Any] = []
    for thread, start, correlation in calls:
        while at < len(ranges) and (ranges[at][0], ranges[at][1]) <= (thread, start):
            open_.append(ranges[at])
            at += 1
        open_ = [one for one in open_ if one[0] == thread and one[2] >= start]
        if open_:
            found[correlation] = open_[-1][3]
    return found
