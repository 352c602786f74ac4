"""Resamples that all points of a run share: what drifts cancels, and intervals of few repetitions hold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from elbowroom.points.point import Point
from elbowroom.results.resampled import log_kept, log_of
from elbowroom.stats.bootstrap import percentile_interval
from elbowroom.stats.interval import Kept
from elbowroom.stats.summary import Samples, kept

PHASES = ("B", "AB", "AB", "B")


def points(count: int) -> list[Point]:
    return [
        Point(
            plan="p", kernel="triad", n=1, size=size + 1, comp_node=0, comm_node=0, comm_core=0,
            metric="bandwidth",
        )
        for size in range(count)
    ]  # fmt: skip


def samples(values: Sequence[Sequence[Sequence[float]]], unit: str = "MB/s", status: str = "ok") -> Samples:
    """`values[point][repetition]`: the four phases of a repetition."""
    rows = [
        (number, repetition, False, phase, "comm", value, unit, status)
        for number, repetitions in enumerate(values)
        for repetition, phases in enumerate(repetitions)
        for phase, value in zip(PHASES, phases, strict=True)
    ]
    return Samples(*zip(*rows, strict=True))


def test_the_value_is_that_of_the_point() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(10, 1, (1, 8, 4)).tolist()
    found = log_kept(points(1), samples(values), 8)[points(1)[0].id, "comm"]
    apart = {r: [row[0], row[3]] for r, row in enumerate(values[0])}
    both = {r: [row[1], row[2]] for r, row in enumerate(values[0])}
    ratio = kept(apart, both)
    assert ratio is not None
    assert np.exp(found.value) == pytest.approx(ratio.value, rel=0.1)


def test_a_duration_keeps_less_where_it_grows() -> None:
    values = [[[1.0, 2.0, 2.0, 1.0]] * 3]
    assert log_kept(points(1), samples(values, unit="us"), 3)[points(1)[0].id, "comm"].value == pytest.approx(
        -np.log(2)
    )


def test_a_drift_that_all_points_share_cancels_in_their_contrast() -> None:
    rng = np.random.default_rng(2)
    drift = rng.uniform(0.4, 1.0, 8)
    one = [[10.0, 8.0 * slow, 8.0 * slow, 10.0] for slow in drift]
    other = [[10.0, 4.0 * slow, 4.0 * slow, 10.0] for slow in drift]
    a, b = (log_kept(points(2), samples([one, other]), 8)[point.id, "comm"] for point in points(2))
    low, high = percentile_interval(b.draws - a.draws)
    assert (low, high) == pytest.approx((np.log(0.5), np.log(0.5)))
    wide = percentile_interval(a.draws)
    assert wide[1] - wide[0] > 0.05


def test_one_repetition_and_void_samples_tell_nothing() -> None:
    values = [[[1.0, 2.0, 2.0, 1.0]]]
    assert log_kept(points(1), samples(values), 1) == {}
    assert log_kept(points(1), samples(values * 1, status="void"), 1) == {}


@pytest.mark.parametrize("repetitions", [4, 8])
def test_two_equal_points_are_called_different_in_one_of_twenty(repetitions: int) -> None:
    pairs = 150
    rng = np.random.default_rng(repetitions)
    values = np.exp(rng.normal(0, 0.05, (2 * pairs, repetitions, 4))).tolist()
    chosen = points(2 * pairs)
    found = log_kept(chosen, samples(values), repetitions)
    logs = [found[point.id, "comm"] for point in chosen]
    wrong = 0
    for a, b in zip(logs[::2], logs[1::2], strict=True):
        low, high = percentile_interval(b.draws - a.draws)
        wrong += low > 0 or high < 0
    # 7.5 of 150 are expected; more than 14 happens once in a hundred.
    assert wrong <= 14


def test_draws_of_an_interval_agree_with_it() -> None:
    found = log_of(Kept(value=0.8, low=0.7, high=0.84), (1,))
    low, high = percentile_interval(found.draws)
    assert (np.exp(low), np.exp(high)) == pytest.approx((0.7, 0.84), abs=0.015)
    assert log_of(Kept(value=0.8, low=0.7, high=0.84), (1,)).draws.tolist() == found.draws.tolist()
    with pytest.raises(ValueError, match="has no logarithm"):
        log_of(Kept(value=0.1, low=-0.1, high=0.3), (1,))
