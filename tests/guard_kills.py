"""Guards that are killed at random moments while levers change what is outside of them."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import msgspec

from elbowroom.guard import keeper
from elbowroom.guard.keeper import ChangeJournal, Keeper
from elbowroom.guard.lever import GuardedProgram, LeverAccess
from elbowroom.guard.levers.corun import Corun
from elbowroom.guard.levers.resctrl import SHARES, Resctrl
from elbowroom.guard.neighbours import NEIGHBOURS, NeighbourLever
from fake_resctrl import FakeResctrl, Limiter

Victims = Literal["guard", "guard and keeper", "keeper"]
"""Who is killed; a guard that is left alone ends by itself."""
LONGEST = 0.02
"""Seconds after which the kill comes at the latest."""


class World(msgspec.Struct, frozen=True, kw_only=True):
    """What is outside of a guard: a neighbour, in a control group of its own and in a group of resctrl;
    `rank` is another process, whose cores the neighbour has to leave.
    """

    folder: Path
    neighbour: int
    rank: int

    def state(self) -> tuple[Any, ...]:
        """All that levers change."""
        return (
            (self.folder / "root/sys/fs/cgroup/batch/cpu.max").read_text(),
            (self.folder / "resctrl/batch/schemata").read_text(),
            os.sched_getscheduler(self.neighbour),
            os.sched_getaffinity(self.neighbour),
        )

    def access(self, own_keeper: Keeper) -> LeverAccess:
        """For levers of this world."""
        program = GuardedProgram(words=("app",), libraries={}, env={NEIGHBOURS: str(self.neighbour)})
        board = SimpleNamespace(ranks=lambda: ())
        return LeverAccess(program=program, board=board, keeper=own_keeper, processes=(self.rank,))  # type: ignore[arg-type]


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """A world in a folder."""
    processes = [subprocess.Popen(["sleep", "3600"]) for _ in range(2)]
    try:
        neighbour, rank = (process.pid for process in processes)
        os.sched_setscheduler(neighbour, os.SCHED_BATCH, os.sched_param(0))
        os.sched_setaffinity(rank, [min(os.sched_getaffinity(0))])
        group = folder / "root/sys/fs/cgroup/batch"
        group.mkdir(parents=True)
        (group / "cgroup.procs").write_text(f"{neighbour}\n")
        (group / "cpu.max").write_text("max 100000\n")
        (folder / "root/proc" / str(neighbour)).mkdir(parents=True)
        (folder / "root/proc" / str(neighbour) / "cgroup").write_text("0::/batch\n")
        yield World(folder=folder, neighbour=neighbour, rank=rank)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def levers_of(one: World) -> list[tuple[NeighbourLever, str]]:
    """Levers of it with each of their settings; resctrl is calibrated on a fake whose limits hold."""
    limiter = Limiter(behaviour="exact", wanted=1e10, peak=1e10)
    fake = FakeResctrl(one.folder / "resctrl", limiter, [one.neighbour])
    resctrl, corun = Resctrl(fake.mount, fake.sleep, fake.clock), Corun(one.folder / "root")
    with keeper.keeping("calibration", one.folder) as own:
        for setting in SHARES:
            assert resctrl.calibrate(setting, one.access(own)).works
    corun_settings = ["idle", "quota", *(["away"] if len(os.sched_getaffinity(0)) > 1 else [])]
    return [*((resctrl, setting) for setting in SHARES), *((corun, setting) for setting in corun_settings)]


def is_restored_after_a_kill(
    one: World, levers: list[tuple[NeighbourLever, str]], rng: random.Random, victims: Victims
) -> bool:
    """Kills a guard that acts with all levers, each at any moment; whether everything is as before, and
    the next guard finds nothing left, after it restored what the keeper could not.
    """
    before = one.state()
    journal = ChangeJournal(one.folder / "elbow-guard-kill.changes")
    reading, writing = os.pipe()
    own = _fork(lambda: _keep(journal, reading, writing))
    os.set_inheritable(writing, False)
    guard = _fork(lambda: _act(one, levers, journal, rng.random(), forever=victims != "keeper"))
    os.close(reading)
    os.close(writing)
    time.sleep(rng.uniform(0, LONGEST))
    if victims != "guard":
        os.kill(own, signal.SIGKILL)
    if victims != "keeper":
        os.kill(guard, signal.SIGKILL)
    os.waitpid(guard, 0)
    os.waitpid(own, 0)
    failed = keeper.restore_left_over(one.folder) if victims == "guard and keeper" else ()
    return not failed and not list(one.folder.glob("*.changes")) and one.state() == before


def _fork(work: Any) -> int:
    """A child that does `work` and nothing else, also where that fails."""
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            print(f"{error!r}", file=sys.stderr, flush=True)
            os._exit(1)
        os._exit(0)
    return child


def _keep(journal: ChangeJournal, reading: int, writing: int) -> None:
    os.setsid()
    os.close(writing)
    os.dup2(reading, 0)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    keeper.main([str(journal.path)])


def _act(
    one: World, levers: list[tuple[NeighbourLever, str]], journal: ChangeJournal, seed: float, forever: bool
) -> None:
    access = one.access(Keeper(journal, None))  # type: ignore[arg-type]
    rng = random.Random(seed)
    until = time.monotonic() + LONGEST
    while forever or time.monotonic() < until:
        lever, setting = rng.choice(levers)
        lever.act(setting, True, access)
        if rng.random() < 0.7:
            lever.act(setting, False, access)
    journal.restore()
