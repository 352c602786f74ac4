"""The time between two communications of a thread, as a class of computation for each pair of calls."""

from __future__ import annotations

import dataclasses

import numpy as np

from elbowroom.trace.overlap.events import NONE, EventClass, Events, Flags
from elbowroom.trace.overlap.tables import Numbering

NOTE = "the time between two calls of a thread counts as computation, whatever the thread does in it"


def with_gaps(events: Events, communicates: Flags) -> Events:
    """The events, and one for each gap between two that communicate on a thread of the host."""
    device = np.array([lane.device for lane in events.lanes], dtype=bool)
    calls = np.flatnonzero(communicates & ~device[events.lane])
    calls = calls[np.lexsort((events.start[calls], events.lane[calls]))]
    if len(calls) < 2:
        return events
    lane, end = events.lane[calls], events.end[calls]
    # Of nested calls the outermost ends last; lanes are kept apart by an offset.
    apart = lane.astype(np.int64) * (int(end.max()) - int(events.start.min()) + 1)
    reach = np.maximum.accumulate(end + apart) - apart
    gap = np.flatnonzero((lane[1:] == lane[:-1]) & (events.start[calls[1:]] > reach[:-1]))
    first, second = events.kind[calls[gap]], events.kind[calls[gap + 1]]
    names = Numbering()
    kinds = [
        names[(events.classes[before].name, events.classes[after].name)]
        for before, after in zip(first.tolist(), second.tolist(), strict=True)
    ]
    classes = [EventClass(name=f"between {one} and {two}", category="computation") for one, two in names]
    return dataclasses.replace(
        events,
        classes=(*events.classes, *classes),
        kind=np.concatenate([events.kind, np.array(kinds, dtype=np.int32) + np.int32(len(events.classes))]),
        lane=np.concatenate([events.lane, lane[gap]]),
        start=np.concatenate([events.start, reach[gap]]),
        duration=np.concatenate([events.duration, events.start[calls[gap + 1]] - reach[gap]]),
        issued=np.concatenate([events.issued, reach[gap]]),
        launched=np.concatenate([events.launched, np.full(len(gap), NONE, dtype=np.int32)]),
        continued=None
        if events.continued is None
        else np.concatenate([events.continued, np.zeros(len(gap), dtype=bool)]),
        ordered=False,
        notes=(*events.notes, NOTE),
    )
