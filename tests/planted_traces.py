"""Slowdowns planted into traces: events as columns, with another schedule, and a cost that is known."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import pairwise
from typing import Literal, get_args

import numpy as np

from elbowroom.trace.overlap.events import Events, Flags, Floats, Ints
from elbowroom.trace.overlap.places import find_steps
from elbowroom.trace.overlap.recognition import COMMUNICATION, COMPUTATION, recognise, steps_of
from elbowroom.trace.overlap.slices import Slices, slices
from elbowroom.trace.overlap.spans import union

Pattern = Literal["alike", "class", "place", "instance", "short", "long", "phase", "dose", "message"]
"""What a slowdown depends on: the class, its place or instance of computation, how long that is, where in the
step, the share of it that is covered, how long the communication is.
"""
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)
PHASES = 20
"""Parts of a step that have their own slowdowns of each class."""


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


def plant(
    events: Events, slowdown: float, pattern: Pattern = "alike", seed: Sequence[int] = (0,)
) -> tuple[Events, float, float]:
    """The events with time stretched wherever a rank computes and communicates, and all that follows later;
    what that costs in s of a rank's time (mean over ranks); and the slowdown of all the shared time.

    That is `slowdown` itself if all instances are slowed `alike`; other patterns multiply what it adds to 1.
    """
    computes, communicates = sides(events)
    cut = slices(events)
    of = events.rank[cut.owner]
    start, end, issued = events.start.copy(), events.end.copy(), events.issued.copy()
    added = shared = 0.0
    ranks = 0
    for rank in range(len(events.ranks)):
        chosen = [side[cut.owner] & (of == rank) for side in (computes, communicates)]
        ranks += any(one.any() for one in chosen)
        if not all(one.any() for one in chosen):
            continue
        begin, stop, owners = _both(
            *(Slices(owner=cut.owner[one], start=cut.start[one], end=cut.end[one]) for one in chosen)
        )
        factor = (slowdown - 1) * _factors(events, pattern, (begin, stop), *owners, seed)
        length = (stop - begin).astype(float)
        more = np.concatenate([[0.0], np.cumsum(factor * length)])
        added, shared = added + more[-1], shared + float(length.sum())
        mine = events.rank == rank
        for times in (start, end, issued):
            at = np.searchsorted(begin, times[mine], side="right") - 1
            inside = np.clip(times[mine] - begin[np.maximum(at, 0)], 0, length[np.maximum(at, 0)])
            before = np.where(at < 0, 0.0, more[at] + factor[at] * inside)
            times[mine] += np.round(before).astype(np.int64)
    planted = dataclasses.replace(events, start=start, duration=end - start, issued=issued)
    return planted, added / max(ranks, 1) / 1e9, 1 + added / max(shared, 1.0)


def _factors(
    events: Events,
    pattern: Pattern,
    pieces: tuple[Ints, Ints],
    computing: Ints,
    communicating: Ints,
    seed: Sequence[int],
) -> Floats:
    """What multiplies the slowdown of each piece of time, 1 on average or so; shape (pieces,)."""
    begin, end = pieces
    random = np.random.default_rng(seed)
    by_class: Floats = random.exponential(1.0, len(events.classes))
    by_place: Floats = random.exponential(1.0, (len(events.classes), PHASES))
    by_instance: Floats = random.exponential(1.0, len(events))
    begins = find_steps(events, steps_of(events)).begins.get(int(events.rank[computing[0]]), np.zeros(0))
    step = np.searchsorted(begins, events.issued[computing], side="right")
    first, last = np.full(len(begins) + 1, np.inf), np.full(len(begins) + 1, -np.inf)
    np.minimum.at(first, step, begin)
    np.maximum.at(last, step, begin)
    phase: Floats = (begin - first[step]) / np.maximum(last - first, 1)[step]
    of_places: Floats = by_place[events.kind[computing], (phase * (PHASES - 1)).astype(np.int64)]
    match pattern:
        case "alike":
            return np.ones(len(begin))
        case "class":
            return by_class[events.kind[computing]]
        case "place":
            return of_places
        case "instance":
            return by_instance[computing]
        case "short":
            return 2 * (1 - _quantile(events.duration, computing))
        case "long":
            return 2 * _quantile(events.duration, computing)
        case "phase":
            return 2 * phase
        case "dose":
            covered = np.bincount(computing, end - begin, len(events)) / np.maximum(events.duration, 1)
            return 2 * covered[computing]
        case "message":
            return 2 * _quantile(events.duration, communicating)


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


def _quantile(duration: Ints, chosen: Ints) -> Floats:
    """The rank of each chosen event's duration among those of the chosen, 0 to 1."""
    values = np.sort(duration[np.unique(chosen)])
    low, high = (np.searchsorted(values, duration[chosen], side) for side in ("left", "right"))
    return (low + high) / (2 * len(values))


def _both(one: Slices, other: Slices) -> tuple[Ints, Ints, tuple[Ints, Ints]]:
    """The pieces of time (begin, end) in which both sides are active, and the event of each side: the last
    that began.
    """
    points = np.unique(np.concatenate([one.start, one.end, other.start, other.end]))
    middle = (points[:-1] + points[1:]) // 2
    kept = np.flatnonzero(
        union(one.start, one.end).contains(middle) & union(other.start, other.end).contains(middle)
    )
    return points[:-1][kept], points[1:][kept], (_owner(one, middle[kept]), _owner(other, middle[kept]))


def _owner(side: Slices, time: Ints) -> Ints:
    """The event of a side that is active at each time."""
    order = np.argsort(side.start, kind="stable")
    at = np.searchsorted(side.start[order], time, side="right") - 1
    while (ended := side.end[order][at] <= time).any():
        at = at - ended
    owner: Ints = side.owner[order][at]
    return owner
