"""Predicted change of one application's time: fewer computing cores, data near the NIC, no overlap.

A profile gives how long a job computes, is on the network, and does both at once; a model of the machine
gives, as plain numbers, how the rates of both change. On each node
    computation alone C, network alone N, both at once B: time T = C + N - B + R,
where R is the rest: waiting and calls. With computation `comp` times and messages `comm` times as fast, C
becomes C / comp and N becomes N / comm; of B stays the same share of what could overlap, min(C, N).
"""

from __future__ import annotations

import msgspec

from elbowroom.errors import UsageError
from elbowroom.profile.analysis import Analysis


class Rates(msgspec.Struct, frozen=True, kw_only=True):
    """Changed by present rates of computation and of messages: 0.9 is 10 % slower."""

    comp: float = 1.0
    comm: float = 1.0


class NodeTimes(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds of the mean rank of a node: computing, with a message on the network, both, and in all."""

    computation: float
    network: float
    both: float
    total: float


class WhatIf(msgspec.Struct, frozen=True, kw_only=True):
    """The job's time now and with a change, s; `change` -0.1: 10 % shorter. `node` decides: it has the least
    time left over.
    """

    name: str
    now: float
    then: float
    change: float
    node: int


def node_times(analysis: Analysis) -> list[NodeTimes]:
    """The times of each node's mean rank."""
    profile = analysis.profile
    spans = analysis.on_network
    length = spans.end - spans.begin
    outside = length - analysis.in_mpi.covered(spans.group, spans.begin, spans.end)
    result = []
    for node in range(profile.nodes):
        ranks = [rank for rank in profile.ranks if rank.node == node]
        mine = profile.nodes_of[spans.group] == node
        count = max(1, len(ranks))
        inside = sum(rank.mpi_ns for rank in ranks) / 1e9 / count
        result.append(
            NodeTimes(
                computation=max(analysis.duration - inside, 0.0) if ranks else 0.0,
                network=float(length[mine].sum()) / count,
                both=float(outside[mine].sum()) / count,
                total=analysis.duration,
            )
        )
    return result


def with_rates(analysis: Analysis, rates: Rates, *, name: str) -> WhatIf:
    """With computation and messages at other rates: `fewer cores` (comp below 1, comm above 1, as the model
    says), `data near the NIC` (comm above 1).
    """
    for field in ("comp", "comm"):
        value = getattr(rates, field)
        if not 0 < value < float("inf"):
            raise UsageError("is not a ratio of rates", field=field, value=value, hint="give one above 0")
    return _longest(analysis, rates, 1.0, name)


def without_overlap(analysis: Analysis, rates: Rates = Rates()) -> WhatIf:  # noqa: B008
    """With messages and computation one after the other; `rates`: what each gains from being alone."""
    return _longest(analysis, rates, 0.0, "without overlap")


def _longest(analysis: Analysis, rates: Rates, kept: float, name: str) -> WhatIf:
    """All nodes wait for the one that takes longest."""
    times = [_changed(one, rates, kept) for one in node_times(analysis)]
    node = max(range(len(times)), key=times.__getitem__)
    now = analysis.duration
    return WhatIf(name=name, now=now, then=times[node], change=times[node] / now - 1, node=node)


def _changed(now: NodeTimes, rates: Rates, kept: float) -> float:
    rest = now.total - (now.computation + now.network - now.both)
    computation, network = now.computation / rates.comp, now.network / rates.comm
    possible = min(now.computation, now.network)
    share = now.both / possible if possible > 0 else 0.0
    return computation + network - kept * share * min(computation, network) + rest
