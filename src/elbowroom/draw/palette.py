"""Colours, markers and dashes: one look per curve, the same in the page and in files.

The colours are those of Okabe and Ito (Color Universal Design, 2008), which colour-blind readers can
distinguish. Blues and green are communication, reds and oranges computation. Markers and dashes distinguish
curves in grey print.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal

import msgspec

from elbowroom.draw.figure import Drawn, Field, Figure, Hue, Series, Side

Marker = Literal["circle", "square", "triangle", "diamond"]

COLOURS = {
    "blue": "#0072B2",
    "sky": "#56B4E9",
    "green": "#009E73",
    "vermilion": "#D55E00",
    "orange": "#E69F00",
    "purple": "#CC79A7",
    "black": "#000000",
}
# A line needs a contrast of 3:1 to its background (WCAG 2.1, 1.4.11). Where a colour of Okabe and Ito does
# not reach it on a white or dark page, another one of the same hue replaces it.
ON_LIGHT = {**COLOURS, "sky": "#2E8FC7", "orange": "#B57B00", "purple": "#B65C8E", "black": "#1b1f24"}
ON_DARK = {
    **COLOURS,
    "blue": "#4AA3E0",
    "green": "#1FC79A",
    "vermilion": "#FF8A3D",
    "sky": "#8FD0F7",
    "black": "#e8eaed",
}
HUES: dict[Side | None, Hue] = {"communication": "blue", "computation": "red", None: "black"}
FAMILIES: dict[Hue, tuple[str, ...]] = {
    "blue": ("blue", "green", "sky"),
    "red": ("vermilion", "purple", "orange"),
    "black": ("black",),
}
MARKERS: dict[Hue, tuple[Marker, ...]] = {
    "blue": ("circle", "diamond"),
    "red": ("square", "triangle"),
    "black": ("circle",),
}
WARNING = "#b3261e"
"""Text that says why a figure is not to be trusted; the page has its own shade on dark paper."""
DASH = (6.0, 4.0)
MANY_POINTS = 60
"""From this many points on a curve is drawn without markers: they would hide it."""

_STYLE_WORD = re.compile(r"[\s,:(\[-]*\b(alone|together)\b[)\]]?", re.IGNORECASE)


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """How one curve is drawn: `colour` is a key of COLOURS; no `marker` when there are too many points."""

    label: str
    colour: str
    dashed: bool
    marker: Marker | None
    drawn: Drawn = "curve"


def looks(figure: Figure) -> tuple[Look, ...]:
    """One look per series, in order: the curves of one thing (alone, together) share colour and marker."""
    names_of: dict[Hue, list[str]] = {}
    result = []
    for series in figure.series:
        hue = series.hue or HUES[series.side]
        names = names_of.setdefault(hue, [])
        base = base_name(series)
        if base not in names:
            names.append(base)
        index = names.index(base)
        family, markers = FAMILIES[hue], MARKERS[hue]
        result.append(
            Look(
                label=label(series),
                colour=family[index % len(family)],
                dashed=series.style in ("together", "undecided"),
                marker=markers[index // len(family) % len(markers)] if _marked(series) else None,
                drawn=series.drawn,
            )
        )
    return tuple(result)


def field_colour(field: Field) -> str:
    """The colour of a map's field, a key of COLOURS."""
    return FAMILIES[HUES[field.side]][0]


def keys(looks: Sequence[Look]) -> tuple[Look, ...]:
    """The entries of a legend: what has one name (measured points and a model's line) has one entry."""
    entries: dict[str, Look] = {}
    for look in looks:
        before = entries.setdefault(look.label, look)
        if before is not look:
            line = look if before.drawn == "points" else before
            entries[look.label] = msgspec.structs.replace(line, marker=before.marker or look.marker)
    return tuple(entries.values())


def _marked(series: Series) -> bool:
    return series.drawn == "points" or (series.drawn == "curve" and len(series.x) <= MANY_POINTS)


def base_name(series: Series) -> str:
    """The series' name without its `alone` or `together`."""
    return _STYLE_WORD.sub("", series.name).strip() or series.name


def label(series: Series) -> str:
    """The name for the legend; says alone or together even when the name does not."""
    if series.style == "line" or _STYLE_WORD.search(series.name):
        return series.name
    return f"{series.name}, {series.style}"
