"""Figures of messages through StarPU-MPI: both latencies, what is added, and placements side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from elbowroom.draw.figure import Axis, Figure, Mark, Series
from elbowroom.experiments.common.panels import as_latency, curve
from elbowroom.experiments.common.sentences import size_text
from elbowroom.experiments.runtime_overhead.rows import LatencyCase, cases, ends, workers_text
from elbowroom.machine.topology import Machine
from elbowroom.results.result import Added, PointResult, Summary

SIZES = Axis(label="Message size", scale="log2", bytes=True)
NAMES: dict[Literal["alone", "together"], str] = {"alone": "by MPI", "together": "through StarPU-MPI"}


def latency_figure(case: LatencyCase, machine: Machine) -> Figure | None:
    """Half the round trip by MPI (plain) and through StarPU-MPI (dashed), bands d1 to d9."""
    drawn = [_latency(case, style, name) for style, name in NAMES.items()]
    series = tuple(line for line in drawn if line is not None)
    if not series:
        return None
    last, since = ends(case)
    lines = () if since is None or last is None else (_mark(since),)
    return Figure(
        name=f"runtime-overhead-{case.key}",
        title=f"Latency by MPI and through StarPU-MPI{_where(case, machine)}",
        x=SIZES,
        left=Axis(label="Half the round trip (µs)", scale="log10"),
        series=series,
        marks=lines,
        caption="Plain by MPI, dashed through StarPU-MPI; the band goes from the first to the last decile.",
    )


def place_name(case: LatencyCase) -> str:
    """Data and communication thread in a few words."""
    item = case.smallest
    place = f"data on node {item.comp_node}, thread on {item.comm_node} (core {item.comm_core})"
    return place + workers_text(item)


def _where(case: LatencyCase, machine: Machine) -> str:
    return f", {place_name(case)}" if len(machine.nodes) > 1 else workers_text(case.smallest)


def _mark(size: int) -> Mark:
    return Mark(x=float(size), text=f"no difference shows from {size_text(size)} on")


def _latency(case: LatencyCase, style: Literal["alone", "together"], name: str) -> Series | None:
    line = curve(case.items, "comm", style, _size, name="", axis="left", transform=_as_latency)
    return None if line is None else msgspec.structs.replace(line, name=name)


def _size(item: PointResult) -> float:
    return float(item.size)


def _as_latency(item: PointResult, summary: Summary) -> tuple[float, float, float]:
    latency = as_latency(item, summary)
    return latency.median, latency.d1, latency.d9


def added_figure(case: LatencyCase, machine: Machine) -> Figure | None:
    """What StarPU-MPI adds, with its 95 % interval."""
    rows = [(item, item.comm.added) for item in case.items if item.comm.added is not None]
    shown = [(item, added) for item, added in rows if _tells(added, rows[0][1])]
    if not shown:
        return None
    series = Series(
        name="added by StarPU-MPI",
        side="communication",
        style="line",
        x=tuple(float(item.size) for item, _ in shown),
        y=tuple(added.value for _, added in shown),
        low=tuple(added.ends(added.value)[0] for _, added in shown),
        high=tuple(added.ends(added.value)[1] for _, added in shown),
        points=tuple(item.id for item, _ in shown),
        value="added",
        band="95 % interval",
    )
    left_out = len(rows) - len(shown)
    caption = "Through StarPU-MPI less by MPI; the band is the 95 % interval."
    if left_out:
        caption += f" {left_out} sizes whose interval is wider than what the smallest shows are left out."
    return Figure(
        name=f"runtime-added-{case.key}",
        title=f"Latency that StarPU-MPI adds{_where(case, machine)}",
        x=SIZES,
        left=Axis(label="Added latency (µs)", reach=0.0),
        series=(series,),
        caption=caption,
    )


def _tells(added: Added, smallest: Added) -> bool:
    """Whether the interval is narrower than the effect: that of large messages is not."""
    return added is smallest or (added.width is not None and added.width <= abs(smallest.value))


def placement_figure(every: Sequence[LatencyCase]) -> Figure | None:
    """StarPU-MPI's latency at every placement in one panel (Figure 8); None where there is one only."""
    series = [_latency(case, "together", place_name(case)) for case in every]
    drawn = tuple(line for line in series if line is not None)
    if len(drawn) < 2:
        return None
    return Figure(
        name="runtime-placement",
        title="Latency through StarPU-MPI by where data and communication thread are",
        x=SIZES,
        left=Axis(label="Half the round trip (µs)", scale="log10"),
        series=drawn,
        caption="Through StarPU-MPI; the band goes from the first to the last decile.",
    )


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:
    """Both latencies over the size and the difference, per placement; StarPU's side by side (Figure 8)."""
    every = cases(results)
    drawn = [draw(case, machine) for case in every for draw in (latency_figure, added_figure)]
    drawn.append(placement_figure(every))
    return tuple(figure for figure in drawn if figure is not None)
