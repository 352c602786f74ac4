"""The contention map as figures: losses and the time of a step, for each placement of the job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import numpy as np

from elbowroom.advise.contention_map import LOSES, ContentionMap, Spot, who_loses
from elbowroom.advise.setups import comm_socket
from elbowroom.draw import scales
from elbowroom.draw.figure import Arrow, Axis, Field, Figure, Label, NamedRegion, Second, Series, Side
from elbowroom.models.curves import Shape
from elbowroom.models.flow.law import Array
from elbowroom.quantities import format_size, number, plural, short_time

Grid = tuple[tuple[float, ...], ...]

KEPT = (LOSES, 0.9, 0.75, 0.5)
"""Levels of what is kept."""
LONGER = (1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0)
"""Levels of a step's time, relative to the least one on the job's maps."""
NAMES = {"now": "now", "advised": "advised", "moved": "present cores and size"}
SIZES = "Message size"
FEW = 4
"""Fewer numbers of cores than these have each its tick on the scale of GB/s."""
_SHADES = "Shades: kept by communication; lines: kept by computation."
_AT_POINTS = "Numbers at the points: kept by communication / by computation."
_IN_TURN = "Without overlap neither side loses: the map shows the losses with overlap."
_WHISKERS = "Whiskers: within them, the time of a step does not differ significantly (90 %)."
_ARROW = " Arrow: the advised change."


def figures(maps: Sequence[ContentionMap], shape: Shape) -> tuple[Figure, ...]:
    """Losses and the time of a step for each map; curves if the model knows one message size only."""
    least = min(float(chart.total.min()) for chart in maps)
    drawn: list[Figure] = []
    for place, chart in enumerate(maps):
        where = placement(chart, shape)
        if len(chart.sizes) == 1:
            drawn += [_kept_curves(chart, where, place), _time_curve(chart, where, place)]
        else:
            drawn += [_losses(chart, where, place), _times(chart, where, place, least)]
    return tuple(drawn)


def placement(chart: ContentionMap, shape: Shape) -> str:
    """The placement of the map's data, in words."""
    at = chart.setup
    other = at.cores if chart.axis == "cores_other" else at.cores_other
    parts = [f"computations on node {at.comp_node}"]
    if other:
        node = (
            at.comp_node if chart.axis == "cores_other" or at.comp_node_other is None else at.comp_node_other
        )
        which = "first" if chart.axis == "cores_other" else "second"
        parts.append(f"{plural(other, 'core')} of the {which} socket on node {node}")
    parts.append(f"messages on node {at.comm_node}")
    if at.comm_threads > 1:
        parts.append(f"{at.comm_threads} communication threads")
    if at.comm_socket is not None and shape.sockets > 1:
        parts.append(f"communication on socket {comm_socket(at, shape)}")
    if not at.overlap:
        parts.append("no overlap")
    if at.w:
        parts.append(f"{float(at.w):.0%} on the accelerators")
    return ", ".join(parts)


def _losses(chart: ContentionMap, where: str, place: int) -> Figure:
    beside = "" if chart.setup.overlap else f" {_IN_TURN}"
    return Figure(
        name=f"map-losses-{place}",
        title=f"Losses: {where}",
        x=_cores(chart),
        left=_sizes(chart),
        fields=_loss_fields(chart),
        regions=_regions(chart),
        labels=tuple(_label(spot) for spot in chart.spots),
        arrows=_arrows(chart),
        caption=f"{_SHADES} {_AT_POINTS}{beside} {_WHISKERS}{_arrow_text(chart)}",
    )


def _loss_fields(chart: ContentionMap) -> tuple[Field, ...]:
    """Shades and hatches of what communication loses, lines and hatches of what computation keeps."""

    def reading(j: int, i: int) -> str:
        return f"communication {chart.kept_comm[j, i]:.2f}, computation {chart.kept_comp[j, i]:.2f}"

    lost, kept = _widened(1.0 - chart.kept_comm), _widened(chart.kept_comp)
    field = partial(Field, x=_xs(chart), y=_ys(chart))
    comm = field(
        name="kept by communication",
        side="communication",
        drawn="shades",
        values=lost,
        levels=tuple(1 - level for level in KEPT),
        texts=(f"over {KEPT[0]:g}", *(f"{b:g} – {a:g}" for a, b in pairwise(KEPT)), f"under {KEPT[-1]:g}"),
        readings=_readings(chart, reading),
        rows=_rows(chart),
        value="kept",
    )
    comp = field(
        name="kept by computation",
        side="computation",
        drawn="lines",
        values=kept,
        levels=KEPT,
        texts=tuple(f"{level:g}" for level in KEPT),
    )
    comm_loses = field(
        name=f"communication keeps less than {LOSES:g}",
        side="communication",
        drawn="rising",
        values=lost,
        levels=(1 - LOSES,),
    )
    comp_loses = field(
        name=f"computation keeps less than {LOSES:g}",
        side="computation",
        drawn="falling",
        values=tuple(tuple(-value for value in row) for row in kept),
        levels=(-LOSES,),
    )
    return comm, comm_loses, comp_loses, comp


def _regions(chart: ContentionMap) -> tuple[NamedRegion, ...]:
    comp, comm = _widened(chart.kept_comp), _widened(chart.kept_comm)
    words = [[who_loses(*kept) for kept in zip(*rows, strict=True)] for rows in zip(comp, comm, strict=True)]
    return tuple(
        NamedRegion(
            name=name,
            x=_xs(chart),
            y=_ys(chart),
            inside=tuple(tuple(word == name for word in row) for row in words),
        )
        for name in dict.fromkeys(word for row in words for word in row)
    )


def _times(chart: ContentionMap, where: str, place: int, least: float) -> Figure:
    shades = Field(
        name=f"time of a step / shortest time ({short_time(least)})",
        drawn="shades",
        x=_xs(chart),
        y=_ys(chart),
        values=_widened(chart.total / least),
        levels=LONGER,
        texts=(
            f"under {LONGER[0]:g}",
            *(f"{a:g} – {b:g}" for a, b in pairwise(LONGER)),
            f"over {LONGER[-1]:g}",
        ),
        readings=_readings(chart, lambda j, i: short_time(float(chart.total[j, i]))),
        rows=_rows(chart),
        value="a step takes",
    )
    lines = Field(
        name="time of a step",
        drawn="lines",
        x=shades.x,
        y=shades.y,
        values=shades.values,
        levels=LONGER,
        texts=tuple(short_time(least * longer) for longer in LONGER),
    )
    return Figure(
        name=f"map-times-{place}",
        title=f"Time of a step: {where}",
        x=_cores(chart),
        left=_sizes(chart),
        fields=(shades, lines),
        labels=tuple(_label(spot) for spot in chart.spots),
        arrows=_arrows(chart),
        caption=f"Shades: relative to the shortest time on this job's maps. {_WHISKERS}{_arrow_text(chart)}",
    )


def _kept_curves(chart: ContentionMap, where: str, place: int) -> Figure:
    """Over the number of cores, for messages of the one size that the model knows."""
    x = tuple(float(count) for count in chart.counts)
    sides: tuple[tuple[Side, Array], ...] = (
        ("communication", chart.kept_comm), ("computation", chart.kept_comp)
    )  # fmt: skip
    return Figure(
        name=f"map-losses-{place}",
        title=f"Kept bandwidth: {where}",
        x=_cores(chart),
        left=Axis(label="Kept (1 = as alone)", reference=1.0),
        series=tuple(
            Series(name=side, side=side, style="together", x=x, y=tuple(kept[0].tolist()), value="kept")
            for side, kept in sides
        ),
        labels=tuple(
            Label(x=float(spot.count), y=spot.kept_comm.value, text=_text(spot)) for spot in chart.spots
        ),
        caption=f"{_one_size(chart)} {_AT_POINTS}",
    )


def _time_curve(chart: ContentionMap, where: str, place: int) -> Figure:
    return Figure(
        name=f"map-times-{place}",
        title=f"Time of a step: {where}",
        x=_cores(chart),
        left=Axis(label="Step (ms)"),
        series=(
            Series(
                name="step",
                style="line",
                x=tuple(float(count) for count in chart.counts),
                y=tuple((1e3 * chart.total[0]).tolist()),
                value="predicted",
            ),
        ),
        labels=tuple(
            Label(
                x=float(spot.count),
                y=1e3 * spot.total.value,
                text=_text(spot),
                across=(float(spot.counts[0]), float(spot.counts[1])),
                up=(1e3 * spot.total.low, 1e3 * spot.total.high),
            )
            for spot in chart.spots
        ),
        caption=f"{_one_size(chart)} Whiskers: 90 % interval of the time; no significant difference.",
    )


def _one_size(chart: ContentionMap) -> str:
    return f"For messages of {format_size(chart.sizes[0])}, the only size in the model."


def _cores(chart: ContentionMap) -> Axis:
    """Cores, and their demand: each core's bandwidth alone."""
    of = {"cores": "computing cores", "cores_other": "computing cores of the second socket"}[chart.axis]
    second = Second(label="their bandwidth alone (GB/s)", ticks=_rate_ticks(chart))
    return Axis(label=f"Number of {of}", whole=True, second=second if len(chart.sizes) > 1 else None)


def _rate_ticks(chart: ContentionMap) -> tuple[tuple[float, str], ...]:
    """At round numbers of GB/s, or at each number of cores where there are few."""
    each, counts = chart.one_core / 1e3, chart.counts
    if len(counts) < FEW:
        return tuple((float(count), number(count * each, 3)) for count in counts)
    ends = (counts[0] * each, counts[-1] * each)
    ticks = scales.axis_scale(Axis(label=""), ends, from_zero=False).ticks
    return tuple((tick.value / each, tick.label) for tick in ticks if ends[0] <= tick.value <= ends[1])


def _sizes(chart: ContentionMap) -> Axis:
    axis = Axis(label=SIZES, scale="log2", bytes=True)
    labelled = [round(t.value) for t in scales.axis_scale(axis, _ys(chart), from_zero=False).ticks if t.label]
    rates = dict(zip(chart.sizes, chart.size_rates, strict=True))
    ticks = tuple((float(size), number(rates[size] / 1e3, 3)) for size in labelled if size in rates)
    second = Second(label="bandwidth of messages alone (GB/s)", ticks=ticks)
    return Axis(label=SIZES, scale="log2", bytes=True, second=second)


def _xs(chart: ContentionMap) -> tuple[float, ...]:
    """Half a core more at both ends, so that points at the ends, and a single column, have room."""
    counts = chart.counts
    return (counts[0] - 0.5, *(float(count) for count in counts), counts[-1] + 0.5)


def _ys(chart: ContentionMap) -> tuple[float, ...]:
    """Half a power of two more at both ends, as for cores."""
    sizes = [float(size) for size in chart.sizes]
    return (sizes[0] / 2**0.5, *sizes, sizes[-1] * 2**0.5)


def _widened(values: Array) -> Grid:
    """With the outermost rows and columns twice: they reach to the ends of the plot."""
    return tuple(tuple(row) for row in np.pad(values, 1, mode="edge").tolist())


def _readings(chart: ContentionMap, text: Callable[[int, int], str]) -> tuple[tuple[str, ...], ...]:
    """What each node says; those of the widened ends say nothing."""
    blank = ("",) * (len(chart.counts) + 2)
    rows = [("", *(text(j, i) for i in range(len(chart.counts))), "") for j in range(len(chart.sizes))]
    return (blank, *rows, blank)


def _rows(chart: ContentionMap) -> tuple[str, ...]:
    return ("", *(f"messages of {format_size(size)}" for size in chart.sizes), "")


def _label(spot: Spot) -> Label:
    return Label(
        x=float(spot.count),
        y=float(spot.size),
        text=_text(spot),
        hollow=spot.name == "moved",
        across=(float(spot.counts[0]), float(spot.counts[1])) if spot.name != "moved" else None,
        up=(float(spot.sizes[0]), float(spot.sizes[1])) if spot.name != "moved" else None,
    )


def _text(spot: Spot) -> str:
    kept = (
        f"kept {spot.kept_comm.value:.2f} / {spot.kept_comp.value:.2f}"
        if spot.setup.overlap
        else "no overlap"
    )
    return f"{NAMES[spot.name]}: {short_time(spot.total.value)}\n{kept}"


def _arrow_text(chart: ContentionMap) -> str:
    return _ARROW if len(chart.spots) > 1 else ""


def _arrows(chart: ContentionMap) -> tuple[Arrow, ...]:
    if len(chart.spots) < 2:
        return ()
    start, end = ((float(spot.count), float(spot.size)) for spot in chart.spots)
    return (Arrow(start=start, end=end),)
