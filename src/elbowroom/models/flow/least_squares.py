"""Least squares as FLOW is fitted: of logarithms, with bounds, normal priors and a robust loss (soft L1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from elbowroom.models.flow.law import Array
from elbowroom.models.flow.prior import Prior

STEP = 1e-5
"""Of the finite differences, in the fit's coordinates (logarithms, mostly)."""

MARGIN = 1e-6
"""A fit starts so far inside the bounds."""

Predicted = Callable[[Array], Array]
"""The model's logarithms at the measured values, (D, V), for coordinates (D, P)."""


class Minimum(NamedTuple):
    """Coordinates (P,), and what they cost."""

    point: Array
    cost: float


def jacobian(predicted: Predicted, point: Array) -> Array:
    """Slopes of the measured values, (V, P), by central differences, all at once."""
    steps = STEP * np.eye(len(point))
    logs = predicted(np.concatenate([point + steps, point - steps]))
    return (logs[: len(point)] - logs[len(point) :]).T / (2 * STEP)


def solve(
    predicted: Predicted,
    logs: Array,
    before: Prior,
    start: Array,
    error: Array,
    evaluations: int,
    scale: Array | float = 1.0,
) -> Minimum:
    """The best fit from `start`; `logs`, `error` of the measured values (V,), `scale` of the coordinates."""
    from scipy.optimize import least_squares  # 0.2 s to load: only who fits pays

    def residuals(point: Array) -> Array:
        missed = (predicted(point[None])[0] - logs) / error
        return np.concatenate([missed, (point - before.centre) / before.width])

    def slopes(point: Array) -> Array:
        return np.concatenate([jacobian(predicted, point) / error[:, None], np.diag(1 / before.width)])

    best = least_squares(
        residuals,
        np.clip(start, before.low + MARGIN, before.high - MARGIN),
        slopes,
        bounds=(before.low, before.high),
        loss="soft_l1",
        max_nfev=evaluations,
        x_scale=scale,
    )
    return Minimum(np.asarray(best.x, dtype=float), float(best.cost))
