"""What a profile says about small jobs of which everything is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from elbowroom.profile import rank_file as f
from elbowroom.profile.analysis import NO_PROGRESS, Analysis, analyse, summarise
from elbowroom.profile.curve import shared
from elbowroom.profile.figures import memory_sentence, overlap_sentence, rank_rows, sentences
from elbowroom.profile.profile import read_profile
from elbowroom.profile.summary import MEMORY, MemoryTraffic, ProfileSummary
from made_profiles import MS, Row, write_profile

CALL, SPAN = f.CALL | f.BETWEEN, f.SPAN | f.BETWEEN
MB = 1_000_000
NIC = shared(100e6, source="known")


def analysed(folder: Path, rows: Sequence[Sequence[Row]], nodes: Sequence[int], **options: Any) -> Analysis:
    return analyse(read_profile(write_profile(folder, rows, nodes, **options)), NIC)


def summary(
    folder: Path, rows: Sequence[Sequence[Row]], nodes: Sequence[int], **options: Any
) -> ProfileSummary:
    return summarise(analysed(folder, rows, nodes, **options))


def message(at: int, source: int, to: int, size: int = MB) -> tuple[Row, Row]:
    return (
        (at * MS, 900 * MS, size, to, "MPI_Send", f.SEND, CALL),
        (at * MS, 900 * MS, size, source, "MPI_Recv", f.RECEIVE, CALL),
    )


def test_concurrency_is_the_share_of_time_with_so_many_ranks_on_the_network(tmp_path: Path) -> None:
    # Two senders at once share the NIC for 20 ms; the second has 1 MB more, which takes 10 ms alone.
    first, at_first = message(100, 0, 2)
    second, at_second = message(100, 1, 3, 2 * MB)
    node = summary(tmp_path, [[first], [second], [at_first], [at_second]], (0, 0, 1, 1)).nodes[0]
    assert node.concurrency == pytest.approx((0.97, 0.01, 0.02))
    assert node.idle_share == pytest.approx(0.97)
    assert node.network_s == pytest.approx(0.03)
    assert node.network_rank_s == pytest.approx(0.05)
    assert node.mpi_s == pytest.approx(1.6)
    assert (node.bytes_between, node.bytes_inside, node.bytes_received) == (3 * MB, 0, 0)


def test_bytes_inside_a_node_are_those_of_its_own_ranks(tmp_path: Path) -> None:
    sender = (MS, 2 * MS, 5000, 1, "MPI_Send", f.SEND, f.CALL)
    receiver = (MS, 2 * MS, 5000, 0, "MPI_Recv", f.RECEIVE, f.CALL)
    nodes = summary(tmp_path, [[sender], [receiver], []], (0, 0, 1)).nodes
    assert [(node.bytes_inside, node.bytes_between, node.idle_share) for node in nodes] == [
        (5000, 0, 1),
        (0, 0, 1),
    ]


def test_an_alltoall_is_split_into_inside_and_between(tmp_path: Path) -> None:
    row = (MS, 900 * MS, 1000, -5, "MPI_Alltoall", f.COLLECTIVE, CALL)
    node = summary(tmp_path, [[row]] * 4, (0, 0, 1, 1)).nodes[1]
    assert (node.bytes_inside, node.bytes_between, node.bytes_received) == (2000, 4000, 4000)
    assert node.estimated_bytes == 0


def test_an_allreduce_is_labelled_an_estimate(tmp_path: Path) -> None:
    row = (MS, 900 * MS, MB, -3, "MPI_Allreduce", f.COLLECTIVE, CALL)
    assert summary(tmp_path, [[row]] * 2, (0, 1)).nodes[0].estimated_bytes == 1


def overlapping(wait: int, until: int = 150) -> list[list[Row]]:
    """A nonblocking send of 1 MB at 100 ms, whose completion is awaited from `wait` to `until` (ms)."""
    return [
        [
            (100 * MS, until * MS, MB, 1, "MPI_Isend", f.POSTED_SEND, SPAN),
            (wait * MS, until * MS, 1, -1, "MPI_Wait", f.COMPLETION, f.CALL),
        ],
        [(90 * MS, 150 * MS, MB, 0, "MPI_Recv", f.RECEIVE, CALL)],
    ]


@pytest.mark.parametrize(
    ("wait", "until", "achieved", "possible"),
    [(100, 150, 0, 0), (104, 110, 0.4, 0.4), (104, 150, 0, 0.4), (130, 135, 0.5, 1), (130, 150, 0, 1)],
)
def test_waiting_for_an_operation_is_no_overlap(
    tmp_path: Path, wait: int, until: int, achieved: float, possible: float
) -> None:
    overlap = summary(tmp_path, overlapping(wait, until), (0, 1)).overlap
    assert (overlap.achieved, overlap.possible) == (pytest.approx(achieved), pytest.approx(possible))
    assert overlap.network_s == pytest.approx(0.01)


@pytest.mark.parametrize(
    ("wait", "until", "reason"),
    [
        (130, 150, NO_PROGRESS),
        (130, 135, NO_PROGRESS),
        (104, 110, ""),  # all that could overlap did
        (120, 120, ""),
    ],
)
def test_a_wait_that_computation_could_cover_has_a_reason(
    tmp_path: Path, wait: int, until: int, reason: str
) -> None:
    found = summary(tmp_path, overlapping(wait, until), (0, 1)).overlap
    assert found.reason == reason
    assert ("no progress between calls" in overlap_sentence(found)) == bool(reason)


def test_the_sentence_names_how_long_ranks_waited_and_what_helps(tmp_path: Path) -> None:
    sentence = overlap_sentence(summary(tmp_path, overlapping(130, 135), (0, 1)).overlap)
    assert "waited 5 of 10 ms" in sentence
    assert "MPI_Test" in sentence


def test_a_wait_for_a_partner_that_came_late_does_not_show_a_lack_of_progress(tmp_path: Path) -> None:
    rows = overlapping(130)
    rows[1] = [(140 * MS, 150 * MS, MB, 0, "MPI_Recv", f.RECEIVE, CALL)]
    overlap = summary(tmp_path, rows, (0, 1)).overlap
    assert (overlap.achieved, overlap.reason) == (0, "")


def test_a_rank_that_tests_while_it_computes_makes_progress(tmp_path: Path) -> None:
    rows = overlapping(130)
    rows[0] += [(at * MS, at * MS + 1000, 0, -1, "MPI_Test", f.OTHER, f.CALL) for at in (105, 110, 115)]
    assert summary(tmp_path, rows, (0, 1)).overlap.reason == ""


@pytest.mark.parametrize(("wait", "reason"), [(30_000_000, NO_PROGRESS), (1000, "")])
def test_without_a_known_bandwidth_the_time_of_waits_is_that_of_transfers(
    tmp_path: Path, wait: int, reason: str
) -> None:
    begins = [at * MS for at in range(100, 900, 100)]
    rows: list[Row] = []
    for at in begins:
        end = at + 20 * MS + wait
        rows.append((at, end, 4 * MB, -3, "MPI_Iallreduce", f.POSTED_COLLECTIVE, f.SPAN))
        rows.append((at + 20 * MS, end, 1, -1, "MPI_Wait", f.COMPLETION, f.CALL))
    found = summarise(analyse(read_profile(write_profile(tmp_path, [rows, rows], (0, 0))))).overlap
    assert (found.inside, found.reason) == (True, reason)
    assert found.achieved == pytest.approx(0 if reason else 1, abs=0.01)


def test_more_overlap_is_possible_than_achieved_where_the_transfer_comes_late(tmp_path: Path) -> None:
    rows = overlapping(130)
    # The receive is posted when the sender waits already: its 20 ms of computation covered nothing.
    rows[1] = [(135 * MS, 150 * MS, MB, 0, "MPI_Recv", f.RECEIVE, CALL)]
    overlap = summary(tmp_path, rows, (0, 1)).overlap
    assert (overlap.achieved, overlap.possible) == (0, 1)


def test_without_nonblocking_operations_there_is_no_overlap(tmp_path: Path) -> None:
    first, second = message(100, 0, 1)
    assert summary(tmp_path, [[first], [second]], (0, 1)).overlap.achieved is None


def test_bursts_are_burstier_than_a_steady_use(tmp_path: Path) -> None:
    def rows(starts: range, size: int) -> list[list[Row]]:
        pairs = [message(at, 0, 1, size) for at in starts]
        return [[pair[0] for pair in pairs], [pair[1] for pair in pairs]]

    steady = summary(tmp_path / "a", rows(range(1, 900, 10), 900_000), (0, 1)).nodes[0].burstiness
    bursts = summary(tmp_path / "b", rows(range(1, 900, 300), 10 * MB), (0, 1)).nodes[0].burstiness
    assert steady is not None
    assert bursts is not None
    assert steady < 0.5 < bursts


def test_a_node_over_time_has_all_its_bytes(tmp_path: Path) -> None:
    first, second = message(100, 0, 1)
    curve = analysed(tmp_path, [[first], [second]], (0, 1)).node_curve(0, np.array([0.0, 0.1, 0.105, 1.0]))
    assert curve.sent.tolist() == pytest.approx([0, MB / 2, MB / 2])
    assert curve.received.tolist() == [0, 0, 0]
    assert curve.ranks.tolist() == pytest.approx([0, 1, 0.005 / 0.895])


def test_the_rank_that_computes_longest_is_the_imbalance(tmp_path: Path) -> None:
    waits = (100 * MS, 900 * MS, 0, -1, "MPI_Barrier", f.BARRIER, f.CALL)
    node = summary(tmp_path, [[], [waits]], (0, 0)).nodes[0]
    # 1 s and 0.2 s of computation: the mean is 0.6 s.
    assert node.imbalance == pytest.approx(1 / 0.6 - 1)


def test_calls_of_all_ranks_are_added(tmp_path: Path) -> None:
    first, second = message(100, 0, 1)
    result = summary(tmp_path, [[first, first], [second]], (0, 1))
    assert result.calls == 3
    assert [(call.name, call.count, call.bytes) for call in result.top_calls] == [
        ("MPI_Send", 2, 2 * MB),
        ("MPI_Recv", 1, MB),
    ]


def test_bytes_of_lost_records_come_from_the_windows(tmp_path: Path) -> None:
    first, second = message(100, 0, 1)
    windows = [(0, 0, 0, 0, 5 * MB, 0, 0, 5)]
    node = summary(tmp_path, [[first] * 5, [second] * 5], (0, 1), capacity=1, windows=windows).nodes[0]
    assert node.bytes_between == 5 * MB


def test_memory_traffic_is_not_available_with_a_reason(tmp_path: Path) -> None:
    assert summary(tmp_path, [[], []], (0, 1)).memory.reason == "the manifest is missing"
    manifest = {"schema": "elbowroom/profile", "version": 1, "memory_bytes": 5.0}
    (tmp_path / "profile.json").write_text(json.dumps(manifest))
    assert summarise(analyse(read_profile(tmp_path), NIC)).memory.bytes == 5


def test_memory_traffic_has_a_rate_while_computing_and_a_highest_one(tmp_path: Path) -> None:
    summary(tmp_path, [[], []], (0, 1))
    manifest = {"schema": "elbowroom/profile", "version": 1, "memory_bytes": 8e9}
    (tmp_path / "profile.json").write_text(json.dumps(manifest))
    start = 5_000_000_000
    times = [start, start + 500 * MS, start + 1000 * MS]
    samples = MemoryTraffic(
        host="node0", source="made", scope="job", times_ns=tuple(times), bytes=(0.0, 6e9, 8e9)
    )
    MEMORY.write(tmp_path / "memory.json", samples, own=True)
    memory = summarise(analyse(read_profile(tmp_path), NIC)).memory
    # Both ranks compute for the whole second.
    assert memory.rate == pytest.approx(8e9)
    assert memory.highest == pytest.approx(12e9)
    assert "8 GB/s while computing (made: the job's processes on node0)" in memory_sentence(memory)


def test_a_job_without_communication_has_an_idle_network(tmp_path: Path) -> None:
    result = summary(tmp_path, [[], []], (0, 1))
    assert [node.idle_share for node in result.nodes] == [1, 1]
    assert [node.burstiness for node in result.nodes] == [None, None]
    assert "the program sent no data by MPI" in result.notes


def test_the_document_has_the_fields_that_scripts_rely_on(tmp_path: Path) -> None:
    first, second = message(100, 0, 1)
    plain = msgspec.to_builtins(summary(tmp_path, [[first], [second]], (0, 1)))
    assert {"ranks", "calls", "lost", "nodes"} <= set(plain)
    fields = {
        "name",
        "ranks",
        "bytes_inside",
        "bytes_between",
        "mpi_s",
        "network_s",
        "idle_share",
        "concurrency",
    }
    assert fields <= set(plain["nodes"][0])


def test_setting_mpi_up_is_no_communication(tmp_path: Path) -> None:
    rows = [
        (MS, 41 * MS, 0, -1, "MPI_Comm_split", f.OTHER, f.CALL),
        (50 * MS, 60 * MS, 8, 1, "MPI_Send", f.SEND, f.CALL),
        (900 * MS, 950 * MS, 0, -1, "MPI_Finalize", f.OTHER, f.CALL),
    ]
    found = summary(tmp_path, [rows, rows], (0, 0))
    assert (found.nodes[0].setup_s, found.nodes[0].mpi_s) == (pytest.approx(0.18), pytest.approx(0.02))
    assert found.per_rank[0].computation_s == pytest.approx(0.9)
    assert (
        "took 0.18 s, summed over all ranks, which is not counted as communication" in sentences(found)[0][0]
    )


def test_the_traffic_of_each_rank_is_told_where_it_goes(tmp_path: Path) -> None:
    first, second = message(100, 0, 1)
    put = (90 * MS, 91 * MS, 700, 2, "MPI_Put", f.ONE_SIDED, f.CALL)
    found = summary(tmp_path, [[first], [second, put], []], (0, 1, 1))
    traffic = [(rank.bytes_inside, rank.bytes_between, rank.bytes_received) for rank in found.per_rank]
    assert traffic == [(0, MB, 0), (700, 0, MB), (0, 0, 0)]
    assert [row[0] for row in rank_rows(found)] == ["0", "1", "2"]


def test_one_sided_bytes_inside_a_node_and_between_nodes_are_counted(tmp_path: Path) -> None:
    put = (MS, 2 * MS, 5000, 1, "MPI_Put", f.ONE_SIDED, f.CALL)
    away = (3 * MS, 4 * MS, 700, 2, "MPI_Put", f.ONE_SIDED, CALL)
    get = (5 * MS, 6 * MS, 70, 2, "MPI_Get", f.ONE_SIDED, CALL)
    found = summary(tmp_path, [[put, away, get], [], []], (0, 0, 1))
    assert [(node.bytes_inside, node.bytes_between) for node in found.nodes] == [(5000, 700), (0, 70)]
    assert not any("no data" in note for note in found.notes)


@pytest.mark.parametrize(("nodes", "flags"), [((0, 0), f.CALL), ((0, 1), CALL)])
def test_bytes_to_processes_of_other_jobs_count_and_are_named(
    tmp_path: Path, nodes: tuple[int, ...], flags: int
) -> None:
    row = (MS, 2 * MS, 400, -1, "MPI_Send", f.SEND, flags)
    found = summary(tmp_path, [[row], []], nodes)
    inside, between = (400, 0) if flags == f.CALL else (0, 400)
    assert (found.nodes[0].bytes_inside, found.nodes[0].bytes_between) == (inside, between)
    assert "400 B went to processes of other jobs" in found.notes[-1]
