"""The bootstrap: resamples of repetitions (or windows, or sizes), and intervals from their percentiles.

All intervals of medians, of scatter and of shares come from here. Ratios inside repetitions have intervals
from ranks instead (stats/signed_ranks.py).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from elbowroom.stats.interval import Interval
from elbowroom.stats.signed_ranks import CONFIDENCE, NORMAL_95, Floats, Ints

RESAMPLES = 1000
MANY = 600
"""From so many values on, medians of resamples are searched only among the middle values, which is faster."""


def indices(generator: np.random.Generator, count: int, resamples: int = RESAMPLES) -> Ints:
    """Which of `count` items are in each resample: shape (resamples, count)."""
    return generator.integers(0, count, size=(resamples, count))


def weights(repetitions: int, seed: int, resamples: int = RESAMPLES) -> NDArray[np.int16]:
    """How often each repetition is in each resample: shape (repetitions, resamples).

    Each column sums to `repetitions`.
    """
    draws = indices(np.random.default_rng(seed), repetitions, resamples)
    places = draws * resamples + np.arange(resamples)[:, None]
    counts = np.bincount(places.ravel(), minlength=repetitions * resamples)
    return counts.reshape(repetitions, resamples).astype(np.int16)


def resampled_medians(values: Floats, groups: Ints, drawn: NDArray[np.int16]) -> Floats:
    """Median of each resample: shape (resamples,); `groups`: the row of `drawn` that each value belongs to.

    A resample that draws none of the values has the median of all values.
    """
    by_value = np.argsort(values, kind="stable")
    ordered, members = values[by_value], groups[by_value]
    if len(values) >= MANY and (middle := _of_the_middle(ordered, members, drawn)) is not None:
        return middle
    narrow = 2 * len(values) * drawn.shape[0] < np.iinfo(np.int16).max
    cumulative = np.cumsum(drawn[members], axis=0, dtype=np.int16 if narrow else np.int32)
    total = cumulative[-1]
    doubled = cumulative * 2
    last = len(values) - 1
    lower = np.minimum((doubled < total).sum(axis=0), last)
    upper = np.minimum((doubled <= total).sum(axis=0), last)
    medians: Floats = (ordered[lower] + ordered[upper]) / 2
    if not total.all():
        medians[total == 0] = np.median(ordered)
    return medians


def _of_the_middle(ordered: Floats, members: Ints, drawn: NDArray[np.int16]) -> Floats | None:
    """The same from the middle third of the sorted values, which is faster; None if a median is outside."""
    count, groups = len(ordered), drawn.shape[0]
    first, end = count // 3, count - count // 3
    wide = drawn.astype(np.int32)
    total = np.bincount(members, minlength=groups) @ wide
    before = np.bincount(members[:first], minlength=groups) @ wide
    cumulative = before + np.cumsum(drawn[members[first:end]], axis=0, dtype=np.int32)
    if (2 * before >= total).any() or (2 * cumulative[-1] <= total).any():
        return None
    lower = first + (2 * cumulative < total).sum(axis=0)
    upper = first + (2 * cumulative <= total).sum(axis=0)
    medians: Floats = (ordered[lower] + ordered[upper]) / 2
    return medians


def medians(values: Floats, groups: Ints, drawn: NDArray[np.int16]) -> Floats:
    """The median of all values, then of each resample: shape (1 + resamples,)."""
    return np.concatenate([[np.median(values)], resampled_medians(values, groups, drawn)])


def percentile_interval(estimates: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The interval between percentiles of the estimates of resamples."""
    count = len(estimates)
    below = min(int(np.floor(count * (1 - confidence) / 2)), count - 1)
    above = count - 1 - below
    parted = np.partition(estimates, (below, above))
    return float(parted[below]), float(parted[above])


def estimate(value: float, resampled: Floats, confidence: float = CONFIDENCE) -> Interval:
    """A value with the percentile interval of its resamples, which always contains the value.

    Resamples that are not finite are left out; without any other the interval is the value alone.
    """
    finite = resampled[np.isfinite(resampled)]
    low, high = percentile_interval(finite, confidence) if finite.size else (value, value)
    return Interval(value=value, low=min(low, value), high=max(high, value))


def expansion(repetitions: int) -> float:
    """How much wider the 95 % interval of so many repetitions is than the bootstrap's percentiles.

    The expanded percentile interval (Hesterberg, "What Teachers Should Know About the Bootstrap", 2015): the
    bootstrap divides by n instead of n - 1, and uses the normal instead of Student's distribution.
    """
    from scipy.special import stdtrit

    student = float(stdtrit(repetitions - 1, 0.975))
    return math.sqrt(repetitions / (repetitions - 1)) * student / NORMAL_95
