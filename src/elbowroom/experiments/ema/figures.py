"""What extraneous accesses look like: one-way times over bytes accessed (Fig. 1 of Tan and Jarvis 2012),
their lower and upper bounds (Fig. 3), misses (Fig. 2).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from elbowroom.draw.figure import Axis, Figure, Hue, Mark, Scale, Series
from elbowroom.experiments.common.panels import line
from elbowroom.experiments.common.sentences import grouped, size_text
from elbowroom.experiments.ema import sides
from elbowroom.experiments.ema.cases import AccessCase, Kind, cases, kind_text, who_text
from elbowroom.machine.topology import Machine
from elbowroom.points.accesses import TIMED, series_of
from elbowroom.results.result import PointResult

WIDE = 16_000_000
"""Bytes from which on their axis is logarithmic: the small caches would be one line at its beginning."""

HUES: dict[str, Hue] = {
    "sender": "blue",
    "receiver": "red",
    "both": "blue",
    "bystanders": "red",
    "none": "blue",
}
"""Colours: what the sender touches is drawn in blues, what the receiver touches in reds."""

LEVELS: dict[str, Hue] = {
    "L1": "blue",
    "L2": "red",
    "L3": "black",
}


def times(every: Sequence[AccessCase]) -> list[Figure]:
    """Median and deciles of each window after accesses, by who accesses; one figure for each kind."""
    drawn = []
    for kind, members in grouped(every, lambda case: case.kind).items():
        series = [_window_medians(members[0], after=False)]
        series += [_window_medians(case, after=True) for case in members]
        drawn.append(
            Figure(
                name=f"ema-{_name(kind)}",
                title=f"One-way time after accesses: {kind_text(members[0])}, {members[0].access}s",
                x=_axis(members),
                left=Axis(label=_time(members[0])),
                series=tuple(series),
                marks=_marks(members),
                caption=(
                    "Medians of windows of sizes; the band goes from the first to the last decile of all "
                    "their messages. Beyond a dotted line the accesses outgrow that cache."
                ),
            )
        )
    return drawn


def scatters(every: Sequence[AccessCase]) -> list[Figure]:
    """The average of every size, as the paper's Fig. 1a (sender) and 1b (receiver) have it; one figure for
    each case.
    """
    drawn = []
    for case in every:
        rows = [
            (float(size), mean)
            for series in sides.all_series(case.windows)
            for size, mean in zip(series.sizes, series.after.mean, strict=True)
        ]
        drawn.append(
            Figure(
                name=f"ema-scatter-{case.key}",
                title=f"Average of every size: {who_text(case).lower()}, {kind_text(case)}",
                x=_axis([case]),
                left=Axis(label=_time(case)),
                series=(
                    line(_label(case, after=True), rows, **_look(case), drawn="points", value="average"),
                ),
                marks=_marks([case]),
                caption=f"Each point is the average of {_messages(case)} messages of one size.",
            )
        )
    return drawn


def _messages(case: AccessCase) -> int:
    """Messages after accesses of a size, in all repetitions."""
    series = series_of(case.windows[0].payload)
    summary = case.windows[0].comm.together
    return 0 if series is None or summary is None else summary.count // len(series.sizes)


def _time(case: AccessCase) -> str:
    text = TIMED[case.timing]
    return f"{text[0].upper()}{text[1:]} (µs)"


def bound_lines(every: Sequence[AccessCase]) -> list[Figure]:
    """Lower and upper bounds of windows, of averages (the paper's) and of the fastest messages."""
    drawn = []
    for kind, members in grouped(every, lambda case: case.kind).items():
        for name, title, of, end, scale in _BOUNDS:
            series = [_bound(members[0], of, end, after=False)]
            series += [_bound(case, of, end, after=True) for case in members]
            drawn.append(
                Figure(
                    name=f"ema-{name}-{_name(kind)}",
                    title=f"{title}: {kind_text(members[0])}, {members[0].access}s",
                    x=_axis(members),
                    left=Axis(label=_time(members[0]), scale=scale),
                    series=tuple(series),
                    marks=_marks(members),
                    caption=f"The {'least' if end == 'lower' else 'greatest'} of each window of sizes.",
                )
            )
    return drawn


_BOUNDS: tuple[tuple[str, str, sides.Of, Literal["lower", "upper"], Scale], ...] = (
    ("lower", "Lower bounds of average one-way times", "mean", "lower", "linear"),
    ("upper", "Upper bounds of average one-way times", "mean", "upper", "log10"),
    ("fastest", "The fastest message of each window", "minimum", "lower", "linear"),
)


def miss_lines(every: Sequence[AccessCase]) -> list[Figure]:
    """Misses of a message by level, at each rank; says whether they were measured or modelled."""
    drawn = []
    for case in every:
        for rank in ("sender", "receiver"):
            lines = sides.miss_lines(case.windows, rank, models=True)
            if not any(max(line.lower) for line in lines):
                continue
            drawn.append(
                Figure(
                    name=f"ema-misses-{rank}-{case.key}",
                    title=f"Misses of a message at the {rank}: {who_text(case).lower()}",
                    x=_axis([case]),
                    left=Axis(label="Misses of a message"),
                    series=tuple(
                        Series(
                            name=f"{line.level}, {line.source}",
                            hue=LEVELS[line.level],
                            style="line" if line.source == "measured" else "together",
                            x=line.bytes,
                            y=line.lower,
                            points=line.points,
                            value="least of the window",
                        )
                        for line in lines
                    ),
                    marks=_marks([case]),
                    caption=f"The least of each window of sizes, dashed where modelled; {kind_text(case)}.",
                )
            )
    return drawn


def _name(kind: Kind) -> str:
    access, size, data, barrier, timing = kind
    timed = "" if timing == "one-way" else f"-{timing}"
    return f"{access}-{size}B-{data}{'' if barrier else '-nobarrier'}{timed}"


def _axis(members: Sequence[AccessCase]) -> Axis:
    wide = max(case.most for case in members) > WIDE
    scale: Scale = "log2" if wide else "linear"
    return Axis(label="Bytes accessed between two messages", scale=scale, bytes=True)


def _marks(members: Sequence[AccessCase]) -> tuple[Mark, ...]:
    """The caches that the accesses outgrow between the first window and the last, each once."""
    least = min(case.bounds()[0].bytes for case in members)
    most = max(case.most for case in members)
    marks: dict[float, Mark] = {}
    for case in members:
        for level, edge in sorted(case.levels.items()):
            if least < edge < most:
                marks.setdefault(edge, Mark(x=edge, text=f"L{level}: {size_text(edge)}"))
    return tuple(mark for _, mark in sorted(marks.items()))


def _window_medians(case: AccessCase, *, after: bool) -> Series:
    """Medians of the windows of a case, with deciles; each window at the middle of its sizes."""
    rows, ids = [], []
    for item in case.windows:
        summary = item.comm.together if after else item.comm.alone
        series = series_of(item.payload)
        if summary is not None and series is not None:
            middle = (series.sizes[0] + series.sizes[-1]) / 2
            rows.append((middle, summary.median, summary.d1, summary.d9))
            ids.append(item.id)
    return line(_label(case, after), rows, ids, **_look(case, after))


def _bound(case: AccessCase, of: sides.Of, end: Literal["lower", "upper"], *, after: bool) -> Series:
    bounds = case.bounds(of, after=after)
    rows = [(bound.bytes, bound.lower if end == "lower" else bound.upper) for bound in bounds]
    ids = [bound.point for bound in bounds]
    return line(_label(case, after), rows, ids, **_look(case, after), value=f"{end} bound")


def _look(case: AccessCase, after: bool = True) -> dict[str, Any]:
    return {"side": "communication", "hue": HUES[case.who] if after else "black", "style": "line"}


def _label(case: AccessCase, after: bool) -> str:
    if not after:
        return "without accesses"
    return {"both": "both sides", "none": "nobody"}.get(case.who, f"the {case.who}")


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:
    """One-way time over bytes accessed, of windows and of every size (Fig. 1), its lower and upper bounds
    (Fig. 3), misses (Fig. 2).
    """
    every = cases(results, machine)
    return (*times(every), *scatters(every), *bound_lines(every), *miss_lines(every))
