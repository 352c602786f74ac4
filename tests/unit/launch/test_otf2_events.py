"""otf2-events reads what elbowroom's reader in Python reads, of whole and of damaged archives."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
from pathlib import Path

import pytest

from elbowroom import api
from elbowroom.errors import ElbowroomError, MachineError, UsageError
from elbowroom.launch import build, trace_reader
from elbowroom.trace.overlap import long_traces
from elbowroom.trace.overlap.events import Events
from elbowroom.trace.overlap.otf2 import Otf2File, read_otf2
from elbowroom.trace.overlap.raw_events import RawEvents
from event_columns import rows
from made_rings import BEGIN, END, RECEIVE, SEND, MadeRank

SECOND = 1_000_000_000


@pytest.fixture(scope="module", autouse=True)
def _every_size():
    patch = pytest.MonkeyPatch()
    patch.setattr(trace_reader, "LARGE_OTF2", 0)
    yield
    patch.undo()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The anchor of an archive of two ranks with nested regions and nonblocking messages."""
    try:
        build.trace_reader()
        trace_reader.otf2_library_name()
    except ElbowroomError as error:
        pytest.skip(error.sentence())
    folder = tmp_path_factory.mktemp("archive")
    for number in (0, 1):
        rank = MadeRank(number, 2)
        step, solve, post, wait = (rank.type(name, kind) for name, kind in (
            ("step", "task"), ("solve", "task"), ("MPI_Isend" if number == 0 else "MPI_Irecv", "mpi"),
            ("MPI_Wait", "mpi"),
        ))  # fmt: skip
        message = rank.type("message", "message")
        thread = rank.thread(b"main")
        rank.sync(0, 0, 2)
        rank.sync(3 * SECOND, 0, 2)
        for at in range(200):
            first = SECOND + at * 2000
            for kind, state, time in (
                (step, BEGIN, 0), (post, BEGIN, 1), (post, END, 10), (solve, BEGIN, 20), (solve, BEGIN, 30),
                (solve, END, 40), (solve, END, 920), (wait, BEGIN, 930), (wait, END, 1000), (step, END, 1100),
            ):  # fmt: skip
                rank.add(thread, first + time, kind, state)
            if number == 0:
                rank.add(thread, first + 5, message, SEND, 2**32 + 10 * at, 1, 4096)
            else:
                rank.add(thread, first + 990, message, RECEIVE, 10 * at, 0, 4096)
        rank.write(folder / "trace")
    api.merge_trace(folder / "trace", folder / "t.otf2")
    return folder / "t.otf2" / "traces.otf2"


def read_slowly(anchor: Path) -> Events:
    with trace_reader.otf2_records(anchor) as stream:
        return read_otf2(stream, anchor)


def read_fast(anchor: Path) -> Events | None:
    """None where it is declined, or libotf2 ended the process."""
    reader = trace_reader.otf2_reader(anchor)
    assert reader is not None, "otf2-events was not built"
    with reader(anchor) as stream:
        try:
            return Otf2File(raw=RawEvents(stream), path=anchor).whole()
        except EOFError:
            return None


def check_same(anchor: Path) -> bool:
    """Whether it was read; fails where the two readers differ."""
    fast = read_fast(anchor)
    if fast is None:
        return False
    slow = read_slowly(anchor)
    assert (fast.doubts, fast.notes, fast.ranks) == (slow.doubts, slow.notes, slow.ranks)
    assert fast.classes == slow.classes
    assert rows(fast) == rows(slow)
    return True


def test_an_archive_is_read_as_in_python(archive: Path) -> None:
    assert check_same(archive)
    found = read_fast(archive)
    assert found is not None
    assert len(found) >= 200 * 10
    assert not found.doubts


def test_damaged_archives_are_declined_or_read_as_in_python(archive: Path, tmp_path: Path) -> None:
    place = tmp_path / "t.otf2"
    shutil.copytree(archive.parent, place)
    chance, read = random.Random(7), 0
    files = sorted(path for path in place.rglob("*") if path.is_file())
    for file in files:
        good = file.read_bytes()
        bad = bytearray(good[: max(1, len(good) * chance.choice([1, 3, 4]) // 4)])
        bad[chance.randrange(len(bad))] ^= 1 << chance.randrange(8)
        file.write_bytes(bytes(bad))
        with contextlib.suppress(UsageError):
            read += check_same(place / archive.name)
        file.write_bytes(good)
    assert read


def test_a_long_archive_is_analysed_in_parts(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = api.trace_overlap(archive)
    monkeypatch.setattr(long_traces, "MOST", 1500)
    parts = api.trace_overlap(archive)
    assert "parts" in parts.notes[0]
    for name in ("comp_s", "comm_s", "hidden_s", "exposed_s"):
        assert getattr(parts, name) == pytest.approx(getattr(whole, name), rel=1e-6), name


def test_python_reads_an_archive_whose_program_cannot_be_built(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = api.trace_overlap(archive)

    def refuse() -> Path:
        raise MachineError("cannot be built", field="otf2-events")

    monkeypatch.setattr(build, "otf2_events", refuse)
    assert api.trace_overlap(archive).hidden_s == whole.hidden_s


PUBLIC = sorted(Path(os.environ.get("ELBOWROOM_PUBLIC_FILES", "/nonexistent")).glob("otf2/*/traces.otf2"))


@pytest.mark.skipif(not PUBLIC, reason="ELBOWROOM_PUBLIC_FILES names no folder of public traces")
@pytest.mark.parametrize("path", PUBLIC, ids=lambda path: path.parent.name)
def test_public_archives_are_read_as_in_python(path: Path) -> None:
    assert check_same(path)
