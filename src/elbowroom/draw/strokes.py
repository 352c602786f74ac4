"""The strokes of a figure as SVG, in the units of the drawing: curves, areas, points and bars; of a map
shades, hatches and lines behind, texts, whiskers and arrows above.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from itertools import pairwise

from elbowroom.draw import maps, palette
from elbowroom.draw.figure import Field, Figure, Label
from elbowroom.draw.maps import Spot
from elbowroom.draw.marks import CurveMarks, Marks
from elbowroom.draw.palette import field_colour

LETTER = 6.4
"""Mean width of a letter of the 12-unit font, on the generous side: SVG text does not tell its width."""
BOLD_LETTER = 8.4
NAME_LINE = 15.0
"""From one line of a point's name to the next."""


class PlotBox:
    """The plot's rectangle in SVG units; turns shares of the plot into positions."""

    def __init__(self, *, left: float, top: float, width: float, height: float) -> None:
        self.left, self.top, self.width, self.height = left, top, width, height
        self.bottom = top + height

    def across(self, place: float) -> float:
        """The abscissa of a place on the x axis."""
        return self.left + place * self.width

    def down(self, place: float) -> float:
        """The ordinate of a place on a y axis."""
        return self.top + (1 - place) * self.height

    def spots(self, places: Sequence[Spot]) -> list[Spot]:
        """Places in shares of the plot, in SVG units."""
        return [(self.across(x), self.down(y)) for x, y in places]


def shape_name(identity: str, look: palette.Look) -> str:
    """The identity of the marker of this look."""
    return f"m-{identity}-{look.colour}{'-t' if look.dashed else ''}-{(look.marker or '-')[0]}"


def shapes(identity: str, looks: Sequence[palette.Look]) -> str:
    """The markers of the curves, each defined once: a page of 10,000 points must stay small."""
    outlines = {
        "circle": '<circle class="marker" r="3.2"/>',
        "square": '<path class="marker" d="M-3-3h6v6h-6z"/>',
        "triangle": '<path class="marker" d="M-3.8 3h7.6l-3.8-6.8z"/>',
        "diamond": '<path class="marker" d="M-4.2 0l4.2-4.2 4.2 4.2-4.2 4.2z"/>',
    }
    named = {shape_name(identity, look): look for look in looks if look.marker}
    shapes = (
        f'<marker id="{name}" class="{classes(look)}" '
        f'markerUnits="userSpaceOnUse">{outlines[look.marker or "circle"]}</marker>'
        for name, look in named.items()
    )
    return f"<defs>{''.join(shapes)}</defs>"


def classes(look: palette.Look) -> str:
    """The classes of what is drawn in this look; the rules are those of `svg.style`."""
    drawn = {"points": " points", "area": " area", "bars": " bars"}.get(look.drawn, "")
    return f"{look.colour}{' together' if look.dashed else ''}{drawn}"


def marked(identity: str, look: palette.Look) -> str:
    """The attributes that put the curve's marker on every vertex."""
    if not look.marker:
        return ""
    return f' style="marker:url(#{shape_name(identity, look)})"'


def curve(identity: str, curve: CurveMarks, box: PlotBox) -> str:
    """Bars, bands or whiskers, and above them the curve with its markers."""
    bars = "".join(
        f"M{short(box.across(left))} {short(box.down(start))}V{short(box.down(end))}"
        f"H{short(box.across(right))}V{short(box.down(start))}z"
        for (left, start), (right, end) in curve.bars
    )
    bands = "".join(path(box.spots(outline)) + "z" for outline in curve.bands)
    whiskers = "".join(
        f"M{short(box.across(at))} {short(box.down(low))}V{short(box.down(high))}"
        for at, low, high in curve.whiskers
    )
    texts = "".join(
        f'<text class="bar-text" x="{short(box.across(at))}" y="{short(box.down(up) - ABOVE_BAR)}">'
        f"{escape(text)}</text>"
        for (at, up), text in curve.texts
    )
    filled = "".join(
        f'<path class="{kind}" d="{strokes}"/>'
        for kind, strokes in (("bar", bars), ("band", bands), ("whisker", whiskers))
        if strokes
    )
    line = "".join(path(box.spots(spots)) for spots in curve.lines)
    return f'{filled}{texts}<path class="curve" d="{line}"{marked(identity, curve.look)}/>'


def path(spots: Sequence[tuple[float, float]]) -> str:
    """`M x y l dx dy ...` in tenths of a unit. Steps are between rounded places: errors do not add up."""
    tenths = [(round(x * 10), round(y * 10)) for x, y in spots]
    text = f"M{short(tenths[0][0] / 10)} {short(tenths[0][1] / 10)}"
    steps = ""
    for (x0, y0), (x1, y1) in pairwise(tenths):
        for step in (x1 - x0, y1 - y0):
            number = short(step / 10)
            steps += number if number.startswith("-") or not steps else f" {number}"
    return f"{text}l{steps}" if steps else f"{text}h0"


def short(value: float) -> str:
    """A coordinate to a tenth, without needless zeros: 12.5, 12, .5, -.5."""
    text = f"{value:.1f}".removesuffix(".0")
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else "0" if text == "-0" else text


INK = "#1b1f24"

NAMED_TICK_LINE = 14.0
"""From one line of a name below the x axis to the next."""
ABOVE_BAR = 6.0
"""From the end of a bar, or its whisker, to its text."""

BAR_STYLE = (
    ".figure .bars .curve{stroke:none}.figure .bar{fill:var(--curve);fill-opacity:.75;stroke:none}"
    ".figure .together .bar{fill:var(--paper);fill-opacity:1;stroke:var(--curve);stroke-width:1.5;"
    "stroke-dasharray:4 3}"
    ".figure .bars .whisker{stroke:var(--ink)}.figure .bar-text{text-anchor:middle;font-weight:600}"
)


LEGEND_LINE = 17
SWATCH = 26
WIDE_LETTER = 6.9
HATCHES = {"rising": 45, "falling": -45}
"""Degrees by which upright strokes are turned."""

MAP_STYLE = (
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


def map_behind(identity: str, figure: Figure, marks: Marks, box: PlotBox) -> str:
    """What lies under points and names; empty for a figure without fields."""
    if not figure.fields:
        return ""
    plane = maps.Plane(marks.x, marks.sides["left"], box.width, box.height)
    parts = [_patterns(identity, figure.fields)]
    for field in figure.fields:
        if field.drawn == "shades":
            fills = [_closed(plane.outlines(field, level), box) for level in field.levels]
            parts += [f'<path class="shade {field_colour(field)}" d="{fill}"/>' for fill in fills if fill]
        elif field.drawn == "lines":
            line = "".join(
                path(_moved(spots, box)) for level in field.levels for spots in plane.lines(field, level)
            )
            parts.append(
                f'<g class="{field_colour(field)}"><path class="isoline" d="{line}"/></g>' if line else ""
            )
        elif fill := _closed(plane.outlines(field, field.levels[0]), box):
            parts.append(f'<path fill="url(#{_hatch(identity, field)})" fill-rule="evenodd" d="{fill}"/>')
        if field.readings:
            parts.append(_reading_rows(field, plane, box))
    return "".join(parts)


def map_above(figure: Figure, marks: Marks, box: PlotBox) -> str:
    """Whiskers, arrows, the named points, and the names of lines and regions."""
    if not figure.labels and not figure.fields:
        return ""
    plane = maps.Plane(marks.x, marks.sides["left"], box.width, box.height)
    layout = maps.drawn(figure, plane, marks.sides, BOLD_LETTER)
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


def map_legend(
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
                at, y = left, y + LEGEND_LINE
            if swatch:
                parts += f'<g transform="translate({at:.0f} {y - 10:g})">{swatch}</g>'
            parts += f'<text x="{at + (SWATCH + 6 if swatch else 0):.0f}" y="{y:g}">{escape(text)}</text>'
            at += wide + 14
        y += LEGEND_LINE
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
            f'<path class="curve" d="{path(spots)}"/></g>'
        )
    return "".join(parts)


def _closed(outlines: Sequence[Sequence[Spot]], box: PlotBox) -> str:
    return "".join(f"{path(_moved(spots, box))}z" for spots in outlines if len(spots) > 2)


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
        f'<path class="arrow-head" d="{path(head)}z"/>'
    )


def _named(label: Label, spot: Spot, middle: Spot, box: PlotBox) -> str:
    lines = label.text.split("\n")
    first = middle[1] + box.top + 4 - (len(lines) - 1) * NAME_LINE / 2
    at = short(middle[0] + box.left)
    texts = "".join(
        f'<text x="{at}" y="{short(first + index * NAME_LINE)}">{escape(line)}</text>'
        for index, line in enumerate(lines)
    )
    kind = "point hollow" if label.hollow else "point"
    x, y = spot[0] + box.left, spot[1] + box.top
    return f'<circle class="{kind}" cx="{short(x)}" cy="{short(y)}" r="4"/>{texts}'
