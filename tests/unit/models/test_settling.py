from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from elbowroom.models.flow.least_squares import settle
from elbowroom.models.flow.prior import Prior

Array = NDArray[np.float64]
WIDE = (np.array([-10.0, -10.0]), np.array([10.0, 10.0]))


def prior(bounds: tuple[Array, Array]) -> Prior:
    """Normal around 0 with a standard deviation of 1."""
    low, high = bounds
    return Prior(names=("a", "b"), centre=np.zeros(2), width=np.ones(2), low=low, high=high)


def settled(
    predicted: Callable[[Array], Array], measured: list[float], error: float, draws: int = 2000
) -> Array:
    rng = np.random.default_rng(5)
    begin = rng.standard_normal((draws, 2))
    values = np.array(measured)
    return settle(
        begin,
        prior(WIDE),
        predicted,
        values,
        np.full(len(values), error),
        rng,
    )


def test_without_kinks_the_draws_are_those_of_the_normal_posterior() -> None:
    matrix = np.array([[1.0, 0.5], [0.0, 1.0], [1.0, 1.0]])
    found = settled(lambda points: points @ matrix.T, [0.6, -0.2, 0.3], 0.5)
    covariance = np.linalg.inv(matrix.T @ matrix / 0.25 + np.eye(2))
    mean = covariance @ matrix.T @ np.array([0.6, -0.2, 0.3]) / 0.25
    assert found.mean(axis=0) == pytest.approx(mean, abs=0.02)
    assert np.cov(found.T) == pytest.approx(covariance, abs=0.02)


def test_what_nothing_measured_depends_on_keeps_its_prior() -> None:
    found = settled(lambda points: points[:, :1], [0.0], 0.1)
    assert found[:, 0].std() == pytest.approx(0.1, abs=0.01)
    assert found[:, 1].std() == pytest.approx(1.0, abs=0.05)


def test_a_capacity_that_is_not_reached_is_known_to_be_no_smaller() -> None:
    # min(1, 1 + x): flat above x = 0, and 1 was measured. The slope at the best fit says nothing of x.
    found = settled(lambda points: np.minimum(1.0, 1.0 + points[:, :1]), [1.0], 0.01)
    assert np.quantile(found[:, 0], 0.02) > -0.05
    assert found[:, 0].max() > 1.0


def test_draws_stay_inside_their_bounds() -> None:
    rng = np.random.default_rng(1)
    low, high = np.array([-0.1, -0.1]), np.array([0.1, 0.1])
    far = np.array([3.0, 0.0])
    begin = rng.standard_normal((50, 2))
    found = settle(begin, prior((low, high)), lambda points: points, far, far * 0 + 0.1, rng)
    assert (found >= low).all()
    assert (found <= high).all()
