"""What forwarding costs the computation of an inner node, from the bytes that pass through it."""

from __future__ import annotations

from elbowroom.stats.interval import Interval

MEGA = 1e6


def expected_kept(loss: float, message_rate: float, passing: float) -> float:
    """What the computation keeps beside `passing` MB/s of received and forwarded bytes.

    `loss`: the bandwidth alone over that together, as a model predicts it beside messages that arrive at
    `message_rate` MB/s. A byte that is sent is taken to cost as much as one that is received, so that the
    share that is lost is proportional to the rate. Nothing is clamped.
    """
    return 1.0 - (1.0 - 1.0 / loss) * passing / message_rate


def cost_per_byte(kept: Interval, passing: float) -> Interval:
    """Seconds of computation, of all computing cores together, that are lost for each byte that is received
    or forwarded: the weight `forwarding` of the cost model of trees. `passing`: MB/s of such bytes.
    """
    scale = 1.0 / (passing * MEGA)
    return Interval(
        value=(1.0 - kept.value) * scale, low=(1.0 - kept.high) * scale, high=(1.0 - kept.low) * scale
    )


def lost_per_broadcast(kept: Interval, rate: Interval, size: int) -> Interval:
    """Microseconds of computation that a broadcast of `size` bytes costs while broadcasts follow each other
    at `rate` MB/s: a slow tree disturbs for longer.
    """
    ends = [
        (1.0 - share) * size / speed for share in (kept.low, kept.high) for speed in (rate.low, rate.high)
    ]
    return Interval(value=(1.0 - kept.value) * size / rate.value, low=min(ends), high=max(ends))
