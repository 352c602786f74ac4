"""What ranks would wait for each other if none of them had to wait for a core.

A rank that lacks a core comes later to its calls, and so do those that wait for it, and those that wait for
these. What a rank is later for such reasons is followed through the waits, from the last computation on. The
scheduler's samples are longer than calls, so that is not exact; where much of the time is such waits, what is
left counts only as far as the late rank, or one that it waited for, did something for longer.
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


class RankWork(NamedTuple):
    """How long a rank was outside MPI, without its waits for a core: ns from 0 until each time (M,)."""

    time: Ints
    done: Ints

    def between(self, begin: Ints, end: Ints) -> Floats:
        """(N,) how much of it is from each begin to each end."""
        return np.asarray(np.interp(end, self.time, self.done) - np.interp(begin, self.time, self.done))


def are_crowded(scheduled: Mapping[int, Scheduled]) -> bool:
    """Whether ranks wait for cores for CROWDED of their time."""
    waited = sum(float(own.waited.sum()) for own in scheduled.values())
    return waited >= CROWDED * sum(float((own.end - own.begin).sum()) for own in scheduled.values())


def uneven_waits(
    waits: Mapping[int, RankWaits],
    scheduled: Mapping[int, Scheduled],
    work: Mapping[int, RankWork] | None = None,
) -> dict[int, Ints]:
    """By rank: ns of each of its waits that it would wait with cores for all. `scheduled`: of ranks that may
    have no `waits`; without samples of both ranks, all of the wait. `work`: of ranks that wait for cores.
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
    left = {rank: np.clip(own.waited - net[rank], 0, own.waited) for rank, own in waits.items()}
    return left if not work else _of_work(waits, left, work)


def _of_work(
    waits: Mapping[int, RankWaits], most: Mapping[int, Ints], work: Mapping[int, RankWork]
) -> dict[int, Ints]:
    """What of each wait, at `most`, is due to work: of its partner, or of whom the partner waited for."""
    uneven = {rank: np.zeros(len(own.waited), dtype=np.int64) for rank, own in waits.items()}
    for _ in range(min(HOPS, len(waits))):
        inherited = {rank: _inherited(own, uneven[rank]) for rank, own in waits.items()}
        uneven = {
            rank: np.clip(_longer(own, rank, work, inherited), 0, most[rank]) for rank, own in waits.items()
        }
    return uneven


def _inherited(own: RankWaits, uneven: Ints) -> RankWork:
    """What a rank is later since others worked, until the end of each of its waits."""
    order = np.argsort(own.ready, kind="stable")
    done = np.cumsum(uneven[order])
    times = np.stack([own.ready[order] - own.waited[order], own.ready[order]], axis=1).ravel()
    amounts = np.stack([done - uneven[order], done], axis=1).ravel()
    return RankWork(np.maximum.accumulate(np.append(0, times)), np.append(0, amounts))


def _longer(
    own: RankWaits, rank: int, work: Mapping[int, RankWork], inherited: Mapping[int, RankWork]
) -> Ints:
    """By how much longer the partner of each wait worked, or waited for ranks that did, than this one."""
    result = np.zeros(len(own.waited), dtype=np.int64)
    mine = (work[rank], inherited[rank])
    for other in inherited.keys() & set(np.unique(own.partner).tolist()):
        some = np.flatnonzero(own.partner == other)
        met, begin, ready = own.met[some], own.begin[some], own.ready[some]
        for theirs, ours in zip((work[other], inherited[other]), mine, strict=True):
            result[some] += np.round(theirs.between(met, ready) - ours.between(met, begin)).astype(np.int64)
    return result


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
