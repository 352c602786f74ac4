"""The table of instances that the estimator takes (estimate.py), and the schedule of the other side.

A reader of any format may deliver it: numpy columns, or Arrow columns without copying.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from elbowroom.trace.overlap.events import NONE, Events, Flags, Floats, Ints
from elbowroom.trace.overlap.exposure import Exposure
from elbowroom.trace.overlap.places import Places
from elbowroom.trace.overlap.spans import Spans, union

ROUNDED = 1.0
"""ns by which the durations of copies differ at most."""
COPIED = 0.99
"""The part of the places that a copy and the original have at which both take the same time, at least."""
PROBES = 8


@dataclass(frozen=True, kw_only=True)
class Instances:
    """Instances of one side in order of lane and time; columns of shape (instances,).

    `rank`; `step`, a number that all ranks share, and when the rank's next one begins (`until`); `kernel`,
    the class (name and how it was launched, or shape); `place`, the same number for the same work in all
    steps and on all ranks; `start`, `own` time without what is nested in it, the part of it that the other
    side covers (`shared`), ns; `at_begin`: whether the other side is active at the start; `other`: its kind
    that covers most (NONE: none). Instances outside of steps have place NONE.
    """

    rank: Ints
    step: Ints
    until: Ints
    kernel: Ints
    place: Ints
    start: Ints
    own: Floats
    shared: Floats
    at_begin: Flags
    other: Ints

    def __len__(self) -> int:
        return len(self.rank)

    def only(self, kept: Flags | Ints) -> Instances:
        """Those that are kept."""
        return Instances(**{one.name: getattr(self, one.name)[kept] for one in dataclasses.fields(self)})


def instances_of(events: Events, exposure: Exposure, places: Places, kernel: Ints) -> Instances:
    """The table of one side. `kernel`: the class of each class of events (shape: classes)."""
    rank = events.rank[exposure.event].astype(np.int64)
    steps = max(places.steps, 1)
    start = events.start[exposure.event]
    return Instances(
        rank=rank,
        step=np.where(places.cell == NONE, NONE, places.cell % steps),
        until=_ends(rank, places.cell, start, exposure.own),
        kernel=kernel[events.kind[exposure.event]],
        place=places.place,
        start=start,
        own=exposure.own.astype(float),
        shared=exposure.shared.astype(float),
        at_begin=exposure.at_start != NONE,
        other=exposure.main.astype(np.int64),
    )


def _ends(rank: Ints, cell: Ints, start: Ints, own: Ints) -> Ints:
    """When the next cell of its rank begins, or would begin: after the last cell, and after a long pause, the
    usual time between two cells has passed.
    """
    until: Ints = start + own
    known = np.flatnonzero(cell != NONE)
    if not len(known):
        return until
    number = dense(rank[known], cell[known])
    begin = np.full(int(number.max()) + 1, np.iinfo(np.int64).max)
    end, of = np.zeros((2, len(begin)), dtype=np.int64)
    np.minimum.at(begin, number, start[known])
    np.maximum.at(end, number, until[known])
    of[number] = rank[known]
    followed = of[1:] == of[:-1]
    pauses = (begin[1:] - end[:-1])[followed]
    usual = max(int(np.quantile(pauses, 0.5, method="lower")), 0) if len(pauses) else 0
    pause = np.full(len(end), usual)
    pause[:-1][followed] = np.minimum(pauses, usual)
    until[known] = np.maximum(end + pause, begin + 1)[number]
    return until


def distinct(table: Instances) -> tuple[Instances, int]:
    """The table without steps of a rank that are copies of others, and how many these were.

    A copy has the same durations at the same places, which measured steps never have: it tells nothing new.
    Steps that agree at one of the PROBES places with most time are compared at all places that both have.
    """
    order = np.flatnonzero(table.place != NONE)
    if not len(order):
        return table, 0
    cell = dense(table.rank[order], table.step[order])
    order = order[np.lexsort((table.place[order], cell))]
    cell = np.sort(cell)
    place, own = table.place[order], table.own[order]
    bounds = np.searchsorted(cell, np.arange(int(cell[-1]) + 2))
    copies = np.zeros(len(bounds) - 1, dtype=bool)
    pairs: set[tuple[int, int]] = set()
    for probe in np.argsort(-np.bincount(place, own))[:PROBES].tolist():
        at = np.flatnonzero(place == probe)
        at = at[np.lexsort((cell[at], own[at]))]
        same = np.flatnonzero(np.diff(own[at]) <= ROUNDED)
        pairs.update(zip(cell[at[same]].tolist(), cell[at[same + 1]].tolist(), strict=True))
    for one, other in pairs:
        mine, theirs = (slice(bounds[of], bounds[of + 1]) for of in (one, other))
        both, here, there = np.intersect1d(place[mine], place[theirs], return_indices=True)
        alike = np.abs(own[mine][here] - own[theirs][there]) <= ROUNDED
        smaller = min(bounds[of + 1] - bounds[of] for of in (one, other))
        if alike.sum() >= COPIED * len(both) and 2 * len(both) >= smaller:
            copies[max(one, other)] = True
    if not copies.any():
        return table, 0
    kept = np.ones(len(table), dtype=bool)
    kept[order[copies[cell]]] = False
    return table.only(kept), int(copies.sum())


def dense(*keys: Ints) -> Ints:
    """One number from 0 for each combination of keys that occurs, in their order."""
    number = np.zeros(len(keys[0]), dtype=np.int64)
    for key in keys:
        _, low = np.unique(key, return_inverse=True)
        _, number = np.unique(number * (int(low.max(initial=0)) + 1) + low, return_inverse=True)
    return number


@dataclass(frozen=True, kw_only=True)
class Windows:
    """The steps of all ranks one after the other on one axis, each with the other side's activity in it.

    Of each instance: its `cell` (the step of a rank) and the time since its cell begins (`since`). Of each
    cell: where it begins on the axis (`first`), its `length`, and its `step`. Times in ns.
    """

    cell: Ints
    since: Ints
    first: Ints
    length: Ints
    step: Ints
    active: Spans

    def shares(self, shifts: Floats, usual: Floats) -> Iterator[Floats]:
        """Of each arrangement: the part of its `usual` duration (ns) from its begin that the other side would
        cover, if its activity were later by `shifts` (shape: arrangements, steps; parts of a step's length),
        circularly.
        """
        length = self.length[self.cell].astype(float)
        lasts = np.minimum(np.floor(usual), length)
        # What a step launched may run in the next one.
        since = self.since % length
        # Twice each cell, so that what goes on at its begin is there behind its end as well.
        spans = _cut(self.active, self.first)
        cell = np.searchsorted(self.first, spans[0], side="right") - 1
        begin, end = (
            np.sort(np.concatenate([one + self.first[cell], one + (self.first + self.length)[cell]]))
            for one in spans
        )
        before = np.cumsum(end - begin)
        knots = np.stack([begin, end], axis=1).ravel().astype(float)
        active = np.stack([before - (end - begin), before], axis=1).ravel().astype(float)
        if not len(knots):
            knots, active = np.zeros((2, 1))
        first = 2.0 * self.first[self.cell]
        for shift in shifts:
            moved = since - np.floor(shift[self.step] * self.length)[self.cell]
            at = first + np.where(moved < 0, moved + length, moved)
            covered: Floats = np.interp(at + lasts, knots, active) - np.interp(at, knots, active)
            yield covered / np.maximum(lasts, 1)

    def episode(self, own: Floats) -> Floats:
        """How long the last activity that begins before the end of each instance lasts, ns; 0: none does."""
        at = np.searchsorted(self.active.start, self.first[self.cell] + self.since + own) - 1
        lasts = np.append(self.active.end - self.active.start, 0)
        return lasts[at].astype(float)

    def episodes(self) -> Floats:
        """How many times of activity each cell has, if they were equally long."""
        cell = np.searchsorted(self.first, self.active.start, side="right") - 1
        lasts = (self.active.end - self.active.start).astype(float)
        count = len(self.first)
        total = np.bincount(cell, lasts, count)
        return total**2 / np.maximum(np.bincount(cell, lasts**2, count), 1e-9)

    def around(self) -> Windows:
        """The same with the activity replaced by the times around it: as long before and after as it lasts,
        without the activity itself.
        """
        start, end = self.active.start, self.active.end
        cell = np.searchsorted(self.first, start, side="right") - 1
        low, high = self.first[cell], (self.first + self.length)[cell]
        wide = union(np.maximum(2 * start - end, low), np.minimum(2 * end - start, high))
        points = np.sort(np.concatenate([wide.start, wide.end, start, end]))
        begin, stop = points[:-1], points[1:]
        middle = (begin + stop) // 2
        kept = (stop > begin) & wide.contains(middle) & ~self.active.contains(middle)
        return dataclasses.replace(self, active=union(begin[kept], stop[kept]))


def windows_of(table: Instances, active: Mapping[int, Spans]) -> Windows:
    """The windows of a table whose instances all have a place. `active`: the other side's, by rank.

    A cell lasts from its first instance to the end of its steps.
    """
    cell = dense(table.rank, table.step)
    count = int(cell.max()) + 1
    rank, step = np.zeros((2, count), dtype=np.int64)
    rank[cell], step[cell] = table.rank, table.step
    begin = np.full(count, np.iinfo(np.int64).max)
    end = np.full(count, np.iinfo(np.int64).min)
    np.minimum.at(begin, cell, table.start)
    np.maximum.at(end, cell, table.until)
    length = np.maximum(end - begin, 1)
    first = np.cumsum(length) - length
    starts, ends = [], []
    for number in np.unique(rank).tolist():
        if number in active:
            cells = np.flatnonzero(rank == number)
            low, high = _cut(active[number], begin[cells])
            at = cells[np.clip(np.searchsorted(begin[cells], low, side="right") - 1, 0, None)]
            low, high = np.maximum(low, begin[at]), np.minimum(high, end[at])
            kept = high > low
            starts.append((low + first[at] - begin[at])[kept])
            ends.append((high + first[at] - begin[at])[kept])
    none = np.zeros(0, dtype=np.int64)
    return Windows(
        cell=cell,
        since=table.start - begin[cell],
        first=first,
        length=length,
        step=dense(step),
        active=union(np.concatenate([none, *starts]), np.concatenate([none, *ends])),
    )


def _cut(spans: Spans, bounds: Ints) -> tuple[Ints, Ints]:
    """Begins and ends of spans that are cut at the bounds."""
    inside = bounds[spans.contains(bounds)]
    return np.sort(np.concatenate([spans.start, inside])), np.sort(np.concatenate([spans.end, inside]))
