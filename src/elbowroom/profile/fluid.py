"""Messages that share a NIC: when each of them is transferred, if at any time all ranks with messages get the
same bandwidth, and all messages of a rank the same part of it.

That is processor sharing on two levels. The service is how many bytes each active rank has got so far. In a
rank, a message that comes when each of its messages has got v bytes, and has w bytes, is complete at v + w.
So only the order of these values is kept, in heaps, and n messages take O(n log n).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def shared_finish(
    start: Floats, limit: Floats, work: Floats, sender: Ints, totals: Sequence[float]
) -> Floats:
    """When each message is transferred, seconds: never after its `limit`, where it is known to be.

    `start` (N,): from when it can be transferred; `work`: its bytes; `sender`: who has it, from 0; `totals`:
    bandwidth of 0, 1, 2 … senders together (curve.totals), as many as there are senders.
    """
    if not len(start):
        return start
    limit = np.maximum(limit, start)
    finish = np.minimum(start + work / totals[min(1, len(totals) - 1)], limit)
    order = np.argsort(start, kind="stable")
    until = np.maximum.accumulate(limit[order])
    # Most messages of many programs overlap no other one: they need no simulation.
    first = np.r_[True, start[order][1:] >= until[:-1]]
    period = np.cumsum(first) - 1
    crowded = np.bincount(period)[period] > 1
    rest = order[crowded]
    if len(rest):
        finish[rest] = _simulated(start[rest], limit[rest], work[rest], sender[rest], totals)
    return finish


class _Sender:
    """The messages of a rank: `given` bytes to each when the service was `at`."""

    __slots__ = ("at", "count", "given", "queue", "version")

    def __init__(self) -> None:
        self.queue: list[tuple[float, int]] = []
        self.count = self.version = 0
        self.given = self.at = 0.0

    def advance(self, service: float) -> None:
        """Up to this service."""
        if self.count:
            self.given += (service - self.at) / self.count
        self.at = service

    def next_done(self, left: Sequence[bool]) -> float | None:
        """The service at which its next message is complete; None without messages."""
        while self.queue and not left[self.queue[0][1]]:
            heapq.heappop(self.queue)
        return self.at + (self.queue[0][0] - self.given) * self.count if self.queue else None


def _simulated(start: Floats, limit: Floats, work: Floats, sender: Ints, totals: Sequence[float]) -> Floats:
    """The same for messages in order of `start`."""
    starts, limits, works, who = start.tolist(), limit.tolist(), work.tolist(), sender.tolist()
    by_limit = np.argsort(limit, kind="stable").tolist()
    finish = list(limits)
    left = [True] * len(starts)
    ranks = [_Sender() for _ in range(max(who) + 1)]
    due: list[tuple[float, int, int]] = []  # service, rank and its version
    arriving, limiting, active, total = 0, 0, 0, len(starts)
    now = service = 0.0
    while arriving < total or active:
        while due and due[0][2] != ranks[due[0][1]].version:
            heapq.heappop(due)
        while limiting < total and not left[by_limit[limiting]]:
            limiting += 1
        come = starts[arriving] if arriving < total else float("inf")
        now = now if active else come
        rate = totals[active] / active if active else 1.0
        done = now + (due[0][0] - service) / rate if active else float("inf")
        ends = limits[by_limit[limiting]]
        until = min(come, done, ends)
        service += (until - now) * rate
        now = until
        comes = come == until
        if comes:
            one = arriving
        elif done == until:
            service, one = due[0][0], ranks[due[0][1]].queue[0][1]
        else:
            one = by_limit[limiting]
        rank = ranks[who[one]]
        rank.advance(service)
        if comes:
            heapq.heappush(rank.queue, (rank.given + works[one], one))
            arriving += 1
            rank.count += 1
            active += rank.count == 1
        else:
            finish[one] = now
            left[one] = False
            rank.count -= 1
            active -= rank.count == 0
        rank.version += 1
        following = rank.next_done(left)
        if following is not None:
            heapq.heappush(due, (following, who[one], rank.version))
    return np.array(finish)
