"""From the points of runs to rows of loads: other intensities, sizes, patterns and threads than the
calibrated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from elbowroom.models.load import Computing, Direction, Load, LoadRow, Messages
from elbowroom.plan.kernels import NONE, Kernel, find
from elbowroom.results.result import PointResult, Side

if TYPE_CHECKING:
    from elbowroom.models.run_data import Layout, Setting

ALIKE = ("processes", "reuse", "core_khz", "uncore_khz")
"""What a load does not say, so that it must be as in the calibrated points."""

TWO_WAYS = ("bidirectional", "ring")
"""Patterns that exchange messages both ways at once and count one of them (docs/reference/protocol.md)."""


class Base(msgspec.Struct, frozen=True, kw_only=True):
    """What rows are told relative to: the calibrated kernel, message size and pattern."""

    setting: Setting
    layout: Layout

    @property
    def intensity(self) -> float:
        """flop/B of the calibrated kernel, 0 without arithmetic."""
        return _intensity(find(self.setting.kernel), self.setting.cursor)


def load_rows(
    results: Sequence[PointResult],
    cores: Mapping[str, Sequence[int]],
    base: Base,
    used: frozenset[str],
) -> tuple[tuple[LoadRow, ...], dict[str, int]]:
    """Rows of the points that are not `used` (ids) as situations, and how many could not be, by reason."""
    rows, left_out = [], Counter[str]()
    for item in results:
        if item.id in used:
            continue
        reason = _why_not(item, base)
        if reason:
            left_out[reason] += 1
        else:
            rows.append(_row(item, cores[item.id], base))
    return tuple(rows), dict(left_out)


def _why_not(item: PointResult, base: Base) -> str:
    if item.role != "point":
        return "control"
    if item.status != "ok":
        return f"status {item.status}"
    kernel = find(item.kernel)
    if kernel is not None and not kernel.moves_memory:
        return f"{item.kernel} moves no memory"
    for field in ALIKE:
        if getattr(item, field) != getattr(base.setting, field):
            return f"another {field}"
    first = base.layout.first
    if (item.comm_core in first) != (base.setting.comm_core in first):
        return "communication thread on another socket"
    if item.comp_node not in base.layout.nodes or item.comm_node not in base.layout.nodes:
        return "a node that the machine does not have"
    if item.pattern == "receive" and item.size != base.setting.size:
        return "two messages of another size in flight"
    if not any(_bandwidths(item.comm, item.size)) and not any(_bandwidths(item.comp, item.size)):
        return "no values"
    return ""


def _row(item: PointResult, cores: Sequence[int], base: Base) -> LoadRow:
    """In terms of the calibrated kernel: its bytes for those of the point's own, by what both move on the
    bus.
    """
    own, kernel = find(base.setting.kernel), find(item.kernel)
    scale = 1.0 if kernel is None or own is None else bus_share(kernel) / bus_share(own)
    comp = [None if value is None else value / scale for value in _bandwidths(item.comp, item.size)]
    same_pattern = item.pattern == base.setting.pattern
    ways = 2 if item.pattern in TWO_WAYS and not same_pattern else 1
    comm = [None if value is None else value * ways for value in _bandwidths(item.comm, item.size)]
    direction: Direction = "both" if ways == 2 else "receive"
    return LoadRow(
        load=Load(
            computing=() if item.kernel == NONE else _computing(item, cores, base, scale),
            messages=Messages(
                node=base.layout.nodes.index(item.comm_node),
                direction=direction,
                size=None if item.size == base.setting.size else item.size,
                threads=item.comm_threads,
            ),
        ),
        comp_alone=comp[0],
        comm_alone=comm[0],
        comp_together=comp[1],
        comm_together=comm[1],
        kernel="" if item.kernel in (base.setting.kernel, NONE) else item.kernel,
        pattern="" if same_pattern or ways == 2 else item.pattern,
        source=item.id,
    )


def _computing(item: PointResult, cores: Sequence[int], base: Base, scale: float) -> tuple[Computing, ...]:
    kernel = find(item.kernel)
    # Of a kernel without cursor nothing tells what its arithmetic costs: its own factor holds that.
    intense = kernel is not None and kernel.uses_cursor
    intensity = _intensity(kernel, item.cursor) * scale if intense else 0.0
    node, first = base.layout.nodes.index(item.comp_node), sum(core in base.layout.first for core in cores)
    counts = ((0, first), (1, len(cores) - first))
    return tuple(
        Computing(socket=socket, node=node, count=count, intensity=intensity)
        for socket, count in counts
        if count
    )


def _intensity(kernel: Kernel | None, cursor: int) -> float:
    if kernel is None or not kernel.moves_memory:
        return 0.0
    return kernel.flops * (cursor if kernel.uses_cursor else 1) / kernel.algorithmic_bytes


def bus_share(kernel: Kernel) -> float:
    """Bytes of the algorithm per byte on the bus."""
    return kernel.algorithmic_bytes / kernel.bus_bytes


def _bandwidths(side: Side, size: int) -> tuple[float | None, float | None]:
    """Alone and together, MB/s; of a half round trip in us, the message's size over it."""
    bandwidths: list[float | None] = []
    for summary in (side.alone, side.together):
        if summary is None or not summary.median > 0 or summary.unit not in ("MB/s", "us"):
            bandwidths.append(None)
        else:
            bandwidths.append(summary.median if summary.unit == "MB/s" else size / summary.median)
    return bandwidths[0], bandwidths[1]
