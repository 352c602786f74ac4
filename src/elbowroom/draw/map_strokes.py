"""The strokes of a map as SVG: shades, hatches and lines behind, texts, whiskers and arrows above."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from elbowroom.draw import maps, strokes
from elbowroom.draw.figure import Field, Figure, Label
from elbowroom.draw.maps import Spot
from elbowroom.draw.palette import field_colour
from elbowroom.draw.scales import AxisScale
from elbowroom.draw.strokes import BOLD_LETTER, PlotBox, short

LINE = 17
SWATCH = 26
WIDE_LETTER = 6.9
HATCHES = {"rising": 45, "falling": -45}
"""Degrees by which upright strokes are turned."""

STYLE = (
    f".figure .shade{{fill:var(--curve);fill-opacity:{maps.SHADE:g};fill-rule:evenodd;stroke:none}}"
    ".figure .swatch-frame{fill:none;stroke:var(--faint);stroke-width:.8}"
    ".figure .hatch-stroke{stroke:var(--curve);stroke-width:1.1}"
    ".figure .isoline{fill:none;stroke:var(--curve);stroke-width:1.6;stroke-linejoin:round}"
    ".figure .on-map{paint-order:stroke;stroke:var(--paper);stroke-width:3.5;stroke-linejoin:round}"
    ".figure .level{fill:var(--curve);font-size:11.5px;font-weight:600}"
    ".figure .region{font-style:italic;fill:var(--ink)}"
    ".figure .reach{fill:none;stroke:var(--ink);stroke-width:1.6}"
    ".figure .under{fill:none;stroke:var(--paper);stroke-width:5}"
    ".figure .arrow-head{fill:var(--ink);stroke:var(--paper);stroke-width:1}"
    ".figure .point.hollow{fill:var(--paper);stroke:var(--ink);stroke-width:1.8}"
    ".figure .readings .curve{stroke:none}"
)


def behind(identity: str, figure: Figure, x: AxisScale, y: AxisScale, box: PlotBox) -> str:
    """What lies under points and names; empty for a figure without fields."""
    if not figure.fields:
        return ""
    plane = maps.Plane(x, y, box.width, box.height)
    parts = [_patterns(identity, figure.fields)]
    for field in figure.fields:
        if field.drawn == "shades":
            fills = [_closed(plane.outlines(field, level), box) for level in field.levels]
            parts += [f'<path class="shade {field_colour(field)}" d="{fill}"/>' for fill in fills if fill]
        elif field.drawn == "lines":
            line = "".join(
                strokes.path(_moved(spots, box))
                for level in field.levels
                for spots in plane.lines(field, level)
            )
            parts.append(
                f'<g class="{field_colour(field)}"><path class="isoline" d="{line}"/></g>' if line else ""
            )
        elif fill := _closed(plane.outlines(field, field.levels[0]), box):
            parts.append(f'<path fill="url(#{_hatch(identity, field)})" fill-rule="evenodd" d="{fill}"/>')
        if field.readings:
            parts.append(_reading_rows(field, plane, box))
    return "".join(parts)


def above(figure: Figure, x: AxisScale, sides: Mapping[str, AxisScale], box: PlotBox) -> str:
    """Whiskers, arrows, the named points, and the names of lines and regions."""
    if not figure.labels and not figure.fields:
        return ""
    plane = maps.Plane(x, sides["left"], box.width, box.height)
    layout = maps.drawn(figure, plane, dict(sides), BOLD_LETTER)
    parts = [_whisker(ends, box) for ends in layout.whiskers]
    parts += [_arrow(ends, box) for ends in layout.arrows]
    texts = [
        f'<text class="on-map level {field_colour(figure.fields[text.field])}" {_at(text.x, text.y, box)}>'
        f"{escape(text.text)}</text>"
        for text in layout.levels
    ]
    texts += [
        f'<text class="on-map region" {_at(text.x, text.y, box)}>{escape(text.text)}</text>'
        for text in layout.regions
    ]
    if texts:
        parts.append(f'<g text-anchor="middle">{"".join(texts)}</g>')
    if layout.points:
        leaders = "".join(
            f"M{short(spot[0] + box.left)} {short(spot[1] + box.top)}"
            f"L{short(place.tip[0] + box.left)} {short(place.tip[1] + box.top)}"
            for _, spot, place in layout.points
        )
        parts.append(f'<path class="leader" d="{leaders}"/>')
        named = "".join(_named(label, spot, (place.x, place.y), box) for label, spot, place in layout.points)
        parts.append(f'<g class="labels" text-anchor="middle">{named}</g>')
    return "".join(parts)


def legend(
    identity: str, fields: Sequence[Field], left: float, right: float, top: float
) -> tuple[str, float]:
    """A row for the shades and one for the rest, broken where they do not fit; and the height they take."""
    rows: list[list[tuple[str, str]]] = []
    for field in fields:
        if field.drawn == "shades":
            rows.append([("", f"{field.name}:"), *_shades(field)])
    rest = [(_swatch(identity, field), field.name) for field in fields if field.drawn != "shades"]
    parts, y = "", top
    for row in (*rows, rest) if rest else rows:
        at = left
        for swatch, text in row:
            wide = (SWATCH + 6 if swatch else 0) + len(text) * WIDE_LETTER
            if at > left and at + wide > right:
                at, y = left, y + LINE
            if swatch:
                parts += f'<g transform="translate({at:.0f} {y - 10:g})">{swatch}</g>'
            parts += f'<text x="{at + (SWATCH + 6 if swatch else 0):.0f}" y="{y:g}">{escape(text)}</text>'
            at += wide + 14
        y += LINE
    return parts, y - top


def _shades(field: Field) -> list[tuple[str, str]]:
    frame = f'<rect class="swatch-frame" width="{SWATCH}" height="11"/>'
    return [
        (
            f'<path class="band {field_colour(field)}" style="fill-opacity:{maps.opacity(index):.3g}" '
            f'd="M0 0h{SWATCH}v11h-{SWATCH}z"/>{frame}',
            text,
        )
        for index, text in enumerate(field.texts)
    ]


def _swatch(identity: str, field: Field) -> str:
    if field.drawn == "lines":
        return f'<g class="{field_colour(field)}"><path class="isoline" d="M0 6h{SWATCH}"/></g>'
    return (
        f'<rect fill="url(#{_hatch(identity, field)})" width="{SWATCH}" height="11"/>'
        f'<rect class="swatch-frame" width="{SWATCH}" height="11"/>'
    )


def _patterns(identity: str, fields: Sequence[Field]) -> str:
    patterns = "".join(
        f'<pattern id="{_hatch(identity, field)}" class="{field_colour(field)}" width="7" height="7" '
        f'patternUnits="userSpaceOnUse" patternTransform="rotate({HATCHES[field.drawn]})">'
        '<path class="hatch-stroke" d="M3.5 0V7"/></pattern>'
        for field in fields
        if field.drawn in HATCHES
    )
    return f"<defs>{patterns}</defs>" if patterns else ""


def _hatch(identity: str, field: Field) -> str:
    return f"h-{identity}-{field.drawn}"


def _reading_rows(field: Field, plane: maps.Plane, box: PlotBox) -> str:
    """A row of the grid is a curve that is not drawn: the page's script finds its vertices."""
    parts = []
    for y, name, texts in zip(field.y, field.rows, field.readings, strict=True):
        there = [(x, text) for x, text in zip(field.x, texts, strict=True) if text]
        if not there:
            continue
        spots = [(plane.across(x) + box.left, plane.down(y) + box.top) for x, _ in there]
        parts.append(
            f'<g class="series readings" data-name="{escape(name)}" data-value="{escape(field.value)}" '
            f'data-median="{escape("|".join(text for _, text in there))}">'
            f'<path class="curve" d="{strokes.path(spots)}"/></g>'
        )
    return "".join(parts)


def _closed(outlines: Sequence[Sequence[Spot]], box: PlotBox) -> str:
    return "".join(f"{strokes.path(_moved(spots, box))}z" for spots in outlines if len(spots) > 2)


def _moved(spots: Sequence[Spot], box: PlotBox) -> list[Spot]:
    return [(x + box.left, y + box.top) for x, y in spots]


def _at(x: float, y: float, box: PlotBox) -> str:
    return f'x="{short(x + box.left)}" y="{short(y + box.top + 4)}"'


def _whisker(ends: tuple[Spot, Spot], box: PlotBox) -> str:
    (x0, y0), (x1, y1) = _moved(ends, box)
    cap = "v8m0-4" if y0 == y1 else "h8m-4 0"
    back = "m0-4v8" if y0 == y1 else "m-4 0h8"
    half = "0-4" if y0 == y1 else "-4 0"
    d = f"M{short(x0)} {short(y0)}m{half}{cap}L{short(x1)} {short(y1)}{back}"
    return f'<path class="under" d="{d}"/><path class="reach" d="{d}"/>'


def _arrow(ends: tuple[Spot, Spot], box: PlotBox) -> str:
    (x0, y0), (x1, y1) = _moved(ends, box)
    length = math.dist((x0, y0), (x1, y1))
    along = ((x1 - x0) / length, (y1 - y0) / length)
    neck = (x1 - along[0] * maps.HEAD, y1 - along[1] * maps.HEAD)
    aside = (-along[1] * maps.HEAD / 2, along[0] * maps.HEAD / 2)
    d = f"M{short(x0)} {short(y0)}L{short(neck[0])} {short(neck[1])}"
    head = [(neck[0] + aside[0], neck[1] + aside[1]), (x1, y1), (neck[0] - aside[0], neck[1] - aside[1])]
    return (
        f'<path class="under" d="{d}"/><path class="reach" d="{d}"/>'
        f'<path class="arrow-head" d="{strokes.path(head)}z"/>'
    )


def _named(label: Label, spot: Spot, middle: Spot, box: PlotBox) -> str:
    lines = label.text.split("\n")
    first = middle[1] + box.top + 4 - (len(lines) - 1) * strokes.NAME_LINE / 2
    at = short(middle[0] + box.left)
    texts = "".join(
        f'<text x="{at}" y="{short(first + index * strokes.NAME_LINE)}">{escape(line)}</text>'
        for index, line in enumerate(lines)
    )
    kind = "point hollow" if label.hollow else "point"
    x, y = spot[0] + box.left, spot[1] + box.top
    return f'<circle class="{kind}" cx="{short(x)}" cy="{short(y)}" r="4"/>{texts}'
