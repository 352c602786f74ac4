"""What calls of a replayed job wait for."""

from __future__ import annotations

from pathlib import Path

import pytest

from elbowroom.profile import rank_file as f
from elbowroom.profile.analysis import analyse
from elbowroom.profile.curve import NicCurve
from elbowroom.profile.profile import read_profile
from elbowroom.profile.replay_job import ReplayJob, replay_job
from made_profiles import MS, MadeJob, write_profile

NIC = NicCurve(total=(1e9,))
SIZE = 10_000
"""Bytes: far below the eager limit. They take 10 us alone."""


def small_sends(folder: Path, *, microseconds: float, kind: int = f.SEND) -> ReplayJob:
    """Rank 0 sends to rank 1 on its node, then to rank 2; the latter send takes so long."""
    name, flags, took = "MPI_Send", f.CALL | f.BETWEEN, int(microseconds * 1000)
    rows = [
        [(MS, MS + 500, SIZE, 1, name, kind, f.CALL), (2 * MS, 2 * MS + took, SIZE, 2, name, kind, flags)],
        [(MS, MS + 20_000, SIZE, 0, "MPI_Recv", f.RECEIVE, f.CALL)],
        [(2 * MS, 2 * MS + 20_000, SIZE, 0, "MPI_Recv", f.RECEIVE, flags)],
        [],
    ]
    profile = write_profile(folder, rows, [0, 0, 1, 1], end=3 * MS)
    return replay_job(analyse(read_profile(profile), NIC))


def sends_that_wait(job: ReplayJob) -> list[bool]:
    return [bool(job.waits.of(call)) for call in range(int(job.first[0]), int(job.first[1]))]


def test_a_small_send_that_lasts_as_long_as_its_transfer_waits_for_it(tmp_path: Path) -> None:
    # The one inside the node waits too: it may go to another node when the job has half of the cores.
    assert sends_that_wait(small_sends(tmp_path, microseconds=10)) == [True, True]


def test_a_small_send_that_is_over_at_once_waits_for_nothing(tmp_path: Path) -> None:
    assert sends_that_wait(small_sends(tmp_path, microseconds=1)) == [False, False]


def test_a_nonblocking_small_send_waits_for_nothing(tmp_path: Path) -> None:
    job = small_sends(tmp_path, microseconds=10, kind=f.POSTED_SEND)
    assert sends_that_wait(job) == [False, False]


@pytest.mark.parametrize("name", ["alltoall", "exchange"])
def test_both_ends_of_what_is_sent_are_known(tmp_path: Path, name: str) -> None:
    made = MadeJob(4)
    getattr(made, name)(100_000)
    flows = replay_job(analyse(read_profile(made.write(tmp_path)), NIC)).flows
    assert (flows.out >= 0).all()
    assert (flows.into >= 0).all()
    assert (flows.out != flows.into).all()


def test_of_a_reduction_one_end_of_each_part_is_known(tmp_path: Path) -> None:
    made = MadeJob(4)
    made.allreduce(1000)
    flows = replay_job(analyse(read_profile(made.write(tmp_path)), NIC)).flows
    assert ((flows.out >= 0) ^ (flows.into >= 0)).all()


@pytest.mark.parametrize(("until", "posting"), [(40, 1), (22, 0)])
def test_an_operation_without_progress_between_calls_is_posted_by_the_wait_for_it(
    tmp_path: Path, until: int, posting: int
) -> None:
    # 10 MB take 10 ms alone. Computation from 2 to 20 ms could cover them; at 22 ms all is complete.
    flags, size = f.CALL | f.BETWEEN, 10_000_000
    wait = 20 if posting else 22
    rows = [
        (MS, 2 * MS, size, -3, "MPI_Iallreduce", f.OTHER, f.CALL),
        (MS, until * MS, size, -3, "MPI_Iallreduce", f.POSTED_COLLECTIVE, f.SPAN | f.BETWEEN),
        (wait * MS, until * MS, 1, -1, "MPI_Wait", f.COMPLETION, flags),
    ]
    profile = write_profile(tmp_path, [rows, rows], [0, 1], end=100 * MS)
    job = replay_job(analyse(read_profile(profile), NIC))
    assert [bool(job.posts.of(call)) for call in range(2)] == [call == posting for call in range(2)]
