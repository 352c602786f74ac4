"""From how many nodes on communication limits: interpolated inside of the runs, extrapolated beyond them."""

from __future__ import annotations

import numpy as np
import pytest

from elbowroom.experiments.diffusion.steps import crossing


def test_a_crossing_inside_of_the_runs_is_interpolated() -> None:
    found = crossing([4, 16, 64], [8.0, 2.0, 0.5])
    assert found.nodes == pytest.approx(32)
    assert not found.beyond


def test_a_crossing_beyond_the_runs_follows_the_power_law_of_all_of_them() -> None:
    found = crossing([4, 8, 16, 32], [512 / n for n in (4, 8, 16, 32)])
    assert found.nodes == pytest.approx(512)
    assert found.beyond
    assert found.low == pytest.approx(512)


def test_sides_that_shrink_alike_never_cross() -> None:
    assert crossing([4, 8, 16], [3.0, 3.0, 3.0]) is None


def test_two_numbers_of_nodes_give_no_interval() -> None:
    found = crossing([4, 16], [8.0, 4.0])
    assert found.nodes == pytest.approx(256)
    assert found.bounds is None


def test_the_interval_of_an_extrapolated_crossing_covers_as_often_as_it_says() -> None:
    rng = np.random.default_rng(4)
    nodes = np.array([4.0, 8, 16, 32, 64])
    hits = told = 0
    for _ in range(500):
        found = crossing(nodes.tolist(), (1000 / nodes * np.exp(0.05 * rng.standard_normal(5))).tolist())
        if found is not None and found.bounds is not None:
            told += 1
            hits += found.low <= 1000 <= found.high
    assert told > 480
    assert 0.92 <= hits / told <= 0.98
