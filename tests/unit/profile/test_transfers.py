"""The log of an emulated NIC, as lib/nic writes it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

import benchmark_modules
from elbowroom.errors import UsageError

_TRANSFERS = benchmark_modules.load("nic_transfers")
read_transfers = _TRANSFERS.read_transfers

HEADER = struct.Struct("<8siiqdd")
TRANSFER = struct.Struct("<QQQii")


def write_log(folder: Path, rank: int, rows: list[tuple[int, int, int, int, int]], end: bytes = b"") -> None:
    header = HEADER.pack(b"ELBNIC01", rank, rank // 2, 4711, 5e7, 8192.0)
    body = b"".join(TRANSFER.pack(*row) for row in rows)
    (folder / f"rank-{rank:06}-4711.nic").write_bytes(header + body + end)


def test_transfers_of_all_processes_are_read_with_their_ranks(tmp_path: Path) -> None:
    write_log(
        tmp_path, 0, [(1_000_000_000, 2_000_000_000, 100, 0, 1), (3_000_000_000, 4_000_000_000, 7, 0, 1)]
    )
    write_log(tmp_path, 3, [(1_500_000_000, 1_600_000_000, 9, 1, 0)])
    found = read_transfers(tmp_path)
    assert found.began.tolist() == [1.0, 3.0, 1.5]
    assert found.ended.tolist() == [2.0, 4.0, 1.6]
    assert found.bytes.tolist() == [100, 7, 9]
    assert found.rank.tolist() == [0, 0, 3]
    assert list(zip(found.source.tolist(), found.target.tolist(), strict=True)) == [(0, 1), (0, 1), (1, 0)]
    assert found.bandwidth == 5e7


def test_what_a_killed_process_wrote_in_part_is_left_out(tmp_path: Path) -> None:
    write_log(tmp_path, 0, [(1, 2, 100, 0, 1)], end=b"\1" * 20)
    assert read_transfers(tmp_path).bytes.tolist() == [100]


def test_another_file_and_a_folder_without_logs_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no log of an emulated NIC"):
        read_transfers(tmp_path)
    (tmp_path / "rank-000000-1.nic").write_bytes(b"x" * 100)
    with pytest.raises(UsageError, match="is no log of an emulated NIC"):
        read_transfers(tmp_path)
