"""Events row by row, for the readers of formats that have few conventions of their own: blocks of them go to
a file on disk as they come, so a trace may be larger than memory.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import IO, Any, NamedTuple

import numpy as np

from elbowroom.trace.overlap.events import NONE, EventClass, Events, Floats, Ints, Lane
from elbowroom.trace.overlap.launches import find_launches
from elbowroom.trace.overlap.raw_events import RawColumns, RawEvents, RawFile, write_block, write_end
from elbowroom.trace.overlap.tables import Numbering, events

LATEST = 1 << 62
"""ns; later times, and earlier ones than minus that, are damage."""
US = 1000.0
_BLOCK = 1 << 16
"""Events that are written at once."""


class RowLane(NamedTuple):
    """Where an event took place: a thread, or a stream of a device, of a rank."""

    rank: str
    name: str
    device: bool = False


class EventRows:
    """The events of a trace as they come. `store`: an empty file on disk.

    Classes and lanes are any keys; what they mean need not be known before the trace ends (`stored`).
    """

    def __init__(self, store: IO[bytes]) -> None:
        self.kinds, self.lanes = Numbering(), Numbering()
        self._store = store
        self._columns = [array("q") for _ in range(5)]
        self._written = 0
        self._origin: int | None = None
        self.impossible = 0

    def __len__(self) -> int:
        return self._written + len(self._columns[0])

    def add(
        self,
        one: Hashable,
        lane: Hashable,
        start: int,
        end: int,
        correlation: int = NONE,
    ) -> None:
        """Adds an event, ns. `correlation`: shared by a call of the host and what it launched. Events that
        end before they begin are counted as impossible.
        """
        if not -LATEST < start <= end < LATEST:
            self.impossible += 1
            return
        values = self.kinds[one], self.lanes[lane], start, end, correlation
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)
        if len(self._columns[0]) == _BLOCK:
            self._write()

    def add_launched(
        self, kind: Ints, lane: Ints, start: Ints, end: Ints, issued: Ints, launched: Ints
    ) -> None:
        """Adds a block of events, ns; `kind` and `launched` (NONE: not recorded) are numbers of `kinds`,
        `lane` of `lanes`; `issued` as in Events. A trace has all its events so, or none.
        """
        self._write_columns(kind, lane, start, end, issued - self._from(start), launched)

    def _from(self, start: Ints) -> int:
        """The first time of the trace: times are stored from there on."""
        if self._origin is None and len(start):
            self._origin = int(start[0])
        return self._origin or 0

    def _write(self) -> None:
        kind, lane, start, end, correlation = (np.array(one, dtype=np.int64) for one in self._columns)
        self._columns = [array("q") for _ in self._columns]
        self._write_columns(kind, lane, start, end, correlation, np.full(len(kind), NONE))

    def _write_columns(
        self, kind: Ints, lane: Ints, start: Ints, end: Ints, correlation: Ints, external: Ints
    ) -> None:
        if not len(kind):
            return
        block = RawColumns(
            kind=kind.astype(np.int32),
            lane=lane.astype(np.int32),
            start=(start - self._from(start)) / US,
            duration=(end - start) / US,
            correlation=correlation,
            external=external,
        )
        write_block(self._store, block)
        self._written += len(kind)

    def stored(
        self,
        format: str,
        *,
        kind_of: Callable[[Any], EventClass | None] = lambda one: one,
        lane_of: Callable[[Any], RowLane] = lambda one: one,
        notes: Iterable[str] = (),
        **more: Any,
    ) -> StoredRows:
        """All of it. `kind_of` gives the class of a key (None: its events are left out), `lane_of` the lane;
        `more`: the other fields of StoredRows.
        """
        self._write()
        write_end(self._store)
        impossible = f"{self.impossible} events have an impossible time, and are left out"
        return StoredRows(
            raw=RawEvents(self._store),
            format=format,
            kinds=[kind_of(one) for one in self.kinds],
            lanes=[lane_of(one) for one in self.lanes],
            notes=(*notes, *((impossible,) if self.impossible else ())),
            **more,
        )


@dataclass(frozen=True, kw_only=True)
class StoredRows(RawFile):
    """The events of a trace on disk; `kinds` and `lanes` by the numbers in it. `scale`: ns of what was stored
    as 1 ns. `timed`: its last columns are when an event was issued and by which class (add_launched).
    """

    format: str
    kinds: Sequence[EventClass | None]
    lanes: Sequence[RowLane]
    scale: float = 1.0
    timed: bool = False
    notes: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    multiprocessors: int | None = None

    def classes(self) -> list[tuple[str, str]]:
        """Their names and categories."""
        return [("", "") if one is None else (one.name, one.category) for one in self.kinds]

    def events(self, columns: RawColumns, _steps: object = None) -> Events:
        """The events of these columns."""
        numbers, places, ranks = Numbering(), Numbering(), Numbering()
        of_kind = np.array([NONE if one is None else numbers[one] for one in self.kinds], dtype=np.int32)
        of_lane = np.array([places[one] for one in self.lanes], dtype=np.int32)
        lanes = [Lane(rank=ranks[one.rank], name=one.name, device=one.device) for one in places]
        start = self._ns(columns.start)
        duration = self._ns(columns.start + columns.duration) - start
        origin = start.min() if len(start) else 0
        start -= origin
        kind, lane = of_kind[columns.kind], of_lane[columns.lane]
        duration[kind == NONE] = 0  # left out
        classes = list(numbers)
        if self.timed:
            launched = np.where(columns.external == NONE, NONE, of_kind[columns.external])
            issued = columns.correlation - origin
        else:
            none = np.full(len(kind), NONE, dtype=np.int64)
            launches = find_launches(classes, kind, lane, start, duration, columns.correlation, none)
            launched, issued = launches.operation, launches.issued
        return events(
            format=self.format,
            classes=classes,
            lanes=lanes,
            ranks=list(ranks),
            kind=kind,
            lane=lane,
            start=start,
            duration=duration,
            launched=launched,
            issued=issued,
            continued=columns.continued,
            notes=self.notes,
            doubts=self.doubts,
            multiprocessors=self.multiprocessors,
        )

    def _ns(self, us: Floats) -> Ints:
        return np.rint(us * (US * self.scale)).astype(np.int64)
