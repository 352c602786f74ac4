"""Errors of the corrected times of simulated clocks: lib/clock on clocks that drift, jump and are misread.

    python benchmarks/simulated_clocks.py [--clocks 1024] [--seconds 600] [--every 10] [--clock thermal]
    [--link symmetric] [--bad 5%] [--seed 1] [-o FIGURE.svg|PAGE.html] [--json]

Drift, jumps, links and wrong sync points are simulated; the library that compares and corrects clocks is the
real one (docs/reference/clock.md). Beside it: two plain barriers, one point and two points (figures 3.16 and
3.18 of Swartvagher's thesis). The same seed gives the same outcome.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
from command import Command

from elbowroom.draw.figure import Axis, Figure, Hue, Series
from elbowroom.draw.files import save_panels
from elbowroom.errors import MachineError, UsageError
from elbowroom.files import write_atomically
from elbowroom.launch import build
from elbowroom.launch.processes import run
from elbowroom.quantities import number
from elbowroom.trace.documents import Sync, SyncPoint, SyncRank
from elbowroom.trace.sync_figures import sync_figures, sync_report

CLOCKS = ("affine", "thermal", "walk", "steps", "slewing", "mixed")
LINKS = ("symmetric", "asymmetric", "lossy", "heavy-tail", "busy")
PATIENCE_S = 600.0

Ints = npt.NDArray[np.int64]

MESSAGE_NS = 1500
"""The latency of the simulated links (lib/clock/simulation.cpp): what each message truly takes."""

COMPARISONS: tuple[tuple[str, Hue], ...] = (
    ("one comparison, at the start", "black"),
    ("two, at the start and the end", "red"),
    ("all comparisons", "blue"),
)


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
    all and `longest_ns` for the longest; `corrupted` of the `points` were, `rejected` were left out, `steps`
    stretches between points are flagged, `incomparable` comparisons failed; `messages` were looked at for
    tachyons. `ranks` are the clocks that are shown one by one.
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
    corrupted: int
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
        """The clocks that are shown one by one, as those of a trace."""
        return Sync(ranks=self.ranks)


def simulate(
    clocks: int = 1024,
    *,
    seconds: float = 600.0,
    every: float = 10.0,
    clock: str = "thermal",
    link: str = "symmetric",
    bad: float = 0.0,
    seed: int = 1,
    shown: int = 4,
) -> SimulatedClocks:
    """`clocks` that drift as `clock` says (one of CLOCKS), compared over links as `link` says (LINKS) every
    so many seconds; a share `bad` (0 to 0.5) of the sync points is corrupted. `shown` clocks are returned one
    by one.
    """
    _check(clocks, seconds, every, clock, link, bad)
    return answer(
        {
            "clocks": clocks,
            "duration_ns": round(seconds * 1e9),
            "every_ns": round(every * 1e9),
            "clock": clock,
            "link": link,
            "bad": bad,
            "seed": seed,
            "shown": shown,
        }
    )


def answer(request: dict[str, Any]) -> SimulatedClocks:
    """The simulator's answer. UsageError for what it refuses, MachineError when it cannot be built or."""
    path = build.clock_simulator()
    done = run(
        [str(path)],
        field="clock-simulator",
        given=msgspec.json.encode(request) + b"\n",
        patience=PATIENCE_S,
        late="try again with fewer clocks",
        doing="simulating",
    )
    try:
        if done.code == 0:
            return msgspec.json.decode(done.stdout, type=SimulatedClocks)
        refusal = json.loads(done.stdout)["error"]
    except ValueError as error:
        raise MachineError(
            f"the simulator of clocks failed (exit code {done.code}): {done.last_line}",
            field="clock-simulator",
            value=str(path),
            hint="remove it, so that it is built again",
        ) from error
    raise UsageError(refusal)


def _check(clocks: int, seconds: float, every: float, clock: str, link: str, bad: float) -> None:
    for field, value, known in (("clock", clock, CLOCKS), ("link", link, LINKS)):
        if value not in known:
            raise UsageError("is unknown", field=field, value=value, hint=f"one of {', '.join(known)}")
    if not 1 <= clocks <= 65536:
        raise UsageError("is not between 1 and 65536", field="clocks", value=clocks, hint="for instance 1024")
    for field, time in (("seconds", seconds), ("every", every)):
        if not 1e-6 <= time <= 1e6:
            raise UsageError("is not between 1e-6 and 1e6 s", field=field, value=time, hint="for instance 10")
    if not 0 <= bad <= 0.5:
        raise UsageError("is not between 0 and 50%", field="bad", value=bad, hint="give at most half")


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


def ring_durations(clocks: Sequence[ShownClock]) -> tuple[Ints, list[Ints]]:
    """When messages are sent, ns since the start, and for each of COMPARISONS the durations that corrected
    times give them. At each moment one message goes from the reference to the first clock, from each clock to
    the next, and from the last one back.
    """
    moments = min(len(clock.errors) for clock in clocks)
    at = np.array([error.local for error in clocks[0].errors[:moments]], dtype=np.int64)
    errors = [_errors_by_comparisons(clock, moments) for clock in clocks]
    durations = []
    for way in range(len(COMPARISONS)):
        own = [np.zeros(moments, dtype=np.int64), *(error[way] for error in errors)]
        ring = [MESSAGE_NS + after - before for before, after in zip(own, [*own[1:], own[0]], strict=True)]
        durations.append(np.concatenate(ring))
    return np.tile(at - at[0], len(clocks) + 1), durations


def _errors_by_comparisons(clock: ShownClock, moments: int) -> list[Ints]:
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
    """Figure 3.16 of the clocks that are shown one by one; None where they have no two comparisons."""
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


def save_clocks(clocks: SimulatedClocks, path: Path) -> None:
    """The figures as a .svg or .png, or the clocks that are shown one by one as a page (.html)."""
    if path.suffix == ".html":
        write_atomically(path, sync_report(clocks.sync).encode())
        return
    title = f"{clocks.clocks} simulated clocks"
    save_panels(simulated_clock_figures(clocks), path, columns=2, title=title, shared=False)


def show(simulated: SimulatedClocks) -> None:
    """A line for each way to synchronise."""
    print(
        f"{simulated.clocks} {simulated.clock} clocks over {simulated.link} links for "
        f"{simulated.duration_ns / 1e9:g} s, seed {simulated.seed}: {simulated.comparisons} comparisons of "
        f"{simulated.rounds} rounds, {simulated.exchanges} messages there and back, the longest "
        f"{simulated.longest_ns / 1e6:.3g} ms"
    )
    print(
        f"{simulated.points} points, {simulated.corrupted} of them wrong; {simulated.rejected} left out, "
        f"{simulated.steps} jumps flagged, {simulated.incomparable} comparisons failed"
    )
    print(f"{'error in ns':28}{'median':>12}{'95 %':>12}{'at most':>12}{'bound':>12}{'inside':>9}", end="")
    print(f"{'unflagged':>11}{'tachyons':>10}  (of {simulated.messages} messages)")
    for method in simulated.methods:
        times = (method.p50_ns, method.p95_ns, method.max_ns, method.bound_p50_ns)
        print(f"{method.name:28}{''.join(f'{time:12d}' for time in times)}{method.inside:9.2%}", end="")
        print(f"{method.unflagged:11d}{method.tachyons:10d}")


def share(text: str) -> float:
    """0.05 of `5%` or `0.05`."""
    number, percent, rest = text.partition("%")
    if rest:
        raise argparse.ArgumentTypeError(f"{text!r} is not a share; for instance 5% or 0.05")
    return float(number) / (100 if percent else 1)


def main() -> None:
    parser = Command(__doc__, smoke="--clocks 4 --seconds 60")
    parser.add_argument("--clocks", type=int, default=1024)
    parser.add_argument("--seconds", type=float, default=600.0, help="duration of the simulation")
    parser.add_argument("--every", type=float, default=10.0, help="seconds between comparisons")
    parser.add_argument("--clock", choices=CLOCKS, default="thermal")
    parser.add_argument("--link", choices=LINKS, default="symmetric")
    parser.add_argument("--bad", type=share, default=0.0, help="share of wrong sync points: 5%%")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--out", type=Path, help="draw errors and drifts (.svg, .png, .html)")
    parser.add_argument("--json", action="store_true")
    options = vars(parser.parse_args())
    out, as_json = options.pop("out"), options.pop("json")
    options.pop("smoke")
    simulated = simulate(**options)
    if out is not None:
        save_clocks(simulated, out)
    print(msgspec.json.encode(simulated).decode()) if as_json else show(simulated)


if __name__ == "__main__":
    main()
