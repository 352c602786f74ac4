"""Levels of nodes and pairs: effects that are planted come back, and classes are found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.accept.losses import as_loss, as_share, classes_of, fit_levels, spread_of
from elbowroom.accept.quantities import QUANTITIES
from elbowroom.accept.readings import Readings, SiteReadings, fold, row_medians, rows_by, take
from elbowroom.accept.rounds import draw_rounds


def paired(effects: np.ndarray, rounds: int = 10, noise: float = 0.002) -> SiteReadings:
    """Bandwidths of random pairs, each lowered by what both of its nodes lose."""
    random = np.random.default_rng(1)
    pairs = np.concatenate(draw_rounds(None, len(effects), rounds, random))
    nodes, partners = np.concatenate([pairs, pairs[:, ::-1]]).T
    losses = effects[nodes] + effects[partners] + random.normal(0, noise, len(nodes))
    one = Readings(
        quantity=QUANTITIES["bandwidth"], nodes=nodes, partners=partners, values=12e3 * np.exp(-losses)
    )
    return SiteReadings(nodes=tuple(f"n{at}" for at in range(len(effects))), readings=(one,))


def test_what_a_node_loses_is_recovered_although_its_partners_lose_too() -> None:
    effects = np.zeros(60)
    effects[[3, 40]] = 0.1, 0.7
    sent, received = fit_levels(paired(effects), 0.01)
    for model in (sent, received):
        assert model.own == pytest.approx(effects, abs=0.01)
        assert model.spread < 0.004


def test_two_classes_are_found_and_few_slow_nodes_are_none() -> None:
    random = np.random.default_rng(2)
    levels = random.normal(0, 0.003, 40)
    kinds = np.zeros(40, dtype=np.int64)
    levels[:4] += 0.1
    assert set(classes_of(levels, kinds, 0.02)[0]) == {0}
    levels[:20] = random.normal(0.1, 0.003, 20)
    labels, centres = classes_of(levels, kinds, 0.02)
    assert list(labels) == [1] * 20 + [0] * 20
    assert centres == pytest.approx([0, 0.1], abs=0.005)


def test_a_kind_of_one_node_has_no_level() -> None:
    kinds = np.array([0, 0, 0, 0, 1])
    labels, centres = classes_of(np.zeros(5), kinds, 0.02)
    assert np.isnan(centres[labels[4]])
    assert centres[labels[0]] == 0


def test_the_spread_is_that_of_healthy_values() -> None:
    values = np.random.default_rng(3).normal(0, 0.01, 1000)
    values[:50] += 0.5
    assert spread_of(values) == pytest.approx(0.0105, abs=0.0015)


@pytest.mark.parametrize("name", ["bandwidth", "latency", "slow-moments"])
def test_a_share_and_a_loss_are_inverse(name: str) -> None:
    assert as_share(QUANTITIES[name], as_loss(QUANTITIES[name], 0.07)) == pytest.approx(0.07)


@settings(max_examples=30, deadline=None)
@given(st.lists(st.integers(-1, 4), max_size=30))
def test_rows_hold_each_position_once(index: list[int]) -> None:
    rows = rows_by(np.array(index, dtype=np.int64), 5)
    for node, row in enumerate(rows):
        assert [int(at) for at in row if at >= 0] == [at for at, one in enumerate(index) if one == node]


def test_medians_of_rows_ignore_what_is_missing() -> None:
    rows = np.array([[1.0, 3.0, np.nan], [np.nan, np.nan, np.nan], [4.0, 1.0, 2.0]])
    assert row_medians(rows) == pytest.approx([2.0, np.nan, 2.0], nan_ok=True)
    assert np.isnan(take(np.array([1.0]), np.array([[0, -1]]))[0, 1])


def test_nodes_are_folded_as_slurm_reads_them() -> None:
    assert fold(["n40", "n12", "n41", "n42", "n43"]) == "n[12,40-43]"
    assert fold(["n7"]) == "n7"
    assert fold(["cn001", "cn002", "cn010", "login"]) == "login,cn[001-002,010]"
    assert fold([]) == ""


def test_rounds_are_disjoint_and_visit_all_pairs_of_switches() -> None:
    switches = np.arange(96) // 8
    met = set()
    rounds = draw_rounds(switches, 96, 10, np.random.default_rng(1))
    for pairs in rounds:
        assert len(set(pairs.ravel())) == pairs.size == 96
        met |= {tuple(sorted(pair)) for pair in switches[pairs].tolist() if pair[0] != pair[1]}
    assert len(met) == 12 * 11 // 2
    assert sum((switches[pairs[:, 0]] == switches[pairs[:, 1]]).all() for pairs in rounds) == 2
