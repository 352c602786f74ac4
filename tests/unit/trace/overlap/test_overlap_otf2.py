"""What regions, roles and locations of an OTF2 archive mean, from what otf2_library gives."""

from __future__ import annotations

import io
import json
from pathlib import Path

import numpy as np
import pytest

from elbowroom.trace.overlap.analysis import analyse
from elbowroom.trace.overlap.document import TraceOverlap
from elbowroom.trace.overlap.otf2 import read_otf2
from elbowroom.trace.overlap.otf2_library import ACCELERATOR_GROUP, DONE, ENTER, LEAVE, Archive

MPI, HIP, USER = 4, 23, 1
FUNCTION, BARRIER, COLLECTIVE, FILE = 1, 15, 25, 27
THREAD, STREAM = 1, 2


def analysed(regions: list[tuple[str, int, int]], spans: list[tuple[int, int, int, int]]) -> TraceOverlap:
    """`regions`: name, role, paradigm; `spans`: location (1: a stream), region, begin, end in us."""
    known = {
        "resolution": 1_000_000,
        "regions": [[n, *one] for n, one in enumerate(regions)],
        "locations": [[0, "Master thread", THREAD, "rank 0"], [1, "HIP[0]", STREAM, "rank 0"]],
    }
    records = sorted(
        (location, time, kind, region)
        for location, region, begin, end in spans
        for time, kind in ((begin, ENTER), (end, LEAVE))
    )
    rows = [(location, kind, time, region) for location, time, kind, region in records] + [(0, DONE, 0, 1)]
    stream = io.BytesIO(json.dumps(known).encode() + b"\n" + np.array(rows, dtype=np.int64).tobytes())
    return analyse(read_otf2(stream, Path("traces.otf2")), ["traces.otf2"])


@pytest.mark.parametrize(
    ("name", "role", "paradigm", "kind"),
    [
        ("hipDeviceSynchronize", FUNCTION, HIP, "wait"),
        ("hipStreamSynchronize", FUNCTION, HIP, "wait"),
        ("hipLaunchKernel", FUNCTION, HIP, "launch"),
        ("!$omp barrier", BARRIER, 3, "wait"),
        ("MPI_Init", FUNCTION, MPI, "set-up"),
        ("MPI_Comm_split", COLLECTIVE, MPI, "set-up"),
        ("MPI_Barrier", COLLECTIVE, MPI, "wait for messages"),
        ("fwrite", FILE, 20, "input/output"),
        ("TRACE BUFFER FLUSH", FUNCTION, 6, "runtime"),
        ("pthread_cond_wait", FUNCTION, 7, "wait"),
    ],
)
def test_what_the_host_waits_for_or_launches_is_no_computation(
    name: str, role: int, paradigm: int, kind: str
) -> None:
    regions = [("kernel", FUNCTION, HIP), ("MPI_Allreduce", COLLECTIVE, MPI), (name, role, paradigm)]
    found = analysed(regions, [(1, 0, 0, 100), (0, 1, 50, 150), (0, 2, 200, 900), (1, 0, 800, 900)])
    assert (found.ranks, found.hidden_s) == (1, pytest.approx(50e-6))
    assert found.comp_s == pytest.approx(200e-6)
    assert [(one.kind, one.operations) for one in found.left_out] == [(kind, 1)]


def test_copies_on_a_stream_are_copies_and_kernels_compute() -> None:
    regions = [("kernel", FUNCTION, HIP), ("hipMemcpyHtoD", FUNCTION, HIP)]
    found = analysed(regions, [(1, 0, 0, 100), (1, 1, 100, 150)])
    assert {one.kind: one.operations for one in found.counted} == {"computation": 1, "copy": 1}


def test_the_group_of_a_device_belongs_to_the_process_that_created_it() -> None:
    archive = Archive.__new__(Archive)
    archive.strings = {1: "MPI Rank 0", 2: "HIP context"}
    archive.groups = {0: (1, 0), 1: (2, 0), 2: (2, 99)}
    assert [archive._process(group) for group in (0, 1, 2, 7)] == [
        "MPI Rank 0", "MPI Rank 0", "HIP context", "process 7",
    ]  # fmt: skip
    assert ACCELERATOR_GROUP == 2
