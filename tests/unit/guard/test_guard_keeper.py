"""Everything that a guard changed is as before, whoever is killed and when."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from elbowroom.errors import MachineError
from elbowroom.guard.keeper import ChangeJournal, SystemChange, keeping, restore_left_over, started

GUARD = """
    import os, sys, time
    from pathlib import Path
    from elbowroom.guard.keeper import keeping
    folder = Path(sys.argv[1])
    with keeping("test", folder) as keeper:
        print(keeper.pid, flush=True)
        for number in range(10**6):
            keeper.write(folder / f"setting-{number % 3}", f"changed {number}")
            keeper.schedule(int(sys.argv[2]), os.SCHED_IDLE if number % 2 else os.SCHED_BATCH)
"""


@pytest.fixture
def neighbour() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "600"])
    # Tests may run at another policy, which it inherits.
    os.sched_setscheduler(process.pid, os.SCHED_OTHER, os.sched_param(0))
    yield process
    process.kill()
    process.wait()


def settings(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(folder.glob("setting-*"))}


def prepare(folder: Path) -> dict[str, str]:
    for number in range(3):
        (folder / f"setting-{number}").write_text(f"before {number}")
    return settings(folder)


def start_guard(folder: Path, neighbour: subprocess.Popen[bytes]) -> tuple[subprocess.Popen[str], int]:
    words = [sys.executable, "-c", textwrap.dedent(GUARD), str(folder), str(neighbour.pid)]
    guard = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert guard.stdout is not None
    with guard.stdout:
        return guard, int(guard.stdout.readline())


def wait_until_gone(process: int) -> None:
    deadline = time.monotonic() + 60
    while started(process) and time.monotonic() < deadline:
        time.sleep(0.01)


def test_at_the_end_everything_is_as_before(tmp_path: Path, neighbour: subprocess.Popen[bytes]) -> None:
    before = prepare(tmp_path)
    cores = os.sched_getaffinity(neighbour.pid)
    with keeping("test", tmp_path) as keeper:
        keeper.write(tmp_path / "setting-1", "new")
        keeper.write(tmp_path / "setting-1", "newer")
        keeper.move(neighbour.pid, [min(cores)])
        keeper.schedule(neighbour.pid, os.SCHED_IDLE)
        assert settings(tmp_path)["setting-1"] == "newer"
        assert os.sched_getscheduler(neighbour.pid) == os.SCHED_IDLE
        assert os.sched_getaffinity(neighbour.pid) == {min(cores)}
    assert settings(tmp_path) == before
    assert os.sched_getscheduler(neighbour.pid) == os.SCHED_OTHER
    assert os.sched_getaffinity(neighbour.pid) == cores
    assert not list(tmp_path.glob("*.changes"))


@pytest.mark.parametrize("seed", range(4))
def test_a_guard_that_is_killed_at_any_moment_leaves_nothing_changed(
    seed: int, tmp_path: Path, neighbour: subprocess.Popen[bytes]
) -> None:
    before = prepare(tmp_path)
    guard, keeper = start_guard(tmp_path, neighbour)
    time.sleep(random.Random(seed).uniform(0, 0.1))
    guard.kill()
    guard.wait()
    wait_until_gone(keeper)
    assert settings(tmp_path) == before
    assert os.sched_getscheduler(neighbour.pid) == os.SCHED_OTHER


def test_where_the_keeper_is_killed_too_the_next_one_restores(
    tmp_path: Path, neighbour: subprocess.Popen[bytes]
) -> None:
    before = prepare(tmp_path)
    guard, keeper = start_guard(tmp_path, neighbour)
    time.sleep(0.05)
    os.kill(keeper, signal.SIGKILL)
    guard.kill()
    guard.wait()
    wait_until_gone(keeper)
    assert restore_left_over(tmp_path) == ()
    assert settings(tmp_path) == before
    assert os.sched_getscheduler(neighbour.pid) == os.SCHED_OTHER


def test_the_changes_of_a_guard_that_runs_are_left_to_it(tmp_path: Path) -> None:
    prepare(tmp_path)
    with keeping("test", tmp_path) as keeper:
        keeper.write(tmp_path / "setting-0", "new")
        assert restore_left_over(tmp_path) == ()
        assert settings(tmp_path)["setting-0"] == "new"


def test_a_signal_does_not_end_the_keeper(tmp_path: Path, neighbour: subprocess.Popen[bytes]) -> None:
    with keeping("test", tmp_path) as keeper:
        keeper.schedule(neighbour.pid, os.SCHED_IDLE)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(keeper.pid, number)
        time.sleep(0.1)
        assert started(keeper.pid)


def test_a_process_that_has_the_number_of_another_one_is_left_alone(
    tmp_path: Path, neighbour: subprocess.Popen[bytes]
) -> None:
    journal = ChangeJournal(tmp_path / "elbow-guard-x.changes")
    other = SystemChange(kind="policy", where=str(neighbour.pid), before=f"{os.SCHED_IDLE} 0", started="1")
    journal.add(other)
    assert journal.restore() == ()
    assert os.sched_getscheduler(neighbour.pid) == os.SCHED_OTHER


def test_a_line_that_was_cut_short_is_of_no_change(tmp_path: Path) -> None:
    journal = ChangeJournal(tmp_path / "elbow-guard-x.changes")
    journal.add(SystemChange(kind="file", where=str(tmp_path / "setting"), before="old"))
    with journal.path.open("ab") as file:
        file.write(b'{"kind":"file","wh')
    (tmp_path / "setting").write_text("new")
    assert len(journal.changes()) == 1
    journal.restore()
    assert (tmp_path / "setting").read_text() == "old"


def test_what_cannot_be_changed_is_an_error_with_its_name(tmp_path: Path) -> None:
    with keeping("test", tmp_path) as keeper:
        with pytest.raises(MachineError, match="none"):
            keeper.write(tmp_path / "none", "1")
        gone = subprocess.Popen(["true"])
        gone.wait()
        with pytest.raises(MachineError, match="No such process"):
            keeper.schedule(gone.pid, os.SCHED_IDLE)
