"""Steps of a trace that names none: its computation repeats the same sequence of kernels.

A step begins where a class of computation comes again that occurs once a step. Of all ways to cut the
sequence so, the one counts that leaves most computation in classes with the same number of instances in each
step; of equally good ones, the one with most steps.
"""

from __future__ import annotations

import numpy as np

from elbowroom.trace.overlap.events import Events, Floats, Ints
from elbowroom.trace.overlap.exposure import Exposure
from elbowroom.trace.overlap.places import StepBeginnings

FEWEST = 3
"""Steps; fewer repetitions may be chance."""
REGULAR = 0.8
"""Share of the computations that is in classes with the same number of instances in nearly every step."""
ALIKE = 0.9
"""Share of the steps that must have the usual number of instances of a class."""
_EQUALLY_GOOD = 0.97
_COVERED = 0.5
"""Share of the computations that is in whole steps, at least."""
_TRIED = 32
"""Numbers of steps that are tried: those that most computations' classes have."""
_SHORTEST = 5
"""Computations of a step, at least."""


def repeated_steps(events: Events, comp: Exposure) -> StepBeginnings:
    """The steps of each rank by the repetition of its computations; none where they do not repeat."""
    begins: dict[int, Ints] = {}
    rank = events.rank[comp.event]
    for number in np.unique(rank).tolist():
        mine = comp.event[rank == number]
        order = mine[np.lexsort((events.start[mine], events.issued[mine]))]
        anchors = _anchors(events.kind[order].astype(np.int64))
        if len(anchors):
            begins[number] = events.issued[order[anchors]]
    return StepBeginnings(begins=begins, count=max(map(len, begins.values()), default=0))


def _anchors(kind: Ints) -> Ints:
    """Where in a sequence of classes a step begins; empty: nowhere."""
    none = np.zeros(0, dtype=np.int64)
    if len(kind) < FEWEST * _SHORTEST:
        return none
    classes, counts = np.unique(kind, return_counts=True)
    numbers, having = np.unique(counts, return_counts=True)
    usable = (numbers >= FEWEST) & (numbers * _SHORTEST <= len(kind))
    numbers, having = numbers[usable], having[usable]
    best: dict[int, tuple[float, Ints]] = {}
    for number in numbers[np.argsort(-having * numbers, kind="stable")][:_TRIED].tolist():
        anchors = _most_even(kind, classes[counts == number])
        best[number] = _regular(kind, anchors), anchors
    best = {
        one: (share, anchors)
        for one, (share, anchors) in best.items()
        if anchors[-1] - anchors[0] >= max(_COVERED * len(kind), _SHORTEST * (len(anchors) - 1))
    }
    most = max((share for share, _ in best.values()), default=0.0)
    if most < REGULAR:
        return none
    return best[max(number for number, (share, _) in best.items() if share >= _EQUALLY_GOOD * most)][1]


def _most_even(kind: Ints, classes: Ints) -> Ints:
    """The places of the class whose instances are most evenly spaced; the first one of equals."""
    chosen = np.isin(kind, classes)
    where, of = np.flatnonzero(chosen), kind[chosen]
    places = [where[of == one] for one in classes[:64].tolist()]
    spread = [float(np.std(np.diff(one)) / np.mean(np.diff(one))) for one in places]
    first = [int(one[0]) for one in places]
    best: Ints = places[min(range(len(places)), key=lambda at: (round(spread[at], 3), first[at]))]
    return best


def _regular(kind: Ints, anchors: Ints) -> float:
    """The share of computations in classes with the usual number of instances in nearly every step."""
    step = np.searchsorted(anchors, np.arange(len(kind)), side="right") - 1
    # The last step may be cut by the end of the trace, and what precedes the first one is none.
    inside = (step >= 0) & (step < len(anchors) - 1)
    steps = len(anchors) - 1
    _, code = np.unique(kind[inside], return_inverse=True)
    classes = int(code.max(initial=-1)) + 1
    counts: Ints = np.bincount(code * steps + step[inside], minlength=classes * steps).reshape(classes, steps)
    usual = np.median(counts, axis=1)[:, None]
    alike: Floats = np.mean(counts == usual, axis=1)
    regular = counts[(alike >= ALIKE) & (usual[:, 0] > 0)]
    return float(regular.sum() / max(counts.sum(), 1))
