"""Curves and panels with the paper's conventions: solid alone, dashed together, band d1 to d9."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import msgspec

from elbowroom.draw.figure import RULE, Axis, Drawn, Figure, Hue, Mark, Series, Side
from elbowroom.experiments.common.sentences import SideName, kept_of, onsets
from elbowroom.plan.kernels import kernel_name
from elbowroom.results.curves import Onset
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Added, Interval, Kept, Summary

Style = Literal["alone", "together"]
Triple = tuple[float, float, float]
X = Callable[[PointResult], float]
Transform = Callable[[PointResult, Summary], Triple]

CORES = Axis(label="Number of computing cores", whole=True)
SIZES = Axis(label="Message size", scale="log2", bytes=True)


def plain(_: PointResult, summary: Summary) -> Triple:
    """(median, d1, d9) as measured."""
    return summary.median, summary.d1, summary.d9


def per_core(item: PointResult, summary: Summary) -> Triple:
    """Divided by the number of computing cores, as the paper plots memory bandwidth (section 4.1)."""
    n = max(item.n, 1)
    return summary.median / n, summary.d1 / n, summary.d9 / n


def as_bandwidth(item: PointResult, summary: Summary) -> Triple:
    """MB/s; of a latency in us, size/latency (B/us = MB/s), whose d1 comes from the latency's d9."""
    if summary.unit != "us":
        return plain(item, summary)
    return item.size / summary.median, item.size / summary.d9, item.size / summary.d1


WORK = {"MB/s": (1e3, "GB"), "M/s": (1.0, "million items"), "Mflop/s": (1e3, "Gflop")}
"""By unit of a rate: the work whose duration is read, in millions, and its name."""


def as_duration(item: PointResult, summary: Summary) -> Triple:
    """Seconds that each core takes for the work of its rate's unit, as the paper plots durations (Figs 3a and
    7); d1 comes from the rate's d9.
    """
    work = WORK[summary.unit][0] * max(item.n, 1)
    return work / summary.median, work / summary.d9, work / summary.d1


def durations(figure: Figure, results: Sequence[PointResult], x: X) -> Figure | None:
    """The same figure with durations in place of the computation's rates; None where no rate was measured."""
    unit = next((item.comp.alone.unit for item in results if item.comp.alone is not None), "")
    if unit not in WORK:
        return None
    styles: tuple[Style, ...] = ("alone", "together")
    name = kernel_name(results[0].kernel)
    curves = [
        curve(results, "comp", style, x, name=name, axis="below", transform=as_duration) for style in styles
    ]
    return msgspec.structs.replace(
        figure,
        name=f"{figure.name}-duration",
        title=f"{figure.title}, as durations",
        below=Axis(label=f"Duration of {WORK[unit][1]} per core (s)"),
        series=(
            *(series for series in figure.series if series.axis == "left"),
            *(series for series in curves if series is not None),
        ),
    )


def with_durations(figure: Figure, results: Sequence[PointResult], x: X) -> tuple[Figure, ...]:
    """A figure of rates, and its second reading."""
    second = durations(figure, results, x)
    return (figure,) if second is None else (figure, second)


def as_flops(item: PointResult, summary: Summary) -> Triple:
    """Mflop/s of a kernel that moves memory: MB/s times its arithmetic intensity in flop/B."""
    factor = 1.0 if summary.unit == "Mflop/s" else (item.arithmetic_intensity or 0.0)
    return summary.median * factor, summary.d1 * factor, summary.d9 * factor


def line(name: str, rows: Iterable[Sequence[float]], points: Iterable[str] = (), **look: Any) -> Series:
    """A series of rows: x and y, or x, y, and both ends of the band; `points`: the ids of the results. `look`
    has the other fields of the series.
    """
    columns: list[tuple[float, ...]] = [*zip(*rows, strict=True)]
    x, y, low, high = [*columns, (), (), (), ()][:4]
    return Series(name=name, x=x, y=y, low=low, high=high, points=tuple(points), **look)


def curve(
    results: Sequence[PointResult],
    side: SideName,
    style: Style,
    x: X,
    *,
    name: str,
    axis: Literal["left", "below"],
    transform: Transform = plain,
    label: str = "",
) -> Series | None:
    """One curve with its band; None where nothing of it was measured. `label`: in place of name and style."""
    rows = []
    for item in sorted(results, key=x):
        summary: Summary | None = getattr(getattr(item, side), style)
        if summary is not None:
            rows.append((x(item), *transform(item, summary), item.id))
    if not rows:
        return None
    return line(
        label or f"{name} {style}",
        [row[:4] for row in rows],
        [row[4] for row in rows],
        side="computation" if side == "comp" else "communication",
        style=style,
        axis=axis,
    )


def interval_line(
    name: str,
    known: Sequence[tuple[float, Kept | Added | Interval, str]],
    *,
    side: Side | None = None,
    hue: Hue | None = None,
    drawn: Drawn = "curve",
    value: str = "median",
    flat: bool = True,
) -> Series:
    """A line of values, each with its x and the id of its point; the band is their 95 % intervals. Without
    `flat` there is none where no interval has a width.
    """
    ends = [measured.ends(measured.value) for _, measured, _ in known]
    banded = flat or any(low != high for low, high in ends)
    return line(
        name,
        [
            (x, measured.value, *(end if banded else ()))
            for (x, measured, _), end in zip(known, ends, strict=True)
        ],
        [point for _, _, point in known],
        side=side,
        hue=hue,
        style="line",
        drawn=drawn,
        value=value,
        band="95 % interval",
    )


def kept_curve(results: Sequence[PointResult], side: SideName, x: X, name: str) -> Series | None:
    """What a side kept, with its 95 % interval as the band."""
    known = [
        (x(item), kept, item.id)
        for item in sorted(results, key=x)
        if (kept := kept_of(item, side)) is not None
    ]
    which: Side = "computation" if side == "comp" else "communication"
    return interval_line(name, known, side=which, value="kept") if known else None


def both(
    results: Sequence[PointResult],
    x: X,
    *,
    comm: str,
    comp: str,
    comm_transform: Transform = plain,
    comp_transform: Transform = plain,
) -> tuple[Series, ...]:
    """Communication above and computation below, alone and together."""
    curves = []
    styles: tuple[Style, ...] = ("alone", "together")
    for style in styles:
        curves.append(curve(results, "comm", style, x, name=comm, axis="left", transform=comm_transform))
    for style in styles:
        curves.append(curve(results, "comp", style, x, name=comp, axis="below", transform=comp_transform))
    return tuple(series for series in curves if series is not None)


def comp_label(results: Sequence[PointResult], each_core: bool = True) -> str:
    """The label of the computation's axis, from the unit measured."""
    unit = next((item.comp.alone.unit for item in results if item.comp.alone is not None), "MB/s")
    what = "Memory bandwidth" if unit == "MB/s" else "Computing rate"
    return f"{what} per core ({unit})" if each_core else f"{what} ({unit})"


def comm_label(results: Sequence[PointResult]) -> str:
    """The label of the communication's axis, from the metric."""
    return (
        "Network latency (µs)" if results and results[0].metric == "latency" else "Network bandwidth (MB/s)"
    )


def side_by_side(
    name: str,
    title: str,
    x_axis: Axis,
    results: Sequence[PointResult],
    x: X,
    *,
    comm: str,
    left: Axis | None = None,
    below: Axis | None = None,
    comm_transform: Transform = plain,
    comp_transform: Transform = plain,
    lines: Sequence[Mark] | None = None,
) -> Figure:
    """Both sides over one axis, alone and together: communication (called `comm`) on the left axis, the
    kernel on the right one. Where they are left out, axes are labelled from what was measured, and lines mark
    where a side starts to suffer.
    """
    return Figure(
        name=name,
        title=title,
        x=x_axis,
        left=left or Axis(label=comm_label(results)),
        below=below or Axis(label=comp_label(results, each_core=comp_transform is per_core)),
        series=both(
            results,
            x,
            comm=comm,
            comp=kernel_name(results[0].kernel),
            comm_transform=comm_transform,
            comp_transform=comp_transform,
        ),
        marks=marks(*onsets(results, x)) if lines is None else tuple(lines),
        caption=RULE,
    )


def kept_figure(
    name: str,
    title: str,
    x_axis: Axis,
    results: Sequence[PointResult],
    x: X,
) -> Figure:
    """What both sides kept over one axis, and marks where a side starts to suffer."""
    series = (kept_curve(results, "comm", x, "communication"), kept_curve(results, "comp", x, "computation"))
    return Figure(
        name=name,
        title=title,
        x=x_axis,
        left=Axis(label="Kept (1 = undisturbed)", reference=1.0),
        series=tuple(item for item in series if item is not None),
        marks=marks(*onsets(results, x)),
        caption="together/alone of the rates (alone/together of a latency); the band is the 95 % interval.",
    )


def marks(comm: Onset, comp: Onset) -> tuple[Mark, ...]:
    """Vertical lines where a side starts to suffer for good."""
    lines = []
    if comm.x is not None:
        lines.append(Mark(x=comm.x, text="communication suffers from here"))
    if comp.x is not None:
        lines.append(Mark(x=comp.x, text="computation suffers from here"))
    return tuple(lines)


def cores_of(item: PointResult) -> float:
    """The axis: computing cores."""
    return float(item.n)


def size_of(item: PointResult) -> float:
    """The axis: bytes of a message."""
    return float(item.size)


def as_latency(item: PointResult, summary: Summary) -> Summary:
    """A summary of the half round trip in us; of a bandwidth in MB/s, size/bandwidth (B per MB/s = us)."""
    if summary.unit == "us":
        return summary
    return Summary(
        median=item.size / summary.median,
        d1=item.size / summary.d9,
        d9=item.size / summary.d1,
        low=None if summary.high is None else item.size / summary.high,
        high=None if not summary.low else item.size / summary.low,
        count=summary.count,
        unit="us",
    )


def in_microseconds(item: PointResult, summary: Summary) -> Triple:
    """Of the half round trip, us."""
    latency = as_latency(item, summary)
    return latency.median, latency.d1, latency.d9
