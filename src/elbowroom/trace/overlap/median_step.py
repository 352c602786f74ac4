"""When a rank computes and communicates in the step of median length: what a timeline of one step shows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from elbowroom.trace.overlap.document import MedianStep
from elbowroom.trace.overlap.events import NONE, Events, Ints
from elbowroom.trace.overlap.exposure import Exposure
from elbowroom.trace.overlap.places import Places
from elbowroom.trace.overlap.spans import Spans

NS = 1e9
FINEST = 1 / 600
"""Of a step: gaps that are shorter are not shown."""


def median_step_of(
    events: Events,
    comp: Exposure,
    places: Places,
    computing: Mapping[int, Spans],
    communicating: Mapping[int, Spans],
) -> MedianStep | None:
    """The step of median length among those of the rank that hides most; None without steps.

    A step lasts from the begin of its first computation to the end of its last one, wherever the host was.
    """
    ranks = events.rank[comp.event]
    known = (places.cell != NONE) & np.isin(ranks, list(communicating))
    if not known.any():
        return None
    rank = int(np.argmax(np.bincount(ranks[known], weights=comp.shared[known].astype(float))))
    mine = np.flatnonzero(known & (ranks == rank))
    _, step = np.unique(places.cell[mine], return_inverse=True)
    first = np.full(int(step.max()) + 1, np.iinfo(np.int64).max)
    last = np.zeros(len(first), dtype=np.int64)
    np.minimum.at(first, step, events.start[comp.event[mine]])
    np.maximum.at(last, step, events.end[comp.event[mine]])
    chosen = int(np.argsort(last - first, kind="stable")[len(first) // 2])
    begin, end = int(first[chosen]), int(last[chosen])
    return MedianStep(
        rank=events.ranks[rank],
        number=chosen,
        seconds=(end - begin) / NS,
        computing=_clipped(computing[rank], begin, end),
        communicating=_clipped(communicating[rank], begin, end),
    )


def _clipped(spans: Spans, begin: int, end: int) -> tuple[tuple[float, float], ...]:
    """Spans within a step, s from its begin; gaps that no picture shows are closed."""
    inside = (spans.end > begin) & (spans.start < end)
    first: Ints = np.maximum(spans.start[inside], begin) - begin
    last: Ints = np.minimum(spans.end[inside], end) - begin
    if not len(first):
        return ()
    opens = np.concatenate([[True], first[1:] - last[:-1] > (end - begin) * FINEST])
    closes = np.concatenate([opens[1:], [True]])
    return tuple(zip((first[opens] / NS).tolist(), (last[closes] / NS).tolist(), strict=True))
