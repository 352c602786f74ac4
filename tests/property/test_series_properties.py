"""Windows of extraneous accesses: what holds for any sizes and any times."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from accessed import cached, plan, study
from elbowroom.errors import UsageError
from elbowroom.experiments.ema.cases import cases
from elbowroom.experiments.ema.floors import Floors, region_of
from elbowroom.experiments.ema.points import windows
from elbowroom.stats import bootstrap

HERE = cached()


@given(
    low=st.integers(0, 10**6),
    span=st.integers(0, 10**6),
    step=st.integers(1, 10**5),
    each=st.integers(1, 300),
)
def test_windows_hold_every_size_once_and_are_of_one_width(low: int, span: int, step: int, each: int) -> None:
    asked = {"accesses": f"{low},{low + span}", "access_step": str(step), "window_sizes": str(each)}
    try:
        found = windows(plan(**asked).keys)
    except UsageError:
        assert span + low == 0 or 0 < span < step or span // step / each > 9_999
        return
    sizes = [first + number * step for first, count in found for number in range(count)]
    assert sizes == list(range(low, low + span + 1, step))
    counts = [count for _, count in found]
    assert max(counts) - min(counts) <= 1


@given(
    st.lists(st.lists(st.floats(0.1, 10), min_size=1, max_size=20), min_size=1, max_size=8), st.floats(0.5, 3)
)
@settings(max_examples=30)
def test_floors_scale_with_the_times_and_lie_among_them(parts: list[list[float]], factor: float) -> None:
    columns = [np.sort(np.array(part)) for part in parts]
    one, more = Floors(columns, 1), Floors([factor * column for column in columns], 1)
    assert np.isclose(more.value, factor * one.value)
    assert np.allclose(more.drawn, factor * one.drawn)
    assert min(map(min, parts)) <= one.drawn.min() <= one.value <= max(map(max, parts))
    same = Floors(columns, 1, columns)
    assert same.value == 1.0


@given(size=st.floats(0, 1e9), levels=st.lists(st.integers(1, 10**8), min_size=1, max_size=3, unique=True))
def test_a_region_is_past_the_last_cache_that_is_outgrown(size: float, levels: list[int]) -> None:
    edges = dict(enumerate(sorted(float(level) for level in levels), start=1))
    past = sum(size > edge for edge in edges.values())
    assert region_of(size, edges) == (f"past L{past}" if past else "within L1")


@given(st.integers(600, 900), st.integers(1, 30), st.integers(0, 5))
@settings(max_examples=15)
def test_medians_of_resamples_are_the_same_from_the_middle_of_the_values(
    count: int, groups: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values, members = np.round(rng.normal(1, 0.1, count), 2), rng.integers(0, groups, count)
    drawn = bootstrap.weights(groups, seed, 50)
    expected = [
        float(np.median(np.repeat(values, drawn[members, column]))) if drawn[members, column].any() else None
        for column in range(drawn.shape[1])
    ]
    found = bootstrap.resampled_medians(values, members, drawn)
    assert all(one is None or np.isclose(one, other) for one, other in zip(expected, found, strict=True))


def test_regions_of_one_case_do_not_depend_on_the_order_of_its_points() -> None:
    found = study(HERE)
    one, other = cases(found, HERE), cases(found[::-1], HERE)
    assert {case.who: case.regions for case in one} == {case.who: case.regions for case in other}
