"""Measures co-location: each application alone, on half of the cores, and beside each other one.

Of two that share, each is started again when it ends, until both have run once at least beside the other.
"""

from __future__ import annotations

import contextlib
import os
import random
import select
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

from elbowroom.documents import encode
from elbowroom.errors import MachineError, UsageError
from elbowroom.files import read_document, write_atomically
from elbowroom.heartbeat import Wait
from elbowroom.launch import processes
from elbowroom.launch.processes import check_ended, kill_all, run_program, start
from elbowroom.measure.colocation_commands import shared_environment
from elbowroom.measure.manifest import Tell
from elbowroom.measure.timed_commands import open_times, time_commands
from elbowroom.schedule.applications import Applications, Turn, turns
from elbowroom.schedule.measured import SharedTime
from elbowroom.signals import Stopped
from elbowroom.store.journal import Format

APPLICATIONS = "applications.json"

LONGEST_OFFSET = 1.0
"""s. The second of two applications starts up to this much later: repetitions meet at other places."""

_FIELD = "apps.command"


class _SharedTimes(Format[SharedTime, tuple[int, str, str, str]]):
    """A line for each measurement."""

    def key(self, line: SharedTime) -> tuple[int, str, str, str]:
        """As that of its turn."""
        return line.repetition, line.mode, line.application, line.companion or ""

    def name(self, line: SharedTime) -> str:
        """Which measurement."""
        beside = f" beside {line.companion}" if line.companion else ""
        return f"repetition {line.repetition} of {line.application}{beside} ({line.mode})"


_SHARED = _SharedTimes(SharedTime, header=False)


def measure_colocation(
    apps: Applications,
    out: Path,
    *,
    repetitions: int,
    seed: int,
    patience: float | None,
    tell: Tell,
    again: bool = False,
) -> list[SharedTime]:
    """Measures all turns into a new folder, or goes on with one that was begun (`again`). The lines of its
    journal. Stopped (an interrupt) keeps what was timed.
    """

    def write(folder: Path) -> None:
        write_atomically(folder / APPLICATIONS, encode(apps), own=True)

    def check(folder: Path) -> None:
        hint = "start anew: -o FOLDER"
        if read_document(folder / APPLICATIONS, field="resume", hint=hint) != encode(apps):
            raise UsageError("was started for other applications", field="resume", value=str(out), hint=hint)

    stopped = Stopped(
        "stopped; what was timed is kept", field="out", value=str(out), hint="continue with --resume"
    )
    with contextlib.closing(open_times(out, _SHARED, write, check if again else None)) as journal:
        lines = time_commands(
            turns(apps, repetitions, seed),
            lambda turn: _measured(apps, turn, seed, patience),
            journal,
            lambda turn: turn.key,
            tell=tell,
            stopped=stopped,
        )
    return [line for line in lines if line.repetition < repetitions]


def _measured(apps: Applications, turn: Turn, seed: int, patience: float | None) -> SharedTime:
    started = time.monotonic()
    first, second = _RunTimes(), _RunTimes()
    with shared_environment(apps, turn.mode, os.environ) as env:
        if turn.second is None:
            finished = run_program(apps.words(turn.first, turn.mode), patience, env=env, field=_FIELD)
            first = _RunTimes((apps.seconds(turn.first, finished.stdout, finished.wall_s),))
        else:
            offset = random.Random(f"{seed} {turn.key}").uniform(0, LONGEST_OFFSET)
            first, second = _share(apps, (turn.first, turn.second), env, offset, patience)
    return SharedTime(
        repetition=turn.repetition,
        mode=turn.mode,
        application=turn.first,
        companion=turn.second,
        first=first.seconds,
        second=second.seconds,
        first_beside=first.beside,
        second_beside=second.beside,
        wall_s=time.monotonic() - started,
    )


class _RunningJob(NamedTuple):
    """A job that is under way."""

    process: subprocess.Popen[bytes]
    output: IO[bytes]
    started: float


class _BusyTime(NamedTuple):
    """When a run did what its seconds count, on the monotonic clock."""

    begin: float
    end: float

    def beside(self, others: Sequence[_BusyTime]) -> float:
        """The share of it that these cover, which do not overlap each other."""
        covered = sum(max(0.0, min(self.end, one.end) - max(self.begin, one.begin)) for one in others)
        return min(1.0, covered / (self.end - self.begin))


class _RepeatedJob:
    """An application that shares its nodes, run again and again."""

    def __init__(self, apps: Applications, name: str, number: int, env: dict[str, str]) -> None:
        self.seconds: list[float] = []
        self.windows: list[_BusyTime] = []
        self._started = 0.0
        self._apps, self._name, self._env = apps, name, env
        self._words = apps.words(name, "shared", number)
        self._running: _RunningJob | None = None
        self._handle = -1

    def start(self) -> int:
        """Starts it; a handle that is readable once it has ended."""
        with contextlib.ExitStack() as stack:
            output = stack.enter_context(tempfile.TemporaryFile())
            process = start(
                self._words,
                field=_FIELD,
                hint="correct the path",
                error=UsageError,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._env,
            )
            stack.pop_all()
        self._running = _RunningJob(process, output, time.monotonic())
        self._handle = os.pidfd_open(process.pid)
        return self._handle

    def end(self) -> None:
        """It has ended: its time is known. MachineError where it failed."""
        assert self._running is not None
        process, output, started = self._running
        ended = time.monotonic()
        process.wait()
        output.seek(0)
        printed = output.read().decode(errors="replace")
        self.stop()
        check_ended(process.returncode, printed, self._words, _FIELD)
        seconds = self._apps.seconds(self._name, printed, ended - started)
        self.seconds.append(seconds)
        # What a launcher and MPI_Init take comes first.
        self.windows.append(_BusyTime(max(started, ended - seconds), ended))
        self._started = self.windows[-1].begin - started

    def unfinished(self) -> list[_BusyTime]:
        """The run that is under way, if it has started to count, as its last one did."""
        if self._running is None:
            return []
        begin, now = self._running.started + self._started, time.monotonic()
        return [_BusyTime(begin, now)] if begin < now else []

    def stop(self) -> None:
        """Ends it with all that it started."""
        if self._running is not None:
            kill_all(self._running.process)
            self._running.output.close()
            os.close(self._handle)
            self._running = None


class _RunTimes(NamedTuple):
    """Seconds of runs, and the share of each that was beside a run of the other application."""

    seconds: tuple[float, ...] = ()
    beside: tuple[float, ...] = ()


def _share(
    apps: Applications, names: tuple[str, str], env: dict[str, str], offset: float, patience: float | None
) -> tuple[_RunTimes, _RunTimes]:
    """The complete runs of both."""
    jobs = [_RepeatedJob(apps, name, number, env) for number, name in enumerate(names)]
    waiter = select.poll()
    by_handle = {}
    deadline = None if patience is None else time.monotonic() + patience
    try:
        for job, delay in zip(jobs, (0.0, offset), strict=True):
            time.sleep(delay)
            handle = job.start()
            by_handle[handle] = job
            waiter.register(handle, select.POLLIN)
        while not all(job.seconds for job in jobs):
            with Wait(f"running {' beside '.join(names)}"):
                ended = processes.poll(waiter, deadline)
            if not ended:
                raise MachineError(
                    f"did not end within {patience:g} s while they ran together",
                    field=_FIELD,
                    value=", ".join(names),
                    hint="raise the limit: --timeout",
                )
            for handle, _ in ended:
                job = by_handle.pop(handle)
                waiter.unregister(handle)
                job.end()
                if not all(job.seconds for job in jobs):
                    handle = job.start()
                    by_handle[handle] = job
                    waiter.register(handle, select.POLLIN)
        runs = [
            _RunTimes(
                tuple(job.seconds),
                tuple(window.beside([*other.windows, *other.unfinished()]) for window in job.windows),
            )
            for job, other in zip(jobs, reversed(jobs), strict=True)
        ]
    finally:
        for job in jobs:
            job.stop()
    return runs[0], runs[1]
