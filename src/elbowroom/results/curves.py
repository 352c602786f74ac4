"""Curves: where a side suffers, steadily or abruptly, where it recovers, where a protocol switches."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from elbowroom.results.result import Kept, Summary

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
