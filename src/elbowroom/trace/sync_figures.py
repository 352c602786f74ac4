"""Figures and a page of clock drifts and the errors of corrected times, as Figs. 3.16 and 3.18 of the thesis.

The data come from `trace-reader sync` or from the clock simulator.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from elbowroom.draw.figure import Axis, Figure, Hue, Series
from elbowroom.draw.html import figure_page
from elbowroom.quantities import format_cores, number
from elbowroom.trace.documents import Sync, SyncPoint, SyncRank

_FLAGS = {
    "unsynced": "has no sync point: its times cannot be compared with those of other ranks",
    "none": "has no sync point: its times cannot be compared with those of other ranks",
    "single": "has only one sync point: its offset is known, but not its drift",
    "backwards": "has a clock that was set back: later sync points are left out",
    "stepped": "has a clock that jumped between two sync points: the error there includes the jump",
    "jumped": "has a clock that jumped while it was compared: the bounds of that sync point include the jump",
    "unlocated": "has a clock that jumps so often that not all jumps can be located: all errors include the "
    "largest jump seen",
    "rejected": "has sync points that contradict their neighbours; they are left out",
}
_HINTS = {
    "unsynced": "Synchronise the clocks: preload the MPI adapter, or call elbow_trace_sync twice.",
    "none": "Synchronise the clocks: preload the MPI adapter, or call elbow_trace_sync twice.",
    "single": "Synchronise the clocks at the end, too. A run that is killed before MPI_Finalize has only the "
    "first sync point: synchronise every few seconds (record --sync).",
    "backwards": "Find what sets the clock back, for example a suspended or migrated virtual machine; record "
    "with ELBOW_CLOCK=raw.",
    "stepped": "Find what makes the clock jump, for example a suspended or migrated virtual machine; "
    "synchronise more often, so that a jump spoils less time.",
}
MATTERS_NS = 1000
"""Errors below are no reason to synchronise more often: a message between hosts takes longer."""
MANY = 0.05
"""Share of points: more are not left out by chance."""


def summary(sync: Sync) -> list[str]:
    """The largest error and drift, the number of points left out, and the meaning of each flag."""
    errors = [(one.error_ns or 0.0, rank.rank) for rank in sync.ranks for one in rank.segments]
    sentences = []
    if errors:
        worst, rank = max(errors)
        sentences.append(
            f"Between sync points, times are wrong by at most {number(worst, 3)} ns (rank {rank})."
        )
    else:
        sentences.append("No clock has two sync points, so the drift is unknown.")
    drifts = [(abs(one.drift_ppb), one.drift_ppb, rank.rank) for rank in sync.ranks for one in rank.segments]
    if drifts and max(drifts)[0] > 0:
        _, drift, rank = max(drifts)
        sentences.append(f"The largest drift is {number(drift / 1e3, 3)} ppm (rank {rank}).")
    points = [point for rank in sync.ranks for point in rank.points]
    left_out = sum(not point.used for point in points)
    sentences.append(f"{len(points)} sync points of {len(sync.ranks)} ranks, {left_out} of them left out.")
    for flag in dict.fromkeys(flag for rank in sync.ranks for flag in rank.flags):
        sentences.append(f"{_ranks(sync.ranks, flag)} {_FLAGS.get(flag, f'has the flag {flag}')}.")
    return sentences


def advice(sync: Sync) -> list[str]:
    """Hints for smaller errors; empty if there are none."""
    flags = {flag for rank in sync.ranks for flag in rank.flags}
    sentences = list(dict.fromkeys(hint for flag, hint in _HINTS.items() if flag in flags))
    points = [point for rank in sync.ranks for point in rank.points]
    left_out = sum(not point.used for point in points)
    if points and left_out > MANY * len(points):
        sentences.append(
            f"{left_out / len(points):.0%} of the sync points are left out: ranks migrate or are delayed "
            "during the synchronisation. Bind each rank to a core of its own."
        )
    bending = [rank.rank for rank in sync.ranks if _bends(rank)]
    worst = max((one.error_ns or 0.0 for rank in sync.ranks for one in rank.segments), default=0.0)
    if bending and worst >= MATTERS_NS:
        sentences.append(
            f"Ranks {format_cores(bending)}: most of the error (at most {number(worst, 3)} ns) comes "
            "from drift between sync points, not from the network. Synchronise more often (record --sync)."
        )
    return sentences


def _bends(rank: SyncRank) -> bool:
    """Whether the errors are much larger than the bounds of the sync points."""
    widths = sorted((point.high - point.low) / 2 for point in rank.points if point.used)
    errors = sorted(one.error_ns or 0.0 for one in rank.segments)
    return bool(widths and errors) and errors[len(errors) // 2] > 2 * max(widths[len(widths) // 2], 1.0)


def _ranks(ranks: Iterable[SyncRank], flag: str) -> str:
    which = [rank.rank for rank in ranks if flag in rank.flags]
    return f"Rank {which[0]}" if len(which) == 1 else f"Each of ranks {format_cores(which)}"


SHOWN = 4
"""Number of clocks that are drawn, those with the largest errors."""

COLUMNS = ("rank", "host", "points", "left out", "drift (ppm)", "maximum error (ns)", "flags")
_HUES: tuple[Hue, ...] = ("blue", "red")


class ComparedClock(NamedTuple):
    """A clock that was compared with the reference's, and the ranks that read it."""

    ranks: tuple[int, ...]
    sync: SyncRank

    @property
    def name(self) -> str:
        """`rank 3`, `ranks 2, 3`, `ranks 2, 3 …`."""
        if len(self.ranks) == 1:
            return f"rank {self.ranks[0]}"
        more = " …" if len(self.ranks) > 2 else ""
        return f"ranks {self.ranks[0]}, {self.ranks[1]}{more}"

    @property
    def used(self) -> list[SyncPoint]:
        """The points that the correction goes through, in order."""
        return sorted((point for point in self.sync.points if point.used), key=lambda point: point.local)

    @property
    def worst(self) -> float:
        """The largest error bar, ns."""
        return max((one.error_ns or 0.0 for one in self.sync.segments), default=0.0)


def clocks(sync: Sync) -> list[ComparedClock]:
    """The clocks except the reference, largest errors first; ranks with the same points share one."""
    by_points: dict[tuple[SyncPoint, ...], list[SyncRank]] = {}
    for rank in sync.ranks:
        if any(point.offset or point.low or point.high for point in rank.points):
            by_points.setdefault(rank.points, []).append(rank)
    every = [ComparedClock(tuple(rank.rank for rank in ranks), ranks[0]) for ranks in by_points.values()]
    return sorted(every, key=lambda clock: (-clock.worst, clock.ranks))


def sync_figures(sync: Sync) -> list[Figure]:
    """The offsets, drifts and errors of the clocks with the largest errors, and the errors with fewer points;
    empty if no clock has two sync points.
    """
    shown = [clock for clock in clocks(sync) if len(clock.used) > 1][:SHOWN]
    if not shown:
        return []
    return [
        *(_offsets(clock) for clock in shown),
        _drifts(shown),
        _errors(shown),
        *(_fewer(clock) for clock in shown[:1] if len(clock.used) > 2),
    ]


def sync_report(sync: Sync | Mapping[str, Any] | bytes) -> str:
    """The clocks of a trace as one self-contained HTML page with sentences, figures and a table.

    `sync`: the document of `trace-reader sync`, as text or decoded. msgspec.ValidationError if it is not one.
    """
    if isinstance(sync, bytes):
        sync = msgspec.json.decode(sync, type=Sync)
    elif not isinstance(sync, Sync):
        sync = msgspec.convert(sync, type=Sync)
    *sentences, last = summary(sync)
    return figure_page(
        "Clocks of a trace",
        [*((sentence, ()) for sentence in sentences), (last, advice(sync))],
        sync_figures(sync),
        ("Ranks", COLUMNS, [_row(rank) for rank in sync.ranks]),
    )


def line(clock: ComparedClock, local: int) -> float:
    """The offset (ns) at `local` on the line from the first to the last point that is used."""
    first, last = clock.used[0], clock.used[-1]
    return first.offset + (last.offset - first.offset) * (local - first.local) / (last.local - first.local)


def _seconds(clock: ComparedClock, local: int) -> float:
    return (local - clock.used[0].local) / 1e9


def _offsets(clock: ComparedClock) -> Figure:
    """Offsets minus a constant drift, with their bounds, and the correction of times."""
    used = clock.used
    left_out = [point for point in clock.sync.points if not point.used]
    drift = (used[-1].offset - used[0].offset) / (used[-1].local - used[0].local) * 1e6
    series = [
        _points(clock, used, "points", "blue"),
        Series(
            name="correction",
            hue="blue",
            style="line",
            drawn="smooth",
            x=tuple(_seconds(clock, point.local) for point in used),
            y=tuple((point.offset - line(clock, point.local)) / 1e3 for point in used),
            value="offset",
        ),
    ]
    if left_out:
        series.append(_points(clock, left_out, "left out", "red"))
    rejected = f"; {len(left_out)} points are left out" if left_out else ""
    return Figure(
        name=f"offset-{clock.ranks[0]}",
        title=f"Offset of {clock.name} ({clock.sync.host})",
        x=Axis(label="time (s)"),
        left=Axis(label="offset minus a constant drift (µs)"),
        series=tuple(series),
        caption=f"A constant drift of {number(drift, 4)} ppm is subtracted. Whiskers: guaranteed "
        f"bounds{rejected}. As the upper part of Fig. 3.18 of the thesis.",
    )


def _points(clock: ComparedClock, points: Sequence[SyncPoint], name: str, hue: Hue) -> Series:
    def over(value: int, point: SyncPoint) -> float:
        return (value - line(clock, point.local)) / 1e3

    return Series(
        name=name,
        hue=hue,
        style="line",
        drawn="points",
        x=tuple(_seconds(clock, point.local) for point in points),
        y=tuple(over(point.offset, point) for point in points),
        low=tuple(over(point.low, point) for point in points),
        high=tuple(over(point.high, point) for point in points),
        value="offset",
        band="bounds",
    )


def _stairs(clock: ComparedClock, values: Sequence[float], place: int) -> Series:
    """A value for each stretch between two points, as a step function."""
    x, y = [], []
    for stretch, value in zip(clock.sync.segments, values, strict=True):
        x += [_seconds(clock, stretch.from_), _seconds(clock, stretch.to)]
        y += [value, value]
    return Series(
        name=clock.name,
        hue=_HUES[place % 2],
        style="line",
        drawn="smooth",
        x=tuple(x),
        y=tuple(y),
        value="value",
    )


def _drifts(shown: Sequence[ComparedClock]) -> Figure:
    series = []
    for place, clock in enumerate(shown):
        drifts = [stretch.drift_ppb for stretch in clock.sync.segments]
        middle = sorted(drifts)[len(drifts) // 2]
        series.append(_stairs(clock, [drift - middle for drift in drifts], place))
    return Figure(
        name="drifts",
        title="Drift against the reference",
        x=Axis(label="time (s)"),
        left=Axis(label="drift minus its median (ppb)"),
        series=tuple(series),
        caption="A correction through two points is right while the drift is constant, rarely for minutes.",
    )


def _errors(shown: Sequence[ComparedClock]) -> Figure:
    return Figure(
        name="errors",
        title="Maximum error of corrected times",
        x=Axis(label="time (s)"),
        left=Axis(label="maximum error (ns)", scale="log10"),
        series=tuple(
            _stairs(clock, [max(stretch.error_ns or 0.0, 1.0) for stretch in clock.sync.segments], place)
            for place, clock in enumerate(shown)
        ),
        caption="Half the width of the bounds, plus the possible deviation from the line between two points.",
    )


def _fewer(clock: ComparedClock) -> Figure:
    """The errors with one sync point, and with two (thesis, Fig. 3.16)."""
    used = clock.used
    x = tuple(_seconds(clock, point.local) for point in used)

    def wrong(name: str, hue: Hue, values: Sequence[float]) -> Series:
        return Series(name=name, hue=hue, style="line", drawn="smooth", x=x, y=tuple(values), value="error")

    one = [max(abs(point.offset - used[0].offset) / 1e3, 1e-3) for point in used]
    two = [max(abs(point.offset - line(clock, point.local)) / 1e3, 1e-3) for point in used]
    bars = [max(_bar(clock, point) / 1e3, 1e-3) for point in used]
    return Figure(
        name="fewer",
        title=f"{clock.name}: errors with fewer sync points",
        x=Axis(label="time (s)"),
        left=Axis(label="error (µs)", scale="log10"),
        series=(
            wrong("one point", "red", one),
            wrong("two points", "black", two),
            wrong("all points: maximum error", "blue", bars),
        ),
        caption="One point does not determine a drift; two determine a constant drift (thesis, Fig. 3.16).",
    )


def _bar(clock: ComparedClock, point: SyncPoint) -> float:
    around = [one.error_ns or 0.0 for one in clock.sync.segments if one.from_ <= point.local <= one.to]
    return max(around, default=0.0)


def _row(rank: SyncRank) -> tuple[str, ...]:
    clock = ComparedClock((rank.rank,), rank)
    used = clock.used
    drift = (
        number((used[-1].offset - used[0].offset) / (used[-1].local - used[0].local) * 1e6, 4)
        if len(used) > 1
        else "n/a"
    )
    error = number(clock.worst, 4) if rank.segments else "n/a"
    return (
        str(rank.rank), rank.host, str(len(rank.points)), str(len(rank.points) - len(used)), drift, error,
        ", ".join(rank.flags),
    )  # fmt: skip
