"""How much longer a side took because the other side was active."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from elbowroom.stats.interval import Interval
from elbowroom.trace.overlap.events import Events, Floats
from elbowroom.trace.overlap.exposure import Exposure
from elbowroom.trace.overlap.rows import ClassRow
from elbowroom.trace.overlap.spans import Spans

NS = 1e9
FASTEST = 0.1
"""The part of a class's instances whose duration stands for an undisturbed one, where nothing can be
compared.
"""


def cost_of(
    events: Events,
    exposure: Exposure,
    rows: Sequence[ClassRow],
    active: Mapping[int, Spans],
    ranks: Sequence[int],
) -> tuple[Interval | None, float]:
    """The cost in s of a rank's time, the mean over `ranks`, and the part of the shared time whose slowdown
    is known; None if no slowdown is.

    Of a shared time o the part o (1 - 1/s) is lost. Threads of a rank that are active at once lose the same
    time: what they share is divided by how many of them are active, on average. The rows' intervals are
    independent: their widths are added in squares.
    """
    weight = _per_rank(events, exposure, active) / len(ranks) / NS
    shared = exposure.shared * weight
    total = float(shared.sum())
    known, value, below, above = 0.0, 0.0, 0.0, 0.0
    for row in rows:
        slowdown = row.slowdown
        if slowdown is None:
            continue
        time = float(shared[row.overlapped].sum())
        low, middle, high = (time * (1 - 1 / end) for end in (slowdown.low, slowdown.value, slowdown.high))
        known, value = known + time, value + middle
        below, above = below + (middle - low) ** 2, above + (high - middle) ** 2
    if known == 0:
        return None, 0.0
    return Interval(value=value, low=value - math.sqrt(below), high=value + math.sqrt(above)), known / total


def most_of(events: Events, exposure: Exposure, active: Mapping[int, Spans], ranks: Sequence[int]) -> float:
    """The cost in s of a rank's time, the mean over `ranks`, if each instance that shares time would take as
    long alone as the fastest tenth of its class; but no more than it shares. Of a class that never runs
    alone, nothing is known: it may lose all that it shares.
    """
    kind = events.kind[exposure.event]
    fastest = np.zeros(len(events.classes))
    for number in np.unique(kind[exposure.shared > 0]).tolist():
        members = kind == number
        if (exposure.shared[members] == 0).any():
            fastest[number] = np.quantile(exposure.own[members], FASTEST)
    lost = np.clip(exposure.own - fastest[kind], 0, exposure.shared)
    return float((lost * _per_rank(events, exposure, active)).sum()) / len(ranks) / NS


def _per_rank(events: Events, exposure: Exposure, active: Mapping[int, Spans]) -> Floats:
    """Of each instance, one over the mean number of active lanes of its rank."""
    rank = events.rank[exposure.event]
    busy = np.bincount(rank, weights=exposure.own.astype(float), minlength=len(events.ranks))
    union = np.array(
        [active[one].total if one in active else 0 for one in range(len(events.ranks))], dtype=float
    )
    weight: Floats = (union / np.maximum(busy, 1))[rank]
    return weight
