"""What the published curves do not say, as simple laws: kernels, message sizes, threads, processes.

They are for G1 (docs/reference/virtual-truths.md); the network of credits answers by itself
(virtual/hosts.py). The curves describe non-temporal memset while large messages are received. Everything else
is expressed in their terms:

- **Kernels** move what memset_nt moves over the bus: their rate is that times algorithmic over bus bytes.
- **Arithmetic intensity** (roofline): a core that computes longer than memory would take asks for the share d
  of what a memset core asks for; n such cores weigh like n d memset cores, interpolated between counts.
- **Kernels without memory traffic** lose nothing and take nothing.
- **Message size**: D(s) = s / (t0 + s/B). Computation loses in proportion to D(s)/B: what the NIC moves on
  average. Together B is what large messages get, and the share MEMORY_OF_LATENCY of t0 grows as B shrinks.
- **k communication threads** send k such messages at once, up to B; reception keeps two in flight.
- **One process per socket**: the processes of a host share the NIC evenly and compute on nodes of their own.
- Sending loads memory as receiving does, and both directions at once do not disturb each other.
"""

from __future__ import annotations

import math

import msgspec

from elbowroom.models.curves import Situation, Streams
from elbowroom.plan.kernels import Kernel, find
from elbowroom.virtual.definition import Definition
from elbowroom.virtual.truth import Truth

MEMORY_OF_LATENCY = 0.5
"""Share of a small message's latency that is spent in memory and grows with its load."""

RECEPTION_IN_FLIGHT = 2

CYCLES_PER_ITEM = {
    # Kernels without memory traffic, cycles of a core for one item (plan/kernels.py).
    "prime": 24.0,
    "fma": 0.125,
    "fma128": 0.5,
    "fma256": 0.25,
    "fma512": 0.125,
    "load_cache": 0.5,
    "triad_cache": 1.5,
    "triad_llc": 6.0,
}


class Work(msgspec.Struct, frozen=True, kw_only=True):
    """What one process computes: so many cores of each socket, with data on a node."""

    kernel: str
    cursor: int
    cores: tuple[int, ...]
    comp_node: int

    @property
    def n(self) -> int:
        """Cores of the first socket."""
        return self.cores[0]

    @property
    def n_other(self) -> int:
        """Cores of all other sockets."""
        return sum(self.cores[1:])


class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """What one process communicates. `share`: its part of the NIC; `far`: thread not on the NIC's socket."""

    size: int
    comm_node: int
    pattern: str
    threads: int = 1
    share: float = 1.0
    far: bool = False


class ProcessRates(msgspec.Struct, frozen=True, kw_only=True):
    """Rates of the computation (unit of its kernel, all cores; None without kernel) and of the communication
    (MB/s), and half round trips (us), alone and together.
    """

    comp_alone: float | None
    comp_together: float | None
    comm_alone: float
    comm_together: float
    latency_alone: float
    latency_together: float


def answer(truth: Truth, definition: Definition, work: Work, messages: Exchange) -> ProcessRates:
    """Both sides, alone and together; UsageError where the truth says nothing of the placement."""
    kernel = find(work.kernel)
    comp_alone, large_alone, comp_beside, large_together = _large(truth, definition, kernel, work, messages)
    kept = large_together / large_alone
    base = definition.far_latency_us if messages.far else definition.near_latency_us
    stretched = base * (1 + MEMORY_OF_LATENCY * (1 / kept - 1))
    alone = _rate(messages, base, large_alone * messages.share)
    together = _rate(messages, stretched, large_together * messages.share)
    # Cores lose to what the NIC moves on average, which for small messages is little.
    moved = alone / large_alone
    comp_together = comp_alone - moved * (comp_alone - comp_beside)
    scale = unit_of(definition, kernel)
    return ProcessRates(
        comp_alone=None if kernel is None else comp_alone * scale,
        comp_together=None if kernel is None else comp_together * scale,
        comm_alone=alone,
        comm_together=together,
        latency_alone=base + messages.size / (large_alone * messages.share),
        latency_together=stretched + messages.size / (large_together * messages.share),
    )


def _rate(messages: Exchange, latency: float, bandwidth: float) -> float:
    """MB/s of that many messages at a time."""
    at_once = messages.threads * (RECEPTION_IN_FLIGHT if messages.pattern == "receive" else 1)
    return min(at_once * messages.size / (latency + messages.size / bandwidth), bandwidth)


def _large(
    truth: Truth, definition: Definition, kernel: Kernel | None, work: Work, messages: Exchange
) -> Streams:
    """The truth for large messages, the computation in MB/s of its bus (in cores without memory traffic)."""
    if kernel is None or not kernel.moves_memory:
        idle = truth.streams(_situation(work, messages, 0, 0))
        busy = float(work.n + work.n_other)
        return busy, idle[1], busy, idle[1]
    share = _demand(truth, definition, kernel, work, messages)
    return _between(truth, work, messages, work.n * share, work.n_other * share)


def _demand(truth: Truth, definition: Definition, kernel: Kernel, work: Work, messages: Exchange) -> float:
    """What a core asks for, as a share of what a memset core alone gets (roofline)."""
    flops = kernel.flops * (work.cursor if kernel.uses_cursor else 1)
    if flops == 0:
        return 1.0
    arithmetic = kernel.bus_bytes * definition.core_peak / flops
    one = (1, 0) if work.n else (0, 1)
    memset = truth.streams(_situation(work, messages, *one))[0]
    return min(1.0, arithmetic / memset)


def _between(truth: Truth, work: Work, messages: Exchange, n: float, n_other: float) -> Streams:
    """The truth between whole numbers of cores: bilinear."""
    means = [0.0, 0.0, 0.0, 0.0]
    for count, weight in _neighbours(n):
        for other, more in _neighbours(n_other):
            for k, value in enumerate(truth.streams(_situation(work, messages, count, other))):
                means[k] += weight * more * value
    return means[0], means[1], means[2], means[3]


def _neighbours(count: float) -> list[tuple[int, float]]:
    below = math.floor(count)
    part = count - below
    return [(below, 1 - part), (below + 1, part)] if part > 0 else [(below, 1.0)]


def _situation(work: Work, messages: Exchange, n: int, n_other: int) -> Situation:
    return Situation(comp_node=work.comp_node, comm_node=messages.comm_node, n=n, n_other=n_other)


def unit_of(definition: Definition, kernel: Kernel | None) -> float:
    """From MB/s of the bus (or cores, without memory traffic) to the kernel's unit."""
    if kernel is None:
        return 1.0
    if kernel.moves_memory:
        return kernel.algorithmic_bytes / kernel.bus_bytes
    items = definition.clock_ghz * 1e3 / CYCLES_PER_ITEM[kernel.name]  # million items a second and core
    per_item = {"M/s": 1.0, "MB/s": kernel.algorithmic_bytes, "Mflop/s": kernel.flops}
    return items * per_item[kernel.rate_unit]
