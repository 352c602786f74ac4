"""Received and released areas: when each rank gets the data, and when it has no more to forward."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom.broadcast.measured import BroadcastEntry
from elbowroom.broadcast.simulated import BroadcastRequest, SimulatedBroadcast
from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.errors import UsageError
from elbowroom.quantities import format_size

MEGA = 1e6
"""us in a second, and B/s in a MB/s."""


class BroadcastDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One broadcast: `time_us` until the last recipient has the data, `bandwidth` (MB/s) is the size over
    that time; `received_us` and `released_us` in the order of ranks, the latter from the root on. `simulated`
    false: medians of what was measured, or, if `predicted`, times of the cost model, which has none for
    single ranks.
    """

    schema: str = "elbowroom/broadcast"
    version: int = 1
    simulated: bool
    predicted: bool
    time_us: float
    bandwidth: float
    tree: str
    segment: int
    recipients: int
    size: int
    received_us: tuple[float, ...]
    released_us: tuple[float, ...]


class AreasDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `broadcast areas --json` prints: a broadcast for each tree, and the recipients' priorities (none:
    all alike).
    """

    schema: str = "elbowroom/broadcast-areas"
    version: int = 1
    priorities: tuple[int, ...]
    broadcasts: tuple[BroadcastDocument, ...]

    @property
    def title(self) -> str:
        """`409 KiB to 38 recipients, simulated`."""
        first = self.broadcasts[0]
        source = "simulated" if first.simulated else "measured"
        return f"{format_size(first.size)} to {first.recipients} recipients, {source}"


def broadcast_document(simulated: SimulatedBroadcast, request: BroadcastRequest) -> BroadcastDocument:
    """A simulated broadcast and what was asked, as one document."""
    return BroadcastDocument(
        simulated=True,
        predicted=False,
        time_us=simulated.seconds * MEGA,
        bandwidth=request.size / simulated.seconds / MEGA,
        tree=simulated.tree,
        segment=simulated.segment,
        recipients=request.recipients,
        size=request.size,
        received_us=tuple(time * MEGA for time in simulated.received),
        released_us=tuple(time * MEGA for time in simulated.released),
    )


def predicted_document(
    tree: str, segment: int, seconds: float, request: BroadcastRequest
) -> BroadcastDocument:
    """What the cost model says of a broadcast."""
    return BroadcastDocument(
        simulated=False,
        predicted=True,
        time_us=seconds * MEGA,
        bandwidth=request.size / seconds / MEGA,
        tree=tree,
        segment=segment,
        recipients=request.recipients,
        size=request.size,
        received_us=(),
        released_us=(),
    )


def measured_areas(entries: Sequence[BroadcastEntry]) -> AreasDocument:
    """The measured broadcasts of one size to one number of recipients. UsageError where there are several."""
    if not entries:
        raise UsageError("holds no broadcast", field="from", hint="measure with broadcast bench --json")
    for field, values in (
        ("sizes", {entry.size for entry in entries}),
        ("recipients", {entry.ranks - 1 for entry in entries}),
        ("priorities", {entry.priorities for entry in entries}),
    ):
        if len(values) > 1:
            raise UsageError(
                f"holds broadcasts of several {field}: {', '.join(map(str, sorted(values)))}",
                field="from",
                hint=f"measure one of the {field} with broadcast bench --rising --json",
            )
    first = entries[0]
    for entry in entries:
        if (len(entry.received), len(entry.released)) != (first.ranks - 1, first.ranks):
            raise UsageError(
                f"has other times than one for each of {first.ranks} ranks",
                field="from",
                hint="give what `elbowroom broadcast bench --json` prints",
            )
    rising = tuple(range(1, first.ranks)) if first.priorities == "rising" else ()
    return AreasDocument(priorities=rising, broadcasts=tuple(map(_measured_document, entries)))


def _measured_document(entry: BroadcastEntry) -> BroadcastDocument:
    return BroadcastDocument(
        simulated=False,
        predicted=False,
        time_us=entry.time.median,
        bandwidth=entry.bandwidth,
        tree=entry.tree,
        segment=entry.segment,
        recipients=entry.ranks - 1,
        size=entry.size,
        received_us=entry.received,
        released_us=entry.released,
    )


def area_figures(broadcasts: Sequence[BroadcastDocument]) -> tuple[Figure, ...]:
    """A panel for each broadcast, over the rank, as Figs 4.5 and 4.6 of Swartvagher's thesis: the lower line
    is when a rank has the data, the upper one when it has forwarded them.
    """
    highest = max(max(one.released_us) for one in broadcasts)
    return tuple(_figure(one, highest) for one in broadcasts)


def _figure(broadcast: BroadcastDocument, highest: float) -> Figure:
    received = broadcast.received_us
    ranks = tuple(float(rank) for rank in range(1, len(received) + 1))
    segments = f", segments of {format_size(broadcast.segment)}" if broadcast.segment else ""
    return Figure(
        name=f"areas-{broadcast.tree}",
        title=f"{broadcast.tree}{segments}",
        x=Axis(label="rank", whole=True),
        left=Axis(label="time (µs)", reach=highest),
        series=(
            Series(
                name="from RECEIVED to RELEASED",
                side="communication",
                style="line",
                drawn="smooth",
                x=ranks,
                y=received,
                low=received,
                high=broadcast.released_us[1:],
                value="received",
                band="received – released",
            ),
        ),
    )
