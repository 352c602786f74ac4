"""When a rank computes: not just outside MPI.

A rank that tests its operations in a loop is outside MPI between two tests. Tests that completed nothing have
no records, but are counted. Where a rank tests so often while an operation is pending that nothing useful
fits between, it waits, and the time is that of MPI. A rank whose thread communicates while others compute
computes inside MPI, too, while its operations are pending.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from elbowroom.profile import rank_file as f
from elbowroom.profile.profile import Events, Profile
from elbowroom.profile.spans import Union, joined, union, without

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

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
