"""What recording costs a program (docs/guide/trace.md)."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from elbowroom.draw.files import save_panels
from elbowroom.errors import MachineError, UsageError
from elbowroom.files import write_atomically
from elbowroom.launch import build, trace_reader
from elbowroom.launch.processes import run_program
from elbowroom.launch.recorder import Settings, prepare
from elbowroom.measure.planned_starts import PlannedStart, PlannedStarts, plan_starts
from elbowroom.quantities import parse_size
from elbowroom.trace import overhead
from elbowroom.trace.overhead import LEAST, NONE, TimedRun, page
from elbowroom.trace.overhead import Overhead as Overhead
from elbowroom.trace.overhead import overhead_figures as overhead_figures

if TYPE_CHECKING:
    from elbowroom.draw.figure import Figure
    from elbowroom.launch.recorder import Adapter, RecordedCommand
    from elbowroom.trace.overhead import Set


WALL = "wall"
SETS = {
    NONE: "without a recorder",
    overhead.OFF: "with a recorder that records nothing",
    overhead.ALL: "with all categories",
}
"""What the sets with names are."""
THREADS = "{threads}"
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "STARPU_NCPU")
_TAIL = 300

Step = Callable[[int, int, float], object]
"""Told before and after each run how many of how many are done, and how many seconds all take, about."""


def trace_overhead(
    command: Sequence[str],
    *,
    repeat: int = 10,
    categories: str | None = None,
    threads: Sequence[int] | None = None,
    metric: str = WALL,
    rate: bool = False,
    limit: float = 0.05,
    buffer: int | str = "4MiB",
    adapters: Sequence[Adapter] | None = None,
    mpi: str | None = None,
    seed: int = 0,
    step: Step | None = None,
) -> Overhead:
    """Runs `command` without a recorder and with it, in turns, and says whether its trace can be trusted.

    `categories`: sets of them, `mpi;mpi,task`; by default each that the program has by itself. `threads`:
    numbers of threads to compare, told by OMP_NUM_THREADS and STARPU_NCPU, or where `{threads}` stands in the
    command. `metric`: the wall time, or a regular expression whose group (or whole match) is a number in what
    the command prints; with `rate` more of it is better. `limit`: what recording may cost (0.05: 5 %). The
    first run, which is traced and not counted, warms up and tells the categories. UsageError for what cannot
    be asked; MachineError where the command fails or prints no such number.
    """
    words = list(command)
    _check(words, repeat, threads, metric, limit)
    size = parse_size(buffer, "buffer")
    counts: list[int | None] = list(threads) if threads else [None]
    chosen = None if categories is None else overhead.parse_sets(categories)
    with tempfile.TemporaryDirectory(prefix=".elbowroom-trace-", dir=shared_place()) as folder:
        bench = _Bench(words, Path(folder), size, adapters, mpi, metric)
        first = bench.run(counts[-1], overhead.Set(overhead.ALL, None), -1)
        sets = chosen or overhead.sets_of(bench.categories)
        if not first.events:
            raise recorded_nothing(words)
        turns = list(overhead.order(sets, counts, repeat, seed))
        runs = []
        tell = step or (lambda *_: None)
        tell(0, len(turns), first.seconds * len(turns))
        for done, (repetition, count, one) in enumerate(turns, start=1):
            runs.append(bench.run(count, one, repetition))
            tell(done, len(turns), first.seconds * len(turns))
    return overhead.analyse(
        runs, sets, command=words, metric=metric, rate=rate, limit=limit, buffer=size, seed=seed
    )


def plan_overhead(
    command: Sequence[str],
    *,
    repeat: int = 10,
    categories: str | None = None,
    threads: Sequence[int] | None = None,
    metric: str = WALL,
    limit: float = 0.05,
    buffer: int | str = "4MiB",
    adapters: Sequence[Adapter] | None = None,
    mpi: str | None = None,
) -> PlannedStarts:
    """What `trace_overhead` would build and start; errors as there."""
    words = list(command)
    _check(words, repeat, threads, metric, limit)
    size = parse_size(buffer, "buffer")
    counts: list[int | None] = list(threads) if threads else [None]
    sets = overhead.sets_of(()) if categories is None else overhead.parse_sets(categories)

    def find() -> Iterator[PlannedStart]:
        bench = _Bench(words, Path("TRACE"), size, adapters, mpi, metric)
        lines = {one.name: bench.recording(counts[-1], one).line() for one in sets}
        build.trace_reader()
        yield PlannedStart(what="the program, recorded, not counted", commands=(lines[overhead.ALL],))
        for name, line in lines.items():
            what = f"the program, {SETS.get(name, f'with the categories {name}')}"
            yield PlannedStart(what=what, commands=(line,), times=repeat * len(counts))
        if categories is None:
            what = "the program, with each category by itself, if the first run shows several: for each"
            yield PlannedStart(what=what, commands=(), times=repeat * len(counts))

    return plan_starts(find)


def save_overhead_figure(costs: Overhead, file: str | Path) -> None:
    """These figures as .svg or .png, or with the verdicts as one .html page."""
    save_costs(Path(file), overhead_figures(costs), lambda: page(costs), costs.command)


def save_costs(
    path: Path, figures: Sequence[Figure], make_page: Callable[[], str], command: Sequence[str]
) -> None:
    """The page where the path ends in .html, else the figures one below the other."""
    if path.suffix.lower() == ".html":
        write_atomically(path, make_page().encode())
        return
    save_panels(figures, path, columns=1, title=" ".join(command), shared=False)


def recorded_nothing(command: Sequence[str]) -> MachineError:
    """What is said of a command whose first run left no event."""
    return MachineError(
        "recorded nothing: no process started the recorder, or none recorded an event",
        field="command",
        value=" ".join(command),
        hint="see `elbowroom trace record --help`",
    )


@dataclass
class _Bench:
    """Runs the command; `categories` are those that the last traced run had events of."""

    words: Sequence[str]
    folder: Path
    buffer: int
    adapters: Sequence[Adapter] | None
    mpi: str | None
    metric: str
    categories: tuple[str, ...] = ()

    def run(self, threads: int | None, one: Set, repetition: int) -> TimedRun:
        """One run of a set."""
        directory = self.folder / "trace"
        directory.mkdir(exist_ok=True)
        recording = self.recording(threads, one)
        done = run_program(recording.command, env=recording.env, field="command")
        ends = trace_reader.ends(directory) if one.name != NONE else []
        shutil.rmtree(directory, ignore_errors=True)
        counted: Counter[str] = Counter()
        for end in ends:
            counted.update(end.by_category)
        if counted:
            self.categories = tuple(sorted(counted, key=lambda name: -counted[name]))
        return TimedRun(
            threads=threads,
            set=one.name,
            repetition=repetition,
            value=done.wall_s if self.metric == WALL else number_printed(self.metric, done.stdout),
            seconds=done.wall_s,
            events=sum(end.recorded for end in ends),
            lost=sum(end.lost for end in ends),
            advised_bytes=max((end.advised_bytes for end in ends), default=0),
        )

    def recording(self, threads: int | None, one: Set) -> RecordedCommand:
        """The command of such a run."""
        words, variables = list(self.words), {}
        if threads is not None and any(THREADS in word for word in words):
            words = [word.replace(THREADS, str(threads)) for word in words]
        elif threads is not None:
            variables = dict.fromkeys(_THREAD_VARIABLES, str(threads))
        settings = None if one.name == NONE else self._settings(one)
        return prepare(words, settings, adapters=self.adapters, mpi=self.mpi, variables=variables)

    def _settings(self, one: Set) -> Settings:
        return Settings(
            directory=str(self.folder / "trace"),
            job=secrets.randbits(63) + 1,
            categories=one.categories,
            bytes=self.buffer,
        )


def number_printed(metric: str, output: str) -> float:
    """The number that the expression finds last."""
    matches = list(re.finditer(metric, output, re.MULTILINE))
    text = "" if not matches else matches[-1][1 if matches[-1].re.groups else 0]
    try:
        return float(text)
    except (TypeError, ValueError):
        raise MachineError(
            f"finds no number in what the command printed: {output.strip()[-_TAIL:] or 'nothing'}",
            field="metric",
            value=metric,
            hint="for instance 'time: ([0-9.]+)', or wall",
        ) from None


def _check(
    words: Sequence[str], repeat: int, threads: Sequence[int] | None, metric: str, limit: float
) -> None:
    check_runs(repeat, metric)
    if any(count < 1 for count in threads or ()):
        raise UsageError(
            "is not a number of threads", field="threads", value=min(threads or ()), hint="1,2,4"
        )
    if not 0 < limit < 1:
        raise UsageError("is not a share", field="limit", value=limit, hint="above 0, below 100 percent")
    if any(THREADS in word for word in words) and not threads:
        raise UsageError("stands in the command without numbers", field="threads", hint="add --threads 1,2")


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
    """Traces of these runs are beside the program's other files (hosts share them), else where temporary ones
    are.
    """
    return os.getcwd() if os.access(os.getcwd(), os.W_OK) else None
