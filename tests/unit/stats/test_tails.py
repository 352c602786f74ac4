"""Percentiles of latencies in an open loop, and planted stalls."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.stats.signed_ranks import Floats
from elbowroom.stats.tails import Window, disturbances, needed, tail

PERIOD = 20e-6


def window(seed: int, begins: Floats, length: Floats | float, *, seconds: float = 3.0) -> Window:
    """Messages of 2 us due every 20 us, delayed while one side is stopped at `begins`; in s."""
    random = np.random.default_rng(seed)
    count = round(seconds / PERIOD)
    round_trips = 2e-6 * np.exp(random.normal(0, 0.05, count))
    due = PERIOD * np.arange(1, count + 1)
    ends = np.zeros(count)
    stops = np.append(begins, np.inf)
    resumes = stops + np.append(np.broadcast_to(length, len(begins)), 0)
    free, at = 0.0, 0
    for i in range(count):
        start = max(due[i], free)
        end = start + round_trips[i]
        while stops[at] < end:
            end = max(start, resumes[at]) + round_trips[i]
            at += 1
        ends[i] = free = end
    return Window(period=PERIOD, due=due, latencies=ends - due, round_trips=round_trips)


def regular(seed: int) -> Floats:
    random = np.random.default_rng(seed)
    return 0.037 + 0.1 * np.arange(29) + random.normal(0, 1e-4, 29)


@pytest.mark.parametrize("seed", range(3))
def test_planted_stalls_are_recovered_in_length_and_period(seed: int) -> None:
    (found,) = disturbances([window(seed, regular(seed), 1e-3)])
    assert found.count == 29
    assert found.length.value == pytest.approx(1e-3, rel=0.05)
    assert found.period is not None
    assert found.period.value == pytest.approx(0.1, rel=0.05)
    assert found.period.low < 0.1 < found.period.high


def test_planted_stalls_are_found_among_others_of_their_length() -> None:
    random = np.random.default_rng(4)
    begins = np.concatenate([regular(4), random.uniform(0.1, 2.9, 10)])
    order = np.argsort(begins)
    lengths = np.concatenate([np.full(29, 1e-3), random.uniform(0.7e-3, 1.9e-3, 10)])[order]
    found = disturbances([window(4, begins[order], lengths)])[0]
    assert found.period is not None
    assert found.period.value == pytest.approx(0.1, rel=0.05)
    assert found.length.value == pytest.approx(1e-3, rel=0.05)


def test_stalls_of_several_windows_have_one_period() -> None:
    parts = [window(seed, 0.02 + 0.011 * seed + 0.1 * np.arange(5), 1e-3, seconds=0.6) for seed in range(4)]
    (found,) = disturbances(parts)
    assert found.period is not None
    assert found.period.value == pytest.approx(0.1, rel=0.05)


def test_stalls_of_different_lengths_are_classes_with_periods_of_their_own() -> None:
    short = 0.004 * np.arange(1, 700)
    begins = np.concatenate([regular(5), short])
    order = np.argsort(begins)
    lengths = np.concatenate([np.full(29, 1e-3), np.full(len(short), 60e-6)])[order]
    long, ticks = disturbances([window(5, begins[order], lengths)])
    assert long.period is not None
    assert ticks.period is not None
    assert (long.period.value, ticks.period.value) == pytest.approx((0.1, 0.004), rel=0.05)


def test_stalls_at_random_times_have_no_period() -> None:
    periods = 0
    for seed in range(10):
        begins = np.sort(np.random.default_rng(seed).uniform(0, 0.6, 25))
        periods += sum(
            one.period is not None for one in disturbances([window(seed, begins, 1e-3, seconds=0.6)])
        )
    assert periods == 0


def test_without_stalls_there_are_none() -> None:
    assert disturbances([window(2, np.empty(0), 1e-3, seconds=0.2)]) == ()
    assert disturbances([]) == ()


def test_messages_that_were_due_during_a_stall_count_with_their_wait() -> None:
    found = window(6, np.array([0.05]), 10e-3, seconds=0.1)
    late = found.latencies > 1e-3
    assert late.sum() == pytest.approx(9e-3 / (PERIOD - 2e-6), rel=0.05)


def test_intervals_of_percentiles_hold_the_truth_as_often_as_they_say() -> None:
    random = np.random.default_rng(3)
    truth = {50.0: np.log(2), 90.0: np.log(10), 99.0: np.log(100)}
    held = dict.fromkeys(truth, 0)
    for _ in range(200):
        for one in tail(random.exponential(size=2000)).percentiles:
            if one.percent in truth and one.low is not None and one.high is not None:
                held[one.percent] += one.low <= truth[one.percent] <= one.high
    assert all(0.92 <= count / 200 <= 1 for count in held.values())


def test_intervals_are_wider_where_neighbours_depend_on_each_other() -> None:
    values = np.random.default_rng(5).exponential(size=200)
    found = tail(np.repeat(values, 50))
    assert found.count == 10_000
    assert 100 <= found.independent <= 600


@pytest.mark.parametrize(("percent", "fewest"), [(50.0, 6), (90.0, 36), (99.0, 368), (99.9, 3688)])
def test_a_percentile_that_the_samples_cannot_support_has_no_value(percent: float, fewest: int) -> None:
    assert needed(percent) == fewest
    for count, known in ((fewest - 1, False), (fewest + 1, True)):
        values = np.random.default_rng(7).permutation(np.arange(float(count)))
        found = next(one for one in tail(values).percentiles if one.percent == percent)
        assert (found.value is not None) == known
        assert (found.bounds is not None) == known


@given(st.lists(st.floats(min_value=0, max_value=1e6), min_size=1, max_size=200))
def test_percentiles_rise_and_lie_in_their_intervals(values: list[float]) -> None:
    found = tail(np.array(values))
    known = [one for one in found.percentiles if one.value is not None]
    assert [one.value for one in known] == sorted(one.value for one in known)
    for one in known:
        assert one.low <= one.value <= one.high
    assert found.maximum == max(values)
