"""The events of a trace as columns, whatever its format: what readers give to the analysis."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO

import msgspec
import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Small = npt.NDArray[np.int32]
Flags = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

FastReader = Callable[[Path], AbstractContextManager[IO[bytes]]]
"""Starts a program that reads a file; its output is empty where it declines the file."""

NONE = -1
"""In a column of numbers: not recorded."""


class EventClass(msgspec.Struct, frozen=True, kw_only=True):
    """What events have in common: name, grid or shape (`detail`, may be empty), and the format's category.

    `collective`: the trace itself says that it is a collective operation.
    """

    name: str
    detail: str = ""
    category: str = ""
    collective: bool = False

    @property
    def label(self) -> str:
        """Name and detail, as tables show them."""
        return f"{self.name} [{self.detail}]" if self.detail else self.name


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """A thread or a stream of `rank`, an index in the trace's ranks. Events of a `device` do not nest. Lanes
    of one `file` have one clock.
    """

    rank: int
    name: str
    device: bool = False
    file: int = 0


def order_of(lane: Ints | Small, start: Ints, duration: Ints) -> Ints:
    """Indices of events by lane, then by begin, the longest first; quick where they are in that order."""
    if len(lane) < 2:
        return np.arange(len(lane))
    first = int(start.min())
    span = int(start.max()) - first + 1
    if (int(lane.max()) + 1) * span >= 1 << 62:
        return np.lexsort((-duration, start, lane))
    key = lane * np.int64(span) + (start - first)
    order = np.arange(len(lane))
    if (key[1:] < key[:-1]).any():
        # Of one lane, most events come in the order of time, which a stable sort uses.
        order = np.argsort(lane.astype(np.int16) if int(lane.max()) < 1 << 15 else lane, kind="stable")
        order = order[np.argsort(key[order], kind="stable")]
    same = key[order[1:]] == key[order[:-1]]
    if (same & (duration[order[1:]] > duration[order[:-1]])).any():
        tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
        members = order[tied]
        order[tied] = members[np.lexsort((-duration[members], key[members]))]
    return order


@dataclass(frozen=True, kw_only=True)
class Events:
    """Events with a begin and an end.

    Columns have shape (events,): `kind` and `lane` are indices in `classes` and `lanes`; times are in ns from
    any origin, the same for all lanes of a file. `launched`: the class of the host's operation that launched
    an event (NONE: not recorded); `issued`: when the host did that, its begin where that is not recorded.
    `job`: what the files of one job agree on. `multiprocessors`: of a device, where the trace says it.
    `continued`: events that began before this part of a long trace (long_traces.py): their time counts here,
    and they were counted there; None: there are none. `ordered`: whether they are in the order of `order_of`.
    `doubts`: why the trace cannot be trusted; `notes`:
    what readers of the result must know.
    """

    format: str
    classes: tuple[EventClass, ...]
    lanes: tuple[Lane, ...]
    ranks: tuple[str, ...]
    kind: Small
    lane: Small
    start: Ints
    duration: Ints
    launched: Small
    issued: Ints
    job: str = ""
    multiprocessors: int | None = None
    continued: Flags | None = None
    ordered: bool = False
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def __len__(self) -> int:
        return len(self.kind)

    @property
    def counts(self) -> Flags:
        """Whether each event is counted: it began in this part of the trace."""
        return np.ones(len(self), dtype=bool) if self.continued is None else ~self.continued

    @property
    def end(self) -> Ints:
        """Of each event, ns."""
        return self.start + self.duration

    def in_order(self, chosen: Ints) -> Ints:
        """The chosen events, ascending indices, by lane, then by begin, the longest first."""
        if self.ordered:
            return chosen
        return chosen[order_of(self.lane[chosen], self.start[chosen], self.duration[chosen])]

    @cached_property
    def rank(self) -> Small:
        """Of each event."""
        of_lanes = np.array([lane.rank for lane in self.lanes], dtype=np.int32)
        return of_lanes[self.lane]
