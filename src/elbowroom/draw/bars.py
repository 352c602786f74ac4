"""Bars, in the page (SVG) and in files (matplotlib)."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from elbowroom.draw.figure import Series
from elbowroom.draw.scales import AxisScale
from elbowroom.draw.strokes import PlotBox, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#1b1f24"

HALF = 0.34
"""Half the width of a bar, where the next one is 1 away."""
LETTERS = 78
"""Letters that fit side by side below the plot."""
LINE = 14.0
ABOVE = 6.0
"""From the end of a bar, or its whisker, to its text."""

STYLE = (
    ".figure .bars .curve{stroke:none}.figure .bar{fill:var(--curve);fill-opacity:.75;stroke:none}"
    ".figure .together .bar{fill:var(--paper);fill-opacity:1;stroke:var(--curve);stroke-width:1.5;"
    "stroke-dasharray:4 3}"
    ".figure .bars .whisker{stroke:var(--ink)}.figure .bar-text{text-anchor:middle;font-weight:600}"
)


def wrapped(names: Sequence[str]) -> list[list[str]]:
    """The lines of each name of an axis."""
    room = max(8, LETTERS // max(len(names), 1))
    return [textwrap.wrap(name, room, break_long_words=False) or [""] for name in names]


def ends(series: Series) -> list[tuple[float, float, float]]:
    """(x, where it begins, where it ends) of each bar."""
    base = series.base or (0.0,) * len(series.x)
    return list(zip(series.x, base, series.y, strict=True))


def top(series: Series, index: int) -> float:
    """Above what the text of a bar stands."""
    base = series.base[index] if series.base else 0.0
    return max(series.y[index], base, *(series.high[index : index + 1]))


def strokes(series: Series, x: AxisScale, y: AxisScale, box: PlotBox) -> str:
    """The bars, their whiskers and their texts."""
    bars, whiskers, texts = "", "", ""
    for index, (at, low, high) in enumerate(ends(series)):
        left, right = (box.across(x.place(at + side * HALF)) for side in (-1, 1))
        middle = box.across(x.place(at))
        bars += (
            f"M{short(left)} {short(box.down(y.place(low)))}V{short(box.down(y.place(high)))}"
            f"H{short(right)}V{short(box.down(y.place(low)))}z"
        )
        if series.low and series.low[index] != series.high[index]:
            span = [box.down(y.place(value)) for value in (series.low[index], series.high[index])]
            whiskers += f"M{short(middle)} {short(span[0])}V{short(span[1])}"
        if series.texts and series.texts[index]:
            above = box.down(y.place(top(series, index))) - ABOVE
            texts += (
                f'<text class="bar-text" x="{short(middle)}" y="{short(above)}">'
                f"{escape(series.texts[index])}</text>"
            )
    drawn = f'<path class="bar" d="{bars}"/>' if bars else ""
    return drawn + (f'<path class="whisker" d="{whiskers}"/>' if whiskers else "") + texts


def filled(colour: str, *, hollow: bool) -> dict[str, Any]:
    """The look of a bar for matplotlib."""
    if hollow:
        return {"facecolor": "white", "edgecolor": colour, "linewidth": 1.2, "linestyle": (0, (3.0, 2.0))}
    return {"facecolor": colour, "alpha": 0.75, "linewidth": 0}


def draw(axes: Axes, series: Series, colour: str, *, hollow: bool) -> None:
    """The bars with whiskers and texts."""
    for index, (at, low, high) in enumerate(ends(series)):
        axes.bar(at, high - low, width=2 * HALF, bottom=low, **filled(colour, hollow=hollow))
        if series.low and series.low[index] != series.high[index]:
            axes.vlines(at, series.low[index], series.high[index], color=INK, linewidth=1.2)
        if series.texts and series.texts[index]:
            axes.annotate(
                series.texts[index],
                (at, top(series, index)),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=8.5,
                fontweight="bold",
            )
