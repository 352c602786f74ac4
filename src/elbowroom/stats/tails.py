"""The tail of latencies: high percentiles with intervals, and disturbances with their length and period."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.stats.interval import Interval, WithInterval
from elbowroom.stats.signed_ranks import CONFIDENCE, Floats

PERCENTILES = (50.0, 90.0, 99.0, 99.9)
BLOCKS = 50
"""Parts of the latencies, in their order, that show how much neighbours depend on each other."""
CLUSTERED = 1.75
"""Design effect that one in a thousand sequences of independent latencies exceeds: chi2(49) / 49."""
FAR = 12.0
"""Median deviations above the median of the lower half of latencies, which is undisturbed also on a busy
machine, and once this median: latencies beyond are disturbed.
"""
OCTAVE = 2.0
"""Stalls are first sorted by length into bins that are so many times as long at their end."""
SAME = 0.02
"""Relative difference up to which two periods are the same."""
FILLED = (0.5, 1.5)
"""Begins in step in each cycle of a period, at least and at most."""
NEARLY = 0.9
"""Part of the best score from which a longer period is preferred: a part of a period scores as well."""
FEWEST = 5
"""Stalls of a class that a length has an interval from, and a period is looked for in."""
CHANCE = 1e-3
"""Probability that stalls at random times are given a period."""
IN_STEP = 0.15
"""Distance from the period's phase, in periods, up to which a stall follows the period."""

Begins = Sequence[Floats]


class TailValue(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """A percentile in the unit of the latencies. Where the latencies are too few for an interval, `value` is
    None too; `needed`: the independent latencies that the percentile needs.
    """

    percent: float
    value: float | None
    low: float | None
    high: float | None
    needed: int


class Tail(msgspec.Struct, frozen=True, kw_only=True):
    """Percentiles of `count` latencies, which hold as much as `independent` ones, and the largest latency,
    which has no upper bound.
    """

    count: int
    independent: int
    percentiles: tuple[TailValue, ...]
    maximum: float


class Disturbance(msgspec.Struct, frozen=True, kw_only=True):
    """Stalls of one class: how many, their length, the time from one to the next where they have a `period`,
    and how many follow it; in the unit of the latencies and times.
    """

    count: int
    length: Interval
    period: Interval | None
    in_step: int


class Window(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that were due one `period` after the other: when, and their latencies from then on, shape
    (n,) each; `round_trips` from their actual start. All in one unit.
    """

    period: float
    due: Floats
    latencies: Floats
    round_trips: Floats


def tail(latencies: Floats, confidence: float = CONFIDENCE) -> Tail:
    """The tail of latencies, shape (n,), in the order of measuring; ValueError where there are none.

    Intervals lie between order statistics, whose ranks are binomial: they hold for any distribution of
    independent samples (Hahn and Meeker, Statistical Intervals, 2017, section 5.2). Latencies of one stall
    are not independent; n is divided by the design effect of the latencies beyond each percentile (Kish,
    Survey Sampling, 1965, section 5.4), with BLOCKS parts of the sequence as clusters.
    """
    measured = latencies[np.isfinite(latencies)]
    if not len(measured):
        raise ValueError("there are no latencies")
    ordered = np.sort(measured)
    sizes = [_independent(measured, _order_statistic(ordered, percent)) for percent in PERCENTILES]
    return Tail(
        count=len(ordered),
        independent=min(sizes),
        percentiles=tuple(
            _percentile(ordered, percent, size, confidence)
            for percent, size in zip(PERCENTILES, sizes, strict=True)
        ),
        maximum=float(ordered[-1]),
    )


def _order_statistic(ordered: Floats, percent: float) -> float:
    return float(ordered[min(math.ceil(percent / 100 * len(ordered)), len(ordered)) - 1])


def _independent(measured: Floats, limit: float) -> int:
    """The number of independent latencies whose share above `limit` would scatter as much."""
    size = len(measured) // BLOCKS
    beyond = measured > limit
    share = float(beyond.mean())
    if size < 2 or not 0 < share < 1:
        return len(measured)
    shares = beyond[: size * BLOCKS].reshape(BLOCKS, size).mean(axis=1)
    effect = float(shares.var(ddof=1)) * size / (share * (1 - share))
    return int(len(measured) / effect) if effect > CLUSTERED else len(measured)


def needed(percent: float, confidence: float = CONFIDENCE) -> int:
    """The fewest independent latencies from which a percentile has an interval: one of them is beyond it with
    the probability that the interval's end requires.
    """
    share = max(percent, 100 - percent) / 100
    return math.ceil(math.log((1 - confidence) / 2) / math.log(share))


def _percentile(ordered: Floats, percent: float, size: int, confidence: float) -> TailValue:
    """`size`: as many independent latencies; their ranks are scaled to those of all."""
    from scipy.special import bdtr

    least = needed(percent, confidence)
    ranks = np.arange(size)
    chances = bdtr(ranks, size, percent / 100)  # P(at most so many latencies are below the percentile)
    each = (1 - confidence) / 2
    below = np.flatnonzero(chances <= each)
    above = np.flatnonzero(chances >= 1 - each)
    if not len(below) or not len(above):
        return TailValue(percent=percent, value=None, low=None, high=None, needed=least)
    scale = len(ordered) / size
    high = min(math.ceil((int(above[0]) + 1) * scale) - 1, len(ordered) - 1)
    return TailValue(
        percent=percent,
        value=_order_statistic(ordered, percent),
        low=float(ordered[int(below[-1] * scale)]),
        high=float(ordered[high]),
        needed=least,
    )


def disturbances(windows: Sequence[Window]) -> tuple[Disturbance, ...]:
    """Classes of stalls in windows that are measured on one clock, the longest stalls first."""
    windows = [window for window in windows if len(window.due)]
    if not windows:
        return ()
    every = np.sort(np.concatenate([window.latencies for window in windows]))
    lower = every[: (len(every) + 1) // 2]
    middle = float(np.median(lower))
    scatter = float(np.median(np.abs(lower - middle)))
    limit = middle + max(FAR * scatter, middle)
    stalls = [_stalls(window, middle, limit) for window in windows]
    lengths = np.concatenate([one for _, one in stalls])
    if not len(lengths):
        return ()
    return tuple(_disturbance(stalls, low, high) for low, high in _classes(stalls, lengths))


def _classes(stalls: Sequence[tuple[Floats, Floats]], lengths: Floats) -> list[tuple[float, float]]:
    """From and to which length the stalls of a class are, the longest class first.

    Neighbouring octaves of lengths are one class if both have the same period, or none.
    """
    octaves = np.unique(np.floor(np.log(lengths) / math.log(OCTAVE)))
    classes: list[tuple[float, float, float | None]] = []
    for octave in octaves[::-1].tolist():
        low, high = OCTAVE**octave, OCTAVE ** (octave + 1)
        result = _period(_chosen(stalls, low, high)[0])
        period = None if result is None else result[0].value
        if classes and classes[-1][0] == high and _same(classes[-1][2], period):
            classes[-1] = (low, classes[-1][1], period)
        else:
            classes.append((low, high, period))
    return [(low, high) for low, high, _ in classes]


def _same(first: float | None, second: float | None) -> bool:
    if first is None or second is None:
        return first is second
    return abs(first - second) <= SAME * first


def _chosen(stalls: Sequence[tuple[Floats, Floats]], low: float, high: float) -> tuple[list[Floats], Floats]:
    """Begins, by window, and lengths of stalls that are `low` to `high` long."""
    masks = [(lengths >= low) & (lengths < high) for _, lengths in stalls]
    begins = [begin[mask] for (begin, _), mask in zip(stalls, masks, strict=True)]
    return begins, np.concatenate([lengths[mask] for (_, lengths), mask in zip(stalls, masks, strict=True)])


def _stalls(window: Window, middle: float, limit: float) -> tuple[Floats, Floats]:
    """When stalls begin, and how long they are. Messages that follow each other and are late belong to one.

    The first message that a stall delays waits from its due time on, which is anywhere between the begin of
    the stall and one idle time between messages later: the largest delay is short by half of that on average.
    """
    late = window.latencies > limit
    first = np.flatnonzero(late & ~np.concatenate([[False], late[:-1]]))
    if not len(first):
        return np.empty(0), np.empty(0)
    excess = np.where(late, window.latencies - middle, 0.0)
    idle = max(0.0, window.period - float(np.median(window.round_trips)))
    return window.due[first], np.maximum.reduceat(excess, first) + idle / 2 * (idle / window.period)


def _disturbance(stalls: Sequence[tuple[Floats, Floats]], low: float, high: float) -> Disturbance:
    begins, lengths = _chosen(stalls, low, high)
    result = _period(begins)
    period, follows = (None, np.ones(len(lengths), dtype=bool)) if result is None else result
    return Disturbance(
        count=len(lengths),
        length=_median(np.sort(lengths[follows])),
        period=period,
        in_step=0 if period is None else int(follows.sum()),
    )


def _median(ordered: Floats) -> Interval:
    """The median, from end to end of the lengths where they are too few for an interval."""
    median = _percentile(ordered, 50.0, len(ordered), CONFIDENCE)
    value = float(np.median(ordered))
    low = float(ordered[0]) if median.low is None else min(median.low, value)
    high = float(ordered[-1]) if median.high is None else max(median.high, value)
    return Interval(value=value, low=low, high=high)


def _period(begins: Begins) -> tuple[Interval, NDArray[np.bool_]] | None:
    """The period of begins, some of which may be missing or extra, and which of them follow it; None where
    begins at random times look alike in more than CHANCE of the cases.

    Rayleigh's test for each possible period: the begins as phases of the period, in each window for itself
    (Mardia and Jupp, Directional Statistics, 2000, section 6.3); its level is divided by their number. Bursts
    fail the test too; a period also has about one begin in step in each cycle.
    """
    from scipy.special import gammaincc

    used = [times for times in begins if len(times) > 1]
    if sum(map(len, used)) < FEWEST:
        return None
    span = sum(float(times[-1] - times[0]) for times in used)
    candidates = _candidates(used)
    scores = []
    for period in candidates:
        follows = sum(int(_in_step(times, period).sum()) for times in used)
        filled = follows / (span / period + len(used))
        score = sum(abs(_resultant(times, period)) ** 2 / len(times) for times in used)
        scores.append(score if FILLED[0] <= filled <= FILLED[1] else 0.0)
    best = max(scores)
    if not best or gammaincc(len(used), best) * len(candidates) > CHANCE:
        return None
    chosen = max(period for score, period in zip(scores, candidates, strict=True) if score >= NEARLY * best)
    return _fitted(begins, chosen)


def _in_step(times: Floats, period: float) -> NDArray[np.bool_]:
    """Which times are near the mean phase of the period."""
    origin = float(np.angle(_resultant(times, period))) / (2 * np.pi) if len(times) else 0.0
    cycles = times / period - origin
    near: NDArray[np.bool_] = np.abs(cycles - np.round(cycles)) <= IN_STEP
    return near


def _resultant(times: Floats, period: float) -> complex:
    return complex(np.exp(2j * np.pi * times / period).sum())


def _candidates(begins: Begins) -> list[float]:
    """Times between begins that are one to three apart, of those that differ by less than 2 % the median."""
    gaps = np.concatenate([times[lag:] - times[:-lag] for times in begins for lag in (1, 2, 3)])
    number = np.round(np.log(gaps) / SAME)
    return [float(np.median(gaps[number == one])) for one in np.unique(number)]


def _fitted(begins: Begins, guess: float) -> tuple[Interval, NDArray[np.bool_]] | None:
    """The period by least squares over the begins in step, with an origin of each window."""
    from scipy.special import stdtrit

    follows: list[NDArray[np.bool_]] = []
    for _ in range(3):
        follows = []
        products = squares = 0.0
        residuals, freedom = 0.0, -1
        for times in begins:
            near = _in_step(times, guess)
            number = np.round(times / guess - (times[near][0] / guess if near.any() else 0.0))
            follows.append(near)
            if near.sum() > 1:
                numbers, own = number[near] - number[near].mean(), times[near] - times[near].mean()
                products, squares = products + float(numbers @ own), squares + float(numbers @ numbers)
                residuals, freedom = residuals + float(own @ own), freedom + int(near.sum()) - 1
        if not squares or freedom < 1:
            return None
        guess = products / squares
    spread = math.sqrt(max(0.0, residuals - guess**2 * squares) / freedom / squares)
    half = float(stdtrit(freedom, (1 + CONFIDENCE) / 2)) * spread
    return Interval(value=guess, low=guess - half, high=guess + half), np.concatenate(follows)
