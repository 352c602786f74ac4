"""The published matrix, and small sets of jobs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from elbowroom.schedule.groups import GroupingProblem
from elbowroom.schedule.jobs import Cluster, Jobs, ScheduledJob, check_jobs
from elbowroom.schedule.matrix import Matrix, parse_half, parse_matrix

PUBLISHED = Path(__file__).resolve().parents[1] / "machines" / "colocation"


def published_matrix() -> Matrix:
    file = PUBLISHED / "koop_shared_8x8.csv"
    return parse_matrix(file.read_text(encoding="utf-8"), file.name)


def published_half(name: str = "koop_shared_max_row.csv") -> dict[str, float]:
    return parse_half((PUBLISHED / name).read_text(encoding="utf-8"), name)


def job(
    name: str, application: str = "CG", nodes: int = 1, hours: float = 1.0, **others: Any
) -> ScheduledJob:
    return ScheduledJob(name=name, application=application, nodes=nodes, hours=hours, **others)


def problem(*jobs: ScheduledJob, nodes: int = 8, memory: int | None = None, **others: Any) -> GroupingProblem:
    """Jobs of the published applications on a cluster of 16 cores a node."""
    cluster = Cluster(nodes=nodes, cores=16, memory=memory)
    check_jobs(cluster, jobs)
    return GroupingProblem(Jobs(cluster=cluster, jobs=jobs), published_matrix(), published_half(), **others)
