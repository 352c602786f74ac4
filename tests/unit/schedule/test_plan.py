"""Plans of jobs, as documents."""

from __future__ import annotations

from pathlib import Path

import pytest

from elbowroom.schedule.jobs import Cluster, Jobs, ScheduledJob
from elbowroom.schedule.plan import PLAN_FORMAT, SchedulePlan, schedule
from schedule_fixture import job, published_half, published_matrix


def planned(*jobs: ScheduledJob, nodes: int = 8, limit: float | None = None) -> SchedulePlan:
    listed = Jobs(cluster=Cluster(nodes=nodes, cores=16), jobs=jobs)
    return schedule(listed, published_matrix(), half=published_half(), limit=limit)


def test_a_plan_takes_less_than_exclusive_runs_and_random_pairs() -> None:
    plan = planned(*(job(name, name, hours=10) for name in published_matrix().names))
    assert plan.node_hours.plan < plan.node_hours.exclusive
    assert plan.node_hours.plan < plan.node_hours.random
    assert plan.node_hours.bound <= plan.node_hours.groups_bound <= plan.node_hours.plan


def test_companions_are_on_the_nodes_of_their_host() -> None:
    plan = planned(
        job("a", "CG", nodes=2), job("b", "EP", nodes=1, hours=0.7), job("c", "EP", nodes=1, hours=0.7)
    )
    (group,) = plan.groups
    by_name = {item.name: item for item in group.jobs}
    assert set(by_name["b"].nodes) | set(by_name["c"].nodes) == set(by_name["a"].nodes) == set(group.nodes)
    assert not set(by_name["b"].nodes) & set(by_name["c"].nodes)
    assert by_name["a"].companions == ("b", "c")
    assert by_name["b"].companions == ("a",)


def test_companions_of_a_queue_follow_each_other() -> None:
    plan = planned(job("a", "FT", hours=2.25), job("b", "LU"), job("c", "LU"), nodes=2)
    (group,) = plan.groups
    (queue,) = group.queues
    first, second = (next(item for item in group.jobs if item.name == name) for name in queue)
    assert second.start == pytest.approx(first.end)
    assert second.nodes == first.nodes


def test_late_jobs_are_named() -> None:
    plan = planned(*(job(f"j{n}", "EP", nodes=8, deadline=1.5, cores="all") for n in range(2)))
    assert len(plan.late) == 1
    assert [item.late for group in plan.groups for item in group.jobs] == [False, True]


def test_pairs_that_must_not_share_are_those_that_lose_or_break_the_limit() -> None:
    plan = planned(job("a", "CG"), job("b", "SP"), job("c", "EP"), job("d", "LU"), limit=101.9)
    assert plan.apart == (("CG", "SP"), ("EP", "LU"))
    assert planned(job("a", "CG"), job("b", "CG")).apart == (("CG", "CG"),)


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    plan = planned(job("a", "CG"), job("b", "EP"))
    PLAN_FORMAT.write(tmp_path / "plan.json", plan)
    assert PLAN_FORMAT.read(tmp_path / "plan.json") == plan
