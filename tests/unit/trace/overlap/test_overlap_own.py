"""elbowroom's own traces: the folder and every merged file give the same overlap."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

from elbowroom import api
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.launch import build, trace_reader
from made_overlap import COMM, Recipe, make
from made_rings import BEGIN, END, RECEIVE, SEND, MadeRank

SECOND = 1_000_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One rank: a thread that computes, and one that calls MPI; gemm is slower beside MPI."""
    try:
        build.trace_reader()
    except ElbowroomError as error:
        pytest.skip(f"the reader of traces cannot be built here: {error}")
    trace = tmp_path_factory.mktemp("own") / "trace"
    rank = MadeRank(0, 1)
    types = {name: rank.type(name, "computation") for name in ("gemm", "attention", "layernorm", "gelu")}
    call = rank.type("MPI_Allreduce", "mpi")
    threads = {False: rank.thread(b"computing"), True: rank.thread(b"communication"),
               "step": rank.thread(b"steps")}  # fmt: skip
    rank.sync(0, 0)
    made = make(Recipe(seed=3, instances=1500, slowdown=1.3))
    steps = {begin: rank.type(f"step {number}", "computation") for _, number, begin, _ in made.steps}
    for _, _, begin, length in made.steps:
        for time, state in ((begin, BEGIN), (begin + length, END)):
            rank.add(threads["step"], round(time * 1000) + SECOND, steps[begin], state)
    for span in made.spans:
        comm = span.stream == COMM
        begin = round(span.start * 1000) + SECOND
        kind = call if comm else types[span.name]
        rank.add(threads[comm], begin, kind, BEGIN)
        rank.add(threads[comm], begin + round(span.duration * 1000), kind, END)
    rank.write(trace)
    return trace


def test_the_folder_of_a_trace_has_its_overlap(folder: Path) -> None:
    truth = make(Recipe(seed=3, instances=1500, slowdown=1.3))
    found = api.trace_overlap(folder)
    assert found.format == "elbowroom"
    assert found.hidden_s == pytest.approx(truth.hidden_s, rel=1e-4)
    assert found.cost_s == pytest.approx(truth.cost_s, rel=0.1)
    assert {one.communication for one in found.classes} == {"MPI_Allreduce"}


@pytest.mark.parametrize("ending", ["json", "parquet", "otf2", "pftrace", "paje"])
def test_a_merged_file_has_the_same_overlap(folder: Path, tmp_path: Path, ending: str) -> None:
    if ending == "otf2":
        try:
            trace_reader.otf2_library_name()
        except UsageError as error:
            pytest.skip(error.sentence())
    out = tmp_path / f"trace.{ending}"
    api.merge_trace(folder, out)
    found, own = api.trace_overlap(out), api.trace_overlap(folder)
    assert not found.doubts
    assert found.hidden_s == pytest.approx(own.hidden_s, rel=1e-6)
    assert found.cost_s == pytest.approx(own.cost_s, rel=1e-3)
    assert len(found.classes) == len(own.classes)


def test_damaged_archives_end_with_a_sentence_or_a_result(folder: Path, tmp_path: Path) -> None:
    try:
        trace_reader.otf2_library_name()
    except UsageError as error:
        pytest.skip(error.sentence())
    out = tmp_path / "trace.otf2"
    api.merge_trace(folder, out)
    files = sorted(path for path in out.rglob("*") if path.is_file())
    dice = random.Random(2)
    for file in files:
        good = file.read_bytes()
        bad = bytearray(good[: max(1, len(good) * dice.randint(1, 3) // 4)])
        bad[dice.randrange(len(bad))] ^= 0xFF
        file.write_bytes(bytes(bad))
        with contextlib.suppress(ElbowroomError):
            assert api.trace_overlap(out).verdict
        file.write_bytes(good)


def test_messages_of_nonblocking_calls_are_communication_while_they_are_in_flight(tmp_path: Path) -> None:
    try:
        build.trace_reader()
    except ElbowroomError as error:
        pytest.skip(f"the reader of traces cannot be built here: {error}")
    trace = tmp_path / "trace"
    for number in (0, 1):
        rank = MadeRank(number, 2)
        solve, post, wait = (rank.type(name, kind) for name, kind in (
            ("solve", "task"), ("MPI_Isend" if number == 0 else "MPI_Irecv", "mpi"), ("MPI_Wait", "mpi")
        ))  # fmt: skip
        message = rank.type("message", "message")
        thread = rank.thread(b"main")
        rank.sync(0, 0, 2)
        rank.sync(3 * SECOND, 0, 2)
        for kind, state, time in (
            (post, BEGIN, 0), (post, END, 10), (solve, BEGIN, 20), (solve, END, 920), (wait, BEGIN, 930),
            (wait, END, 1000),
        ):  # fmt: skip
            rank.add(thread, SECOND + 1000 * time, kind, state)
            if (kind, state) == (post, BEGIN) and number == 0:
                rank.add(thread, SECOND + 5000, message, SEND, 3, 1, 4096)
            if (kind, state) == (wait, BEGIN) and number == 1:
                rank.add(thread, SECOND + 990_000, message, RECEIVE, 3, 0, 4096)
        rank.write(trace)
    found = api.trace_overlap(trace)
    assert found.hidden_s == pytest.approx(900e-6)
    assert {one.communication for one in found.classes} == {"message in flight"}
