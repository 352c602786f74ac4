"""Events row by row, for the readers of formats that have few conventions of their own."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from elbowroom.trace.overlap.events import NONE, EventClass, Events, Ints, Lane
from elbowroom.trace.overlap.launches import find_launches
from elbowroom.trace.overlap.tables import Numbering, check_memory, events

LATEST = 1 << 62
"""ns; later times, and earlier ones than minus that, are damage."""
_CHECKED = 1 << 16
"""Events after which the memory is looked at again."""


class RowLane(NamedTuple):
    """Where an event took place: a thread, or a stream of a device, of a rank."""

    rank: str
    name: str
    device: bool = False


class EventRows:
    """The events of a trace as they come."""

    def __init__(self) -> None:
        self._classes, self._lanes = Numbering(), Numbering()
        self._columns = [array("q") for _ in range(5)]
        self.impossible = 0

    def __len__(self) -> int:
        return len(self._columns[0])

    def add(
        self,
        one: EventClass,
        lane: RowLane,
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
        if not len(self) % _CHECKED:
            check_memory(len(self))
        values = self._classes[one], self._lanes[lane], start, end - start, correlation
        for column, value in zip(self._columns, values, strict=True):
            column.append(value)

    def events(self, format: str, *, notes: Iterable[str] = (), **more: Any) -> Events:
        """All of it as columns, from the first begin on."""
        kind, lane, start, duration, correlation = (
            np.frombuffer(column, dtype=np.int64) if len(column) else np.zeros(0, dtype=np.int64)
            for column in self._columns
        )
        began: Ints = start - start.min() if len(start) else start
        ranks = Numbering()
        classes = list(self._classes)
        lanes = [Lane(rank=ranks[one.rank], name=one.name, device=one.device) for one in self._lanes]
        external = np.full(len(kind), NONE, dtype=np.int64)
        launches = find_launches(classes, kind, lane, began, duration, correlation, external)
        impossible = f"{self.impossible} events have an impossible time, and are left out"
        return events(
            format=format,
            classes=classes,
            lanes=lanes,
            ranks=list(ranks),
            kind=kind,
            lane=lane,
            start=began,
            duration=duration,
            launched=launches.operation,
            issued=launches.issued,
            notes=(*notes, *((impossible,) if self.impossible else ())),
            **more,
        )
