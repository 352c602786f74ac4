"""What a curve says: from where a side suffers, steadily or abruptly, where it recovers, where a protocol
switches.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from elbowroom.stats.result import Kept, Summary

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


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """A jump of latency between neighbouring sizes, bytes: `factor` is how much more (or less) than the sizes
    explain.
    """

    before: int
    after: int
    factor: float


def affected(kept: Kept, tolerance: float = TOLERANCE) -> bool:
    """Lost more than the tolerance, and the whole interval lies below 1."""
    return kept.value < 1 - tolerance and kept.high < 1


def onset(xs: Sequence[float], kepts: Sequence[Kept | None], tolerance: float = TOLERANCE) -> Onset:
    """Where `kepts` over `xs` (in any order) starts to suffer; x where nothing was measured are passed
    over.
    """
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
    """The first x from which nothing is affected any more; None where the last x still is, or nothing was
    measured.
    """
    curve = sorted(
        ((x, kept) for x, kept in zip(xs, kepts, strict=True) if kept is not None), key=lambda item: item[0]
    )
    found = None
    for x, kept in reversed(curve):
        if affected(kept, tolerance):
            break
        found = x
    return found


def steps(sizes: Sequence[int], latencies: Sequence[Summary], jump: float = JUMP) -> tuple[Step, ...]:
    """Jumps of latency between neighbouring sizes: the switch from eager to rendezvous (METHOD.md, rule 13).

    A step up is more than `jump` above what the ratio of the sizes explains, a step down that much below the
    latency before; both only where the intervals of the two medians are that far apart too.
    """
    curve = sorted(zip(sizes, latencies, strict=True), key=lambda item: item[0])
    found = []
    for (before, left), (after, right) in pairwise(curve):
        if min(left.low, right.low, left.median, right.median) <= 0:
            continue
        grown = right.median / left.median
        growth = after / before
        if grown > growth * (1 + jump) and right.low / left.high > growth:
            found.append(Step(before=before, after=after, factor=grown / growth))
        elif grown < 1 - jump and right.high < left.low:
            found.append(Step(before=before, after=after, factor=grown))
    return tuple(found)
