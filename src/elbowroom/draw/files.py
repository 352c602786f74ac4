"""Figures as PNG and SVG files, drawn by matplotlib with the conventions of the page."""

from __future__ import annotations

import os
import re
import tempfile
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elbowroom.draw import palette, scales
from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.draw.scales import AxisScale
from elbowroom.errors import MachineError, UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas
    from matplotlib.lines import Line2D

KINDS = (".png", ".svg")
LINE_WIDTH = 1.6
SIZE_INCHES = (7.0, 4.4)
DOTS_PER_INCH = 150
LETTERS = 105
"""Letters of the sentences below the plot that fit in one line."""
_MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D"}
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
    kind = path.suffix.lower()
    if kind not in KINDS:
        raise UsageError(
            "figures are written as PNG or SVG",
            field="figure",
            value=str(path),
            mend="end the name in .png or .svg",
        )
    import matplotlib

    with matplotlib.rc_context(_SETTINGS):
        canvas = _draw(figure)
        metadata = (
            {"Date": None, "Title": figure.title}
            if kind == ".svg"
            else {"Title": figure.title, "Software": "elbowroom"}
        )
        try:
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=kind)
            try:
                with os.fdopen(handle, "wb") as stream:
                    canvas.savefig(stream, format=kind[1:], dpi=DOTS_PER_INCH, metadata=metadata)
                os.chmod(name, 0o666 & ~_umask())
                os.replace(name, path)
            except BaseException:
                os.unlink(name)
                raise
        except OSError as error:
            raise MachineError(
                f"the figure cannot be written ({error.strerror})",
                field="figure",
                value=str(path),
                mend="choose a directory with room that you may write to",
            ) from error


def save_all(figures: Iterable[Figure], directory: Path) -> list[Path]:
    """Each figure as PNG and as SVG in `directory` (made when missing), named after it; the files in
    order.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise MachineError(
            f"the directory cannot be made ({error.strerror})",
            field="figures",
            value=str(directory),
            mend="choose another directory",
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


def _umask() -> int:
    """The process' umask, which Python only tells by setting it: figures are for whoever may read the
    folder.
    """
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _draw(figure: Figure) -> Canvas:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure as Canvas

    canvas = Canvas(figsize=SIZE_INCHES, layout="constrained")
    FigureCanvasAgg(canvas)
    left = canvas.add_subplot()
    right = left.twinx() if figure.right is not None else None
    x = scales.horizontal(figure)
    _axis(left, "x", figure.x, x)
    _axis(left, "y", figure.left, scales.vertical(figure, "left"))
    if right is not None and figure.right is not None:
        _axis(right, "y", figure.right, scales.vertical(figure, "right"))
    left.grid(visible=True, color="#e4e7eb", linewidth=0.8)
    left.set_axisbelow(True)
    left.spines["top"].set_visible(False)
    if right is None:
        left.spines["right"].set_visible(False)
    else:
        right.spines["top"].set_visible(False)
    handles = []
    for series, look in zip(figure.series, palette.looks(figure), strict=True):
        on_right = series.axis == "right" and right is not None
        y = scales.vertical(figure, "right" if on_right else "left")
        handles.append(_curve(right if on_right and right is not None else left, series, look, x, y))
    _colour_labels(figure, left, right)
    marks = _marks(figure, left, x)
    if handles:
        canvas.legend(
            handles=handles,
            title=_plain(figure.title),
            title_fontsize=11,
            loc="outside upper center",
            ncols=2,
            frameon=False,
            handlelength=3.6,
        )
    else:
        canvas.suptitle(_plain(figure.title), fontsize=11)
    below = "\n".join(textwrap.fill(line, LETTERS) for line in (*marks, _plain(figure.caption)) if line)
    if below:
        canvas.supxlabel(below, fontsize=8.5, ha="left", x=0.08)
    return canvas


def _axis(axes: Axes, which: str, axis: Axis, scale: AxisScale) -> None:
    """Ends, ticks and labels as `scales` chose them, so that page and file show the same axis."""
    if scale.kind != "linear":
        base = 2 if scale.kind == "log2" else 10
        (axes.set_xscale if which == "x" else axes.set_yscale)("log", base=base)
    side = axes.xaxis if which == "x" else axes.yaxis
    labelled = [tick for tick in scale.ticks if tick.label]
    side.set_ticks([tick.value for tick in labelled], labels=[_plain(tick.label) for tick in labelled])
    side.set_ticks([tick.value for tick in scale.ticks if not tick.label], labels=None, minor=True)
    side.set_tick_params(which="minor", labelbottom=False, labelleft=False, labelright=False)
    (axes.set_xlim if which == "x" else axes.set_ylim)(scale.low, scale.high)
    side.set_label_text(_plain(axis.label), fontweight="bold")


def _curve(axes: Axes, series: Series, look: palette.Look, x: AxisScale, y: AxisScale) -> Line2D:
    """Draws the curve with its band and returns the line for the legend."""
    colour = palette.ON_LIGHT[look.colour]
    for run in scales.runs(series.x, series.y, x, y):
        across = [series.x[i] for i in run]
        axes.add_line(_line(look, across, [series.y[i] for i in run]))
        if series.low and series.high:
            low = [series.low[i] if y.shows(series.low[i]) else series.y[i] for i in run]
            high = [series.high[i] if y.shows(series.high[i]) else series.y[i] for i in run]
            axes.fill_between(across, low, high, color=colour, alpha=0.16, linewidth=0)
    return _line(look, [], [])


def _line(look: palette.Look, across: list[float], up: list[float]) -> Line2D:
    from matplotlib.lines import Line2D

    colour = palette.ON_LIGHT[look.colour]
    line = Line2D(across, up, color=colour, linewidth=LINE_WIDTH, markersize=4.5, label=_plain(look.label))
    line.set_markerfacecolor("white" if look.dashed else colour)
    if look.marker:
        line.set_marker(_MARKERS[look.marker])
    if look.dashed:
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
    lines = []
    for index, mark in enumerate(figure.marks, start=1):
        if x.shows(mark.x):
            axes.axvline(mark.x, color="#59636e", linestyle=":", linewidth=1.0)
            axes.annotate(
                str(index),
                (x.place(mark.x), 1.0),
                xycoords="axes fraction",
                ha="center",
                va="bottom",
                fontsize=7.5,
                color="white",
                bbox={"boxstyle": "circle,pad=0.25", "color": "#1b1f24"},
                annotation_clip=False,
            )
        lines.append(f"{index}  {_plain(mark.text)}")
    return lines


def _plain(text: str) -> str:
    """Text as it stands: matplotlib would read dollar signs as mathematics."""
    return text.replace("$", r"\$")
