"""The strokes of a figure's curves, areas and points as SVG, in the units of the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from elbowroom.draw import palette, scales
from elbowroom.draw.figure import Series
from elbowroom.draw.scales import AxisScale

LETTER = 6.4
"""Mean width of a letter of the 12-unit font, on the generous side: SVG text does not tell its width."""
BOLD_LETTER = 8.4
NAME_LINE = 15.0
"""From one line of a point's name to the next."""


class PlotBox:
    """The plot's rectangle in SVG units; `at` turns places on two axes into a position."""

    def __init__(self, *, left: float, top: float, width: float, height: float) -> None:
        self.left, self.top, self.width, self.height = left, top, width, height

    def across(self, place: float) -> float:
        """The abscissa of a place on the x axis."""
        return self.left + place * self.width

    def down(self, place: float) -> float:
        """The ordinate of a place on a y axis."""
        return self.top + (1 - place) * self.height


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


def curve(
    identity: str,
    series: Series,
    base: Sequence[float],
    look: palette.Look,
    scale: tuple[AxisScale, AxisScale],
    box: PlotBox,
) -> str:
    """The band, area or whiskers, and above them the curve with its markers; `scale`: of x and of y."""
    x, y = scale
    line, behind = "", ""
    level = [value + below for value, below in zip(series.y, base, strict=True)]
    # A band's edge that has no place on the axis (zero on a logarithm) is the curve itself.
    low = [v if y.shows(v) else at for v, at in zip(series.low, level, strict=True)] if series.low else []
    high = [v if y.shows(v) else at for v, at in zip(series.high, level, strict=True)] if series.high else []
    if series.drawn == "area":
        low, high = [v if y.shows(v) else y.low for v in base], level

    def spots(values: Sequence[float], run: Sequence[int]) -> list[tuple[float, float]]:
        return [(box.across(x.place(series.x[i])), box.down(y.place(values[i]))) for i in run]

    for run in scales.runs(series.x, level, x, y):
        line += path(spots(level, run))
        if not low or not high or series.drawn == "bars":
            continue
        if series.drawn == "points":
            behind += "".join(
                f"M{short(at)} {short(down)}V{short(up)}"
                for (at, down), (_, up) in zip(spots(low, run), spots(high, run), strict=True)
            )
        else:
            behind += path(spots(high, run) + spots(low, run[::-1])) + "z"
    kind = "whisker" if series.drawn == "points" else "band"
    drawn_behind = f'<path class="{kind}" d="{behind}"/>' if behind else ""
    return f'{drawn_behind}<path class="curve" d="{line}"{marked(identity, look)}/>'


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
