"""The exact test within rounds."""

from __future__ import annotations

import numpy as np
import pytest

from elbowroom.stats.within_rounds import chance_below, fewest_rounds, shift, shift_interval


def test_rounds_that_are_all_faster_have_the_smallest_chance() -> None:
    own, others = np.full((3, 2), -1.0), np.zeros((3, 2))
    assert chance_below(own, others) == pytest.approx(6.0**-3)
    assert chance_below(-own, others) == pytest.approx(1.0)


@pytest.mark.parametrize(("error", "rounds"), [(0.05, 2), (1 / 36, 2), (0.0125, 3), (0.001, 4)])
def test_the_fewest_rounds_are_those_that_can_show_a_difference(error: float, rounds: int) -> None:
    assert fewest_rounds(error, 2, 2) == rounds


@pytest.mark.parametrize("noise", ["normal", "spikes", "drift"])
def test_no_difference_is_shown_as_often_as_the_error_says(noise: str) -> None:
    rng, shown, trials = np.random.default_rng(5), 0, 400
    for _ in range(trials):
        values = rng.normal(0, 0.03, (6, 4))
        if noise == "spikes":
            values = abs(values) + (rng.random((6, 4)) < 0.1) * rng.exponential(0.5, (6, 4))
        if noise == "drift":
            values += rng.normal(0, 0.3, (6, 1))
        shown += chance_below(values[:, :2], values[:, 2:]) <= 0.05
    assert shown / trials <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / trials)


def test_an_interval_holds_the_shift_and_follows_it() -> None:
    rng = np.random.default_rng(2)
    values = rng.normal(0, 0.02, (8, 4))
    ends = shift_interval(values[:, :2] - 0.1, values[:, 2:], 0.05)
    moved = shift_interval(values[:, :2] - 0.3, values[:, 2:], 0.05)
    assert ends is not None
    assert moved is not None
    assert ends[0] < shift(values[:, :2] - 0.1, values[:, 2:]) < ends[1] < 0
    assert moved[0] == pytest.approx(ends[0] - 0.2, abs=1e-6)
    assert shift_interval(values[:1, :2], values[:1, 2:], 0.05) is None
