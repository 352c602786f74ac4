"""`elbowroom trace overhead` and `flushes`: what recording costs a program (docs/guide/trace-cost.md)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import chatter, print_list, print_wrapped
from elbowroom.cli.options import Output
from elbowroom.cli.tables import new_table, print_table
from elbowroom.draw.files import save_panels
from elbowroom.errors import UsageError
from elbowroom.files import write_atomically
from elbowroom.launch import build
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.launch.recorder import Adapter
from elbowroom.quantities import number, parse_cores, parse_size, percent, percent_span, plural, span
from elbowroom.verbs.declaration import (
    Options,
    Verb,
    command_argument,
    dry_run_option,
    function_of,
    included,
    option,
)
from elbowroom.verbs.run_options import out_option, split_list

if TYPE_CHECKING:
    from elbowroom.draw.figure import Figure
    from elbowroom.measure.recording_cost import CategoryRuns, FlushRuns
    from elbowroom.trace.flushes import FlushCosts
    from elbowroom.trace.overhead import Overhead

FOLDER = ".elbowroom-trace-"
"""How the names of folders begin that hold the traces of these runs."""

VERDICT_STYLES = {"trusted": "bold green", "costly": "bold red"}


class MetricOptions(Options):
    """The number by which runs of a program are compared."""

    metric: str = option("Wall time, or a pattern of a number that CMD prints.", "wall|REGEX", default="wall")
    rate: bool = option("The metric is a rate: higher is better.")


class Recorder(Options):
    """What is preloaded into the program."""

    adapters: Sequence[Adapter] | None = option("As in `record`.", "A,A", parse=split_list)
    mpi: str | None = option("As in `record`.", "PREFIX")


def _seed_option() -> Any:
    return option("Seed of the order of runs.", default=0, type=click.IntRange(min=0), show_default=False)


_PAGE = Output(".svg", ".png", ".html")


class MeasureOverhead(Verb):
    """Measure the overhead of recording CMD, and whether its trace can be trusted.

    Runs CMD alternately with and without a recorder. Exit code 3 means that the machine is too noisy.
    """

    name = "trace overhead"
    has_tables = True
    saves = True

    command: Sequence[str] = command_argument()
    repeat: int = option("Number of runs of each set of categories.", default=10)
    categories: str | None = option(
        "Sets of categories: mpi;mpi,task; default: each category by itself.", "SET;SET"
    )
    without: str | None = option(
        "Everything but these types, each list by itself: submit;ready,push; frequent: the 4 most frequent.",
        "T;T,T",
    )
    threads: Sequence[int] | None = option(
        "Numbers of threads; replace {threads} in CMD.", "N,N", parse=parse_cores
    )
    compared: MetricOptions = included(MetricOptions)
    limit: float = option("Largest overhead that is acceptable.", "PERCENT", default="5.0")
    buffer: int | str = option("As in `record`.", "SIZE", default="4MiB")
    recorder: Recorder = included(Recorder)
    seed: int = _seed_option()
    out: Path | str | None = out_option(_PAGE, "Draw a figure (.svg, .png), or write a page (.html).")
    dry_run: bool = dry_run_option()
    tell: Callable[[str], object] = chatter

    def do(self) -> Overhead:
        """Runs `command` without a recorder and with it, in turns, and says whether its trace can be trusted.

        `categories`: sets of them, `mpi;mpi,task`; by default each that the program has by itself. `without`:
        everything but these types, `submit;ready,push`, or each of the four most `frequent` ones. `threads`:
        numbers of threads to compare, told by OMP_NUM_THREADS and STARPU_NCPU, or where `{threads}` stands in
        the command. `metric`: the wall time, or a regular expression whose group (or whole match) is a number
        in what the command prints; with `rate` more of it is better. `limit`: what recording may cost (0.05:
        5 %). The first run, which is traced and not counted, warms up and tells the categories.
        UsageError for what cannot be asked; MachineError where the command fails or prints no such number.
        """
        from elbowroom.measure.recording_cost import record_in_turns, shared_place
        from elbowroom.trace import overhead

        self._check()
        chosen = None if self.categories is None else overhead.parse_sets(self.categories)
        with tempfile.TemporaryDirectory(prefix=FOLDER, dir=shared_place()) as folder:
            program = self._program(Path(folder) / "trace")
            first = program.run(self._counts[-1], overhead.Set(overhead.ALL, None), -1)
            if not first.events:
                raise program.recorded_nothing()
            if self.without is not None:
                sets = overhead.sets_without(self.without, program.types)
            else:
                sets = chosen or overhead.sets_of(program.categories)
            turns = overhead.order(sets, self._counts, self.repeat, self.seed)
            runs = record_in_turns(
                turns, lambda turn: program.run(turn[1], turn[2], turn[0]), first.seconds, self.tell
            )
        return overhead.analyse(
            runs,
            sets,
            command=program.words,
            metric=self.compared.metric,
            rate=self.compared.rate,
            limit=self.limit,
            buffer=program.buffer,
            seed=self.seed,
        )

    @property
    def _counts(self) -> list[int | None]:
        return list(self.threads) if self.threads else [None]

    def _program(self, directory: Path) -> CategoryRuns:
        from elbowroom.measure.recording_cost import CategoryRuns

        recorder = self.recorder
        return CategoryRuns(
            self.command,
            directory,
            adapters=recorder.adapters,
            mpi=recorder.mpi,
            metric=self.compared.metric,
            buffer=parse_size(self.buffer, "buffer"),
        )

    def _check(self) -> None:
        from elbowroom.measure.recording_cost import THREADS, check_runs

        check_runs(self.repeat, self.compared.metric)
        if self.without is not None and self.categories is not None:
            hint = "leave one of the two out"
            raise UsageError("is not valid with --categories", field="without", value=self.without, hint=hint)
        if self.without is not None and not all(
            name.strip() for part in self.without.split(";") for name in part.split(",")
        ):
            hint = "write types as submit;ready,push, or frequent"
            raise UsageError("has an empty name", field="without", value=self.without, hint=hint)
        if any(count < 1 for count in self.threads or ()):
            raise UsageError(
                "is not a number of threads", field="threads", value=min(self.threads or ()), hint="1,2,4"
            )
        if not 0 < self.limit < 1:
            raise UsageError(
                "is not a share", field="limit", value=self.limit, hint="above 0, below 100 percent"
            )
        if any(THREADS in word for word in self.command) and not self.threads:
            raise UsageError(
                "is used in the command, but --threads is missing", field="threads", hint="add --threads 1,2"
            )

    def planned_starts(self) -> Iterator[PlannedStart]:
        """The program with each set of categories."""
        from elbowroom.trace import overhead

        self._check()
        program = self._program(Path("TRACE"))
        sets = overhead.sets_of(()) if self.categories is None else overhead.parse_sets(self.categories)
        lines = {one.name: program.recording(self._counts[-1], one).line() for one in sets}
        build.trace_reader()
        yield PlannedStart(what="the program, recorded, not counted", commands=(lines[overhead.ALL],))
        times = self.repeat * len(self._counts)
        names = {
            overhead.NONE: "without a recorder",
            overhead.OFF: "with a recorder that records nothing",
            overhead.ALL: "with all categories",
        }
        for name, line in lines.items():
            what = f"the program, {names.get(name, f'with the categories {name}')}"
            yield PlannedStart(what=what, commands=(line,), times=times)
        if self.without is not None:
            what = f"the program, with everything but {self.without}: for each list of types"
            yield PlannedStart(what=what, commands=(), times=times)
        elif self.categories is None:
            what = "the program, with each category by itself, if the first run shows several: for each"
            yield PlannedStart(what=what, commands=(), times=times)

    def print(self, result: Overhead) -> None:
        """Every set's median and cost, then the verdicts."""
        unit = "s" if result.metric == "wall" else "metric"
        several = len(result.verdicts) > 1
        table = new_table(
            *([">threads"] if several else []),
            "~recorded", f">{unit}", ">costs", "95 %", ">events", ">per second", ">lost",
        )  # fmt: skip
        for case in result.cases:
            cost = case.overhead
            table.add_row(
                *([str(case.threads)] if several else []),
                case.set,
                number(case.median.value),
                "-" if cost is None else f"{cost.value:+.1%}",
                "" if cost is None else span(f"{cost.low:+.1%}", f"{cost.high:+.1%}"),
                str(case.events),
                number(case.events_per_second, 3),
                str(case.lost),
            )
        print_table(table)
        print_wrapped("none: nothing preloaded. off: preloaded, every category off.")
        for verdict in result.verdicts if several else ():
            print()
            head = f"{plural(verdict.threads or 0, 'thread')}: " if several else ""
            print_wrapped(head + verdict.text, style=VERDICT_STYLES.get(verdict.state, "bold yellow"))
            print_list(verdict.advice, indent="  ")
        if self.out is not None:
            click.echo(f"figure: {self.out}")

    def answer(self, result: Overhead) -> Answer:
        """The verdict of the most threads, and what recording everything costs there."""
        from elbowroom.trace.overhead import ALL

        verdict = result.verdicts[-1]
        cost = next((case.overhead for case in reversed(result.cases) if case.set == ALL), None)
        costs = "unknown" if cost is None else percent_span(cost.value, cost.low, cost.high)
        advice = verdict.advice or (f"The limit is {percent(result.limit)}.",)
        categories = ("--categories", ",".join(verdict.categories)) if verdict.categories else ()
        without = ("--without", ",".join(verdict.without)) if verdict.without else ()
        return Answer(
            verdict.text,
            f"Recording everything costs {costs}. {' '.join(advice[:1])}",
            command_line("trace", "record", *categories, *without, "--", *result.command),
            VERDICT_STYLES.get(verdict.state, "yellow").removeprefix("bold "),
        )

    def trusted(self, result: Overhead) -> bool:
        """Whether the machine was quiet enough to decide."""
        return result.decided


trace_overhead = function_of(MeasureOverhead, "trace_overhead")


class MeasureFlushes(Verb):
    """Measure how much CMD slows down when the recorder flushes its buffers to a file.

    Runs with flushes, each at another time, alternate with runs without. Exit code 3 means that the cost is
    unknown.
    """

    name = "trace flushes"
    has_tables = True
    saves = True

    command: Sequence[str] = command_argument()
    repeat: int = option("Runs with, and without, flushes.", default=10)
    compared: MetricOptions = included(MetricOptions)
    recorder: Recorder = included(Recorder)
    seed: int = _seed_option()
    out: Path | str | None = out_option(_PAGE, "Draw figures (.svg, .png), or write a page (.html).")
    dry_run: bool = dry_run_option()
    tell: Callable[[str], object] = chatter

    def do(self) -> FlushCosts:
        """Runs `command` `repeat` times recorded without a flush and as often with flushes, in turns, and
        finds what each run loses and what its flushes interrupted (thesis, Figs. 3.2 and 3.3).

        `metric`: the wall time, or a regular expression of a number that the command prints; with `rate` more
        of it is better. The first run is not counted and shows how many events the fullest buffer needs.
        UsageError for what cannot be asked; MachineError where the command fails, prints no such number or
        records nothing.
        """
        from elbowroom.measure.recording_cost import check_runs, record_in_turns, shared_place
        from elbowroom.trace.flushes import analyse_flushes, flush_order

        check_runs(self.repeat, self.compared.metric)
        with tempfile.TemporaryDirectory(prefix=FOLDER, dir=shared_place()) as folder:
            program = self._program(Path(folder) / "trace")
            first = program.measure()
            turns = flush_order(self.repeat, self.seed)
            runs = record_in_turns(turns, lambda turn: program.run(*turn), first.timed.seconds, self.tell)
        return analyse_flushes(
            runs,
            command=program.words,
            metric=self.compared.metric,
            rate=self.compared.rate,
            repeat=self.repeat,
            seed=self.seed,
            buffer=program.buffer,
        )

    def _program(self, directory: Path) -> FlushRuns:
        from elbowroom.measure.recording_cost import FlushRuns

        recorder, metric = self.recorder, self.compared.metric
        return FlushRuns(self.command, directory, adapters=recorder.adapters, mpi=recorder.mpi, metric=metric)

    def planned_starts(self) -> Iterator[PlannedStart]:
        """The program with flushes and without."""
        from elbowroom.measure.recording_cost import check_runs

        check_runs(self.repeat, self.compared.metric)
        program = self._program(Path("TRACE"))
        plain, flushed = (program.recording(share).line() for share in (None, 0.5))
        build.trace_reader()
        yield PlannedStart(what="the program, recorded, not counted", commands=(plain,))
        yield PlannedStart(what="the program, recorded without a flush", commands=(plain,), times=self.repeat)
        yield PlannedStart(what="the program, recorded with flushes", commands=(flushed,), times=self.repeat)

    def print(self, result: FlushCosts) -> None:
        """A line for each flush, then what they cost."""
        from elbowroom.trace.flushes import flush_rows

        table = new_table(
            ">run", ">metric", ">lost", ">flush at", ">took", "~thread", "~inside", ">others\nin tasks"
        )
        for place, run in enumerate(result.runs, start=1):
            for row in flush_rows(place, run):
                table.add_row(*row)
        print_table(table)
        if self.out is not None:
            click.echo(f"figure: {self.out}")

    def answer(self, result: FlushCosts) -> Answer:
        """What flushes cost, and the slowest run."""
        from elbowroom.trace.flushes import flush_sentences

        first, *others = flush_sentences(result)
        return Answer(
            first,
            " ".join(others) or f"{plural(len(result.runs), 'run')} were compared.",
            command_line("trace", "record", "--policy", "drain", "--", *result.command),
            "" if result.cost is not None else "yellow",
        )

    def trusted(self, result: FlushCosts) -> bool:
        return result.cost is not None


trace_flushes = function_of(MeasureFlushes, "trace_flushes")


def save(result: Overhead | FlushCosts, path: Path) -> None:
    """Draws the figures, one below the other, as .svg or .png, or writes them with verdicts or the table of
    flushes as one .html page.
    """
    from elbowroom.trace import flushes, overhead

    drawn: Sequence[Figure]
    if isinstance(result, overhead.Overhead):
        drawn, page = overhead.overhead_figures(result), overhead.page(result)
    else:
        drawn, page = flushes.flush_figures(result), flushes.flush_page(result)
    if path.suffix.lower() == ".html":
        write_atomically(path, page.encode())
        return
    save_panels(drawn, path, columns=1, title=" ".join(result.command), shared=False)
