"""The events of a trace as columns, whatever its format: what readers give to the analysis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import IO, Any

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


def launch_detail(grid: Sequence[object], block: Sequence[object], shared: int) -> str:
    """The detail of a kernel: its grid, its block without sizes of 1 at the end, and its shared memory in
    bytes if it has any. Kernels of one name and grid may differ in the others.
    """
    sizes = [str(one) for one in block]
    while len(sizes) > 1 and sizes[-1] == "1":
        sizes.pop()
    text = "grid " + "x".join(map(str, grid))
    text += f", block {'x'.join(sizes)}" if sizes else ""
    return text + (f", {shared} B shared" if shared > 0 else "")


class EventClass(msgspec.Struct, frozen=True, kw_only=True):
    """What events have in common: name, launch or shape (`detail`, may be empty), and the format's category.

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


def are_ordered(lane: Ints | Small, start: Ints, duration: Ints) -> bool:
    """Whether events are by lane, then by begin, the longest first."""
    later = start[1:] > start[:-1]
    later |= (start[1:] == start[:-1]) & (duration[1:] <= duration[:-1])
    later &= lane[1:] == lane[:-1]
    later |= lane[1:] > lane[:-1]
    return bool(later.all())


def order_of(lane: Ints | Small, start: Ints, duration: Ints) -> Ints:
    """Indices of events by lane, then by begin, the longest first."""
    if are_ordered(lane, start, duration):
        return np.arange(len(lane))
    order = np.argsort(narrow(lane), kind="stable")
    of_lane, began = lane[order], start[order]
    together = of_lane[1:] == of_lane[:-1]
    if (together & (began[1:] < began[:-1])).any():
        # Of one lane, most events come in the order of time, which a stable sort uses.
        by_time = _by_lane_and_time(of_lane, began)
        order, began = order[by_time], began[by_time]
    same = together & (began[1:] == began[:-1])
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if len(tied):
        members = order[tied]
        order[tied] = members[np.lexsort((-duration[members], began[tied], of_lane[tied]))]
    return order


def narrow(numbers: Ints | Small) -> npt.NDArray[np.signedinteger[Any]]:
    """Numbers from 0 on in the smallest type that has them: numpy sorts 16 bits by their digits."""
    most = int(numbers.max(initial=0))
    return numbers.astype(np.int8 if most < 1 << 7 else np.int16) if most < 1 << 15 else numbers


def _by_lane_and_time(lane: Ints | Small, start: Ints) -> Ints:
    """A stable order; by one number where it is small enough."""
    first = int(start.min())
    span = int(start.max()) - first + 1
    if (int(lane.max()) + 1) * span >= 1 << 62:
        return np.lexsort((start, lane))
    return np.argsort(lane * np.int64(span) + (start - first), kind="stable")


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
    def names(self) -> tuple[tuple[str, ...], Ints]:
        """The names of classes, each once, and the number of each class's name."""
        numbers: dict[str, int] = {}
        of_classes = [numbers.setdefault(one.name, len(numbers)) for one in self.classes]
        return tuple(numbers), np.array(of_classes, dtype=np.int64)

    @cached_property
    def rank(self) -> Small:
        """Of each event."""
        of_lanes = np.array([lane.rank for lane in self.lanes], dtype=np.int32)
        return of_lanes[self.lane]
