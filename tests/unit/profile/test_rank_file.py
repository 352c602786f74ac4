"""The reader of a process' file: what a whole one says, and that a damaged one is refused in one sentence."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from elbowroom.errors import UsageError
from elbowroom.profile import rank_file as f
from elbowroom.profile import rank_tables as t
from elbowroom.profile.rank_file import read_rank
from made_profiles import MS, START_NS, write_rank

ROWS = [
    (1 * MS, 2 * MS, 4096, 1, "MPI_Send", f.SEND, f.CALL | f.BETWEEN),
    (3 * MS, 5 * MS, 8192, 1, "MPI_Recv", f.RECEIVE, f.CALL | f.BETWEEN),
    (6 * MS, 7 * MS, 8, -3, "MPI_Allreduce", f.COLLECTIVE, f.CALL | f.BETWEEN),
]
NODES = (0, 1)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_rank(
        tmp_path / "rank-000000.profile", ROWS, nodes_of=NODES, windows=[(1, 2, 3, 4, 5, 6, 7, 8)]
    )


@pytest.fixture(params=[1, 2])
def any_file(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """Of format 1, or of format 2 with sites, a thread and a sample."""
    more = [
        (MS, 2 * MS, 10, 1, SITE, f.SEND, f.CALL),
        (MS, 2 * MS, 900_000, 2, 0, f.RAN, 0),
        (MS, 2 * MS, 90_000, -1, 0, f.WAITED, 0),
    ]
    is_new = request.param > 1
    return write_rank(
        tmp_path / "rank-000000.profile",
        [*ROWS, *(more if is_new else [])],
        nodes_of=NODES,
        windows=[(1,) * 8],
        places=[(7,) * (11 if is_new else 6)],
        version=request.param,
    )


def test_a_file_has_what_was_written(file: Path) -> None:
    rank = read_rank(file)
    assert (rank.rank, rank.size, rank.node, rank.nodes, rank.local_size) == (0, 2, 0, 2, 1)
    assert (rank.host, rank.mpi, rank.lost, rank.calls) == ("node0", "Made MPI 1.0", 0, 3)
    assert rank.nodes_of.tolist() == [0, 1]
    assert rank.windows.tolist() == [(1, 2, 3, 4, 5, 6, 7, 8)]
    assert [one.name for one in rank.call_kinds] == ["MPI_Send", "MPI_Recv", "MPI_Allreduce"]
    assert rank.call_kinds[1].ns == 2 * MS
    assert rank.records.tolist() == [
        (START_NS + begin, START_NS + end, size, peer, call, kind, flags)
        for call, (begin, end, size, peer, _, kind, flags) in enumerate(ROWS)
    ]


def test_the_header_has_the_layout_of_the_format() -> None:
    offsets = {name: f.HEADER.fields[name][1] for name in ("pid", "windows", "records", "nodes_at", "host")}
    assert offsets == {"pid": 40, "windows": 80, "records": 88, "nodes_at": 136, "host": 168}
    added = {name: f.HEADER.fields[name][1] for name in ("threads", "modules_at", "sites_at", "cpuset")}
    assert added == {"threads": 360, "modules_at": 384, "sites_at": 400, "cpuset": 416}
    assert f.HEADER_1.fields["threads"][1] == 360
    assert (t.THREAD_1.itemsize, t.THREAD.itemsize) == (32, 56)
    assert (t.SITE.itemsize, t.MODULE.itemsize) == (64, 1024)
    assert f.RECORD.itemsize == 32
    assert f.WINDOW.itemsize == 64
    assert t.CALL_KIND.itemsize == 64


SITE = t.Site(call="MPI_Send", module="/opt/app", offset=0x1140, size=7, mtime_ns=9)
OTHER = t.Site(call="MPI_Send", module="", offset=0x7F00)


def test_records_of_two_places_have_two_sites_and_one_call(tmp_path: Path) -> None:
    rows = [
        (MS, 2 * MS, 10, 1, OTHER, f.SEND, f.CALL),
        (3 * MS, 4 * MS, 20, 1, SITE, f.SEND, f.CALL),
        (5 * MS, 6 * MS, 40, 1, "MPI_Send", f.SEND, f.CALL),
    ]
    rank = read_rank(write_rank(tmp_path / "r", rows, nodes_of=NODES))
    assert rank.sites is not None
    assert rank.site_of is not None
    assert rank.sites == (t.Site(call="MPI_Send"), OTHER, SITE)
    assert rank.site_of.tolist() == [1, 2, 0]
    assert rank.records["call"].tolist() == [0, 0, 0]
    assert [(one.name, one.count, one.bytes) for one in rank.call_kinds] == [("MPI_Send", 3, 70)]


def test_samples_are_no_records_of_calls(tmp_path: Path) -> None:
    rows = [ROWS[0], (MS, 2 * MS, 600_000, 3, 0, f.RAN, 0), (MS, 2 * MS, 400_000, -1, 0, f.WAITED, 0)]
    rank = read_rank(write_rank(tmp_path / "r", rows, nodes_of=NODES))
    assert rank.records["kind"].tolist() == [f.SEND]
    assert rank.is_sample.tolist() == [False, True, True]


def test_a_file_of_format_1_has_no_sites_and_limits(tmp_path: Path) -> None:
    rank = read_rank(write_rank(tmp_path / "r", ROWS, nodes_of=NODES, version=1))
    assert (rank.sites, rank.site_of, rank.limits) == (None, None, None)
    assert rank.records["call"].tolist() == [0, 1, 2]
    assert rank.call_kinds[1].ns == 2 * MS


def test_a_sample_in_a_file_of_format_1_is_damage(tmp_path: Path) -> None:
    rows = [(MS, 2 * MS, 1, 0, 0, f.RAN, 0)]
    with pytest.raises(UsageError, match="records have impossible values"):
        read_rank(write_rank(tmp_path / "r", rows, nodes_of=NODES, version=1))


@pytest.mark.parametrize(
    ("header", "limits"),
    [
        ({"cpu_limit": 1.5, "cpuset": b"0-1"}, t.CpuLimits(cpus=1.5, cpuset="0-1")),
        ({"cpu_limit": 0.0}, t.CpuLimits(cpus=None, cpuset="")),
        ({"cpu_limit": -1.0}, None),
    ],
)
def test_the_limits_of_the_control_group_are_given_absent_or_unknown(
    tmp_path: Path, header: dict[str, Any], limits: t.CpuLimits | None
) -> None:
    assert read_rank(write_rank(tmp_path / "r", ROWS, nodes_of=NODES, **header)).limits == limits


def test_a_ring_that_went_round_starts_with_its_oldest_record(tmp_path: Path) -> None:
    rows = [(i * MS, i * MS + 1, i, 1, "MPI_Send", f.SEND, f.CALL) for i in range(1, 8)]
    rank = read_rank(write_rank(tmp_path / "r", rows, nodes_of=NODES, capacity=3))
    assert rank.records["bytes"].tolist() == [5, 6, 7]
    assert rank.lost == 4


def test_a_killed_process_has_no_end(tmp_path: Path) -> None:
    assert read_rank(write_rank(tmp_path / "r", ROWS, nodes_of=NODES, end=None)).end_ns is None


def test_an_incomplete_record_of_a_killed_process_is_lost(tmp_path: Path) -> None:
    path = write_rank(tmp_path / "r", ROWS, nodes_of=NODES, end=None, written=len(ROWS) + 1)
    rank = read_rank(path)
    assert (len(rank.records), rank.lost) == (3, 1)


def test_an_impossible_record_of_a_finished_process_is_damage(tmp_path: Path) -> None:
    path = write_rank(tmp_path / "r", ROWS, nodes_of=NODES, written=len(ROWS) + 1)
    with pytest.raises(UsageError, match="1 of 4 records have impossible values"):
        read_rank(path)


def test_windows_that_were_being_merged_are_left_out(tmp_path: Path) -> None:
    path = write_rank(tmp_path / "r", ROWS, nodes_of=NODES, end=None, windows=[(1,) * 8], merging=1)
    assert len(read_rank(path).windows) == 0


def test_an_operation_still_open_has_no_end(tmp_path: Path) -> None:
    rows = [(MS, 0, 8, 1, "MPI_Isend", f.POSTED_SEND, f.SPAN | f.OPEN)]
    assert read_rank(write_rank(tmp_path / "r", rows, nodes_of=NODES)).records["end"].tolist() == [0]


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ({"magic": b"ELFELFEL"}, "is not a profile of a process"),
        ({"version": 3}, "has format 3, and this release reads formats 1 to 2"),
        ({"local_rank": 5}, "its local_rank cannot be right"),
        ({"size": 0}, "its size cannot be right"),
        ({"node": 1}, "its nodes of the ranks cannot be right"),
        ({"end_ns": 1}, "its end_ns cannot be right"),
        ({"window_ns": 0}, "its window_ns cannot be right"),
        ({"window_count": 99}, "its window_count cannot be right"),
        ({"records": 1 << 40}, "is truncated"),
        ({"call_kinds": 1}, "records have impossible values"),
        ({"calls_at": 8}, "its calls_at cannot be right"),
        ({"sites": 1}, "its sites cannot be right"),
        ({"site_room": 1 << 17}, "its sites cannot be right"),
        ({"modules": 70000, "module_room": 70000}, "its modules cannot be right"),
        ({"cpu_limit": float("nan")}, "its cpu_limit cannot be right"),
    ],
)
def test_a_wrong_header_is_refused_by_its_field(tmp_path: Path, header: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        read_rank(write_rank(tmp_path / "r", ROWS, nodes_of=NODES, **header))


def test_a_truncated_file_is_refused(any_file: Path) -> None:
    data = any_file.read_bytes()
    for length in (0, 10, 4095, 4096, 4100, len(data) - 1):
        any_file.write_bytes(data[:length])
        with pytest.raises(UsageError):
            read_rank(any_file)


def test_a_folder_a_pipe_and_a_missing_file_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe", tmp_path / "missing"):
        with pytest.raises(UsageError):
            read_rank(path)


@given(data=st.binary(max_size=6000), keep=st.sampled_from((0, 8, 12, 16)))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_random_bytes_are_refused(tmp_path: Path, data: bytes, keep: int) -> None:
    start = (f.MAGIC + struct.pack("<II", f.VERSION, f.HEADER_BYTES))[:keep]
    path = tmp_path / "r"
    path.write_bytes(start + data)
    with pytest.raises(UsageError):
        read_rank(path)


@given(flips=st.lists(st.tuples(st.integers(0, 1 << 16), st.integers(1, 255)), min_size=1, max_size=4))
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_flipped_bytes_are_refused_or_read_as_another_profile(
    any_file: Path, tmp_path: Path, flips: list[tuple[int, int]]
) -> None:
    data = bytearray(any_file.read_bytes())
    used = [*range(f.HEADER.itemsize), *range(f.HEADER_BYTES, len(data))]
    for place, bits in flips:
        data[used[place % len(used)]] ^= bits
    path = tmp_path / "flipped"
    path.write_bytes(bytes(data))
    try:
        rank = read_rank(path)
    except UsageError:
        return
    assert 0 <= rank.rank < rank.size
    assert np.all(rank.records["call"] < len(rank.call_kinds))
    if rank.sites is not None and rank.site_of is not None:
        assert np.all(rank.site_of < len(rank.sites))
        assert rank.samples is not None
        assert np.all(rank.samples["thread"] < len(rank.threads))
        assert all(site.call in {kind.name for kind in rank.call_kinds} for site in rank.sites)
