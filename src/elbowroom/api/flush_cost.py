"""What an application loses where the recorder flushes its buffers while it runs (docs/guide/trace.md)."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from elbowroom.api.recording_cost import (
    WALL,
    check_runs,
    number_printed,
    recorded_nothing,
    save_costs,
    shared_place,
)
from elbowroom.api.traces import trace_stat
from elbowroom.launch import build, trace_reader
from elbowroom.launch.processes import run_program
from elbowroom.launch.recorder import DEFAULT_BYTES, Settings, default_bytes, prepare
from elbowroom.measure.planned_starts import PlannedStart, PlannedStarts, plan_starts
from elbowroom.trace.activity import read_events
from elbowroom.trace.columns import TraceColumns
from elbowroom.trace.flushes import (
    FLUSH,
    PLAIN,
    RecordedRun,
    analyse_flushes,
    find_flushes,
    flush_order,
    flush_page,
)
from elbowroom.trace.flushes import FlushCosts as FlushCosts
from elbowroom.trace.flushes import flush_figures as flush_figures
from elbowroom.trace.flushes import flush_rows as flush_rows
from elbowroom.trace.flushes import flush_sentences as flush_sentences
from elbowroom.trace.overhead import TimedRun

if TYPE_CHECKING:
    from elbowroom.launch.recorder import Adapter, RecordedCommand

Step = Callable[[int, int, float], object]

_SLOT_BYTES = 32


def trace_flushes(
    command: Sequence[str],
    *,
    repeat: int = 10,
    metric: str = WALL,
    rate: bool = False,
    adapters: Sequence[Adapter] | None = None,
    mpi: str | None = None,
    seed: int = 0,
    step: Step | None = None,
) -> FlushCosts:
    """Runs `command` `repeat` times recorded without a flush and as often with flushes, in turns, and finds
    what each run loses and what its flushes interrupted (thesis, Figs. 3.2 and 3.3).

    `metric`: the wall time, or a regular expression of a number that the command prints; with `rate` more of
    it is better. The first run is not counted and shows how many events the fullest buffer needs. UsageError
    for what cannot be asked; MachineError where the command fails, prints no such number or records nothing.
    """
    words = list(command)
    check_runs(repeat, metric)
    with tempfile.TemporaryDirectory(prefix=".elbowroom-trace-", dir=shared_place()) as folder:
        bench = _Bench(words, Path(folder) / "trace", adapters, mpi, metric)
        first = bench.measure()
        turns = list(flush_order(repeat, seed))
        tell = step or (lambda *_: None)
        tell(0, len(turns), first.timed.seconds * len(turns))
        runs = []
        for done, (repetition, share) in enumerate(turns, start=1):
            runs.append(bench.run(repetition, share))
            tell(done, len(turns), first.timed.seconds * len(turns))
    return analyse_flushes(
        runs, command=words, metric=metric, rate=rate, repeat=repeat, seed=seed, buffer=bench.buffer
    )


def plan_flushes(
    command: Sequence[str],
    *,
    repeat: int = 10,
    metric: str = WALL,
    adapters: Sequence[Adapter] | None = None,
    mpi: str | None = None,
) -> PlannedStarts:
    """What `trace_flushes` would build and start; errors as there."""
    check_runs(repeat, metric)

    def find() -> Iterator[PlannedStart]:
        bench = _Bench(list(command), Path("TRACE"), adapters, mpi, metric)
        plain, flushed = (bench.recording(share).line() for share in (None, 0.5))
        build.trace_reader()
        yield PlannedStart(what="the program, recorded, not counted", commands=(plain,))
        yield PlannedStart(what="the program, recorded without a flush", commands=(plain,), times=repeat)
        yield PlannedStart(what="the program, recorded with flushes", commands=(flushed,), times=repeat)

    return plan_starts(find)


def save_flush_figure(costs: FlushCosts, file: str | Path) -> None:
    """The figures as .svg or .png, or with the table of flushes as one .html page."""
    save_costs(Path(file), flush_figures(costs), lambda: flush_page(costs), costs.command)


@dataclass
class _Bench:
    """Runs the command; `fullest` events are in the buffer that has most, for which `buffer` bytes do."""

    words: Sequence[str]
    directory: Path
    adapters: Sequence[Adapter] | None
    mpi: str | None
    metric: str
    buffer: int = DEFAULT_BYTES
    fullest: int = 0

    def measure(self) -> RecordedRun:
        """The first run, after which buffers hold all events of a thread."""
        self.buffer = default_bytes()
        first = self.run(-1, None)
        if not self.fullest:
            raise recorded_nothing(self.words)
        self.buffer = max(2 << (self.fullest * _SLOT_BYTES).bit_length(), DEFAULT_BYTES)
        return first

    def run(self, repetition: int, share: float | None) -> RecordedRun:
        """One run; buffers are written after that share of the events of the fullest one (None: never)."""
        self.directory.mkdir(exist_ok=True)
        prepared = self.recording(share)
        done = run_program(prepared.command, env=prepared.env, field="command")
        value = done.wall_s if self.metric == WALL else number_printed(self.metric, done.stdout)
        try:
            return self._read(repetition, share, value, done.wall_s)
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)

    def recording(self, share: float | None) -> RecordedCommand:
        """The command of such a run."""
        settings = Settings(
            directory=str(self.directory),
            job=secrets.randbits(63) + 1,
            bytes=self.buffer,
            policy="stop" if share is None else "flush",
            flush_at=0 if share is None else max(round(share * self.fullest), 1),
        )
        return prepare(self.words, settings, adapters=self.adapters, mpi=self.mpi)

    def _read(self, repetition: int, share: float | None, value: float, seconds: float) -> RecordedRun:
        """What was recorded; of several jobs that of the first."""
        jobs = trace_reader.settle(self.directory)
        if not jobs:
            return RecordedRun(TimedRun(None, PLAIN, repetition, value, seconds), 0.0, ())
        threads = trace_stat(jobs[0], 1).threads
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
