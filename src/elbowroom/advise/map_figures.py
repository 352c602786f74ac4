"""The contention map as figures: who loses, and how long a step takes, for each placement of the job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from elbowroom.advise.contention_map import LOSES, ContentionMap, Spot, who_loses
from elbowroom.advise.reasons import seconds
from elbowroom.advise.setups import comm_socket
from elbowroom.draw import numbers, scales
from elbowroom.draw.figure import Arrow, Axis, Field, Figure, Label, Region, Second, Series
from elbowroom.model.curves import Shape
from elbowroom.plan.sizes import format_size

Array = NDArray[np.float64]
Grid = tuple[tuple[float, ...], ...]

KEPT = (LOSES, 0.9, 0.75, 0.5)
"""Levels of what is kept."""
LONGER = (1.02, 1.05, 1.1, 1.25, 1.5, 2.0, 4.0)
"""Levels of a step's time, relative to the least one on the job's maps."""
NAMES = {"now": "now", "advised": "advised", "moved": "now's cores and size"}
SIZES = "Message size"
FEW = 4
"""Fewer numbers of cores than these have each its tick on the scale of GB/s."""
_SHADES = "Shades: what communication keeps of its bandwidth alone; lines: what computation keeps."
_AT_POINTS = "At the points: kept by communication / by computation."
_IN_TURN = "Here both take turns and lose nothing: the map shows what overlapping would cost."
_WHISKERS = "Whiskers: as far as the step's time does not surely differ from that at the point (90 %)."
_ARROW = " Arrow: what is advised."


def figures(maps: Sequence[ContentionMap], shape: Shape) -> tuple[Figure, ...]:
    """For each map who loses there and how long a step takes there; curves where the model knows one size."""
    least = min(float(found.total.min()) for found in maps)
    drawn: list[Figure] = []
    for place, found in enumerate(maps):
        where = placement(found, shape)
        if len(found.sizes) == 1:
            drawn += [_kept_curves(found, where, place), _time_curve(found, where, place)]
        else:
            drawn += [_losses(found, where, place), _times(found, where, place, least)]
    return tuple(drawn)


def placement(found: ContentionMap, shape: Shape) -> str:
    """Where the map's data are, in words."""
    at = found.setup
    other = at.cores if found.axis == "cores_other" else at.cores_other
    parts = [f"computations on node {at.comp_node}"]
    if other:
        node = (
            at.comp_node if found.axis == "cores_other" or at.comp_node_other is None else at.comp_node_other
        )
        which = "first" if found.axis == "cores_other" else "second"
        parts.append(f"{other} core{'s' if other > 1 else ''} of the {which} socket on node {node}")
    parts.append(f"messages on node {at.comm_node}")
    if at.comm_threads > 1:
        parts.append(f"{at.comm_threads} communication threads")
    if at.comm_socket is not None and shape.sockets > 1:
        parts.append(f"of socket {comm_socket(at, shape)}")
    if not at.overlap:
        parts.append("one after the other")
    if at.w:
        parts.append(f"{float(at.w):.0%} on the accelerators")
    return ", ".join(parts)


def _losses(found: ContentionMap, where: str, place: int) -> Figure:
    beside = "" if found.setup.overlap else f" {_IN_TURN}"
    return Figure(
        name=f"map-losses-{place}",
        title=f"Who loses: {where}",
        x=_cores(found),
        left=_sizes(found),
        fields=_loss_fields(found),
        regions=_regions(found),
        labels=tuple(_label(spot) for spot in found.spots),
        arrows=_arrows(found),
        caption=f"{_SHADES} {_AT_POINTS}{beside} {_WHISKERS}{_arrow_text(found)}",
    )


def _loss_fields(found: ContentionMap) -> tuple[Field, ...]:
    """Shades and hatches of what communication loses, lines and hatches of what computation keeps."""

    def told(j: int, i: int) -> str:
        return f"communication {found.kept_comm[j, i]:.2f}, computation {found.kept_comp[j, i]:.2f}"

    lost, kept = _widened(1.0 - found.kept_comm), _widened(found.kept_comp)
    comm = Field(
        name="kept by communication",
        side="communication",
        drawn="shades",
        x=_xs(found),
        y=_ys(found),
        values=lost,
        levels=tuple(1 - level for level in KEPT),
        texts=(f"over {KEPT[0]:g}", *(f"{b:g} – {a:g}" for a, b in pairwise(KEPT)), f"under {KEPT[-1]:g}"),
        told=_told(found, told),
        rows=_rows(found),
        value="kept",
    )
    comp = Field(
        name="kept by computation",
        side="computation",
        drawn="lines",
        x=comm.x,
        y=comm.y,
        values=kept,
        levels=KEPT,
        texts=tuple(f"{level:g}" for level in KEPT),
    )
    comm_loses = Field(
        name=f"communication keeps under {LOSES:g}",
        side="communication",
        drawn="rising",
        x=comm.x,
        y=comm.y,
        values=lost,
        levels=(1 - LOSES,),
    )
    comp_loses = Field(
        name=f"computation keeps under {LOSES:g}",
        side="computation",
        drawn="falling",
        x=comm.x,
        y=comm.y,
        values=tuple(tuple(-value for value in row) for row in kept),
        levels=(-LOSES,),
    )
    return comm, comm_loses, comp_loses, comp


def _regions(found: ContentionMap) -> tuple[Region, ...]:
    comp, comm = _widened(found.kept_comp), _widened(found.kept_comm)
    words = [[who_loses(*kept) for kept in zip(*rows, strict=True)] for rows in zip(comp, comm, strict=True)]
    return tuple(
        Region(
            name=name,
            x=_xs(found),
            y=_ys(found),
            inside=tuple(tuple(word == name for word in row) for row in words),
        )
        for name in dict.fromkeys(word for row in words for word in row)
    )


def _times(found: ContentionMap, where: str, place: int, least: float) -> Figure:
    shades = Field(
        name=f"step's time over the least, {seconds(least)}",
        side="both",
        drawn="shades",
        x=_xs(found),
        y=_ys(found),
        values=_widened(found.total / least),
        levels=LONGER,
        texts=(
            f"under {LONGER[0]:g}",
            *(f"{a:g} – {b:g}" for a, b in pairwise(LONGER)),
            f"over {LONGER[-1]:g}",
        ),
        told=_told(found, lambda j, i: seconds(float(found.total[j, i]))),
        rows=_rows(found),
        value="a step takes",
    )
    lines = Field(
        name="step's time",
        side="both",
        drawn="lines",
        x=shades.x,
        y=shades.y,
        values=shades.values,
        levels=LONGER,
        texts=tuple(seconds(least * longer) for longer in LONGER),
    )
    return Figure(
        name=f"map-times-{place}",
        title=f"How long a step takes: {where}",
        x=_cores(found),
        left=_sizes(found),
        fields=(shades, lines),
        labels=tuple(_label(spot) for spot in found.spots),
        arrows=_arrows(found),
        caption=f"Shades: relative to the least on the maps of this job. {_WHISKERS}{_arrow_text(found)}",
    )


def _kept_curves(found: ContentionMap, where: str, place: int) -> Figure:
    """Over the number of cores, for messages of the one size that the model knows."""
    x = tuple(float(count) for count in found.counts)
    return Figure(
        name=f"map-losses-{place}",
        title=f"What is kept: {where}",
        x=_cores(found),
        left=Axis(label="Kept (1 = as alone)", reach=1.0),
        series=(
            Series(
                name="communication",
                side="communication",
                style="together",
                x=x,
                y=tuple(found.kept_comm[0].tolist()),
                value="kept",
            ),
            Series(
                name="computation",
                side="computation",
                style="together",
                x=x,
                y=tuple(found.kept_comp[0].tolist()),
                value="kept",
            ),
        ),
        labels=tuple(
            Label(x=float(spot.count), y=spot.kept_comm.value, text=_text(spot)) for spot in found.spots
        ),
        caption=f"{_one_size(found)} {_AT_POINTS}",
    )


def _time_curve(found: ContentionMap, where: str, place: int) -> Figure:
    return Figure(
        name=f"map-times-{place}",
        title=f"How long a step takes: {where}",
        x=_cores(found),
        left=Axis(label="Step (ms)"),
        series=(
            Series(
                name="step",
                side="both",
                style="line",
                x=tuple(float(count) for count in found.counts),
                y=tuple((1e3 * found.total[0]).tolist()),
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
            for spot in found.spots
        ),
        caption=f"{_one_size(found)} Whiskers: the time's 90 % interval, where it does not surely differ.",
    )


def _one_size(found: ContentionMap) -> str:
    return f"For messages of {format_size(found.sizes[0])}, the only size that the model knows."


def _cores(found: ContentionMap) -> Axis:
    """Cores, and what they ask for: each what one gets alone."""
    of = {"cores": "computing cores", "cores_other": "computing cores of the second socket"}[found.axis]
    second = Second(label="what they ask of memory (GB/s)", ticks=_asked_ticks(found))
    return Axis(label=f"Number of {of}", whole=True, second=second if len(found.sizes) > 1 else None)


def _asked_ticks(found: ContentionMap) -> tuple[tuple[float, str], ...]:
    """At round numbers of GB/s, or at each number of cores where there are few."""
    each, counts = found.one_core / 1e3, found.counts
    if len(counts) < FEW:
        return tuple((float(count), numbers.number(count * each, 3)) for count in counts)
    ends = (counts[0] * each, counts[-1] * each)
    ticks = scales.axis_scale(Axis(label=""), ends, from_zero=False).ticks
    return tuple((tick.value / each, tick.label) for tick in ticks if ends[0] <= tick.value <= ends[1])


def _sizes(found: ContentionMap) -> Axis:
    axis = Axis(label=SIZES, scale="log2", bytes=True)
    labelled = [round(t.value) for t in scales.axis_scale(axis, _ys(found), from_zero=False).ticks if t.label]
    asked = dict(zip(found.sizes, found.asked, strict=True))
    ticks = tuple((float(size), numbers.number(asked[size] / 1e3, 3)) for size in labelled if size in asked)
    second = Second(label="what messages ask (GB/s)", ticks=ticks)
    return Axis(label=SIZES, scale="log2", bytes=True, second=second)


def _xs(found: ContentionMap) -> tuple[float, ...]:
    """Half a core more at both ends, so that points at the ends, and a single column, have room."""
    counts = found.counts
    return (counts[0] - 0.5, *(float(count) for count in counts), counts[-1] + 0.5)


def _ys(found: ContentionMap) -> tuple[float, ...]:
    """Half a power of two more at both ends, as for cores."""
    sizes = [float(size) for size in found.sizes]
    return (sizes[0] / 2**0.5, *sizes, sizes[-1] * 2**0.5)


def _widened(values: Array) -> Grid:
    """With the outermost rows and columns twice: they reach to the ends of the plot."""
    return tuple(tuple(row) for row in np.pad(values, 1, mode="edge").tolist())


def _told(found: ContentionMap, text: Callable[[int, int], str]) -> tuple[tuple[str, ...], ...]:
    """What each node says; those of the widened ends say nothing."""
    blank = ("",) * (len(found.counts) + 2)
    rows = [("", *(text(j, i) for i in range(len(found.counts))), "") for j in range(len(found.sizes))]
    return (blank, *rows, blank)


def _rows(found: ContentionMap) -> tuple[str, ...]:
    return ("", *(f"messages of {format_size(size)}" for size in found.sizes), "")


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
        f"kept {spot.kept_comm.value:.2f} / {spot.kept_comp.value:.2f}" if spot.setup.overlap else "in turn"
    )
    return f"{NAMES[spot.name]}: {seconds(spot.total.value)}\n{kept}"


def _arrow_text(found: ContentionMap) -> str:
    return _ARROW if len(found.spots) > 1 else ""


def _arrows(found: ContentionMap) -> tuple[Arrow, ...]:
    if len(found.spots) < 2:
        return ()
    start, end = ((float(spot.count), float(spot.size)) for spot in found.spots)
    return (Arrow(start=start, end=end),)
