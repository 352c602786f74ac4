"""Whether something is faster than another thing that takes turns with it.

In each round both are measured, one or more times, in random order. If both are the same, all values of a
round are exchangeable, whatever the noise and its drift from round to round. So the test is exact for any
noise: it permutes which values of each round belong to which, and compares the sum of aligned ranks (Hodges
and Lehmann, Rank methods for combination of independent experiments, 1962). The interval has the shifts that
the test does not reject.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

_SEARCHED = 40
"""Halvings of the range in which an end of an interval is searched."""


def fewest_rounds(error: float, own: int, others: int) -> int:
    """Rounds with so many values of both sides that can show a difference at this rate of errors."""
    return math.ceil(math.log(1 / error) / math.log(math.comb(own + others, own)) - 1e-9)


def chance_below(own: Floats, others: Floats) -> float:
    """The chance that something equal to the others is as far below them as `own`; both (rounds, values)."""
    ranks = _aligned_ranks(np.column_stack([own, others]))
    return _chance(ranks, own.shape[1])


def shift_interval(own: Floats, others: Floats, error: float) -> tuple[float, float] | None:
    """The shifts of `own` against the others that are not rejected, at a rate of errors of `error` on either
    side; None of too few rounds.
    """
    if len(own) < fewest_rounds(error, own.shape[1], others.shape[1]):
        return None
    middle = shift(own, others)
    reach = 2 * float(np.ptp(np.column_stack([own, others]))) + abs(middle) + 1e-12

    def too_low(at: float) -> bool:
        return chance_below(at - own, -others) <= error

    def too_high(at: float) -> bool:
        return chance_below(own - at, others) <= error

    return _end(too_low, middle, middle - reach), _end(too_high, middle, middle + reach)


def shift(own: Floats, others: Floats) -> float:
    """The estimate: the median of all differences of two values of the same round."""
    return float(np.median(own[:, :, None] - others[:, None, :]))


def _end(rejected: Callable[[float], bool], inside: float, outside: float) -> float:
    """Where shifts begin to be rejected, between one that is not and one that is."""
    for _ in range(_SEARCHED):
        middle = (inside + outside) / 2
        if rejected(middle):
            outside = middle
        else:
            inside = middle
    return inside


def _aligned_ranks(values: Floats) -> Ints:
    """Twice the ranks of all values less the median of their round; ties share the mean of their ranks."""
    aligned = (values - np.median(values, axis=1, keepdims=True)).ravel()
    ordered = np.sort(aligned)
    first = np.searchsorted(ordered, aligned, side="left")
    last = np.searchsorted(ordered, aligned, side="right")
    ranks: Ints = (first + last + 1).reshape(values.shape)
    return ranks


def _chance(ranks: Ints, own: int) -> float:
    """The share of all choices of `own` values a round whose ranks sum to at most those of the first ones."""
    choices = list(combinations(range(ranks.shape[1]), own))
    most = int(ranks[:, :own].sum())
    counts = np.ones(1)
    for row in ranks:
        sums = [int(row[list(choice)].sum()) for choice in choices]
        of_row = np.zeros(max(sums) + 1)
        for one in sums:
            of_row[one] += 1 / len(choices)
        counts = np.convolve(counts, of_row)
    return float(min(1.0, counts[: most + 1].sum()))
