"""Maps in files: shades, hatches, lines and texts as the page has them, drawn by matplotlib."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from elbowroom.draw import maps, palette, strokes, svg
from elbowroom.draw.figure import Axis, Field, Figure
from elbowroom.draw.maps import Spot
from elbowroom.draw.scales import AxisScale
from elbowroom.draw.strokes import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

FAINT = "#59636e"
HATCHES = {"rising": "////", "falling": "\\\\\\\\"}
WIDTH, HEIGHT = svg.WIDTH - svg.LEFT - svg.RIGHT, svg.PLOT_HEIGHT
"""Of the plot in the page, in whose units everything is placed."""


def fields(axes: Axes, figure: Figure, x: AxisScale, y: AxisScale) -> list[Line2D | Patch]:
    """Draws the figure's fields; what stands for them in a legend."""
    plane = maps.Plane(x, y, WIDTH, HEIGHT)
    keys: list[Line2D | Patch] = []
    for field in figure.fields:
        colour = palette.ON_LIGHT[palette.field_colour(field)]
        if field.drawn == "lines":
            for level in field.levels:
                for spots in plane.lines(field, level):
                    axes.add_line(_line(spots, colour, transform=axes.transAxes))
            keys.append(_line([], colour, label=plain(field.name)))
        elif field.drawn == "shades":
            for level in field.levels:
                _fill(axes, plane.outlines(field, level), color=colour, alpha=maps.SHADE, linewidth=0)
            keys += _shades(field, colour)
        else:
            look = {"fill": False, "edgecolor": colour, "hatch": HATCHES[field.drawn], "linewidth": 0}
            _fill(axes, plane.outlines(field, field.levels[0]), **look)
            keys.append(_box(label=plain(field.name), **look))
    return keys


def _shades(field: Field, colour: str) -> list[Line2D | Patch]:
    """The field's name, and a box for each shade."""
    boxes = [
        _box(label=plain(text), facecolor=(colour, maps.opacity(index)), edgecolor=FAINT, linewidth=0.5)
        for index, text in enumerate(field.texts)
    ]
    return [_line([], "none", label=f"{plain(field.name)}:"), *boxes]


def _line(spots: Sequence[Spot], colour: str, **more: Any) -> Line2D:
    from matplotlib.lines import Line2D

    shares = [_share(spot) for spot in spots]
    return Line2D([x for x, _ in shares], [y for _, y in shares], color=colour, linewidth=1.3, **more)


def _box(**look: Any) -> Patch:
    from matplotlib.patches import Rectangle

    return Rectangle((0, 0), 1, 1, **look)


def _fill(axes: Axes, outlines: Sequence[Sequence[Spot]], **look: Any) -> None:
    """All outlines as one shape, so that those inside others are holes."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    closed = [[_share(spot) for spot in spots] for spots in outlines if len(spots) > 2]
    if closed:
        whole = Path.make_compound_path(*(Path(spots, closed=True) for spots in closed))
        axes.add_patch(PathPatch(whole, transform=axes.transAxes, **look))


def names(figure: Figure, top: Axes, x: AxisScale, sides: Mapping[str, AxisScale]) -> None:
    """The dots and names of the named points, whiskers, arrows and the names of lines and regions."""
    plane = maps.Plane(x, sides["left"], WIDTH, HEIGHT)
    layout = maps.drawn(figure, plane, dict(sides), strokes.BOLD_LETTER)
    for start, end in layout.whiskers:
        (x0, y0), (x1, y1) = _share(start), _share(end)
        cap = "|" if y0 == y1 else "_"
        look = {"marker": cap, "color": INK, "linewidth": 1.4, "path_effects": _halo()}
        top.plot([x0, x1], [y0, y1], transform=top.transAxes, **look)
    for start, end in layout.arrows:
        arrow = {"arrowstyle": "-|>", "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0, "path_effects": _halo()}
        _join(top, _share(end), _share(start), **arrow)
    for text in layout.levels:
        colour = palette.ON_LIGHT[palette.field_colour(figure.fields[text.field])]
        _write(top, (text.x, text.y), text.text, color=colour, weight="bold", fontsize=8.0)
    for text in layout.regions:
        _write(top, (text.x, text.y), text.text, color=INK, style="italic", fontsize=8.5)
    for label, spot, place in layout.points:
        face, edge = ("white", INK) if label.hollow else (INK, "white")
        across, up = _share(spot)
        top.plot([across], [up], "o", mfc=face, mec=edge, markersize=6, transform=top.transAxes)
        _join(top, _share(spot), _share((place.x, place.y)), arrowstyle="-", linewidth=0.8)
        _write(top, (place.x, place.y), label.text, color=INK, weight="bold", fontsize=8.5)


def _halo() -> Any:
    """White around strokes, which shades may be as dark as."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=3.5, foreground="white")]


def _join(axes: Axes, to: Spot, start: Spot, **look: Any) -> None:
    """A line or an arrow between two places, in shares of the plot."""
    arrow = {"color": INK, **look}
    axes.annotate("", to, start, xycoords="axes fraction", textcoords="axes fraction", arrowprops=arrow)


def _write(axes: Axes, middle: Spot, text: str, **look: Any) -> None:
    """A text that can be read on whatever is behind it."""
    across, up = _share(middle)
    box = {"boxstyle": "round,pad=0.1", "color": "white", "alpha": 0.7}
    axes.text(across, up, plain(text), ha="center", va="center", bbox=box, transform=axes.transAxes, **look)


def second(axes: Axes, which: str, axis: Axis) -> None:
    """The axis in its other unit, on the other side of the plot."""
    if axis.second is None:
        return
    other = axes.secondary_xaxis("top") if which == "x" else axes.secondary_yaxis("right")
    side = other.xaxis if which == "x" else other.yaxis
    side.set_ticks([value for value, _ in axis.second.ticks], labels=[text for _, text in axis.second.ticks])
    side.set_ticks([], minor=True)
    side.set_label_text(plain(axis.second.label), fontweight="bold")


def _share(spot: Spot) -> Spot:
    """A place as shares of the plot, upwards."""
    return spot[0] / WIDTH, 1 - spot[1] / HEIGHT


def plain(text: str) -> str:
    """Text as it stands: matplotlib would read dollar signs as mathematics."""
    return text.replace("$", r"\$")
