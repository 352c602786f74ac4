"""Figures of `gpu`: what copies and cores keep over n, by the node of the pinned buffer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.experiments.common.panels import CORES
from elbowroom.experiments.common.sentences import grouped, kernel_name, size_text
from elbowroom.experiments.gpu.rows import CopyRow, beside_cores, rows
from elbowroom.machine.topology import Machine
from elbowroom.results.result import PointResult


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:  # noqa: ARG001
    """One for each kernel, direction and size: lines of copies and cores for each node."""
    cases = grouped(beside_cores(rows(results)), lambda row: (row.kernel, row.direction, row.bytes))
    return tuple(_figure(group) for group in cases.values())


def _figure(group: Sequence[CopyRow]) -> Figure:
    first = group[0]
    stand_in = " (stand-in)" * first.stand_in
    copies = f"{first.direction} copies of {size_text(first.bytes)}"
    lines = [
        _line(stream, node, of_node)
        for stream in ("copies", "cores")
        for node, of_node in grouped(group, lambda row: row.node).items()
    ]
    return Figure(
        name=f"gpu-{first.kernel}-{first.direction}-{first.bytes}",
        title=f"{kernel_name(first.kernel)} beside {copies}{stand_in}",
        x=CORES,
        left=Axis(label="Kept (1 = undisturbed)", reference=1.0),
        series=tuple(line for line in lines if line is not None),
        caption="Bands are 95 % intervals; node: of the pinned buffer.",
    )


def _line(stream: str, node: int, group: Sequence[CopyRow]) -> Series | None:
    known = [(row, kept) for row in group if (kept := row.of(stream, "AB")) is not None]
    if not known:
        return None
    known.sort(key=lambda pair: pair[0].n)
    side: Literal["computation", "communication"] = "computation" if stream == "cores" else "communication"
    return Series(
        name=f"{stream}, node {node}" if node >= 0 else stream,
        side=side,
        style="line",
        x=tuple(float(row.n) for row, _ in known),
        y=tuple(kept.value for _, kept in known),
        low=tuple(kept.ends(kept.value)[0] for _, kept in known),
        high=tuple(kept.ends(kept.value)[1] for _, kept in known),
        points=tuple(row.point for row, _ in known),
        value="kept",
        band="95 % interval",
    )
