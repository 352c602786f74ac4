"""Matrices estimated from less than all pairs, and what pairing by them costs.

What counts is the regret: the mean runtime of the pairs that an estimate chooses, over that of the best
pairs. Small errors of the cells may choose bad pairs, and large ones the best.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from elbowroom.schedule.matrix import Array, Matrix
from elbowroom.schedule.pairing import match, mean_of


class LeftOut(NamedTuple):
    """An application whose row and column were estimated from the others: mean error of these cells (percent
    points), and the true mean runtime of the pairs that are chosen with the estimate.
    """

    name: str
    error: float
    mean: float


Estimate = Callable[[Array, int], Array]
"""The matrix with the row and column of one application estimated from the rest."""


def scalar_model(percent: Array) -> Array:
    """Each cell as the sum of a sensitivity of the measured application and an aggressiveness of its
    companion, fitted by least squares to all pairs of different applications.

    Every pairing has the same sum in such a model, whatever its numbers: it cannot prefer one.
    """
    count = len(percent)
    rows, columns = np.nonzero(~np.eye(count, dtype=bool))
    cells = np.arange(len(rows))
    terms = np.zeros((len(rows), 2 * count))
    terms[cells, rows] = terms[cells, count + columns] = 1.0
    fitted = np.linalg.lstsq(terms, percent[rows, columns], rcond=None)[0]
    model: Array = fitted[:count, None] + fitted[None, count:]
    return model


def from_others(percent: Array, left_out: int) -> Array:
    """Nothing is known of the application: it takes beside each companion what the others take there on
    average, and the others take beside it what they take on average.
    """
    known = np.array([index for index in range(len(percent)) if index != left_out])
    part = percent[np.ix_(known, known)].copy()
    np.fill_diagonal(part, np.nan)
    estimate = percent.copy()
    estimate[left_out, known] = np.nanmean(part, axis=0)
    estimate[known, left_out] = np.nanmean(part, axis=1)
    return estimate


def from_half(half: Array) -> Estimate:
    """Estimates from runs without companions: `half`, the percents with half of the cores.

    100 - half is what an application can gain. Beside a companion it gains a share of that, which falls
    linearly with what the companion itself can gain; both numbers are fitted to the other applications.
    """
    room = 100.0 - half

    def estimate(percent: Array, left_out: int) -> Array:
        rows, columns = np.nonzero(~np.eye(len(percent), dtype=bool))
        known = (rows != left_out) & (columns != left_out)
        terms = np.stack([room[columns], room[columns] * room[rows]], axis=1)
        fitted = np.linalg.lstsq(terms[known], 100.0 - percent[rows, columns][known], rcond=None)[0]
        result = percent.copy()
        result[rows[~known], columns[~known]] = 100.0 - terms[~known] @ fitted
        return result

    return estimate


def leave_one_out(matrix: Matrix, estimate: Estimate) -> list[LeftOut]:
    """Each application in turn as if it had run with no other one."""
    truth = matrix.array()
    found = []
    for index, name in enumerate(matrix.names):
        guess = estimate(truth, index)
        others = np.arange(len(truth)) != index
        errors = np.abs(guess - truth)
        error = float(np.concatenate([errors[index, others], errors[others, index]]).mean())
        found.append(LeftOut(name, error, mean_of(truth, match(guess))))
    return found


def mean_error(model: Array, percent: Array) -> float:
    """Mean error of a model of all pairs of different applications, relative to the cells, in %."""
    different = ~np.eye(len(percent), dtype=bool)
    return float(100 * (np.abs(model - percent) / percent)[different].mean())
