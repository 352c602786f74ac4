"""What holds of every summary, ratio, onset and comparison."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compared import as_measured
from elbowroom.results.comparison import compare
from elbowroom.results.curves import affected, onset, recovery, steps
from elbowroom.results.result import PointResult
from elbowroom.stats.bootstrap import resampled_medians, weights
from elbowroom.stats.interval import Kept, Side, Summary
from elbowroom.stats.summary import kept, quantile, summarise

VALUES = st.lists(st.floats(0.01, 1e6), min_size=1, max_size=30)
RATIOS = st.lists(st.floats(0.05, 1.5), min_size=1, max_size=12)


def close(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-9)


def certain(value: float) -> Kept:
    return Kept(value=value, low=value, high=value)


@given(VALUES)
def test_a_summary_is_ordered_and_inside_its_values(values: list[float]) -> None:
    found = summarise(values, "us")
    assert min(values) <= found.d1 <= found.median <= found.d9 <= max(values)
    low, high = found.ends(found.median)
    assert (found.bounds is None) == (len(values) < 5)
    assert min(values) <= low <= found.median <= high <= max(values)
    assert found.count == len(values)


@given(VALUES, st.floats(0, 1))
def test_a_quantile_is_numpys(values: list[float], share: float) -> None:
    assert quantile(np.sort(values), share) == pytest.approx(float(np.quantile(values, share)))


@given(VALUES, st.randoms())
def test_a_summary_does_not_depend_on_the_order_but_for_its_interval(
    values: list[float], random: object
) -> None:
    mixed = list(values)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    one, other = summarise(values, "us"), summarise(mixed, "us")
    assert (one.median, one.d1, one.d9) == (other.median, other.d1, other.d9)


@given(VALUES, st.sampled_from([0.25, 2.0, 1024.0]))
def test_a_summary_scales_with_its_unit(values: list[float], factor: float) -> None:
    one, other = summarise(values, "us"), summarise([value * factor for value in values], "us")
    for name in ("median", "d1", "d9", *(("low", "high") if one.bounds else ())):
        assert close(getattr(one, name) * factor, getattr(other, name))


@given(st.dictionaries(st.integers(0, 20), VALUES, min_size=1, max_size=8))
def test_identical_sides_keep_exactly_one(side: dict[int, list[float]]) -> None:
    end = 1.0 if len(side) >= 5 else None
    found = kept(side, side)
    assert (found.value, found.bounds) == (1.0, None if end is None else (end, end))


@given(
    st.dictionaries(st.integers(0, 9), VALUES, min_size=1, max_size=6),
    st.dictionaries(st.integers(0, 9), VALUES, min_size=1, max_size=6),
    st.sampled_from([0.5, 8.0]),
)
def test_kept_is_without_unit_and_inverse_for_durations(
    alone: dict[int, list[float]], together: dict[int, list[float]], factor: float
) -> None:
    rate, duration = kept(alone, together), kept(alone, together, duration=True)
    scaled = kept(*({key: [v * factor for v in side[key]] for key in side} for side in (alone, together)))
    assert rate is not None
    assert duration is not None
    assert scaled is not None
    low, high = rate.ends(rate.value)
    assert low <= rate.value <= high
    assert close(rate.value, scaled.value)
    assert close(rate.value * duration.value, 1)


@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(-100, 100)), min_size=1, max_size=20), st.integers(0, 99)
)
def test_a_resampled_median_is_the_median_of_the_resample(rows: list[tuple[int, float]], seed: int) -> None:
    values = np.array([value for _, value in rows])
    groups = np.array([group for group, _ in rows])
    drawn = weights(6, seed, resamples=5)
    found = resampled_medians(values, groups, drawn)
    for resample in range(5):
        taken = np.repeat(values, drawn[groups, resample])
        assert found[resample] == pytest.approx(np.median(taken if taken.size else values))


@given(st.integers(1, 30), st.integers(0, 9))
def test_every_resample_draws_as_many_repetitions_as_there_are(repetitions: int, seed: int) -> None:
    assert (weights(repetitions, seed, 50).sum(axis=0) == repetitions).all()


@given(RATIOS, st.data())
def test_losing_more_never_moves_an_onset_later(ratios: list[float], data: st.DataObject) -> None:
    xs = list(range(len(ratios)))
    index = data.draw(st.integers(0, len(ratios) - 1))
    worse = [value * (0.5 if position == index else 1) for position, value in enumerate(ratios)]
    before, after = onset(xs, [certain(v) for v in ratios]), onset(xs, [certain(v) for v in worse])
    assert before.x is None or (after.x is not None and after.x <= before.x)
    assert before.first is None or (after.first is not None and after.first <= before.first)


@given(RATIOS)
def test_an_onset_separates_what_is_affected_from_what_is_not(ratios: list[float]) -> None:
    xs = [float(2**index) for index in range(len(ratios))]
    kepts = [certain(v) for v in ratios]
    found = onset(xs, kepts)
    if found.x is not None:
        assert all(affected(item) for x, item in zip(xs, kepts, strict=True) if x >= found.x)
    assert (found.x is None) == (recovery(xs, kepts) is not None)
    assert found.worst == min(ratios)
    assert (found.manner is not None) == (found.first is not None and len(ratios) > 2)


@given(RATIOS, st.randoms())
def test_an_onset_does_not_depend_on_the_order_of_its_points(ratios: list[float], random: object) -> None:
    rows = [(index, certain(value)) for index, value in enumerate(dict.fromkeys(ratios))]
    mixed = list(rows)
    random.shuffle(mixed)  # type: ignore[attr-defined]
    assert onset(*zip(*rows, strict=True)) == onset(*zip(*mixed, strict=True))  # type: ignore[arg-type]


def exact(value: float) -> Summary:
    return Summary(median=value, d1=value, d9=value, low=value, high=value, count=9, unit="us")


@given(
    st.lists(st.integers(1, 10**6), min_size=2, max_size=15, unique=True),
    st.floats(0.1, 10),
    st.floats(0.001, 1),
)
def test_a_fixed_cost_plus_a_constant_bandwidth_has_no_step(
    sizes: list[int], start: float, per_byte: float
) -> None:
    assert steps(sizes, [exact(start + per_byte * size) for size in sizes]) == ()


def result(alone: float, together: float, spread: float, unit: str) -> PointResult:
    def summary(median: float) -> Summary:
        low, high = median * (1 - spread), median * (1 + spread)
        return Summary(median=median, d1=low, d9=high, low=low, high=high, count=9, unit=unit)

    return PointResult(
        id="p",
        plan="p",
        kernel="triad",
        n=1,
        size=4,
        comp_node=0,
        comm_node=0,
        comm_core=0,
        metric="latency" if unit == "us" else "bandwidth",
        status="ok",
        flags=(),
        comp=Side(),
        comm=Side(alone=summary(alone), together=summary(together)),
    )


@given(
    st.floats(0.1, 1e4),
    st.floats(0.1, 1e4),
    st.floats(0.001, 0.3),
    st.sampled_from(["us", "MB/s"]),
)
def test_comparison_the_other_way_round_swaps_who_is_better(
    a: float, b: float, spread: float, unit: str
) -> None:
    one, other = (as_measured([result(value, value, spread, unit)], spread) for value in (a, b))
    swap = {"a": "b", "b": "a", "same": "same"}
    for forth, back in zip(compare(one, other), compare(other, one), strict=True):
        assert back.better == swap[forth.better]
        assert forth.low <= forth.change <= forth.high
        assert close((1 + forth.change) * (1 + back.change), 1)
        assert not forth.significant or forth.low > 0 or forth.high < 0
