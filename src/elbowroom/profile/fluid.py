"""Messages that share a NIC: when each of them is transferred, if at any time all get the same bandwidth.

That is processor sharing. A virtual time tells how many bytes any message would have received so far: a
message that comes at virtual time V with w bytes is done at V + w. So only the order of these times is kept,
in a heap, and n messages take O(n log n).
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


def _simulated(start: Floats, limit: Floats, work: Floats, sender: Ints, totals: Sequence[float]) -> Floats:
    """The same for messages in order of `start`."""
    starts, limits, works, who = start.tolist(), limit.tolist(), work.tolist(), sender.tolist()
    by_limit = np.argsort(limit, kind="stable").tolist()
    finish = list(limits)
    left = [True] * len(starts)
    active = [0] * (max(who) + 1)
    heap: list[tuple[float, int]] = []
    pop, push = heapq.heappop, heapq.heappush
    arriving, limiting, count, senders = 0, 0, 0, 0
    now = virtual = 0.0
    total = len(starts)
    while arriving < total or count:
        while heap and not left[heap[0][1]]:
            pop(heap)
        come = starts[arriving] if arriving < total else float("inf")
        if count == 0:
            now, virtual = come, 0.0
            heap.clear()
        while limiting < total and not left[by_limit[limiting]]:
            limiting += 1
        rate = totals[senders] / count if count else 1.0
        done = now + (heap[0][0] - virtual) / rate if count else float("inf")
        ends = limits[by_limit[limiting]]
        if come <= done and come <= ends:
            virtual += (come - now) * rate
            now = come
            one = arriving
            push(heap, (virtual + works[one], one))
            arriving += 1
            count += 1
            active[who[one]] += 1
            senders += active[who[one]] == 1
            continue
        now, virtual = (done, heap[0][0]) if done <= ends else (ends, virtual + (ends - now) * rate)
        one = pop(heap)[1] if done <= ends else by_limit[limiting]
        finish[one] = now
        left[one] = False
        count -= 1
        active[who[one]] -= 1
        senders -= active[who[one]] == 0
    return np.array(finish)
