"""Variation between starts of the program: its parts, and intervals that hold for other starts too."""

from __future__ import annotations

import numpy as np
import pytest

from elbowroom.stats.summary import by_start, start_interval, variation


def drawn(
    rng: np.random.Generator, starts: int, repetitions: int, between: float, within: float
) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of values, and the start of each."""
    numbers = np.repeat(np.arange(starts), repetitions)
    values = between * rng.standard_normal(starts)[numbers] + within * rng.standard_normal(numbers.size)
    return values, numbers


def test_a_planted_share_between_starts_is_recovered() -> None:
    rng = np.random.default_rng(1)
    found = [variation(*drawn(rng, 8, 5, 0.06, 0.04)) for _ in range(300)]
    assert np.mean([one.between**2 for one in found]) == pytest.approx(0.06**2, rel=0.1)
    assert np.mean([one.within**2 for one in found]) == pytest.approx(0.04**2, rel=0.05)
    covered = np.mean([one.low <= 0.36 / 0.52 <= one.high for one in found])
    assert 0.92 <= covered <= 0.98


def test_values_of_one_start_have_no_parts() -> None:
    assert variation(np.arange(5.0), np.zeros(5, dtype=int)) is None


def test_one_repetition_a_start_has_no_parts() -> None:
    assert variation(np.arange(5.0), np.arange(5)) is None


def test_values_without_variation_have_a_share_of_zero() -> None:
    found = variation(np.ones(6), np.repeat([0, 1, 2], 2))
    assert (found.share, found.low, found.between) == (0.0, None, 0.0)


def test_repetitions_without_a_value_are_left_out() -> None:
    values = np.array([1.0, np.nan, 1.2, 2.0, 2.2, np.nan])
    assert variation(values, np.repeat([0, 1], 3)).starts == 2
    assert by_start(values, np.array([0, 2, 0, 1, 1, 1])).tolist() == pytest.approx([1.1, 2.1])


def test_one_start_has_no_interval() -> None:
    assert start_interval(np.array([1.0])) is None


@pytest.mark.parametrize("starts", [2, 3, 4, 5, 7, 10])
@pytest.mark.parametrize("between", [0.0, 0.02, 0.2])
def test_the_interval_of_starts_covers_as_often_as_it_says(starts: int, between: float) -> None:
    rng = np.random.default_rng(starts)
    hits = 0
    for _ in range(600):
        low, high = start_interval(by_start(*drawn(rng, starts, 4, between, 0.05)))
        hits += low <= 0 <= high
    assert 0.92 <= hits / 600 <= 0.98
