"""Broadcasts: simulated ones."""

from __future__ import annotations

import msgspec

from elbowroom.broadcast.simulated import BroadcastRequest as BroadcastRequest
from elbowroom.broadcast.simulated import SimulatedBroadcast as SimulatedBroadcast
from elbowroom.broadcast.simulated import parse_latency as parse_latency
from elbowroom.broadcast.simulated import parse_rate as parse_rate
from elbowroom.launch import simulator

MEGA = 1e6
"""B/s in a MB/s."""


class BroadcastDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `broadcast simulate --json` prints: `time_us` until the last recipient has the data, `bandwidth`
    (MB/s) is the size over that time; `received_us` and `released_us` in the order of ranks, the latter from
    the root on.
    """

    schema: str = "elbowroom/broadcast"
    version: int = 1
    time_us: float
    bandwidth: float
    tree: str
    segment: int
    recipients: int
    size: int
    received_us: tuple[float, ...]
    released_us: tuple[float, ...]


def simulate_broadcast(
    recipients: int,
    size: int,
    *,
    bandwidth: float,
    latency: float,
    tree: str = "binomial",
    segment: int = 0,
) -> SimulatedBroadcast:
    """Sends `size` bytes to `recipients` over a simulated cluster, by the library that does it for real: each
    node has a link of `bandwidth` B/s in each direction and `latency` s to one switch. `segment`: bytes, 0
    for the whole message. UsageError for what cannot be simulated.
    """
    return simulator.simulate_broadcast(
        BroadcastRequest(
            recipients=recipients, size=size, bandwidth=bandwidth, latency=latency, tree=tree, segment=segment
        )
    )


def broadcast_document(simulated: SimulatedBroadcast, request: BroadcastRequest) -> BroadcastDocument:
    """A simulated broadcast and what was asked, as one document."""
    return BroadcastDocument(
        time_us=simulated.seconds * 1e6,
        bandwidth=request.size / simulated.seconds / MEGA,
        tree=request.tree,
        segment=request.segment,
        recipients=request.recipients,
        size=request.size,
        received_us=tuple(time * 1e6 for time in simulated.received),
        released_us=tuple(time * 1e6 for time in simulated.released),
    )
