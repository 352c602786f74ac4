"""Figures as PNG and SVG files, drawn by matplotlib with the conventions of the page."""

from __future__ import annotations

import os
import re
import sys
import textwrap
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from elbowroom.draw import maps, palette, strokes, svg
from elbowroom.draw.figure import Axis, Field, Figure
from elbowroom.draw.maps import Spot
from elbowroom.draw.marks import CurveMarks, Marks, line_marks, wrapped
from elbowroom.draw.marks import marks as marks_of
from elbowroom.draw.scales import AxisScale
from elbowroom.errors import MachineError, UsageError
from elbowroom.files import write_with

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch


def load_matplotlib() -> ModuleType:
    """matplotlib; where MPLBACKEND names no backend the variable is ignored: figures need none.

    A backend that exists is left to matplotlib, for the notebook that asked for it.
    """
    try:
        import matplotlib
    except ValueError:
        backend = os.environ.pop("MPLBACKEND", None)
        if backend is None:
            raise
        # What is left of the failed import would spoil the second one.
        for name in [name for name in sys.modules if name.startswith("matplotlib.")]:
            del sys.modules[name]
        try:
            import matplotlib
        finally:
            os.environ["MPLBACKEND"] = backend
    return matplotlib


KINDS = (".png", ".svg")
LINE_WIDTH = 1.6
SIZE_INCHES = (7.0, 4.4)
PAIRED_INCHES = (7.0, 5.6)
PANEL_INCHES = (4.2, 2.8)
MAP_INCHES = (6.6, 5.2)
DOTS_PER_INCH = 150
LETTERS = 96
"""Letters of the sentences below the plot that fit in one line."""
TITLE_LETTERS = 76
"""Letters of a title that fit in one line above a plot as wide as SIZE_INCHES."""
INK, FAINT = "#1b1f24", "#59636e"
HATCHES = {"rising": "////", "falling": "\\\\\\\\"}
WIDTH, HEIGHT = svg.WIDTH - svg.LEFT - svg.RIGHT, svg.PLOT_HEIGHT
"""Of the plot in the page, in whose units the names of points and lines are placed."""
BADGE = 0.035
"""Between the centres of two numbered badges, at least, as a share of the plot's width."""
_MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D"}
_OWN_LEGEND: Any = {
    "loc": "upper center",
    "bbox_to_anchor": (0.5, -0.16),
    "ncols": 3,
    "frameon": False,
    "fontsize": 8,
}
# Text in an SVG stays text, and the same figure gives the same bytes.
_SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "elbowroom",
    "font.size": 9.0,
    "axes.linewidth": 0.8,
}


def save(figure: Figure, path: Path) -> None:
    """Writes the figure as `path`, a .png or .svg; an earlier file is replaced at once or kept.

    Raises UsageError for another suffix and MachineError when the file cannot be written.
    """
    _write(lambda: _draw(figure), figure.title, path)


def save_panels(
    figures: Sequence[Figure], path: Path, *, columns: int, title: str, shared: bool = True
) -> None:
    """Writes the figures as the panels of one, row by row, `columns` in a row; raises as `save`.

    The panels show the same curves on the same axes: one legend stands for all, labels at the edges only;
    unless they are not `shared`, as those of maps. Captions and the sentences of marks stand below, without
    repetition.
    """
    _write(lambda: _draw_panels(figures, columns, title, shared=shared), title, path)


def _write(draw: Callable[[], Canvas], title: str, path: Path) -> None:
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise UsageError(
            "figures are written as PNG or SVG",
            field="figure",
            value=str(path),
            hint="end the name in .png or .svg",
        )
    with load_matplotlib().rc_context(_SETTINGS):
        canvas = draw()
        metadata = (
            {"Date": None, "Title": title} if kind == ".svg" else {"Title": title, "Software": "elbowroom"}
        )
        write_with(
            path,
            lambda temporary: canvas.savefig(
                temporary, format=kind[1:], dpi=DOTS_PER_INCH, metadata=metadata
            ),
        )


def save_all(figures: Iterable[Figure], directory: Path) -> list[Path]:
    """Writes each figure as PNG and as SVG into `directory`, which is created if missing.

    Files are named after their figures and returned in order. MachineError if one cannot be written.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(
            f"the directory cannot be made ({error.strerror})",
            field="figures",
            value=str(directory),
            hint="choose another directory",
        ) from error
    taken: set[str] = set()
    written = []
    for figure in figures:
        base = stem = re.sub(r"[^A-Za-z0-9_.-]+", "-", figure.name).strip("-.") or "figure"
        count = 1
        while stem.lower() in taken:
            count += 1
            stem = f"{base}-{count}"
        taken.add(stem.lower())
        for kind in KINDS:
            path = directory / f"{stem}{kind}"
            save(figure, path)
            written.append(path)
    return written


def _canvas(width: float, height: float) -> Canvas:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(canvas)
    return canvas


def _draw(figure: Figure) -> Canvas:
    canvas = _canvas(*(SIZE_INCHES if figure.below is None else PAIRED_INCHES))
    left = canvas.add_subplot()
    handles, marks = _panel(left, figure)
    title = _wrapped(_title(figure))
    if figure.warning:
        left.set_title(plain(figure.warning), fontsize=8.5, fontweight="bold", color=palette.WARNING, pad=14)
    if handles:
        canvas.legend(
            handles=handles,
            title=title,
            title_fontproperties={"size": 11, "weight": "bold" if figure.highlight else "normal"},
            loc="outside upper center",
            ncols=2,
            frameon=False,
            handlelength=3.6,
        )
    else:
        canvas.suptitle(title, fontsize=11)
    below = "\n".join(textwrap.fill(line, LETTERS) for line in (*marks, plain(figure.caption)) if line)
    if below:
        canvas.supxlabel(below, fontsize=8.5, ha="left", x=0.08)
    return canvas


def _draw_panels(figures: Sequence[Figure], columns: int, title: str, *, shared: bool) -> Canvas:
    rows = -(-len(figures) // columns)
    width, height = PANEL_INCHES if shared else MAP_INCHES
    canvas = _canvas(columns * width, rows * height + 1.0)
    handles: list[Line2D | Patch] = []
    below: dict[str, None] = {}
    for index, figure in enumerate(figures):
        axes = canvas.add_subplot(rows, columns, index + 1)
        name = _wrapped(plain(figure.title), width / SIZE_INCHES[0] * 11 / 9)
        axes.set_title(name, fontsize=9, fontweight="bold" if figure.highlight else "normal")
        before = len(canvas.axes)
        keys, marks = _panel(axes, figure)
        handles = handles or keys
        caption = [plain(figure.caption)] if shared else _sentences(plain(figure.caption))
        below |= dict.fromkeys(line for line in (*marks, *caption) if line)
        if shared:
            _label_edges(axes, canvas.axes[before:], index, columns, len(figures))
        else:
            axes.legend(handles=keys, **_OWN_LEGEND)
    if below:
        letters = int(LETTERS * columns * width / SIZE_INCHES[0])
        lines = "\n".join(textwrap.fill(line, letters) for line in (below if shared else [" ".join(below)]))
        canvas.supxlabel(lines, fontsize=8.5, ha="left", x=0.08)
    title = _wrapped(plain(title), columns * width / SIZE_INCHES[0])
    if not shared:
        canvas.suptitle(title, fontsize=11)
        return canvas
    canvas.legend(
        handles=handles,
        title=title,
        title_fontsize=11,
        loc="outside upper center",
        ncols=max(2, min(columns, 4)),
        frameon=False,
        handlelength=3.6,
    )
    return canvas


def _sentences(text: str) -> list[str]:
    """Panels of one kind say much the same below them."""
    return re.split(r"(?<=\.) (?=[A-Z])", text)


def _label_edges(axes: Axes, others: Sequence[Axes], index: int, columns: int, count: int) -> None:
    """Leaves axes their labels at the edges only; `others`: those of the plot below in the same panel."""
    for plot in (axes, *others):
        if index + columns < count:
            plot.xaxis.label.set_visible(False)
        if index % columns:
            plot.yaxis.label.set_visible(False)


def _title(figure: Figure) -> str:
    return plain(f"{figure.title} ({figure.highlight})" if figure.highlight else figure.title)


def _wrapped(title: str, width: float = 1.0) -> str:
    """The title in lines that fit above a plot `width` times as wide as SIZE_INCHES."""
    return textwrap.fill(title, max(20, int(TITLE_LETTERS * width)))


def _panel(left: Axes, figure: Figure) -> tuple[list[Line2D | Patch], list[str]]:
    """Draws the figure into the axes; returns the legend's entries and the sentences of the marks."""
    marks = marks_of(figure)
    sides = {"left": left} | ({} if figure.below is None else {"below": _plot_below(left)})
    for plot in sides.values():
        _axis(plot, "x", figure.x, marks.x)
    if figure.below is not None:
        left.tick_params(labelbottom=False)
        left.set_xlabel("")
    for side, axis in (("left", figure.left), ("below", figure.below)):
        if axis is not None:
            _axis(sides[side], "y", axis, marks.sides[side])
    for side, plot in sides.items():
        _frame(plot, figure, marks.reference if side == "left" else None)
    keys = _fields(left, figure, marks)
    for curve in marks.curves:
        _curve(sides[curve.side], curve)
    _names(figure, left, marks)
    for number, across, badge in line_marks(figure, marks.x, BADGE):
        for plot in sides.values():
            plot.axvline(across, color=FAINT, linestyle=":", linewidth=1.0)
        look: Any = {"color": "white", "fontsize": 7.5, "bbox": {"boxstyle": "circle,pad=0.25", "color": INK}}
        left.annotate(str(number), (badge, 1.0), ha="center", va="bottom", annotation_clip=False, **look)
    sentences = [f"{number}  {plain(mark.text)}" for number, mark in enumerate(figure.marks, start=1)]
    return [*keys, *(_key(look) for look in marks.keys)], sentences


def _plot_below(axes: Axes) -> Axes:
    """Leaves the upper half of its place to the axes; those of the lower half."""
    place = axes.get_subplotspec()
    canvas = axes.get_figure(root=True)
    if place is None or canvas is None:
        raise ValueError("a plot below another one needs a place in a grid")
    halves = place.subgridspec(2, 1)
    axes.set_subplotspec(halves[0])
    return canvas.add_subplot(halves[1])


def _frame(axes: Axes, figure: Figure, reference: float | None) -> None:
    """Grid, the line at the reference, and spines: all four around a map, thick ones around a panel that is
    set apart from those beside it.
    """
    axes.grid(visible=True, color="#e4e7eb", linewidth=0.8)
    axes.set_axisbelow(True)
    if reference is not None:
        axes.axhline(reference, color=INK, linewidth=0.9, zorder=1.5)
    strong = bool(figure.highlight)
    for side in ("top", "right"):
        axes.spines[side].set_visible(strong or bool(figure.fields))
    if strong:
        for spine in axes.spines.values():
            spine.set_linewidth(2.2)


def _axis(axes: Axes, which: str, axis: Axis, scale: AxisScale) -> None:
    """Ticks where `scale` chose them, so that page and file show the same axis, and labels."""
    side = axes.xaxis if which == "x" else axes.yaxis
    labelled = [tick for tick in scale.ticks if tick.label]
    texts = [tick.label for tick in labelled]
    if axis.names:
        texts = ["\n".join(lines) for lines in wrapped(texts)]
    _ticks(side, [scale.place(tick.value) for tick in labelled], texts)
    side.set_ticks([scale.place(tick.value) for tick in scale.ticks if not tick.label], minor=True)
    (axes.set_xlim if which == "x" else axes.set_ylim)(0.0, 1.0)
    side.set_label_text(plain(axis.label), fontweight="bold")
    if axis.second is not None:
        other = axes.secondary_xaxis("top") if which == "x" else axes.secondary_yaxis("right")
        across = other.xaxis if which == "x" else other.yaxis
        places = [scale.place(value) for value, _ in axis.second.ticks]
        _ticks(across, places, [text for _, text in axis.second.ticks])
        across.set_label_text(plain(axis.second.label), fontweight="bold")


def _ticks(side: Any, places: Sequence[float], texts: Sequence[str]) -> None:
    side.set_ticks(places, labels=[plain(text) for text in texts])
    side.set_tick_params(which="minor", labelbottom=False, labelleft=False, labelright=False)


def _curve(axes: Axes, curve: CurveMarks) -> None:
    """Draws the curve with its band, area or whiskers, or the bars."""
    from matplotlib.patches import Polygon, Rectangle

    colour = palette.ON_LIGHT[curve.look.colour]
    bars = curve.series.drawn == "bars"
    for (left, start), (right, end) in curve.bars:
        look = _filled(colour, hollow=curve.look.dashed)
        axes.add_patch(Rectangle((left, start), right - left, end - start, **look))
    for outline in curve.bands:
        alpha = 0.34 if curve.series.drawn == "area" else 0.16
        axes.add_patch(Polygon(outline, color=colour, alpha=alpha, linewidth=0))
    if curve.whiskers:
        across, low, high = zip(*curve.whiskers, strict=True)
        axes.vlines(across, low, high, color=INK if bars else colour, linewidth=1.2 if bars else 1.0)
    for spots in () if bars else curve.lines:
        axes.add_line(_line(curve.look, [x for x, _ in spots], [y for _, y in spots]))
    for spot, text in curve.texts:
        look = {"ha": "center", "va": "bottom", "fontsize": 8.5, "fontweight": "bold"}
        axes.annotate(text, spot, xytext=(0, 3), textcoords="offset points", **look)


def _filled(colour: str, *, hollow: bool) -> dict[str, Any]:
    """The look of a bar for matplotlib."""
    if hollow:
        return {"facecolor": "white", "edgecolor": colour, "linewidth": 1.2, "linestyle": (0, (3.0, 2.0))}
    return {"facecolor": colour, "alpha": 0.75, "linewidth": 0}


def _key(look: palette.Look) -> Line2D | Patch:
    """The entry of the curve in the legend."""
    if look.drawn not in ("area", "bars"):
        return _line(look, [], [])
    colour = palette.ON_LIGHT[look.colour]
    if look.drawn == "bars":
        return _box(label=plain(look.label), **_filled(colour, hollow=look.dashed))
    return _box(color=colour, alpha=0.34, label=plain(look.label))


def _line(look: palette.Look, across: list[float], up: list[float]) -> Line2D:
    from matplotlib.lines import Line2D

    colour = palette.ON_LIGHT[look.colour]
    line = Line2D(across, up, color=colour, linewidth=LINE_WIDTH, markersize=4.5, label=plain(look.label))
    line.set_markerfacecolor("white" if look.dashed else colour)
    if look.marker:
        line.set_marker(_MARKERS[look.marker])
    if look.drawn == "points":
        line.set_linestyle("none")
    elif look.dashed:
        # matplotlib counts dashes in line widths, the page in units.
        line.set_linestyle((0, tuple(part / LINE_WIDTH for part in palette.DASH)))
    return line


def _fields(axes: Axes, figure: Figure, marks: Marks) -> list[Line2D | Patch]:
    """Draws the figure's fields; what stands for them in a legend."""
    plane = maps.Plane(marks.x, marks.sides["left"], WIDTH, HEIGHT)
    keys: list[Line2D | Patch] = []
    for field in figure.fields:
        colour = palette.ON_LIGHT[palette.field_colour(field)]
        if field.drawn == "lines":
            for level in field.levels:
                for spots in plane.lines(field, level):
                    axes.add_line(_isoline(spots, colour))
            keys.append(_isoline([], colour, label=plain(field.name)))
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
    return [_isoline([], "none", label=f"{plain(field.name)}:"), *boxes]


def _isoline(spots: Sequence[Spot], colour: str, **more: Any) -> Line2D:
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
        axes.add_patch(PathPatch(whole, **look))


def _names(figure: Figure, top: Axes, marks: Marks) -> None:
    """The dots and names of the named points, whiskers, arrows and the names of lines and regions."""
    plane = maps.Plane(marks.x, marks.sides["left"], WIDTH, HEIGHT)
    layout = maps.drawn(figure, plane, marks.sides, strokes.BOLD_LETTER)
    for start, end in layout.whiskers:
        (x0, y0), (x1, y1) = _share(start), _share(end)
        cap = "|" if y0 == y1 else "_"
        look = {"marker": cap, "color": INK, "linewidth": 1.4, "path_effects": _halo()}
        top.plot([x0, x1], [y0, y1], **look)
    for start, end in layout.arrows:
        arrow = {"arrowstyle": "-|>", "linewidth": 1.4, "shrinkA": 0, "shrinkB": 0, "path_effects": _halo()}
        _join(top, _share(end), _share(start), **arrow)
    for text in layout.levels:
        colour = palette.ON_LIGHT[palette.field_colour(figure.fields[text.field])]
        _text(top, (text.x, text.y), text.text, color=colour, weight="bold", fontsize=8.0)
    for text in layout.regions:
        _text(top, (text.x, text.y), text.text, color=INK, style="italic", fontsize=8.5)
    for label, spot, place in layout.points:
        face, edge = ("white", INK) if label.hollow else (INK, "white")
        across, up = _share(spot)
        top.plot([across], [up], "o", mfc=face, mec=edge, markersize=6)
        _join(top, _share(spot), _share((place.x, place.y)), arrowstyle="-", linewidth=0.8)
        _text(top, (place.x, place.y), label.text, color=INK, weight="bold", fontsize=8.5)


def _halo() -> Any:
    """White around strokes, which shades may be as dark as."""
    from matplotlib.patheffects import withStroke

    return [withStroke(linewidth=3.5, foreground="white")]


def _join(axes: Axes, to: Spot, start: Spot, **look: Any) -> None:
    """A line or an arrow between two places, in shares of the plot."""
    arrow = {"color": INK, **look}
    axes.annotate("", to, start, arrowprops=arrow)


def _text(axes: Axes, middle: Spot, text: str, **look: Any) -> None:
    """A text that can be read on whatever is behind it."""
    across, up = _share(middle)
    box = {"boxstyle": "round,pad=0.1", "color": "white", "alpha": 0.7}
    axes.text(across, up, plain(text), ha="center", va="center", bbox=box, **look)


def _share(spot: Spot) -> Spot:
    """A place as shares of the plot, upwards."""
    return spot[0] / WIDTH, 1 - spot[1] / HEIGHT


def plain(text: str) -> str:
    """Text as it stands: matplotlib would read dollar signs as mathematics."""
    return text.replace("$", r"\$")
