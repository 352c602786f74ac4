"""Bandwidth over message size: the law, its fit, and what it changes in a model."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.errors import UsageError
from elbowroom.models import published
from elbowroom.models.message_size import MessageBandwidth, MessageSize, fit, threshold_at
from elbowroom.models.threshold.law import curve

SIZES = (4, 1024, 65536, 2**20, 64_000_000)
LAW = MessageSize(t0=2.0, low=1.9, high=2.1, sizes=SIZES, misfit=0.0)


def observations(
    t0: float, b: dict[int, float], factors: tuple[float, ...] = (1.0,)
) -> list[MessageBandwidth]:
    return [
        MessageBandwidth(node=node, size=size, bandwidth=size / (t0 + size / most) * factor)
        for node, most in b.items()
        for size, factor in zip(SIZES, factors * len(SIZES), strict=False)
    ]


@given(st.floats(min_value=0.1, max_value=50), st.floats(min_value=500, max_value=50_000))
def test_the_fit_finds_the_law_that_made_the_points(t0: float, b: float) -> None:
    found = fit(observations(t0, {0: b, 1: 1.7 * b}))
    assert found.t0 == pytest.approx(t0, rel=1e-6)
    assert found.misfit < 1e-9
    assert found.sizes == SIZES


def test_the_interval_of_a_noisy_fit_holds_the_true_t0() -> None:
    found = fit(observations(2.0, {0: 10_000.0}, (1.05, 0.97, 1.0, 1.03, 0.96)))
    assert found.low < 2.0 < found.high
    assert 0.01 < found.misfit < 0.06


def test_a_message_of_the_calibrated_size_keeps_its_bandwidth() -> None:
    assert LAW.bandwidth(64_000_000, known=10_000.0, at=64_000_000) == pytest.approx(10_000.0, rel=1e-12)


def test_a_small_message_is_bound_by_t0_and_a_large_one_by_the_bandwidth() -> None:
    assert LAW.bandwidth(4, known=10_000.0, at=64_000_000) == pytest.approx(4 / 2.0, rel=1e-3)
    assert LAW.bandwidth(2**40, known=10_000.0, at=64_000_000) == pytest.approx(10_003.1, rel=1e-4)


@pytest.mark.parametrize(("size", "known"), [(0, 10_000.0), (4, 1e9)])
def test_what_the_law_cannot_answer_is_refused(size: int, known: float) -> None:
    with pytest.raises(UsageError, match="no bandwidth by the law"):
        LAW.bandwidth(size, known=known, at=1000)


def test_sizes_outside_those_measured_are_extrapolated() -> None:
    assert [LAW.extrapolated(size) for size in (2, 4, 4096, 10**8)] == [True, False, False, True]


def test_two_sizes_are_too_few() -> None:
    two = [item for item in observations(1.0, {0: 1e4}) if item.size > 10**6 or item.size == 4]
    with pytest.raises(UsageError, match="too few for t0 and B"):
        fit(two[:2])


@pytest.mark.parametrize(
    ("size", "bandwidth", "field"),
    [(0, 5.0, "size"), (64, 0.0, "bandwidth"), (64, float("nan"), "bandwidth")],
)
def test_a_point_that_is_none_is_refused(size: int, bandwidth: float, field: str) -> None:
    wrong = MessageBandwidth(node=0, size=size, bandwidth=bandwidth)
    with pytest.raises(UsageError, match=field):
        fit([*observations(1.0, {0: 1e4}), wrong])


def test_smaller_messages_ask_for_less_and_leave_computations_more() -> None:
    henri = published.load("henri")
    at, small = 64_000_000, 65536
    whole = curve(henri.model, 0, 0, (18,))[0]
    less = curve(threshold_at(henri.model, LAW, at=at, size=small), 0, 0, (18,))[0]
    assert less[1] == pytest.approx(LAW.bandwidth(small, known=whole[1], at=at))
    assert less[3] < whole[3]
    assert less[2] > whole[2]


def test_the_model_for_its_own_size_is_the_model() -> None:
    henri = published.load("henri").model
    assert threshold_at(henri, LAW, at=64_000_000, size=64_000_000) == henri
