"""Waiting by polling: a rank that tests its operations in a loop is outside MPI between two tests.

Tests that completed nothing have no records, but are counted. Where a rank tests so often while an operation
is pending that nothing useful fits between, it waits, and the time is that of MPI.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from elbowroom.profile import rank_file as f
from elbowroom.profile.profile import Events, Profile
from elbowroom.profile.spans import union

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

OFTEN = 200e-6
"""Mean seconds between two tests of a rank that polls: a short sleep fits in, useful computation does not."""

_TESTS = ("MPI_Test", "MPI_Testall", "MPI_Testany", "MPI_Testsome")
_POSTED = (f.POSTED_SEND, f.POSTED_RECEIVE, f.POSTED_COLLECTIVE)


def pending(events: Events, *, moves_data: bool = False) -> tuple[Ints, Floats, Floats]:
    """Rank, post and completion (s) of the nonblocking operations; with `moves_data` without barriers."""
    some = np.isin(events.kind, _POSTED) & events.is_span & ~events.is_open
    if moves_data:
        some &= events.bytes > 0
    return events.rank[some], events.begin[some] / 1e9, events.end[some] / 1e9


def polled(profile: Profile) -> tuple[Ints, Floats, Floats]:
    """Rank, begin and end (s) of the operations that polling ranks wait for."""
    rank, begin, end = pending(profile.events)
    all_of_them = union(rank, begin, end)
    waiting = []
    for own in profile.ranks:
        tests = sum(kind.count for kind in own.call_kinds if kind.name in _TESTS)
        mine = all_of_them.group == own.rank
        length = float((all_of_them.end[mine] - all_of_them.begin[mine]).sum())
        if tests and length / tests < OFTEN:
            waiting.append(own.rank)
    which = np.isin(all_of_them.group, waiting)
    return all_of_them.group[which], all_of_them.begin[which], all_of_them.end[which]
