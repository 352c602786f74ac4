"""Neighbours that yield while messages move (guard/levers/corun.py), on a fake board and a real process."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from elbowroom.guard.experiment import AS_IT_IS, PLACEBO
from elbowroom.guard.keeper import Keeper, keeping
from elbowroom.guard.lever import GuardedProgram, LeverAccess
from elbowroom.guard.levers.corun import Corun
from elbowroom.guard.neighbours import NEIGHBOURS

PATIENCE = 30


class FakeBoard:
    """So many bytes are in flight."""

    def __init__(self) -> None:
        self.out = 0

    def ranks(self) -> tuple[Any, ...]:
        return (SimpleNamespace(out=self.out),)


@pytest.fixture
def neighbour() -> Iterator[int]:
    process = subprocess.Popen(["sleep", "600"])
    try:
        os.sched_setscheduler(process.pid, os.SCHED_BATCH, os.sched_param(0))  # whatever the tests run with
    except PermissionError:
        pytest.skip("this user may not leave SCHED_IDLE")
    yield process.pid
    process.kill()
    process.wait()


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    with keeping("test", tmp_path) as one:
        yield one


def access_of(board: FakeBoard, keeper: Keeper, *neighbours: object) -> LeverAccess:
    program = GuardedProgram(words=("app",), libraries={}, env={NEIGHBOURS: ",".join(map(str, neighbours))})
    return LeverAccess(program=program, board=board, keeper=keeper, processes=())  # type: ignore[arg-type]


def becomes(process: int, policy: int) -> bool:
    until = time.monotonic() + PATIENCE
    while os.sched_getscheduler(process) != policy and time.monotonic() < until:
        time.sleep(0.001)
    return os.sched_getscheduler(process) == policy


def test_a_neighbour_is_idle_while_messages_move_and_only_then(neighbour: int, keeper: Keeper) -> None:
    lever, board = Corun(), FakeBoard()
    access = access_of(board, keeper, neighbour)
    lever.set("idle", access)
    for _ in range(2):
        board.out = 64 << 20
        assert becomes(neighbour, os.SCHED_IDLE)
        board.out = 0
        assert becomes(neighbour, os.SCHED_BATCH)
    board.out = 64 << 20
    assert becomes(neighbour, os.SCHED_IDLE)
    lever.set(AS_IT_IS, access)
    assert os.sched_getscheduler(neighbour) == os.SCHED_BATCH


def test_the_placebo_changes_nothing(neighbour: int, keeper: Keeper) -> None:
    lever, board = Corun(), FakeBoard()
    access = access_of(board, keeper, neighbour)
    board.out = 64 << 20
    lever.set(PLACEBO, access)
    time.sleep(0.05)
    assert os.sched_getscheduler(neighbour) == os.SCHED_BATCH
    lever.set(AS_IT_IS, access)


def test_what_is_asked_is_looked_at_and_undone(neighbour: int, keeper: Keeper) -> None:
    reading = Corun().calibrate("idle", access_of(FakeBoard(), keeper, neighbour))
    assert reading.works
    assert reading.got.startswith("idle in 1 threads after ")
    assert os.sched_getscheduler(neighbour) == os.SCHED_BATCH


def test_a_neighbour_that_has_ended_makes_the_lever_missing(keeper: Keeper) -> None:
    process = subprocess.Popen(["true"])
    process.wait()
    lever = Corun()
    access = access_of(FakeBoard(), keeper, process.pid)
    assert "No such process" in str(lever.missing(access.program))


@pytest.mark.parametrize(
    ("neighbours", "sentence"), [((), "no neighbour is named"), (("abc",), "is not the number")]
)
def test_without_neighbours_the_lever_is_missing(neighbours: tuple[str, ...], sentence: str) -> None:
    program = GuardedProgram(words=("app",), libraries={}, env={NEIGHBOURS: ",".join(neighbours)})
    assert sentence in str(Corun().missing(program))


def limited_tree(root: Path, process: int, *others: int) -> Path:
    """A root whose cgroup v2 has the processes in one group; its cpu.max."""
    group = root / "sys/fs/cgroup/batch"
    group.mkdir(parents=True)
    (group / "cgroup.procs").write_text("".join(f"{one}\n" for one in (process, *others)))
    (group / "cpu.max").write_text("max 100000\n")
    (root / "proc" / str(process)).mkdir(parents=True)
    (root / "proc" / str(process) / "cgroup").write_text("0::/batch\n")
    return group / "cpu.max"


def test_the_control_group_of_a_neighbour_is_limited_while_messages_move(
    neighbour: int, keeper: Keeper, tmp_path: Path
) -> None:
    limit = limited_tree(tmp_path / "root", neighbour)
    lever, access = Corun(tmp_path / "root"), access_of(FakeBoard(), keeper, neighbour)
    reading = lever.calibrate("quota", access)
    assert reading.works, reading
    assert limit.read_text() == "max 100000\n"
    lever.act("quota", True, access)
    quota, period = limit.read_text().split()
    assert int(quota) / int(period) == pytest.approx(0.2 * (os.cpu_count() or 1))
    lever.act("quota", False, access)
    assert limit.read_text() == "max 100000\n"


def test_a_quota_that_does_not_hold_is_not_used(
    neighbour: int, keeper: Keeper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = limited_tree(tmp_path / "root", neighbour)
    most = 0.2 * (os.cpu_count() or 1)
    monkeypatch.setattr("elbowroom.guard.levers.corun._cores_in_use", lambda access: most + 0.2)
    reading = Corun(tmp_path / "root").calibrate("quota", access_of(FakeBoard(), keeper, neighbour))
    assert not reading.works, reading
    assert limit.read_text() == "max 100000\n"


def test_a_control_group_with_other_processes_is_left_alone(
    neighbour: int, keeper: Keeper, tmp_path: Path
) -> None:
    limit = limited_tree(tmp_path / "root", neighbour, os.getpid())
    reading = Corun(tmp_path / "root").calibrate("quota", access_of(FakeBoard(), keeper, neighbour))
    assert not reading.works
    assert f"also has process {os.getpid()}" in reading.got
    assert limit.read_text() == "max 100000\n"


@pytest.mark.alone
def test_a_real_control_group_limits_a_neighbour_that_computes(keeper: Keeper) -> None:
    group = Path(f"/sys/fs/cgroup/cpu/elbowroom-test-{os.getpid()}")
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"control groups of version 1 cannot be made here: {error.strerror}")
    try:
        process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
        try:
            (group / "cgroup.procs").write_text(str(process.pid))
            reading = Corun().calibrate("quota", access_of(FakeBoard(), keeper, process.pid))
            assert reading.works, reading
            assert int((group / "cpu.cfs_quota_us").read_text()) == -1
        finally:
            process.kill()
            process.wait()
    finally:
        until = time.monotonic() + PATIENCE
        while group.exists() and time.monotonic() < until:
            with contextlib.suppress(OSError):  # the kernel still ends the process
                group.rmdir()
