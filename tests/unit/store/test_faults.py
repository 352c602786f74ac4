"""Faults at the k-th call of the disk or of the memory: no hang, no finished sample lost, one sentence, and
the run is completed by --resume with each unit exactly once.
"""

from __future__ import annotations

import errno
import os
import pathlib
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import msgspec
import pyarrow.parquet
import pytest

from elbowroom import cli
from elbowroom.errors import MachineError
from elbowroom.launch import trace_reader
from elbowroom.points.unit import Entry, Unit
from elbowroom.store.folder import RunFolder
from elbowroom.store.journal import HEADER, Journal, read_journal

MOST = 200
"""The last call that fails; runs have fewer of most kinds."""
PATIENCE = 60.0
START = ["run", "quick", "--machine", "henri", "--kernels", "prime", "--sizes", "4", "--repeat", "3"]
DONE = (0, 3)
"""Three repetitions are too few to trust, and enough to lose one."""
QUIET = ["--no-report", "--no-open"]


class Fault:
    """Fails at call number `at` of the functions it is wrapped around; with `stays` also at later ones."""

    def __init__(self, at: int, *, stays: bool = False) -> None:
        self.calls = 0
        self._at = at
        self._stays = stays

    def is_due(self) -> bool:
        self.calls += 1
        return self.calls >= self._at if self._stays else self.calls == self._at


def failing(patch: pytest.MonkeyPatch, fault: Fault, owner: Any, name: str, number: int) -> None:
    """The function raises that error where the fault is due."""
    whole = getattr(owner, name)

    def call(*words: Any, **options: Any) -> Any:
        if fault.is_due():
            raise OSError(number, os.strerror(number))
        return whole(*words, **options)

    patch.setattr(owner, name, call)


def writes(patch: pytest.MonkeyPatch, fault: Fault, number: int) -> None:
    """All that writes: half of it is written, then the disk refuses."""
    write, write_bytes, write_table = os.write, Path.write_bytes, pyarrow.parquet.write_table

    def short(handle: int, data: bytes) -> int:
        if fault.is_due():
            write(handle, bytes(data)[: len(data) // 2])
            raise OSError(number, os.strerror(number))
        return write(handle, data)

    def half(path: Path, data: bytes) -> int:
        if fault.is_due():
            write_bytes(path, data[: len(data) // 2])
            raise OSError(number, os.strerror(number))
        return write_bytes(path, data)

    def no_table(table: Any, file: IO[bytes], **options: Any) -> None:
        if fault.is_due():
            file.write(b"PAR1")
            raise OSError(number, os.strerror(number))
        write_table(table, file, **options)

    patch.setattr(os, "write", short)
    patch.setattr(pathlib.Path, "write_bytes", half)
    patch.setattr(pyarrow.parquet, "write_table", no_table)


def full(patch: pytest.MonkeyPatch, at: int) -> Fault:
    fault = Fault(at, stays=True)
    writes(patch, fault, errno.ENOSPC)
    return fault


def write_error(patch: pytest.MonkeyPatch, at: int) -> Fault:
    fault = Fault(at)
    writes(patch, fault, errno.EIO)
    return fault


def write_and_truncate_error(patch: pytest.MonkeyPatch, at: int) -> Fault:
    """What was written in part cannot be cut off either, until the run has ended."""
    fault = Fault(at)
    truncate = os.ftruncate

    def refuse(handle: int, size: int) -> None:
        if fault.calls >= at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        truncate(handle, size)

    writes(patch, fault, errno.EIO)
    patch.setattr(os, "ftruncate", refuse)
    return fault


def sync_error(patch: pytest.MonkeyPatch, at: int) -> Fault:
    fault = Fault(at)
    failing(patch, fault, os, "fsync", errno.EIO)
    return fault


def rename_error(patch: pytest.MonkeyPatch, at: int) -> Fault:
    fault = Fault(at)
    failing(patch, fault, os, "rename", errno.EIO)
    failing(patch, fault, os, "replace", errno.EIO)
    return fault


def open_error(patch: pytest.MonkeyPatch, at: int) -> Fault:
    fault = Fault(at)
    failing(patch, fault, os, "open", errno.EMFILE)
    return fault


def no_memory(patch: pytest.MonkeyPatch, at: int) -> Fault:
    fault, encode = Fault(at), msgspec.json.encode

    def refuse(*words: Any, **options: Any) -> bytes:
        if fault.is_due():
            raise MemoryError
        return encode(*words, **options)

    patch.setattr(msgspec.json, "encode", refuse)
    return fault


KINDS: dict[str, Callable[[pytest.MonkeyPatch, int], Fault]] = {
    "full disk": full,
    "write error": write_error,
    "write and truncate error": write_and_truncate_error,
    "sync error": sync_error,
    "rename error": rename_error,
    "open error": open_error,
    "no memory": no_memory,
}


@contextmanager
def no_hang() -> Iterator[None]:
    def stop(_number: int, _frame: object) -> None:
        pytest.fail(f"hangs for {PATIENCE} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Trial:
    """Runs with one fault each, and what they acknowledged as measured."""

    def __init__(self, folder: Path, kind: str, capfd: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._kind = KINDS[kind]
        self._capfd = capfd
        with pytest.MonkeyPatch.context() as patch:
            self.calls = self._run(patch, folder / "sound", MOST + 1)[1].calls
        self.units = {entry.unit for entry in RunFolder.open(folder / "sound").entries()}

    def _run(self, patch: pytest.MonkeyPatch, run: Path, at: int) -> tuple[int, Fault, list[Unit]]:
        acknowledged: list[Unit] = []
        append = Journal.append

        def note(journal: Journal, line: Entry) -> None:
            append(journal, line)
            acknowledged.append(line.unit)

        patch.setattr(Journal, "append", note)
        patch.setattr(os, "fsync", lambda _handle: None)  # the fault is what matters, not the time
        fault = self._kind(patch, at)
        with no_hang():
            return cli.run([*START, *QUIET, "--out", str(run)]), fault, acknowledged

    def fail_at(self, at: int) -> None:
        run = self._folder / f"{at}"
        with pytest.MonkeyPatch.context() as patch:
            code, _, acknowledged = self._run(patch, run, at)
        err = self._capfd.readouterr().err
        sentences = [line for line in err.splitlines() if line.startswith("elbowroom: ")]
        assert code in (1, 2), (at, err)
        assert len(sentences) == 1, (at, err)
        assert "Traceback" not in err, (at, err)
        assert [path.name for path in self._folder.glob(f".{at}.*")] == [], at
        if run.exists():
            kept = {entry.unit for entry in RunFolder.open(run).entries()}
            assert kept >= set(acknowledged), at
            assert cli.run(["run", "--resume", str(run), *QUIET]) in DONE, (at, self._capfd.readouterr().err)
        else:
            assert acknowledged == [], at
            assert cli.run([*START, *QUIET, "--out", str(run)]) in DONE, at
        units = [entry.unit for entry in RunFolder.open(run).entries()]
        assert len(units) == len(set(units)), at
        assert set(units) == self.units, at
        assert [path.name for path in run.glob(".*")] == [], at
        self._capfd.readouterr()


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_fault_at_any_call_nothing_is_lost_and_resume_completes_the_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], kind: str
) -> None:
    trial = Trial(tmp_path, kind, capfd)
    assert trial.calls > 2
    for at in range(1, min(trial.calls, MOST) + 1):
        trial.fail_at(at)


def test_a_reader_of_traces_whose_thread_cannot_start_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = tmp_path / "reader"
    reader.write_text(f"#!/bin/sh\necho $$ >{tmp_path}/pid\nexec sleep 60\n")
    reader.chmod(0o755)
    monkeypatch.setattr(trace_reader.build, "trace_reader", lambda: reader)

    def refuse(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    started: list[subprocess.Popen[bytes]] = []
    popen = subprocess.Popen

    def note(*words: Any, **options: Any) -> subprocess.Popen[bytes]:
        started.append(popen(*words, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", note)
    with no_hang(), pytest.raises(MachineError, match=r"cannot be started .can't start new thread"):
        trace_reader.read(["check", "t"])
    assert [process.returncode for process in started] == [-signal.SIGKILL]


def entry(repetition: int) -> Entry:
    return Entry(point="p", repetition=repetition, record={"status": "ok", "phases": []})


@pytest.mark.parametrize(
    "kind", ["full disk", "write error", "write and truncate error", "sync error", "no memory"]
)
def test_a_journal_that_fails_at_the_k_th_call_keeps_what_it_acknowledged(tmp_path: Path, kind: str) -> None:
    for at in range(1, MOST + 1, 7):
        path = tmp_path / f"{at}.jsonl"
        path.write_bytes(HEADER)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "fsync", lambda _handle: None)
            journal = Journal(path)
            KINDS[kind](patch, at)
            acknowledged = append_until_it_fails(journal)
            journal.close()
        assert len(acknowledged) == at - 1
        entries, size = read_journal(path)
        assert [item.repetition for item in entries][: at - 1] == acknowledged
        assert size <= path.stat().st_size
        later = Journal(path)
        later.append(entry(1000))
        later.close()
        assert [item.repetition for item in read_journal(path)[0]] == [*acknowledged, 1000]


def append_until_it_fails(journal: Journal) -> list[int]:
    acknowledged: list[int] = []
    with pytest.raises((MachineError, MemoryError)):  # noqa: PT012
        for repetition in range(MOST + 1):
            journal.append(entry(repetition))
            acknowledged.append(repetition)
    return acknowledged


def test_a_journal_goes_on_after_a_line_that_could_not_be_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "samples.jsonl"
    path.write_bytes(HEADER)
    journal = Journal(path)
    journal.append(entry(0))
    with pytest.MonkeyPatch.context() as patch:
        write_and_truncate_error(patch, 1)
        with pytest.raises(MachineError, match="Input/output error"):
            journal.append(entry(1))
    assert not path.read_bytes().endswith(b"\n")
    journal.append(entry(2))
    journal.close()
    assert [item.repetition for item in read_journal(path)[0]] == [0, 2]
