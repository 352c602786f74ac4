"""What an application's steps are drawn with: Figs 8 and 9 of Langguth et al. (2018), and steps beside what
was predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.experiments.step_table import Row
from elbowroom.stats.result import Summary

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
    not overlapped (Fig. 9); bands are the medians' 95 % intervals.
    """
    one, most = _one_thread(table), max(row.comm_threads for row in table)
    several = [row for row in table if row.comm_threads == most]
    series = [
        _steps("no communication", "computation", one, lambda row: row.silent, _rate),
        _steps("overlap, one thread", "both", one, lambda row: row.measured, _rate),
        _steps("no overlap", "communication", one, lambda row: row.apart, _rate),
    ]
    if most > 1:
        name = f"overlap, {most} threads"
        series.append(_steps(name, "communication", several, lambda row: row.measured, _rate))
    predicted = _line("predicted overlap", "computation", "line", one, lambda row: _rate(row, row.predicted))
    return Figure(
        name="diffusion-performance",
        title="Diffusion: performance of a node under strong scaling",
        x=NODES,
        left=Axis(label="Cells updated per second and node (millions)"),
        series=(*(item for item in series if item is not None), predicted),
        caption="A straight line at one height would be perfect strong scaling; bands are 95 % intervals.",
    )


def step_over_threads(table: Sequence[Row]) -> Figure:
    """The step of one number of nodes over communication threads: measured, predicted, not overlapped."""
    series = [
        _steps("overlapped", "both", table, lambda row: row.measured, _milliseconds),
        _steps("not overlapped", "communication", table, lambda row: row.apart, _milliseconds),
        _steps("no communication", "computation", table, lambda row: row.silent, _milliseconds),
    ]
    predicted = _line("overlap predicted", "computation", "line", table, lambda row: row.predicted / 1e3)
    return Figure(
        name="diffusion-step",
        title="Diffusion: one step",
        x=Axis(label="Communication threads", whole=True),
        left=Axis(label="Time of a step (ms)"),
        series=(*(item for item in series if item is not None), predicted),
        caption="Medians of the repetitions with their 95 % intervals.",
    )


def _steps(
    name: str,
    side: Side,
    table: Sequence[Row],
    of: Callable[[Row], Summary | None],
    value: Callable[[Row, float], float],
) -> Series | None:
    """A measured step over nodes or threads, with its median's interval; None where none was measured."""
    found = [(row, summary) for row in table if (summary := of(row)) is not None]
    if not found:
        return None
    plain = _line(name, side, "line", [row for row, _ in found], lambda row: 0.0)
    ends = [sorted((value(row, step.low), value(row, step.high))) for row, step in found]
    return msgspec.structs.replace(
        plain,
        y=tuple(value(row, step.median) for row, step in found),
        low=tuple(low for low, _ in ends),
        high=tuple(high for _, high in ends),
        band="95 % interval",
    )


def _milliseconds(_row: Row, step: float) -> float:
    return step / 1e3


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
