"""The events of a trace as columns, whatever its format: what readers give to the analysis."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
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


@dataclass(frozen=True, kw_only=True)
class Events:
    """Events with a begin and an end.

    Columns have shape (events,): `kind` and `lane` are indices in `classes` and `lanes`; times are in ns from
    any origin, the same for all lanes of a file. `launched`: the class of the host's operation that launched
    an event (NONE: not recorded); `issued`: when the host did that, its begin where that is not recorded.
    `job`: what the files of one job agree on. `multiprocessors`: of a device, where the trace says it.
    `continued`: events that began before this part of a long trace (long_traces.py): their time counts here,
    and they were counted there; None: there are none. `doubts`: why the trace cannot be trusted; `notes`:
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

    @property
    def rank(self) -> Small:
        """Of each event."""
        of_lanes = np.array([lane.rank for lane in self.lanes], dtype=np.int32)
        return of_lanes[self.lane]
