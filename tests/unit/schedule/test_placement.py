"""When and on which nodes groups start."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.schedule.groups import Group, GroupingProblem
from elbowroom.schedule.jobs import ScheduledJob
from elbowroom.schedule.optimum import exclusive
from elbowroom.schedule.plan import PlacedGroup, late, place
from schedule_fixture import job, problem

widths = st.lists(st.tuples(st.integers(1, 8), st.floats(0.1, 5)), min_size=1, max_size=25)


def check(case: GroupingProblem, placed: tuple[PlacedGroup, ...]) -> None:
    """No node runs two groups at once, and every group has its nodes."""
    for item in placed:
        assert len(set(item.nodes)) == case.width(item.group)
        assert all(0 <= node < case.cluster.nodes for node in item.nodes)
    for first in placed:
        for second in placed:
            if first is not second and set(first.nodes) & set(second.nodes):
                assert first.end <= second.start * (1 + 1e-9) or second.end <= first.start * (1 + 1e-9)


@settings(deadline=None, max_examples=50)
@given(widths)
def test_no_node_runs_two_groups_at_once(shapes: list[tuple[int, float]]) -> None:
    case = problem(*(job(f"j{n}", nodes=w, hours=h, cores="all") for n, (w, h) in enumerate(shapes)))
    placed = place(case, exclusive(case))
    check(case, placed)
    assert len(placed) == len(shapes)


def test_groups_start_at_once_where_all_fit() -> None:
    case = problem(job("a", nodes=3), job("b", nodes=5))
    assert {item.start for item in place(case, exclusive(case))} == {0.0}


def test_the_job_with_the_earlier_deadline_starts_first() -> None:
    case = problem(
        job("a", nodes=8, hours=2, cores="all"), job("b", nodes=8, hours=1, deadline=1.5, cores="all")
    )
    placed = place(case, exclusive(case))
    assert [item.group.host for item in placed] == [1, 0]
    assert late(case, placed) == ()


def test_a_small_job_fills_a_gap_and_delays_no_wide_one() -> None:
    case = problem(
        job("a", nodes=6, hours=2, cores="all", deadline=2),
        job("wide", nodes=8, hours=1, cores="all", deadline=10),
        job("short", nodes=2, hours=2, cores="all"),
        job("long", nodes=2, hours=3, cores="all"),
    )
    starts = {item.group.host: item.start for item in place(case, exclusive(case))}
    assert starts == {0: 0, 2: 0, 1: pytest.approx(2), 3: pytest.approx(3)}


def test_a_job_starts_behind_those_that_it_waits_for() -> None:
    case = problem(job("a"), job("b", after=("a",)), job("c", after=("b",)))
    starts = {item.group.host: item.start for item in place(case, exclusive(case))}
    assert starts == {0: 0, 1: pytest.approx(1), 2: pytest.approx(2)}


def test_pairs_that_wait_for_each_other_are_taken_apart() -> None:
    case = problem(
        job("a"), job("b", after=("c",)), job("c"), job("d", after=("a",))
    )  # (a, b) before (c, d) and behind it
    placed = place(case, [Group(0, "half", ((1,),)), Group(2, "half", ((3,),))])
    assert sorted(index for item in placed for index in item.group.members) == [0, 1, 2, 3]
    check(case, placed)


def test_a_pair_that_makes_a_job_late_is_taken_apart() -> None:
    slow = job("slow", "EP", nodes=4, hours=4, cores="all")
    case = problem(slow, job("a", "EP", nodes=4, hours=1, deadline=1.1), job("b", "EP", nodes=4, hours=1))
    placed = place(case, [Group(0), Group(1, "half", ((2,),))])
    assert late(case, placed) == ()
    check(case, placed)


def test_jobs_that_cannot_all_meet_their_deadlines_are_named() -> None:
    jobs: list[ScheduledJob] = [job(f"j{n}", "EP", nodes=8, hours=1, deadline=1.5) for n in range(3)]
    case = problem(*jobs)
    placed = place(case, exclusive(case))
    assert len(late(case, placed)) == 2
    assert all(math.isfinite(item.end) for item in placed)
