"""Sets of moments as disjoint intervals in order: unions, and how much of an interval they cover."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from elbowroom.trace.overlap.events import Flags, Floats, Ints

FAR = 1 << 62
"""ns, beyond all times."""
_EXACT = 1 << 53
"""Smaller integers have no rounding error as floating-point numbers."""


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
        inside: Flags = self.covered(time, time + 1) > 0
        return inside

    def _up_to(self, time: Ints) -> Ints:
        """How much of the set is before each time. np.interp goes on from where the last time was, which is
        several times as fast as np.searchsorted; its slopes are 0 and 1, so it is exact for such integers.
        """
        if not len(self.start):
            return np.zeros(len(time), dtype=np.int64)
        if max(abs(int(self.start[0])), abs(int(self.end[-1]))) < _EXACT:
            return np.interp(time, *self._knots).astype(np.int64)
        at = np.searchsorted(self.start, time, side="right")
        last_end = np.concatenate([[-FAR], self.end])
        gaps = np.concatenate([[FAR], self.before[:-1] - self.start])
        up_to: Ints = np.minimum(time, last_end[at]) + gaps[at]
        return up_to

    @cached_property
    def _knots(self) -> tuple[Floats, Floats]:
        """Begins and ends, and how much of the set is before each."""
        times, before = np.empty((2, 2 * len(self.start)))
        times[::2], times[1::2] = self.start, self.end
        before[::2], before[1::2] = self.before[:-1], self.before[1:]
        return times, before


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
