"""Curves: where a side suffers, steadily or abruptly, where it recovers, where a protocol switches.

Blue and red points (docs/design/method.md, rule 20): only the computation slows while the bandwidth is far
from saturated, or both slow, as where the memory saturates (Vuppalapati et al., "Understanding the Host
Network", SIGCOMM 2024).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from elbowroom.plan.kernels import ASSUMED_STORE_FACTOR, find
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Kept, Summary

TOLERANCE = 0.05
JUMP = 0.15


class Onset(msgspec.Struct, frozen=True, kw_only=True):
    """Where a curve of kept values falls below 1.

    `x`: the first x from which it is affected and stays so to the end; None where it is not affected at the
    end. `first`, `last`: first and last affected x at all. `worst` is the least kept, at `worst_x`. `manner`:
    `abruptly` where one step between neighbours makes more than half of the loss, else `steadily`; None where
    nothing is affected.
    """

    x: float | None
    first: float | None
    last: float | None
    worst: float | None
    worst_x: float | None
    manner: Literal["steadily", "abruptly"] | None


class LatencyJump(msgspec.Struct, frozen=True, kw_only=True):
    """A jump of the latency between neighbouring sizes in bytes.

    `factor`: how much more (or less) it is than the sizes explain.
    """

    before: int
    after: int
    factor: float


def affected(kept: Kept, tolerance: float = TOLERANCE) -> bool:
    """Lost more than the tolerance, and the whole interval lies below 1. A value without an interval
    (imported, or measured too few times) is taken as it is: what rests on it is never trusted.
    """
    return kept.value < 1 - tolerance and (kept.bounds is None or kept.below(1.0))


def onset(xs: Sequence[float], kepts: Sequence[Kept | None], tolerance: float = TOLERANCE) -> Onset:
    """Where `kepts` over `xs` (in any order) starts to suffer; x without a measurement are skipped."""
    curve = sorted(
        ((x, kept) for x, kept in zip(xs, kepts, strict=True) if kept is not None), key=lambda item: item[0]
    )
    hit = [x for x, kept in curve if affected(kept, tolerance)]
    if not curve:
        return Onset(x=None, first=None, last=None, worst=None, worst_x=None, manner=None)
    worst_x, worst = min(curve, key=lambda item: item[1].value)
    start = None
    for x, kept in reversed(curve):
        if not affected(kept, tolerance):
            break
        start = x
    return Onset(
        x=start,
        first=hit[0] if hit else None,
        last=hit[-1] if hit else None,
        worst=worst.value,
        worst_x=worst_x,
        manner=_manner([kept.value for x, kept in curve if x <= worst_x]) if hit and len(curve) > 2 else None,
    )


def _manner(values: Sequence[float]) -> Literal["steadily", "abruptly"]:
    """Steps from 1 (nothing computes, nothing is sent) down to the worst."""
    way = [1.0, *values]
    total = way[0] - way[-1]
    largest = max(before - after for before, after in pairwise(way))
    return "abruptly" if largest > total / 2 else "steadily"


def recovery(xs: Sequence[float], kepts: Sequence[Kept | None], tolerance: float = TOLERANCE) -> float | None:
    """The first x from which nothing is affected any more; None if the last x is, or without values."""
    curve = sorted(
        ((x, kept) for x, kept in zip(xs, kepts, strict=True) if kept is not None), key=lambda item: item[0]
    )
    start = None
    for x, kept in reversed(curve):
        if affected(kept, tolerance):
            break
        start = x
    return start


def steps(sizes: Sequence[int], latencies: Sequence[Summary], jump: float = JUMP) -> tuple[LatencyJump, ...]:
    """Jumps of latency between neighbouring sizes: the switch from eager to rendezvous (method.md, rule 13).

    A step up is more than `jump` above what the ratio of the sizes explains, a step down that much below the
    latency before; both only where the intervals of the two medians are that far apart too.
    """
    curve = sorted(zip(sizes, latencies, strict=True), key=lambda item: item[0])
    jumps = []
    for (before, left), (after, right) in pairwise(curve):
        ends, others = left.bounds, right.bounds
        if ends is None or others is None or min(ends[0], others[0], left.median, right.median) <= 0:
            continue
        grown = right.median / left.median
        growth = after / before
        if grown > growth * (1 + jump) and others[0] / ends[1] > growth:
            jumps.append(LatencyJump(before=before, after=after, factor=grown / growth))
        elif grown < 1 - jump and others[1] < ends[0]:
            jumps.append(LatencyJump(before=before, after=after, factor=grown))
    return tuple(jumps)


Regime = Literal["blue", "red"]
Colour = Literal["blue", "red", "computation only", "communication only", "neither", "undecided"]
SATURATED = 0.8  # of the highest traffic seen on the node; our choice for what the paper calls "far from"


def traffic(item: PointResult, style: Literal["alone", "together"]) -> float | None:
    """MB/s over the memory bus: what the kernel moves with its write-allocates (results/stores.py), and
    together with it each byte of a message once (copies through shared memory move more). None for a kernel
    that does not go to memory.
    """
    kernel = find(item.kernel)
    comp: Summary | None = getattr(item.comp, style)
    if kernel is None or not kernel.moves_memory or comp is None:
        return None
    moved = kernel.traffic(comp.median, item.store_factor or ASSUMED_STORE_FACTOR)
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
