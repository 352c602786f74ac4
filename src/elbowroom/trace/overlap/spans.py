"""Sets of moments as disjoint intervals in order: unions, and how much of an interval they cover."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from elbowroom.trace.overlap.events import Flags, Ints

FAR = 1 << 62
"""ns, beyond all times."""


@dataclass(frozen=True)
class Spans:
    """Disjoint intervals in order, ns; `before[i]` is the length of the first i."""

    start: Ints
    end: Ints
    before: Ints

    @property
    def total(self) -> int:
        """ns."""
        return int(self.before[-1])

    def covered(self, start: Ints, end: Ints) -> Ints:
        """How much of each interval is in the set, ns."""
        return self._up_to(end) - self._up_to(start)

    def contains(self, time: Ints) -> Flags:
        """Whether each moment is in the set."""
        at = np.searchsorted(self.start, time, side="right") - 1
        inside: Flags = (at >= 0) & (time < self.end[np.maximum(at, 0)]) if len(self.start) else time < time
        return inside

    def _up_to(self, time: Ints) -> Ints:
        at = np.searchsorted(self.start, time, side="right")
        return np.minimum(time, self._last_end[at]) + self._gaps[at]

    @cached_property
    def _last_end(self) -> Ints:
        """The end of the last of the first i intervals; of none, before all times."""
        return np.concatenate([[-FAR], self.end])

    @cached_property
    def _gaps(self) -> Ints:
        """What a time in the last of the first i intervals lacks to how much is covered by then."""
        return np.concatenate([[FAR], self.before[:-1] - self.start])


def union(start: Ints, end: Ints) -> Spans:
    """The moments of any intervals, which may overlap."""
    if (start[1:] < start[:-1]).any():
        order = np.argsort(start, kind="stable")
        start, end = start[order], end[order]
    reach = np.maximum.accumulate(end) if len(end) else end
    first = np.ones(len(start), dtype=bool)
    first[1:] = start[1:] > reach[:-1]
    begins = start[first]
    ends = reach[np.concatenate([np.flatnonzero(first)[1:] - 1, [len(start) - 1]])] if len(start) else end
    before = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(ends - begins)])
    return Spans(begins, ends, before)
