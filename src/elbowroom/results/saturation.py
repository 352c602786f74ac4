"""Blue and red points (docs/design/method.md, rule 20): only the computation slows while the bandwidth is far
from saturated, or both slow, as where the memory saturates (Vuppalapati et al., "Understanding the Host
Network", SIGCOMM 2024).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from elbowroom.plan.kernels import find
from elbowroom.results.curves import TOLERANCE, affected
from elbowroom.results.result import Kept, PointResult, Summary

Regime = Literal["blue", "red"]
Colour = Literal["blue", "red", "computation only", "communication only", "neither", "undecided"]
SATURATED = 0.8  # of the highest traffic seen on the node; our choice for what the paper calls "far from"


def traffic(item: PointResult, style: Literal["alone", "together"]) -> float | None:
    """MB/s over the memory bus: what the kernel moves with its write-allocates, and together with it each
    byte of a message once (copies through shared memory move more). None for a kernel that does not go to
    memory.
    """
    kernel = find(item.kernel)
    comp: Summary | None = getattr(item.comp, style)
    if kernel is None or not kernel.moves_memory or comp is None:
        return None
    moved = comp.median * kernel.bus_bytes / kernel.algorithmic_bytes
    if style == "alone":
        return moved
    comm = item.comm.together
    if comm is None:
        return None
    return moved + (item.size / comm.median if comm.unit == "us" else comm.median)


def highest(results: Sequence[PointResult]) -> dict[int, float]:
    """The highest traffic seen on each NUMA node of the computations' data, MB/s."""
    peaks: dict[int, float] = {}
    for item in results:
        for moved in (traffic(item, "alone"), traffic(item, "together")):
            if moved is not None:
                peaks[item.comp_node] = max(peaks.get(item.comp_node, 0.0), moved)
    return peaks


def regime(item: PointResult, peaks: Mapping[int, float]) -> Regime | None:
    """Red: both sides suffer. Blue: only the computation does, and both together move less than 0.8 of the
    highest traffic seen on the node. None else, and where the traffic is not known.
    """
    moved = traffic(item, "together")
    if moved is None or not _hit(item.comp.kept):
        return None
    if _hit(item.comm.kept):
        return "red"
    return "blue" if moved < SATURATED * peaks[item.comp_node] else None


def colour(item: PointResult, peaks: Mapping[int, float]) -> Colour | None:
    """The point's regime, or what it is instead: one side only suffers (of the computation: beside saturated
    memory), neither, or undecided where a median is below 0.95 and its interval is not below 1. None where
    the traffic is not known.
    """
    if traffic(item, "together") is None or item.comp.kept is None or item.comm.kept is None:
        return None
    name = regime(item, peaks)
    if name is not None:
        return name
    if any(kept.value < 1 - TOLERANCE and not _hit(kept) for kept in (item.comp.kept, item.comm.kept)):
        return "undecided"
    if _hit(item.comp.kept):
        return "computation only"
    return "communication only" if _hit(item.comm.kept) else "neither"


def _hit(kept: Kept | None) -> bool:
    return kept is not None and affected(kept)
