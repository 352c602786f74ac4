"""Figures of a model: a panel per placement (thesis, Figs 6.2-6.10) and the stacked bandwidths (Fig. 6.1)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal

from elbowroom import quantities
from elbowroom.draw.figure import Axis, Figure, Label, Mark, Series, Side
from elbowroom.models.curves import STREAMS, Row, Shape, Streams
from elbowroom.models.load import NORMAL_90, Prediction
from elbowroom.models.threshold.law import Parameters
from elbowroom.stats.interval import Interval

Placement = tuple[int, int]
"""comp_node, comm_node."""


CORES = Axis(label="Number of computing cores", whole=True)
LINES = "Lines: the model, with its 90 % interval."
VIRTUAL = "The machine is virtual: nothing here was measured on hardware."
HIGHLIGHT = "calibrated here"

Style = Literal["alone", "together"]
STYLES: tuple[Style, ...] = ("alone", "together")


def panels(
    shape: Shape,
    predictions: Sequence[Prediction],
    rows: Sequence[Row] = (),
    *,
    calibrated: Collection[Placement] = (),
) -> tuple[Figure, ...]:
    """One panel for each placement of `predictions`, all on the same scales: network bandwidth on the left
    axis, memory bandwidth in the plot below, over the computing cores of the first socket.

    Ordered as the thesis' figures: a row of panels for each node of the communications' data, a column for
    each of the computations'. `rows` are what was measured, if anything; the panels of `calibrated` are
    highlighted. Situations with cores of the second socket computing are left out.
    """
    one_socket = [item for item in predictions if not item.situation.n_other]
    measured = [row for row in rows if not row.situation.n_other]
    places = sorted({_place(item) for item in one_socket}, key=lambda place: (place[1], place[0]))
    reach = {
        side: max(
            [
                max(_interval(item, f"{side}_{style}").high for style in ("alone", "together"))
                for item in one_socket
            ]
            + [value for row in measured for value in _measured(row, side) if value is not None],
            default=None,
        )
        for side in ("comm", "comp")
    }
    return tuple(
        _panel(
            shape,
            place,
            sorted((item for item in one_socket if _place(item) == place), key=lambda item: item.situation.n),
            sorted((row for row in measured if _place(row) == place), key=lambda row: row.situation.n),
            place in calibrated,
            reach,
        )
        for place in places
    )


def _place(item: Prediction | Row) -> Placement:
    return item.situation.comp_node, item.situation.comm_node


def _interval(item: Prediction, stream: str) -> Interval:
    interval: Interval = getattr(item, stream)
    return interval


def _measured(row: Row, side: str) -> tuple[float | None, ...]:
    return tuple(getattr(row, stream) for stream in STREAMS if stream.startswith(side))


def _panel(
    shape: Shape,
    place: Placement,
    predictions: Sequence[Prediction],
    rows: Sequence[Row],
    calibrated: bool,
    reach: dict[str, float | None],
) -> Figure:
    comp_node, comm_node = place
    series = []
    for side in ("comm", "comp"):
        for style in STYLES:
            series += [_points(shape, rows, side, style), _line(predictions, side, style)]
    caption = [f"Points: {_measured_word(shape)}."] * bool(rows) + [LINES] + [VIRTUAL] * shape.virtual
    return Figure(
        name=f"model-{shape.name}-comp{comp_node}-comm{comm_node}",
        title=f"computations on node {comp_node}, communications on node {comm_node}",
        x=CORES,
        left=Axis(label="Network bandwidth (MB/s)", reach=reach["comm"]),
        below=Axis(label="Memory bandwidth (MB/s)", reach=reach["comp"]),
        series=tuple(item for item in series if item is not None),
        marks=_extrapolation(predictions),
        highlight=HIGHLIGHT if calibrated else "",
        caption=" ".join(caption),
    )


def _name(side: str, style: str) -> tuple[str, Side, Literal["left", "below"]]:
    if side == "comm":
        return f"communication {style}", "communication", "left"
    return f"computation {style}", "computation", "below"


def _measured_word(shape: Shape) -> str:
    return "simulated" if shape.virtual else "measured"


def _points(shape: Shape, rows: Sequence[Row], side: str, style: Style) -> Series | None:
    """What was measured; whiskers where all spreads are known."""
    stream = f"{side}_{style}"
    index = STREAMS.index(stream)
    there = [(row, value) for row in rows if (value := row.streams[index]) is not None]
    if not there:
        return None
    name, whose, axis = _name(side, style)
    spreads = [NORMAL_90 * spread for row, _ in there if (spread := row.spread[index]) is not None]
    known = len(spreads) == len(there)
    sources = tuple(row.source for row, _ in there if row.source)
    return Series(
        name=name,
        side=whose,
        style=style,
        x=tuple(float(row.situation.n) for row, _ in there),
        y=tuple(value for _, value in there),
        low=tuple(v * (1 - s) for (_, v), s in zip(there, spreads, strict=True)) if known else (),
        high=tuple(v * (1 + s) for (_, v), s in zip(there, spreads, strict=True)) if known else (),
        axis=axis,
        points=sources if len(sources) == len(there) else (),
        drawn="points",
        value=_measured_word(shape),
        band="90 % interval of the median",
    )


def _line(predictions: Sequence[Prediction], side: str, style: Style) -> Series:
    name, whose, axis = _name(side, style)
    values = [_interval(item, f"{side}_{style}") for item in predictions]
    return Series(
        name=name,
        side=whose,
        style=style,
        x=tuple(float(item.situation.n) for item in predictions),
        y=tuple(item.value for item in values),
        low=tuple(item.low for item in values),
        high=tuple(item.high for item in values),
        axis=axis,
        drawn="smooth",
        value="model",
        band="90 % interval",
    )


def _extrapolation(predictions: Sequence[Prediction]) -> tuple[Mark, ...]:
    """Where the model goes beyond what it was fitted on, if it ends there."""
    inside = [item.situation.n for item in predictions if "extrapolated" not in item.flags]
    beyond = [item.situation.n for item in predictions if "extrapolated" in item.flags]
    if not beyond:
        return ()
    if not inside:
        return (Mark(x=float(min(beyond)), text="extrapolated: the model saw nothing like this placement"),)
    return (Mark(x=float(max(inside)), text="extrapolated beyond this number of cores"),)


def stacked(
    shape: Shape,
    node: int,
    parameters: Parameters,
    streams: Sequence[tuple[int, Streams]],
    *,
    source: Literal["measured", "model"],
) -> Figure:
    """Both bandwidths together stacked over n, computations alone as a line, and the points that the
    threshold model is made of, by name (Fig. 6.1). Data of both on `node`.

    `streams`: n and the four bandwidths (MB/s, in the order of STREAMS), as `source` says.
    """
    ordered = sorted(streams)
    x = tuple(float(n) for n, _ in ordered)

    def series(name: str, stream: str, side: Side, style: Style, drawn: Literal["area", "smooth"]) -> Series:
        index = STREAMS.index(stream)
        y = tuple(values[index] for _, values in ordered)
        return Series(name=name, side=side, style=style, x=x, y=y, drawn=drawn, value=word)

    word = "model" if source == "model" else _measured_word(shape)
    where = "local" if shape.local(node) else "remote"
    caption = f"{_parameters_text(parameters)} The areas are {'the model' if word == 'model' else word}."
    return Figure(
        name=f"stacked-{shape.name}-{where}",
        title=f"Stacked bandwidths, {where} data: both on node {node}",
        x=CORES,
        left=Axis(label="Bandwidth (MB/s)"),
        series=(
            series("computation together", "comp_together", "computation", "together", "area"),
            series("communication together", "comm_together", "communication", "together", "area"),
            series("computation alone", "comp_alone", "computation", "alone", "smooth"),
        ),
        labels=_named_points(parameters),
        caption=f"{caption} {VIRTUAL}" if shape.virtual else caption,
    )


def _named_points(p: Parameters) -> tuple[Label, ...]:
    together = [Label(x=p.n_par_max, y=p.t_par_max, text="T_par_max")]
    if p.n_par_max == p.n_seq_max:
        together = [Label(x=p.n_par_max, y=p.t_par_max, text="T_par_max = T_par_max2")]
    else:
        together.append(Label(x=p.n_seq_max, y=p.t_par_max2, text="T_par_max2"))
    return (
        Label(x=1.0, y=p.b_comp_seq, text="B_comp_seq"),
        *together,
        Label(x=p.n_seq_max, y=p.t_seq_max, text="T_seq_max"),
    )


def _parameters_text(p: Parameters) -> str:
    """The named points with their values, in the order of Fig. 6.1's legend."""
    return (
        f"B_comp_seq: {quantities.number(p.b_comp_seq)} MB/s of one core. "
        f"T_seq_max: {quantities.number(p.t_seq_max)} MB/s alone with {p.n_seq_max} cores. "
        f"T_par_max: {quantities.number(p.t_par_max)} MB/s together with {p.n_par_max}. "
        f"T_par_max2: {quantities.number(p.t_par_max2)} MB/s together with {p.n_seq_max}."
    )
