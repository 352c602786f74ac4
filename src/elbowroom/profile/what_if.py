"""Predicted change of one application's time: fewer computing cores, data near the NIC, no overlap.

A profile gives how long a job computes, is on the network, and does both at once; a model of the machine
gives the bandwidths of both sides, alone and together, now and then. On each node
    computation C, network N, both at once B: time T = C + N - B + R,
where R is the rest: waiting and calls. What both sides do is W = (C - B) alone + B together, with the
bandwidths of now. With those of then it takes C' and N', of which B' is the same share of what could
overlap, min(C', N'), or 0 without overlap.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.errors import UsageError
from elbowroom.profile.analysis import Analysis
from elbowroom.profile.spans import union

Floats = npt.NDArray[np.float64]


class NodeTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of the mean rank of a node: computing, with a message on the network, both, and in all."""

    computation: float
    network: float
    both: float
    total: float

    @property
    def share(self) -> float:
        """The share of what could overlap that did."""
        possible = min(self.computation, self.network)
        return self.both / possible if possible > 0 else 0.0


class Bandwidths(msgspec.Struct, frozen=True, kw_only=True):
    """Of computation and messages, alone and together, in one unit; numbers, or (D,) of each draw."""

    comp_alone: Floats
    comm_alone: Floats
    comp_together: Floats
    comm_together: Floats


def node_times(analysis: Analysis, begin: float = 0.0, end: float | None = None) -> list[NodeTimes]:
    """The times of each node's mean rank, between two times (s): all by default."""
    profile, calls = analysis.profile, analysis.in_mpi
    end = analysis.duration if end is None else end
    spans = analysis.on_network
    spans = union(spans.group, np.clip(spans.begin, begin, end), np.clip(spans.end, begin, end))
    length = spans.end - spans.begin
    outside = length - calls.covered(spans.group, spans.begin, spans.end)
    result = []
    for node in range(profile.nodes):
        ranks = np.array([rank.rank for rank in profile.ranks if rank.node == node], dtype=np.int64)
        mine = profile.nodes_of[spans.group] == node
        count = max(1, len(ranks))
        inside = calls.covered(ranks, np.full(len(ranks), begin), np.full(len(ranks), end))
        result.append(
            NodeTimes(
                computation=max(end - begin - float(inside.sum()) / count, 0.0) if len(ranks) else 0.0,
                network=float(length[mine].sum()) / count,
                both=max(float(outside[mine].sum()), 0.0) / count,
                total=end - begin,
            )
        )
    return result


def changed_time(times: NodeTimes, now: Bandwidths, then: Bandwidths, *, overlaps: bool = True) -> Floats:
    """The node's time (s) with the bandwidths of `then`, for each draw; `overlaps`: both sides still do.

    UsageError for a bandwidth that is not above 0.
    """
    for name in Bandwidths.__struct_fields__:
        for values in (getattr(now, name), getattr(then, name)):
            if not (np.all(np.asarray(values) > 0) and np.all(np.isfinite(values))):
                raise UsageError(
                    "is not a bandwidth", field=name, value=float(np.min(values)), hint="give one above 0"
                )
    both = times.both
    computed = (times.computation - both) * now.comp_alone + both * now.comp_together
    moved = (times.network - both) * now.comm_alone + both * now.comm_together
    rest = times.total - (times.computation + times.network - both)
    share = times.share if overlaps else 0.0
    # All of the shorter side could overlap: first as if that were the computation, then as if the messages.
    computing = computed / ((1 - share) * then.comp_alone + share * then.comp_together)
    beside = share * computing
    network = (moved - beside * then.comm_together) / then.comm_alone + beside
    moving = moved / ((1 - share) * then.comm_alone + share * then.comm_together)
    beside_messages = share * moving
    computation = (computed - beside_messages * then.comp_together) / then.comp_alone + beside_messages
    total = np.where(
        computing <= network,
        computing + network - beside,
        computation + moving - beside_messages,
    )
    result: Floats = total + rest
    return result
