"""G2: a whole machine as a closed network of credits (virtual/network.py).

Computing cores have their line-fill buffers, the NIC a bounded number of lines between its root complex and
memory. Their lines go through the uplink of the socket (cores only), the link between the sockets (one
resource per direction) and the memory controller of the data's node. Nothing here says who wins: with more
cores more lines are under way, everybody waits longer, and the NIC, whose credits are only just enough on an
idle machine, loses throughput.

From what a machine reaches (the parameters of the thesis' appendix E) to a network of credits.

Only end points are taken over: one core alone, all cores alone, both together at worst, and what
communications then keep. What happens between them is the network's own law.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable

import msgspec

from elbowroom.errors import UsageError
from elbowroom.models.curves import Shape, Situation, Streams
from elbowroom.models.threshold.law import Parameters, Threshold
from elbowroom.virtual.definition import CLOCK_GHZ, FAR_LATENCY_US, FLOPS_PER_CYCLE, NEAR_LATENCY_US
from elbowroom.virtual.network import LINE, Resource, Stream, solve, utilisation
from elbowroom.virtual.truth import Truth, check_situation


class DataSide(msgspec.Struct, frozen=True, kw_only=True):
    """What holds of data local, or remote, to the cores of the first socket.

    Of a computing core: `core_rate` the most it issues (MB/s), `core_latency` its line's idle latency (us),
    `uplink_work` and `memory_work` what a line costs there relative to a local one. Of the NIC: `nic_rate`
    the most it writes (MB/s), `nic_credits` (bytes), `nic_latency` (us), `nic_work` per line there.
    """

    core_rate: float
    core_latency: float
    nic_rate: float
    nic_credits: float
    nic_latency: float
    uplink_work: float = 1.0
    memory_work: float = 1.0
    nic_work: float = 1.0


class NodeResources(msgspec.Struct, frozen=True, kw_only=True):
    """A machine's resources; all sockets, all links and all controllers are alike.

    `remote` None: not known, or a machine of one socket. `line_fill_buffers`: outstanding lines of a core.
    `core_peak`: Mflop/s of a core; latencies (us) are of the smallest message, by where the communication
    thread is. Only loads need these (virtual/loads.py).
    """

    shape: Shape
    line_fill_buffers: int
    uplink: Resource
    link: Resource
    memory: Resource
    local: DataSide
    remote: DataSide | None = None
    core_peak: float = CLOCK_GHZ * 1e3 * FLOPS_PER_CYCLE
    near_latency: float = NEAR_LATENCY_US
    far_latency: float = FAR_LATENCY_US


class Credits(Truth):
    """The truth G2 of a machine. Solutions are kept in `solutions`, so that asking again costs nothing."""

    def __init__(self, network: NodeResources) -> None:
        self.network = network
        self.shape = network.shape
        sockets = range(self.shape.sockets)
        self._resources = (
            {f"uplink {socket}": network.uplink for socket in sockets}
            | {f"link {a} to {b}": network.link for a in sockets for b in sockets if a != b}
            | {f"memory {node}": network.memory for node in range(self.shape.nodes)}
        )
        self.solutions: dict[Hashable, tuple[float, ...]] = {}

    @property
    def resources(self) -> dict[str, Resource]:
        return dict(self._resources)

    def streams(self, situation: Situation) -> Streams:
        """comp_alone, comm_alone, comp_together, comm_together, MB/s; `comp` is all cores of all sockets."""
        check_situation(self.shape, situation)
        s = situation
        _, comm_alone = self._rates(None, s.comm_node, 0, 0)
        if s.n + s.n_other == 0:
            return 0.0, comm_alone, 0.0, comm_alone
        comp_alone, _ = self._rates(s.comp_node, None, s.n, s.n_other)
        comp, comm = self._rates(s.comp_node, s.comm_node, s.n, s.n_other)
        return comp_alone, comm_alone, comp, comm

    def network_streams(
        self, comp_node: int | None, comm_node: int | None, n: int, n_other: int
    ) -> list[Stream]:
        """The streams at work: the cores of each computing socket, then the NIC; None: that side is idle."""
        streams = []
        if comp_node is not None:
            computing = enumerate(self.shape.spread(n, n_other))
            streams = [self.cores(socket, count, comp_node) for socket, count in computing if count]
        if comm_node is not None:
            streams.append(self.receiving(comm_node))
        return streams

    def _rates(
        self, comp_node: int | None, comm_node: int | None, n: int, n_other: int
    ) -> tuple[float, float]:
        key = (comp_node, comm_node, n, n_other)
        if key not in self.solutions:
            self.solutions[key] = solve(self.network_streams(*key), self._resources)
        rates = self.solutions[key]
        cores = len(rates) - (comm_node is not None)
        return sum(rates[:cores]), sum(rates[cores:])

    def side(self, local: bool) -> DataSide:
        """What holds of local, or remote, data; UsageError where that is not known."""
        side = self.network.local if local else self.network.remote
        if side is None:
            raise UsageError(
                f"{self.shape.name} has no parameters of remote accesses",
                field="remote",
                hint="choose nodes of the first socket, or add them to its definition",
            )
        return side

    def cores(self, socket: int, count: int, node: int) -> Stream:
        """So many cores of a socket that write to a node."""
        target = self.shape.socket(node)
        side = self.side(target == socket)
        route = {f"uplink {socket}": side.uplink_work, f"memory {node}": side.memory_work}
        if target != socket:
            route[f"link {socket} to {target}"] = 1.0
        return Stream(
            credits=count * self.network.line_fill_buffers * LINE,
            latency=side.core_latency,
            most=count * side.core_rate,
            route=route,
        )

    def receiving(self, node: int) -> Stream:
        """The NIC that writes large messages to a node."""
        side = self.side(self.shape.local(node))
        route = {f"memory {node}": side.nic_work, **self.from_nic(node)}
        return Stream(credits=side.nic_credits, latency=side.nic_latency, most=side.nic_rate, route=route)

    def from_nic(self, node: int) -> dict[str, float]:
        """The link that lines of the NIC's socket take to a node, if any."""
        home, target = self.shape.socket(self.shape.nic_node or 0), self.shape.socket(node)
        return {} if target == home else {f"link {home} to {target}": 1.0}

    def to_nic(self, node: int) -> dict[str, float]:
        """The link that lines of a node take to the NIC's socket, if any."""
        home, source = self.shape.socket(self.shape.nic_node or 0), self.shape.socket(node)
        return {} if source == home else {f"link {source} to {home}": 1.0}


LINE_FILL_BUFFERS = 10
"""Outstanding lines of an x86 core since Nehalem; ThunderX2 is taken alike."""

ISSUE_SLACK = 1.2
"""Credits of a core over what its own issue rate needs on an idle machine: curves are straight at first."""

MEMORY_DELAY, UPLINK_DELAY, LINK_DELAY = 0.008, 0.004, 0.004
"""Scales of waiting, us: a controller at 90 % of its capacity adds 65 ns, half an idle latency."""

LOOSE_UPLINK, LOOSE_LINK, LOOSE_MEMORY = 1.35, 1.5, 1 / 0.9
"""Capacity of what is not the bottleneck, over what was ever seen to pass."""

PATH_BOUND = 0.97
"""Cores that keep this share beside communications are held up before the controller, not at it."""

NIC_LATENCY = (0.25, 1.5)
"""Range of the round trip of a DMA write's credit, us: up to what PCIe takes for a read."""

CREDIT_SLACK = 1.05
NIC_WORK = (0.5, 3.0)
FULL = 0.999
"""Share of a controller that the NIC's lines fill at most: beyond, no rate of the cores is a fixed point."""

UNBOUNDED = 20.0


def credits(model: Threshold) -> Credits:
    """The truth G2 of a machine with these parameters; UsageError when the local ones are missing."""
    return Credits(scaled_network(model))


def scaled_network(model: Threshold) -> NodeResources:
    """Scales the network, the cores first and the NIC last: each value by bisection on what it decides."""
    local, remote = model.local, model.remote
    if local is None:
        raise UsageError(
            "has no parameters of local accesses", field="local", hint="add a table [local] with all of them"
        )
    regular = _regular(model.shape)
    most = max(local.t_par_max, local.t_seq_max)
    far = max(remote.t_par_max, remote.t_seq_max) if remote is not None else most
    network = NodeResources(
        shape=msgspec.structs.replace(regular, virtual=True),
        line_fill_buffers=LINE_FILL_BUFFERS,
        uplink=Resource(capacity=LOOSE_UPLINK * local.t_seq_max, delay=UPLINK_DELAY),
        link=Resource(capacity=LOOSE_LINK * far, delay=LINK_DELAY),
        memory=Resource(capacity=LOOSE_MEMORY * local.t_par_max, delay=MEMORY_DELAY),
        local=_side(local),
        remote=_side(remote) if remote is not None else None,
    )
    network = _scale_local(network, local)
    network = _scale_nic(network, local, "local")
    if remote is not None:
        network = _scale_remote(network, remote)
        network = _scale_nic(network, remote, "remote")
    return msgspec.structs.replace(network, shape=msgspec.structs.replace(model.shape, virtual=True))


def _regular(shape: Shape) -> Shape:
    """Of sockets that are not alike, two like the first one: all values are of its cores, with data in their
    own nodes or in those of another socket.
    """
    if isinstance(shape.layout, msgspec.UnsetType):
        return shape
    far = shape.nic_node is not None and not shape.local(shape.nic_node)
    return msgspec.structs.replace(
        shape, sockets=2, layout=msgspec.UNSET, nic_node=shape.numa_per_socket if far else 0
    )


def _side(p: Parameters) -> DataSide:
    return DataSide(
        core_rate=p.b_comp_seq,
        core_latency=LINE_FILL_BUFFERS * LINE / (ISSUE_SLACK * p.b_comp_seq),
        nic_rate=p.b_comm_seq,
        # Until _scale_nic knows better: the rate alone binds.
        nic_credits=p.b_comm_seq * NIC_LATENCY[1],
        nic_latency=NIC_LATENCY[0],
    )


def _together(p: Parameters) -> float:
    """What the cores get beside communications at their worst, MB/s."""
    return p.t_par_max2 - p.alpha * p.b_comm_seq


def _path_bound(p: Parameters) -> bool:
    return _together(p) > PATH_BOUND * p.t_seq_max


def _scale_local(machine: NodeResources, p: Parameters) -> NodeResources:
    """All cores alone reach t_seq_max: by the uplink where communications cost them nothing, else by the
    controller.
    """
    if _path_bound(p):

        def bounded(capacity: float) -> NodeResources:
            uplink = Resource(capacity=capacity, delay=UPLINK_DELAY)
            return msgspec.structs.replace(machine, uplink=uplink)
    else:

        def bounded(capacity: float) -> NodeResources:
            memory = Resource(capacity=capacity, delay=MEMORY_DELAY)
            return msgspec.structs.replace(machine, memory=memory)

    return bounded(
        _root(
            lambda capacity: _alone(bounded(capacity), 0) - p.t_seq_max,
            p.t_seq_max,
            UNBOUNDED * p.t_seq_max,
        )
    )


def _scale_remote(machine: NodeResources, p: Parameters) -> NodeResources:
    """As _scale_local with data of the other socket: by what a remote line costs more than a local one."""
    field = "uplink_work" if _path_bound(p) else "memory_work"
    assert machine.remote is not None
    remote = machine.remote

    def bounded(work: float) -> NodeResources:
        return msgspec.structs.replace(machine, remote=msgspec.structs.replace(remote, **{field: work}))

    node = machine.shape.numa_per_socket
    return bounded(_root(lambda work: p.t_seq_max - _alone(bounded(work), node), 1.0, UNBOUNDED))


def _alone(machine: NodeResources, node: int) -> float:
    truth = Credits(machine)
    streams = truth.network_streams(node, None, machine.shape.cores_first_socket, 0)
    return solve(streams, truth.resources)[0]


def _scale_nic(machine: NodeResources, p: Parameters, where: str) -> NodeResources:
    """The NIC's lines cost so much at the controller that the cores fall to what they got together, and its
    credits and latency let it keep `alpha` then; within NIC_WORK and NIC_LATENCY, so not always exactly.
    """
    node = 0 if where == "local" else machine.shape.numa_per_socket
    side: DataSide = getattr(machine, where)
    truth = Credits(machine)
    cores, nic = truth.network_streams(node, node, machine.shape.cores_first_socket, 0)
    kept = p.alpha * p.b_comm_seq

    def nic_at(route: dict[str, float]) -> Stream:
        return msgspec.structs.replace(nic, route=route)

    def worst(work: float) -> tuple[float, float]:
        """What the cores get, and how long a line of the NIC waits, while the NIC keeps that much."""
        route = {**nic.route, f"memory {node}": work}
        taken = {name: share * kept for name, share in route.items()}
        (rate,) = solve((cores,), truth.resources, taken)
        used = utilisation((cores, nic_at(route)), (rate, kept), truth.resources)
        return rate, sum(w * truth.resources[name].waiting(used[name]) for name, w in route.items())

    capacity = truth.resources[f"memory {node}"].capacity
    low, high = NIC_WORK
    high = min(high, FULL * capacity / kept)
    work = _root(lambda work: _together(p) - worst(work)[0], min(low, high), high)
    waiting = worst(work)[1]
    shortest, longest = NIC_LATENCY
    latency = CREDIT_SLACK * waiting * p.alpha / (1 - p.alpha) if p.alpha < 1 else longest
    latency = min(max(latency, shortest), longest)
    route = {**nic.route, f"memory {node}": work}
    # A controller that is slower than the NIC holds it up when idle, too.
    reached = min(p.b_comm_seq, FULL * capacity / work)
    used = utilisation((nic_at(route),), (reached,), truth.resources)
    idle = sum(w * truth.resources[name].waiting(used[name]) for name, w in route.items())
    # Enough to keep alpha at worst, and in any case for the full rate on an idle machine.
    credit = max(p.alpha * (latency + waiting), latency + idle) * p.b_comm_seq
    scaled = msgspec.structs.replace(side, nic_work=work, nic_latency=latency, nic_credits=credit)
    return msgspec.structs.replace(machine, **{where: scaled})


def _root(rising: Callable[[float], float], low: float, high: float) -> float:
    """Where a rising function crosses 0, by bisection to the last digits; the nearer end if it does not."""
    if rising(low) >= 0:
        return low
    if rising(high) <= 0:
        return high
    while high / low > 1 + 1e-12:
        middle = math.sqrt(low * high)
        if rising(middle) >= 0:
            high = middle
        else:
            low = middle
    return high
