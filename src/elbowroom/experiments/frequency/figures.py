"""Latency and bandwidth at constant frequencies; both sides over cores; frequencies over time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import fmean
from typing import NamedTuple

from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.experiments.common.panels import (
    CAPTION,
    CORES,
    Transform,
    as_bandwidth,
    as_latency,
    cores_of,
    per_core,
    side_by_side,
    with_durations,
)
from elbowroom.experiments.common.sentences import (
    case_key,
    cores_text,
    grouped,
    kernel_name,
    size_text,
    usable,
)
from elbowroom.experiments.frequency.cases import case_of, condition_text, is_constant, spread
from elbowroom.machine.topology import Machine
from elbowroom.results.result import PointResult, Summary, Trace

PHASES = {"A": "computation alone", "B": "communication alone", "S": "sleep", "AB": "both together"}
MOST_LINES = 4
"""Cores of a role that get a line each; more are drawn as their mean, and a band from lowest to highest."""


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """Latency and bandwidth over the size at constant frequencies (Figures 1a, 1b); network and computation
    over n (Figure 3a), by rates and by durations; frequencies over time, phase after phase, with the fewest,
    the middle and the most cores (Figures 2, 3b, 3c).
    """
    points = usable(results)
    constants = [item for item in points if is_constant(item)]
    beside = [item for item in points if item.n]
    drawn = [figure for group in grouped(constants, _place).values() for figure in _constant(group)]
    for case, group in grouped(beside, case_of).items():
        what = f"Network {group[0].metric} ({size_text(group[0].size)}) and {kernel_name(group[0].kernel)}"
        rates = side_by_side(
            case_key("frequency", [part for part in case if part is not None]),
            what + condition_text(group[0]),
            CORES,
            group,
            cores_of,
            comm=f"network {group[0].metric}",
            comp_transform=per_core,
        )
        drawn += with_durations(rates, group, cores_of)
    traced = grouped([item for item in points if item.traces], case_of)
    return (*drawn, *(_traces(item) for group in traced.values() for item in spread(group)))


def _place(item: PointResult) -> tuple[int, int, bool | None, str | None]:
    return item.comm_node, item.comm_core, item.turbo, item.governor


def _constant(group: Sequence[PointResult]) -> Iterator[Figure]:
    """Figure 1a: latency, and 1b: bandwidth; a curve for each combination of frequencies."""
    place = [part for part in _place(group[0]) if part is not None]
    curves = grouped(group, lambda item: (item.core_khz, item.uncore_khz))

    def latency(item: PointResult, summary: Summary) -> tuple[float, float, float]:
        values = as_latency(item, summary)
        return values.median, values.d1, values.d9

    for name, label, transform in (
        ("latency", "Network latency (µs)", latency),
        ("bandwidth", "Network bandwidth (MB/s)", as_bandwidth),
    ):
        yield Figure(
            name=case_key(f"constant-{name}", place),
            title=f"Network {name} alone at constant frequencies",
            x=Axis(label="Message size", scale="log2", bytes=True),
            left=Axis(label=label, scale="log10"),
            series=tuple(
                _over_sizes(sorted(items, key=lambda item: item.size), held, transform)
                for held, items in curves.items()
            ),
            caption=f"{CAPTION} Nothing computes.",
        )


def _over_sizes(
    items: Sequence[PointResult], held: tuple[int | None, int | None], transform: Transform
) -> Series:
    rows = [(item, *transform(item, item.comm.alone)) for item in items if item.comm.alone is not None]
    parts = [
        f"{what} {khz / 1000:.0f} MHz"
        for what, khz in zip(("core", "uncore"), held, strict=True)
        if khz is not None
    ]
    return Series(
        name=", ".join(parts),
        side="communication",
        style="alone",
        x=tuple(float(row[0].size) for row in rows),
        y=tuple(row[1] for row in rows),
        low=tuple(row[2] for row in rows),
        high=tuple(row[3] for row in rows),
        points=tuple(row[0].id for row in rows),
    )


class _Line(NamedTuple):
    """A curve over time: one trace, or the mean, lowest and highest of several."""

    name: str
    role: str
    x: list[float]
    y: list[float]
    low: list[float]
    high: list[float]


def _traces(item: PointResult) -> Figure:
    """One point's traces on one time axis, each phase behind the one before."""
    lines: dict[str, _Line] = {}
    start, order = 0.0, []
    for phase in dict.fromkeys(trace.phase for trace in item.traces):
        traces = [trace for trace in item.traces if trace.phase == phase]
        for role, group in grouped(traces, lambda trace: trace.role).items():
            for name, members in _members(role, group):
                line = lines.setdefault(name, _Line(name, role, [], [], [], []))
                _extend(line, members, start)
        start += max(len(trace.khz) * trace.interval_s for trace in traces)
        order.append(PHASES.get(phase, phase))
    title = f"Frequencies: {kernel_name(item.kernel)} on {cores_text(item.n)}"
    return Figure(
        name=f"trace-{item.id}",
        title=f"{title}, {size_text(item.size)} messages{condition_text(item)}",
        x=Axis(label="Time (s)"),
        left=Axis(label="Frequency (MHz)"),
        series=tuple(
            _series(line) for line in sorted(lines.values(), key=lambda line: (line.role, line.name))
        ),
        caption=f"Phases in turn: {', '.join(order)}. A band goes from the lowest to the highest core.",
    )


def _members(role: str, group: Sequence[Trace]) -> Iterator[tuple[str, Sequence[Trace]]]:
    """What is drawn of a role: each core, or all of them as one."""
    if role == "uncore" or len(group) <= MOST_LINES:
        for trace in group:
            yield (f"uncore {trace.part}" if trace.part else f"core {trace.core} ({role})"), [trace]
    else:
        yield f"{len(group)} {role} cores", group


def _extend(line: _Line, members: Sequence[Trace], start: float) -> None:
    for step in range(min(len(trace.khz) for trace in members)):
        values = [trace.khz[step] / 1000 for trace in members]
        line.x.append(start + step * members[0].interval_s)
        line.y.append(fmean(values))
        line.low.append(min(values))
        line.high.append(max(values))


def _series(line: _Line) -> Series:
    band = line.low != line.high
    side = {"communication": "communication", "uncore": None}.get(line.role, "computation")
    return Series(
        name=line.name,
        side="communication" if side == "communication" else "computation" if side else None,
        style="undecided" if line.role == "idle" else "line",
        x=tuple(line.x),
        y=tuple(line.y),
        low=tuple(line.low) if band else (),
        high=tuple(line.high) if band else (),
        drawn="smooth",
        value="mean",
        band="lowest to highest core",
    )
