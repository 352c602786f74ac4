"""The time in each call of a rank, in exclusive parts (docs/reference/account.md has their order).

A call waits until both ends of its messages, or all ranks of its collective operation, are there. What
follows is the transfer, up to what like calls take alone. What is left has a cause, or is not explained.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from elbowroom.diagnose.calls import POSTED, SENDS, RankCalls, are_of
from elbowroom.diagnose.partners import Readiness
from elbowroom.profile.matching import dense
from elbowroom.profile.spans import FASTEST, SHORTEST

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SHORT_NS = round(SHORTEST * 1e9)
LIKE = 10
"""Like calls that show a fastest decile; of fewer, the fastest one counts."""
MANY = 5
"""Calls whose messages nothing could hide: with so many of them, only these show what a transfer takes."""


class Completed(NamedTuple):
    """N calls that completed operations: `call`: their indices; `ready`: when the last operation was ready,
    ns, not before the call; `partner`: who it waited for; `critical`: the operation that was ready last;
    `entered`: when all partners were in their calls; `posted`: the first post; `known`: whether all partners
    are known; `bytes` of its `operations`, how many.
    """

    call: Ints
    ready: Ints
    partner: npt.NDArray[np.int32]
    critical: Ints
    entered: Ints
    known: Bools
    bytes: Ints
    operations: Ints


class WaitParts(NamedTuple):
    """Of the calls in `completed`, (N,) ns each: `waited` until the operations were ready; `alone`: what like
    calls take from then on; the transfer up to that, of which `hidden` could have been hidden by what the
    rank computed before the call; `room`: how much more could have; `peer`: beyond it, until all partners
    were in their calls; `extra`: rest.
    """

    waited: Ints
    alone: Ints
    transfer: Ints
    hidden: Ints
    room: Ints
    peer: Ints
    extra: Ints

    def part(self, some: Ints) -> WaitParts:
        """Those of some calls."""
        return WaitParts(*(column[some] for column in self))


def completed_by_calls(own: RankCalls, readiness: Readiness) -> Completed:
    """The calls that completed operations, and when these were ready."""
    operations, calls = own.operations, own.calls
    first = int(np.searchsorted(operations.call, 0))
    call = operations.call[first:]
    starts = np.flatnonzero(np.concatenate([[True], call[1:] != call[:-1]])[: len(call)])
    which = call[starts].astype(np.int64)
    if not len(which):
        none = np.zeros(0, dtype=np.int64)
        return Completed(none, none, none.astype(np.int32), none, none, none > 0, none, none)
    count = np.diff(np.append(starts, len(call)))
    # A partner that came after the end was not needed: the library had copied the data.
    entered = readiness.entered[first:]
    entered = np.where(entered < operations.end[first:], entered, 0)
    ready = readiness.ready[first:]
    latest = np.maximum.reduceat(ready, starts)
    if len(starts) == len(call):
        critical = starts + first
    else:
        candidates = np.flatnonzero(ready == np.repeat(latest, count))
        group = np.repeat(np.arange(len(starts)), count)[candidates]
        critical = candidates[np.concatenate([[True], group[1:] != group[:-1]])] + first
    return Completed(
        call=which,
        ready=np.clip(latest, calls.begin[which], calls.end[which]),
        partner=readiness.partner[critical],
        critical=critical,
        entered=np.maximum.reduceat(entered, starts),
        known=np.logical_and.reduceat(readiness.matched[first:], starts),
        bytes=np.add.reduceat(operations.bytes[first:], starts),
        operations=count,
    )


def wait_parts(own: RankCalls, readiness: Readiness, completed: Completed) -> WaitParts:
    """The parts of the time in these calls."""
    calls, at = own.calls, completed.call
    begin, end = calls.begin[at], calls.end[at]
    waited = completed.ready - begin
    since = end - completed.ready
    ready = readiness.ready[completed.critical]
    early = np.flatnonzero(_hideable(own, completed) & (ready < begin))
    computed = np.zeros(len(at), dtype=np.int64)
    outside = calls.outside_before()
    computed[early] = outside[at[early]] - calls.outside_until(ready[early], outside)
    entered = np.clip(completed.entered, completed.ready, end)
    moved = end - entered
    alone = _alone(_classes(own, completed), moved, completed.bytes, computed)
    transfer = np.minimum(since, alone)
    hidden = np.where(since >= SHORT_NS, np.minimum(transfer, computed), 0)
    extra = since - transfer
    peer = np.minimum(extra, entered - completed.ready)
    return WaitParts(waited, alone, transfer - hidden, hidden, computed - hidden, peer, extra - peer)


def _hideable(own: RankCalls, completed: Completed) -> Bools:
    """Whether the call completes what another one posted."""
    return are_of(own.operations.kind[completed.critical], POSTED)


def _classes(own: RankCalls, completed: Completed) -> Ints:
    """A number for each call, the same for like calls: function, number of operations, bytes (to 20 %),
    whether it sends.
    """
    operations, critical = own.operations, completed.critical
    size = np.log2(completed.bytes + 1.0)
    key = dense(own.calls.name[completed.call])
    for column, width in (
        (operations.name[critical], int(operations.name.max(initial=0)) + 1),
        (np.minimum(completed.operations, 63), 64),
        (np.round(size * 4).astype(np.int64), 256),
        (are_of(operations.kind[critical], SENDS), 2),
    ):
        key = key * width + column
    return dense(key)


def _alone(classes: Ints, moved: Ints, size: Ints, computed: Ints) -> Ints:
    """What the operations of each call take alone: the fastest decile of like calls in which they moved."""
    possible = moved >= size / FASTEST * 1e9
    sure = possible & (4 * computed <= moved)
    alone = np.zeros(int(classes.max(initial=-1)) + 1, dtype=np.int64)
    order = np.argsort(classes.astype(np.min_scalar_type(len(alone))), kind="stable")
    edges = np.searchsorted(classes[order], np.arange(len(alone) + 1))
    for one in range(len(alone)):
        members = order[edges[one] : edges[one + 1]]
        own = members[sure[members]]
        if len(own) < MANY:
            own = members[possible[members]]
        if len(own):
            times, rank = moved[own], len(own) // LIKE
            alone[one] = np.partition(times, rank)[rank]
        else:
            alone[one] = np.ceil(size[members].max() / FASTEST * 1e9)
    result: Ints = alone[classes]
    return result
