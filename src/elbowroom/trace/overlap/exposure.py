"""How much of each computation ran while which communication was active on the same rank, and the reverse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from elbowroom.trace.overlap.events import NONE, Events, Ints, Small
from elbowroom.trace.overlap.recognition import Sides
from elbowroom.trace.overlap.slices import Slices
from elbowroom.trace.overlap.spans import Spans, union

MOST_KINDS = 24
"""Kinds of the other side that are told apart; the rest, by time, are one kind."""
OTHERS = "others"
_MOST_CHANGES = 1 << 12
"""Of the rank from one slice to the next: with more of them, ranks are mixed."""


@dataclass(frozen=True, kw_only=True)
class Exposure:
    """Instances of one side, in order of lane and time, beside the activity of the other side on their rank.

    `event`: index of each instance; `own`: its time without what is nested in it, `shared`: the part of it in
    which the other side is active, ns. `at_start`: the kind of the other side that is active when the
    instance begins (NONE: none), `main`: the kind that shares most of its time. `kinds` names them.
    """

    event: Ints
    own: Ints
    shared: Ints
    at_start: Small
    main: Small
    kinds: tuple[str, ...]


Part = slice | Ints
"""Where some values of a column are."""


@dataclass(frozen=True, kw_only=True)
class SideSlices:
    """Slices of one side, and their classes' names as kinds of the other side sees them."""

    cut: Slices
    rank: Small
    kind: Small
    names: tuple[str, ...]

    @cached_property
    def parts(self) -> dict[int, Part]:
        """Where the slices of each rank are."""
        return dict(_ranks(self.rank))

    @cached_property
    def active(self) -> dict[int, Spans]:
        """When the side is active on each rank that has it."""
        return {rank: union(self.cut.start[part], self.cut.end[part]) for rank, part in self.parts.items()}


def of_side(events: Events, sides: Sides, cut: Slices, side: int) -> SideSlices:
    """The slices of a side. Kinds are its names, the ones with most time first, the rest as one."""
    chosen = np.flatnonzero((sides if cut.whole else sides[cut.owner]) == side)
    mine = Slices(owner=cut.owner[chosen], start=cut.start[chosen], end=cut.end[chosen])
    names, of_class = events.names
    kind = events.kind[mine.owner]
    of_classes = np.bincount(kind, weights=mine.end - mine.start, minlength=len(events.classes))
    time = np.bincount(of_class, weights=of_classes, minlength=len(names))
    order = np.argsort(-time, kind="stable")
    order = order[time[order] > 0]
    place = np.full(len(names), min(len(order), MOST_KINDS), dtype=np.int32)
    kept = order if len(order) <= MOST_KINDS + 1 else order[:MOST_KINDS]
    place[kept] = np.arange(len(kept), dtype=np.int32)
    shown = [names[number] for number in kept] + ([OTHERS] if len(kept) < len(order) else [])
    return SideSlices(cut=mine, rank=events.rank[mine.owner], kind=place[of_class][kind], names=tuple(shown))


def hidden_times(mine: SideSlices, other: SideSlices) -> dict[int, int]:
    """How long both sides are active on each rank that has both, ns."""
    return {
        rank: int(spans.covered(other.active[rank].start, other.active[rank].end).sum())
        for rank, spans in mine.active.items()
        if rank in other.active
    }


def exposure(events: Events, mine: SideSlices, other: SideSlices, hidden: Mapping[int, int]) -> Exposure:
    """The instances of `mine` beside `other`; `hidden`: how long both are active (hidden_times)."""
    event, number = _numbered(mine.cut.owner)
    if not events.ordered:
        event = events.in_order(event)
        number = np.argsort(event)[number]
    own = _summed(number, mine.cut.end - mine.cut.start, len(event))
    shares = _Shares(len(event))
    begin = events.start[event]
    for rank, time in hidden.items():
        if time:
            _share(shares, mine, number, begin, other, rank)
    return Exposure(
        event=event,
        own=own,
        shared=shares.shared,
        at_start=shares.at_start,
        main=shares.main,
        kinds=other.names,
    )


class _Shares:
    """What is known of each instance so far (Exposure), and the most time that one kind shares of it."""

    def __init__(self, instances: int) -> None:
        self.shared = np.zeros(instances, dtype=np.int64)
        self.at_start = np.full(instances, NONE, dtype=np.int32)
        self.main = np.full(instances, NONE, dtype=np.int32)


def _share(
    shares: _Shares, mine: SideSlices, number: Ints, begin: Ints, other: SideSlices, rank: int
) -> None:
    """Adds one rank: its slices beside those of the other side."""
    part, theirs, all_spans = mine.parts[rank], other.parts[rank], other.active[rank]
    start, end = mine.cut.start[part], mine.cut.end[part]
    here, local = _numbered(number[part])
    shared = _summed(local, all_spans.covered(start, end), len(here))
    beside = all_spans.contains(begin[here])
    shares.shared[here] = shared
    kinds = other.kind[theirs]
    there = np.flatnonzero(np.bincount(kinds))
    if len(there) == 1:
        shares.main[here[shared > 0]] = shares.at_start[here[beside]] = there[0]
        return
    # Of each kind only what shares time with any, or begins beside any.
    some = (shared > 0) | beside
    parts = np.flatnonzero(some[local])
    here, start, end, local = here[some], start[parts], end[parts], (np.cumsum(some) - 1)[local[parts]]
    most, most_at_start = np.zeros(len(here), dtype=np.int64), np.full(len(here), -1, dtype=np.int64)
    their_start, their_end = other.cut.start[theirs], other.cut.end[theirs]
    for kind in there:
        chosen = kinds == kind
        active = union(their_start[chosen], their_end[chosen])
        share = _summed(local, active.covered(start, end), len(here))
        better = share > most
        most[better], shares.main[here[better]] = share[better], kind
        at_start = active.contains(begin[here]) & (share > most_at_start)
        most_at_start[at_start], shares.at_start[here[at_start]] = share[at_start], kind


def _ranks(rank: Small) -> Iterator[tuple[int, Part]]:
    """Each rank and where it stands in the column."""
    if not len(rank):
        return
    changes = np.flatnonzero(rank[1:] != rank[:-1]) + 1
    bounds = [0, *changes.tolist(), len(rank)] if len(changes) < _MOST_CHANGES else []
    runs = [(int(rank[first]), slice(first, last)) for first, last in pairwise(bounds)]
    if bounds and len({number for number, _ in runs}) == len(runs):
        yield from sorted(runs, key=lambda one: one[0])
        return
    order = np.argsort(rank, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(rank[order])) + 1):
        yield int(rank[part[0]]), part


def _numbered(owner: Ints) -> tuple[Ints, Ints]:
    """What the numbers of parts are, ascending, and which of these each part has."""
    if (owner[1:] > owner[:-1]).all():  # each has one part
        return owner, np.arange(len(owner))
    last = int(owner.max())
    there = np.zeros(last + 1, dtype=bool)
    there[owner] = True
    return np.flatnonzero(there), (np.cumsum(there) - 1)[owner]


def _summed(number: Ints, length: Ints, instances: int) -> Ints:
    """The sum of each instance's parts, ns."""
    if len(number) == instances and (number[1:] > number[:-1]).all():  # each has one
        return length
    return np.bincount(number, weights=length.astype(float), minlength=instances).astype(np.int64)
