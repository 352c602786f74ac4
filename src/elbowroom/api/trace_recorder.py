"""Recording a trace (docs/guide/trace.md)."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import msgspec

from elbowroom.api.traces import check_trace, trace_stat
from elbowroom.errors import UsageError
from elbowroom.files import make_folder
from elbowroom.launch import build, recorder, trace_reader
from elbowroom.launch.recorder import ADAPTERS, CLOCKS, POLICIES
from elbowroom.measure.planned_starts import PlannedStart, PlannedStarts, plan_starts
from elbowroom.quantities import parse_size
from elbowroom.trace.documents import Stat, TraceCheck

if TYPE_CHECKING:
    from elbowroom.launch.recorder import Adapter, Policy, RecordedCommand, TraceClock


SYNC_SECONDS = 10.0
"""Between comparisons of clocks at barriers, by default: some 0.2 us of drift."""

_SLOT_BYTES = 32
_NAME = r"[\w.+-]+"


class RecordedJob(NamedTuple):
    """One of the jobs that a command started (the processes of an MPI_COMM_WORLD, or one process): where its
    trace is, its command, and what is in the trace.
    """

    directory: Path
    command: str
    stat: Stat
    check: TraceCheck


class JobDocument(msgspec.Struct, frozen=True, kw_only=True):
    """A job in what `trace record --json` prints."""

    directory: str
    command: str
    check: TraceCheck
    stat: Stat


class RecordDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `trace record --json` prints; `check` and `stat` are those of the only job, else None."""

    schema: str = "elbowroom/trace-record"
    version: int = 1
    directory: str
    exit_code: int
    seconds: float
    adapters: tuple[str, ...]
    mpi: str | None
    buffer: int
    notes: tuple[str, ...]
    check: TraceCheck | None
    stat: Stat | None
    jobs: tuple[JobDocument, ...]


class Recorded(NamedTuple):
    """A traced run: its exit code as of a shell, how long it took, what was preloaded for which MPI, the jobs
    that recorded something, and what else is to be said.
    """

    directory: Path
    exit_code: int
    seconds: float
    adapters: tuple[str, ...]
    mpi: str | None
    buffer: int
    jobs: tuple[RecordedJob, ...]
    notes: tuple[str, ...]

    @property
    def stat(self) -> Stat | None:
        """What is in the trace of the only job; None where there are several or none."""
        return self.jobs[0].stat if len(self.jobs) == 1 else None

    @property
    def check(self) -> TraceCheck | None:
        """The same: whether that trace is whole."""
        return self.jobs[0].check if len(self.jobs) == 1 else None

    @property
    def capacity(self) -> int:
        """Events that a thread's ring holds (a power of two)."""
        return 1 << ((self.buffer // _SLOT_BYTES).bit_length() - 1)

    def document(self) -> RecordDocument:
        """The same as one document."""
        return RecordDocument(
            directory=str(self.directory),
            exit_code=self.exit_code,
            seconds=self.seconds,
            adapters=self.adapters,
            mpi=self.mpi,
            buffer=self.buffer,
            notes=self.notes,
            check=self.check,
            stat=self.stat,
            jobs=tuple(
                JobDocument(directory=str(job.directory), command=job.command, check=job.check, stat=job.stat)
                for job in self.jobs
            ),
        )


def record_trace(
    command: Sequence[str],
    directory: str | Path = "trace",
    *,
    categories: Sequence[str] | None = None,
    without: Sequence[str] = (),
    buffer: int | str | None = None,
    policy: Policy = "stop",
    core: int | None = None,
    sync_seconds: float | None = None,
    clock: TraceClock = "best",
    adapters: Sequence[Adapter] | None = None,
    mpi: str | None = None,
    stdout: IO[bytes] | int | None = None,
) -> Recorded:
    """Runs `command` with the recorder preloaded, and reads what it recorded.

    `categories` (default: all), types of events `without` which it records, `buffer` bytes of events for each
    thread (default: what memory allows, 1 to 32 MiB), `policy` where that is full; `core` is the draining
    thread's; clocks are compared every `sync_seconds` (default: 10); `clock` `monotonic` stamps events with
    CLOCK_MONOTONIC and compares clocks once, at the begin; `adapters` by default those that fit; `mpi` where
    the command's cannot be told. Where no process recorded anything there are no jobs, and a note says why
    that may be. UsageError for what cannot be asked, MachineError where the command cannot be started.
    """
    where = Path(directory)
    settings = _settings(
        where,
        categories=categories,
        without=without,
        buffer=buffer,
        policy=policy,
        core=core,
        sync_seconds=sync_seconds,
        clock=clock,
    )
    prepared = _prepare(command, settings, adapters, mpi)
    make_folder(where, field="directory", hint="name another")
    begun = time.monotonic()
    code = recorder.run(prepared, stdout)
    seconds = time.monotonic() - begun
    jobs = tuple(_job(folder) for folder in trace_reader.settle(where))
    stats = [job.stat for job in jobs]
    notes = [*prepared.notes, *_unknown(settings.categories, stats), *_unknown_types(without, stats)]
    if not jobs:
        notes.append(_nothing(where, tried=trace_reader.started(where)))
    return Recorded(
        directory=where,
        exit_code=code,
        seconds=seconds,
        adapters=prepared.adapters,
        mpi=None if prepared.mpi is None else prepared.mpi.name,
        buffer=settings.bytes,
        jobs=jobs,
        notes=tuple(notes),
    )


def plan_trace(
    command: Sequence[str],
    directory: str | Path = "trace",
    *,
    adapters: Sequence[Adapter] | None = None,
    mpi: str | None = None,
    **options: Any,
) -> PlannedStarts:
    """What `record_trace` would build and start; its other `options` and errors as there."""

    def find() -> Iterator[PlannedStart]:
        prepared = _prepare(command, _settings(Path(directory), **options), adapters, mpi)
        yield PlannedStart(what="the program, with the recorder", commands=(prepared.line(),))

    return plan_starts(find)


def _settings(
    where: Path,
    *,
    categories: Sequence[str] | None = None,
    without: Sequence[str] = (),
    buffer: int | str | None = None,
    policy: Policy = "stop",
    core: int | None = None,
    sync_seconds: float | None = None,
    clock: TraceClock = "best",
) -> recorder.Settings:
    if trace_reader.started(where):
        raise UsageError(
            "already holds a trace", field="directory", value=str(where), hint="name another, or remove it"
        )
    return recorder.Settings(
        directory=str(where),
        job=secrets.randbits(63) + 1,
        categories=None if categories is None else _names(categories),
        without=_types(without),
        bytes=recorder.default_bytes() if buffer is None else parse_size(buffer, "buffer"),
        policy=_policy(policy, core),
        core=core,
        sync_seconds=_seconds(sync_seconds, clock),
        clock=clock,
    )


def _prepare(
    command: Sequence[str], settings: recorder.Settings, adapters: Sequence[Adapter] | None, mpi: str | None
) -> RecordedCommand:
    """The command, with everything built that it and the reading of its trace need."""
    if settings.core is not None:
        recorder.check_core(command, settings.core)
    prepared = recorder.prepare(command, settings, adapters=_adapters(adapters), mpi=mpi)
    build.trace_reader()  # before the program runs, which may take long
    return prepared


def _job(folder: Path) -> RecordedJob:
    with ThreadPoolExecutor(1) as beside:  # each is a process of its own
        checked = beside.submit(check_trace, folder)
        return RecordedJob(
            folder, trace_reader.command_of(folder), trace_stat(folder), checked.result().check
        )


def _names(categories: Sequence[str]) -> tuple[str, ...]:
    """Names of categories, which any program may have others of; those that nobody can have are refused."""
    if not categories:
        raise UsageError("names none", field="categories", hint="leave it out for all")
    for name in categories:
        if not re.fullmatch(_NAME, name):
            raise UsageError(
                "is not a name of a category",
                field="categories",
                value=name,
                hint="for instance mpi,message,task",
            )
    return tuple(dict.fromkeys(categories))


def _types(without: Sequence[str]) -> tuple[str, ...]:
    """Names of types of events, which may have blanks; a list of the environment parts them by commas."""
    for name in without:
        if not name.strip() or "," in name or not name.isprintable():
            raise UsageError(
                "is not a name of a type of events",
                field="without",
                value=name,
                hint="for instance submit,ready; `elbowroom trace stat` lists the types of a trace",
            )
    return tuple(dict.fromkeys(without))


def _unknown_types(without: Sequence[str], stats: Sequence[Stat]) -> list[str]:
    """What is to be said of types that no process has, and so were not left out."""
    there = {one.name for stat in stats for one in stat.types}
    absent = [name for name in without if stats and name not in there]
    return [f"No process has a type of events {' or '.join(map(repr, absent))}."] if absent else []


def _policy(policy: Policy, core: int | None) -> Policy:
    if policy not in POLICIES:
        raise UsageError(
            "no such policy", field="policy", value=policy, hint=f"one of: {', '.join(POLICIES)}"
        )
    if core is not None and policy != "drain":
        raise UsageError(
            "is the draining thread's", field="core", value=core, hint="leave it out, or give --policy drain"
        )
    return policy


def _adapters(adapters: Sequence[Adapter] | None) -> Sequence[Adapter] | None:
    for name in adapters or ():
        if name not in ADAPTERS:
            raise UsageError(
                "no such adapter", field="adapters", value=name, hint=f"some of: {', '.join(ADAPTERS)}"
            )
    return adapters


def _seconds(seconds: float | None, clock: TraceClock) -> float | None:
    """Seconds between comparisons of clocks; None: one comparison."""
    if clock not in CLOCKS:
        raise UsageError("no such clock", field="clock", value=clock, hint=f"one of: {', '.join(CLOCKS)}")
    if clock == "monotonic":
        if seconds is not None:
            raise UsageError(
                "clocks are compared once with --clock monotonic",
                field="sync",
                value=seconds,
                hint="leave one of the two out",
            )
        return None
    if seconds is None:
        return SYNC_SECONDS
    if not 0 <= seconds < float("inf"):
        raise UsageError(
            "is not a time", field="sync", value=seconds, hint="seconds, 0 for begin and end only"
        )
    return seconds


def _unknown(categories: Sequence[str] | None, stats: Sequence[Stat]) -> list[str]:
    """What is to be said of categories that no process has."""
    if not stats:
        return []
    there = sorted({one.category for stat in stats for one in stat.types})
    absent = [name for name in categories or () if name not in there]
    if not absent:
        return []
    has = f"there are {', '.join(there)}" if there else "there are none"
    return [f"No process has a category {' or '.join(map(repr, absent))}: {has}."]


def _nothing(directory: Path, *, tried: bool) -> str:
    """Why there may be no trace; where a process `tried` to record, it has printed the reason."""
    if tried:
        return f"No process recorded anything in {directory}; the reason is above."
    return (
        f"No process recorded anything in {directory}. Nothing is recorded of a program that calls neither "
        "MPI_Init or MPI_Comm_create_from_group nor a task runtime, whose libraries are linked "
        "statically into it, or that has or opens another MPI than its launcher's; on several hosts that "
        "folder must be the same on all (`elbowroom help trace`)."
    )
