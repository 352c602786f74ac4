"""Rows of a simulated node over the number of computing cores: bandwidths, latencies, use of its stations."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom.models.load import Computing, Load
from elbowroom.virtual.requests import (
    LONGEST,
    PATTERNS,
    Moment,
    Pattern,
    Requests,
    flows_at,
    home,
    request_load_streams,
)
from elbowroom.virtual.simulated import Curve, Latency, Observation, SimulatedRow


def curve(
    truth: Requests, load: Load, counts: Sequence[int], *, pattern: Pattern = "nt", far: bool = False
) -> Curve:
    """The load with that many cores of the first socket instead of its own; data of the computation on the
    node of the load's first group. The load has messages.
    """
    assert load.messages is not None
    group = load.computing[0]
    loads = [
        msgspec.structs.replace(load, computing=(msgspec.structs.replace(group, count=n),)) for n in counts
    ]
    # All at once: one start of the simulator instead of one for every row.
    truth.observe([moment for one in loads for moment in _shown(truth, one, pattern, far)])
    rows = tuple(row(truth, one, pattern=pattern, far=far) for one in loads)
    return Curve(comp_node=group.node, comm_node=load.messages.node, rows=rows)


def _shown(truth: Requests, load: Load, pattern: Pattern, far: bool) -> tuple[Moment, Moment, Moment]:
    """The simulations whose latencies and stations are shown: computation alone, messages alone, together. Of
    long messages it is the long middle that is shown.
    """
    letters, _ = PATTERNS[pattern]
    flows = flows_at(truth.node, load, far=far)
    if any(flow.size is not None and flow.size > LONGEST for flow in flows):
        flows = tuple(msgspec.structs.replace(flow, size=None) for flow in flows)
    return (
        Moment(load.computing, pattern=letters),
        Moment(flows=flows),
        Moment(load.computing, flows, load.copies, letters),
    )


def row(truth: Requests, load: Load, *, pattern: Pattern = "nt", far: bool = False) -> SimulatedRow:
    """One row: a load of one group of cores and of messages."""
    assert load.messages is not None
    streams = request_load_streams(truth, load, pattern=pattern, far=far)
    moments = _shown(truth, load, pattern, far)
    comp, comm, together = truth.observe(moments)
    names = ["computation"] + ["send" if flow.sending else "receive" for flow in moments[2].flows]
    alone = [*comp.sources, *comm.sources]
    latencies = [
        Latency(
            name=name,
            alone_mean=one.mean_ns,
            alone_d9=one.d9_ns,
            together_mean=both.mean_ns,
            together_d9=both.d9_ns,
        )
        for name, one, both in zip(names, alone, together.sources, strict=False)
    ]
    latencies += [
        Latency(
            name="copy",
            alone_mean=None,
            alone_d9=None,
            together_mean=one.mean_ns,
            together_d9=one.d9_ns,
        )
        for one in together.sources[len(names) :]
    ]
    return SimulatedRow(
        n=load.computing[0].count,
        size=load.messages.size,
        comp_alone=streams.comp_alone,
        comm_alone=streams.comm_alone,
        comp_together=streams.comp_together,
        comm_together=streams.comm_together,
        copies=streams.copies,
        latencies=tuple(latencies),
        stations=_stations(truth, load.computing[0], load.messages.node, together),
    )


def _stations(
    truth: Requests, group: Computing, comm_node: int, observation: Observation
) -> dict[str, float]:
    """Those that somebody of the load passes; of the links the busier direction."""
    shape, use = truth.shape, observation.use
    stations = {"uplink": use.uplinks[group.socket], "root complex": use.roots[home(truth.node)]}
    if shape.sockets > 1:
        stations["link"] = max(use.links)
    stations[f"controller of node {group.node}"] = use.memories[group.node]
    stations[f"controller of node {comm_node}"] = use.memories[comm_node]
    return stations
