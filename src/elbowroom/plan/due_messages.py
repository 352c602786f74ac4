"""Messages that are due at fixed times (open loop): the points of a plan with a `message_period`."""

from __future__ import annotations

import msgspec

from elbowroom.errors import UsageError
from elbowroom.plan.point import Expansion, Point

MOST_MESSAGES = 250_000
"""Messages of one phase, each of which is kept; the probe has the same limit."""


def due_messages(expansion: Expansion, period: float) -> Expansion:
    """The points with messages that are due every `period` seconds, and their latency as the metric.

    UsageError where a point has no round trips, or too many messages.
    """
    return msgspec.structs.replace(expansion, points=tuple(_due(point, period) for point in expansion.points))


def _due(point: Point, period: float) -> Point:
    if point.pattern != "pingpong" or not point.workload.beside_messages:
        raise UsageError(
            f"is only valid for ping-pongs beside a kernel, and {point.id} is none",
            field="message_period",
            value=period,
            hint="leave it out, or: elbowroom run sizes",
        )
    if point.window / period > MOST_MESSAGES:
        raise UsageError(
            f"gives more than {MOST_MESSAGES} messages in a window of {point.window:g} s, and each is kept",
            field="message_period",
            value=period,
            hint="give a longer period, or a shorter window and more repetitions",
        )
    return msgspec.structs.replace(point, metric="latency", message_period=period)
