"""A figure as marks, computed once for both back ends: the page's SVG (`svg`) and files (`files`).

Places of marks are shares of the plot: (0, 0) is its lower left corner and (1, 1) its upper right one.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence

import msgspec

from elbowroom.draw import maps, palette, scales
from elbowroom.draw.figure import Figure, Series
from elbowroom.draw.maps import Spot
from elbowroom.draw.scales import AxisScale

_UNIT = re.compile(r"[(\[]([^()\[\]]+)[)\]]\s*$")
HALF_BAR = 0.34
"""Half the width of a bar, where the next one is 1 away."""
AXIS_LETTERS = 78
"""Letters that fit side by side below the plot."""


class CurveMarks(msgspec.Struct, frozen=True, kw_only=True):
    """The marks of a series on the axis of a `side`, whose values have a `unit`.

    `lines` join its values, cut where one has no place (`vertices`: the indices of the others); `bands` are
    closed outlines. `whiskers` are (across, from, to); `bars` have two opposite corners each; `texts` stand
    above places.
    """

    series: Series
    look: palette.Look
    side: str
    unit: str
    vertices: tuple[int, ...]
    lines: tuple[tuple[Spot, ...], ...]
    bands: tuple[tuple[Spot, ...], ...]
    whiskers: tuple[tuple[float, float, float], ...]
    bars: tuple[tuple[Spot, Spot], ...]
    texts: tuple[tuple[Spot, str], ...]


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """All marks of a figure, and the scales of its axes: `sides` has the `left` one, and the one `below`
    where there is one. `keys`: the entries of its legend; `reference`: the height of the line at the left
    axis' reference.
    """

    x: AxisScale
    sides: dict[str, AxisScale]
    keys: tuple[palette.Look, ...]
    curves: tuple[CurveMarks, ...]
    reference: float | None


def marks(figure: Figure) -> Marks:
    """The marks of a figure."""
    x, sides = scales.horizontal(figure), {"left": scales.vertical(figure, "left")}
    if figure.below is not None:
        sides["below"] = scales.vertical(figure, "below")
    looks = palette.looks(figure)
    curves = [
        _curve(series, base, look, figure, x, sides)
        for series, base, look in zip(figure.series, scales.bases(figure), looks, strict=True)
    ]
    reference = None if figure.left.reference is None else sides["left"].place(figure.left.reference)
    return Marks(x=x, sides=sides, keys=palette.keys(looks), curves=tuple(curves), reference=reference)


def _curve(
    series: Series,
    base: Sequence[float],
    look: palette.Look,
    figure: Figure,
    x: AxisScale,
    sides: Mapping[str, AxisScale],
) -> CurveMarks:
    side = series.axis if series.axis in sides else "left"
    y = sides[side]
    axis = figure.below if side == "below" and figure.below is not None else figure.left
    level = [value + below for value, below in zip(series.y, base, strict=True)]
    # A band's edge that has no place on the axis (zero on a logarithm) is the curve itself.
    low = [v if y.shows(v) else at for v, at in zip(series.low, level, strict=True)] if series.low else []
    high = [v if y.shows(v) else at for v, at in zip(series.high, level, strict=True)] if series.high else []
    if series.drawn == "area":
        low, high = [v if y.shows(v) else y.low for v in base], level

    def spots(values: Sequence[float], run: Sequence[int]) -> tuple[Spot, ...]:
        return tuple((x.place(series.x[i]), y.place(values[i])) for i in run)

    runs = scales.runs(series.x, level, x, y)
    vertices = tuple(index for run in runs for index in run)
    banded = bool(low and high) and series.drawn not in ("bars", "points")
    whiskers = vertices if low and high and series.drawn == "points" else ()
    bars: list[tuple[Spot, Spot]] = []
    texts: list[tuple[Spot, str]] = []
    if series.drawn == "bars":
        ends = list(zip(series.x, series.base or (0.0,) * len(series.x), series.y, strict=True))
        bars = [
            ((x.place(at - HALF_BAR), y.place(start)), (x.place(at + HALF_BAR), y.place(end)))
            for at, start, end in ends
        ]
        # The scale of bars shows both ends of their whiskers.
        low, high = list(series.low), list(series.high)
        whiskers = tuple(index for index in range(len(low)) if low[index] != high[index])
        for (at, start, end), text, top in zip(ends, series.texts, high or series.y, strict=False):
            if text:
                texts.append(((x.place(at), y.place(max(end, start, top))), text))
    return CurveMarks(
        series=series,
        look=look,
        side=side,
        unit=unit_of(axis.label),
        vertices=vertices,
        lines=tuple(spots(level, run) for run in runs),
        bands=tuple(spots(high, run) + spots(low, run[::-1]) for run in runs) if banded else (),
        whiskers=tuple((x.place(series.x[i]), y.place(low[i]), y.place(high[i])) for i in whiskers),
        bars=tuple(bars),
        texts=tuple(texts),
    )


def line_marks(
    figure: Figure, x: AxisScale, least: float, across: Callable[[float], float] = lambda share: share
) -> list[tuple[int, float, float]]:
    """The vertical lines of a figure's marks that have a place: number, place, and place of the badge with
    the number; badges are `least` apart. `across` turns a share of the plot's width into the unit of all.
    """
    shown = [number for number, mark in enumerate(figure.marks, start=1) if x.shows(mark.x)]
    places = [across(x.place(figure.marks[number - 1].x)) for number in shown]
    return list(zip(shown, places, maps.spread(places, least), strict=True))


def unit_of(axis_label: str) -> str:
    """The unit of `memory bandwidth (MB/s)`: MB/s; the empty string when the label names none."""
    match = _UNIT.search(axis_label)
    return match.group(1) if match else ""


def wrapped(names: Sequence[str]) -> list[list[str]]:
    """The lines of each name of an axis."""
    room = max(8, AXIS_LETTERS // max(len(names), 1))
    return [textwrap.wrap(name, room, break_long_words=False) or [""] for name in names]
