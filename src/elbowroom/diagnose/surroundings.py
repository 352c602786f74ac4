"""What the other ranks of a node do while a rank is in a call: compute, or move messages, or have no core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elbowroom.diagnose.calls import RankCalls
from elbowroom.diagnose.scheduled import Scheduled

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

LONG_NS = 10_000
"""Shorter calls count as computation of the others."""
LARGE = 1 << 15
"""Bytes of messages from which on a call loads the memory or the network."""
OTHERS = 8
"""Ranks of a node that are looked at for each other one, at most: its neighbours."""


class RankSpans(NamedTuple):
    """Spans of a rank that do not overlap, in order, ns, and their length before each of them."""

    begin: Ints
    end: Ints
    before: Ints

    def covered(self, begin: Ints, end: Ints) -> Ints:
        """How much of each [begin, end] these cover, ns."""
        return self._until(end) - self._until(begin)

    def _until(self, time: Ints) -> Ints:
        if not len(self.begin):
            return np.zeros(len(time), dtype=np.int64)
        at = np.maximum(np.searchsorted(self.begin, time, side="right") - 1, 0)
        part = np.clip(time - self.begin[at], 0, self.end[at] - self.begin[at])
        result: Ints = self.before[at] + part
        return result


def spans_of(begin: Ints, end: Ints) -> RankSpans:
    """Spans in order that do not overlap."""
    length = end - begin
    return RankSpans(begin, end, np.cumsum(length) - length)


class Surroundings:
    """The ranks that are on one node with each other."""

    def __init__(self, nodes: Mapping[int, int]) -> None:
        self.nodes = nodes
        self._idle: dict[int, RankSpans] = {}
        self._moving: dict[int, RankSpans] = {}
        self.scheduled: dict[int, Scheduled] = {}

    def add(self, own: RankCalls, scheduled: Scheduled | None) -> None:
        """What a rank does."""
        calls, operations = own.calls, own.operations
        known = operations.call >= 0
        large = np.zeros(len(calls.begin), dtype=bool)
        large[operations.call[known & (operations.bytes >= LARGE)]] = True
        long = calls.end - calls.begin >= LONG_NS
        self._idle[own.rank] = spans_of(calls.begin[long], calls.end[long])
        self._moving[own.rank] = spans_of(calls.begin[large], calls.end[large])
        if scheduled is not None:
            self.scheduled[own.rank] = scheduled

    def active(self, rank: int, partner: Ints, begin: Ints, end: Ints) -> Floats:
        """How many other ranks of the node compute or move messages, on average over each span [begin, end].
        Messages of the call itself do not count: `partner` (N,) is its other end, -1 for all ranks.
        """
        result = np.zeros(len(begin))
        length = np.maximum(end - begin, 1)
        for other in self._beside(rank):
            computes = length - self._idle[other].covered(begin, end)
            moves = np.where((partner == other) | (partner < 0), 0, self._moving[other].covered(begin, end))
            result += np.clip((computes + moves) / length, 0.0, 1.0)
        return result

    def partner_waited(self, rank: int, partner: Ints, time: Ints, extra: Ints) -> Ints:
        """ns of the `extra` of each call, with its middle at `time`, that its partner (-1: any other rank)
        may have waited for a core.
        """
        result = np.zeros(len(time), dtype=np.int64)
        for other, scheduled in self.scheduled.items():
            some = np.flatnonzero(((partner == other) | (partner < 0)) & (other != rank))
            if len(some):
                waited = scheduled.over(scheduled.waited, time[some], extra[some])
                result[some] = np.maximum(result[some], waited)
        return result

    def traffic(self, rank: int) -> list[RankSpans]:
        """When the other ranks of the node are in calls that move large messages."""
        return [self._moving[other] for other in self._beside(rank) if len(self._moving[other].begin)]

    def _beside(self, rank: int) -> list[int]:
        here = [other for other in self._idle if other != rank and self.nodes[other] == self.nodes[rank]]
        return sorted(here, key=lambda other: abs(other - rank))[:OTHERS]
