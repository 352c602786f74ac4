"""Predicted changes of jobs that can be computed by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from elbowroom.errors import UsageError
from elbowroom.profile import rank_file as f
from elbowroom.profile.analysis import Analysis, analyse
from elbowroom.profile.curve import NicCurve
from elbowroom.profile.profile import read_profile
from elbowroom.profile.what_if import Rates, node_times, with_rates, without_overlap
from made_profiles import MS, MadeJob, write_profile

NIC = NicCurve(total=(1e9,))


def blocking(folder: Path) -> Analysis:
    """20 steps of 10 ms of computation, then 2 ms on the network."""
    job = MadeJob(4)
    for _ in range(20):
        job.compute(10 * MS)
        job.exchange(1_000_000)
    return analyse(read_profile(job.write(folder)), NIC)


def overlapped(folder: Path) -> Analysis:
    """100 ms: 40 ms of transfer, of which 30 ms are beside computation."""
    span, call = f.SPAN | f.BETWEEN, f.CALL | f.BETWEEN
    rows = [
        [
            (10 * MS, 50 * MS, 40_000_000, 1, "MPI_Isend", f.POSTED_SEND, span),
            (40 * MS, 50 * MS, 1, -1, "MPI_Wait", f.COMPLETION, f.CALL),
        ],
        [
            (10 * MS, 50 * MS, 40_000_000, 0, "MPI_Irecv", f.POSTED_RECEIVE, span),
            (40 * MS, 50 * MS, 1, -1, "MPI_Wait", f.COMPLETION, call),
        ],
    ]
    return analyse(read_profile(write_profile(folder, rows, (0, 1), end=100 * MS)), NIC)


def test_the_times_of_a_node_are_those_of_its_mean_rank(tmp_path: Path) -> None:
    for node in node_times(overlapped(tmp_path)):
        assert (node.computation, node.network, node.both) == (
            pytest.approx(0.09),
            pytest.approx(0.04),
            pytest.approx(0.03),
        )


def test_slower_computation_takes_longer_by_its_part(tmp_path: Path) -> None:
    result = with_rates(blocking(tmp_path), Rates(comp=0.5), name="fewer cores")
    assert result.then == pytest.approx(result.now + 0.2, rel=0.01)


def test_faster_messages_take_less_by_their_part(tmp_path: Path) -> None:
    result = with_rates(blocking(tmp_path), Rates(comm=2.0), name="data near the NIC")
    assert result.then == pytest.approx(result.now - 0.02, rel=0.01)
    assert result.change < 0


def test_without_overlap_a_job_takes_longer_by_what_was_overlapped(tmp_path: Path) -> None:
    assert without_overlap(overlapped(tmp_path)).then == pytest.approx(0.13)


def test_without_overlap_a_blocking_job_stays_as_it_is(tmp_path: Path) -> None:
    assert without_overlap(blocking(tmp_path)).change == pytest.approx(0, abs=0.01)


def test_nothing_changed_is_no_change(tmp_path: Path) -> None:
    assert with_rates(overlapped(tmp_path), Rates(), name="same").change == pytest.approx(0)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_rate_that_is_no_rate_is_refused(tmp_path: Path, value: float) -> None:
    with pytest.raises(UsageError, match="is not a ratio of rates"):
        with_rates(blocking(tmp_path), Rates(comm=value), name="x")
