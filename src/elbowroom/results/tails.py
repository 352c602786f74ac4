"""The tails of messages that were due at fixed times, of each point alone and together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from elbowroom.stats.tails import Disturbance, Tail, Window, disturbances, tail

Style = Literal["alone", "together"]


class PointTail(msgspec.Struct, frozen=True, kw_only=True):
    """Latencies of a point's messages, us, each counted from the time at which the message was due until its
    answer had arrived.

    `round_trip_us`: median from the actual start; every time has `clock_call_ns` in it. `tail` is None where
    `reason` says why. Lengths and periods of `disturbances` are in us too.
    """

    point: str
    style: Style
    period_us: float
    round_trip_us: float
    clock_call_ns: float
    tail: Tail | None
    disturbances: tuple[Disturbance, ...] = ()
    reason: str = ""

    @property
    def clock_share(self) -> float:
        """The part of the median round trip that is the cost of reading the clock."""
        return self.clock_call_ns / 1e3 / self.round_trip_us if self.round_trip_us else 0.0


def point_tail(point: str, style: Style, windows: Sequence[Window], clock_call_ns: float) -> PointTail:
    """The tail over all windows of a point, in the order of measuring; times in us.

    Where a round trip takes longer than the period on average, messages wait ever longer: their latencies are
    those of the window's length, and have no percentiles.
    """
    trips = np.concatenate([window.round_trips for window in windows])
    period = windows[0].period
    shared = PointTail(
        point=point,
        style=style,
        period_us=period,
        round_trip_us=float(np.median(trips)),
        clock_call_ns=clock_call_ns,
        tail=None,
    )
    mean = float(trips.mean())
    if mean >= period:
        return msgspec.structs.replace(
            shared,
            reason=f"a message is due every {period:g} us, and a round trip takes {mean:.3g} us on average: "
            f"messages wait ever longer; give a message_period of {2 * mean:.2g} us or more",
        )
    latencies = np.concatenate([window.latencies for window in windows])
    return msgspec.structs.replace(shared, tail=tail(latencies), disturbances=disturbances(windows))
