"""What ranks would wait for each other if none of them had to wait for a core.

A rank that lacks a core comes later to its calls, and so do those that wait for it, and those that wait for
these. What a rank is later for such reasons is followed through the waits, from the last computation on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elbowroom.diagnose.scheduled import Scheduled

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

HOPS = 8
"""Waits for ranks that wait for ranks that have no core are followed so far."""
CROWDED = 0.05
"""Share of the time that ranks wait for cores, from which on they are followed further than one rank."""


class RankWaits(NamedTuple):
    """Waits of a rank for others (N,), in order, ns: in calls from `begin` to `end`, it `waited` for
    `partner` until `ready`; `met`: when it began to compute before, as its partners about did.
    """

    begin: Ints
    end: Ints
    met: Ints
    waited: Ints
    partner: Ints
    ready: Ints


class Delay(NamedTuple):
    """How much later a rank is because of cores: its own waits for them, and what others' `added`, ns in all
    before each of the times `ready` and after them.
    """

    scheduled: Scheduled
    ready: Ints
    added: Ints

    def between(self, begin: Ints, end: Ints) -> Floats:
        """(M,) how much of it comes from each begin to each end."""
        return self._until(end) - self._until(begin)

    def _until(self, time: Ints) -> Floats:
        added = self.added[np.searchsorted(self.ready, time, side="right")]
        return np.asarray(self.scheduled.waited_until(time) + added)


def are_crowded(scheduled: Mapping[int, Scheduled]) -> bool:
    """Whether ranks wait for cores for CROWDED of their time."""
    waited = sum(float(own.waited.sum()) for own in scheduled.values())
    return waited >= CROWDED * sum(float((own.end - own.begin).sum()) for own in scheduled.values())


def uneven_waits(waits: Mapping[int, RankWaits], scheduled: Mapping[int, Scheduled]) -> dict[int, Ints]:
    """By rank: ns of each of its waits that it would wait with cores for all. `scheduled`: of ranks that may
    have no `waits`; without samples of both ranks, all of the wait.
    """
    none = np.zeros(0, np.int64)
    delays = {rank: Delay(own, none, np.zeros(1, np.int64)) for rank, own in scheduled.items()}
    hops = min(HOPS, len(waits))
    for hop in range(hops):
        net = {rank: _net_delays(own, rank, delays) for rank, own in waits.items()}
        if hop < hops - 1:
            delays |= {
                rank: _with_others(delays[rank], waits[rank], net[rank]) for rank in waits.keys() & delays
            }
    return {rank: np.clip(own.waited - net[rank], 0, own.waited) for rank, own in waits.items()}


def _net_delays(own: RankWaits, rank: int, delays: Mapping[int, Delay]) -> Ints:
    """By how much the partner of each wait is later because of cores than the rank itself."""
    result = np.zeros(len(own.waited), dtype=np.int64)
    mine = delays.get(rank)
    if mine is None:
        return result
    for other in delays.keys() & set(np.unique(own.partner).tolist()):
        some = np.flatnonzero(own.partner == other)
        met, begin, ready = own.met[some], own.begin[some], own.ready[some]
        result[some] = delays[other].between(met, ready) - mine.between(met, begin)
    return result


def _with_others(delay: Delay, own: RankWaits, net: Ints) -> Delay:
    """A rank is as late after a wait as its partner; what it was later itself is then made up for."""
    order = np.argsort(own.ready, kind="stable")
    added = np.cumsum(np.minimum(net, own.waited)[order])
    return delay._replace(ready=own.ready[order], added=np.concatenate([[0], added]))
