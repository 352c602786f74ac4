"""Spans of time of many groups at once: unions, what they cover, how many overlap, amounts over time.

A span is a begin and an end, N of each; `group` (N,) says to which rank or node it belongs.

How long ranks waited for their nonblocking operations, in MPI_Wait and its family.

A rank that waits in the completing call has not overlapped that part of the operation, whatever it computed
before. Waiting also shows when data was transferred: not before the wait was over. Most MPI libraries
transfer large messages and run collective operations inside calls only, unless they have a progress thread.

When a rank computes: not just outside MPI.

A rank that tests its operations in a loop is outside MPI between two tests. Tests that completed nothing have
no records, but are counted. Where a rank tests so often while an operation is pending that nothing useful
fits between, it waits, and the time is that of MPI. A rank whose thread communicates while others compute
computes inside MPI, too, while its operations are pending.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.profile import rank_file as f
from elbowroom.profile.profile import MpiEvents, Profile

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Union(msgspec.Struct, frozen=True):
    """Spans of each group that do not touch each other, in order of group and time."""

    group: Ints
    begin: Floats
    end: Floats

    def covered(self, group: Ints, begin: Floats, end: Floats) -> Floats:
        """How much of each span [begin, end] of `group` these cover, in time."""
        return self._until(group, end) - self._until(group, begin)

    def _until(self, group: Ints, time: Floats) -> Floats:
        """Time covered in a group before `time`."""
        if not len(self.begin):
            return np.zeros(len(time))
        total = np.concatenate([[0.0], np.cumsum(self.end - self.begin)])
        wide = _width(self.end, time)
        at = np.searchsorted(self.begin + self.group * wide, time + group * wide, side="right")
        first = np.searchsorted(self.group, group)
        inside = at > first
        last = np.maximum(at - 1, 0)
        over = np.where(inside, np.maximum(self.end[last] - time, 0.0), 0.0)
        return np.where(inside, total[at] - total[first] - over, 0.0)


def _width(*times: Floats) -> float:
    return 1.0 + 2.0 * max(float(np.abs(some).max(initial=0.0)) for some in times)


def union(group: Ints, begin: Floats, end: Floats) -> Union:
    """The spans of each group, joined where they overlap or touch."""
    if not len(group):
        return Union(group, begin, end)
    order = np.lexsort((begin, group))
    group, begin, end = group[order], begin[order], end[order]
    shift = group * _width(begin, end)
    until = np.maximum.accumulate(end + shift)
    first = np.flatnonzero(np.concatenate([[True], begin[1:] + shift[1:] > until[:-1]]))
    last = np.concatenate([first[1:] - 1, [len(group) - 1]])
    return Union(group[first], begin[first], until[last] - shift[last])


def joined(*some: Union) -> Union:
    """The time that any of these covers."""
    return union(
        np.concatenate([one.group for one in some]),
        np.concatenate([one.begin for one in some]),
        np.concatenate([one.end for one in some]),
    )


def complement(spans: Union, groups: Ints, first: float, last: float) -> Union:
    """Of each of these groups, the time between `first` and `last` that no span covers."""
    parts = []
    for group in groups:
        own = (spans.group == group) & (spans.end > first) & (spans.begin < last)
        begin = np.concatenate([[first], spans.end[own]])
        end = np.concatenate([spans.begin[own], [last]])
        some = end > begin
        parts.append(Union(np.full(int(some.sum()), group), begin[some], end[some]))
    return joined(*parts)


def without(spans: Union, others: Union) -> Union:
    """The time that these cover and the others do not."""
    if not len(spans.group):
        return spans
    groups = np.unique(spans.group)
    ends = float(spans.begin.min()), float(spans.end.max())
    return complement(joined(complement(spans, groups, *ends), others), groups, *ends)


def levels(begin: Floats, end: Floats, duration: float, most: int) -> Floats:
    """(most + 1,) time of [0, duration] in which 0, 1, 2 … of these spans are there at once."""
    times = np.clip(np.concatenate([begin, end, [0.0, duration]]), 0.0, duration)
    steps = np.concatenate([np.ones(len(begin)), -np.ones(len(end)), [0.0, 0.0]])
    order = np.lexsort((steps, times))
    count = np.cumsum(steps[order])[:-1].astype(np.int64)
    lengths = np.diff(times[order])
    return np.bincount(np.clip(count, 0, most), weights=lengths, minlength=most + 1).astype(np.float64)


def amounts(begin: Floats, end: Floats, amount: Floats, edges: Floats) -> Floats:
    """(edges - 1,) how much of the amounts, each spread evenly over its span, is between two edges each."""
    result = np.zeros(len(edges) - 1)
    long = end > begin
    if long.any():
        rate = amount[long] / (end[long] - begin[long])
        times = np.concatenate([begin[long], end[long]])
        order = np.argsort(times, kind="stable")
        rates = np.cumsum(np.concatenate([rate, -rate])[order])
        there = np.concatenate([[0.0], np.cumsum(rates[:-1] * np.diff(times[order]))])
        result += np.diff(np.interp(edges, times[order], there))
    if not long.all():
        at = np.clip(np.searchsorted(edges, begin[~long], side="right") - 1, 0, len(result) - 1)
        result += np.bincount(at, weights=amount[~long], minlength=len(result))
    return result


SHORTEST = 5e-6
"""Seconds: MPI_Wait takes so long at most if all is complete."""
FASTEST = 5e10
"""B/s: no transfer is faster, so a shorter wait is not its duration."""


class Waits(msgspec.Struct, frozen=True, kw_only=True):
    """E records of a profile. `call`: the record of the call of MPI_Wait's family in which the operation was
    completed, -1 where there is none; `begin`: of that call, `end`: of the record, seconds; `tests`: whether
    its rank calls MPI_Test and its family while operations are pending.
    """

    call: Ints
    begin: Floats
    end: Floats
    tests: Bools

    def waited(self, which: Ints, begin: Floats, end: Floats) -> Floats:
        """Seconds of the spans [begin, end] of the records `which` that are in their completing calls."""
        since, until = np.maximum(self.begin[which], begin), np.minimum(self.end[which], end)
        return np.where(self.call[which] >= 0, np.maximum(until - since, 0.0), 0.0)


def find_waits(profile: Profile) -> Waits:
    """The waits for the nonblocking operations of a profile."""
    events = profile.events
    names = np.array([name.startswith("MPI_Wait") for name in events.names] or [False])
    waiting = np.flatnonzero(events.is_call & (events.kind == f.COMPLETION) & names[events.call])
    spans = np.flatnonzero(events.is_span & ~events.is_open)
    call = np.full(len(events.rank), -1)
    if len(waiting) and len(spans):
        wide = int(events.end.max()) + 1
        ends = events.rank[waiting] * wide + events.end[waiting]
        order = np.argsort(ends, kind="stable")
        at = np.searchsorted(ends[order], events.rank[spans] * wide + events.end[spans])
        waits = waiting[order[np.minimum(at, len(order) - 1)]]
        inside = (
            (at < len(order))
            & (events.rank[waits] == events.rank[spans])
            & (events.begin[waits] <= events.end[spans])
            & (events.begin[waits] >= events.begin[spans])
        )
        call[spans[inside]] = waits[inside]
    begin = np.where(call >= 0, events.begin[np.maximum(call, 0)], events.end) if len(call) else call
    return Waits(
        call=call,
        begin=begin / 1e9,
        end=events.end / 1e9,
        tests=_testing(profile, events, spans)[events.rank],
    )


def _testing(profile: Profile, events: MpiEvents, spans: Ints) -> Bools:
    """(size,) ranks that test at least once for each of their operations."""
    operations = np.bincount(events.rank[spans], minlength=profile.size)
    tests = np.zeros(profile.size)
    for own in profile.ranks:
        tests[own.rank] = sum(kind.count for kind in own.call_kinds if kind.name in TESTS)
    result: Bools = (tests > 0) & (tests >= operations)
    return result


OFTEN = 200e-6
"""Mean seconds between two tests of a rank that polls: a short sleep fits in, useful computation does not."""

TESTS = ("MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome")
_POSTED = (f.POSTED_SEND, f.POSTED_RECEIVE, f.POSTED_COLLECTIVE)


def time_in_mpi(profile: Profile, *, has_communication_threads: bool = False) -> Union:
    """When each rank is inside MPI and does not compute, s."""
    events = profile.events
    called = Union(events.rank[events.is_call], *_seconds(events, events.is_call))
    inside = joined(called, polled(profile))
    return without(inside, _pending(events, moves_data=True)) if has_communication_threads else inside


def _seconds(events: MpiEvents, some: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    return events.begin[some] / 1e9, events.end[some] / 1e9


def _pending(events: MpiEvents, *, moves_data: bool = False) -> Union:
    """From post to completion of the nonblocking operations; with `moves_data` without barriers."""
    some = np.isin(events.kind, _POSTED) & events.is_span & ~events.is_open
    if moves_data:
        some &= events.bytes > 0
    return union(events.rank[some], *_seconds(events, some))


def polled(profile: Profile) -> Union:
    """When polling ranks wait for their operations."""
    all_of_them = _pending(profile.events)
    waiting = []
    for own in profile.ranks:
        tests = sum(kind.count for kind in own.call_kinds if kind.name in TESTS)
        mine = all_of_them.group == own.rank
        length = float((all_of_them.end[mine] - all_of_them.begin[mine]).sum())
        if tests and length / tests < OFTEN:
            waiting.append(own.rank)
    which = np.isin(all_of_them.group, waiting)
    return Union(all_of_them.group[which], all_of_them.begin[which], all_of_them.end[which])
