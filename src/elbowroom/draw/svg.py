"""A figure as inline SVG for the page: plain alone, dashed together, a band from d1 to d9.

Colours and fonts are the classes of STYLE, which the page carries once, so that light, dark and print agree.
Each curve carries what a reader may point at, already written as text: `data-x`, `data-median`, `data-d1` and `data-d9` hold
one entry per drawn vertex, separated by `|`, in the order of the vertices of its path; `data-rows` holds the
rows of the page's table. The page's script finds the vertex nearest to the pointer and shows them.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Mapping
from html import escape

from elbowroom.draw import numbers, palette, scales
from elbowroom.draw.figure import Figure, Mark, Series
from elbowroom.draw.scales import AxisScale

WIDTH = 600
PLOT_HEIGHT = 250
LEFT, RIGHT, RIGHT_WITH_AXIS = 66, 18, 66
LINE = 17
LETTER = 6.4
"""Mean width of a letter of the 12-unit font: SVG has no line breaking, so widths are estimated (on the generous side)."""

SIDES = {"computation": "comp", "communication": "comm"}

_UNIT = re.compile(r"[(\[]([^()\[\]]+)[)\]]\s*$")


def _variables(colours: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours.items())


def style() -> str:
    """The rules every inline figure relies on; a page carries them once."""
    curves = "".join(f".figure .{name}{{--curve:var(--{name})}}" for name in palette.COLOURS)
    return (
        f":root{{{_variables(palette.ON_LIGHT)}--ink:#1b1f24;--faint:#59636e;--grid:#e4e7eb;--paper:#fff}}"
        "@media screen and (prefers-color-scheme:dark){"
        f":root{{{_variables(palette.ON_DARK)}--ink:#e8eaed;--faint:#a0a8b2;--grid:#343a42;--paper:#16191d}}}}"
        ".figure{display:block;width:100%;height:auto;font:12px system-ui,sans-serif;fill:var(--ink)}"
        ".figure .grid{stroke:var(--grid);fill:none}.figure .frame{stroke:var(--faint);fill:none}"
        ".figure .tick{fill:var(--faint)}.figure .tick-line{stroke:var(--faint);fill:none}"
        ".figure .curve{fill:none;stroke:var(--curve);stroke-width:2;stroke-linejoin:round}"
        f".figure .together .curve{{stroke-dasharray:{palette.DASH[0]:g} {palette.DASH[1]:g}}}"
        ".figure .band{fill:var(--curve);fill-opacity:.16;stroke:none}"
        ".figure .marker{fill:var(--curve);stroke:none}.figure .together .marker{fill:var(--paper);"
        "stroke:var(--curve);stroke-width:1.5}"
        ".figure .axis-label{font-weight:600;fill:var(--curve,var(--ink))}"
        ".figure .mark{stroke:var(--faint);stroke-dasharray:2 3;fill:none}"
        ".figure .badge{fill:var(--ink)}.figure .badge-text{fill:var(--paper);font-size:10px;font-weight:700}"
        f"{curves}"
    )


def svg(figure: Figure, rows: Mapping[str, int] | None = None) -> str:
    """The figure as one `<svg>` element. `rows` gives the page's row of a point's id, for values on hover."""
    x = scales.horizontal(figure)
    sides = {"left": scales.vertical(figure, "left")}
    if figure.right is not None:
        sides["right"] = scales.vertical(figure, "right")
    legend, legend_height = _legend(figure)
    box = Box(
        left=LEFT,
        top=legend_height + (18 if figure.marks else 8),
        width=WIDTH - LEFT - (RIGHT_WITH_AXIS if "right" in sides else RIGHT),
        height=PLOT_HEIGHT,
    )
    marks, height = _marks(figure.marks, x, box)
    identity = re.sub(r"[^A-Za-z0-9_-]", "-", figure.name)
    parts = [
        f'<svg class="figure" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" role="img" tabindex="0" '
        f'aria-labelledby="t-{identity} d-{identity}" data-figure="{escape(figure.name)}" '
        f'data-box="{box.left:g} {box.top:g} {box.width:g} {box.height:g}" data-x-label="{escape(figure.x.label)}">',
        f'<title id="t-{identity}">{escape(figure.title)}</title><desc id="d-{identity}">{escape(describe(figure))}</desc>',
        # An empty title keeps the browser's own tooltip away from the values shown on hover.
        "<g><title></title>",
        f'<rect x="0" y="0" width="{WIDTH}" height="{height:g}" fill="none" pointer-events="all"/>',
        legend,
        _axes(figure, x, sides, box),
    ]
    for series, look in zip(figure.series, palette.looks(figure), strict=True):
        axis = figure.right if series.axis == "right" and figure.right is not None else figure.left
        y = sides.get(series.axis, sides["left"])
        parts.append(_series(series, look, figure, axis.label, x, y, box, rows or {}))
    parts += [marks, "</g></svg>"]
    return "".join(parts)


class Box:
    """The plot's rectangle in SVG units; `at` turns places on two axes into a position."""

    def __init__(self, *, left: float, top: float, width: float, height: float) -> None:
        self.left, self.top, self.width, self.height = left, top, width, height

    def across(self, place: float) -> float:
        return self.left + place * self.width

    def down(self, place: float) -> float:
        return self.top + (1 - place) * self.height


def describe(figure: Figure) -> str:
    """The figure in one paragraph for those who cannot see it."""
    curves = "; ".join(palette.label(series) for series in figure.series) or "no curve"
    marks = " ".join(mark.text for mark in figure.marks)
    right = f" and {figure.right.label}" if figure.right else ""
    said = f"{figure.left.label}{right} over {figure.x.label}. Curves: {curves}. {marks} {figure.caption}"
    return " ".join(said.split())


def unit_of(axis_label: str) -> str:
    """The unit of `memory bandwidth (MB/s)`: MB/s; the empty string when the label names none."""
    found = _UNIT.search(axis_label)
    return found.group(1) if found else ""


def _markers(look: palette.Look, spots: list[tuple[float, float]]) -> str:
    """All markers of a curve as one path: a page of 10,000 points must stay small."""
    shapes = {
        "circle": "m-3.2 0a3.2 3.2 0 1 0 6.4 0a3.2 3.2 0 1 0-6.4 0z",
        "square": "m-3-3h6v6h-6z",
        "triangle": "m-3.8 3h7.6l-3.8-6.8z",
        "diamond": "m-4.2 0l4.2-4.2 4.2 4.2-4.2 4.2z",
    }
    shape = shapes[look.marker or "circle"]
    outline = "".join(f"M{x:.1f} {y:.1f}{shape}" for x, y in spots)
    return f'<path class="marker" d="{outline}"/>'


def _legend(figure: Figure) -> tuple[str, float]:
    """Entries in one row, or in even columns when they do not fit; and the height they take."""
    if not figure.series:
        return "", 0.0
    looks = palette.looks(figure)
    texts = [look.label if len(look.label) <= 72 else look.label[:71] + "…" for look in looks]
    widths = [36 + len(text) * LETTER + 14 for text in texts]
    room = WIDTH - LEFT
    columns = len(texts) if sum(widths) <= room else max(1, int(room // max(widths)))
    starts = [
        sum(widths[:i]) if columns == len(texts) else max(widths) * (i % columns) for i in range(len(texts))
    ]
    parts = []
    for index, (look, text) in enumerate(zip(looks, texts, strict=True)):
        x, y = LEFT + starts[index], 14 + index // columns * LINE
        together = " together" if look.dashed else ""
        sample = f'<path class="curve" d="M{x:.0f} {y - 4:.0f}h30"/>'
        marker = _markers(look, [(x + 15, y - 4)]) if look.marker else ""
        parts.append(
            f'<g class="key {look.colour}{together}">{sample}{marker}</g><text x="{x + 36:.0f}" y="{y:.0f}">{escape(text)}</text>'
        )
    return "".join(parts), 18.0 + (len(texts) - 1) // columns * LINE


def _axes(figure: Figure, x: AxisScale, sides: Mapping[str, AxisScale], box: Box) -> str:
    bottom, end = box.top + box.height, box.left + box.width
    grid, ticks, texts = [], [], []
    for tick in x.ticks:
        at = box.across(x.place(tick.value))
        ticks.append(f"M{at:.1f} {bottom:g}v{5 if tick.label else 3}")
        if tick.label:
            grid.append(f"M{at:.1f} {box.top:g}V{bottom:g}")
            texts.append(
                f'<text class="tick" x="{at:.1f}" y="{bottom + 18:g}" text-anchor="middle">{escape(tick.label)}</text>'
            )
    for side, scale in sides.items():
        start, out, anchor, text_at = (
            (box.left, -1, "end", box.left - 8) if side == "left" else (end, 1, "start", end + 8)
        )
        for tick in scale.ticks:
            at = box.down(scale.place(tick.value))
            ticks.append(f"M{start:g} {at:.1f}h{out * (5 if tick.label else 3)}")
            if tick.label and side == "left":
                grid.append(f"M{box.left:g} {at:.1f}H{end:g}")
            if tick.label:
                texts.append(
                    f'<text class="tick" x="{text_at:g}" y="{at + 4:.1f}" text-anchor="{anchor}">{escape(tick.label)}</text>'
                )
    texts.append(
        f'<text class="axis-label" x="{box.left + box.width / 2:g}" y="{bottom + 37:g}" text-anchor="middle">{escape(figure.x.label)}</text>'
    )
    for side in sides:
        axis = figure.left if side == "left" else figure.right
        at, turn = (14, -90) if side == "left" else (WIDTH - 12, 90)
        middle = box.top + box.height / 2
        texts.append(
            f'<text class="axis-label {palette.axis_colour(figure, side)}" transform="translate({at} {middle:g})rotate({turn})" '
            f'text-anchor="middle">{escape(axis.label if axis else "")}</text>'
        )
    frame = f'<path class="frame" d="M{box.left:g} {box.top:g}V{bottom:g}H{end:g}{f"V{box.top:g}" if "right" in sides else ""}"/>'
    return f'<path class="grid" d="{"".join(grid)}"/>{frame}<path class="tick-line" d="{"".join(ticks)}"/>{"".join(texts)}'


def _series(
    series: Series,
    look: palette.Look,
    figure: Figure,
    axis_label: str,
    x: AxisScale,
    y: AxisScale,
    box: Box,
    rows: Mapping[str, int],
) -> str:
    pieces = scales.runs(series.x, series.y, x, y)
    drawn = [index for piece in pieces for index in piece]
    across = {i: box.across(x.place(series.x[i])) for i in drawn}
    down = {i: box.down(y.place(series.y[i])) for i in drawn}
    curve = "".join("M" + "L".join(f"{across[i]:.1f} {down[i]:.1f}" for i in piece) for piece in pieces)
    band = _band(series, pieces, across, y, box)
    markers = _markers(look, [(across[i], down[i]) for i in drawn]) if look.marker else ""
    together = " together" if look.dashed else ""
    facts = _facts(series, drawn, figure.x.bytes, rows)
    return (
        f'<g class="series {look.colour}{together}" data-name="{escape(look.label)}" data-unit="{escape(unit_of(axis_label))}" '
        f'data-side="{SIDES[series.side]}" data-style="{"" if series.style == "line" else series.style}"{facts}>'
        f'{band}<path class="curve" d="{curve}"/>{markers}</g>'
    )


def _facts(series: Series, drawn: list[int], in_bytes: bool, rows: Mapping[str, int]) -> str:
    """The data attributes: one entry per drawn vertex, written as people read them."""
    columns = {
        "x": [numbers.size(series.x[i]) if in_bytes else numbers.number(series.x[i]) for i in drawn],
        "median": [numbers.number(series.y[i]) for i in drawn],
    }
    if series.low and series.high:
        columns["d1"] = [numbers.number(series.low[i]) for i in drawn]
        columns["d9"] = [numbers.number(series.high[i]) for i in drawn]
    if series.points and rows:
        columns["rows"] = [str(rows.get(series.points[i], "")) for i in drawn]
    return "".join(f' data-{name}="{escape("|".join(values))}"' for name, values in columns.items())


def _band(
    series: Series, pieces: list[list[int]], across: Mapping[int, float], y: AxisScale, box: Box
) -> str:
    """The area between low and high; where one of them cannot be shown, the curve itself is its edge."""
    if not (series.low and series.high):
        return ""

    def edge(values: tuple[float, ...], i: int) -> float:
        value = values[i] if y.shows(values[i]) else series.y[i]
        return box.down(y.place(value))

    areas = []
    for piece in pieces:
        there = [f"{across[i]:.1f} {edge(series.high, i):.1f}" for i in piece]
        back = [f"{across[i]:.1f} {edge(series.low, i):.1f}" for i in reversed(piece)]
        areas.append("M" + "L".join(there + back) + "z")
    return f'<path class="band" d="{"".join(areas)}"/>'


def _marks(marks: tuple[Mark, ...], x: AxisScale, box: Box) -> tuple[str, float]:
    """Numbered vertical lines, their sentences below the plot; and the height of the whole figure."""
    y = box.top + box.height + 46
    bottom = box.top + box.height
    parts = []
    letters = math.floor((WIDTH - LEFT - 24) / LETTER)
    for index, mark in enumerate(marks, start=1):
        if x.shows(mark.x):
            at = box.across(x.place(mark.x))
            parts.append(
                f'<path class="mark" d="M{at:.1f} {box.top:g}V{bottom:g}"/>{_badge(index, at, box.top - 8)}'
            )
        parts.append(_badge(index, LEFT + 8, y + LINE - 4))
        for line in textwrap.wrap(mark.text, letters) or [""]:
            y += LINE
            parts.append(f'<text x="{LEFT + 22}" y="{y:g}">{escape(line)}</text>')
        y += 3
    return "".join(parts), y + (6 if marks else 0)


def _badge(index: int, x: float, y: float) -> str:
    return (
        f'<circle class="badge" cx="{x:.1f}" cy="{y:g}" r="7.5"/>'
        f'<text class="badge-text" x="{x:.1f}" y="{y + 3.5:g}" text-anchor="middle">{index}</text>'
    )
