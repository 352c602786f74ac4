"""Figures of simulated clocks: errors by method and over time, durations in a ring, drifts."""

from __future__ import annotations

from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.quantities import number
from elbowroom.trace.ring_durations import ring_figure
from elbowroom.trace.simulated_clocks import SimulatedClocks
from elbowroom.trace.sync_figures import sync_figures


def simulated_clock_figures(simulation: SimulatedClocks) -> list[Figure]:
    """The errors by way of synchronising; the durations of messages in a ring (thesis, Fig. 3.16); the errors
    of some clocks over time; and their drift.
    """
    ring = ring_figure(simulation)
    return [
        _methods(simulation),
        *([ring] if ring is not None else []),
        *([_errors(simulation)] if simulation.ranks else []),
        *sync_figures(simulation.sync),
    ]


def _methods(simulation: SimulatedClocks) -> Figure:
    places = tuple(float(place) for place in range(len(simulation.methods)))
    return Figure(
        name="methods",
        title=f"{simulation.clocks} {simulation.clock} clocks over {simulation.duration_ns / 1e9:g} s, "
        f"{simulation.link} links",
        x=Axis(label="sync points", names=tuple(method.name for method in simulation.methods)),
        left=Axis(label="error (ns)", scale="log10"),
        series=(
            Series(
                name="maximum of 95 % of all times",
                hue="blue",
                style="line",
                drawn="points",
                x=places,
                y=tuple(max(float(method.p95_ns), 1.0) for method in simulation.methods),
                value="95 %",
            ),
            Series(
                name="maximum of all times",
                hue="red",
                style="line",
                drawn="points",
                x=places,
                y=tuple(max(float(method.max_ns), 1.0) for method in simulation.methods),
                value="all",
            ),
        ),
        caption="Simulated, so the true errors are known. All points: one every "
        f"{number(simulation.every_ns / 1e9, 3)} s.",
    )


def _errors(simulation: SimulatedClocks) -> Figure:
    series = []
    for place, clock in enumerate(simulation.ranks[:4]):
        first = clock.errors[0].local
        series.append(
            Series(
                name=f"clock {clock.rank}",
                hue="blue" if place % 2 == 0 else "red",
                style="line",
                drawn="smooth",
                x=tuple((one.local - first) / 1e9 for one in clock.errors),
                y=tuple(float(one.error_ns) for one in clock.errors),
                value="error",
            )
        )
    widest = max(one.bound_ns for clock in simulation.ranks for one in clock.errors)
    return Figure(
        name="simulated-errors",
        title="Errors of corrected times",
        x=Axis(label="time (s)"),
        left=Axis(label="error (ns)"),
        series=tuple(series),
        caption=f"The published bounds are at most ±{number(widest, 3)} ns.",
    )
