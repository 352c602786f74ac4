"""`elbowroom trace overlap`: what overlap hides in a trace, and what hiding costs."""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_wrapped, styled
from elbowroom.cli.options import Output
from elbowroom.cli.tables import ShownTable, new_table, print_table
from elbowroom.draw.files import save_panels
from elbowroom.errors import UsageError
from elbowroom.files import write_atomically
from elbowroom.heartbeat import Wait
from elbowroom.launch import trace_reader
from elbowroom.launch.trace_reader import check_folder
from elbowroom.quantities import number, percent, span
from elbowroom.trace.documents import TraceCheck, decode
from elbowroom.trace.overlap.comparison import compare_overlaps
from elbowroom.trace.overlap.figures import overlap_figures, overlap_page
from elbowroom.trace.overlap.verdict import duration, short_name
from elbowroom.verbs.declaration import Verb, argument, function_of, option
from elbowroom.verbs.run_options import out_option

if TYPE_CHECKING:
    from rich.text import Text

    from elbowroom.launch.trace_reader import EventsReader
    from elbowroom.trace.overlap.document import OverlapComparison, TraceOverlap
    from elbowroom.trace.overlap.events import Events
    from elbowroom.trace.overlap.formats import TraceFile
    from elbowroom.trace.overlap.raw_events import RawFile

MOST_ROWS = 20
LETTERS = 21
_READ_WHOLE = ("json", "parquet", "otf2", "folder")
"""Formats of traces that are read into memory, where no program reads them."""
_WRITTEN = {".html": "page", ".env": "settings", ".conf": "settings"}


class ReportOverlap(Verb):
    """Report what overlap hides in a trace, and what hiding costs.

    TRACE is Kineto's or Chrome's JSON, an export of Nsight Systems (SQLite, parquetdir), rocprofv3's JSON,
    Perfetto, OTF2, Pajé, tables of StarVZ, a log of NCCL Inspector, or a trace of elbowroom. Several files, a
    folder or a tar archive of them are the ranks of one run. Exit code 3 means that the trace is incomplete.
    """

    name = "trace overlap"
    fits = True
    has_tables = True
    saves = True

    files: Sequence[str | Path] | str | Path = argument(metavar="TRACE...", nargs=-1)
    computation: tuple[str, ...] = option("Names that match are computation.", "PATTERN")
    communication: tuple[str, ...] = option("Names that match are communication.", "PATTERN")
    step: tuple[str, ...] = option("Names that match are steps of the program.", "PATTERN")
    between_calls: bool = option("The time between a thread's calls of MPI is computation.")
    compare: bool = option("Compare two traces of one program.", in_python=False)
    out: Path | str | None = out_option(
        Output(".svg", ".png", ".html", ".env", ".conf"),
        "Draw a figure (.svg, .png), write a page (.html), or settings to try next: NCCL's environment "
        "(.env), a file for its tuner plug-in (.conf).",
    )

    def do(self) -> TraceOverlap:
        """The overlap of one trace, in one file, or in one for each rank. Names that match a regular
        expression in `computation` or `communication` are of that side, whatever the trace says, and those in
        `step` are steps. `between_calls`: the time between two communications of a thread is computation, for
        traces that record MPI only.

        UsageError for what is no trace, is damaged at its begin, has no communication or no computation, or
        is of several runs; MachineError if a reader fails. What ends early is analysed up to there, with a
        doubt.
        """
        if self.compare:
            return self._compared()  # type: ignore[return-value]  # the command line alone asks for that
        return self._overlap(self.files)

    def _compared(self) -> OverlapComparison:
        files = _names(self.files)
        if len(files) != 2:
            raise UsageError(
                "needs two traces", field="compare", value=" ".join(files), hint="name two traces"
            )
        if self.out is not None:
            raise UsageError(
                "cannot be combined with --compare", field="out", value=self.out, hint="leave one out"
            )
        return self.comparison(*files)

    def comparison(self, first: str | Path, second: str | Path) -> OverlapComparison:
        """Two traces of one program beside each other."""
        return compare_overlaps(*(self._overlap(file) for file in (first, second)))

    def _overlap(self, files: Sequence[str | Path] | str | Path) -> TraceOverlap:
        from elbowroom.trace.overlap.analysis import analyse
        from elbowroom.trace.overlap.formats import joined
        from elbowroom.trace.overlap.long_traces import analyse_long, is_long
        from elbowroom.trace.overlap.recognition import Patterns

        names = _names(files)
        if not names:
            raise UsageError("is missing", field="trace", hint="name a trace")
        patterns = Patterns(
            computation=tuple(self.computation),
            communication=tuple(self.communication),
            step=tuple(self.step),
        )
        patterns.compiled()
        try:
            with tempfile.TemporaryDirectory(prefix="elbowroom-traces-") as scratch:
                with Wait("looking for traces"):  # of an archive, unpacking it
                    traces = [one for name in names for one in _traces(Path(name), Path(scratch))]
                titles = [one.name for one in traces]
                fast = _fast_readers(traces)
                with Wait("analysing the trace"), contextlib.ExitStack() as stack:
                    raw = _raw_files(traces, fast, stack)
                    known = [one for one in raw if one is not None]
                    if len(known) == len(raw) and is_long(known):
                        return analyse_long(
                            known,
                            titles,
                            lambda: stack.enter_context(tempfile.TemporaryFile(dir=scratch)),
                            patterns,
                            between_calls=self.between_calls,
                        )
                    parts = [
                        _read(trace) if one is None else one.whole()
                        for trace, one in zip(traces, raw, strict=True)
                    ]
                    return analyse(joined(parts, titles), titles, patterns, between_calls=self.between_calls)
        except MemoryError as error:
            raise UsageError(
                "is larger than memory",
                field="trace",
                value=", ".join(names),
                hint="record fewer steps, or fewer kinds of events",
            ) from error

    def print(self, result: TraceOverlap | OverlapComparison) -> None:
        """The verdict, then a table of classes of computation."""
        if self.compare:
            _print_comparison(result)  # type: ignore[arg-type]
            return
        _print(result)  # type: ignore[arg-type]
        if self.out is not None:
            click.echo(f"{_WRITTEN.get(Path(self.out).suffix.lower(), 'figure')}: {self.out}")

    def answer(self, result: TraceOverlap | OverlapComparison) -> Answer:
        """The verdict, and the time of a rank that it rests on."""
        if self.compare:
            both = (("first", result.first), ("second", result.second))  # type: ignore[union-attr]
            why = " ".join(f"In the {name} trace: {_hidden(one)}" for name, one in both)
            following = _command(_names(self.files)[-1:])
            return Answer(result.verdict, why, following, "" if self.trusted(result) else "yellow")
        written = self.out is not None
        following = command_line("help", "trace-overlap") if written else _command(_names(self.files))
        why = _hidden(result)  # type: ignore[arg-type]
        return Answer(result.verdict, why, following, "" if self.trusted(result) else "yellow")

    def trusted(self, result: TraceOverlap | OverlapComparison) -> bool:
        """Whether no trace has a doubt."""
        if self.compare:
            return not (result.first.doubts or result.second.doubts)  # type: ignore[union-attr]
        return not result.doubts  # type: ignore[union-attr]


trace_overlap = function_of(ReportOverlap, "trace_overlap")


def compare_trace_overlaps(
    first: str | Path,
    second: str | Path,
    *,
    computation: Sequence[str] = (),
    communication: Sequence[str] = (),
    step: Sequence[str] = (),
    between_calls: bool = False,
) -> OverlapComparison:
    """Two traces of one program beside each other; raises as `trace_overlap`, and if they have no class of
    computation in common.
    """
    request = ReportOverlap(
        files=(first, second),
        computation=tuple(computation),
        communication=tuple(communication),
        step=tuple(step),
        between_calls=between_calls,
    )
    return request.comparison(first, second)


def save(result: TraceOverlap, path: Path) -> None:
    """Draws the figures as .svg or .png, or writes them with verdict and table as one .html page; or the
    settings to try next as .env or .conf.
    """
    from elbowroom.trace.overlap.settings import environment_text, tuner_text

    texts: dict[str, Callable[[TraceOverlap], str]] = {
        ".html": overlap_page,
        ".env": lambda one: environment_text(one.settings, ", ".join(one.files)),
        ".conf": lambda one: tuner_text(one.settings, ", ".join(one.files)),
    }
    if (text := texts.get(path.suffix.lower())) is not None:
        write_atomically(path, text(result).encode())
        return
    save_panels(overlap_figures(result), path, columns=1, title=" ".join(result.files), shared=False)


def _names(files: Sequence[str | Path] | str | Path) -> list[str]:
    return [str(file) for file in ([files] if isinstance(files, str | Path) else files)]


def _command(names: Sequence[str]) -> str:
    """What writes the page. What came from a pipe is gone: a file stands for it."""
    files = ["trace.json" if one == "-" or one.startswith("/dev/") else one for one in names]
    return command_line("trace", "overlap", *files, "-o", "overlap.html")


def _traces(path: Path, scratch: Path) -> list[TraceFile]:
    """What is to be read of a file, a folder or an archive; all are known before the first is read."""
    from elbowroom.trace.overlap.formats import traces_in

    traces = traces_in(path, scratch)
    for one in traces:
        if one.format == "folder":
            check_folder(one.place)
    return traces


def _fast_readers(traces: Sequence[TraceFile]) -> list[EventsReader | None]:
    """What reads each trace in a program of its own; None: it is read here."""
    texts = [one.place for one in traces if one.format == "json"]
    of_json = trace_reader.json_reader(*texts) if texts else None
    packets = any(one.format == "perfetto" for one in traces)
    readers = {"json": of_json, "perfetto": trace_reader.perfetto_reader() if packets else None}
    return [
        trace_reader.otf2_reader(one.place) if one.format == "otf2" else readers.get(one.format)
        for one in traces
    ]


def _raw_files(
    traces: Sequence[TraceFile], fast: Sequence[EventsReader | None], stack: contextlib.ExitStack
) -> list[RawFile | None]:
    """What those programs write, as many at once as there are cores, and what readers of other formats do;
    None: it is read whole. UsageError for what only the programs can read, and cannot.
    """
    from elbowroom.trace.overlap.chrome import JsonFile
    from elbowroom.trace.overlap.otf2 import Otf2File
    from elbowroom.trace.overlap.raw_events import RawEvents

    cores = len(os.sched_getaffinity(0))
    started: list[Callable[[], IO[bytes]] | None] = []
    result: list[RawFile | None] = []
    for at, trace in enumerate(traces):
        first = len(started)
        for one, reader in zip(traces[first:], fast[first : at + cores], strict=False):
            started.append(None if reader is None else stack.enter_context(reader.start(one.place)))
        wait = started[at]
        if wait is None:
            result.append(_stored(trace, stack))
            continue
        try:
            raw = RawEvents(wait())
            result.append(
                Otf2File(raw=raw, path=trace.place)
                if trace.format == "otf2"
                else JsonFile(raw=raw, path=trace.place, format=trace.format)
            )
        except EOFError as error:
            if trace.format == "otf2" or (trace.format == "json" and trace.place.is_file()):
                result.append(None)  # elbowroom's own reader says what is wrong with it
                continue
            what = "cannot be read as Perfetto's protobuf"
            hint = "record it again, or convert it: traceconv json"
            if trace.format == "json":
                what, hint = "is not a trace in JSON (nothing else is read from a pipe)", "give it as a file"
            raise UsageError(what, field="trace", value=trace.name, hint=hint) from error
    return result


def _stored(trace: TraceFile, stack: contextlib.ExitStack) -> RawFile | None:
    """What the reader of its format stores; None where that has no such reader."""
    if trace.format in _READ_WHOLE:
        return None
    read_events: Callable[[Path, IO[bytes]], RawFile] = importlib.import_module(trace.format).read
    return read_events(trace.place, stack.enter_context(tempfile.TemporaryFile(prefix="elbowroom-events-")))


def _read(trace: TraceFile) -> Events:
    from elbowroom.trace.overlap.chrome import read_json
    from elbowroom.trace.overlap.otf2 import read_otf2
    from elbowroom.trace.overlap.own import read_columns, read_parquet

    place = trace.place
    if trace.format == "json":
        return read_json(place)
    if trace.format == "parquet":
        return read_parquet(place)
    if trace.format == "otf2":
        with trace_reader.otf2_records(place) as stream:
            return read_otf2(stream, place)
    with trace_reader.columns(place) as columns:
        read = read_columns(columns.stream)
    doubts = () if columns.trusted else decode(columns.summary, TraceCheck).doubts
    return dataclasses.replace(read, doubts=(*read.doubts, *doubts))


def _print(overlap: TraceOverlap) -> None:
    print_wrapped(overlap.counts)
    print()
    print_table(_times(overlap))
    print()
    table = new_table("~computation", "~beside", ">alone", ">over-\nlapped", ">slowdown", "interval")
    for one in overlap.classes[:MOST_ROWS]:
        table.add_row(_cut(one.label), _cut(one.communication or "-"), str(one.alone), str(one.overlapped),
                      *_slowdown(one))  # fmt: skip
    print_table(table)
    if len(overlap.classes) > MOST_ROWS:
        print_wrapped(f"{len(overlap.classes) - MOST_ROWS} more with --json, or in a page (-o FILE.html).")
    if overlap.estimate.operations:
        print()
        print_table(_operations(overlap))
    reasons = {
        one.reason: _cut(one.label) for one in overlap.classes[:MOST_ROWS] if one.overlapped and one.reason
    }
    for reason, label in reasons.items():
        print_wrapped(f"n/a: {reason} ({label})")
    for text in overlap.notes:
        print_wrapped(f"note: {text}")
    for text in overlap.doubts:
        print_wrapped(f"partial: {text}", style="bold yellow")


def _hidden(overlap: TraceOverlap) -> str:
    """How much of the communication is hidden, and what is not."""
    per = overlap.steps or 1
    when = "in a step" if overlap.steps else "in all"
    return (
        f"{percent(overlap.hidden_share)} of {duration(overlap.comm_s / per)} of {overlap.hidden_kind} is "
        f"hidden {when}, and {duration(overlap.exposed_s / per)} is exposed."
    )


def _times(overlap: TraceOverlap) -> ShownTable:
    """The time of a rank, in a step where the trace names steps."""
    per = overlap.steps or 1
    table = new_table("", f">{'a step' if overlap.steps else 'in all'}", "")
    table.add_row("computation", duration(overlap.comp_s / per), "")
    table.add_row(overlap.hidden_kind, duration(overlap.comm_s / per), "")
    table.add_row("  hidden", duration(overlap.hidden_s / per), f"{overlap.hidden_share:.1%} of it")
    table.add_row("  exposed", duration(overlap.exposed_s / per), "")
    cost = overlap.cost
    if cost is None:
        table.add_row("cost of hiding", "n/a", f"at most {duration(overlap.cost_at_most_s / per)}")
    else:
        ends = span(duration(cost.low / per), duration(cost.high / per))
        table.add_row("cost of hiding", duration(cost.value / per), ends)
    fraction = "n/a" if overlap.fraction_of_ideal is None else number(overlap.fraction_of_ideal, 3)
    osu = "" if overlap.osu_overlap is None else f"OSU's overlap: {overlap.osu_overlap:.1%}"
    table.add_row("fraction of ideal", fraction, osu)
    return table


def _operations(overlap: TraceOverlap) -> ShownTable:
    """The slowdown of all computation during each operation."""
    table = new_table("~all computation during", ">comparisons", ">slowdown", "interval")
    for one in overlap.estimate.operations:
        table.add_row(_cut(one.label), str(one.comparisons), *_slowdown(one))
    return table


def _slowdown(one: object) -> tuple[str, str]:
    slowdown = getattr(one, "slowdown", None)
    if slowdown is None:
        return "n/a", ""
    return f"{slowdown.value:.3f}", span(f"{slowdown.low:.3f}", f"{slowdown.high:.3f}")


def _print_comparison(compared: OverlapComparison) -> None:
    table = new_table("~computation", "~beside", ">first", ">second", ">ratio", "interval")
    for one in compared.classes[:MOST_ROWS]:
        ratio = one.ratio
        table.add_row(
            _cut(one.name), _cut(one.communication), f"{one.first.value:.3f}", f"{one.second.value:.3f}",
            f"{ratio.value:.3f}", span(f"{ratio.low:.3f}", f"{ratio.high:.3f}"),
        )  # fmt: skip
    print_table(table)
    for name, one_trace in (("first", compared.first), ("second", compared.second)):
        print_wrapped(f"{name} ({' '.join(one_trace.files)}): {one_trace.counts} {one_trace.verdict}")
        for text in one_trace.doubts:
            print_wrapped(f"partial: {text}", style="bold yellow")


def _cut(text: str) -> Text:
    return styled(short_name(text, LETTERS))
