"""A figure as data: what every experiment draws with, in the page (SVG) and in files (PNG, SVG)."""

from __future__ import annotations

from typing import Literal

import msgspec

Scale = Literal["linear", "log2", "log10"]
Drawn = Literal["curve", "smooth", "points", "area"]


class Series(msgspec.Struct, frozen=True, kw_only=True):
    """One curve with its band. The paper's convention: plain alone, dashed together, band from d1 to d9.

    `drawn`: a `curve` has a marker at each point, a `smooth` one none (a model's line), `points` have no line
    and whiskers for a band, an `area` is stacked on the areas before it on its axis (`y` is its own height,
    `low` and `high` are not drawn). `value` and `band` say what y and the band are, where readers point.
    """

    name: str
    side: Literal["computation", "communication", "both"]
    style: Literal["alone", "together", "line"]
    x: tuple[float, ...]
    y: tuple[float, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    axis: Literal["left", "right"] = "left"
    points: tuple[str, ...] = ()
    drawn: Drawn = "curve"
    value: str = "median"
    band: str = "d1 – d9"


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """An axis: label with its unit and scale; `bytes` prints 4 B, 64 KiB, 1 MB instead of numbers.

    `whole` keeps its ticks on whole numbers (cores have no halves).
    `reach` is a value that a y axis shows whatever its curves need: panels side by side can be compared.
    """

    label: str
    scale: Scale = "linear"
    bytes: bool = False
    whole: bool = False
    reach: float | None = None


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """A vertical line at `x` with a sentence, for what an experiment found (an onset, a boundary)."""

    x: float
    text: str


class Label(msgspec.Struct, frozen=True, kw_only=True):
    """A named point of the plot: a dot at (`x`, `y`) of `axis` and its short name beside it."""

    x: float
    y: float
    text: str
    axis: Literal["left", "right"] = "left"


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One panel: left axis (communication by convention), right axis (computation), series and marks.

    `highlight` is what sets the panel apart from those beside it, in a few words; its frame is thicker.
    """

    name: str
    title: str
    x: Axis
    left: Axis
    right: Axis | None = None
    series: tuple[Series, ...] = ()
    marks: tuple[Mark, ...] = ()
    labels: tuple[Label, ...] = ()
    highlight: str = ""
    caption: str = ""
