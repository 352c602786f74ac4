"""One process measures into a run: with flock, and with lock files where the file system has no flock."""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from elbowroom import api, signals
from elbowroom.errors import MachineError, UsageError
from elbowroom.experiments.plans import Overrides
from elbowroom.measure import campaign
from elbowroom.measure.prepared import Request
from elbowroom.measure.source import Where
from elbowroom.points.unit import Entry
from elbowroom.store import locks
from elbowroom.store.folder import RunFolder
from elbowroom.store.journal import HEADER, Journal

REFUSED = "another process is measuring into it"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "samples.jsonl"
    file.write_bytes(HEADER)
    return file


@pytest.fixture(params=[errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOLCK])
def no_flock(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system without locks, such as Lustre without -o flock."""

    def refuse(_handle: int, _how: int) -> None:
        raise OSError(request.param, os.strerror(request.param))

    monkeypatch.setattr(fcntl, "flock", refuse)


def entry(repetition: int, status: str = "ok") -> Entry:
    return Entry(point="p", repetition=repetition, record={"status": status, "phases": []})


def names(path: Path) -> list[str]:
    return sorted(file.name for file in path.parent.iterdir())


@pytest.mark.usefixtures("no_flock")
def test_without_flock_a_lock_file_keeps_others_out(path: Path) -> None:
    first = Journal(path)
    assert names(path) == ["samples.jsonl", "samples.jsonl.lock"]
    with pytest.raises(UsageError, match=REFUSED):
        Journal(path)
    first.append(entry(0))
    first.append(entry(1, "failed"))
    first.drop_failed()
    with pytest.raises(UsageError, match=REFUSED):
        Journal(path)
    first.close()
    assert names(path) == ["samples.jsonl"]
    with_one = Journal(path)
    assert len(with_one.done) == 1
    with_one.close()


@pytest.mark.usefixtures("no_flock")
def test_the_lock_file_of_a_process_that_ended_is_taken_over(path: Path) -> None:
    code = (
        "import errno, fcntl, os, sys\n"
        "from pathlib import Path\n"
        "def refuse(*_): raise OSError(errno.ENOSYS, 'no locks')\n"
        "fcntl.flock = refuse\n"
        "from elbowroom.store.journal import Journal\n"
        "Journal(Path(sys.argv[1])); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, str(path)], check=True)
    assert names(path) == ["samples.jsonl", "samples.jsonl.lock"]
    Journal(path).close()
    assert names(path) == ["samples.jsonl"]


@pytest.mark.usefixtures("no_flock")
@pytest.mark.parametrize(
    ("holder", "hint"),
    [
        (locks.Holder(host="elsewhere", process=1), "on elsewhere; if it has ended, remove"),
        (None, "if it has ended, remove"),
    ],
)
def test_the_lock_file_of_another_host_or_nobody_is_left_to_a_person(
    path: Path, holder: locks.Holder | None, hint: str
) -> None:
    lock = path.with_name("samples.jsonl.lock")
    lock.write_bytes(b"" if holder is None else msgspec.json.encode(holder))
    with pytest.raises(UsageError, match=hint):
        Journal(path)
    assert lock.exists()


@pytest.mark.usefixtures("no_flock")
def test_a_process_number_that_came_back_does_not_hold_the_lock(path: Path) -> None:
    old = locks.Holder(host=socket.gethostname(), process=os.getpid(), started="1")
    lock = path.with_name("samples.jsonl.lock")
    lock.write_bytes(msgspec.json.encode(old))
    Journal(path).close()
    assert not lock.exists()


@pytest.mark.usefixtures("no_flock")
def test_of_many_that_want_a_stale_lock_one_gets_it(path: Path) -> None:
    old = locks.Holder(host=socket.gethostname(), process=os.getpid(), started="1")
    path.with_name("samples.jsonl.lock").write_bytes(msgspec.json.encode(old))
    got: list[Journal] = []

    def take() -> None:
        try:
            got.append(Journal(path))
        except UsageError:
            return

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(got) == 1
    assert names(path) == ["samples.jsonl", "samples.jsonl.lock"]
    got[0].close()


def test_another_error_of_flock_is_a_sentence(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_handle: int, _how: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(MachineError, match="Input/output error"):
        Journal(path)


def request(out: Path) -> Request:
    return Request(
        plan="quick",
        overrides=Overrides(kernels=("prime",), sizes=(4,), repeat=2),
        where=Where(machine="henri"),
        out=str(out),
    )


def quiet(_sentence: str) -> None:
    """Nobody listens."""


def test_a_run_that_is_being_measured_is_not_touched_by_resume(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _ = campaign.start(request(tmp_path / "r"), quiet)
    before = (folder.path / "manifest.json").read_bytes()
    lines = folder.journal_path.read_bytes().splitlines(keepends=True)
    folder.journal_path.write_bytes(b"".join(lines[:-1]))
    opened: list[object] = []
    monkeypatch.setattr(campaign.Loop, "program_for", lambda *words: opened.append(words))
    monkeypatch.setattr(campaign, "choose", lambda *words: opened.append(words))
    journal = folder.journal()
    with pytest.raises(UsageError, match=REFUSED):
        campaign.resume(folder.path, quiet)
    journal.close()
    assert opened == []
    assert (folder.path / "manifest.json").read_bytes() == before


def test_the_lock_is_kept_until_the_run_is_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[str] = []
    seal = campaign.seal

    def look(path: Path, *words: object, **options: object) -> None:
        with pytest.raises(UsageError, match=REFUSED) as caught:
            RunFolder.open(path.parent).journal()
        refused.append(caught.value.sentence())
        seal(path, *words, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(campaign, "seal", look)
    campaign.start(request(tmp_path / "r"), quiet)
    assert len(refused) == 1


def test_what_a_kill_while_sealing_left_is_gone_at_the_next_start(tmp_path: Path) -> None:
    folder, _ = campaign.start(request(tmp_path / "r"), quiet)
    for name in (".samples.parquet.abc", ".manifest.json.x", ".samples.jsonl", ".report.html.x"):
        (folder.path / f"{name}.tmp").write_bytes(b"half")
    (folder.path / ".mine.tmp").write_bytes(b"of a person")
    campaign.resume(folder.path, quiet)
    assert [path.name for path in folder.path.glob(".*")] == [".mine.tmp"]


@pytest.mark.parametrize("moment", ["seal", "evaluate"])
def test_an_interrupt_while_sealing_names_the_run_and_how_to_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def interrupt(*_words: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(campaign, moment, interrupt)
    out = tmp_path / "a run"
    with pytest.raises(signals.Stopped, match=r"--resume '.*a run'") as caught:
        campaign.start(request(out), quiet)
    assert caught.value.value == str(out)
    monkeypatch.undo()
    _, results = campaign.resume(out, quiet)
    assert results.points


def test_an_interrupt_while_the_report_is_written_names_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_words: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(api.Run, "report", interrupt)
    overrides = Overrides(kernels=("prime",), sizes=(4,), repeat=2)
    with pytest.raises(signals.Stopped, match=r"continue with: elbowroom report .*/r"):
        api.run("quick", overrides=overrides, machine="henri", out=tmp_path / "r", tell=quiet)


def test_the_first_error_is_shown_when_the_end_of_a_part_fails_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_words: object) -> None:
        raise MachineError("the first error")

    def second(*_words: object, **_options: object) -> None:
        raise UsageError("the second error")

    monkeypatch.setattr(Journal, "append", full)
    monkeypatch.setattr(RunFolder, "update", second)
    with pytest.raises(MachineError, match="the first error"):
        campaign.start(request(tmp_path / "r"), quiet)


def program(tmp_path: Path, text: str) -> dict[str, str]:
    (tmp_path / "program.py").write_text(text)
    return {"command": f"{sys.executable} -S -E {tmp_path / 'program.py'} {{cores}}"}


@pytest.fixture
def timed(tmp_path: Path) -> Callable[..., object]:
    """Times a program that ends at once, in two repetitions, into a folder."""
    job = {
        "step": {"comp_bytes": "40GB", "comm_bytes": "4GB"},
        "now": {"cores": 18, "comp_node": 0, "comm_node": 0},
        "may": {"cores": [6, 18]},
        "verify": program(tmp_path, "pass"),
    }
    advice = api.advise("henri", job)

    def time(**options: object) -> object:
        return api.verify_advice(advice, "henri", repetitions=2, tell=quiet, **options)  # type: ignore[arg-type]

    return time


def test_two_checks_do_not_time_into_one_folder(
    timed: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed(run=tmp_path / "t")
    journal = tmp_path / "t" / "times.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(whole.splitlines(keepends=True)[0])
    handle = os.open(journal, os.O_RDWR)
    fcntl.flock(handle, fcntl.LOCK_EX)
    with pytest.raises(UsageError, match=REFUSED):
        timed(resume=tmp_path / "t")
    os.close(handle)
    timed(resume=tmp_path / "t")
    assert len(journal.read_bytes().splitlines()) == len(whole.splitlines()) == 4


def test_each_time_is_on_the_disk_before_the_next_run(
    timed: Callable[..., object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    sync = os.fsync

    def count(handle: int) -> None:
        if os.readlink(f"/proc/self/fd/{handle}").endswith("times.jsonl"):
            synced.append(handle)
        sync(handle)

    monkeypatch.setattr(os, "fsync", count)
    timed(run=tmp_path / "t")
    assert len(synced) == 4


def test_a_time_that_is_there_twice_is_damage(timed: Callable[..., object], tmp_path: Path) -> None:
    timed(run=tmp_path / "t")
    journal = tmp_path / "t" / "times.jsonl"
    journal.write_bytes(journal.read_bytes() + journal.read_bytes().splitlines(keepends=True)[0])
    with pytest.raises(UsageError, match=r"line 5 is damaged .*run . of the .* configuration appears twice"):
        timed(resume=tmp_path / "t")
