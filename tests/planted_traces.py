"""Slowdowns planted into traces: events as columns, with another schedule, and a cost that is known."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np

from elbowroom.trace.overlap.events import Events, Flags
from elbowroom.trace.overlap.places import find_steps
from elbowroom.trace.overlap.recognition import COMMUNICATION, COMPUTATION, recognise, steps_of
from elbowroom.trace.overlap.slices import slices
from elbowroom.trace.overlap.spans import Spans, union


def sides(events: Events) -> tuple[Flags, Flags]:
    """Which events compute, and which communicate."""
    side = recognise(events).side
    return side == COMPUTATION, side == COMMUNICATION


def shift_communication(events: Events, random: np.random.Generator) -> Events:
    """Each step's communication moved by one random offset, circularly: what it was beside is beside nothing.

    A step lasts from its first computation to that of the next step of the rank.
    """
    computes, communicates = sides(events)
    begins = find_steps(events, steps_of(events)).begins
    kept = [np.flatnonzero(~communicates)]
    start, duration, owner = [events.start[kept[0]]], [events.duration[kept[0]]], kept
    for rank in range(len(events.ranks)):
        mine = np.flatnonzero((events.rank == rank) & computes)
        theirs = np.flatnonzero((events.rank == rank) & communicates)
        if not len(mine) or not len(theirs):
            continue
        issued = begins.get(rank, np.zeros(1, dtype=np.int64))
        step = np.maximum(np.searchsorted(issued, events.issued[mine], side="right") - 1, 0)
        first = np.array([events.start[mine[step == one]].min() for one in np.unique(step)])
        bounds = np.unique(np.append(first, events.end[mine].max()))
        for low, high in pairwise(bounds.tolist()):
            begin = np.maximum(events.start[theirs], low)
            end = np.minimum(events.end[theirs], high)
            part = end > begin
            length = (end - begin)[part]
            moved = (begin[part] - low + int(random.integers(0, high - low))) % (high - low) + low
            over = np.maximum(moved + length - high, 0)
            for at, lasts in ((moved, length - over), (np.full(len(moved), low), over)):
                start.append(at[lasts > 0])
                duration.append(lasts[lasts > 0])
                owner.append(theirs[part][lasts > 0])
    return _with(events, np.concatenate(owner), np.concatenate(start), np.concatenate(duration))


def _with(events: Events, owner: np.ndarray, start: np.ndarray, duration: np.ndarray) -> Events:
    columns = {name: getattr(events, name)[owner] for name in ("kind", "lane", "launched", "issued")}
    return dataclasses.replace(events, start=start, duration=duration, **columns)


def plant(events: Events, slowdown: float) -> tuple[Events, float]:
    """The events with time stretched by `slowdown` wherever a rank computes and communicates, all that
    follows later, and what that costs in s of a rank's time (mean over ranks).
    """
    computes, communicates = sides(events)
    cut = slices(events)
    of = events.rank[cut.owner]
    start, end, issued = events.start.copy(), events.end.copy(), events.issued.copy()
    cost, ranks = 0.0, 0
    for rank in range(len(events.ranks)):
        spans = [
            union(cut.start[chosen], cut.end[chosen])
            for side in (computes, communicates)
            for chosen in [side[cut.owner] & (of == rank)]
        ]
        if not all(len(one.start) for one in spans):
            ranks += len(spans[0].start) + len(spans[1].start) > 0
            continue
        both = _both(*spans)
        cost, ranks = cost + (slowdown - 1) * both.total / 1e9, ranks + 1
        mine = events.rank == rank
        for times in (start, end, issued):
            before = both.covered(np.full(int(mine.sum()), times[mine].min() - 1), times[mine])
            times[mine] += np.round((slowdown - 1) * before).astype(np.int64)
    return dataclasses.replace(events, start=start, duration=end - start, issued=issued), cost / max(ranks, 1)


def halves(events: Events) -> tuple[Events, Events]:
    """The first and the second half of the steps, as two traces."""
    begins = find_steps(events, steps_of(events)).begins
    middle = np.zeros(len(events.ranks), dtype=np.int64)
    for rank, times in begins.items():
        middle[rank] = times[len(times) // 2]
    late = events.issued >= middle[events.rank]
    return _with(events, *_columns(events, ~late)), _with(events, *_columns(events, late))


def _columns(events: Events, kept: Flags) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return np.flatnonzero(kept), events.start[kept], events.duration[kept]


def _both(one: Spans, other: Spans) -> Spans:
    points = np.unique(np.concatenate([one.start, one.end, other.start, other.end]))
    middle = (points[:-1] + points[1:]) // 2
    kept = one.contains(middle) & other.contains(middle)
    return union(points[:-1][kept], points[1:][kept])
