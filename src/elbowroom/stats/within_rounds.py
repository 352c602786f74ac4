"""Whether one arm of a trial is faster than two equal ones that take turns with it.

In each round, three arms are measured in random order: an arm, and twice the same other thing. If the arm is
that thing, too, the three values of a round are exchangeable, whatever the noise and its drift from round to
round. So the test is exact for any noise: it permutes which value of each round is the arm's (3^rounds ways,
equally likely) and compares the sum of its aligned ranks (Hodges and Lehmann, Rank methods for combination of
independent experiments, 1962). The interval has the shifts that the test does not reject.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ARMS = 3
_SEARCHED = 60
"""Halvings of the range in which an end of an interval is searched."""


def fewest_rounds(error: float) -> int:
    """Rounds that can show a difference at this rate of errors: 3^-rounds <= error."""
    return math.ceil(math.log(1 / error) / math.log(ARMS) - 1e-9)


def chance_below(arm: Floats, others: Floats) -> float:
    """The chance that an arm equal to the two others is as far below them as `arm` (rounds,), `others`
    (rounds, 2).
    """
    ranks = _aligned_ranks(np.column_stack([arm, others]))
    return _chance(ranks, int(ranks[:, 0].sum()))


def shift_interval(arm: Floats, others: Floats, error: float) -> tuple[float, float] | None:
    """The shifts of `arm` against the two others that are not rejected, at a rate of errors of `error` on
    either side; None of too few rounds.
    """
    if len(arm) < fewest_rounds(error):
        return None
    middle = shift(arm, others)
    reach = 2 * float(np.ptp(np.column_stack([arm, others]))) + abs(middle) + 1e-12

    def too_low(at: float) -> bool:
        return chance_below(at - arm, -others) <= error

    def too_high(at: float) -> bool:
        return chance_below(arm - at, others) <= error

    return _end(too_low, middle, middle - reach), _end(too_high, middle, middle + reach)


def shift(arm: Floats, others: Floats) -> float:
    """The estimate: the mean over the middle half of the rounds of the arm minus the mean of the others."""
    differences = np.sort(arm - others.mean(axis=1))
    cut = len(differences) // 4
    return float(differences[cut : len(differences) - cut].mean())


def _end(rejected: Callable[[float], bool], inside: float, outside: float) -> float:
    """Where shifts begin to be rejected, between one that is not and one that is."""
    for _ in range(_SEARCHED):
        middle = (inside + outside) / 2
        if rejected(middle):
            outside = middle
        else:
            inside = middle
    return inside


def _aligned_ranks(values: Floats) -> NDArray[np.int64]:
    """Twice the ranks of all values less the median of their round; ties share the mean of their ranks."""
    aligned = values - np.median(values, axis=1, keepdims=True)
    flat = aligned.ravel()
    first = np.searchsorted(np.sort(flat), flat, side="left")
    last = np.searchsorted(np.sort(flat), flat, side="right")
    ranks: NDArray[np.int64] = (first + last + 1).reshape(values.shape)
    return ranks


def _chance(ranks: NDArray[np.int64], most: int) -> float:
    """The share of all choices of one value a round whose ranks sum to at most `most`."""
    counts = np.ones(1)
    for row in ranks:
        sums = np.zeros(len(counts) + int(row.max()))
        for rank in row:
            sums[rank : rank + len(counts)] += counts / ARMS
        counts = sums
    return float(min(1.0, counts[: most + 1].sum()))
