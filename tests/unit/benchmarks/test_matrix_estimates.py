"""Estimated matrices, and the regret of pairing by them."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from elbowroom.schedule.pairing import best_pairing, mean_of
from schedule_fixture import published_half, published_matrix

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from matrix_estimates import from_half, from_others, leave_one_out, mean_error, scalar_model


def test_a_scalar_model_fits_the_published_matrix_well() -> None:
    percent = published_matrix().array()
    assert mean_error(scalar_model(percent), percent) == pytest.approx(1.55, abs=0.01)


def test_every_pairing_is_equal_in_a_scalar_model() -> None:
    """Which one is chosen is left to chance, so its expectation is that of random pairs."""
    model = scalar_model(published_matrix().array())
    means = [
        mean_of(model, [(0, 1), (2, 3), (4, 5), (6, 7)]),
        mean_of(model, [(0, 7), (1, 6), (2, 5), (3, 4)]),
    ]
    assert means[0] == pytest.approx(means[1])


def test_a_scalar_model_finds_the_numbers_that_made_a_matrix() -> None:
    made = np.array([90.0, 100.0, 110.0])[:, None] + np.array([1.0, -2.0, 3.0])[None, :]
    assert scalar_model(made) == pytest.approx(made)


def test_the_left_out_row_and_column_are_estimated_and_no_others() -> None:
    percent = published_matrix().array()
    half = np.array([published_half()[name] for name in published_matrix().names])
    known = np.arange(8) != 3
    for estimate in (from_others, from_half(half)):
        hidden = percent.copy()
        hidden[3, :] = hidden[:, 3] = 1e6
        first, second = estimate(percent, 3), estimate(hidden, 3)
        assert (first[np.ix_(known, known)] == percent[np.ix_(known, known)]).all()
        assert first[3, known] == pytest.approx(second[3, known])
        assert first[known, 3] == pytest.approx(second[known, 3])


def test_left_out_applications_are_paired_clearly_better_than_at_random() -> None:
    matrix = published_matrix()
    half = np.array([published_half()[name] for name in matrix.names])
    best = best_pairing(matrix)
    found = leave_one_out(matrix, from_half(half))
    assert [one.name for one in found] == list(matrix.names)
    assert np.mean([one.mean for one in found]) == pytest.approx(91.82, abs=0.01)
    assert max(one.mean for one in found) < (best.mean + best.random) / 2
    assert np.mean([one.mean for one in leave_one_out(matrix, from_others)]) == pytest.approx(91.92, abs=0.01)
