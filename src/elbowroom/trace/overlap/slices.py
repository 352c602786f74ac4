"""Events cut into slices: on a thread, each moment belongs to the innermost event."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from elbowroom.trace.overlap.events import Events, Flags, Ints, Small, narrow

PART = 1 << 16
"""Events of threads that are cut at once: what is sorted stays in the cache."""


@dataclass(frozen=True, kw_only=True)
class Slices:
    """Parts of events in which no nested event is active: `owner` is the event's index; times in ns. `whole`:
    each event is one slice, in their order.
    """

    owner: Ints
    start: Ints
    end: Ints
    whole: bool = False


def slices(events: Events) -> Slices:
    """All slices: an event of a device is one slice, an event of a thread is cut by the events inside it.

    Events of a thread that overlap without nesting, which damage can cause, end in the order of their begins:
    every moment still belongs to one event.
    """
    order = events.in_order(np.arange(len(events)))
    of_lanes = _in_nests(events, order)
    if not of_lanes.any() and events.ordered and (events.duration > 0).all():
        return Slices(owner=order, start=events.start, end=events.end, whole=True)
    nested: Flags = of_lanes[events.lane[order]]
    parts = [_plain(events, order[~nested]), *(_cut(events, part) for part in _apart(events, order[nested]))]
    whole = Slices(
        owner=np.concatenate([one.owner for one in parts]),
        start=np.concatenate([one.start for one in parts]),
        end=np.concatenate([one.end for one in parts]),
    )
    there = whole.end > whole.start
    if there.all():
        return whole
    return Slices(owner=whole.owner[there], start=whole.start[there], end=whole.end[there])


def _plain(events: Events, chosen: Ints) -> Slices:
    """Each event as one slice."""
    start = events.start[chosen]
    return Slices(owner=chosen, start=start, end=start + events.duration[chosen])


def _in_nests(events: Events, order: Ints) -> Flags:
    """Whether each lane is a thread that has nested events."""
    device = np.array([lane.device for lane in events.lanes], dtype=bool)
    lane, start, end = events.lane, events.start, events.end
    if not events.ordered:
        lane, start, end = lane[order], start[order], end[order]
    nests = (lane[1:] == lane[:-1]) & (start[1:] < end[:-1])
    nested = np.zeros(len(events.lanes), dtype=bool)
    nested[lane[1:][nests]] = True
    nested &= ~device
    return nested


def _apart(events: Events, order: Ints) -> Iterator[Ints]:
    """Events in order in parts of about PART: none goes on in the next part."""
    if not len(order):
        return
    lane, start = events.lane[order].astype(np.int64), events.start[order]
    end = start + events.duration[order]
    apart = lane * (int(end.max()) - int(start.min()) + 1)
    reach = np.maximum.accumulate(end + apart)
    breaks = np.flatnonzero((start + apart)[1:] >= reach[:-1]) + 1
    wanted = np.searchsorted(breaks, np.arange(PART, len(order), PART))
    yield from np.split(order, np.unique(breaks[wanted[wanted < len(breaks)]]))


def _cut(events: Events, chosen: Ints) -> Slices:
    """Slices of the `chosen` events, which are in order. Between two edges of a thread the innermost open
    event is active: the one that the last begin at this depth opened.
    """
    event, time, step = _edges(events, chosen)
    depth = np.cumsum(step)  # every thread ends at depth 0
    by_depth = np.argsort(narrow(depth), kind="stable")
    last_begin = np.maximum.accumulate(np.where(step[by_depth] > 0, np.arange(len(event)), -1))
    active = np.empty(len(event), dtype=np.int64)
    active[by_depth] = event[by_depth][np.maximum(last_begin, 0)]
    inside = np.flatnonzero(depth[:-1] > 0)
    return Slices(owner=active[inside], start=time[inside], end=time[inside + 1])


def _edges(events: Events, chosen: Ints) -> tuple[Ints, Ints, Small]:
    """Begins (+1) and ends (-1) by thread and time, and the events that begin. At the same time ends come
    first; of begins the longest.
    """
    # An event without a duration would end before it begins: it has no slice.
    chosen = chosen[events.duration[chosen] > 0]
    start, lane = events.start[chosen], events.lane[chosen].astype(np.int64)
    if not len(chosen):
        return chosen, start, np.zeros(0, dtype=np.int32)
    end = start + events.duration[chosen]
    apart = (lane - lane[0]) * (int(end.max()) - int(start.min()) + 1)
    ends = np.sort(end + apart)  # the i-th is of the thread of the i-th begin
    at = np.arange(len(chosen)) + np.searchsorted(ends, start + apart, side="right")
    event, time = np.zeros((2, 2 * len(chosen)), dtype=np.int64)
    step = np.full(2 * len(chosen), -1, dtype=np.int32)
    event[at], time[at], step[at] = chosen, start, 1
    time[step < 0] = ends - apart
    return event, time, step
