"""Predicted changes of jobs that can be computed by hand."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

from elbowroom.advise.what_if import NodeTimes, PairBandwidths, changed_time, node_times
from elbowroom.errors import UsageError
from elbowroom.profile import rank_file as f
from elbowroom.profile.analysis import Analysis, analyse
from elbowroom.profile.curve import NicCurve
from elbowroom.profile.profile import read_profile
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
    times = node_times(blocking(tmp_path))[0]
    assert changed(times, bandwidths(comp=0.5)) == pytest.approx(times.total + 0.2, rel=0.01)


def test_faster_messages_take_less_by_their_part(tmp_path: Path) -> None:
    times = node_times(blocking(tmp_path))[0]
    assert changed(times, bandwidths(comm=2.0)) == pytest.approx(times.total - 0.02, rel=0.01)


def test_without_overlap_a_job_takes_longer_by_what_was_overlapped(tmp_path: Path) -> None:
    times = node_times(overlapped(tmp_path))[0]
    assert changed(times, bandwidths(), overlaps=False) == pytest.approx(0.13)


def test_without_overlap_both_sides_are_as_fast_as_alone(tmp_path: Path) -> None:
    # 30 ms together are 15 ms of computation and 24 ms of messages alone.
    times, now = node_times(overlapped(tmp_path))[0], bandwidths(kept_comp=0.5, kept_comm=0.8)
    assert changed_time(times, now, now, overlaps=False) == pytest.approx(0.1 - 0.03 + 0.015 + 0.024)


def test_without_overlap_a_blocking_job_stays_as_it_is(tmp_path: Path) -> None:
    times = node_times(blocking(tmp_path))[0]
    assert changed(times, bandwidths(), overlaps=False) == pytest.approx(times.total)


@pytest.mark.parametrize("kept", [1.0, 0.6])
def test_nothing_changed_is_no_change(tmp_path: Path, kept: float) -> None:
    times, now = node_times(overlapped(tmp_path))[0], bandwidths(kept_comp=kept, kept_comm=kept)
    assert changed_time(times, now, now) == pytest.approx(times.total)


def test_what_overlaps_keeps_its_share_where_the_other_side_becomes_the_longer_one(tmp_path: Path) -> None:
    # 90 ms of computation become 9; of these, 3/4 overlap with the 40 ms of messages.
    times = node_times(overlapped(tmp_path))[0]
    assert changed(times, bandwidths(comp=10.0)) == pytest.approx(0.009 + 0.04 - 0.75 * 0.009)


def test_times_between_two_moments_are_those_of_that_part(tmp_path: Path) -> None:
    times = node_times(overlapped(tmp_path), 0.02, 0.06)[0]
    expected = NodeTimes(computation=0.03, network=0.03, both=0.02, total=0.04)
    assert msgspec.structs.astuple(times) == pytest.approx(msgspec.structs.astuple(expected))


def bandwidths(
    comp: float = 1.0, comm: float = 1.0, kept_comp: float = 1.0, kept_comm: float = 1.0
) -> PairBandwidths:
    return PairBandwidths(
        comp_alone=np.array(comp),
        comm_alone=np.array(comm),
        comp_together=np.array(comp * kept_comp),
        comm_together=np.array(comm * kept_comm),
    )


def changed(times: NodeTimes, then: PairBandwidths, *, overlaps: bool = True) -> float:
    return float(changed_time(times, bandwidths(), then, overlaps=overlaps))


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_a_bandwidth_that_is_none_is_refused(tmp_path: Path, value: float) -> None:
    with pytest.raises(UsageError, match="is not a bandwidth"):
        changed(node_times(blocking(tmp_path))[0], bandwidths(comm=value))
