"""G3: a node simulated line by line (core/simulate), for any load. Pure: who runs the simulator is injected.

Nothing here says who wins. Computing cores have their line-fill buffers, the NIC its credits; with more cores
more lines wait, everybody's lines take longer, and who has nothing to spare loses.

- **Large messages** are endless streams. Small ones are simulated one by one; beyond LONGEST bytes a message
  takes as long as one of LONGEST and the rest at the endless rate, both simulated.
- **Arithmetic intensity** is time that a core takes for each line, whatever waits meanwhile.

Rows over the number of computing cores have bandwidths, latencies and the use of the stations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import msgspec

from elbowroom.errors import UsageError
from elbowroom.models.curves import Situation, Streams
from elbowroom.models.load import Computing, Copy, Load, check_load, load_of
from elbowroom.virtual.request_node import LINE, SimulatedNode
from elbowroom.virtual.simulated import Latency, Observation, SimulatedCurve, SimulatedRow
from elbowroom.virtual.truth import (
    LoadStreams,
    MessageFlow,
    StreamRates,
    Truth,
    check_situation,
    flows_of,
    streams_of,
)

Json = Mapping[str, Any]
Simulate = Callable[[Json, Sequence[Json]], list[Observation]]
"""Node and experiments of docs/reference/simulator.md to what was observed, in order."""

Pattern = Literal["read", "write", "nt", "copy"]
PATTERNS: dict[Pattern, tuple[str, float]] = {
    # What a core does line by line (R reads, N stores past the caches, W stores and so reads first), and
    # bytes that its program knows of for each byte on the bus.
    "read": ("R", 1.0),
    "write": ("W", 1 / 2),
    "nt": ("N", 1.0),
    "copy": ("RW", 2 / 3),
}

WARM_NS, MEASURE_NS = 10_000, 60_000
LEAST_MESSAGES, ENOUGH_MESSAGES, ENOUGH_NS = 16, 100, 150_000
"""Messages that are simulated at least; as many as are enough for 1 % if that takes no longer than ENOUGH_NS.
"""
LEAST_LINES, SLOWEST_NS = 20, 500_000
"""Lines of each core that are simulated at least, and the longest that one may take."""

LONGEST = 65_536
"""Bytes of the largest message that is simulated as a whole."""


class Moment(NamedTuple):
    """What is active in an experiment. `pattern`: what computing cores do, line by line."""

    computing: tuple[Computing, ...] = ()
    flows: tuple[MessageFlow, ...] = ()
    copies: tuple[Copy, ...] = ()
    pattern: str = "N"


def machine(node: SimulatedNode) -> dict[str, Any]:
    """The stations of a node as the simulator reads them: picoseconds per line."""
    shape = node.shape
    return {
        "sockets": shape.sockets,
        "nodes_per_socket": shape.numa_per_socket,
        "uplink_read": _ps(LINE, node.uplink_read),
        "uplink_write": _ps(LINE, node.uplink_write),
        "link_line": _ps(LINE + node.link_header, node.link),
        "link_request": _ps(node.link_header, node.link),
        "link_credits": node.link_credits,
        "root_line": _ps(LINE, node.root),
        "channels": node.channels,
        "banks": node.banks,
        "lines_per_channel": 4,
        "lines_per_row": 128,
        "row": round(1e3 * node.row),
        "read_line": max(1, _ps(LINE * node.channels, node.memory_read)),
        "write_line": max(1, _ps(LINE * node.channels, node.memory_write)),
        "turnaround": round(1e3 * node.turnaround),
        "write_batch": node.write_batch,
        "read_queue": node.read_queue,
        "write_queue": node.write_queue,
        "lookahead": node.lookahead,
        "round_robin": node.arbitration == "round_robin",
    }


def _ps(size: float, bandwidth: float) -> int:
    """Picoseconds that so many bytes take at MB/s (bytes per microsecond)."""
    return round(1e6 * size / bandwidth)


def experiment(node: SimulatedNode, moment: Moment, seed: int) -> dict[str, Any]:
    """A moment as the simulator reads it: groups of cores first, then messages, then copies."""
    sources = [cores(node, group, moment.pattern) for group in moment.computing]
    sources += [nic(node, flow) for flow in moment.flows]
    sources += [copying(node, copy) for copy in moment.copies]
    one = max((_message_ns(node, flow) for flow in moment.flows if flow.size is not None), default=0)
    measure = max(MEASURE_NS, LEAST_MESSAGES * one, min(ENOUGH_MESSAGES * one, ENOUGH_NS))
    measure = max(measure, LEAST_LINES * _slowest_ns(moment, sources))
    return {
        "seed": seed,
        "warm": 1000 * WARM_NS,
        "measure": 1000 * measure,
        "jitter": node.jitter,
        "sources": sources,
    }


def _slowest_ns(moment: Moment, sources: Sequence[Json]) -> int:
    """How long a core or copy takes for a line at least; UsageError where too few could be simulated."""
    fields: list[tuple[str, float]] = [("computing.intensity", group.intensity) for group in moment.computing]
    fields += [("", 0.0) for _ in moment.flows]
    fields += [("copies.demand", copy.demand) for copy in moment.copies]
    slowest = 0
    for (field, value), source in zip(fields, sources, strict=True):
        taken = max(source["think"], source["interval"]) // 1000
        if taken > SLOWEST_NS:
            raise UsageError(
                f"leaves {taken * 1e-6:g} ms between two lines of 64 B, too long to simulate",
                field=field,
                value=value,
                hint=f"what takes at most {SLOWEST_NS * 1e-6:g} ms for a line",
            )
        slowest = max(slowest, taken)
    return slowest


def _message_ns(node: SimulatedNode, flow: MessageFlow) -> int:
    """About how long one message takes on an idle machine."""
    assert flow.size is not None
    rate = flow.share * _of_side(node, flow.node, node.nic_rate_local, node.nic_rate_remote)
    return round(1e3 * (flow.latency + flow.size / rate))


def _of_side(node: SimulatedNode, data: int, local: float, remote: float | None) -> float:
    """The value that holds of data of that node."""
    if node.shape.local(data):
        return local
    if remote is None:
        raise UsageError(
            f"{node.shape.name} has no parameters of remote accesses",
            field="remote",
            hint="choose nodes of the first socket, or add them to its definition",
        )
    return remote


def cores(node: SimulatedNode, group: Computing, pattern: str) -> dict[str, Any]:
    """Cores of one socket; what holds of the first one's data beside it holds of the other's."""
    shape = node.shape
    away = shape.socket(group.node) != group.socket
    # Of data beside the cores or not, wherever they are.
    data = shape.numa_per_socket if away else 0
    stores = set(pattern) == {"N"}
    rate = (
        _of_side(node, data, node.core_rate_local, node.core_rate_remote)
        if stores
        else _of_side(node, data, node.load_rate_local, node.load_rate_remote)
    )
    peak = 1e3 * node.clock * node.flops_per_cycle  # Mflop/s
    return {
        "device": False,
        "count": group.count,
        "socket": group.socket,
        "node": group.node,
        "window": node.line_fill_buffers if stores else node.prefetch_depth,
        "pattern": pattern,
        "interval": _ps(LINE, rate),
        "think": round(1e6 * LINE * group.intensity / peak),
        "read": _way(_of_side(node, data, node.load_latency_local, node.load_latency_remote), away),
        "write": _way(_of_side(node, data, node.core_latency_local, node.core_latency_remote), away),
        "memory_work": node.memory_remote_work if away else 1.0,
        "uplink_work": node.uplink_remote_work if away else 1.0,
    }


def _way(idle_ns: float, away: bool) -> list[int]:
    """Forward, over the link, and back: picoseconds; there and back take equally long."""
    half = round(500 * idle_ns)
    return [half - half // 2, half // 2, half] if away else [half, 0, half]


def _device_way(node: SimulatedNode, data: int, idle_ns: float) -> list[int]:
    """The same for devices of the NIC's socket: the other socket's data is `nic_hop` farther, each way."""
    half, hop = round(500 * idle_ns), round(1000 * node.nic_hop)
    return [half, hop, half + hop] if home(node) != node.shape.socket(data) else [half, 0, half]


def home(node: SimulatedNode) -> int:
    """The socket of the NIC."""
    return node.shape.socket(node.shape.nic_node or 0)


def _device(node: SimulatedNode, data: int, rate: float, window: int, *, reads: bool) -> dict[str, Any]:
    return {
        "device": True,
        "count": 1,
        "socket": home(node),
        "node": data,
        "window": window,
        "pattern": "R" if reads else "N",
        "interval": _ps(LINE, rate),
        "think": 0,
        "read": _device_way(node, data, node.nic_read_latency),
        "write": _device_way(node, data, node.nic_write_latency),
        "memory_work": 1.0,
        "uplink_work": 1.0,
    }


def nic(node: SimulatedNode, flow: MessageFlow) -> dict[str, Any]:
    """The NIC reading what it sends from memory, or writing what it receives to memory."""
    rate = flow.share * _of_side(node, flow.node, node.nic_rate_local, node.nic_rate_remote)
    lines = node.nic_read_credits if flow.sending else node.nic_write_credits
    window = max(1, math.ceil(flow.share * lines))
    device = _device(node, flow.node, rate, window, reads=flow.sending)
    if flow.size is None:
        return device
    near = home(node)
    socket = 1 - near if flow.far and node.shape.sockets > 1 else near
    away = node.shape.socket(flow.node) != socket
    data = node.shape.numa_per_socket if away else 0
    access = _of_side(node, data, node.load_latency_local, node.load_latency_remote)
    way = device["read" if flow.sending else "write"]
    # What the latency of the smallest message holds besides its one line and the thread's own accesses.
    waiting = node.setup_accesses * (1e3 * access + _line_ps(node)) + sum(way)
    waiting += _line_ps(node) if flow.sending else 0
    return {
        **device,
        "messages": {
            "lines": max(1, math.ceil(flow.size / LINE)),
            "threads": flow.in_flight,
            "accesses": node.setup_accesses,
            "pause": max(0, round(1e6 * flow.latency - waiting)),
            "socket": socket,
            "way": _way(access, away),
        },
    }


def controller_ps(node: SimulatedNode) -> float:
    """Picoseconds that an idle controller takes for a read: a row to open and a line."""
    return 1e3 * node.row + _line_ps(node)


def _line_ps(node: SimulatedNode) -> float:
    return 1e6 * LINE * node.channels / node.memory_read


def copying(node: SimulatedNode, copy: Copy) -> dict[str, Any]:
    """An accelerator on the NIC's socket that writes to memory, with credits for its demand on an idle
    machine.
    """
    window = credits(copy.demand, sum(_device_way(node, copy.node, node.nic_write_latency)), node.copy_slack)
    return _device(node, copy.node, copy.demand, window, reads=False)


def credits(rate: float, way_ps: float, slack: float) -> int:
    """Lines under way that a rate (MB/s) needs when they take that long (Little's law), times `slack`."""
    return math.ceil(slack * rate * way_ps / (1e6 * LINE))


class Requests(Truth):
    """The truth G3 of a node. What was simulated is kept; `seed` is the simulation's own, not that of the
    noise.
    """

    def __init__(self, node: SimulatedNode, simulate: Simulate, *, seed: int = 1) -> None:
        self.node, self.seed = node, seed
        self.shape = msgspec.structs.replace(node.shape, virtual=True)
        self._simulate = simulate
        self._machine = machine(node)
        self._observed: dict[Moment, Observation] = {}

    def observe(self, moments: Sequence[Moment]) -> list[Observation]:
        """Simulates those that are not known yet, all at once; in order."""
        new = [moment for moment in dict.fromkeys(moments) if moment not in self._observed]
        if new:
            experiments = [experiment(self.node, moment, self.seed) for moment in new]
            self._observed.update(zip(new, self._simulate(self._machine, experiments), strict=True))
        return [self._observed[moment] for moment in moments]

    def streams(self, situation: Situation) -> Streams:
        """The four bandwidths, MB/s; all n of the placement are simulated at once."""
        check_situation(self.shape, situation)
        if situation.n_other == 0:
            counts = range(1, self.shape.cores_first_socket + 1)
            loads = [load_of(msgspec.structs.replace(situation, n=n)) for n in counts]
            self.observe([moment for load in loads for moment in self._moments(load)])
        given = request_load_streams(self, load_of(situation))
        return given.comp_alone, given.comm_alone, given.comp_together, given.comm_together

    def _moments(self, load: Load) -> list[Moment]:
        """Alone, alone, together."""
        flows = flows_at(self.node, load)
        return [Moment(load.computing), Moment(flows=flows), Moment(load.computing, flows)]


def flows_at(node: SimulatedNode, load: Load, *, far: bool = False) -> tuple[MessageFlow, ...]:
    """The load's messages with that node's latencies; `far`: the threads are not on the NIC's socket."""
    return flows_of(load, node.setup_far if far else node.setup_near, far=far)


def request_load_streams(
    truth: Requests, load: Load, *, pattern: Pattern = "nt", far: bool = False
) -> LoadStreams:
    """What the simulated node gives a load, as virtual/loads.py says it; bandwidths as the kernel counts
    them.

    `far`: the communication threads are not on the NIC's socket. UsageError for what the machine has not.
    """
    check_load(truth.shape, load)
    letters, known = PATTERNS[pattern]
    flows = flows_at(truth.node, load, far=far)
    together = rates(truth, Moment(load.computing, flows, load.copies, letters))
    alone = rates(truth, Moment(load.computing, pattern=letters)), rates(truth, Moment(flows=flows))
    return streams_of(*alone, together, known)


def rates(truth: Requests, moment: Moment) -> StreamRates:
    """Bandwidths on the bus; of messages longer than LONGEST put together from two simulations. All messages
    of a moment have one size.
    """
    if not (moment.computing or moment.flows or moment.copies):
        return StreamRates()
    sizes = {flow.size for flow in moment.flows}
    assert len(sizes) <= 1
    size = sizes.pop() if sizes else None
    if size is None or size <= LONGEST:
        return _rates(moment, truth.observe([moment])[0])
    short, endless = _resized(moment, LONGEST), _resized(moment, None)
    observations = truth.observe([short, endless])
    first, then = (_rates(part, one) for part, one in zip((short, endless), observations, strict=True))
    # One round of messages: so long at the rates of the first, so long at those of the second.
    at_once = sum(flow.in_flight for flow in moment.flows)
    begin = at_once * LONGEST / sum(first.flows)
    rest = at_once * (size - LONGEST) / sum(then.flows)

    def mean(a: Sequence[float], b: Sequence[float]) -> tuple[float, ...]:
        return tuple((x * begin + y * rest) / (begin + rest) for x, y in zip(a, b, strict=True))

    return StreamRates(
        groups=mean(first.groups, then.groups),
        flows=mean(first.flows, then.flows),
        copies=mean(first.copies, then.copies),
    )


def _resized(moment: Moment, size: int | None) -> Moment:
    return moment._replace(flows=tuple(msgspec.structs.replace(flow, size=size) for flow in moment.flows))


def _rates(moment: Moment, observation: Observation) -> StreamRates:
    bandwidths = tuple(source.bandwidth for source in observation.sources)
    messages = len(moment.computing)
    copies = messages + len(moment.flows)
    return StreamRates(
        groups=bandwidths[:messages],
        flows=tuple(
            value * _filled(flow.size)
            for flow, value in zip(moment.flows, bandwidths[messages:copies], strict=True)
        ),
        copies=bandwidths[copies:],
    )


def _filled(size: int | None) -> float:
    """A message that does not fill its last line moves less than its lines."""
    return 1.0 if size is None else size / (LINE * math.ceil(size / LINE))


def curve(
    truth: Requests, load: Load, counts: Sequence[int], *, pattern: Pattern = "nt", far: bool = False
) -> SimulatedCurve:
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
    return SimulatedCurve(comp_node=group.node, comm_node=load.messages.node, rows=rows)


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
