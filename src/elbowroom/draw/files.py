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

from elbowroom.draw import map_files, maps, palette, scales, strokes
from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.draw.map_files import plain
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
PANEL_INCHES = (4.2, 2.8)
MAP_INCHES = (6.6, 5.2)
DOTS_PER_INCH = 150
LETTERS = 105
"""Letters of the sentences below the plot that fit in one line."""
TITLE_LETTERS = 76
"""Letters of a title that fit in one line above a plot as wide as SIZE_INCHES."""
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


def _draw(figure: Figure) -> Canvas:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=SIZE_INCHES, layout="constrained")
    FigureCanvasAgg(canvas)
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
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    rows = -(-len(figures) // columns)
    width, height = PANEL_INCHES if shared else MAP_INCHES
    canvas = Canvas(figsize=(columns * width, rows * height + 1.0), layout="constrained")
    FigureCanvasAgg(canvas)
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
    """Leaves axes their labels at the edges only; `others`: those of the same panel on the right."""
    if index + columns < count:
        axes.xaxis.label.set_visible(False)
    if index % columns:
        axes.yaxis.label.set_visible(False)
    for right in others:
        right.yaxis.label.set_visible(index % columns == columns - 1 or index == count - 1)


def _title(figure: Figure) -> str:
    return plain(f"{figure.title} ({figure.highlight})" if figure.highlight else figure.title)


def _wrapped(title: str, width: float = 1.0) -> str:
    """The title in lines that fit above a plot `width` times as wide as SIZE_INCHES."""
    return textwrap.fill(title, max(20, int(TITLE_LETTERS * width)))


def _panel(left: Axes, figure: Figure) -> tuple[list[Line2D | Patch], list[str]]:
    """Draws the figure into the axes; returns the legend's entries and the sentences of the marks."""
    right = left.twinx() if figure.right is not None else None
    x = scales.horizontal(figure)
    ys = {"left": scales.vertical(figure, "left")}
    _axis(left, "x", figure.x, x)
    _axis(left, "y", figure.left, ys["left"])
    if right is not None and figure.right is not None:
        ys["right"] = scales.vertical(figure, "right")
        _axis(right, "y", figure.right, ys["right"])
    closed, reference = bool(figure.fields), figure.left.reference
    _frame(left, right, strong=bool(figure.highlight), closed=closed, reference=reference)
    keys = map_files.fields(left, figure, x, ys["left"])
    looks = palette.looks(figure)
    for series, base, look in zip(figure.series, scales.bases(figure), looks, strict=True):
        on_right = series.axis == "right" and right is not None
        axes = right if on_right and right is not None else left
        _curve(axes, series, base, look, x, ys["right" if on_right else "left"])
    _colour_labels(figure, left, right)
    map_files.names(figure, left if right is None else right, x, ys)
    return [*keys, *(_key(look) for look in palette.keys(looks))], _marks(figure, left, x)


def _frame(left: Axes, right: Axes | None, *, strong: bool, closed: bool, reference: float | None) -> None:
    """Grid, the line at the left axis' reference, and spines: all four around a map, thick ones around a
    panel that is set apart from those beside it.
    """
    left.grid(visible=True, color="#e4e7eb", linewidth=0.8)
    left.set_axisbelow(True)
    if reference is not None:
        left.axhline(reference, color="#1b1f24", linewidth=0.9, zorder=1.5)
    left.spines["top"].set_visible(strong or closed)
    if right is None:
        left.spines["right"].set_visible(strong or closed)
    else:
        right.spines["top"].set_visible(False)
    if strong:
        for axes in (left, right):
            for spine in axes.spines.values() if axes is not None else ():
                spine.set_linewidth(2.2)


def _axis(axes: Axes, which: str, axis: Axis, scale: AxisScale) -> None:
    """Ends, ticks and labels as `scales` chose them, so that page and file show the same axis."""
    if scale.kind != "linear":
        base = 2 if scale.kind == "log2" else 10
        (axes.set_xscale if which == "x" else axes.set_yscale)("log", base=base)
    side = axes.xaxis if which == "x" else axes.yaxis
    labelled = [tick for tick in scale.ticks if tick.label]
    texts = ["\n".join(lines) for lines in strokes.wrapped([tick.label for tick in labelled])]
    texts = texts if axis.names else [tick.label for tick in labelled]
    side.set_ticks([tick.value for tick in labelled], labels=[plain(text) for text in texts])
    side.set_ticks([tick.value for tick in scale.ticks if not tick.label], labels=None, minor=True)
    side.set_tick_params(which="minor", labelbottom=False, labelleft=False, labelright=False)
    (axes.set_xlim if which == "x" else axes.set_ylim)(scale.low, scale.high)
    side.set_label_text(plain(axis.label), fontweight="bold")
    map_files.second(axes, which, axis)


def _curve(
    axes: Axes, series: Series, base: Sequence[float], look: palette.Look, x: AxisScale, y: AxisScale
) -> None:
    """Draws the curve with its band, area or whiskers, or the bars."""
    colour = palette.ON_LIGHT[look.colour]
    if series.drawn == "bars":
        _bars(axes, series, colour, hollow=look.dashed)
        return
    level = [value + below for value, below in zip(series.y, base, strict=True)]
    for run in scales.runs(series.x, level, x, y):
        across = [series.x[i] for i in run]
        up = [level[i] for i in run]
        axes.add_line(_line(look, across, up))
        if series.drawn == "area":
            axes.fill_between(across, [base[i] for i in run], up, color=colour, alpha=0.34, linewidth=0)
        elif series.low and series.high:
            low = [series.low[i] if y.shows(series.low[i]) else series.y[i] for i in run]
            high = [series.high[i] if y.shows(series.high[i]) else series.y[i] for i in run]
            if series.drawn == "points":
                axes.vlines(across, low, high, color=colour, linewidth=1.0)
            else:
                axes.fill_between(across, low, high, color=colour, alpha=0.16, linewidth=0)


def _filled(colour: str, *, hollow: bool) -> dict[str, Any]:
    """The look of a bar for matplotlib."""
    if hollow:
        return {"facecolor": "white", "edgecolor": colour, "linewidth": 1.2, "linestyle": (0, (3.0, 2.0))}
    return {"facecolor": colour, "alpha": 0.75, "linewidth": 0}


def _bars(axes: Axes, series: Series, colour: str, *, hollow: bool) -> None:
    """The bars with whiskers and texts."""
    for index, (at, low, high) in enumerate(strokes.ends(series)):
        axes.bar(at, high - low, width=2 * strokes.HALF, bottom=low, **_filled(colour, hollow=hollow))
        if series.low and series.low[index] != series.high[index]:
            axes.vlines(at, series.low[index], series.high[index], color=strokes.INK, linewidth=1.2)
        if series.texts and series.texts[index]:
            axes.annotate(
                series.texts[index],
                (at, strokes.top(series, index)),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                va="bottom",
                fontsize=8.5,
                fontweight="bold",
            )


def _key(look: palette.Look) -> Line2D | Patch:
    """What stands for the curve in the legend."""
    if look.drawn not in ("area", "bars"):
        return _line(look, [], [])
    from matplotlib.patches import Rectangle

    colour = palette.ON_LIGHT[look.colour]
    if look.drawn == "bars":
        return Rectangle((0, 0), 1, 1, label=plain(look.label), **_filled(colour, hollow=look.dashed))
    return Rectangle((0, 0), 1, 1, color=colour, alpha=0.34, label=plain(look.label))


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


def _colour_labels(figure: Figure, left: Axes, right: Axes | None) -> None:
    """On a figure with two y axes each label takes the colour of its curves, where they share one."""
    if right is None:
        return
    for name, axes in (("left", left), ("right", right)):
        colour = palette.axis_colour(figure, name)
        if colour:
            axes.yaxis.label.set_color(palette.ON_LIGHT[colour])


def _marks(figure: Figure, axes: Axes, x: AxisScale) -> list[str]:
    """Draws the numbered vertical lines and returns their sentences, one a line, for below the plot."""
    visible = [index for index, mark in enumerate(figure.marks) if x.shows(mark.x)]
    centres = maps.spread([x.place(figure.marks[index].x) for index in visible], BADGE)
    for index, centre in zip(visible, centres, strict=True):
        axes.axvline(figure.marks[index].x, color="#59636e", linestyle=":", linewidth=1.0)
        axes.annotate(
            str(index + 1),
            (centre, 1.0),
            xycoords="axes fraction",
            ha="center",
            va="bottom",
            fontsize=7.5,
            color="white",
            bbox={"boxstyle": "circle,pad=0.25", "color": "#1b1f24"},
            annotation_clip=False,
        )
    return [f"{index}  {plain(mark.text)}" for index, mark in enumerate(figure.marks, start=1)]
