"""What an application's steps are drawn with: Figs 8 and 9 of Langguth et al. (2018), and steps beside what
was predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.experiments.step_table import Row

Side = Literal["computation", "communication", "both"]
Style = Literal["alone", "together", "line"]

TOTAL_SCALE = 50
"""The total volume is drawn divided by it, as in Fig. 8."""

NODES = Axis(label="Nodes", scale="log2", whole=True)
MEGA = 1e6


def volumes(table: Sequence[Row]) -> Figure:
    """Volumes of a step over nodes, and the time of the exchange alone (Fig. 8)."""
    one = _one_thread(table)
    series = [
        _line(
            "largest message", "communication", "line", one, lambda row: row.facts["largest_message"] / MEGA
        ),
        _line("largest volume", "communication", "line", one, lambda row: row.facts["largest_bytes"] / MEGA),
        _line("average volume", "communication", "line", one, lambda row: row.facts["average_bytes"] / MEGA),
        _line(
            f"total volume / {TOTAL_SCALE}",
            "computation",
            "line",
            one,
            lambda row: row.facts["total_bytes"] / MEGA / TOTAL_SCALE,
        ),
    ]
    time = _line("exchange alone", "both", "line", one, lambda row: row.step.t_comm / 1e3, "right")
    return Figure(
        name="diffusion-volumes",
        title="Diffusion: what is sent in a step, and how long the exchange takes",
        x=NODES,
        left=Axis(label="Volume (MB)"),
        right=Axis(label="Time of the exchange alone (ms)"),
        series=(*series, time),
        caption="Bytes that processes send in one step (MB = 1e6 B).",
    )


def performance(table: Sequence[Row]) -> Figure:
    """Performance of one node over nodes: without communication, overlapped with one and with most threads,
    not overlapped (Fig. 9).
    """
    one, most = _one_thread(table), max(row.comm_threads for row in table)
    several = [row for row in table if row.comm_threads == most]
    series = [
        _line("no communication", "computation", "line", one, lambda row: _rate(row, row.silent.median)),
        _line("overlap, one thread", "both", "line", one, lambda row: _rate(row, row.measured.median)),
        _line(
            "no overlap",
            "communication",
            "line",
            [row for row in one if row.apart is not None],
            lambda row: _rate(row, row.apart.median if row.apart is not None else 0.0),
        ),
    ]
    if most > 1:
        series.append(
            _line(
                f"overlap, {most} threads",
                "communication",
                "line",
                several,
                lambda row: _rate(row, row.measured.median),
            )
        )
    series.append(_line("predicted overlap", "both", "line", one, lambda row: _rate(row, row.predicted)))
    return Figure(
        name="diffusion-performance",
        title="Diffusion: performance of a node under strong scaling",
        x=NODES,
        left=Axis(label="Cells updated per second and node (millions)"),
        series=tuple(series),
        caption="A straight line at one height would be perfect strong scaling.",
    )


def step_over_threads(table: Sequence[Row]) -> Figure:
    """The step of one number of nodes, measured, predicted and by the naive answers."""
    measured = Series(
        name="overlapped",
        side="both",
        style="line",
        x=tuple(row.comm_threads for row in table),
        y=tuple(row.measured.median / 1e3 for row in table),
        low=tuple(row.measured.low / 1e3 for row in table),
        high=tuple(row.measured.high / 1e3 for row in table),
        drawn="points",
        band="95 % interval",
    )
    with_apart = [row for row in table if row.apart is not None]
    series = [measured]
    named: tuple[tuple[str, Side, Style, Sequence[Row], Callable[[Row], float]], ...] = (
        ("overlap predicted", "both", "line", table, lambda row: row.predicted / 1e3),
        (
            "not overlapped",
            "communication",
            "line",
            with_apart,
            lambda row: row.apart.median / 1e3 if row.apart is not None else 0.0,
        ),
        ("no communication", "computation", "line", table, lambda row: row.silent.median / 1e3),
    )
    series += [_line(name, side, style, rows, value) for name, side, style, rows, value in named if rows]
    return Figure(
        name="diffusion-step",
        title="Diffusion: one step",
        x=Axis(label="Communication threads", whole=True),
        left=Axis(label="Time of a step (ms)"),
        series=tuple(series),
        caption="Medians of the repetitions.",
    )


def _one_thread(table: Sequence[Row]) -> list[Row]:
    least = min(row.comm_threads for row in table)
    return [row for row in table if row.comm_threads == least]


def _rate(row: Row, step: float) -> float:
    """Millions of cells a second and node; `step` in us."""
    return row.facts.get("cells", 0.0) / row.nodes / step


def _line(
    name: str,
    side: Side,
    style: Style,
    table: Sequence[Row],
    value: Callable[[Row], float],
    axis: Literal["left", "right"] = "left",
) -> Series:
    x: Callable[[Row], float] = (
        (lambda row: row.nodes) if len({row.nodes for row in table}) > 1 else (lambda row: row.comm_threads)
    )
    return Series(
        name=name,
        side=side,
        style=style,
        x=tuple(x(row) for row in table),
        y=tuple(value(row) for row in table),
        axis=axis,
    )
