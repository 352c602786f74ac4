"""A figure as inline SVG for the page: solid alone, dashed together, a band from d1 to d9.

Colours and fonts are in the rules of `style`, which the page carries once.

Each curve carries the values that a reader sees when pointing at it, one entry per vertex of its path,
separated by `|`: `data-x` (on the figure if the curve has none), `data-median`, `data-d1`, `data-d9`. If the
points are rows of the page's table, `data-rows` names them (`0-34,40`), and values that the table has are
left out. The page's script finds the vertex nearest to the pointer.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from html import escape

import msgspec

from elbowroom.draw import palette, strokes
from elbowroom.draw.figure import Axis, Field, Figure, Second, Series
from elbowroom.draw.marks import CurveMarks, Marks, line_marks, wrapped
from elbowroom.draw.marks import marks as marks_of
from elbowroom.draw.scales import AxisScale
from elbowroom.draw.strokes import LETTER, PlotBox
from elbowroom.quantities import format_cores, format_size, number

WIDTH = 600
PLOT_HEIGHT = 250
PAIRED_HEIGHT = 150
"""Of each of two plots, one above the other."""
BETWEEN, LABEL = 34, 22
"""Between two plots; what the label above the first one takes."""
LEFT, RIGHT, RIGHT_WITH_AXIS = 66, 18, 66
LINE = 17
SIZES = 12
"""What sizes, which are longer than numbers, take more beside the plot."""
BADGE = 17
"""Between the centres of two numbered badges, at least."""
SECOND = 34
"""What a second scale above the plot takes."""
SIDES = {"computation": "comp", "communication": "comm", None: ""}


def _variables(colours: Mapping[str, str]) -> str:
    return "".join(f"--{name}:{value};" for name, value in colours.items())


LIGHT = f"{_variables(palette.ON_LIGHT)}--ink:#1b1f24;--faint:#59636e;--grid:#e4e7eb;--paper:#fff"
DARK = f"{_variables(palette.ON_DARK)}--ink:#e8eaed;--faint:#a0a8b2;--grid:#343a42;--paper:#16191d"
"""The colours that the rules of figures use, on light and on dark paper."""


def style() -> str:
    """The rules every inline figure relies on; a page carries them once."""
    return f":root{{{LIGHT}}}@media screen and (prefers-color-scheme:dark){{:root{{{DARK}}}}}{figure_rules()}"


def figure_rules() -> str:
    """What a figure looks like in the colours of LIGHT or DARK."""
    curves = "".join(f".figure .{name}{{--curve:var(--{name})}}" for name in palette.COLOURS)
    return (
        ".figure{display:block;width:100%;height:auto;font:12px system-ui,sans-serif;fill:var(--ink)}"
        ".figure .grid{stroke:var(--grid);fill:none}.figure .frame{stroke:var(--faint);fill:none}"
        ".figure .tick{fill:var(--faint)}.figure .tick-line{stroke:var(--faint);fill:none}"
        ".figure .curve{fill:none;stroke:var(--curve);stroke-width:2;stroke-linejoin:round}"
        f".figure .together .curve{{stroke-dasharray:{palette.DASH[0]:g} {palette.DASH[1]:g}}}"
        ".figure .band{fill:var(--curve);fill-opacity:.16;stroke:none}"
        ".figure marker{overflow:visible}.figure .marker{fill:var(--curve);stroke:none}.figure .together "
        ".marker{fill:var(--paper);"
        "stroke:var(--curve);stroke-width:1.5}"
        ".figure .points .curve{stroke:none}.figure .whisker{fill:none;stroke:var(--curve);stroke-width:1.2}"
        ".figure .area .band{fill-opacity:.34}.figure .frame.strong{stroke:var(--ink);stroke-width:2.5}"
        ".figure .point{fill:var(--ink);stroke:var(--paper);stroke-width:1.5}"
        ".figure .leader{fill:none;stroke:var(--ink)}"
        ".figure .labels{font-weight:600;paint-order:stroke;stroke:var(--paper);stroke-width:3}"
        ".figure .axis-label{font-weight:600;fill:var(--ink)}"
        ".figure .mark{stroke:var(--faint);stroke-dasharray:2 3;fill:none}"
        ".figure .reference{stroke:var(--ink);stroke-width:1.2;fill:none}"
        f".figure .warning{{fill:var(--bad,{palette.WARNING});font-weight:700}}"
        ".figure .badge{fill:var(--ink)}.figure .badge-text{fill:var(--paper);font-size:10px;font-weight:700}"
        f"{strokes.BAR_STYLE}{strokes.MAP_STYLE}{curves}"
    )


class Rows(msgspec.Struct, frozen=True, kw_only=True):
    """The rows of the page's table that hold a curve's points; `same` if the table has its values, too."""

    numbers: tuple[int, ...]
    same: bool


def no_rows(_: Series) -> Rows | None:
    """For a figure without a table beside it."""
    return None


def svg(figure: Figure, rows_of: Callable[[Series], Rows | None] = no_rows) -> str:
    """The figure as one `<svg>` element; `rows_of` tells where the page's table has the points of a curve."""
    marks = marks_of(figure)
    looks = [curve.look for curve in marks.curves]
    identity = re.sub(r"[^A-Za-z0-9_-]", "-", figure.name)
    legend, legend_height = _legend(identity, marks.keys)
    of_fields, more = strokes.map_legend(identity, figure.fields, LEFT, WIDTH - 4, legend_height + 14)
    warning, warned = _warning(figure, legend_height + more)
    boxes = _boxes(figure, legend_height + more + warned)
    box = boxes["left"]
    lines, height = _lines(figure, marks.x, boxes)
    curves = []
    common = next((_readings_x(field, figure.x) for field in figure.fields if field.readings), "")
    for curve in marks.curves:
        own = _x_texts(curve, figure.x)
        common = common or own
        about = _about(curve, "" if own == common else own, rows_of(curve.series))
        curves.append(f"<g {about}>{strokes.curve(identity, curve, boxes[curve.side])}</g>")
    return "".join(
        (
            f'<svg class="figure" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}" '
            f'role="img" ',
            f'tabindex="0" aria-labelledby="t-{identity} d-{identity}" data-figure="{escape(figure.name)}" ',
            f'data-x-label="{escape(figure.x.label)}" data-x="{escape(common)}"><title '
            f'id="t-{identity}">{escape(figure.title)}</title>',
            f'<desc id="d-{identity}">{escape(describe(figure))}</desc>',
            strokes.shapes(identity, (*looks, *marks.keys)),
            # An empty title keeps the browser's own tooltip away from the values shown on hover.
            f'<g><title></title><rect width="{WIDTH}" height="{height:g}" fill="none" pointer-events="all"/>',
            legend,
            of_fields,
            warning,
            _axes(figure, marks, boxes),
            strokes.map_behind(identity, figure, marks, box),
            *curves,
            strokes.map_above(figure, marks, box),
            lines,
            "</g></svg>",
        )
    )


def _boxes(figure: Figure, legend: float) -> dict[str, PlotBox]:
    """The plots between legend and the names of the x axis, by the side of their y axes: one, or one above
    the other.
    """
    left = LEFT + (SIZES if figure.left.bytes else 0)
    width = WIDTH - left - (RIGHT if figure.left.second is None else RIGHT_WITH_AXIS)
    paired = figure.below is not None
    top = legend + (18 if figure.marks else 8) + (SECOND if figure.x.second else 0) + (LABEL if paired else 0)
    first = PlotBox(left=left, top=top, width=width, height=PAIRED_HEIGHT if paired else PLOT_HEIGHT)
    if not paired:
        return {"left": first}
    below = PlotBox(left=left, top=first.bottom + BETWEEN, width=width, height=PAIRED_HEIGHT)
    return {"left": first, "below": below}


def describe(figure: Figure) -> str:
    """The figure in one paragraph for those who cannot see it."""
    curves = "; ".join(palette.label(series) for series in figure.series)
    fields = "; ".join(field.name for field in figure.fields)
    what = " ".join(f"{kind}: {names}." for kind, names in (("Map", fields), ("Curves", curves)) if names)
    points = " ".join(f"{' '.join(label.text.split())}." for label in figure.labels if figure.fields)
    marks = " ".join(mark.text for mark in figure.marks)
    below = f" and {figure.below.label}" if figure.below else ""
    over = figure.x.label or ", ".join(figure.x.names)
    text = (
        f"{figure.left.label}{below} over {over}. {what or 'Curves: no curve.'} {points} {marks} "
        f"{figure.caption}"
    )
    if figure.highlight:
        text = f"{figure.highlight}. {text}"
    if figure.warning:
        text = f"{figure.warning} {text}"
    return " ".join(text.split())


def _legend(identity: str, looks: Sequence[palette.Look]) -> tuple[str, float]:
    """Entries in one row, or in even columns when they do not fit; and the height they take."""
    if not looks:
        return "", 0.0
    texts = [look.label if len(look.label) <= 72 else look.label[:71] + "…" for look in looks]
    widths = [36 + len(text) * LETTER + 14 for text in texts]
    room = WIDTH - LEFT
    one_row = sum(widths) <= room
    columns = len(texts) if one_row else max(1, int(room // max(widths)))
    parts = []
    for index, (look, text) in enumerate(zip(looks, texts, strict=True)):
        x = LEFT + (sum(widths[:index]) if one_row else max(widths) * (index % columns))
        y = 14 + index // columns * LINE
        place = f"url(#{strokes.shape_name(identity, look)})"
        middle = f' marker-mid="{place}"' if look.marker else ""
        area = look.drawn in ("area", "bars")
        kind = "bar" if look.drawn == "bars" else "band"
        swatch = f'<path class="{kind}" d="M{x:.0f} {y - 9}h30v10h-30z"/>' if area else ""
        line = f'<path class="curve" d="M{x:.0f} {y - (9 if area else 4)}h15h15"{middle}/>'
        parts.append(
            f'<g class="key {strokes.classes(look)}">{swatch}{line}</g>'
            f'<text x="{x + 36:.0f}" y="{y}">{escape(text)}</text>'
        )
    return "".join(parts), 18.0 + (len(texts) - 1) // columns * LINE


def _axes(figure: Figure, marks: Marks, boxes: Mapping[str, PlotBox]) -> str:
    """Grid, frames, ticks and labels of all plots; the x axis has its texts under the lowest one."""
    parts = ["", "", ""]
    texts = {"middle": "", "end": "", "start": ""}
    lowest = [*boxes.values()][-1]
    for side, box in boxes.items():
        for at, part in enumerate(_plot(figure, marks, side, box, texts, named=box is lowest)):
            parts[at] += part
    grid, frames, ticks = parts
    for second, upright in ((figure.x.second, False), (figure.left.second, True)):
        if second is not None:
            more, texts_of = _second(
                second, marks.sides["left"] if upright else marks.x, boxes["left"], upright=upright
            )
            ticks += more
            texts["start" if upright else "middle"] += texts_of
    words = "".join(
        f'<g class="tick" text-anchor="{anchor}">{text}</g>' for anchor, text in texts.items() if text
    )
    lines = f'<path class="grid" d="{grid}"/>{frames}<path class="tick-line" d="{ticks}"/>'
    return lines + words + _axis_labels(figure, boxes)


def _plot(
    figure: Figure, marks: Marks, side: str, box: PlotBox, texts: dict[str, str], *, named: bool
) -> tuple[str, str, str]:
    """Grid, frame and ticks of one plot; adds their texts, those of the x axis only where it is `named`."""
    bottom, end = box.bottom, box.left + box.width
    grid, ticks = "", ""
    names = wrapped(figure.x.names)
    for tick in marks.x.ticks:
        at = strokes.short(box.across(marks.x.place(tick.value)))
        ticks += f"M{at} {bottom:g}v{5 if tick.label else 3}"
        if tick.label:
            grid += f"M{at} {box.top:g}V{bottom:g}"
        if tick.label and named:
            lines = names[round(tick.value)] if names else [tick.label]
            texts["middle"] += "".join(
                f'<text x="{at}" y="{bottom + 18 + line * strokes.NAMED_TICK_LINE:g}">{escape(text)}</text>'
                for line, text in enumerate(lines)
            )
    scale = marks.sides[side]
    for tick in scale.ticks:
        at_y = box.down(scale.place(tick.value))
        ticks += f"M{box.left:g} {strokes.short(at_y)}h{-5 if tick.label else -3}"
        if tick.label:
            grid += f"M{box.left:g} {strokes.short(at_y)}H{end:g}"
            texts["end"] += (
                f'<text x="{box.left - 8:g}" y="{strokes.short(at_y + 4)}">{escape(tick.label)}</text>'
            )
    closed = f"V{box.top:g}H{box.left:g}" if figure.fields else ""
    frame = f'<path class="frame" d="M{box.left:g} {box.top:g}V{bottom:g}H{end:g}{closed}"/>'
    if side == "left" and marks.reference is not None:
        level = strokes.short(box.down(marks.reference))
        frame += f'<path class="reference" d="M{box.left:g} {level}H{end:g}"/>'
    if figure.highlight:
        frame = (
            f'<rect class="frame strong" x="{box.left:g}" y="{box.top:g}" width="{box.width:g}" '
            f'height="{box.height:g}"/>'
        )
    return grid, frame, ticks


def _second(second: Second, scale: AxisScale, box: PlotBox, *, upright: bool) -> tuple[str, str]:
    """Ticks and their texts, right of or above the plot."""
    ticks, texts = "", ""
    for value, text in second.ticks:
        if upright:
            at = box.down(scale.place(value))
            ticks += f"M{box.left + box.width:g} {strokes.short(at)}h5"
            texts += (
                f'<text x="{box.left + box.width + 8:g}" y="{strokes.short(at + 4)}">{escape(text)}</text>'
            )
        else:
            at = box.across(scale.place(value))
            ticks += f"M{strokes.short(at)} {box.top:g}v-5"
            texts += f'<text x="{strokes.short(at)}" y="{box.top - 9:g}">{escape(text)}</text>'
    return ticks, texts


def _axis_labels(figure: Figure, boxes: Mapping[str, PlotBox]) -> str:
    """Beside the plot; above each of two plots, which are too low for it."""
    box, lowest = boxes["left"], [*boxes.values()][-1]
    across, down = box.left + box.width / 2, box.top + box.height / 2
    parts = []
    if figure.x.label:
        under = lowest.bottom + 37
        parts.append(f'<text class="axis-label" x="{across:g}" y="{under:g}">{escape(figure.x.label)}</text>')
    if figure.x.second is not None:
        label = escape(figure.x.second.label)
        parts.append(f'<text class="axis-label" x="{across:g}" y="{box.top - 25:g}">{label}</text>')
    if figure.below is not None:
        for side, axis in (("left", figure.left), ("below", figure.below)):
            above = boxes[side].top - (24 if side == "left" and figure.marks else 8)
            parts.append(
                f'<text class="axis-label" x="4" y="{above:g}" text-anchor="start">'
                f"{escape(axis.label)}</text>"
            )
        return f'<g text-anchor="middle">{"".join(parts)}</g>'
    for upright, at, turn in ((figure.left, 14, -90), (figure.left.second, WIDTH - 12, 90)):
        if upright is not None:
            parts.append(
                f'<text class="axis-label" transform="translate({at} {down:g})rotate({turn})">'
                f"{escape(upright.label)}</text>"
            )
    return f'<g text-anchor="middle">{"".join(parts)}</g>'


def _readings_x(field: Field, x: Axis) -> str:
    """What the nodes of a map's grid are on the x axis, where they say anything."""
    texts = next((row for row in field.readings if any(row)), ("",) * len(field.x))
    there = [value for value, text in zip(field.x, texts, strict=True) if text]
    return "|".join(format_size(value) if x.bytes else number(value) for value in there)


def _x_texts(curve: CurveMarks, x: Axis) -> str:
    values = [curve.series.x[i] for i in curve.vertices]
    if x.names:
        return "|".join(x.names[round(value)] for value in values)
    return "|".join(format_size(value) if x.bytes else number(value) for value in values)


def _about(curve: CurveMarks, x: str, rows: Rows | None) -> str:
    """The attributes of a curve's group: what it is, and its values as people read them."""
    series = curve.series
    columns = {}
    if rows is None or not rows.same:
        columns["median"] = series.y
        if series.low and series.high and series.drawn != "area":
            columns |= {"d1": series.low, "d9": series.high}
    facts = {
        "name": curve.look.label,
        "unit": curve.unit,
        "side": SIDES[series.side],
        "style": "" if series.style == "line" else series.style,
        "value": "" if series.value == "median" else series.value,
        "band": "" if series.band == "d1 – d9" else series.band,
        "x": x,
        "rows": format_cores([rows.numbers[i] for i in curve.vertices]) if rows else "",
        **{name: "|".join(number(values[i]) for i in curve.vertices) for name, values in columns.items()},
    }
    attributes = " ".join(f'data-{name}="{escape(text)}"' for name, text in facts.items() if text)
    return f'class="series {strokes.classes(curve.look)}" {attributes}'


def _lines(figure: Figure, x: AxisScale, boxes: Mapping[str, PlotBox]) -> tuple[str, float]:
    """Numbered vertical lines, their sentences below the plot; and the height of the whole figure."""
    names = max((len(lines) for lines in wrapped(figure.x.names)), default=0)
    box, lowest = boxes["left"], [*boxes.values()][-1]
    y = lowest.bottom + 46 + max(0, names - 2) * strokes.NAMED_TICK_LINE
    parts = []
    letters = math.floor((WIDTH - LEFT - 24) / LETTER)
    for index, at, badge in line_marks(figure, x, BADGE, box.across):
        line = "".join(f"M{at:.1f} {plot.top:g}V{plot.bottom:g}" for plot in boxes.values())
        parts.append(f'<path class="mark" d="{line}"/>')
        parts.append(_badge(index, badge, box.top - 8))
    for index, mark in enumerate(figure.marks, start=1):
        parts.append(_badge(index, LEFT + 8, y + LINE - 4))
        for text in textwrap.wrap(_unbroken(mark.text), letters) or [""]:
            y += LINE
            parts.append(f'<text x="{LEFT + 22}" y="{y:g}">{escape(text)}</text>')
        y += 3
    return "".join(parts), y + (6 if figure.marks else 0)


def _warning(figure: Figure, top: float) -> tuple[str, float]:
    """The sentence that warns of the figure's values, below the legend, and the height it takes."""
    if not figure.warning:
        return "", 0.0
    return f'<text class="warning" x="{LEFT}" y="{top + 12:g}">{escape(figure.warning)}</text>', float(LINE)


def _unbroken(text: str) -> str:
    """The text with its intervals, `[0.86, 0.88]`, kept on one line."""
    return re.sub(r"\[[^\[\]]*\]", lambda match: match.group().replace(" ", "\u00a0"), text)


def _badge(index: int, x: float, y: float) -> str:
    return (
        f'<circle class="badge" cx="{x:.1f}" cy="{y:g}" r="7.5"/>'
        f'<text class="badge-text" x="{x:.1f}" y="{y + 3.5:g}" text-anchor="middle">{index}</text>'
    )
