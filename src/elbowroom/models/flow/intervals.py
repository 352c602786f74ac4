"""90 % intervals of what FLOW predicts: from its draws, and from what it cannot follow."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elbowroom.models.curves import Shape, Situation
from elbowroom.models.flow.law import Array, cases, distinct, evaluate
from elbowroom.models.flow.part import FlowPart
from elbowroom.models.prediction import NORMAL_90


def ends(rates: Array, discrepancy: Array) -> tuple[Array, Array, Array]:
    """Values and ends, (..., L), of rates (..., 1 + D, L), the best fit's first: exp(+-1.645 s), with s^2 =
    variance of the draws' logarithms + discrepancy^2.
    """
    logs = np.log(np.maximum(rates[..., 1:, :], 1e-9))
    variance: Array | float = logs.var(axis=-2) if logs.shape[-2] else 0.0
    value, factor = rates[..., 0, :], np.exp(NORMAL_90 * np.sqrt(variance + discrepancy**2))
    return value, value / factor, value * factor


def bands(part: FlowPart, shape: Shape, situations: Sequence[Situation]) -> tuple[Array, Array, Array]:
    """Values, lower and upper ends for situations, (4, S) each in MB/s. Nothing is checked."""
    unlike, same = distinct(cases(shape, situations))
    discrepancy = part.discrepancies_of(unlike.local > 0, unlike.remote > 0)
    value, low, high = ends(evaluate(part.vectors, unlike), discrepancy)
    return value[:, same], low[:, same], high[:, same]
