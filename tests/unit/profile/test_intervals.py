"""Network intervals of small jobs of which the transfers are known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from elbowroom.profile import rank_file as f
from elbowroom.profile.curve import ESTIMATED, NicCurve, shared
from elbowroom.profile.intervals import NetworkIntervals, network_intervals
from elbowroom.profile.profile import read_profile
from made_profiles import MS, Row, write_profile

CALL, SPAN = f.CALL | f.BETWEEN, f.SPAN | f.BETWEEN
MB = 1_000_000
NIC = shared(100e6, source="known")
"""100 MB/s: 1 MB takes 10 ms."""


def send(at: int, until: int, peer: int, size: int = MB, flags: int = CALL) -> Row:
    return (at * MS, until * MS, size, peer, "MPI_Send", f.SEND, flags)


def receive(at: int, until: int, peer: int, size: int = MB, flags: int = CALL) -> Row:
    return (at * MS, until * MS, size, peer, "MPI_Recv", f.RECEIVE, flags)


def intervals(
    folder: Path, rows: Sequence[Sequence[Row]], nodes: Sequence[int], curve: NicCurve | None = NIC
) -> NetworkIntervals:
    return network_intervals(read_profile(write_profile(folder, rows, nodes)), curve)


def spans(found: NetworkIntervals, *, out: bool = True) -> list[tuple[int, float, float]]:
    """Rank, begin and end in ms."""
    some = found.out == out
    return [
        (int(rank), round(begin * 1e3, 6), round(end * 1e3, 6))
        for rank, begin, end in zip(found.rank[some], found.begin[some], found.end[some], strict=True)
    ]


def test_a_receive_posted_early_waits_for_its_send(tmp_path: Path) -> None:
    found = intervals(tmp_path, [[send(500, 520, 1)], [receive(1, 520, 0)]], (0, 1))
    assert spans(found) == [(0, 500, 510)]
    assert spans(found, out=False) == [(1, 500, 510)]


def test_a_large_send_waits_for_its_receive(tmp_path: Path) -> None:
    found = intervals(tmp_path, [[send(1, 510, 1)], [receive(500, 511, 0)]], (0, 1))
    assert spans(found) == [(0, 500, 510)]


def test_a_small_message_leaves_when_it_is_sent(tmp_path: Path) -> None:
    found = intervals(tmp_path, [[send(1, 2, 1, size=10_000)], [receive(500, 511, 0, size=10_000)]], (0, 1))
    assert spans(found) == [(0, 1, 1.1)]


@pytest.mark.parametrize("k", range(1, 9))
def test_k_concurrent_senders_take_k_times_longer(tmp_path: Path, k: int) -> None:
    rows = [[send(1, 900, k + i)] for i in range(k)] + [[receive(1, 900, i)] for i in range(k)]
    found = intervals(tmp_path, rows, [0] * k + [1] * k)
    assert spans(found) == [(i, 1, pytest.approx(1 + 10 * k)) for i in range(k)]


def test_a_calibrated_curve_decides_how_much_n_senders_get(tmp_path: Path) -> None:
    rows = [[send(1, 900, 2)], [send(1, 900, 3)], [receive(1, 900, 0)], [receive(1, 900, 1)]]
    found = intervals(tmp_path, rows, (0, 0, 1, 1), NicCurve(total=(100e6, 160e6), latency=1e-3))
    assert spans(found) == [(0, 1, 14.5), (1, 1, 14.5)]


def test_a_transfer_ends_when_its_receive_is_complete(tmp_path: Path) -> None:
    found = intervals(tmp_path, [[send(1, 3, 1)], [receive(1, 4, 0)]], (0, 1))
    assert spans(found) == [(0, 1, 4)]


def test_messages_to_one_node_wait_for_its_nic(tmp_path: Path) -> None:
    rows = [[send(1, 900, 2)], [send(1, 900, 2)], [receive(1, 900, 0), receive(1, 900, 1)]]
    found = intervals(tmp_path, rows, (0, 1, 2))
    assert spans(found) == [(0, 1, 21), (1, 1, 21)]


def test_both_directions_have_the_bandwidth_each_unless_they_share_it(tmp_path: Path) -> None:
    rows = [[send(1, 900, 1), receive(1, 900, 1)], [send(1, 900, 0), receive(1, 900, 0)]]
    assert spans(intervals(tmp_path, rows, (0, 1))) == [(0, 1, 11), (1, 1, 11)]
    half = NicCurve(total=(100e6,), duplex=False)
    assert spans(intervals(tmp_path, rows, (0, 1), half)) == [(0, 1, 21), (1, 1, 21)]


def test_messages_inside_a_node_are_not_on_the_network(tmp_path: Path) -> None:
    rows = [[send(1, 9, 1, flags=f.CALL)], [receive(1, 9, 0, flags=f.CALL)]]
    assert len(intervals(tmp_path, rows, (0, 0)).rank) == 0


def test_messages_of_different_sizes_are_matched_by_their_bytes(tmp_path: Path) -> None:
    rows = [
        [send(1, 100, 1, size=MB), send(200, 300, 1, size=2 * MB)],
        [receive(150, 300, 0, size=2 * MB), receive(160, 400, 0, size=MB)],
    ]
    found = intervals(tmp_path, rows, (0, 1))
    assert sorted(spans(found)) == [(0, 160, 170), (0, 200, 220)]


def test_where_the_first_records_are_lost_the_last_ones_are_matched(tmp_path: Path) -> None:
    sends = [send(100 * i, 100 * i + 50, 1) for i in range(1, 4)]
    rows = [sends, [receive(100 * i, 100 * i + 50, 0) for i in range(2, 4)]]
    found = intervals(tmp_path, rows, (0, 1))
    assert sorted(found.pair[found.out].tolist())[0] == -1
    assert sorted(spans(found, out=False)) == [(1, 200, 210), (1, 300, 310)]


def test_a_rank_without_a_file_is_on_its_nodes_nic(tmp_path: Path) -> None:
    folder = write_profile(tmp_path, [[send(1, 900, 1)], []], (0, 1))
    (folder / "rank-000001.profile").unlink()
    found = network_intervals(read_profile(folder), NIC)
    assert (found.rank.tolist(), found.out.tolist(), found.event.tolist()) == ([0, 1], [True, False], [0, -1])


def test_of_a_receive_without_its_send_the_end_is_known(tmp_path: Path) -> None:
    folder = write_profile(tmp_path, [[], [receive(1, 500, 0)]], (0, 1))
    (folder / "rank-000000.profile").unlink()
    found = network_intervals(read_profile(folder), NIC)
    assert spans(found, out=False) == [(1, 490, 500)]


def test_an_alltoall_waits_for_the_last_rank(tmp_path: Path) -> None:
    def alltoall(at: int) -> Row:
        return (at * MS, 900 * MS, MB, -5, "MPI_Alltoall", f.COLLECTIVE, CALL)

    found = intervals(tmp_path, [[alltoall(at)] for at in (1, 1, 1, 500)], (0, 0, 1, 1))
    # Each rank sends 1 MB to both ranks of the other node: 4 MB leave each node.
    assert found.bytes[found.out].tolist() == [2 * MB] * 4
    assert spans(found) == [(rank, 500, 540) for rank in range(4)]
    assert found.exact.all()


def test_without_a_curve_the_bandwidth_is_that_of_the_profile(tmp_path: Path) -> None:
    found = intervals(tmp_path, [[send(1, 11, 1)], [receive(1, 11, 0)]], (0, 1), None)
    assert found.curve.bandwidth == pytest.approx(100e6)
    assert found.curve.source == ESTIMATED


def test_the_bandwidth_of_an_emulated_nic_is_known(tmp_path: Path) -> None:
    write_profile(tmp_path, [[send(1, 900, 1)], [receive(1, 900, 0)]], (0, 1))
    manifest = {"schema": "elbowroom/profile", "version": 1, "nic": {"bandwidth": 50e6}}
    (tmp_path / "profile.json").write_text(json.dumps(manifest))
    found = network_intervals(read_profile(tmp_path))
    assert spans(found) == [(0, 1, 21)]
    assert found.curve.source == "emulated NIC"


def test_an_interval_is_within_its_bounds_whatever_the_ranks_do(tmp_path: Path) -> None:
    generator = np.random.default_rng(3)
    rows: list[list[Row]] = [[] for _ in range(4)]
    for at in range(1, 400, 2):
        source, to = generator.choice(4, 2, replace=False)
        size = int(generator.integers(1, 2 * MB))
        rows[source].append(send(at, at + int(generator.integers(1, 50)), int(to), size))
        rows[to].append(receive(max(1, at - 3), at + int(generator.integers(1, 50)), int(source), size))
    found = intervals(tmp_path, rows, (0, 1, 2, 3))
    assert (found.begin <= found.end).all()
    assert (found.begin >= found.posted - 1e-12).all()
    assert (found.end <= found.completed + 1e-12).all()
