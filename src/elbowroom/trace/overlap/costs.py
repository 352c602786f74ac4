"""How much longer a side took because the other side was active."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from elbowroom.stats.interval import Interval
from elbowroom.trace.overlap.estimate import SlowdownEffect
from elbowroom.trace.overlap.events import NONE, Events, Floats, Ints
from elbowroom.trace.overlap.exposure import Exposure
from elbowroom.trace.overlap.spans import Spans

NS = 1e9
FASTEST = 0.1
"""The part of a class's instances whose duration stands for an undisturbed one, where nothing is compared."""
ENOUGH_ALONE = 3
"""Instances alone from which those of one place replace those of the class."""


@dataclass(frozen=True, kw_only=True)
class Cost:
    """The slowdown of all shared time, what it costs in s of a rank's time (mean over ranks), and the part of
    the shared time whose class was compared itself.
    """

    slowdown: Interval
    cost: Interval
    share: float


def cost_of(
    events: Events,
    exposure: Exposure,
    kernel: Ints,
    effect: SlowdownEffect,
    active: Mapping[int, Spans],
    ranks: Sequence[int],
) -> Cost:
    """Of a shared time o, o (1 - 1/s) is lost. Threads of a rank that are active at once lose the same time:
    what they share is divided by how many of them are active, on average. `kernel`: of each class of events.
    """
    assert effect.low is not None
    assert effect.high is not None
    shared = exposure.shared * _per_rank(events, exposure, active) / len(ranks) / NS
    of_row = {(one.kernel, one.other): one for one in effect.rows}
    time: dict[tuple[int, int], float] = {}
    keys, number = np.unique(
        np.stack([kernel[events.kind[exposure.event]], exposure.main]), axis=1, return_inverse=True
    )
    sums = np.bincount(number.ravel(), shared)
    for (one, other), seconds in zip(keys.T.tolist(), sums.tolist(), strict=True):
        if other != NONE:
            time[one, other] = seconds
    logs = np.array([of_row[key].log if key in of_row else effect.of_all for key in time])
    seconds = np.array(list(time.values()))
    compared = np.array([key in of_row and of_row[key].contrasts > 0 for key in time])
    lost = [
        float((seconds * -np.expm1(-(logs + end))).sum()) for end in (effect.low, effect.value, effect.high)
    ]
    total = float(seconds.sum())
    low, value, high = (total / (total - part) for part in lost)
    return Cost(
        slowdown=Interval(value=value, low=low, high=high),
        cost=Interval(value=lost[1], low=lost[0], high=lost[2]),
        share=float(seconds[compared].sum()) / total,
    )


def most_of(
    events: Events, exposure: Exposure, place: Ints, active: Mapping[int, Spans], ranks: Sequence[int]
) -> float:
    """The cost in s of a rank's time, the mean over `ranks`, if each instance that shares time would take as
    long alone as the fastest tenth of its class, or of its `place` where enough are alone; but no more than
    it shares. A class that never runs alone may lose all that it shares.
    """
    kind = events.kind[exposure.event].astype(np.int64)
    alone = exposure.shared == 0
    fastest = _fastest(kind, exposure.own, np.ones(len(kind), dtype=bool), len(events.classes))
    fastest[np.bincount(kind[alone], minlength=len(events.classes)) == 0] = 0.0
    usual = fastest[kind]
    places = int(place.max(initial=NONE)) + 1
    if places:
        kept = alone & (place != NONE)
        enough = np.bincount(place[kept], minlength=places) >= ENOUGH_ALONE
        of_places = _fastest(place, exposure.own, kept, places)
        there = (place != NONE) & enough[np.maximum(place, 0)]
        usual[there] = of_places[place[there]]
    lost = np.clip(exposure.own - usual, 0, exposure.shared)
    return float((lost * _per_rank(events, exposure, active)).sum()) / len(ranks) / NS


def _fastest(group: Ints, own: Ints, kept: np.ndarray, count: int) -> Floats:
    """The fastest tenth of each group's kept instances (the lower of two)."""
    group, own = group[kept], own[kept]
    order = np.lexsort((own, group))
    size = np.bincount(group, minlength=count)
    at = np.cumsum(size) - size + (FASTEST * np.maximum(size - 1, 0)).astype(np.int64)
    values = own[order][np.minimum(at, max(len(own) - 1, 0))] if len(own) else np.zeros(count)
    return np.where(size > 0, values, 0).astype(np.float64)


def _per_rank(events: Events, exposure: Exposure, active: Mapping[int, Spans]) -> Floats:
    """Of each instance, one over the mean number of active lanes of its rank."""
    rank = events.rank[exposure.event]
    busy = np.bincount(rank, weights=exposure.own.astype(float), minlength=len(events.ranks))
    union = np.array(
        [active[one].total if one in active else 0 for one in range(len(events.ranks))], dtype=float
    )
    weight: Floats = (union / np.maximum(busy, 1))[rank]
    return weight
