"""Events cut into slices: on a thread, each moment belongs to the innermost event."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from elbowroom.trace.overlap.events import Events, Flags, Ints, Small


@dataclass(frozen=True, kw_only=True)
class Slices:
    """Parts of events in which no nested event is active: `owner` is the event's index; times in ns."""

    owner: Ints
    start: Ints
    end: Ints


def slices(events: Events) -> Slices:
    """All slices: an event of a device is one slice, an event of a thread is cut by the events inside it.

    Events of a thread that overlap without nesting, which damage can cause, end in the order of their begins:
    every moment still belongs to one event.
    """
    device = np.array([lane.device for lane in events.lanes], dtype=bool)[events.lane]
    nested = ~device & _in_nests(events, device)
    plain = np.flatnonzero(~nested)
    cut = _cut(events, np.flatnonzero(nested))
    owner = np.concatenate([plain, cut.owner])
    start = np.concatenate([events.start[plain], cut.start])
    end = np.concatenate([events.end[plain], cut.end])
    there = end > start
    return Slices(owner=owner[there], start=start[there], end=end[there])


def _in_nests(events: Events, device: Flags) -> Flags:
    """Whether an event is on a thread that has nested events."""
    order = np.lexsort((events.start, events.lane))
    lane, start, end = events.lane[order], events.start[order], events.end[order]
    nests = (lane[1:] == lane[:-1]) & (start[1:] < end[:-1]) & ~device[order][1:]
    nested = np.zeros(len(events.lanes), dtype=bool)
    nested[lane[1:][nests]] = True
    return nested[events.lane]


def _cut(events: Events, chosen: Ints) -> Slices:
    """Slices of the `chosen` events. Between two edges of a thread the innermost open event is active: the
    one that the last begin at this depth opened.
    """
    none = np.zeros(0, dtype=np.int64)
    if not len(chosen):
        return Slices(owner=none, start=none, end=none)
    event, time, lane, step = _edges(events, chosen)
    depth = np.cumsum(step)  # every thread ends at depth 0
    position = np.arange(len(event))
    by_depth = np.lexsort((position, depth, lane))
    begins = step[by_depth] > 0
    last_begin = np.maximum.accumulate(np.where(begins, np.arange(len(event)), -1))
    active = np.empty(len(event), dtype=np.int64)
    active[by_depth] = event[by_depth][np.maximum(last_begin, 0)]
    inside = np.flatnonzero((depth[:-1] > 0) & (lane[1:] == lane[:-1]))
    return Slices(owner=active[inside], start=time[inside], end=time[inside + 1])


def _edges(events: Events, chosen: Ints) -> tuple[Ints, Ints, Small, Small]:
    """Begins (+1) and ends (-1) by thread and time. At the same time ends come first; of begins the longest,
    of ends the shortest.
    """
    start, end, lane = events.start[chosen], events.end[chosen], events.lane[chosen]
    length = end - start
    event = np.concatenate([chosen, chosen])
    time = np.concatenate([start, end])
    step = np.repeat(np.array([1, -1], dtype=np.int32), len(chosen))
    # An event without a duration would end before it begins: it has no slice.
    positive = np.concatenate([length, length]) > 0
    inner = np.concatenate([-length, length])
    order = np.lexsort((inner, step, time, np.concatenate([lane, lane])))
    order = order[positive[order]]
    return event[order], time[order], np.concatenate([lane, lane])[order], step[order]
