"""G2 for whatever a node does at once: cores of either socket on any nodes at any arithmetic intensity,
messages of any size that come and go, copies of accelerators (docs/reference/virtual-truths.md).

All are streams of one closed network of credits (virtual/network.py), so nobody is told who loses:

- **Computing cores** circulate their line-fill buffers between memory and their own arithmetic.
- **Messages** of a size take their set-up, their lines' latency and their bytes; sizes that are None are
  endless.
- **Sending** reads lines: their round trip takes READ_LATENCY longer, the NIC has credits for its full rate
  on an idle machine, and a line that is read costs a controller what a core's line costs.
- **Both** directions at once are both streams; a link of the network carries both.
- **Copies** have credits for their demand on an idle machine too, and share the root complex with the NIC. It
  carries ROOT_OVER times what the NIC does. Accelerators are on the NIC's socket.

For `load_of(situation)` it is the network of virtual/credits.py and its answer.

Some streams also wait for something of their own: arithmetic, or the wire. Such a stream is a closed loop of
m customers that are served one at a time and then spend the latency L of virtual/network.py in memory. By the
mean value analysis of closed queueing networks in Schweitzer's approximation (Lazowska et al., Quantitative
System Performance, 1984, chapter 6) a service of length S takes, with its wait, S / (1 - u (m - 1)/m), u
being the server's use.

**Cores** of arithmetic intensity I: m line-fill buffers each, S = 64 B x I / peak. A core is slower than both
its memory and its arithmetic, most where they are equal, and reaches either where the other is nothing.

**Messages** of s bytes, m at a time. One takes a set-up outside of memory; its first line is there after L,
the others follow at the wire's rate B, or as their credits C come back, which is C / L when memory is slow.
With f = latency of the smallest message on an idle machine less that of its lines, one message at a time
takes

    f + L + s max(1/B, L/C)

so that its latency as well as its bandwidth suffer when L grows. Several at a time wait for the wire (S =
s/B) or for the credits (S = s L/C). Many large messages are the stream of lines that virtual/credits.py
knows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from elbowroom.errors import UsageError
from elbowroom.models.load import Computing, Copy, Load, check_load
from elbowroom.virtual.credits import CREDIT_SLACK, LINK_DELAY, Credits
from elbowroom.virtual.definition import Definition
from elbowroom.virtual.machines import truth_of
from elbowroom.virtual.network import Resource, Stream, solve
from elbowroom.virtual.requests import Requests, request_load_streams
from elbowroom.virtual.truth import LoadStreams, MessageFlow, StreamRates, Truth, flows_of, streams_of


def served(rate: float, capacity: float, size: float, customers: int) -> tuple[float, float]:
    """What a loop's round at that rate (MB/s) leaves for memory, us, and its slope: all its customers' bytes
    over the rate, less the service with its wait. `size`: bytes of a customer.
    """
    # m s / rate - (s / capacity) / (1 - rate / capacity (m - 1)/m), without the difference of alike numbers.
    others = (customers - 1) / customers
    free = capacity - others * rate
    left = customers * size * (capacity - rate) / (rate * free)
    return left, -customers * size / (rate * rate) - size * others / (free * free)


class Cores(Stream, frozen=True, kw_only=True):
    """Cores with `buffers` lines under way each; arithmetic of them all does `capacity` MB/s."""

    buffers: int
    capacity: float

    def idle(self) -> float:
        """About the rate on an idle machine, MB/s: where to begin."""
        return min(self.most, 1 / (self.latency / self.credits + 1 / self.capacity))

    def bearable(self, rate: float) -> tuple[float, float]:
        """The latency of memory (us) with which they reach that rate, and its slope."""
        return served(rate, self.capacity, self.credits / self.buffers, self.buffers)


class MessageStream(Stream, frozen=True, kw_only=True):
    """`in_flight` messages of `size` bytes at a time. `credits` (bytes), `latency` (us, of a line) and `most`
    (MB/s) are the NIC's, `setup` f (us).
    """

    size: float
    in_flight: int
    setup: float

    def idle(self) -> float:
        """About the rate on an idle machine, MB/s: where to begin."""
        one = self.setup + self.latency * (1 + self.size / self.credits)
        return min(self.most, self.credits / self.latency, self.in_flight * self.size / one)

    def circulating(self) -> float:
        """Bytes of the messages on their way, not only of the lines."""
        return max(self.credits, self.in_flight * self.size)

    def bearable(self, rate: float) -> tuple[float, float]:
        """The latency of lines (us) with which messages reach that rate, and its slope."""
        return min(self._by_wire(rate), self._by_credits(rate))

    def _by_wire(self, rate: float) -> tuple[float, float]:
        left, slope = served(rate, self.most, self.size, self.in_flight)
        return left - self.setup, slope

    def _by_credits(self, rate: float) -> tuple[float, float]:
        """The part of the credits in use, x, solves m s / rate = f + L + (s L/C) / (1 - x (m - 1)/m) with
        L = x C / rate.
        """
        others = (self.in_flight - 1) / self.in_flight
        left = self.in_flight * self.size - self.setup * rate
        half = self.credits + self.size + left * others
        root = math.sqrt(half * half - 4 * self.credits * others * left)
        used = 2 * left / (half + root)
        growth = -self.setup * (1 - others * used) / root
        latency = used * self.credits / rate
        return latency, (growth * self.credits - latency) / rate


READ_LATENCY = 0.5
"""Us that a line takes longer to be read than for a write's credit to come back: assumed, of the order of a
PCIe round trip (Neugebauer et al., Understanding PCIe performance for end host networking, SIGCOMM 2018).
"""

COPY_LATENCY = 1.0
"""Us of a copy engine's line on an idle machine: assumed."""

ROOT_OVER = 2.5
"""A root complex's capacity over the NIC's rate: a few slots as wide as the NIC's."""

NEARLY_FULL = 0.9
"""A device's credits are for so much of what its route carries, if it asks for more."""


def load_streams(machine: Truth | Definition, load: Load) -> LoadStreams:
    """What a machine gives a load, by its network of credits or line by line (virtual/requests.py); a truth
    keeps its solutions, a definition none.

    UsageError for what the machine has not, and for the published curves, which say nothing of loads.
    """
    truth = truth_of(machine) if isinstance(machine, Definition) else machine
    if isinstance(truth, Requests):
        return request_load_streams(truth, load)
    if not isinstance(truth, Credits):
        raise UsageError(
            "the published curves do not cover loads",
            field="machine",
            value=truth.shape.name,
            hint=f"use the network of credits: {truth.shape.name}:credits",
        )
    check_load(truth.shape, load)
    flows = flows_of(load, truth.network.near_latency)
    together = rates(truth, load.computing, flows, load.copies)
    alone = rates(truth, load.computing, (), ()), rates(truth, (), flows, ())
    return streams_of(*alone, together)


def rates(
    truth: Credits, computing: Sequence[Computing], flows: Sequence[MessageFlow], copies: Sequence[Copy]
) -> StreamRates:
    """What all get at once. Nothing is checked; solutions are kept."""
    key = (tuple(computing), tuple(flows), tuple(copies))
    if key not in truth.solutions:
        resources = dict(truth.resources)
        if copies:
            resources["root"] = _root(truth)
        streams = [_computing(truth, group) for group in computing]
        streams += [_flow(truth, flow, shared=bool(copies)) for flow in flows]
        streams += [_copy(truth, copy, resources) for copy in copies]
        truth.solutions[key] = solve(streams, resources)
    solution, groups, messages = truth.solutions[key], len(computing), len(computing) + len(flows)
    return StreamRates(groups=solution[:groups], flows=solution[groups:messages], copies=solution[messages:])


def _computing(truth: Credits, group: Computing) -> Stream:
    plain = truth.cores(group.socket, group.count, group.node)
    if group.intensity == 0:
        return plain
    arithmetic = group.count * truth.network.core_peak / group.intensity
    return Cores(
        credits=plain.credits,
        latency=plain.latency,
        most=min(plain.most, arithmetic),
        route=plain.route,
        buffers=truth.network.line_fill_buffers,
        capacity=arithmetic,
    )


def _flow(truth: Credits, flow: MessageFlow, *, shared: bool) -> Stream:
    plain = _sending(truth, flow.node) if flow.sending else truth.receiving(flow.node)
    route = {**plain.route, "root": 1.0} if shared else plain.route
    credits, most = flow.share * plain.credits, flow.share * plain.most
    if flow.size is None:
        return Stream(credits=credits, latency=plain.latency, most=most, route=route)
    return MessageStream(
        credits=credits,
        latency=plain.latency,
        most=most,
        route=route,
        size=flow.size,
        in_flight=flow.in_flight,
        setup=flow.latency - plain.latency,
    )


def _sending(truth: Credits, node: int) -> Stream:
    """The NIC that reads large messages from a node."""
    side = truth.side(truth.shape.local(node))
    route = {f"memory {node}": 1.0, **truth.to_nic(node)}
    return _asking(
        truth.resources,
        latency=side.nic_latency + READ_LATENCY,
        most=side.nic_rate,
        route=route,
    )


def _copy(truth: Credits, copy: Copy, resources: Mapping[str, Resource]) -> Stream:
    route = {"root": 1.0, f"memory {copy.node}": 1.0, **truth.from_nic(copy.node)}
    return _asking(resources, latency=COPY_LATENCY, most=copy.demand, route=route)


def _asking(
    resources: Mapping[str, Resource],
    *,
    latency: float,
    most: float,
    route: Mapping[str, float],
) -> Stream:
    """A device with credits for its full rate on an idle machine, or for most of what its route carries, and
    CREDIT_SLACK over that.
    """
    rate = min(most, *(NEARLY_FULL * resources[name].capacity / work for name, work in route.items()))
    used = {name: work * rate / resources[name].capacity for name, work in route.items()}
    waited = sum(work * resources[name].waiting(used[name]) for name, work in route.items())
    credits = CREDIT_SLACK * rate * (latency + waited)
    return Stream(credits=credits, latency=latency, most=most, route=route)


def _root(truth: Credits) -> Resource:
    sides = [side for side in (truth.network.local, truth.network.remote) if side is not None]
    return Resource(capacity=ROOT_OVER * max(side.nic_rate for side in sides), delay=LINK_DELAY)
