"""The interval of what repetitions agree on: signed ranks of pairs of repetitions.

One method for every ratio: `kept`, the contrasts of `explain`, the gain that `advise --verify` measures. The
estimate is the Hodges-Lehmann pseudo-median, the median of the means of all pairs of repetitions; its
interval is that of Wilcoxon's signed-rank test (Hollander, Wolfe and Chicken, Nonparametric Statistical
Methods, 2014, sections 3.1 to 3.3), interpolated between two ranks to come close to the wanted confidence.
It holds for any noise whose logarithm of the ratio is symmetric, which is so wherever the same noise is on
both sides; `python benchmarks/coverage.py` shows how often it holds for other noise.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CONFIDENCE = 0.95
FEWEST = 5
"""Repetitions: of fewer no ranks hold 90 % (four: 87.5 %). The widest interval of five holds 93.75 %."""
MOST = 400
"""Repetitions that pairs are formed of; means of neighbours take the place of more."""
NORMAL_95 = 1.959963984540054
"""Standard deviations on either side of a normal value that hold 95 % of it."""
EXACT = 50
"""Up to so many repetitions the distribution of the rank sum is counted; beyond, it is taken as normal."""


def by_repetition(values: Floats, repetitions: Ints, count: int) -> Floats:
    """The median of each repetition's values: shape (count,), NaN where it has none."""
    order = np.lexsort((values, repetitions))
    ordered, groups = values[order], repetitions[order]
    starts = np.searchsorted(groups, np.arange(count + 1))
    sizes = np.diff(starts)
    medians = np.full(count, np.nan)
    there = sizes > 0
    first = starts[:-1][there]
    medians[there] = (ordered[first + (sizes[there] - 1) // 2] + ordered[first + sizes[there] // 2]) / 2
    return medians


def known(values: Floats) -> Floats:
    """The values that are not NaN; means of neighbours where there are more than MOST."""
    finite = values[~np.isnan(values)]
    if len(finite) <= MOST:
        return finite
    return np.array([part.mean() for part in np.array_split(finite, MOST)])


def pair_means(values: Floats) -> Floats:
    """Means of each two values and of each with itself: shape (..., n (n + 1) / 2) of shape (..., n)."""
    first, second = _pairs(values.shape[-1])
    means: Floats = (values[..., first] + values[..., second]) / 2
    return means


def pseudo_median(values: Floats) -> float:
    """The Hodges-Lehmann estimate of the middle of values; NaN of none."""
    there = known(values)
    return float(np.median(pair_means(there))) if there.size else math.nan


def rank_interval(values: Floats, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """The interval of the middle of values, one a repetition (NaN: none); None of fewer than FEWEST."""
    there = known(values)
    return between_ranks(pair_means(there), there.size, confidence)


def between_ranks(
    means: Floats, repetitions: int, confidence: float = CONFIDENCE
) -> tuple[float, float] | None:
    """The same from what was made of each pair of `repetitions`, in any order."""
    if repetitions < FEWEST:
        return None
    rank, part = _rank(repetitions, confidence)
    last = len(means) - 1
    at = (rank, rank + 1, last - rank - 1, last - rank)
    low, above, below, high = np.partition(means, at)[list(at)]
    if part:
        low, high = low + part * (above - low), high + part * (below - high)
    return float(low), float(high)


@lru_cache(maxsize=256)
def _pairs(count: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    return np.triu_indices(count)


@lru_cache(maxsize=256)
def _rank(repetitions: int, confidence: float) -> tuple[int, float]:
    """How many pair means, from either end, lie outside of the interval, and the part of the way to the next
    that makes up for the confidence that is too much.
    """
    if repetitions > EXACT:
        middle = repetitions * (repetitions + 1) / 4
        spread = math.sqrt(middle * (2 * repetitions + 1) / 6)
        at = middle + NormalDist().inv_cdf((1 - confidence) / 2) * spread - 0.5
        return int(at), at - int(at)
    coverage = 1 - 2 * np.cumsum(_rank_sums(repetitions))
    enough = np.flatnonzero(coverage >= confidence)
    if enough.size == 0:
        return 0, 0.0
    rank = int(enough[-1])
    return rank, float((coverage[rank] - confidence) / (coverage[rank] - coverage[rank + 1]))


def _rank_sums(repetitions: int) -> Floats:
    """The probability of each sum of the ranks 1 to `repetitions`, each in it or not by chance."""
    chances = np.ones(1)
    for rank in range(1, repetitions + 1):
        without = np.concatenate([chances, np.zeros(rank)])
        chances = (without + np.concatenate([np.zeros(rank), chances])) / 2
    return chances
