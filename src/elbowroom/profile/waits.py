"""How long ranks waited for their nonblocking operations, in MPI_Wait and its family.

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
from elbowroom.profile.profile import Events, Profile
from elbowroom.profile.spans import Union, joined, union, without

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

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


def _testing(profile: Profile, events: Events, spans: Ints) -> Bools:
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


def _seconds(events: Events, some: npt.NDArray[np.bool_]) -> tuple[Floats, Floats]:
    return events.begin[some] / 1e9, events.end[some] / 1e9


def _pending(events: Events, *, moves_data: bool = False) -> Union:
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
