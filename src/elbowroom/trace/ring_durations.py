"""Durations of messages in a ring of simulated clocks, by how often the clocks are compared (thesis, Fig.
3.16).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from elbowroom.draw.figure import Axis, Figure, Hue, Series
from elbowroom.trace.documents import SyncPoint
from elbowroom.trace.simulated_clocks import ShownClock, SimulatedClocks

Ints = npt.NDArray[np.int64]

MESSAGE_NS = 1500
"""The latency of the simulated links (lib/clock/simulation.cpp): what each message truly takes."""

COMPARISONS: tuple[tuple[str, Hue], ...] = (
    ("one comparison, at the start", "black"),
    ("two, at the start and the end", "red"),
    ("all comparisons", "blue"),
)


def ring_durations(clocks: Sequence[ShownClock]) -> tuple[Ints, list[Ints]]:
    """When messages are sent, ns since the start, and for each of COMPARISONS the durations that corrected
    times give them. At each moment one message goes from the reference to the first clock, from each clock to
    the next, and from the last one back.
    """
    moments = min(len(clock.errors) for clock in clocks)
    at = np.array([error.local for error in clocks[0].errors[:moments]], dtype=np.int64)
    errors = [_errors(clock, moments) for clock in clocks]
    durations = []
    for way in range(len(COMPARISONS)):
        own = [np.zeros(moments, dtype=np.int64), *(error[way] for error in errors)]
        ring = [MESSAGE_NS + after - before for before, after in zip(own, [*own[1:], own[0]], strict=True)]
        durations.append(np.concatenate(ring))
    return np.tile(at - at[0], len(clocks) + 1), durations


def _errors(clock: ShownClock, moments: int) -> list[Ints]:
    """The errors of the corrected times of one clock, by COMPARISONS: those of all are in the document; the
    others differ from them by the difference of the offsets.
    """
    local = np.array([error.local for error in clock.errors[:moments]], dtype=np.int64)
    every = np.array([error.error_ns for error in clock.errors[:moments]], dtype=np.int64)
    used = [point for point in clock.points if point.used]
    first = used[0]
    offsets = _changes(used, first, local)
    return [every - offsets, every + _changes([first, used[-1]], first, local) - offsets, every]


def _changes(points: Sequence[SyncPoint], first: SyncPoint, local: Ints) -> Ints:
    """Offsets less the first one: linear between the points, constant outside of them."""
    at = np.array([point.local - first.local for point in points], dtype=np.float64)
    change = np.array([point.offset - first.offset for point in points], dtype=np.float64)
    return np.rint(np.interp(local - first.local, at, change)).astype(np.int64)


def ring_figure(simulation: SimulatedClocks) -> Figure | None:
    """Figure 3.16 of the clocks that are told one by one; None where they have no two comparisons."""
    clocks = [
        clock
        for clock in simulation.ranks
        if clock.errors and sum(1 for point in clock.points if point.used) > 1
    ]
    if not clocks:
        return None
    at, durations = ring_durations(clocks)
    return Figure(
        name="ring",
        title="Durations of 4 B messages in a ring, by how often clocks are compared",
        x=Axis(label="Time of the send (s)"),
        left=Axis(label="Duration of a message (µs)", reference=MESSAGE_NS / 1e3),
        series=tuple(
            Series(
                name=name,
                hue=hue,
                style="line",
                drawn="points",
                x=tuple((at / 1e9).tolist()),
                y=tuple((values / 1e3).tolist()),
                value="duration",
            )
            for (name, hue), values in zip(COMPARISONS, durations, strict=True)
        ),
        caption=f"Each message truly takes {MESSAGE_NS / 1e3:g} µs. Below 0 it arrives before it was sent.",
    )
