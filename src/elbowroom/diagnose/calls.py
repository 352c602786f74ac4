"""What one rank did: its calls, which never overlap, and the operations that each of them completes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elbowroom.profile import rank_file as f
from elbowroom.profile.rank_file import RankFile
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

    def outside_until(self, time: Ints) -> Ints:
        """How long the rank was outside MPI until each `time` (N,), ns, counted from 0."""
        inside = np.concatenate([[0], np.cumsum(self.end - self.begin)]).astype(np.int64)
        at = np.searchsorted(self.begin, time, side="right")
        last = np.maximum(at - 1, 0)
        over = np.where(at > 0, np.maximum(self.end[last] - time, 0), 0) if len(self.end) else 0
        outside: Ints = time - (inside[at] - over)
        return outside


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
        some = np.flatnonzero(_lookup(kinds)[self.kind])
        begin = self.begin[some]
        return some if (begin[1:] >= begin[:-1]).all() else some[np.argsort(begin, kind="stable")]


class RankCalls(NamedTuple):
    """A rank with its calls, and the operations in order of their calls."""

    rank: int
    calls: CallTable
    operations: OperationTable


def _lookup(kinds: tuple[int, ...]) -> Bools:
    result = np.zeros(256, dtype=bool)
    result[list(kinds)] = True
    return result


_MOVING = _lookup((*SENDS, *RECEIVES, *COLLECTIVES, f.ONE_SIDED))


def calls_of_rank(rank: RankFile, start: int, number: Mapping[str, int]) -> RankCalls:
    """The calls and operations in the file of a rank.

    `start`: ns on its clock that are the job's start; `number`: of each function's name.
    """
    records = rank.kept
    flags, kind = records["flags"], records["kind"]
    names = np.array([number[one.name] for one in rank.call_kinds], dtype=np.int16)[rank.call_of]
    is_call = (flags & f.CALL) > 0
    at = np.flatnonzero(is_call)
    begin = records["begin"][at].astype(np.int64) - start
    if not (begin[1:] >= begin[:-1]).all():
        order = np.argsort(begin, kind="stable")
        at, begin = at[order], begin[order]
    end = records["end"][at].astype(np.int64) - start
    if (begin[1:] < end[:-1]).any():
        # CallTable of several threads: the time of both counts once.
        end = np.maximum.accumulate(end)
        begin[1:] = np.maximum(begin[1:], end[:-1])
    site = np.zeros(len(at), np.int32) if rank.sites is None else records["call"][at].astype(np.int32)
    calls = CallTable(begin, end, kind[at], names[records["call"][at]], site)
    operations = _operations(records, start, names, at, calls)
    if _polls(rank, calls, operations, number):
        calls = _with_polls(calls, operations, number)
    return RankCalls(rank.rank, calls, operations)


def _operations(
    records: f.Records, start: int, names: npt.NDArray[np.int16], at: Ints, calls: CallTable
) -> OperationTable:
    some = np.flatnonzero(_MOVING[records["kind"]] & ((records["flags"] & f.OPEN) == 0))
    end = records["end"][some].astype(np.int64) - start
    own = np.full(len(records), -1, dtype=np.int32)
    own[at] = np.arange(len(at), dtype=np.int32)
    call = own[some]
    span = np.flatnonzero(call < 0)
    if len(span) and len(at):
        # What a call completes is recorded just before it, unless other threads record meanwhile.
        following = np.cumsum((records["flags"] & f.CALL) > 0, dtype=np.int32)[some[span]]
        call[span] = _inside(calls, np.minimum(following, len(at) - 1), end[span])
        other = span[call[span] < 0]
        place = np.minimum(np.searchsorted(calls.end, end[other]), len(at) - 1)
        call[other] = _inside(calls, place, end[other])
    if not (call[1:] >= call[:-1]).all():
        order = np.argsort(call, kind="stable")
        some, call, end = some[order], call[order], end[order]
    peer = records["peer"][some]
    return OperationTable(
        begin=records["begin"][some].astype(np.int64) - start,
        end=end,
        bytes=records["bytes"][some].astype(np.int64),
        peer=np.maximum(peer, -1),
        members=np.where(peer < -1, -peer - 1, -1),
        kind=records["kind"][some],
        name=names[records["call"][some]],
        call=call,
    )


def _inside(calls: CallTable, place: npt.NDArray[np.integer], time: Ints) -> npt.NDArray[np.integer]:
    """`place`, the index of a call, where each `time` is inside it; else -1."""
    return np.where((calls.begin[place] <= time) & (time <= calls.end[place]), place, -1)


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
