"""By how much longer computation takes while others move messages.

As in trace/overlap: computations at one place of the step are compared with each other, by how much of them
messages cover (the dose). A longer computation is covered for longer: so the dose is that of its first part,
as long as the shortest decile of its place. Steps are clusters. Without a significant slowdown there is none.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elbowroom.diagnose.bins import count_until
from elbowroom.diagnose.surroundings import RankSpans
from elbowroom.profile.matching import dense

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SHORTEST_NS = 20_000
"""Shorter computations are not compared."""
SIGNIFICANT = 3.0
"""Standard errors."""
FEWEST = 10
"""Computations with and without messages beside them, of places that have both, at least."""


class ComputationPlaces(NamedTuple):
    """Computations (N,) at their places: index of each gap, its place in the step, and the step."""

    gap: Ints
    place: Ints
    step: Ints


def places_of(begin: Ints, end: Ints, edges: Ints) -> ComputationPlaces:
    """The gaps [begin, end] that lie in steps of the usual number of gaps, with their place in the step."""
    steps = len(edges) - 1
    middle = (begin + end) // 2
    step = count_until(edges, middle) - 1
    inside = np.flatnonzero((step >= 0) & (step < steps) & (end - begin >= SHORTEST_NS))
    step = step[inside]
    counts = np.bincount(step, minlength=steps)
    usual = int(np.bincount(counts).argmax()) if len(counts) else 0
    place = np.arange(len(step)) - (np.cumsum(counts) - counts)[step]
    some = counts[step] == usual
    return ComputationPlaces(inside[some], place[some], step[some])


def slowed(begin: Ints, end: Ints, edges: Ints, traffic: list[RankSpans]) -> Ints:
    """(N,) ns by which each gap [begin, end] is longer because messages are moved meanwhile."""
    result = np.zeros(len(begin), dtype=np.int64)
    places = places_of(begin, end, edges) if traffic and len(edges) > 2 else None
    if places is None or len(places.gap) < 2 * FEWEST:
        return result
    since, length = begin[places.gap], (end - begin)[places.gap]
    part = first_decile(places.place, length)
    dose = np.zeros(len(since))
    for spans in traffic:
        np.maximum(dose, spans.covered(since, since + part) / part, out=dose)
    effect = _effect(places, np.log(length), dose)
    result[places.gap] = length * (1 - np.exp(-effect * dose))
    return result


def first_decile(place: Ints, length: Ints) -> Ints:
    """The first decile of the lengths, not below 0, at the place of each (N,)."""
    place = dense(place)
    places = int(place.max(initial=-1)) + 1
    # Sorting one number for both is faster than sorting indices.
    wide = (1 << 62) // max(places, 1)
    ordered = np.sort(place * wide + np.minimum(length, wide - 1))
    first = np.searchsorted(ordered, np.arange(places + 1) * wide)
    deciles = ordered[first[:-1] + np.diff(first) // 10] % wide
    result: Ints = deciles[place]
    return result


def _effect(places: ComputationPlaces, logs: Floats, dose: Floats) -> float:
    """Of the dose on the logarithm of the length, within places; 0 if it is not significant."""
    covered = dose > 0.5
    count = np.maximum(np.bincount(places.place), 1)
    with_both = np.bincount(places.place, weights=covered) % count > 0
    used = with_both[places.place]
    if min((covered & used).sum(), (~covered & used).sum()) < FEWEST:
        return 0.0
    x, y = _within(places.place, count, dose), _within(places.place, count, logs)
    square = float((x * x)[used].sum())
    slope = float((x * y)[used].sum()) / square
    scores = np.bincount(places.step[used], weights=(x * (y - slope * x))[used])
    error = float(np.sqrt((scores * scores).sum())) / square
    return slope if slope > SIGNIFICANT * error else 0.0


def _within(place: Ints, count: Ints, values: Floats) -> Floats:
    mean = np.bincount(place, weights=values) / count
    result: Floats = values - mean[place]
    return result
