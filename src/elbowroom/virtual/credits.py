"""G2: a whole machine as a closed network of credits (virtual/network.py).

Computing cores have their line-fill buffers, the NIC a bounded number of lines between its root complex and
memory. Their lines go through the uplink of the socket (cores only), the link between the sockets (one
resource per direction) and the memory controller of the data's node. Nothing here says who wins: with more
cores more lines are under way, everybody waits longer, and the NIC, whose credits are only just enough on an
idle machine, loses throughput.
"""

from __future__ import annotations

from collections.abc import Hashable

import msgspec

from elbowroom.errors import UsageError
from elbowroom.models.curves import Shape, Situation, Streams
from elbowroom.virtual.definition import CLOCK_GHZ, FAR_LATENCY_US, FLOPS_PER_CYCLE, NEAR_LATENCY_US
from elbowroom.virtual.network import LINE, Resource, Stream, solve
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


class Network(msgspec.Struct, frozen=True, kw_only=True):
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

    def __init__(self, network: Network) -> None:
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
        """Every shared resource by name."""
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
