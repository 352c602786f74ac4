"""The results of simulated clocks (lib/clock/simulation), with their true errors, and their figures."""

from __future__ import annotations

import msgspec

from elbowroom.draw import numbers
from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.trace.documents import Sync, SyncRank
from elbowroom.trace.sync_figures import sync_figures


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """The quality of corrected times for one way to synchronise clocks: errors and published bounds (half
    their width) in ns; `inside`: share of the moments with an error inside its bound, `unflagged`: number of
    moments with an error outside and no flag; `tachyons`: messages that arrive before they are sent.
    """

    name: str
    p50_ns: int
    p95_ns: int
    max_ns: int
    bound_p50_ns: int
    inside: float
    unflagged: int
    tachyons: int


class ClockError(msgspec.Struct, frozen=True, kw_only=True):
    """The error of one clock's corrected time at one moment (corrected - true), and its bound, ns."""

    local: int
    error_ns: int
    bound_ns: int


class ShownClock(SyncRank, frozen=True, kw_only=True):
    """One of the clocks as in the document of `trace-reader sync`, with its errors."""

    errors: tuple[ClockError, ...] = ()


class SimulatedClocks(msgspec.Struct, frozen=True, kw_only=True):
    """`comparisons` of `clocks` over `duration_ns`, in `rounds` each, with so many `exchanges` of messages in
    all and `longest_ns` for the longest; `told_wrong` of the `points` were, `rejected` were left out, `steps`
    stretches between points are flagged, `incomparable` comparisons failed; `messages` were looked at for
    tachyons. `ranks` are the clocks that are told one by one.
    """

    clocks: int
    duration_ns: int
    every_ns: int
    clock: str
    link: str
    bad: float
    seed: int
    rounds: int
    comparisons: int
    exchanges: int
    longest_ns: int
    points: int
    told_wrong: int
    rejected: int
    steps: int
    incomparable: int
    messages: int
    methods: tuple[Method, ...]
    ranks: tuple[ShownClock, ...]

    @property
    def best(self) -> Method:
        """That of all points."""
        return self.methods[-1]

    @property
    def sync(self) -> Sync:
        """The clocks that are told one by one, as those of a trace."""
        return Sync(ranks=self.ranks)


def simulated_clock_figures(simulation: SimulatedClocks) -> list[Figure]:
    """The errors by way of synchronising; the errors of some clocks over time; and their drift."""
    return [
        _methods(simulation),
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
        f"{numbers.number(simulation.every_ns / 1e9, 3)} s.",
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
        caption=f"The published bounds are at most ±{numbers.number(widest, 3)} ns.",
    )
