"""Jobs that share simulated nodes."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))

from node_simulator import (
    CLASSES,
    SHARED,
    JobClass,
    SimulatedJob,
    exclusive_seconds,
    fair_shares,
    simulate,
)

COMPUTES = JobClass(name="c", compute=1.0, network=0.0, memory=0.1, jitter=0.0)
SENDS = JobClass(name="s", compute=0.0, network=1.0, inside=0.0, jitter=0.0)
BOTH = JobClass(name="b", compute=1.0, network=1.0, memory=0.1, inside=0.0, jitter=0.0)


@given(st.dictionaries(st.integers(0, 9), st.floats(0, 2), min_size=1), st.floats(0.1, 1))
def test_fair_shares_exceed_neither_demand_nor_capacity(wanted: dict[int, float], capacity: float) -> None:
    granted = fair_shares(wanted, capacity)
    assert all(0 <= granted[number] <= share * (1 + 1e-12) for number, share in wanted.items())
    assert sum(granted.values()) == pytest.approx(min(capacity, sum(wanted.values())))


def test_a_job_alone_takes_the_time_of_its_phases() -> None:
    steps, first = 10, None
    for steps in (10, 11):
        seconds = exclusive_seconds(BOTH, steps, seed=3)
        assert first is None or seconds - first == pytest.approx(2.0)
        first = seconds


def test_memory_bandwidth_limits_a_job_that_needs_more() -> None:
    hungry = JobClass(name="h", compute=1.0, network=0.0, memory=1.25, jitter=0.0)
    assert exclusive_seconds(hungry, 11, 3) - exclusive_seconds(hungry, 10, 3) == pytest.approx(1.25)


def test_half_of_the_cores_halve_a_burst_and_not_the_computation() -> None:
    alone = SimulatedJob(BOTH, 10, 3, (0,))
    half = simulate([alone._replace(half=True)])[0]
    assert simulate([alone])[0] - half == pytest.approx(10 * 0.5)


def test_messages_inside_a_node_leave_it_with_half_of_the_cores() -> None:
    inside = JobClass(name="i", compute=0.0, network=1.0, inside=1.0, jitter=0.0)
    assert simulate([SimulatedJob(inside, 10, 3, (0,), half=True)])[0] == pytest.approx(10)


def test_two_jobs_that_only_send_share_the_nic() -> None:
    pair = [SimulatedJob(SENDS, 10, seed, (0, 1), half=True) for seed in (1, 2)]
    assert simulate(pair) == pytest.approx([10 / SHARED["network"]] * 2)


def test_a_job_that_only_computes_disturbs_nobody_that_sends() -> None:
    pair = [SimulatedJob(kind, 10, 3, (0,), half=True) for kind in (SENDS, COMPUTES)]
    assert simulate(pair) == pytest.approx([simulate([job])[0] for job in pair])


def test_bursts_of_two_equal_jobs_interleave() -> None:
    """Why FT gains beside FT (Koop, Luo, Panda, slide 23)."""
    kind = JobClass(name="ft", compute=0.8, network=0.4, memory=0.1, inside=0.0)
    pair = simulate([SimulatedJob(kind, 200, seed, (0,), half=True) for seed in (1, 2)])
    assert max(pair) < 0.97 * exclusive_seconds(kind, 200, 1)


def test_a_job_waits_for_the_slowest_of_its_nodes() -> None:
    wide = SimulatedJob(SENDS, 10, 1, (0, 1), half=True)
    other = SimulatedJob(SENDS, 100, 2, (1,), half=True)
    assert simulate([wide, other])[0] == pytest.approx(10 / SHARED["network"])


def test_a_queued_job_starts_when_the_one_before_it_ends() -> None:
    first = SimulatedJob(COMPUTES, 10, 1, (0,))
    second = SimulatedJob(COMPUTES, 10, 2, (0,), after=0)
    ends = simulate([first, second])
    assert ends[1] == pytest.approx(ends[0] + simulate([second._replace(after=None)])[0])


def test_many_equal_nodes_are_as_fast_as_one() -> None:
    kinds = (CLASSES[1], CLASSES[3])
    few, many = (
        simulate([SimulatedJob(kind, 20, 7, tuple(range(nodes)), half=True) for kind in kinds])
        for nodes in (1, 64)
    )
    assert few == pytest.approx(many)
