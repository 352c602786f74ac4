"""The tail of latencies: high percentiles with intervals, open-loop correction, and periodic disturbances."""

from __future__ import annotations

import math

import msgspec
import numpy as np

from elbowroom.stats.interval import Interval, WithInterval
from elbowroom.stats.signed_ranks import CONFIDENCE, Floats

PERCENTILES = (50.0, 90.0, 99.0, 99.9)
FAR = 12.0
"""Median deviations above the median: latencies beyond are disturbed."""
FEWEST = 5
"""Disturbances that a period is determined from."""
COHERENT = 0.9
"""Length of the mean of the phases' unit vectors (Rayleigh) from which disturbances have a period."""


class TailValue(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """A percentile in the unit of the latencies; an end is None where too few samples are beyond it."""

    percent: float
    value: float
    low: float | None
    high: float | None


class Tail(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles of `count` latencies, and the largest one, which has no upper bound."""

    count: int
    percentiles: tuple[TailValue, ...]
    maximum: float


class Disturbances(msgspec.Struct, frozen=True, kw_only=True):
    """Stalls: how many, how much `longer` the latency is in one, and the time from one to the next where they
    have a `period`; both in the unit of the latencies and times.
    """

    count: int
    length: Interval | None
    period: Interval | None


def tail(latencies: Floats, confidence: float = CONFIDENCE) -> Tail:
    """The tail of latencies, shape (n,). Intervals lie between order statistics, whose ranks are binomial:
    they hold for any distribution of independent samples (Hahn and Meeker, Statistical Intervals, 2017,
    section 5.2).
    """
    ordered = np.sort(latencies[np.isfinite(latencies)])
    if not len(ordered):
        raise ValueError("there are no latencies")
    return Tail(
        count=len(ordered),
        percentiles=tuple(_percentile(ordered, percent, confidence) for percent in PERCENTILES),
        maximum=float(ordered[-1]),
    )


def _percentile(ordered: Floats, percent: float, confidence: float) -> TailValue:
    from scipy.special import bdtr

    count, share = len(ordered), percent / 100
    each = (1 - confidence) / 2
    ranks = np.arange(count)
    chances = bdtr(ranks, count, share)  # P(at most so many samples are below the percentile)
    below = np.flatnonzero(chances <= each)
    above = np.flatnonzero(chances >= 1 - each)
    value = float(ordered[min(math.ceil(share * count) - 1, count - 1)])
    low = float(ordered[below[-1]]) if len(below) else None
    at = int(above[0]) + 1 if len(above) else count
    high = float(ordered[at]) if at < count else None
    return TailValue(percent=percent, value=value, low=low, high=high)


def open_loop(latencies: Floats, period: float) -> Floats:
    """Latencies of requests that arrive every `period`, from those of a loop that waits for each answer.

    While the loop waits for a latency L, requests that were due are not sent: they would have waited
    L - period, L - 2 period … (the correction for coordinated omission of HdrHistogram, by Gil Tene).
    """
    if not (period > 0 and math.isfinite(period)):
        raise ValueError("the period is above 0")
    missed = np.maximum(np.ceil(latencies / period - 1e-12).astype(np.int64) - 1, 0)
    waited = np.repeat(latencies, missed)
    number = np.arange(len(waited)) - np.repeat(np.cumsum(missed) - missed, missed) + 1
    return np.concatenate([latencies, waited - number * period])


def disturbances(times: Floats, latencies: Floats) -> Disturbances:
    """Stalls among latencies that begin at `times`, in one unit and in order.

    Neighbours that are disturbed are one stall. Its length is by how much its latencies exceed the median.
    """
    middle = float(np.median(latencies))
    scatter = float(np.median(np.abs(latencies - middle)))
    disturbed = latencies > middle + FAR * max(scatter, 1e-3 * middle)
    first = np.flatnonzero(disturbed & ~np.concatenate([[False], disturbed[:-1]]))
    if not len(first):
        return Disturbances(count=0, length=None, period=None)
    excess = np.where(disturbed, latencies - middle, 0.0)
    lengths = np.add.reduceat(excess, first)
    ends = np.sort(lengths)
    value = float(np.median(lengths))
    low, high = _median_ends(ends)
    return Disturbances(
        count=len(first),
        length=Interval(value=value, low=min(low, value), high=max(high, value)),
        period=_period(times[first]),
    )


def _median_ends(ordered: Floats) -> tuple[float, float]:
    found = _percentile(ordered, 50.0, CONFIDENCE)
    low = ordered[0] if found.low is None else found.low
    high = ordered[-1] if found.high is None else found.high
    return float(low), float(high)


def _period(begins: Floats) -> Interval | None:
    """The period of begins, some of which may be missing or extra; None where they have none."""
    gaps = np.diff(begins)
    if len(begins) < FEWEST:
        return None
    guess = float(np.median(gaps))
    for _ in range(4):
        number = np.concatenate([[0.0], np.cumsum(np.maximum(np.round(gaps / guess), 0))])
        if number[-1] <= 0:
            return None
        slope, intercept = np.polyfit(number, begins, 1)
        guess = float(slope)
        if not guess > 0:
            return None
    away = begins - intercept - slope * number
    phases = np.exp(2j * np.pi * away / guess)
    if abs(phases.mean()) < COHERENT:
        return None
    spread = float(np.sqrt((away**2).sum() / (len(begins) - 2) / ((number - number.mean()) ** 2).sum()))
    from scipy.special import stdtrit

    half = float(stdtrit(len(begins) - 2, (1 + CONFIDENCE) / 2)) * spread
    return Interval(value=guess, low=guess - half, high=guess + half)
