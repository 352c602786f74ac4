"""Runs a program with and without a recorder: what recording and flushes cost (docs/guide/trace-cost.md)."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from elbowroom.errors import MachineError, UsageError
from elbowroom.launch import trace_reader
from elbowroom.launch.processes import run_program
from elbowroom.launch.recorder import DEFAULT_BYTES, RecorderSettings, default_bytes, prepare
from elbowroom.measure.timed_commands import Outcome, Turn, last_number, printed, run_in_turns
from elbowroom.progress import Progress
from elbowroom.trace.activity import read_events
from elbowroom.trace.columns import TraceColumns
from elbowroom.trace.flushes import FLUSH, PLAIN, RecordedRun, find_flushes
from elbowroom.trace.overhead import LEAST, NONE, TimedRun

if TYPE_CHECKING:
    from elbowroom.launch.recorder import Adapter, RecordedCommand
    from elbowroom.trace.overhead import Set

WALL = "wall"
THREADS = "{threads}"
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "STARPU_NCPU")
_SLOT_BYTES = 32


class RecordedProgram:
    """A program to run many times, recorded into `directory`, and the number by which its runs are compared:
    the wall time, or what `metric` finds in what it prints.
    """

    def __init__(
        self,
        words: Sequence[str],
        directory: Path,
        *,
        adapters: Sequence[Adapter] | None = None,
        mpi: str | None = None,
        metric: str = WALL,
        buffer: int = DEFAULT_BYTES,
    ) -> None:
        self.words, self.directory, self.metric, self.buffer = list(words), directory, metric, buffer
        self.adapters, self.mpi = adapters, mpi

    def timed(self, prepared: RecordedCommand) -> tuple[float, float]:
        """The number of one run, and its seconds."""
        self.directory.mkdir(exist_ok=True)
        done = run_program(prepared.command, env=prepared.env, field="command")
        value = done.wall_s if self.metric == WALL else number_printed(self.metric, done.stdout)
        return value, done.wall_s

    def settings(self, **settings: object) -> RecorderSettings:
        """Of a recorder of its own job."""
        where = str(self.directory)
        return RecorderSettings(directory=where, job=secrets.randbits(63) + 1, bytes=self.buffer, **settings)  # type: ignore[arg-type]

    def recorded_nothing(self) -> MachineError:
        """What is said of a program whose first run left no event."""
        return MachineError(
            "recorded nothing: no process started the recorder, or none recorded an event",
            field="command",
            value=" ".join(self.words),
            hint="see `elbowroom trace record --help`",
        )


class CategoryRuns(RecordedProgram):
    """Runs with sets of categories; `categories` and `types` are those that the last traced run had events
    of, the most frequent ones first.
    """

    categories: tuple[str, ...] = ()
    types: tuple[str, ...] = ()

    def run(self, threads: int | None, one: Set, repetition: int) -> TimedRun:
        """One run of a set."""
        try:
            value, seconds = self.timed(self.recording(threads, one))
            ends = trace_reader.ends(self.directory) if one.name != NONE else []
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)
        by_category, by_type = Counter[str](), Counter[str]()
        for end in ends:
            by_category.update(end.by_category)
            by_type.update(end.by_type)
        if by_category:
            self.categories, self.types = (
                tuple(name for name, _ in counts.most_common()) for counts in (by_category, by_type)
            )
        return TimedRun(
            threads=threads,
            set=one.name,
            repetition=repetition,
            value=value,
            seconds=seconds,
            events=sum(end.recorded for end in ends),
            lost=sum(end.lost for end in ends),
            advised_bytes=max((end.advised_bytes for end in ends), default=0),
        )

    def recording(self, threads: int | None, one: Set) -> RecordedCommand:
        """The command of such a run."""
        words, variables = self.words, {}
        if threads is not None and any(THREADS in word for word in words):
            words = [word.replace(THREADS, str(threads)) for word in words]
        elif threads is not None:
            variables = dict.fromkeys(_THREAD_VARIABLES, str(threads))
        settings = None if one.name == NONE else self.settings(categories=one.categories, without=one.without)
        return prepare(words, settings, adapters=self.adapters, mpi=self.mpi, variables=variables)


class FlushRuns(RecordedProgram):
    """Runs with and without flushes; `fullest` events are in the buffer that has most, for which `buffer`
    bytes suffice.
    """

    fullest = 0

    def measure(self) -> RecordedRun:
        """The first run, after which buffers hold all events of a thread."""
        self.buffer = default_bytes()
        first = self.run(-1, None)
        if not self.fullest:
            raise self.recorded_nothing()
        self.buffer = max(2 << (self.fullest * _SLOT_BYTES).bit_length(), DEFAULT_BYTES)
        return first

    def run(self, repetition: int, share: float | None) -> RecordedRun:
        """One run; buffers are written after that share of the events of the fullest one (None: never)."""
        try:
            return self._read(repetition, share, *self.timed(self.recording(share)))
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def recording(self, share: float | None) -> RecordedCommand:
        """The command of such a run."""
        settings = self.settings(
            policy="stop" if share is None else "flush",
            flush_at=0 if share is None else max(round(share * self.fullest), 1),
        )
        return prepare(self.words, settings, adapters=self.adapters, mpi=self.mpi)

    def _read(self, repetition: int, share: float | None, value: float, seconds: float) -> RecordedRun:
        """What was recorded; of several jobs that of the first."""
        jobs = trace_reader.settle(self.directory)
        if not jobs:
            return RecordedRun(TimedRun(None, PLAIN, repetition, value, seconds), 0.0, ())
        threads = trace_reader.read_stat(jobs[0], 1).threads
        if share is None:
            self.fullest = max((thread.recorded for thread in threads), default=0)
        with trace_reader.columns(jobs[0]) as columns:
            activity, events = read_events(TraceColumns(columns.stream))
        timed = TimedRun(
            threads=None,
            set=PLAIN if share is None else FLUSH,
            repetition=repetition,
            value=value,
            seconds=seconds,
            events=sum(thread.recorded for thread in threads),
            lost=sum(thread.lost for thread in threads),
        )
        return RecordedRun(timed, activity.duration / 1e9, find_flushes(activity, events))


def record_in_turns(
    turns: Iterable[Turn], run: Callable[[Turn], Outcome], seconds: float, tell: Callable[[str], object]
) -> list[Outcome]:
    """What each turn gives; `seconds` of a turn, about."""
    listed = list(turns)
    with Progress(len(listed), seconds * len(listed), what="runs", tell=tell) as bar:
        return run_in_turns(listed, run, lambda _: bar.step())


def number_printed(metric: str, output: str) -> float:
    """The number that the expression finds last."""
    value = last_number(metric, output, flags=re.MULTILINE)
    if value is None:
        raise MachineError(
            f"finds no number in what the command printed: {printed(output)}",
            field="metric",
            value=metric,
            hint="for instance 'time: ([0-9.]+)', or wall",
        )
    return value


def check_runs(repeat: int, metric: str) -> None:
    """UsageError where there are too few repetitions, or the metric is no expression."""
    if repeat < LEAST:
        raise UsageError(
            "is too few to estimate the uncertainty", field="repeat", value=repeat, hint=f"at least {LEAST}"
        )
    try:
        re.compile(metric)
    except re.error as error:
        raise UsageError(
            f"is not an expression ({error})", field="metric", value=metric, hint="or wall"
        ) from error


def shared_place() -> str | None:
    """The folder for the traces of these runs: the working directory, which hosts share; None, for that of
    temporary files, where it is not writable.
    """
    return os.getcwd() if os.access(os.getcwd(), os.W_OK) else None
