"""Received and released areas: when each rank gets the data, and when it has no more to forward."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.broadcast.simulated import SimulatedBroadcast
from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.plan.sizes import format_size

MICRO = 1e6
"""us in a second."""


def area_figures(broadcasts: Sequence[SimulatedBroadcast]) -> tuple[Figure, ...]:
    """A panel for each broadcast, over the rank, as Figs 4.5 and 4.6 of Swartvagher's thesis: the lower line
    is when a rank has the data, the upper one when it has forwarded them.
    """
    highest = max(max(simulated.released) for simulated in broadcasts) * MICRO
    return tuple(_figure(simulated, highest) for simulated in broadcasts)


def _figure(simulated: SimulatedBroadcast, highest: float) -> Figure:
    received = tuple(time * MICRO for time in simulated.received)
    released = tuple(time * MICRO for time in simulated.released[1:])
    ranks = tuple(float(rank) for rank in range(1, len(received) + 1))
    segments = f", segments of {format_size(simulated.segment)}" if simulated.segment else ""
    return Figure(
        name=f"areas-{simulated.tree}",
        title=f"{simulated.tree}{segments}",
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
                high=released,
                value="received",
                band="received – released",
            ),
        ),
    )
