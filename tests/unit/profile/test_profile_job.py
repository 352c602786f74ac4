"""The job description of a profile is one that advise reads, and says what it could not know."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from elbowroom.advise.job import decode
from elbowroom.profile import rank_file as f
from elbowroom.profile.analysis import Analysis, analyse, summarise
from elbowroom.profile.curve import NicCurve
from elbowroom.profile.job import NO_TRAFFIC, JobFacts, ProfiledJob, counted_bytes, job_of_steps
from elbowroom.profile.profile import read_profile, with_ranks_apart
from elbowroom.profile.steps import Steps, find_steps
from elbowroom.profile.summary import OverlapSummary
from made_profiles import MS, MadeJob, Row, write_profile


def profiled(
    folder: Path,
    *,
    name: str = "profiled",
    cores: int | None = None,
    direction: Literal["receive", "send", "both"] = "receive",
    traffic: float | None = None,
) -> ProfiledJob:
    job = MadeJob(4)
    for _ in range(20):
        job.compute(10 * MS)
        job.exchange(1_000_000)
    analysis = analyse(read_profile(job.write(folder)), NicCurve(total=(1e9,)))
    steps = find_steps(analysis).steps
    assert steps is not None
    overlap = summarise(analysis).overlap
    facts = JobFacts(name=name, cores=cores, direction=direction, traffic=traffic)
    return job_of_steps(analysis, steps, overlap, facts)


def test_advise_reads_the_job_of_a_profile(tmp_path: Path) -> None:
    job = decode(profiled(tmp_path).text, "job.toml")
    assert job.step.t_comp is not None
    assert job.step.t_comp.seconds == pytest.approx(0.010, rel=1e-3)
    assert (job.step.t_comp.cores, job.now.cores, job.now.overlap) == (2, 2, False)
    assert job.step.comm_bytes == 2_000_000


@pytest.mark.parametrize("name", ['a "quoted" name', "back\\slash", "line\nbreak", "ünïcode"])
def test_text_and_data_are_the_same_job(tmp_path: Path, name: str) -> None:
    job = profiled(tmp_path, name=name)
    assert tomllib.loads(job.text) == job.data
    assert job.data["name"] == name


def test_memory_traffic_that_was_measured_is_in_the_text_and_no_longer_unknown(tmp_path: Path) -> None:
    job = profiled(tmp_path, traffic=3.2e9)
    assert NO_TRAFFIC not in job.unknown
    assert "as much of a load as 3.2 GB/s" in job.text.splitlines()[0]
    assert NO_TRAFFIC in profiled(tmp_path / "without").unknown


def test_what_is_not_known_stands_in_the_text(tmp_path: Path) -> None:
    job = profiled(tmp_path)
    assert all(f"# - {sentence}\n" in job.text for sentence in job.unknown)
    assert any("one core for each of the 2 ranks is assumed" in sentence for sentence in job.unknown)
    assert any("2000000 B that the node sends in a step are not counted" in one for one in job.unknown)


def test_what_the_caller_knows_is_not_unknown(tmp_path: Path) -> None:
    job = profiled(tmp_path, cores=16, direction="both")
    assert not any("ranks is assumed" in sentence or "not counted" in sentence for sentence in job.unknown)
    assert (job.data["now"]["cores"], job.data["step"]["comm_bytes"]) == (16, 4_000_000)


def test_ranks_that_share_cores_compute_while_any_of_them_does(tmp_path: Path) -> None:
    found = one_node(tmp_path)
    shared = job_of_steps(found.analysis, found.steps, found.overlap, JobFacts(cores=1))
    apart = job_of_steps(found.analysis, found.steps, found.overlap, JobFacts(cores=2))
    assert shared.data["step"]["t_comp"] == {"seconds": pytest.approx(0.008), "cores": 1, "comp_node": 0}
    assert apart.data["step"]["t_comp"] == {"seconds": pytest.approx(0.006), "cores": 2, "comp_node": 0}
    assert any("share the computing cores" in sentence for sentence in shared.unknown)
    assert any("computes 33 % longer than the mean" in sentence for sentence in apart.unknown)


def test_messages_inside_the_only_node_are_the_communication(tmp_path: Path) -> None:
    found = one_node(tmp_path)
    job = job_of_steps(found.analysis, found.steps, found.overlap, JobFacts())
    assert job.data["step"]["comm_bytes"] == 2 * 3_000_000
    assert (found.steps.ranks, found.steps.count) == (2, 18)


class OneNode(NamedTuple):
    analysis: Analysis
    steps: Steps
    overlap: OverlapSummary


def one_node(folder: Path) -> OneNode:
    """Two ranks of one node, 20 steps of 10 ms: they compute 4 and 8 ms, then exchange 3 MB."""
    rows: list[list[Row]] = [[], []]
    for step in range(20):
        for rank, computed in enumerate((4, 8)):
            begin, end = (10 * step + computed) * MS, (10 * step + 10) * MS
            both = (begin, end, 3_000_000, 1 - rank, "MPI_Sendrecv")
            rows[rank] += [(*both, f.SENDRECV, f.CALL), (*both, f.RECEIVE, 0)]
    profile = read_profile(write_profile(folder, rows, (0, 0), end=200 * MS))
    analysis = analyse(with_ranks_apart(profile))
    steps = find_steps(analysis, of_all_ranks=True).steps
    assert steps is not None
    return OneNode(analysis, steps, summarise(analysis).overlap)


def test_messages_of_a_rank_that_is_ahead_count_in_their_own_step(tmp_path: Path) -> None:
    # Ranks 2 and 3 exchange their last message before the last step of rank 0 begins.
    rows: list[list[Row]] = [[], [], [], []]
    for step in range(20):
        for rank in range(4):
            begin = (10 * step + 7 - (9 if rank > 1 and step == 19 else 0)) * MS
            both = (begin, begin + MS, 1000, rank ^ 1, "MPI_Sendrecv")
            rows[rank] += [(*both, f.SENDRECV, f.CALL), (*both, f.RECEIVE, 0)]
    profile = read_profile(write_profile(tmp_path, rows, (0, 0, 0, 0), end=200 * MS))
    steps = find_steps(analyse(with_ranks_apart(profile)), of_all_ranks=True).steps
    assert steps is not None
    assert counted_bytes(steps, "receive") == 4000
