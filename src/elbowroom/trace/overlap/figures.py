"""Figures of a trace's overlap, and the page with its verdict and table."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.figure import Axis, Figure, Series, Side
from elbowroom.draw.html import figure_page
from elbowroom.quantities import TIME_UNITS, number, with_span
from elbowroom.stats.interval import Interval
from elbowroom.trace.overlap.document import ComputationClass, Matched, TraceOverlap
from elbowroom.trace.overlap.verdict import duration, short_name

MOST_BARS = 8
NAME_LETTERS = 10
COLUMNS = ("computation", "beside", "alone", "overlapped", "both active", "slowdown")


def overlap_figures(overlap: TraceOverlap) -> tuple[Figure, ...]:
    """The time of a rank, the slowdown of each class, the step of median length; those that are known."""
    return tuple(one for one in (_times(overlap), _slowdowns(overlap), _timeline(overlap)) if one is not None)


def _times(overlap: TraceOverlap) -> Figure:
    per = overlap.steps or 1
    largest = max(overlap.comp_s, overlap.comm_s) / per
    factor, unit = next(((f, u) for f, u in TIME_UNITS if largest >= f), TIME_UNITS[-1])
    parts = [
        ("computation", overlap.comp_s),
        (overlap.hidden_kind, overlap.comm_s),
        ("hidden", overlap.hidden_s),
        ("exposed", overlap.exposed_s),
        *([("cost of hiding", overlap.cost.value)] if overlap.cost is not None else []),
    ]
    values = tuple(value / per / factor for _, value in parts)
    ends = list(values), list(values)
    if overlap.cost is not None:
        ends[0][-1], ends[1][-1] = overlap.cost.low / per / factor, overlap.cost.high / per / factor
    bars = Series(
        name="time",
        hue="blue",
        style="line",
        x=tuple(float(place) for place in range(len(parts))),
        y=values,
        low=tuple(ends[0]),
        high=tuple(ends[1]),
        drawn="bars",
        texts=tuple(number(value, 3) for value in values),
        value="time",
        band="interval",
    )
    return Figure(
        name="overlap-times",
        title=f"Time of a rank{' in a step' if overlap.steps else ''}",
        x=Axis(label="", names=tuple(name for name, _ in parts)),
        left=Axis(label=unit),
        series=(bars,),
        caption=overlap.verdict,
    )


def _slowdowns(overlap: TraceOverlap) -> Figure | None:
    known = [(one, one.slowdown) for one in overlap.classes if one.slowdown is not None][:MOST_BARS]
    if not known:
        return None
    series = tuple(
        _bars(
            name, [(place, slowdown) for place, (one, slowdown) in enumerate(known) if one.changed == changed]
        )
        for changed, name in ((True, "significant"), (False, "not significant"))
        if any(one.changed == changed for one, _ in known)
    )
    return Figure(
        name="overlap-slowdowns",
        title="How much longer computations take beside communication",
        x=Axis(label="", names=tuple(_name(one) for one, _ in known)),
        left=Axis(label="%", reference=0.0),
        series=series,
        caption="Whiskers: all intervals hold together with 95 % confidence.",
    )


def _timeline(overlap: TraceOverlap) -> Figure | None:
    """Both sides in the step of median length, one above the other."""
    step = overlap.median_step
    if step is None:
        return None
    factor, unit = next(((f, u) for f, u in TIME_UNITS if step.seconds >= f), TIME_UNITS[-1])
    rows: tuple[tuple[str, Side, float, tuple[tuple[float, float], ...]], ...] = (
        (overlap.hidden_kind, "communication", 0.0, step.communicating),
        ("computation", "computation", 1.25, step.computing),
    )
    series = tuple(
        Series(
            name=name,
            side=side,
            style="line",
            x=tuple(time / factor for begin, end in spans for time in (begin, begin, end, end)),
            y=tuple(base + level for _ in spans for level in (0.0, 1.0, 1.0, 0.0)),
            value="active",
        )
        for name, side, base, spans in rows
        if spans
    )
    return Figure(
        name="overlap-step",
        title=f"The step of median length ({step.rank})",
        x=Axis(label=f"time in the step ({unit})"),
        left=Axis(label="active"),
        series=series,
        caption="Upper line: computation; lower line: communication. A line is up while its side is active.",
    )


def _bars(name: str, known: list[tuple[int, Interval]]) -> Series:
    return Series(
        name=name,
        side="computation",
        style="line" if name == "significant" else "undecided",
        x=tuple(float(place) for place, _ in known),
        y=tuple(100 * (slowdown.value - 1) for _, slowdown in known),
        low=tuple(100 * (slowdown.low - 1) for _, slowdown in known),
        high=tuple(100 * (slowdown.high - 1) for _, slowdown in known),
        drawn="bars",
        texts=tuple(f"{100 * (slowdown.value - 1):.1f}" for _, slowdown in known),
        value="longer by",
        band="interval",
    )


def _name(one: ComputationClass) -> str:
    """Below a bar, in lines of NAME_LETTERS."""
    return " ".join(short_name(text, NAME_LETTERS) for text in (one.name, one.communication or ""))


def overlap_page(overlap: TraceOverlap) -> str:
    """Verdict, figures and the table as one self-contained page."""
    return figure_page(
        "What overlap hides, and what hiding costs",
        [(overlap.verdict, (overlap.counts, *overlap.doubts, *overlap.notes)), *_operations(overlap)],
        overlap_figures(overlap),
        (
            "Classes of computation",
            COLUMNS,
            [row(one.label, one.communication, one) for one in overlap.classes],
        ),
        command=" ".join(overlap.files),
        note=f"Times are those of a rank, the mean over {overlap.ranks}.",
    )


def _operations(overlap: TraceOverlap) -> list[tuple[str, Sequence[str]]]:
    """A sentence on the slowdown during each operation, where they differ."""
    slowdowns = [f"{one.label}: {slowdown_text(one.slowdown)}" for one in overlap.estimate.operations]
    return [("The slowdown of all computation differs between operations:", slowdowns)] if slowdowns else []


def row(name: str, other: str | None, one: Matched) -> tuple[str, ...]:
    """A row of the table of classes."""
    return (
        name,
        other or "-",
        str(one.alone),
        str(one.overlapped),
        duration(one.shared_s) if one.overlapped else "-",
        slowdown_text(one.slowdown) if one.slowdown is not None else f"n/a: {one.reason}",
    )


def slowdown_text(interval: Interval) -> str:
    """`1.14 (1.12 to 1.16)`."""
    return with_span(*(f"{end:.3f}" for end in (interval.value, interval.low, interval.high)))
