"""A job of simulated clocks, judged by the truth (lib/clock/simulation), as Python sees it; and drawn."""

from __future__ import annotations

import msgspec

from elbowroom.draw import numbers
from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.trace.documents import Sync, SyncRank
from elbowroom.trace.sync_figures import sync_figures


class Method(msgspec.Struct, frozen=True, kw_only=True):
    """What corrected times are worth when clocks are compared in one way: errors, and the published bounds
    (half their width) in ns; `inside`: share of the moments where the error is inside its bound, `unflagged`:
    moments where it is not and nothing says so; `tachyons`: messages that arrive before they are sent.
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
    """How wrong one clock's corrected time is at one moment (corrected - true), and its bound, ns."""

    local: int
    error_ns: int
    bound_ns: int


class ShownClock(SyncRank, frozen=True, kw_only=True):
    """One of the clocks, as `trace-reader sync` tells of a rank, with its errors."""

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


def simulated_clock_figures(found: SimulatedClocks) -> list[Figure]:
    """What each way to compare clocks is worth; the errors of some clocks over time; and their drift."""
    return [_methods(found), *([_errors(found)] if found.ranks else []), *sync_figures(found.sync)]


def _methods(found: SimulatedClocks) -> Figure:
    places = tuple(float(place) for place in range(len(found.methods)))
    return Figure(
        name="methods",
        title=f"{found.clocks} {found.clock} clocks over {found.duration_ns / 1e9:g} s, {found.link} links",
        x=Axis(label="clocks are compared by", names=tuple(method.name for method in found.methods)),
        left=Axis(label="error of 95 % of all times (ns)", scale="log10"),
        series=(
            Series(
                name="at most, 95 % of all times",
                side="communication",
                style="line",
                drawn="points",
                x=places,
                y=tuple(max(float(method.p95_ns), 1.0) for method in found.methods),
                value="95 %",
            ),
            Series(
                name="at most, all times",
                side="computation",
                style="line",
                drawn="points",
                x=places,
                y=tuple(max(float(method.max_ns), 1.0) for method in found.methods),
                value="all",
            ),
        ),
        caption="Simulated: the truth is known. All points: one every "
        f"{numbers.number(found.every_ns / 1e9, 3)} s.",
    )


def _errors(found: SimulatedClocks) -> Figure:
    series = []
    for place, clock in enumerate(found.ranks[:4]):
        first = clock.errors[0].local
        series.append(
            Series(
                name=f"clock {clock.rank}",
                side="communication" if place % 2 == 0 else "computation",
                style="line",
                drawn="smooth",
                x=tuple((one.local - first) / 1e9 for one in clock.errors),
                y=tuple(float(one.error_ns) for one in clock.errors),
                value="error",
            )
        )
    widest = max(one.bound_ns for clock in found.ranks for one in clock.errors)
    return Figure(
        name="simulated-errors",
        title="Corrected times less the true ones",
        x=Axis(label="time (s)"),
        left=Axis(label="error (ns)"),
        series=tuple(series),
        caption=f"The published bounds are ±{numbers.number(widest, 3)} ns at most.",
    )
