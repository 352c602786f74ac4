"""Figures of an application's steps: Figs 8 and 9 of Langguth et al. (2018), and steps beside predictions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from elbowroom.draw.figure import Axis, Figure, Hue, Mark, Series
from elbowroom.experiments.common.panels import line
from elbowroom.experiments.diffusion.steps import StepRow, limit, limit_text, rows
from elbowroom.machine.topology import Machine
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Summary

Style = Literal["alone", "together", "line"]

TOTAL_SCALE = 50
"""The total volume is drawn divided by it, as in Fig. 8."""

NODES = Axis(label="Nodes", scale="log2", whole=True)
MEGA = 1e6


def volumes(table: Sequence[StepRow]) -> Figure:
    """Volumes of a step over nodes, and the time of the exchange alone (Fig. 8)."""
    rows = _one_thread(table)
    series = [
        _line("largest message", "blue", "line", rows, lambda row: row.facts["largest_message"] / MEGA),
        _line("largest volume", "blue", "line", rows, lambda row: row.facts["largest_bytes"] / MEGA),
        _line("average volume", "blue", "line", rows, lambda row: row.facts["average_bytes"] / MEGA),
        _line(
            f"total volume / {TOTAL_SCALE}",
            "red",
            "line",
            rows,
            lambda row: row.facts["total_bytes"] / MEGA / TOTAL_SCALE,
        ),
    ]
    time = _line("exchange alone", "black", "line", rows, lambda row: row.step.t_comm / 1e3, "below")
    return Figure(
        name="diffusion-volumes",
        title="Diffusion: what is sent in a step, and how long the exchange takes",
        x=NODES,
        left=Axis(label="Volume (MB)"),
        below=Axis(label="Time of the exchange alone (ms)"),
        series=(*series, time),
        caption="Bytes that processes send in one step (MB = 1e6 B).",
    )


def performance(table: Sequence[StepRow]) -> Figure:
    """Performance of one node over nodes: without communication, overlapped with one and with most threads,
    not overlapped (Fig. 9); bands are the medians' 95 % intervals.
    """
    rows, most = _one_thread(table), max(row.comm_threads for row in table)
    threaded = [row for row in table if row.comm_threads == most]
    series = [
        _steps("no communication", "red", rows, lambda row: row.silent, _rate),
        _steps("overlap, one thread", "black", rows, lambda row: row.measured, _rate),
        _steps("no overlap", "blue", rows, lambda row: row.apart, _rate),
    ]
    if most > 1:
        name = f"overlap, {most} threads"
        series.append(_steps(name, "blue", threaded, lambda row: row.measured, _rate))
    predicted = _line("predicted overlap", "red", "line", rows, lambda row: _rate(row, row.predicted))
    return Figure(
        name="diffusion-performance",
        title="Diffusion: performance of a node under strong scaling",
        x=NODES,
        left=Axis(label="Performance of a node (Gflop/s)"),
        series=(*(item for item in series if item is not None), predicted),
        caption="A straight line at one height would be perfect strong scaling; bands are 95 % intervals.",
    )


def sides(table: Sequence[StepRow]) -> Figure:
    """Both sides of a step over nodes, alone and beside the other, and where they are equally long."""
    rows = _one_thread(table)
    times: tuple[tuple[str, Hue, Style, Callable[[StepRow], float]], ...] = (
        ("T_M, computation alone", "red", "alone", lambda row: row.step.t_comp / 1e3),
        ("T_M^C, beside communication", "red", "together", lambda row: row.step.comp_contended / 1e3),
        ("T_N, communication alone", "blue", "alone", lambda row: row.step.t_comm / 1e3),
        ("T_N^C, beside computation", "blue", "together", lambda row: row.step.comm_contended / 1e3),
    )
    reached = limit(table)
    at = None if reached is None else reached.contended
    inside = at is not None and min(row.nodes for row in rows) <= at.nodes <= max(row.nodes for row in rows)
    return Figure(
        name="diffusion-sides",
        title="Diffusion: both sides of a step, and where communication limits",
        x=NODES,
        left=Axis(label="Time of a step's side (ms)", scale="log10"),
        series=tuple(_line(name, hue, style, rows, value) for name, hue, style, value in times),
        marks=(Mark(x=at.nodes, text="communication limits from here"),) if at is not None and inside else (),
        caption="" if reached is None else limit_text(reached),
    )


def step_over_threads(table: Sequence[StepRow]) -> Figure:
    """The step of one number of nodes over communication threads: measured, predicted, not overlapped."""
    series = [
        _steps("overlapped", "black", table, lambda row: row.measured, _milliseconds),
        _steps("not overlapped", "blue", table, lambda row: row.apart, _milliseconds),
        _steps("no communication", "red", table, lambda row: row.silent, _milliseconds),
    ]
    predicted = _line("overlap predicted", "red", "line", table, lambda row: row.predicted / 1e3)
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
    hue: Hue,
    table: Sequence[StepRow],
    of: Callable[[StepRow], Summary | None],
    value: Callable[[StepRow, float], float],
) -> Series | None:
    """A measured step over nodes or threads, with its median's interval; None where none was measured."""
    measured = [(row, summary) for row in table if (summary := of(row)) is not None]
    if not measured:
        return None
    plain = _line(name, hue, "line", [row for row, _ in measured], lambda row: 0.0)
    rows = [
        (x, value(row, step.median), *sorted(value(row, end) for end in step.ends(step.median)))
        for x, (row, step) in zip(plain.x, measured, strict=True)
    ]
    return line(name, rows, hue=hue, style="line", band="95 % interval")


def _milliseconds(_row: StepRow, step: float) -> float:
    return step / 1e3


def _one_thread(table: Sequence[StepRow]) -> list[StepRow]:
    least = min(row.comm_threads for row in table)
    return [row for row in table if row.comm_threads == least]


def _rate(row: StepRow, step: float) -> float:
    """Gflop/s of a node; `step` in us."""
    return row.node_gflops(step)


def _line(
    name: str,
    hue: Hue,
    style: Style,
    table: Sequence[StepRow],
    value: Callable[[StepRow], float],
    axis: Literal["left", "below"] = "left",
) -> Series:
    x: Callable[[StepRow], float] = (
        (lambda row: row.nodes) if len({row.nodes for row in table}) > 1 else (lambda row: row.comm_threads)
    )
    return line(name, [(x(row), value(row)) for row in table], hue=hue, style=style, axis=axis)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """Over nodes the volumes (Fig. 8), the performance of a node (Fig. 9), and both sides; of one number of
    nodes the step over communication threads, where there are several numbers of them.
    """
    return of_rows(rows(results))


def of_rows(table: Sequence[StepRow]) -> tuple[Figure, ...]:
    """The same of rows, from one run or several."""
    if len({row.nodes for row in table}) > 1:
        return (volumes(table), performance(table), sides(table))
    return (step_over_threads(table),) if len(table) > 1 else ()
