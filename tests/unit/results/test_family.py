"""Holm's procedure over the sides of a run."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.results.family import chance, rejected
from elbowroom.results.result import Kept
from elbowroom.stats.signed_ranks import pseudo_median, rank_interval

probabilities = st.dictionaries(st.integers(0, 30), st.floats(0, 1), max_size=20)


@given(probabilities)
def test_no_more_are_found_than_one_by_one_and_no_fewer_than_by_bonferroni(chances: dict[int, float]) -> None:
    found = set(rejected(chances))
    assert found <= {key for key, value in chances.items() if value <= 0.05}
    assert found >= {key for key, value in chances.items() if value <= 0.05 / len(chances)}


@given(probabilities, st.floats(0, 1))
def test_a_further_side_never_adds_another(chances: dict[int, float], more: float) -> None:
    assert set(rejected({**chances, -1: more})) - {-1} <= set(rejected(chances))


def test_the_chance_of_an_interval_that_ends_at_one_is_that_of_the_interval() -> None:
    kept = Kept(value=0.9, low=0.81, high=1.0)
    assert abs(chance(kept, 20) - 0.05) < 1e-9
    assert chance(Kept(value=0.9), 20) == 0.0


def test_of_twelve_sides_that_lose_nothing_one_is_found_in_about_one_run_of_twenty() -> None:
    rng = np.random.default_rng(7)
    for repetitions in (5, 10, 40):
        wrong = alone = 0
        for _ in range(400):
            chances = {}
            for side in range(12):
                values = rng.normal(0, 0.1, repetitions)
                low, high = rank_interval(values) or (0.0, 0.0)
                value, low, high = np.exp([pseudo_median(values), low, high]).tolist()
                kept = Kept(value=value, low=low, high=high)
                chances[side] = chance(kept, repetitions)
                alone += kept.high is not None and kept.high < 1
            wrong += bool(rejected(chances))
        assert wrong / 400 < 0.1, repetitions
        assert alone / 400 > 0.2
