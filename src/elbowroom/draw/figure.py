"""A figure as data: what every experiment draws with, in the page (SVG) and in files (PNG, SVG)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

Scale = Literal["linear", "log2", "log10"]
Drawn = Literal["curve", "smooth", "points", "area", "bars"]
Spread = Literal["shades", "lines", "rising", "falling"]
Side = Literal["computation", "communication"]
Hue = Literal["blue", "red", "black"]
"""A family of colours (palette.FAMILIES)."""
RULE = "Solid: alone. Dashed: together. Bands: first to last decile (d1 to d9)."
"""How curves are drawn, unless a caption says otherwise. A page says it once, a file below its plot."""


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One curve with its band. The paper's convention: solid alone, dashed together, band from d1 to d9.

    `side`: whose values these are; None for those of neither side or of both. `hue`: the colours, where they
    are not those of the side (blue for communication, red for computation, black for None).
    `drawn`: a `curve` has a marker at each point, a `smooth` one none (a model's line), `points` have no line
    and whiskers for a band, an `area` is stacked on the areas before it on its axis (`y` is its own height,
    `low` and `high` are not drawn), `bars` go from `base` (empty: 0) to y, with whiskers for a band and
    `texts` at their ends; `undecided` ones are hollow. `value` and `band` say what y and the band are, where
    readers point.
    """

    name: str
    side: Side | None = None
    hue: Hue | None = None
    style: Literal["alone", "together", "line", "undecided"]
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    axis: Literal["left", "below"] = "left"
    points: tuple[str, ...] = ()
    drawn: Drawn = "curve"
    value: str = "median"
    band: str = "d1 – d9"
    base: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()


class Second(msgspec.Struct, frozen=True, kw_only=True):
    """The same axis in another unit, across the plot: where on the axis, and what stands there."""

    label: str
    ticks: tuple[tuple[float, str], ...]


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """An axis: label with its unit and scale; `bytes` prints 4 B, 64 KiB, 1 MB instead of numbers.

    `whole` keeps its ticks on whole numbers (cores have no halves).
    `reach` is a value that a y axis shows whatever its curves need: panels side by side can be compared.
    `reference` is a value of the y axis that carries a line across the plot (the 1 of `kept`).
    `names` stand at 0, 1, 2 … in place of numbers (x axis, and both axes of a map).
    `second` is another unit of the x axis, or of the left one where there is none below.
    """

    label: str
    scale: Scale = "linear"
    bytes: bool = False
    whole: bool = False
    reach: float | None = None
    reference: float | None = None
    names: tuple[str, ...] = ()
    second: Second | None = None


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A vertical line at `x` with a sentence, for what an experiment found (an onset, a boundary)."""

    x: float
    text: str


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """A named point of the plot: a dot (a ring where it is `hollow`) at (`x`, `y`) of `axis`, and its short
    name beside it, in as many lines as it has. `across`, `up`: how far (low, high) whiskers go from it.
    """

    x: float
    y: float
    text: str
    axis: Literal["left", "below"] = "left"
    hollow: bool = False
    across: tuple[float, float] | None = None
    up: tuple[float, float] | None = None


class Arrow(msgspec.Struct, frozen=True, kw_only=True):
    """From one place of the plot (x, y) to another, on the left axis."""

    start: tuple[float, float]
    end: tuple[float, float]


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """A value all over the plot, from a grid: `values[j][i]` at (`x[i]`, `y[j]`), linear between them on the
    plot's scales. The grid's ends are the plot's.

    `drawn` as `shades`, one more beyond each of `levels`, the strongest where the value is highest; as
    `lines` along the levels; or hatched, `rising` or `falling`, beyond the first level. `texts` name the
    levels: one more than levels for shades, the lowest first; of lines one each; of hatches none.
    `readings`: what readers are shown who point at a node of the grid, the same ones of every row or none of
    a row; `rows`: what each row is; `value`: what is read.
    """

    name: str
    side: Side | None = None
    drawn: Spread
    x: tuple[float, ...]
    y: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    levels: tuple[float, ...]
    texts: tuple[str, ...] = ()
    readings: tuple[tuple[str, ...], ...] = ()
    rows: tuple[str, ...] = ()
    value: str = ""


class NamedRegion(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the plot, `inside[j][i]` at (x[i], y[j]); its name stands in it where it fits."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    inside: tuple[tuple[bool, ...], ...]


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One plot with the y axis `left`; where there is an axis `below`, a second plot under the first one over
    the same x axis (communication above, computation below, by convention): no plot has two y axes. A map
    where it has fields.

    `highlight` is what sets the panel apart from those beside it, in a few words; its frame is thicker.
    `warning` says above the plot why its values should not be trusted.
    """

    name: str
    title: str
    x: Axis
    left: Axis
    below: Axis | None = None
    series: tuple[Series, ...] = ()
    marks: tuple[Mark, ...] = ()
    labels: tuple[Label, ...] = ()
    fields: tuple[Field, ...] = ()
    regions: tuple[NamedRegion, ...] = ()
    arrows: tuple[Arrow, ...] = ()
    highlight: str = ""
    warning: str = ""
    caption: str = ""


class TextTable(msgspec.Struct, frozen=True, kw_only=True):
    """A table of text. `left`: the columns that are aligned to the left, by number; the others hold numbers.

    `marked`: cells (row, column) that show interference. `below`: sentences about this table; `legend`: what
    its columns mean, which several tables may share. `points`: ids of the results that it shows in full.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: tuple[int, ...] = (0,)
    marked: tuple[tuple[int, int], ...] = ()
    below: tuple[str, ...] = ()
    legend: str = ""
    points: tuple[str, ...] = ()

    def sentences(self, following: Sequence[TextTable] = ()) -> tuple[str, ...]:
        """What is said below it; the legend only where the next of the `following` tables has another."""
        repeated = bool(following) and following[0].legend == self.legend
        return (*self.below, *([self.legend] if self.legend and not repeated else []))
