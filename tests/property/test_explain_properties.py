"""Shares of a loss: they sum to the whole, whatever is measured and in whatever order it comes."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.explain.chain import cases, observed_points
from elbowroom.explain.explanation import ExplainedPoint
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Kept, Side, Summary
from studies import machine

TWO = machine(16, 2, 2, nic=0, hosts=2)
KERNELS = ("prime", "fma", "triad_cache", "load_cache", "triad_llc", "memset_nt", "triad")
ALONE = Summary(median=1.0, d1=0.9, d9=1.1, low=0.99, high=1.01, count=16, unit="MB/s")

keeps = st.floats(0.05, 1.6)
widths = st.floats(0.0, 0.2)
sides = st.tuples(keeps, widths)
choices = st.dictionaries(
    st.tuples(st.sampled_from(KERNELS), st.sampled_from([(0, 0), (1, 1), (0, 1), (1, 0)])),
    st.tuples(sides, sides),
    min_size=1,
)


def side(value: float, width: float) -> Side:
    kept = Kept(value=value, low=value * (1 - width), high=value * (1 + width))
    return Side(alone=ALONE, together=ALONE, kept=kept)


def points(chosen: dict[tuple[str, tuple[int, int]], tuple[tuple[float, float], ...]]) -> list[PointResult]:
    return [
        PointResult(
            id=f"{kernel}-{comp}-{comm}", plan="p", kernel=kernel, n=2, size=64_000_000, comp_node=comp,
            comm_node=comm, comm_core=7, comp_cores=(0, 1), metric="bandwidth", status="ok", flags=(),
            comp=side(*comp_kept), comm=side(*comm_kept),
        )
        for (kernel, (comp, comm)), (comp_kept, comm_kept) in chosen.items()
    ]  # fmt: skip


def split_up(results: list[PointResult]) -> tuple[ExplainedPoint, ...]:
    return cases(observed_points(results), TWO)


@settings(max_examples=20)
@given(choices)
def test_factors_multiply_to_what_is_kept_and_shares_sum_to_one(chosen: dict) -> None:  # type: ignore[type-arg]
    for case in split_up(points(chosen)):
        for part in case.splits:
            product = math.prod(step.kept.value for step in part.steps)
            assert product == pytest.approx(part.kept.value)
            shares = [step.share.value for step in part.steps if step.share is not None]
            if part.decided == "loses":
                assert sum(shares) == pytest.approx(1.0)
            else:
                assert shares == []


@settings(max_examples=20)
@given(choices, st.randoms(use_true_random=False))
def test_the_order_of_points_changes_nothing(chosen: dict, order: random.Random) -> None:  # type: ignore[type-arg]
    results = points(chosen)
    shuffled = list(results)
    order.shuffle(shuffled)
    assert split_up(results) == split_up(shuffled)


@settings(max_examples=20)
@given(choices)
def test_every_step_holds_its_value_and_is_decided_by_its_interval(chosen: dict) -> None:  # type: ignore[type-arg]
    for case in split_up(points(chosen)):
        for step in (step for part in case.splits for step in part.steps):
            assert step.kept.low <= step.kept.value <= step.kept.high
            assert (step.decided == "undecided") == (step.kept.low <= 1 <= step.kept.high)
            if step.share is not None:
                assert 0 <= step.share.value <= 1
                assert (step.share.value == 0) == (step.kept.value >= 1)


@settings(max_examples=20)
@given(choices)
def test_every_source_of_a_chain_is_in_one_step(chosen: dict) -> None:  # type: ignore[type-arg]
    for case in split_up(points(chosen)):
        for part in case.splits:
            sources = [source for step in part.steps for source in step.sources]
            assert len(sources) == len(set(sources))
            assert sources[0] == "everything but memory"
            assert ("link" in sources) <= bool(case.remote)
            assert [step.before for step in part.steps] == ["", *(step.after for step in part.steps[:-1])]
            assert part.steps[-1].after == case.point
