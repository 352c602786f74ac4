"""Steps are found in jobs whose steps are known, and not in a job that has none."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.profile import rank_file as f
from elbowroom.profile.analysis import analyse
from elbowroom.profile.curve import NicCurve
from elbowroom.profile.profile import read_profile
from elbowroom.profile.steps import Steps, StepSearch, find_period, find_steps
from made_profiles import MS, MadeJob, write_profile

NIC = NicCurve(total=(1e9,))


def search(job: MadeJob, folder: Path) -> StepSearch:
    return find_steps(analyse(read_profile(job.write(folder)), NIC))


def found(job: MadeJob, folder: Path) -> Steps:
    steps = search(job, folder).steps
    assert steps is not None
    return steps


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_the_steps_of_a_stencil_are_its_exchanges(tmp_path: Path, noise: float) -> None:
    job = MadeJob(4)
    for _ in range(50):
        job.compute(10 * MS, noise)
        job.exchange(1_000_000)
    steps = found(job, tmp_path)
    # Both ranks of a node send 1 MB: 2 ms at 1 GB/s.
    assert (steps.recognised_by, steps.count) == ("pattern", 48)
    assert steps.computation.median == pytest.approx(0.010, rel=0.01 + noise / 4)
    assert steps.network.median == pytest.approx(0.002, rel=0.02)
    assert (steps.sent.median, steps.received.median) == (pytest.approx(2e6), pytest.approx(2e6))
    assert [(one.bytes, round(one.per_step)) for one in steps.sizes] == [(1_000_000, 2)]


def test_a_warm_up_is_no_step(tmp_path: Path) -> None:
    job = MadeJob(4)
    for size in (5, 500, 70, 9000, 12, 80_000):
        job.compute(30 * MS)
        job.alltoall(size)
    for _ in range(30):
        job.compute(10 * MS)
        job.exchange(200_000)
        job.allreduce()
    steps = found(job, tmp_path)
    assert steps.count in (28, 29)
    assert steps.duration.median == pytest.approx(0.01042, rel=0.01)
    assert set(steps.pattern) == {"MPI_Sendrecv", "MPI_Allreduce"}
    assert steps.pattern[0] == "MPI_Sendrecv"


def test_the_outer_one_of_two_nested_loops_is_the_step(tmp_path: Path) -> None:
    job = MadeJob(4)
    for _ in range(12):
        for _ in range(25):
            job.compute(MS // 5)
            job.exchange(50_000)
        job.compute(8 * MS)
        job.alltoall(100_000)
    steps = found(job, tmp_path)
    assert steps.count == 10
    assert len([name for name in steps.pattern if name == "MPI_Alltoall"]) == 1


def test_equal_messages_between_two_computations_are_one_step(tmp_path: Path) -> None:
    job = MadeJob(4)
    for _ in range(20):
        job.compute(8 * MS, 0.3)
        for _ in range(40):
            job.compute(MS // 100, 0.3)
            job.exchange(2000)
    steps = found(job, tmp_path)
    assert steps.count == 18
    assert len(steps.pattern) == 2 * 40


def test_the_steps_of_an_alltoall_have_its_bytes(tmp_path: Path) -> None:
    job = MadeJob(4)
    for _ in range(20):
        job.compute(5 * MS, 0.2)
        job.alltoall(300_000)
    steps = found(job, tmp_path)
    # Two ranks of a node send to two ranks of the other one.
    assert steps.sent.median == pytest.approx(4 * 300_000)


def test_marks_of_the_program_are_the_steps(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    job = MadeJob(4)
    for _ in range(10):
        job.mark()
        for _ in range(int(generator.integers(1, 5))):
            job.compute(MS)
            job.alltoall(int(generator.integers(1, 100_000)))
    steps = found(job, tmp_path)
    assert (steps.recognised_by, steps.count, steps.pattern) == ("marks", 9, ())


@pytest.mark.parametrize("is_marked", [False, True])
def test_a_message_of_a_rank_that_is_ahead_belongs_to_its_own_step(tmp_path: Path, is_marked: bool) -> None:
    rows: list[list[tuple[object, ...]]] = []
    for step_ns in (10 * MS, 8 * MS):
        begins = [step * step_ns for step in range(1, 31)]
        sends = [(at, at + MS, 70_000, 2, "MPI_Send", f.SEND, f.CALL | f.BETWEEN) for at in begins]
        marks = [(at - 2, at - 1, 1, -1, "MPI_Pcontrol", f.MARK, f.CALL) for at in begins]
        rows.append(sorted([*sends, *(marks if is_marked else [])]))
    folder = write_profile(tmp_path, rows, (0, 0, 1), end=400 * MS)
    steps = find_steps(analyse(read_profile(folder), NIC)).steps
    assert steps is not None
    assert (steps.sent.d1, steps.sent.d9) == (140_000, 140_000)
    assert [(one.bytes, one.per_step) for one in steps.sizes] == [(70_000, 2)]


def test_a_random_job_has_no_steps_and_a_reason(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    job = MadeJob(4)
    for _ in range(300):
        job.compute(MS)
        for what in (job.alltoall, job.exchange, job.allreduce):
            if generator.random() < 0.5:
                what(int(generator.integers(1, 20)) * 1000)
    result = search(job, tmp_path)
    assert result.steps is None
    assert "no sequence of calls" in result.reason


def test_a_job_that_never_communicates_has_no_steps(tmp_path: Path) -> None:
    job = MadeJob(4)
    job.compute(20 * MS)
    assert search(job, tmp_path).reason == "rank 0 never communicated"


@given(
    pattern=st.lists(st.integers(0, 5), min_size=1, max_size=12),
    repetitions=st.integers(8, 20),
    before=st.lists(st.integers(6, 9), max_size=5),
)
@settings(deadline=None)
def test_a_repeated_pattern_is_found_at_its_shortest(
    pattern: list[int], repetitions: int, before: list[int]
) -> None:
    period = find_period(np.array(before + pattern * repetitions))
    assert period is not None
    length = next(
        n for n in range(1, len(pattern) + 1) if (pattern * 2)[n : n + len(pattern)] == pattern
    )  # fmt: skip
    assert period.length == length
    assert (period.first, period.end) == (len(before), len(before) + len(pattern) * repetitions)
