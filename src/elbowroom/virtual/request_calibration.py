"""From what a machine reaches alone (appendix E of the thesis) to G3's node.

Of the published parameters only those of computation alone and of communication alone are used: one core, all
cores, the NIC. Nothing of what both do together is put in. Processors add what their makers publish: channels
and their rate, links between sockets.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec

from elbowroom.errors import UsageError
from elbowroom.models.load import Computing
from elbowroom.models.threshold.law import Parameters
from elbowroom.virtual.credits import (
    CREDIT_SLACK,
    ISSUE_SLACK,
    LINE_FILL_BUFFERS,
    LOOSE_LINK,
    LOOSE_UPLINK,
)
from elbowroom.virtual.definition import Definition, Processor, processor_of
from elbowroom.virtual.request_node import LINE, SimulatedNode
from elbowroom.virtual.requests import (
    Moment,
    Simulate,
    controller_ps,
    credits,
    experiment,
    machine,
)

UNKNOWN_CHANNELS = 6

STORE_EFFICIENCY, LOAD_EFFICIENCY = 0.6, 0.85
"""Of the channels' peak. Stores: what the four published machines that saturate DDR4-2666 reach (0.55-0.58),
a little rounded up; loads: typical.
"""

SATURATED = 0.97
"""All cores reach less than this share of so many single ones: something saturates."""

LOOSE_MEMORY = 1 / 0.9
LINK_BOUND = 0.85
"""Of a link's published rate: cores that reach more alone saturate it."""

PREFETCH_DEPTH = 16
LOAD_LATENCY_LOCAL, LOAD_LATENCY_REMOTE = 60.0, 120.0
HEADER = 16
ROUNDS = 8


def scaled(definition: Definition, simulate: Simulate) -> SimulatedNode:
    """The node of a definition: simulates all cores alone until they reach what was published, then sizes the
    NIC.

    Kept for every definition and simulator.
    """
    if definition.sockets > 2 or not isinstance(definition.layout, msgspec.UnsetType):
        raise UsageError(
            "single requests are simulated for one or two sockets that are alike",
            field="machine",
            value=definition.name,
            hint="use the network of credits: elbowroom run model --machine FILE.xml:credits",
        )
    return _scaled(definition, simulate)


@cache
def _scaled(definition: Definition, simulate: Simulate) -> SimulatedNode:
    facts = processor_of(definition.processor)
    node = _memory(_unscaled(definition), definition, facts, simulate)
    if definition.remote is not None:
        node = _remote(node, definition.remote, facts, simulate)
    return _sized_nic(node, definition)


def _unscaled(definition: Definition) -> SimulatedNode:
    """All that needs no simulation; capacities are loose."""
    local, remote, shape = definition.local, definition.remote, definition.shape
    loads = [
        PREFETCH_DEPTH * LINE * 1e3 / (ISSUE_SLACK * (idle + 50))
        for idle in (LOAD_LATENCY_LOCAL, LOAD_LATENCY_REMOTE)
    ]
    loose = LOOSE_UPLINK * local.t_seq_max * shape.numa_per_socket
    return SimulatedNode(
        shape=shape,
        line_fill_buffers=LINE_FILL_BUFFERS,
        prefetch_depth=PREFETCH_DEPTH,
        core_rate_local=local.b_comp_seq,
        core_rate_remote=remote.b_comp_seq if remote else None,
        core_latency_local=_idle(local),
        core_latency_remote=_idle(remote) if remote else None,
        load_rate_local=loads[0],
        load_rate_remote=loads[1] if remote else None,
        load_latency_local=LOAD_LATENCY_LOCAL,
        load_latency_remote=LOAD_LATENCY_REMOTE if remote else None,
        clock=definition.clock_ghz,
        flops_per_cycle=definition.flops_per_cycle,
        jitter=0.1,
        uplink_write=loose,
        uplink_read=2 * loose,
        uplink_remote_work=1.0,
        link=LOOSE_LINK * _on_link(remote.t_seq_max) if remote else loose,
        link_header=HEADER,
        link_credits=256,
        root=64_000.0,
        channels=UNKNOWN_CHANNELS,
        banks=32,
        memory_write=LOOSE_MEMORY * local.t_seq_max,
        memory_read=LOOSE_MEMORY * local.t_seq_max * LOAD_EFFICIENCY / STORE_EFFICIENCY,
        memory_remote_work=1.0,
        row=45.0,
        turnaround=15.0,
        write_batch=16,
        read_queue=48,
        write_queue=48,
        lookahead=8,
        arbitration="fifo",
        nic_rate_local=local.b_comm_seq,
        nic_rate_remote=remote.b_comm_seq if remote else None,
        nic_write_credits=1,
        nic_read_credits=1,
        nic_write_latency=300.0,
        nic_read_latency=550.0,
        nic_hop=30.0,
        setup_near=definition.near_latency_us,
        setup_far=definition.far_latency_us,
        setup_accesses=2,
        copy_slack=CREDIT_SLACK,
    )


def _idle(p: Parameters) -> float:
    return LINE_FILL_BUFFERS * LINE * 1e3 / (ISSUE_SLACK * p.b_comp_seq)


def _on_link(bandwidth: float) -> float:
    """What a link carries for that much data."""
    return bandwidth * (LINE + HEADER) / LINE


def _saturated(p: Parameters, cores: int) -> bool:
    return p.t_seq_max < SATURATED * cores * p.b_comp_seq


def _memory(
    node: SimulatedNode, definition: Definition, facts: Processor | None, simulate: Simulate
) -> SimulatedNode:
    """Channels as the processor has them; controllers, or the socket's fabric, so that all cores alone reach
    what was published.
    """
    local, per_socket = definition.local, node.shape.numa_per_socket
    narrow = facts is not None and facts.narrow
    peak = 0.0
    if facts is not None:
        peak = facts.channels * facts.channel / per_socket
        node = _with(
            node,
            channels=max(1, facts.channels // per_socket),
            memory_read=LOAD_EFFICIENCY * peak,
            memory_write=max(STORE_EFFICIENCY * peak, LOOSE_MEMORY * local.t_seq_max),
        )
    if not _saturated(local, node.shape.cores_first_socket):
        return node
    field = "uplink_write" if narrow else "memory_write"
    node = _matched(node, field, 0, local.t_seq_max, simulate, start=local.t_seq_max, work=False)
    if narrow:
        return _with(node, uplink_read=2 * node.uplink_write)
    return _with(node, memory_read=max(node.memory_read, node.memory_write))


def _remote(
    node: SimulatedNode, remote: Parameters, facts: Processor | None, simulate: Simulate
) -> SimulatedNode:
    """The link as the processor has it. If all cores alone come near that, it is what they saturate; if they
    reach less, their lines cost more where local ones saturate.
    """
    if facts is not None:
        node = _with(node, link=max(facts.link, _on_link(remote.t_seq_max)))
    if not _saturated(remote, node.shape.cores_first_socket):
        return node
    far = node.shape.numa_per_socket
    if facts is None or _on_link(remote.t_seq_max) > LINK_BOUND * facts.link:
        start = _on_link(remote.t_seq_max)
        return _matched(node, "link", far, remote.t_seq_max, simulate, start=start, work=False)
    field = "uplink_remote_work" if facts.narrow else "memory_remote_work"
    capacity = node.uplink_write if facts.narrow else node.memory_write
    start = max(1.0, capacity / remote.t_seq_max)
    return _matched(node, field, far, remote.t_seq_max, simulate, start=start, work=True)


def _matched(
    node: SimulatedNode, field: str, data: int, wanted: float, simulate: Simulate, *, start: float, work: bool
) -> SimulatedNode:
    """The node with the value of `field` with which all cores alone reach `wanted` on a node's data. What
    saturates passes nearly in proportion to its capacity, so that a few corrections suffice.
    """
    value = start
    for _ in range(ROUNDS):
        node = _with(node, **{field: value})
        reached = _alone(node, data, simulate)
        if abs(reached / wanted - 1) < 1e-3:
            break
        value = value * reached / wanted if work else value * wanted / reached
        if work:
            value = max(1.0, value)
    return node


def _alone(node: SimulatedNode, data: int, simulate: Simulate) -> float:
    group = Computing(socket=0, node=data, count=node.shape.cores_first_socket)
    observations = simulate(
        machine(node), [experiment(node, Moment(computing=(group,)), seed) for seed in (1, 2)]
    )
    return sum(one.sources[0].bandwidth for one in observations) / len(observations)


def _sized_nic(node: SimulatedNode, definition: Definition) -> SimulatedNode:
    """Just enough credits for the NIC's full rate, to whichever node needs most of them."""
    sides = [(0, definition.local)]
    if definition.remote is not None:
        sides.append((node.shape.numa_per_socket, definition.remote))
    needed = {"nic_write_credits": 0, "nic_read_credits": 0}
    home = node.shape.socket(node.shape.nic_node or 0)
    for data, p in sides:
        hops = 2 * node.nic_hop if node.shape.socket(data) != home else 0.0
        for name, idle in (
            ("nic_write_credits", node.nic_write_latency),
            ("nic_read_credits", node.nic_read_latency + 1e-3 * controller_ps(node)),
        ):
            needed[name] = max(needed[name], credits(p.b_comm_seq, 1e3 * (idle + hops), CREDIT_SLACK))
    return _with(node, **needed)


def _with(node: SimulatedNode, **values: Any) -> SimulatedNode:
    return msgspec.structs.replace(node, **values)
