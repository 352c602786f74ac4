"""Events of a trace as rows, to compare what two readers make of one file."""

from __future__ import annotations

from collections import Counter

from elbowroom.trace.overlap.events import Events

COLUMNS = ("kind", "lane", "start", "duration", "launched", "issued")


def rows(events: Events) -> Counter[tuple[object, ...]]:
    """The events whatever their order: begins with an end come behind a block of whole events in Python."""
    lanes = [(events.ranks[lane.rank], lane.name, lane.device) for lane in events.lanes]
    columns = (getattr(events, name).tolist() for name in COLUMNS)
    return Counter(
        (
            events.classes[kind],
            lanes[lane],
            start,
            duration,
            launched >= 0 and events.classes[launched],
            issued,
        )
        for kind, lane, start, duration, launched, issued in zip(*columns, strict=True)
    )
