"""The groups of least node-hours."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.schedule import optimum
from elbowroom.schedule.groups import Group, GroupingProblem
from elbowroom.schedule.jobs import ScheduledJob
from elbowroom.schedule.optimum import best_groups, pair_costs
from schedule_fixture import job, problem, published_matrix

APPLICATIONS = published_matrix().names


@st.composite
def job_lists(draw: Any, least: int, most: int, constrained: bool = True) -> tuple[ScheduledJob, ...]:
    """Jobs of which each can run alone."""
    jobs = []
    for number in range(draw(st.integers(least, most))):
        hours = draw(st.floats(0.1, 10))
        others: dict[str, Any] = {}
        if constrained:
            others["share"] = draw(st.sampled_from((True, True, True, False, ("EP", "LU"))))
            others["cores"] = draw(st.sampled_from(("any", "any", "all", "half")))
            others["memory"] = draw(st.integers(1, 64))
            others["memory_half"] = draw(st.integers(1, 64))
            others["deadline"] = draw(st.sampled_from((None, 1.1 * hours, 3 * hours)))
        width = draw(st.sampled_from((1, 2, 4)))
        jobs.append(job(f"j{number}", draw(st.sampled_from(APPLICATIONS)), width, hours, **others))
    return tuple(jobs)


def partitions(case: GroupingProblem, left: tuple[int, ...]) -> Iterator[float]:
    """Node-hours of every way to run the jobs alone or in pairs."""
    if not left:
        yield 0.0
        return
    first, rest = left[0], left[1:]
    yield from (case.cost(case.single(first)) + cost for cost in partitions(case, rest))
    for other in rest:
        pairs = [Group(a, "half", ((b,),)) for a, b in ((first, other), (other, first))]
        costs = [case.cost(pair) for pair in pairs if case.possible(pair)]
        if costs:
            remaining = tuple(index for index in rest if index != other)
            yield from (min(costs) + cost for cost in partitions(case, remaining))


@settings(deadline=None, max_examples=30)
@given(job_lists(1, 6, constrained=False))
def test_no_way_with_pairs_takes_less(jobs: tuple[ScheduledJob, ...]) -> None:
    case = problem(*jobs)
    found = best_groups(case)
    assert found.cost <= min(partitions(case, tuple(range(len(jobs))))) * (1 + 1e-6)
    assert found.bound <= found.cost


@settings(deadline=None, max_examples=30)
@given(job_lists(1, 9))
def test_every_job_is_in_one_group_that_is_possible(jobs: tuple[ScheduledJob, ...]) -> None:
    case = problem(*jobs, memory=64)
    found = best_groups(case)
    assert sorted(index for group in found.groups for index in group.members) == list(range(len(jobs)))
    assert all(case.possible(group) for group in found.groups)


@settings(deadline=None, max_examples=8)
@given(job_lists(26, 40))
def test_many_jobs_are_in_possible_groups_too(jobs: tuple[ScheduledJob, ...]) -> None:
    case = problem(*jobs, memory=64)
    found = best_groups(case, seconds=20)
    assert sorted(index for group in found.groups for index in group.members) == list(range(len(jobs)))
    assert all(case.possible(group) for group in found.groups)


@settings(deadline=None, max_examples=30)
@given(job_lists(2, 6))
def test_costs_of_pairs_are_those_of_their_groups(jobs: tuple[ScheduledJob, ...]) -> None:
    case = problem(*jobs, memory=64)
    part = np.flatnonzero(case.nodes == case.nodes[0])
    costs = pair_costs(case, part)
    for i, a in enumerate(part.tolist()):
        for j, b in enumerate(part.tolist()):
            group = Group(a, "half", ((b,),))
            if i != j and case.possible(group):
                assert costs[i, j] == pytest.approx(case.cost(group))
            else:
                assert np.isinf(costs[i, j])


def test_priced_pairs_give_the_same_as_all_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [job(f"j{n}", APPLICATIONS[n % 8], 1, 1 + (n * 37 % 41) / 10) for n in range(60)]
    case = problem(*jobs)
    whole = best_groups(case)
    monkeypatch.setattr(optimum, "_DIRECT", 20)
    priced = best_groups(case)
    assert priced.cost == pytest.approx(whole.cost, rel=2e-3)
    assert priced.bound <= whole.cost * (1 + 1e-9)
    assert priced.bound == pytest.approx(whole.bound, rel=5e-3)


def test_a_group_of_three_is_found_where_it_saves() -> None:
    """Two short jobs fill the half that a long one leaves idle."""
    case = problem(job("long", "FT", hours=2.25), job("b", "LU", hours=1), job("c", "LU", hours=1))
    (group,) = best_groups(case).groups
    assert (group.host, set(group.members)) == (0, {0, 1, 2})


def test_a_deadline_that_needs_half_of_the_cores_is_met() -> None:
    case = problem(job("a", "CG", deadline=0.8), job("b", "EP", deadline=1.0))
    found = best_groups(case)
    assert all(case.possible(group) for group in found.groups)


@settings(deadline=None, max_examples=20)
@given(job_lists(2, 8))
def test_no_plan_takes_less_than_the_bound_of_companions(jobs: tuple[ScheduledJob, ...]) -> None:
    case = problem(*jobs, memory=64)
    assert optimum.companion_bound(case) <= best_groups(case).cost * (1 + 1e-9)
