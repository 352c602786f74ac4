"""The reason of what an overlap loses: planted truths are named, and the account adds up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.stats.overlap.measures import OverlapParts, account, losses, progress_share, reason_of
from elbowroom.stats.overlap.samples import OverlapSamples, resamples
from elbowroom.stats.signed_ranks import Floats
from simulated_overlaps import Bucket, Overlap, simulate

PLANTED = {
    "none": Overlap(comp=1.05e-3),
    "no_progress": Overlap(comp=1.05e-3, progresses=False),
    "late": Overlap(comp=1.05e-3, late=4e-4),
    "tail": Overlap(bucket=Bucket(slower=3.0, burst=1e-4)),
    "contention": Overlap(comp=1.05e-3, kept_comp=0.7, kept_comm=0.6),
}
FEW = 100
"""Resamples: enough for the ends of these intervals."""


def parts_of(samples: OverlapSamples) -> OverlapParts:
    return account(samples, resamples(samples, count=FEW))


def reason(samples: OverlapSamples, progressed: float | None = None) -> str:
    parts = parts_of(samples)
    return reason_of(losses(parts, progressed=progressed), parts, samples.clock_bound)


@pytest.mark.parametrize("planted", PLANTED)
def test_a_planted_reason_is_named(planted: str) -> None:
    variants = [
        replace(PLANTED[planted], seed=seed, ranks=(2, 4, 8)[seed % 3], noise=(0.005, 0.03)[seed % 2])
        for seed in range(20)
    ]
    named = [reason(simulate(variant)) for variant in variants]
    assert named.count(planted) >= 19


def test_a_memory_kernel_that_slows_only_itself_is_contention() -> None:
    assert reason(simulate(Overlap(comp=1.05e-3, kept_comp=0.7))) == "contention"


def test_a_message_that_only_contention_slows_is_contention() -> None:
    assert reason(simulate(Overlap(comp=1.05e-3, kept_comm=0.4))) == "contention"


def test_time_in_calls_of_test_is_no_progress() -> None:
    assert reason(simulate(Overlap(comp=1.05e-3, tests=0.5))) == "no_progress"


def test_a_blocking_operation_makes_no_progress_outside_of_mpi() -> None:
    assert reason(simulate(Overlap(comp=1.05e-3, starting=1.0))) == "no_progress"


def test_what_is_exposed_beside_registers_too_is_no_contention() -> None:
    slow = simulate(Overlap(comp=1.05e-3, kept_comm=0.4))
    assert reason(slow, progressed=0.4) == "no_progress"
    assert reason(slow, progressed=1.0) == "contention"


def test_the_larger_of_two_planted_reasons_is_named() -> None:
    both = Overlap(comp=1.05e-3, progresses=False, late=3e-4)
    parts = parts_of(simulate(both))
    shares = {loss.reason: loss.share for loss in losses(parts)}
    assert reason(simulate(both)) == "no_progress"
    # Of two ranks one waits 0.3 ms for the late one; both wait 1 ms for the message.
    assert shares["late"] == pytest.approx(0.15 / 1.15, abs=0.03)


def test_lateness_below_the_error_of_the_clocks_is_not_named() -> None:
    samples = simulate(Overlap(comp=1.05e-3, late=4e-4))
    parts = parts_of(samples)
    assert reason_of(losses(parts), parts, clock_bound=1e-3) == "none"


def test_a_late_rank_that_nobody_waits_for_is_no_reason() -> None:
    assert reason(simulate(Overlap(comp=3e-3, late=4e-4))) == "none"


def test_a_message_that_proceeds_only_inside_mpi_has_no_progress_share() -> None:
    share = progress_share(parts_of(simulate(Overlap(comp=1.2e-3, noise=0.005, progresses=False))))
    assert abs(float(share[0])) < 0.03


@settings(max_examples=15)
@given(
    st.sampled_from(sorted(PLANTED)),
    st.integers(1, 1000),
    st.floats(1e-3, 1e3),
    st.floats(-1e3, 1e3),
)
def test_reason_depends_on_neither_unit_nor_origin_of_time(
    planted: str, seed: int, unit: float, origin: float
) -> None:
    samples = simulate(replace(PLANTED[planted], seed=seed))
    moved = _changed(samples, lambda times: times * unit + origin, unit)
    assert reason(moved) == reason(samples)


@settings(max_examples=15)
@given(st.sampled_from(sorted(PLANTED)), st.integers(1, 1000))
def test_account_adds_up_to_what_communicating_costs(planted: str, seed: int) -> None:
    samples = simulate(replace(PLANTED[planted], seed=seed, noise=1e-6, stalls=0.0, arrivals=1e-9))
    parts = parts_of(samples)
    together = np.median((samples.together.leave - samples.together.enter).mean(axis=1))
    cost = sum(loss.seconds.value for loss in losses(parts))
    assert cost == pytest.approx(together - parts.computation[0], abs=5e-7)


def _changed(samples: OverlapSamples, change: Callable[[Floats], Floats], unit: float) -> OverlapSamples:
    together = samples.together
    return OverlapSamples(
        message=samples.message._replace(
            enter=change(samples.message.enter), leave=change(samples.message.leave)
        ),
        computation=samples.computation._replace(
            enter=change(samples.computation.enter), leave=change(samples.computation.leave)
        ),
        together=together._replace(
            enter=change(together.enter),
            posted=change(together.posted),
            computed=change(together.computed),
            leave=change(together.leave),
            tests_s=together.tests_s * unit,
        ),
        clock_bound=samples.clock_bound * unit,
    )
