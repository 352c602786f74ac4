"""Percentiles of latencies, the open-loop correction, and planted stalls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.stats.tails import disturbances, open_loop, tail


def stalled(seed: int, *, length: float, period: float, seconds: float) -> tuple[np.ndarray, np.ndarray]:
    """A loop of messages of 20 us, stopped for `length` every `period`; times and latencies in s."""
    random = np.random.default_rng(seed)
    times, latencies, at, stop = [], [], 0.0, period * 0.37
    while at < seconds:
        latency = 20e-6 * float(np.exp(random.normal(0, 0.05)))
        if at <= stop < at + latency:
            latency += length
            stop += period
        times.append(at)
        latencies.append(latency)
        at += latency
    return np.array(times), np.array(latencies)


@pytest.mark.parametrize("seed", range(4))
def test_planted_stalls_are_recovered_in_length_and_period(seed: int) -> None:
    found = disturbances(*stalled(seed, length=1e-3, period=0.1, seconds=3.0))
    assert found.count == 30
    assert found.length is not None
    assert found.length.value == pytest.approx(1e-3, rel=0.05)
    assert found.period is not None
    assert found.period.value == pytest.approx(0.1, rel=0.05)


def test_random_stalls_have_no_period() -> None:
    random = np.random.default_rng(1)
    latencies = np.full(20_000, 20e-6) * np.exp(random.normal(0, 0.05, 20_000))
    latencies[random.integers(0, 20_000, 40)] += 1e-3
    found = disturbances(np.cumsum(latencies), latencies)
    assert found.count > 30
    assert found.period is None


def test_without_stalls_there_are_none() -> None:
    latencies = np.exp(np.random.default_rng(2).normal(0, 0.05, 5000))
    assert disturbances(np.arange(5000.0), latencies).count == 0


def test_intervals_of_percentiles_hold_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(3)
    truth = {50.0: np.log(2), 90.0: np.log(10), 99.0: np.log(100)}
    held = dict.fromkeys(truth, 0)
    for _ in range(400):
        for one in tail(random.exponential(size=2000)).percentiles:
            if one.percent in truth and one.low is not None and one.high is not None:
                held[one.percent] += one.low <= truth[one.percent] <= one.high
    assert all(0.92 <= count / 400 <= 1 for count in held.values())


def test_a_percentile_beyond_the_samples_has_no_upper_end() -> None:
    found = tail(np.arange(100.0))
    assert found.percentiles[-1].high is None
    assert found.percentiles[0].high is not None
    assert found.maximum == 99


def test_the_correction_adds_what_a_waiting_loop_did_not_send() -> None:
    corrected = open_loop(np.array([1.0, 10.0]), 3.0)
    assert sorted(corrected.tolist()) == [1.0, 1.0, 4.0, 7.0, 10.0]


@given(
    latencies=st.lists(st.floats(min_value=1e-3, max_value=50), min_size=1, max_size=30),
    period=st.floats(min_value=0.1, max_value=20),
)
def test_the_correction_keeps_the_samples_and_adds_only_shorter_ones(
    latencies: list[float], period: float
) -> None:
    corrected = open_loop(np.array(latencies), period)
    assert corrected[: len(latencies)].tolist() == latencies
    assert (corrected > -1e-9).all()
    assert corrected.max() == max(latencies)


@given(st.lists(st.floats(min_value=0, max_value=1e6), min_size=1, max_size=200))
def test_percentiles_rise_and_lie_in_their_intervals(values: list[float]) -> None:
    found = tail(np.array(values))
    middles = [one.value for one in found.percentiles]
    assert middles == sorted(middles)
    for one in found.percentiles:
        assert one.low is None or one.low <= one.value
        assert one.high is None or one.value <= one.high
