"""The script of `colocate schedule --slurm`, submitted to a real Slurm of four nodes."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from elbowroom.schedule.jobs import Cluster, Jobs, ScheduledJob
from elbowroom.schedule.plan import SchedulePlan, schedule
from elbowroom.schedule.slurm import slurm_script
from schedule_fixture import job, published_half, published_matrix
from slurm_cluster import Slurm, running_slurm

SECONDS = 2
"""Of each job: longer than what Slurm takes to start a second step."""


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    with running_slurm(nodes=4) as cluster:
        yield cluster


def lasting(folder: Path, name: str, application: str, **others: object) -> ScheduledJob:
    """A job whose tasks write their node, and when they begin and end."""
    line = f"echo $SLURMD_NODENAME $(date +%s.%N) $(sleep {SECONDS}) $(date +%s.%N) >> {folder}/{name}"
    return job(name, application, command=f"sh -c '{line}'", **others)


def pair(folder: Path, b: ScheduledJob) -> tuple[SchedulePlan, str]:
    """CG takes 75 % of its time beside EP on half of the cores, so that both end together."""
    return planned(lasting(folder, "a", "CG", nodes=2, hours=1.33), b)


def planned(*jobs: ScheduledJob) -> tuple[SchedulePlan, str]:
    listed = Jobs(cluster=Cluster(nodes=4, cores=2), jobs=jobs)
    plan = schedule(listed, published_matrix(), half=published_half())
    return plan, slurm_script(plan, listed)


def submit(cluster: Slurm, folder: Path, script: str) -> None:
    """Submits it, and waits until the queue is empty."""
    (folder / "jobs.sh").write_text(script)
    words = ["bash", str(folder / "jobs.sh")]
    subprocess.run(words, cwd=folder, env=cluster.env, check=True, capture_output=True, timeout=60)
    end = time.monotonic() + 120
    while cluster.output("squeue", "-h") and time.monotonic() < end:
        time.sleep(0.2)


def tasks(folder: Path, name: str) -> list[tuple[str, float, float]]:
    """Node, begin and end of each task of a job."""
    lines = [line.split() for line in (folder / name).read_text().splitlines()]
    return [(node, float(begin), float(end)) for node, begin, end in lines]


def test_jobs_that_share_nodes_run_on_them_at_the_same_time(slurm: Slurm, tmp_path: Path) -> None:
    plan, script = pair(tmp_path, lasting(tmp_path, "b", "EP", nodes=2))
    assert [sorted(one.name for one in group.jobs) for group in plan.groups] == [["a", "b"]]
    submit(slurm, tmp_path, script)
    a, b = tasks(tmp_path, "a"), tasks(tmp_path, "b")
    # Each has half of the cores, on twice the nodes.
    assert sorted(node for node, _, _ in a) == sorted(node for node, _, _ in b) == sorted(slurm.nodes)
    assert max(begin for _, begin, _ in a + b) < min(end for _, _, end in a + b)


def test_a_job_waits_for_the_one_that_it_is_behind(slurm: Slurm, tmp_path: Path) -> None:
    _, script = planned(
        lasting(tmp_path, "first", "CG", nodes=1, share=False),
        lasting(tmp_path, "second", "EP", nodes=1, share=False, after=("first",)),
    )
    submit(slurm, tmp_path, script)
    assert max(end for _, _, end in tasks(tmp_path, "first")) <= min(
        begin for _, begin, _ in tasks(tmp_path, "second")
    )


def test_a_companion_that_fails_leaves_its_host_running(slurm: Slurm, tmp_path: Path) -> None:
    _, script = pair(tmp_path, job("b", "EP", nodes=2, command="false"))
    submit(slurm, tmp_path, script)
    assert len(tasks(tmp_path, "a")) == 4
