"""The table of the OSU micro-benchmarks (osu_latency, osu_bw), one for each curve of a run."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.errors import UsageError
from elbowroom.measure.formats.values import STYLES, Style, measured, missing, source
from elbowroom.measure.results import Results
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Summary

_HEADS = {
    "us": ("OSU MPI Latency Test", "# Size          Latency (us)"),
    "MB/s": ("OSU MPI Bandwidth Test", "# Size      Bandwidth (MB/s)"),
}
"""By unit: the test whose table it is, and the head of its columns."""

_PATTERNS = {
    "pingpong": "ping-pong: half of the round trip",
    "receive": "reception, two messages in flight",
    "bidirectional": "both directions at once: one of them",
    "ring": "ring: what a process sends",
}


def text(results: Results) -> str:
    """Tables of the communication alone and together with each kernel; UsageError where a run has no
    messages in us or MB/s. The first table is alone, as OSU's. Values that are missing are comments.
    """
    curves: dict[tuple[object, ...], list[PointResult]] = {}
    for point in measured(results, "osu"):
        if point.workload.facts.beside_messages:
            curves.setdefault(_curve(point), []).append(point)
    parts = [
        table
        for points in curves.values()
        for style in STYLES
        if (table := _table(sorted(points, key=lambda point: point.size), style))
    ]
    if not parts:
        raise UsageError(
            "has no latency or bandwidth of messages beside a kernel",
            field="format",
            value="osu",
            hint="--format json has its results",
        )
    return "\n".join([f"# {source(results)}\n", *parts])


def _curve(point: PointResult) -> tuple[object, ...]:
    """What all points of a table have in common."""
    return (
        point.metric, point.pattern, point.kernel, point.cursor, point.n, point.comp_node, point.comm_node,
        point.comm_core, point.comm_threads, point.processes, point.reuse, point.role, point.core_khz,
        point.uncore_khz, point.turbo, point.governor,
    )  # fmt: skip


def _table(points: Sequence[PointResult], style: Style) -> str:
    """Empty where nothing was measured."""
    summaries: list[Summary | None] = [getattr(point.comm, style) for point in points]
    unit = next((summary.unit for summary in summaries if summary is not None), "")
    if unit not in _HEADS:
        return ""
    test, head = _HEADS[unit]
    lines = [f"# {_title(points[0], style)}", f"# in the format of {test}", head]
    for point, summary in zip(points, summaries, strict=True):
        if summary is None:
            lines.append(f"# {point.size}: {missing(point)}")
        else:
            lines.append(f"{point.size:<10d}{summary.median:18.2f}")
    return "\n".join([*lines, ""])


def _title(point: PointResult, style: Style) -> str:
    load = f"{point.kernel}, n = {point.n}" + (f", cursor {point.cursor}" if point.cursor != 1 else "")
    beside = f"together with {load}" if style == "together" else f"alone (as measured with {load})"
    where = f"data on nodes {point.comp_node}/{point.comm_node}, core {point.comm_core}"
    return f"{_PATTERNS[point.pattern]}, {beside}; {where}; median"
