"""How long ranks wait in collectives for the last rank, apart from the transfer."""

from __future__ import annotations

import numpy as np

from elbowroom.trace.overlap.events import NONE, Events
from elbowroom.trace.overlap.exposure import Exposure
from elbowroom.trace.overlap.instances import dense
from elbowroom.trace.overlap.places import Places
from elbowroom.trace.overlap.recognition import Recognised

NS = 1e9


def skew_of(events: Events, recognised: Recognised, comm: Exposure, places: Places) -> float | None:
    """The mean over ranks in s; None where no collective is on several ranks.

    A collective ends on all ranks at about the same time, so the rank that begins last spends the shortest
    time in it: that is the transfer, and what others spend more is waiting. Collectives are the same at one
    place of one step; clocks of ranks need not agree.
    """
    rank = events.rank[comm.event]
    ranks = len(np.unique(rank))
    chosen = recognised.of_kind("collective")[comm.event] & (places.place != NONE)
    if ranks < 2 or not chosen.any():
        return None
    step = places.cell[chosen] % max(places.steps, 1)
    which = dense(places.place[chosen], step)
    own = comm.own[chosen].astype(float)
    transfer = np.full(int(which.max()) + 1, np.inf)
    np.minimum.at(transfer, which, own)
    whole = np.bincount(which) == ranks
    if not whole.any():
        return None
    return float((own - transfer[which])[whole[which]].sum()) / ranks / NS
