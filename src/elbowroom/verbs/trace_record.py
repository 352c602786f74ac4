"""`elbowroom trace record`: runs a program with the recorder preloaded (docs/guide/trace.md)."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import msgspec

from elbowroom import display
from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_all, print_wrapped
from elbowroom.cli.tables import new_table, print_table
from elbowroom.errors import UsageError
from elbowroom.files import make_folder
from elbowroom.launch import build, recorder, trace_reader
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.launch.recorder import ADAPTERS, CLOCKS, POLICIES, Adapter, Policy, RecordedCommand, TraceClock
from elbowroom.quantities import number, parse_size, parse_time, plural, rounded_size
from elbowroom.trace.documents import Stat, TraceCheck
from elbowroom.verbs.declaration import Verb, command_argument, dry_run_option, function_of, option
from elbowroom.verbs.run_options import split_list
from elbowroom.verbs.trace_tables import print_sentences, span_text, time_text

SYNC_SECONDS = 10.0
"""Between comparisons of clocks at barriers, by default: some 0.2 us of drift."""

_SLOT_BYTES = 32
_NAME = r"[\w.+-]+"


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

    def __repr__(self) -> str:
        return f"RecordDocument({self.directory!r}, exit_code={self.exit_code})"

    __str__, _repr_html_ = display.text, display.html

    @property
    def capacity(self) -> int:
        """Events that a thread's ring holds (a power of two)."""
        return 1 << ((self.buffer // _SLOT_BYTES).bit_length() - 1)


class RecordTrace(Verb):
    """Run CMD and record a trace: `elbowroom trace record -- mpirun -n 4 ./app`.

    The exit code is that of CMD. MPI, StarPU and OpenMP are traced without recompiling the program.
    """

    name = "trace record"
    has_tables = True

    command: Sequence[str] = command_argument()
    out: Path | str = option(
        "Directory of the trace.", "DIR", spelled="-o --out", default="trace", positional=True
    )
    categories: Sequence[str] | None = option(
        "Categories to record: mpi,message,task; default: all but poll.", "C,C", parse=split_list
    )
    without: Sequence[str] = option(
        "Types of events to leave out, as `trace stat` names them.", "T,T", parse=split_list
    )
    buffer: int | str | None = option(
        "Size of each thread's buffer (32 B per event); default: 1 to 32 MiB, as memory allows.", "SIZE"
    )
    policy: Policy = option(
        "What to do when a buffer is full: stop, overwrite, drain, grow or flush.", "NAME", default="stop"
    )
    core: int | None = option(
        "Core of the thread that drains the buffers.", spelled="--drain-core", formerly="--core"
    )
    sync_seconds: float | None = option(
        "Compare the clocks again at a barrier after this time; 0: only at start and end; default: 10s.",
        "TIME",
        spelled="--sync",
        parse=parse_time,
    )
    clock: TraceClock = option(
        "best, or monotonic: CLOCK_MONOTONIC, compared once, as a reference.", "NAME", default="best"
    )
    adapters: Sequence[Adapter] | None = option(
        "Adapters to load: mpi,starpu,omp; default: those that the program needs.", "A,A", parse=split_list
    )
    mpi: str | None = option("MPI of the program; default: that of its launcher.", "PREFIX")
    dry_run: bool = dry_run_option()
    stdout: IO[bytes] | int | None = None

    def do(self) -> RecordDocument:
        """Runs `command` with the recorder preloaded, and reads what it recorded.

        `categories` (default: all), types of events `without` which it records, `buffer` bytes of events for
        each thread (default: what memory allows, 1 to 32 MiB), `policy` where that is full; `core` is the
        draining thread's; clocks are compared every `sync_seconds` (default: 10); `clock` `monotonic` stamps
        events with CLOCK_MONOTONIC and compares clocks once, at the begin; `adapters` by default those that
        fit; `mpi` where the command's cannot be told. Where no process recorded anything there are no jobs,
        and a note says why that may be. UsageError for what cannot be asked, MachineError where the command
        cannot be started.
        """
        where = Path(self.out)
        settings = self._settings()
        prepared = self._prepared(settings)
        make_folder(where, field="directory", hint="name another")
        begin = time.monotonic()
        code = recorder.run(prepared, self.stdout)
        seconds = time.monotonic() - begin
        jobs = tuple(_job(folder) for folder in trace_reader.settle(where))
        stats = [job.stat for job in jobs]
        notes = [
            *prepared.notes,
            *_unknown(settings.categories, stats),
            *_unknown_types(self.without, stats),
        ]
        if not jobs:
            notes.append(_nothing(where, tried=trace_reader.started(where)))
        only = jobs[0] if len(jobs) == 1 else None
        return RecordDocument(
            directory=str(where),
            exit_code=code,
            seconds=seconds,
            adapters=prepared.adapters,
            mpi=None if prepared.mpi is None else prepared.mpi.name,
            buffer=settings.bytes,
            notes=tuple(notes),
            check=None if only is None else only.check,
            stat=None if only is None else only.stat,
            jobs=jobs,
        )

    def planned_starts(self) -> Iterator[PlannedStart]:
        prepared = self._prepared(self._settings())
        yield PlannedStart(what="the program, with the recorder", commands=(prepared.line(),))

    def _settings(self) -> recorder.RecorderSettings:
        if trace_reader.started(Path(self.out)):
            raise UsageError(
                "already holds a trace",
                field="directory",
                value=str(self.out),
                hint="name another, or remove it",
            )
        return recorder.RecorderSettings(
            directory=str(self.out),
            job=secrets.randbits(63) + 1,
            categories=None if self.categories is None else _names(self.categories),
            without=_types(self.without),
            bytes=recorder.default_bytes() if self.buffer is None else parse_size(self.buffer, "buffer"),
            policy=_policy(self.policy, self.core),
            core=self.core,
            sync_seconds=_seconds(self.sync_seconds, self.clock),
            clock=self.clock,
        )

    def _prepared(self, settings: recorder.RecorderSettings) -> RecordedCommand:
        """The command, with everything built that it and the reading of its trace need."""
        if settings.core is not None:
            recorder.check_core(self.command, settings.core)
        prepared = recorder.prepare(self.command, settings, adapters=_adapters(self.adapters), mpi=self.mpi)
        build.trace_reader()  # before the program runs, which may take long
        return prepared

    def print(self, result: RecordDocument) -> None:
        """The jobs, with their ranks and categories."""
        _print(result)

    def answer(self, result: RecordDocument) -> Answer:
        """How much was recorded, and what that took."""
        failed = f" The program ended with exit code {result.exit_code}." if result.exit_code else ""
        if not result.jobs:
            where = command_line("help", "trace")
            return Answer(f"Nothing was recorded.{failed}", " ".join(result.notes[:1]), where, "yellow")
        job = result.jobs[0]
        check = job.check
        most = max((rank.overhead_ns or 0.0 for rank in job.stat.ranks), default=0.0)
        lost = f"{check.lost} were lost" if check.lost else "none was lost"
        doubts = f" Its times cannot be trusted: {'; '.join(check.doubts)}." if check.doubts else ""
        return Answer(
            f"{plural(check.events, 'event')} of {plural(check.ranks, 'rank')} were recorded in "
            f"{number(result.seconds, 3)} s; {lost}.{failed}",
            f"Recording took {time_text(most)} of a rank at most.{doubts}",
            command_line("trace", "overlap", job.directory),
            "yellow" if check.doubts or result.exit_code else "",
        )

    def stdout_is_taken(self, as_json: bool) -> bool:
        """By the program, whose output goes to stderr beside a document."""
        return not as_json

    def exit_code(self, result: RecordDocument) -> int:
        return result.exit_code


record_trace = function_of(RecordTrace, "record_trace")


def _job(folder: Path) -> JobDocument:
    with ThreadPoolExecutor(1) as other:  # each is a process of its own
        checked = other.submit(trace_reader.read_check, folder)
        stat = trace_reader.read_stat(folder, trace_reader.BINS)
        return JobDocument(
            directory=str(folder),
            command=trace_reader.command_of(folder),
            check=checked.result().check,
            stat=stat,
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
            "is the draining thread's",
            field="drain_core",
            value=core,
            hint="leave it out, or give --policy drain",
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


def _print(done: RecordDocument) -> None:
    """What each rank kept and lost, how full its rings were, and what recording took."""
    preloaded = ", ".join(done.adapters) if done.adapters else "nothing"
    mpi = f" ({done.mpi})" if done.mpi is not None else ""
    print_wrapped(f"{done.directory}: {number(done.seconds, 3)} s; preloaded: {preloaded}{mpi}", style="bold")
    for job in done.jobs:
        print()
        if len(done.jobs) > 1:
            print_wrapped(" ".join((str(job.directory), job.command)).strip(), style="bold")
        _print_ranks(job.stat, done.capacity)
        _print_categories(job.stat)
        print_sentences(job.check.warnings)
    print_all(done.notes, style="yellow")


def _print_ranks(stat: Stat, capacity: int) -> None:
    table = new_table(
        ">rank",
        "host",
        ">threads",
        ">kept",
        ">lost",
        ">fullest\nring",
        ">advised\n--buffer",
        ">recording\ntook",
    )
    for rank in stat.ranks:
        threads = [one for one in stat.threads if one.rank == rank.rank]
        fullest = max((one.recorded for one in threads), default=0) / capacity
        table.add_row(
            str(rank.rank),
            rank.host,
            str(len(threads)),
            str(sum(one.kept for one in threads)),
            str(sum(one.lost for one in threads)),
            f"{fullest:.0%}",
            "n/a" if rank.advised_bytes is None else rounded_size(rank.advised_bytes),
            time_text(rank.overhead_ns),
        )
    print_table(table)
    lost = sum(one.lost for one in stat.threads)
    if lost:
        most = max(rank.advised_bytes or 0 for rank in stat.ranks)
        bigger = f"with --buffer {rounded_size(most).replace(' ', '')}" if most else "with a bigger --buffer"
        print_wrapped(
            f"{lost} events were lost because rings were full: record {bigger}, or with --policy drain.",
            style="bold yellow",
        )
        _print_dominant(stat)


def _print_dominant(stat: Stat) -> None:
    """The type that is most of what was kept, whose category is the first to leave out (thesis, 3.3.2)."""
    kept = sum(one.events for one in stat.types)
    most = max(stat.types, key=lambda one: one.events, default=None)
    if most is None or 2 * most.events <= kept:
        return
    others = sorted({one.category for one in stat.types if one.events} - {most.category, "trace", "clock"})
    hint = f": leave it out, --categories {','.join(others)}" if others else ""
    print_wrapped(
        f"{most.events / kept:.0%} of what was kept is {most.name}, of category {most.category}{hint}.",
        style="bold yellow",
    )


def _print_categories(stat: Stat) -> None:
    """What recording took, of all ranks together: estimated, events times what one took at the start."""
    print()
    table = new_table("category", ">events", ">recording took", ">of a rank's time")
    for name, events, nanoseconds, share in _by_category(stat):
        table.add_row(name, str(events), time_text(nanoseconds), _share(share))
    print_table(table)
    event = [rank.event_ns for rank in stat.ranks if rank.event_ns is not None]
    if event:
        print_wrapped(f"Estimated, with what one event took at the start: {span_text(event)} ns.")


def _share(share: float | None) -> str:
    if share is None:
        return "n/a"
    return "< 0.01%" if 0 < share < 1e-4 else f"{share:.2%}"


def _by_category(stat: Stat) -> list[tuple[str, int, float | None, float | None]]:
    """Each category's events, the ns that recording them took in ranks that tell it (None: none does), and
    the share that is of the time of the rank it takes most of; the costliest first.
    """
    names = dict.fromkeys(one.name for rank in stat.ranks for one in rank.by_category if one.events)
    rows: list[tuple[str, int, float | None, float | None]] = []
    for name in names:
        members = [one for rank in stat.ranks for one in rank.by_category if one.name == name]
        costs = [one.overhead_ns for one in members if one.overhead_ns is not None]
        share = max(costs) / stat.duration_ns if costs and stat.duration_ns else None
        rows.append((name, sum(one.events for one in members), sum(costs) if costs else None, share))
    return sorted(rows, key=lambda row: -(row[2] or 0.0))
