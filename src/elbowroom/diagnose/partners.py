"""When both ends of each message, and all ranks of each collective operation, were there.

Messages are matched as in profile/matching.py: the k-th one of a sender to a receiver, from the last, with
the k-th one of the same bytes. Collective operations of all ranks are matched by function, from the last one.
Records name no communicator: of a part of the job only its size is known. It is taken to be blocks of
consecutive ranks, or ranks with a stride, if all operations then overlap in time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elbowroom.diagnose.calls import COLLECTIVES, RECEIVES, SENDS, RankCalls
from elbowroom.profile.matching import ROOT_FIRST, base_name, dense, match

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

EAGER = 1 << 16
"""Bytes of a rooted operation up to which a rank need not wait for those that it sends to."""
COPIED = 0.02
"""Share of the messages of a size that end without the other rank, if the library needs it for none."""
TO_ROOT = ("Reduce", "Gather", "Gatherv")
"""Operations in which the root waits for all."""
OVERLAPPING = 0.9
"""Share of the operations of a group of ranks that overlap in time, if the group is a communicator."""


class Posts(NamedTuple):
    """Operations of a rank with one other rank, or of one function, in order: ns and bytes. `first`: the
    first post, and `later`, how much later than the one before each is; `in_call`, `lasted`: from the post
    until the call that completes it begins, and until it is complete.
    """

    first: int
    later: npt.NDArray[np.unsignedinteger]
    in_call: npt.NDArray[np.float32]
    lasted: npt.NDArray[np.float32]
    bytes: npt.NDArray[np.uint32]

    @property
    def begin(self) -> Ints:
        """When each of them was posted, ns."""
        return self.first + np.cumsum(self.later, dtype=np.int64)

    def entered(self, begin: Ints) -> Ints:
        """When the call that completes each of them begins, ns; `begin`: theirs, added up once."""
        return begin + self.in_call.astype(np.int64)

    def end(self, begin: Ints) -> Ints:
        """When each of them is complete, ns."""
        return begin + self.lasted.astype(np.int64)


class CalledTogether(NamedTuple):
    """The last `n` operations of a function that these ranks called together. (n,): when the last one called
    it and which, when the last one entered the call that completed it.
    """

    ranks: tuple[int, ...]
    last: Ints
    who: npt.NDArray[np.int32]
    entered: Ints
    first_of: Mapping[int, Ints]


class Readiness(NamedTuple):
    """Of O operations of a rank: `ready`: when both ends, or all ranks, were there, ns; `partner`: who was
    last, -1 if it was the rank itself or nobody is known; `entered`: since when a partner is in the call in
    which it completed its end; `matched`: whether its partner is known.
    """

    ready: Ints
    partner: npt.NDArray[np.int32]
    entered: Ints
    matched: Bools


Key = tuple[int, int]


class Partners:
    """What all ranks posted, by rank."""

    def __init__(self, ranks: Sequence[int], names: Sequence[str], size: int) -> None:
        self.ranks, self.names, self.size = tuple(ranks), tuple(names), size
        self._sends: dict[tuple[int, int], Posts] = {}
        self._receives: dict[tuple[int, int], Posts] = {}
        self._collectives: dict[int, dict[Key, Posts]] = {}
        self._groups: dict[Key, dict[int, CalledTogether]] = {}

    def add(self, own: RankCalls) -> None:
        """The posts of a rank."""
        for peer, some in by_peer(own, SENDS):
            # When a send ended does not matter: a message may be sent long before.
            self._sends[own.rank, peer] = _posts(own, some)._replace(lasted=np.zeros(0, np.float32))
        for peer, some in by_peer(own, RECEIVES):
            self._receives[peer, own.rank] = _posts(own, some)
        self._collectives[own.rank] = {key: _posts(own, some) for key, some in by_function(own)}

    def readiness(self, own: RankCalls) -> Readiness:
        """When the partners of each operation of a rank were there; each rank is asked for once."""
        operations = own.operations
        count = len(operations.begin)
        result = Readiness(
            operations.begin.copy(),
            np.full(count, -1, np.int32),
            np.zeros(count, np.int64),
            np.zeros(count, bool),
        )
        for peer, some in by_peer(own, SENDS):
            theirs = self._receives.pop((own.rank, peer), None)
            if theirs is not None:
                self._with_receives(own, some, peer, theirs, result)
        for peer, some in by_peer(own, RECEIVES):
            theirs = self._sends.pop((peer, own.rank), None)
            if theirs is not None:
                self._with_sends(own, some, peer, theirs, result)
        for key, some in by_function(own):
            self._with_ranks(own, key, some, result)
        return result

    def _with_sends(self, own: RankCalls, some: Ints, peer: int, sent: Posts, result: Readiness) -> None:
        operations = own.operations
        a, b = _matched(operations.bytes[some], sent.bytes)
        at, begin = some[a], sent.begin
        begin, entered, end = begin[b], sent.entered(begin)[b], operations.end[at]
        good = begin <= end
        if not good.all():
            at, begin, entered, end = at[good], begin[good], entered[good], end[good]
        _wait_for(result, at, begin, peer)
        # What came before the sender was in its call again needed no sender. So do others of its size.
        alone = _of_such_sizes(operations.bytes[at], entered > end)
        result.entered[at], result.matched[at] = np.where(alone, 0, entered), True

    def _with_receives(self, own: RankCalls, some: Ints, peer: int, posted: Posts, result: Readiness) -> None:
        operations = own.operations
        a, b = _matched(operations.bytes[some], posted.bytes)
        at, begin = some[a], posted.begin
        good = posted.end(begin)[b] >= operations.begin[at]
        begin, entered = begin[b], posted.entered(begin)[b]
        if not good.all():
            at, begin, entered = at[good], begin[good], entered[good]
        result.matched[at] = True
        # What ended before its receive was posted was copied by the library. So are others of its size.
        waits = ~_of_such_sizes(operations.bytes[at], begin > operations.end[at])
        if not waits.all():
            at, begin, entered = at[waits], begin[waits], entered[waits]
        _wait_for(result, at, begin, peer)
        result.entered[at] = entered

    def _with_ranks(self, own: RankCalls, key: Key, some: Ints, result: Readiness) -> None:
        group = self._group(key, own.rank)
        if group is None:
            return
        operations = own.operations
        count = min(len(some), len(group.last))
        at, last = some[len(some) - count :], group.last[len(group.last) - count :]
        who, entered = group.who[len(group.who) - count :], group.entered[len(group.entered) - count :]
        name, root = base_name(self.names[key[0]]), operations.peer[at]
        waits = np.ones(count, dtype=bool)
        if name in ROOT_FIRST:
            last, who = last.copy(), who.copy()
            small = operations.bytes[at] <= EAGER
            waits = ~small | (root != own.rank)
            for one in np.unique(root[small]):
                begins = group.first_of.get(int(one))
                mine = small & (root == one)
                if begins is not None:
                    last[mine], who[mine] = begins[len(begins) - count :][mine], one
        elif name in TO_ROOT:
            waits = (operations.bytes[at] > EAGER) | (root == own.rank)
        good = waits & (last <= operations.end[at])
        at, last, who, entered = at[good], last[good], who[good], entered[good]
        _wait_for(result, at, last, who)
        result.entered[at], result.matched[at] = entered, True

    def _group(self, key: Key, rank: int) -> CalledTogether | None:
        """The ranks that call this function together with `rank`."""
        if key not in self._groups:
            self._groups[key] = self._grouped(key)
        return self._groups[key].get(rank)

    def _grouped(self, key: Key) -> dict[int, CalledTogether]:
        posts = {rank: own[key] for rank, own in self._collectives.items() if key in own}
        for members in _communicators(key[1], self.size):
            there = [[rank for rank in one if rank in posts] for one in members]
            groups = [_together(one, posts) for one in there if one]
            if groups and all(group is not None for group in groups):
                return {rank: group for group in groups if group is not None for rank in group.ranks}
        return {}


def _wait_for(result: Readiness, at: Ints, time: Ints, who: int | npt.NDArray[np.int32]) -> None:
    """Operations `at` (N,) are not ready before each `time`, at which `who` was there."""
    ready = result.ready[at]
    later = time > ready
    result.ready[at] = np.maximum(ready, time)
    result.partner[at] = np.where(later, who, result.partner[at])


def _communicators(members: int, size: int) -> Iterator[list[range]]:
    """How `size` ranks may be split into communicators of so many members: all, blocks, strides."""
    if members in (-1, size):
        yield [range(size)]
    elif members > 1:
        yield [range(first, min(first + members, size)) for first in range(0, size, members)]
        stride = max(1, size // members)
        yield [range(first, size, stride) for first in range(stride)]


def _together(ranks: Sequence[int], posts: Mapping[int, Posts]) -> CalledTogether | None:
    """These ranks as one communicator; None if their operations do not overlap in time."""
    count = min(len(posts[rank].later) for rank in ranks)
    last = np.full(count, np.iinfo(np.int64).min)
    entered, first_end = last.copy(), np.full(count, np.iinfo(np.int64).max)
    who = np.full(count, -1, dtype=np.int32)
    first_of = {}
    for rank in ranks:
        own = posts[rank]
        first, begin = len(own.later) - count, own.begin
        np.maximum(entered, own.entered(begin)[first:], out=entered)
        np.minimum(first_end, own.end(begin)[first:], out=first_end)
        begin = begin[first:]
        who[begin > last] = rank
        np.maximum(last, begin, out=last)
        first_of[rank] = begin
    whole = len(ranks) == len(posts)
    if not whole and count and float((last <= first_end).mean()) < OVERLAPPING:
        return None
    return CalledTogether(tuple(ranks), last, who, entered, first_of)


def _of_such_sizes(size: Ints, shown: Bools) -> Bools:
    """Whether something is `shown` of more than a few messages (N,) of each one's `size`, or of itself."""
    if not shown.any():
        return shown
    which = dense(size)
    whole = np.bincount(which)
    count = np.bincount(which[shown], minlength=len(whole))
    result: Bools = shown | (count > COPIED * whole)[which]
    return result


def _posts(own: RankCalls, some: Ints) -> Posts:
    operations, calls = own.operations, own.calls
    call, end = operations.call[some], operations.end[some]
    entered = np.where(call >= 0, calls.begin[call], end) if len(calls.begin) else end
    size = np.minimum(operations.bytes[some], np.iinfo(np.uint32).max).astype(np.uint32)
    begin = operations.begin[some]
    later = np.diff(begin, prepend=begin[:1])
    if len(size) and size.min() == size.max():
        size = np.broadcast_to(size[:1].copy(), len(size))  # takes no memory
    return Posts(
        int(begin[0]),
        later.astype(np.min_scalar_type(int(later.max()))),  # what others need of all ranks is most of memory
        (entered - begin).astype(np.float32),
        (end - begin).astype(np.float32),
        size,
    )


def by_peer(own: RankCalls, kinds: tuple[int, ...]) -> Iterator[tuple[int, Ints]]:
    """The operations of these kinds with each other rank, in order of their post."""
    some = own.operations.of_kinds(kinds)
    yield from _split(some, own.operations.peer[some], own.rank)


def by_function(own: RankCalls) -> Iterator[tuple[Key, Ints]]:
    """The collective operations of each function and size of the communicator, in order of their post."""
    some = own.operations.of_kinds(COLLECTIVES)
    members = own.operations.members[some]
    for name, ofs in _split(some, own.operations.name[some].astype(np.int32), -1):
        sizes = own.operations.members[ofs]
        for size in np.unique(members):
            part = ofs[sizes == size]
            if len(part):
                yield (name, int(size)), part


def _split(some: Ints, by: npt.NDArray[np.int32], without: int) -> Iterator[tuple[int, Ints]]:
    """The indices `some` for each value of `by` from 0 on but one."""
    if not len(some):
        return
    first, last = int(by.min()), int(by.max())
    if first == last:
        groups = [(first, some)]
    else:
        narrow = by.astype(np.int16) if last < np.iinfo(np.int16).max else by
        order = np.argsort(narrow, kind="stable")
        edges = np.flatnonzero(np.diff(by[order])) + 1
        groups = [(int(by[part[0]]), some[part]) for part in np.split(order, edges)]
    yield from ((value, part) for value, part in groups if value >= 0 and value != without)


def _matched(own: npt.NDArray[np.integer], theirs: npt.NDArray[np.uint32]) -> tuple[Ints, Ints]:
    """Which of two sequences of bytes belong together: indices in both, from the last one on."""
    own = np.minimum(own, np.iinfo(np.uint32).max)
    count = min(len(own), len(theirs))
    a = np.arange(len(own) - count, len(own))
    b = np.arange(len(theirs) - count, len(theirs))
    if (own[a] == theirs[b]).all():
        return a, b
    a, b = match(own[:, None].astype(np.int64), theirs[:, None].astype(np.int64))
    left, right = np.setdiff1d(np.arange(len(own)), a, True), np.setdiff1d(np.arange(len(theirs)), b, True)
    rest = min(len(left), len(right))
    return (
        np.concatenate([a, left[len(left) - rest :]]),
        np.concatenate([b, right[len(right) - rest :]]),
    )
