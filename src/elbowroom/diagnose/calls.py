"""What one rank did: its calls, which never overlap, and the operations that each of them completes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elbowroom.profile import rank_file as f
from elbowroom.profile.rank_file import RankFile, columns_of, release
from elbowroom.profile.spans import TESTS

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SENDS = (f.SEND, f.SENDRECV, f.POSTED_SEND)
RECEIVES = (f.RECEIVE, f.POSTED_RECEIVE)
COLLECTIVES = (f.COLLECTIVE, f.BARRIER, f.POSTED_COLLECTIVE)
POSTED = (f.POSTED_SEND, f.POSTED_RECEIVE, f.POSTED_COLLECTIVE)
POLLING = 0.2
"""A rank polls if it is inside tests for this share of the time before those that complete something: a
program that computes between two tests is inside them for a few percent of it, unless they move its data."""
PAUSE_NS = 20_000
"""A rank that only polls is out of its tests for less than this between two of them."""


class CallTable(NamedTuple):
    """(C,) calls of a rank in order of time, ns since the job's start: no two of them overlap."""

    begin: Ints
    end: Ints
    kind: npt.NDArray[np.uint8]
    name: npt.NDArray[np.int16]
    site: npt.NDArray[np.int32]

    def outside_before(self) -> Ints:
        """How long the rank was outside MPI before each call, ns, counted from 0."""
        length = self.end - self.begin
        outside: Ints = self.begin - np.cumsum(length) + length
        return outside

    def outside_until(self, time: Ints, before: Ints) -> Ints:
        """Likewise until each `time` (N,); `before`: that before each call."""
        last = np.searchsorted(self.begin, time, side="right") - 1
        return np.where(last >= 0, before[last] + np.maximum(time - self.end[last], 0), time)


class OperationTable(NamedTuple):
    """(O,) messages and collective operations of a rank. `begin`: of their post, ns; `peer`: the other rank
    or the root, -1 without one; `members`: of the communicator, -1 where not known; `call`: index of the call
    that completed each of them.
    """

    begin: Ints
    end: Ints
    bytes: Ints
    peer: npt.NDArray[np.int32]
    members: npt.NDArray[np.int32]
    kind: npt.NDArray[np.uint8]
    name: npt.NDArray[np.int16]
    call: npt.NDArray[np.int32]

    def of_kinds(self, kinds: tuple[int, ...]) -> Ints:
        """Indices of those of these kinds, in order of their post."""
        some = np.flatnonzero(are_of(self.kind, kinds))
        begin = self.begin[some]
        return some if (begin[1:] >= begin[:-1]).all() else some[np.argsort(begin, kind="stable")]


class RankCalls(NamedTuple):
    """A rank with its calls, and the operations in order of their calls."""

    rank: int
    calls: CallTable
    operations: OperationTable


def are_of(kind: npt.NDArray[np.uint8], kinds: tuple[int, ...]) -> Bools:
    """Whether each `kind` is one of these: bits of a number take a third of the time of a table."""
    bits = np.uint16(sum(1 << one for one in kinds))
    result: Bools = (bits >> kind & np.uint16(1)) > 0
    return result


_MOVING = (*SENDS, *RECEIVES, *COLLECTIVES, f.ONE_SIDED)


def calls_of_rank(rank: RankFile, start: int, number: Mapping[str, int]) -> RankCalls:
    """The calls and operations in the file of a rank.

    `start`: ns on its clock that are the job's start; `number`: of each function's name.
    """
    records = columns_of(rank.kept.view(_SIGNED))
    release(rank.kept)
    names = np.array([number[one.name] for one in rank.call_kinds], dtype=np.int16)[rank.call_of]
    is_call = (records["flags"] & f.CALL) > 0
    at = np.flatnonzero(is_call)
    begin = records["begin"][at] - start
    after = np.cumsum(is_call, dtype=np.int32) - is_call
    if not (begin[1:] >= begin[:-1]).all():
        order = np.argsort(begin, kind="stable")
        at, begin = at[order], begin[order]
        after = _place(order)[np.minimum(after, len(at) - 1)]
    end = records["end"][at] - start
    if (begin[1:] < end[:-1]).any():
        # Calls of several threads: the time of both counts once.
        end = np.maximum.accumulate(end)
        begin[1:] = np.maximum(begin[1:], end[:-1])
    site = records["call"][at]
    calls = CallTable(
        begin,
        end,
        records["kind"][at],
        names[site],
        np.zeros(len(at), np.int32) if rank.sites is None else site.astype(np.int32),
    )
    operations = _operations(records, start, names, after, calls)
    if _polls(rank, calls, operations, number):
        calls = _with_polls(calls, operations, number)
    return RankCalls(rank.rank, calls, operations)


_SIGNED = np.dtype(
    [(name, "<i8" if f.RECORD[name] == np.uint64 else f.RECORD[name]) for name in f.RECORD.names or ()]
)
"""RECORD with times that can be subtracted."""


def _place(order: Ints) -> npt.NDArray[np.int32]:
    """Where each element is in this order."""
    place = np.empty(len(order), np.int32)
    place[order] = np.arange(len(order), dtype=np.int32)
    return place


def _operations(
    records: Mapping[str, npt.NDArray[Any]],
    start: int,
    names: npt.NDArray[np.int16],
    after: npt.NDArray[np.int32],
    calls: CallTable,
) -> OperationTable:
    """`after`: index of the call that each record is of, or that is recorded next."""
    flags = records["flags"]
    some = np.flatnonzero(are_of(records["kind"], _MOVING) & ((flags & f.OPEN) == 0))
    end = records["end"][some] - start
    call = after[some]
    if len(calls.begin):
        # What a call completes is recorded just before it, unless other threads record meanwhile.
        np.minimum(call, len(calls.begin) - 1, out=call)
        other = np.flatnonzero(~_inside(calls, call, end))
        other = other[flags[some[other]] & f.CALL == 0]
        place = np.minimum(np.searchsorted(calls.end, end[other]), len(calls.begin) - 1)
        call[other] = np.where(_inside(calls, place, end[other]), place, -1)
    else:
        call[:] = -1
    if not (call[1:] >= call[:-1]).all():
        order = np.argsort(call, kind="stable")
        some, call, end = some[order], call[order], end[order]
    peer = records["peer"][some]
    members = -1 - peer
    members[members < 1] = -1
    return OperationTable(
        begin=records["begin"][some] - start,
        end=end,
        bytes=records["bytes"][some],
        peer=np.maximum(peer, -1),
        members=members,
        kind=records["kind"][some],
        name=names[records["call"][some]],
        call=call,
    )


def _inside(calls: CallTable, place: npt.NDArray[np.integer], time: Ints) -> Bools:
    """Whether each `time` is inside the call with the index `place`."""
    place = place.astype(np.intp)
    result: Bools = (calls.begin[place] <= time) & (time <= calls.end[place])
    return result


def _tests(calls: CallTable, number: Mapping[str, int]) -> Bools:
    """The tests that completed something."""
    tests = np.isin(calls.name, [number[name] for name in TESTS if name in number])
    result: Bools = (calls.kind == f.COMPLETION) & tests
    return result


def _polls(rank: RankFile, calls: CallTable, operations: OperationTable, number: Mapping[str, int]) -> bool:
    """Whether the rank waits by tests in a loop."""
    tests = [one for one in rank.call_kinds if one.name in TESTS]
    inside, count = sum(one.ns for one in tests), sum(one.count for one in tests)
    if not inside:
        return False
    longer = _with_polls(calls, operations, number)
    before = float((longer.end - longer.begin - calls.end + calls.begin).sum())
    return inside >= POLLING * before and before - inside < PAUSE_NS * count


def _with_polls(calls: CallTable, operations: OperationTable, number: Mapping[str, int]) -> CallTable:
    """The calls where each test that completed something lasts since the call before, or the post."""
    tests = np.flatnonzero(_tests(calls, number))
    first = np.full(len(calls.begin), np.iinfo(np.int64).max)
    known = operations.call >= 0
    np.minimum.at(first, operations.call[known], operations.begin[known])
    before = np.concatenate([[np.iinfo(np.int64).min], calls.end[:-1]])
    begin = calls.begin.copy()
    begin[tests] = np.minimum(begin[tests], np.maximum(before, first)[tests])
    return calls._replace(begin=begin)
