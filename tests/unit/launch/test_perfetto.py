"""Slices of Perfetto's protobuf become events of `trace overlap`."""

from __future__ import annotations

import gzip
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from elbowroom import api
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.trace.overlap.document import TraceOverlap
from perfetto_file import Slices, compressed, process, thread, track

MS = 1_000_000
GEMM, NCCL = ("gemm", "kernel_dispatch", 20), ("ncclDevKernel_AllReduce", "kernel_dispatch", 21)
SPANS = [(*GEMM, 0, 4), (*NCCL, 2, 5), (*GEMM, 6, 9), (*NCCL, 8, 12)]
"""Computation and communication, ms: 2 + 1 ms hidden, 4 ms exposed."""
HEAD = process(1, 7, "python") + track(20, "COMPUTE QUEUE 1", 1) + track(21, "COMPUTE QUEUE 2", 1)


def written(*, incremental: bool = False, begin: int = 0) -> bytes:
    slices = Slices(incremental=incremental)
    slices.spans([(*rest, begin + first * MS, begin + last * MS) for *rest, first, last in SPANS])
    return HEAD + slices.data


def found(path: Path, data: bytes) -> TraceOverlap:
    path.write_bytes(data)
    return api.trace_overlap(path)


def is_of_spans(result: TraceOverlap) -> None:
    assert result.format == "perfetto"
    times = {"comp_s": 7e-3, "comm_s": 7e-3, "hidden_s": 3e-3, "exposed_s": 4e-3}
    assert {name: getattr(result, name) for name in times} == pytest.approx(times)


@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, compressed], ids=["plain", "gz", "compressed packets"]
)
@pytest.mark.parametrize("incremental", [False, True])
def test_slices_are_read(tmp_path: Path, pack: Callable[[bytes], bytes], incremental: bool) -> None:
    is_of_spans(found(tmp_path / "t.pftrace", pack(written(incremental=incremental))))


def test_times_since_1970_keep_their_nanoseconds(tmp_path: Path) -> None:
    is_of_spans(found(tmp_path / "t.pftrace", written(begin=1_790_000_000_000_000_123)))


def test_threads_of_a_process_are_one_rank(tmp_path: Path) -> None:
    slices = Slices()
    slices.spans([("solve", "computation", 30, 0, 5 * MS), ("MPI_Allreduce", "mpi", 31, 2 * MS, 6 * MS)])
    data = process(1, 7, "solver") + thread(30, 7, 7, 1) + thread(31, 7, 8, 1) + slices.data
    result = found(tmp_path / "t.pftrace", data)
    assert (result.ranks, result.hidden_s) == (1, pytest.approx(3e-3))


def test_a_file_that_ends_early_is_partial(tmp_path: Path) -> None:
    result = found(tmp_path / "t.pftrace", written()[:-31])
    assert result.partial
    assert "ends early" in result.doubts[0]
    assert result.comp_s == pytest.approx(4e-3)


def test_a_file_without_slices_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no events with a duration"):
        found(tmp_path / "t.pftrace", HEAD)


def test_damage_ends_with_a_sentence_or_a_result(tmp_path: Path) -> None:
    dice, data = random.Random(5), written()
    for _ in range(80):
        damaged = bytearray(data)
        for _ in range(dice.randrange(1, 5)):
            damaged[dice.randrange(len(damaged))] = dice.randrange(256)
        try:
            result = found(tmp_path / "t.pftrace", bytes(damaged))
        except ElbowroomError:
            continue
        assert 0 <= result.hidden_s <= result.comm_s <= result.span_s + 1e-9
