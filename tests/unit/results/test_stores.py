"""How often a plain store crosses the memory bus, from kernels that differ only in their stores."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.plan.kernels import STORE_PAIRS, Kernel
from elbowroom.points.point import Point
from elbowroom.results.curves import traffic
from elbowroom.results.result import PointResult
from elbowroom.results.stores import (
    MIX,
    StoreFactor,
    finding,
    infer,
    of_one_machine,
    store_factor,
    with_store_factor,
)
from elbowroom.stats.interval import Summary
from elbowroom.stats.summary import summarise
from studies import HENRI, study

BUS, CORE = 100_000.0, 20_000.0
"""MB/s over the bus of a node, and of one core of it."""
TRIAD, TRIAD_NT = next(pair for pair in STORE_PAIRS if pair[0].name == "triad")

pairs = st.sampled_from(STORE_PAIRS)
factors = st.floats(1.0, 2.0)
seeds = st.integers(0, 2**32 - 1)


def rates(
    kernel: Kernel, factor: float, *, cores: Sequence[int] = (1, 16), noise: float = 0.0, seed: int = 0
) -> dict[int, Summary]:
    """Seven repetitions on so many cores of a machine whose plain stores move `factor` times their bytes."""
    rng = np.random.default_rng(seed)
    return {
        count: summarise(
            min(BUS, CORE * count) * kernel.bus_share(factor) * rng.lognormal(0.0, noise, 7), "MB/s"
        )
        for count in cores
    }


@given(pairs, factors, seeds)
def test_a_planted_factor_is_recovered_from_noisy_rates(
    pair: tuple[Kernel, Kernel], planted: float, seed: int
) -> None:
    plain, non_temporal = pair
    found = infer(
        plain,
        rates(plain, planted, noise=0.003, seed=seed),
        rates(non_temporal, 2, noise=0.003, seed=seed + 1),
    )
    assert found.source == "measured"
    assert found.bounds is not None
    assert 1 <= found.bounds[0] <= found.value <= found.bounds[1] <= 2
    assert found.bounds[0] <= planted <= found.bounds[1]
    assert found.value == pytest.approx(planted, abs=0.05)


@given(factors, st.floats(0.08, 0.5))
def test_a_factor_with_a_wide_interval_is_assumed(planted: float, half: float) -> None:
    plain, non_temporal = (
        {
            count: msgspec.structs.replace(one, low=one.median * (1 - half), high=one.median * (1 + half))
            for count, one in some.items()
        }
        for some in (rates(TRIAD, planted), rates(TRIAD_NT, 2))
    )
    found = infer(TRIAD, plain, non_temporal)
    assert (found.source, found.value, found.bounds) == ("assumed", 2.0, None)
    assert "determine it to" in found.reason


@given(pairs, st.floats(0.3, 4.0), st.floats(0.3, 4.0))
def test_every_factor_is_between_one_and_two(pair: tuple[Kernel, Kernel], slow: float, fast: float) -> None:
    plain, _ = pair
    found = infer(plain, rates(plain, slow), rates(plain, fast))
    assert 1 <= found.value <= 2
    assert (found.bounds is None) == (found.source == "assumed")
    assert found.bounds is None or 1 <= found.bounds[0] <= found.value <= found.bounds[1] <= 2


def test_rates_that_no_read_explains_determine_no_factor() -> None:
    found = infer(TRIAD, rates(TRIAD, 0.7), rates(TRIAD_NT, 2))
    assert (found.source, found.value) == ("assumed", 2.0)
    assert "reaches 0.90 times the rate of triad, which reads cannot explain" in found.reason


@pytest.mark.parametrize(
    ("cores", "reason"), [((16,), "need two numbers of cores"), ((1, 4), "do not saturate memory on 4 cores")]
)
def test_rates_below_saturation_determine_no_factor(cores: tuple[int, ...], reason: str) -> None:
    # Equal rates: latency limits the cores, and a factor of 1 would be wrong.
    same = rates(TRIAD, 2, cores=cores)
    found = infer(TRIAD, same, same)
    assert found.source == "assumed"
    assert reason in found.reason


def test_few_repetitions_determine_no_factor() -> None:
    few = {count: summarise([value, value], "MB/s") for count, value in ((1, CORE), (16, BUS))}
    assert infer(TRIAD, few, few).reason == "triad and triad_nt have fewer than 5 repetitions"


def test_the_bandwidth_of_memory_may_differ_by_the_allowance_between_both_kernels() -> None:
    for tilt in (1 / (1 + MIX), 1 + MIX):
        other = {
            count: summarise([one.median * tilt] * 7, "MB/s") for count, one in rates(TRIAD_NT, 2).items()
        }
        found = infer(TRIAD, rates(TRIAD, 1.4), other)
        assert found.bounds is not None
        assert found.bounds[0] <= 1.4 + 1e-9
        assert found.bounds[1] >= 1.4 - 1e-9


def outcome(factor: float, kernels: tuple[str, ...] = ("triad", "triad_nt")) -> list[PointResult]:
    """The plan `contrast` on a machine with that store factor."""
    by_name = {kernel.name: kernel for pair in STORE_PAIRS for kernel in pair}

    def truth(point: Point) -> tuple[float, float, float, float]:
        if point.kernel not in by_name:
            return 1.0, 1.0, 1.5, 1.5
        alone = min(CORE * point.n, BUS) * by_name[point.kernel].bus_share(factor)
        return alone, alone, 1.5, 1.5

    return study("contrast", HENRI, truth, kernels=kernels, settings={"comp_nodes": "near"})[1]


@pytest.mark.parametrize("planted", [1.0, 2.0])
def test_a_run_of_both_kernels_counts_its_traffic_with_its_own_factor(planted: float) -> None:
    results = outcome(planted)
    factor = store_factor(results)
    assert factor is not None
    assert factor.value == pytest.approx(planted, abs=0.06)
    points = with_store_factor(results, factor)
    assert of_one_machine(points) == factor.value
    most = max((item for item in points if item.kernel == "triad"), key=lambda item: item.n)
    assert traffic(most, "alone") == pytest.approx(BUS, rel=0.03)
    assert f"A plain store moves {factor.value:.2f}" in finding(factor).text


def test_a_run_without_both_kernels_keeps_the_assumption() -> None:
    results = outcome(1.0, kernels=("triad",))
    assert store_factor(results) is None
    assert with_store_factor(results, None) == results
    assert of_one_machine(results) is msgspec.UNSET


def test_a_factor_that_was_not_determined_is_called_an_assumption() -> None:
    results = outcome(1.0)
    factor = store_factor([item for item in results if item.n == results[0].n])
    assert factor is not None
    assert with_store_factor(results, factor) == results
    assert "This is an assumption" in finding(factor).text
    assert finding(StoreFactor(reason="r")).values["source"] == "assumed"
