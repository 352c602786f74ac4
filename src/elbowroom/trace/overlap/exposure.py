"""How much of each computation ran while which communication was active on the same rank, and the reverse."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from elbowroom.trace.overlap.events import NONE, Events, Ints, Small
from elbowroom.trace.overlap.recognition import Sides
from elbowroom.trace.overlap.slices import Slices
from elbowroom.trace.overlap.spans import Spans, union

MOST_KINDS = 24
"""Kinds of the other side that are told apart; the rest, by time, are one kind."""
OTHERS = "others"


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


@dataclass(frozen=True, kw_only=True)
class SideSlices:
    """Slices of one side, and their classes' names as kinds of the other side sees them."""

    cut: Slices
    rank: Small
    kind: Small
    names: tuple[str, ...]


def of_side(events: Events, sides: Sides, cut: Slices, side: int) -> SideSlices:
    """The slices of a side. Kinds are its names, the ones with most time first, the rest as one."""
    chosen = sides[cut.owner] == side
    mine = Slices(owner=cut.owner[chosen], start=cut.start[chosen], end=cut.end[chosen])
    names: dict[str, int] = {}
    of_class = np.array([names.setdefault(kind.name, len(names)) for kind in events.classes], dtype=np.int64)
    kind = of_class[events.kind[mine.owner]]
    time = np.bincount(kind, weights=(mine.end - mine.start).astype(float), minlength=len(names))
    order = np.argsort(-time, kind="stable")
    order = order[time[order] > 0]
    place = np.full(len(names), min(len(order), MOST_KINDS), dtype=np.int32)
    kept = order if len(order) <= MOST_KINDS + 1 else order[:MOST_KINDS]
    place[kept] = np.arange(len(kept), dtype=np.int32)
    texts = list(names)
    shown = [texts[number] for number in kept] + ([OTHERS] if len(kept) < len(order) else [])
    return SideSlices(cut=mine, rank=events.rank[mine.owner], kind=place[kind], names=tuple(shown))


def exposure(events: Events, mine: SideSlices, other: SideSlices) -> Exposure:
    """The instances of `mine` beside `other`."""
    there = np.zeros(len(events), dtype=bool)
    there[mine.cut.owner] = True
    event = events.in_order(np.flatnonzero(there))
    place = np.zeros(len(events), dtype=np.int64)
    place[event] = np.arange(len(event))
    number = place[mine.cut.owner]
    del place
    own = _summed(number, mine.cut.end - mine.cut.start, len(event))
    shares = _Shares(len(event))
    others = dict(_ranks(other.rank))
    begin = events.start[event]
    for rank, parts in _ranks(mine.rank):
        if rank in others:
            _share(shares, mine, number, parts, begin, other, others[rank])
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
    shares: _Shares, mine: SideSlices, number: Ints, parts: Ints, begin: Ints, other: SideSlices, theirs: Ints
) -> None:
    """Adds one rank: its slices `parts` beside the slices `theirs` of the other side."""
    all_spans = union(other.cut.start[theirs], other.cut.end[theirs])
    covered = all_spans.covered(mine.cut.start[parts], mine.cut.end[parts])
    np.add.at(shares.shared, number[parts], covered)
    # Of each kind only what shares time with any, or begins beside any.
    parts = parts[(shares.shared[number[parts]] > 0) | all_spans.contains(begin[number[parts]])]
    if not len(parts):
        return
    here, local = np.unique(number[parts], return_inverse=True)
    start, end = mine.cut.start[parts], mine.cut.end[parts]
    most, most_at_start = np.zeros(len(here), dtype=np.int64), np.full(len(here), -1, dtype=np.int64)
    kinds = other.kind[theirs]
    for kind in np.unique(kinds):
        chosen = theirs[kinds == kind]
        active = union(other.cut.start[chosen], other.cut.end[chosen])
        part = _summed(local, active.covered(start, end), len(here))
        better = part > most
        most[better], shares.main[here[better]] = part[better], kind
        at_start = active.contains(begin[here]) & (part > most_at_start)
        most_at_start[at_start], shares.at_start[here[at_start]] = part[at_start], kind


def _ranks(rank: Small) -> Iterator[tuple[int, Ints]]:
    """Each rank and where it stands in the column."""
    if len(rank) and (rank[0] == rank).all():
        yield int(rank[0]), np.arange(len(rank))
        return
    order = np.argsort(rank, kind="stable")
    cuts = np.flatnonzero(np.diff(rank[order])) + 1
    for part in np.split(order, cuts) if len(order) else ():
        yield int(rank[part[0]]), part


def by_rank(side: SideSlices) -> dict[int, Spans]:
    """When a side is active on each rank that has it."""
    return {rank: union(side.cut.start[parts], side.cut.end[parts]) for rank, parts in _ranks(side.rank)}


def _summed(number: Ints, length: Ints, instances: int) -> Ints:
    """The sum of each instance's parts, ns."""
    return np.bincount(number, weights=length.astype(float), minlength=instances).astype(np.int64)
