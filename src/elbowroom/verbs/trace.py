"""`elbowroom trace merge`, `stat`, `activity`, `check`, `sync`: what is in a trace (guide/trace.md)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click
import msgspec

from elbowroom import display
from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_wrapped
from elbowroom.cli.options import FIGURE, Output
from elbowroom.draw.files import save_panels
from elbowroom.errors import UsageError
from elbowroom.files import is_stdout, make_folder, write_atomically
from elbowroom.launch import trace_reader
from elbowroom.launch.trace_reader import Checked, Tell, read_check, read_stat
from elbowroom.quantities import number, parse_time, percent, plural
from elbowroom.store.exporters import exporter_of
from elbowroom.store.exporters import names as format_names
from elbowroom.store.folder import refuse_existing
from elbowroom.trace.documents import Stat, Sync, TraceCheck, decode
from elbowroom.trace.exporter import Exporter, ExportRequest
from elbowroom.trace.sync_figures import sync_report
from elbowroom.verbs.declaration import Verb, argument, function_of, option
from elbowroom.verbs.run_options import split_list
from elbowroom.verbs.trace_tables import (
    print_activity,
    print_check,
    print_pairs,
    print_sentences,
    print_stat,
    print_sync,
    time_text,
)

if TYPE_CHECKING:
    from elbowroom.frames import Frame
    from elbowroom.trace.activity import RecordedActivity
    from elbowroom.trace.activity_figures import ActivityOverTime

_MOST_SECONDS = 1e9


def bins_option() -> Any:
    """The number of intervals of time."""
    return option(
        "Number of intervals that the time is divided into.", "N", default=100, type=int, positional=True
    )


class MergeDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `trace merge --json` prints."""

    schema: str = "elbowroom/trace-merge"
    version: int = 1
    file: str
    trusted: bool
    check: TraceCheck


class MergeTrace(Verb):
    """Merge the traces of all ranks into one file, on one clock."""

    name = "trace merge"
    has_tables = True

    directory: Path | str = argument(metavar="DIR")
    out: Path | str = option(
        "File to write: .pftrace, .json, .otf2, .paje, .parquet or .html.",
        "FILE",
        spelled="-o --out",
        type=Output(),
        required=True,
        positional=True,
    )
    format: str | None = option(
        f"{', '.join(format_names())}; default: by the extension.", "FORMAT", formerly="--to"
    )
    begin_s: float | None = option(
        "With .html: start of the timeline, as a time since the start of the trace.",
        "TIME",
        spelled="--from",
        parse=parse_time,
    )
    end_s: float | None = option(
        "With .html: end of the timeline.", "TIME", spelled="--until", parse=parse_time
    )
    categories: tuple[str, ...] = option("With .html: categories to show.", "C,C", parse=split_list)
    tell: Tell | None = None

    def do(self) -> MergeDocument:
        """Merges the trace of all ranks into `out`, in the format `format` (store/exporters) or that of its
        ending; `tell` hears how much of how much is done. A timeline may show a part: from `begin_s` to
        `end_s`, seconds since the start, and some `categories`; intervals that reach out of it are cut at its
        bounds. What cannot be finished leaves no file.
        """
        exporter = exporter_of(self.out, self.format)
        trace_reader.check_folder(self.directory)
        request = ExportRequest(
            directory=str(self.directory),
            path=Path(self.out),
            begin_ns=_moment(self.begin_s, "from"),
            end_ns=_moment(self.end_s, "until"),
            categories=tuple(self.categories),
        )
        self._check_part(exporter, request)
        if exporter.write is not None:
            part = (request.begin_ns, request.end_ns)
            with trace_reader.columns(self.directory, self.tell, *part) as columns:
                exporter.write(columns.stream, request)
            return self._merged(columns.summary, columns.trusted)
        words = ["merge", str(self.directory), "--to", exporter.name, "-o"]
        if is_stdout(request.path):
            sys.stdout.flush()
            output = trace_reader.copy([*words, "-"], sys.stdout.buffer, self.tell)
        else:
            output = trace_reader.read([*words, str(request.path)], self.tell)
        return self._merged(output.document, output.trusted)

    def _merged(self, summary: bytes, trusted: bool) -> MergeDocument:
        return MergeDocument(file=str(Path(self.out)), trusted=trusted, check=decode(summary, TraceCheck))

    def _check_part(self, exporter: Exporter, request: ExportRequest) -> None:
        begin, end = request.begin_ns, request.end_ns
        if not request.whole and not exporter.parts:
            raise UsageError(
                "is merged as a whole",
                field="format",
                value=exporter.name,
                hint="leave --from, --until and --categories out",
            )
        if begin is not None and end is not None and begin >= end:
            raise UsageError(
                f"is not before {end / 1e9:.9g} s",
                field="from",
                value=self.begin_s,
                hint="give an earlier time",
            )

    def stdout_is_taken(self, as_json: bool) -> bool:
        """By the merged trace, where it is written there."""
        return is_stdout(Path(self.out))

    def print(self, result: MergeDocument) -> None:
        """What was written, and what is wrong with it."""
        check = result.check
        time = time_text(check.duration_ns)
        print_wrapped(f"{check.kept} events of {check.ranks} ranks, {check.messages} messages, {time}")
        print_pairs(check)
        print_sentences(check.warnings)
        if not is_stdout(Path(result.file)):
            print(result.file)

    def answer(self, result: MergeDocument) -> Answer:
        """How much was merged, and how right its times are."""
        check = result.check
        return Answer(
            f"{check.kept} events of {plural(check.ranks, 'rank')} were merged; "
            f"{_trust(check.doubts, result.trusted)}.",
            _certainty(check),
            _following(self.directory, result.trusted),
            "" if result.trusted else "yellow",
        )


merge_trace = function_of(MergeTrace, "merge_trace")


def _trust(doubts: Sequence[str], trusted: bool) -> str:
    if trusted:
        return "its times can be trusted"
    return f"its times cannot be trusted: {'; '.join(doubts) or 'see the warnings'}"


def _certainty(check: TraceCheck) -> str:
    """What bounds the error of the times."""
    lost = f"{check.lost} events were lost" if check.lost else "No event was lost"
    if check.worst_error_ns is None:
        return f"{lost}; the clocks were not compared, so the error of the times is unknown."
    comparisons = plural(check.sync_points, "comparison")
    return (
        f"{lost}; a time is wrong by at most {time_text(check.worst_error_ns)}, by {comparisons} of clocks."
    )


def _following(directory: Path | str, trusted: bool) -> str:
    return command_line("trace", "overlap" if trusted else "sync", directory)


def _moment(seconds: float | None, field: str) -> int | None:
    """A time since the start, ns."""
    if seconds is None:
        return None
    if not 0 <= seconds < _MOST_SECONDS:
        raise UsageError(
            "is not a time in a trace", field=field, value=seconds, hint="seconds since its start, 0 or more"
        )
    return round(seconds * 1e9)


class CountEvents(Verb):
    """Count events by type and over time; exit code 3 if the trace cannot be trusted."""

    name = "trace stat"
    has_tables = True

    directory: Path | str = argument(metavar="DIR")
    bins: int = bins_option()
    figure: Path | str | None = option(
        "Draw a figure: .png or .svg.", "FIGURE", spelled="-o --out", formerly="--figure", type=FIGURE
    )

    def do(self) -> Stat:
        """Events by type and over time (`bins` of equal length), by thread, and what recording took by
        rank.
        """
        stat = read_stat(self.directory, self.bins)
        if self.figure is not None:
            _draw_stat(stat, Path(self.figure), str(self.directory))
        return stat

    def print(self, result: Stat) -> None:
        """A line for each type of events."""
        print_stat(result)
        if self.figure is not None:
            click.echo(f"figure: {self.figure}")

    def answer(self, result: Stat) -> Answer:
        """How many events there are, and the most frequent type of them."""
        count = sum(one.events for one in result.types)
        most = max(result.types, key=lambda one: one.events, default=None)
        share = 0.0 if most is None or not count else most.events / count
        return Answer(
            f"{count} events of {plural(len(result.ranks), 'rank')} in "
            f"{number(result.duration_ns / 1e9, 4)} s; {_trust(result.doubts, not result.doubts)}.",
            "The trace is empty."
            if most is None or not count
            else f"Most frequent is {most.name}: {percent(share)} of all events, which fill the rings.",
            command_line("trace", "check", self.directory),
            "yellow" if result.doubts else "",
        )

    def trusted(self, result: Stat) -> bool:
        return not result.doubts


trace_stat = function_of(CountEvents, "trace_stat")


def _draw_stat(stat: Stat, path: Path, title: str) -> None:
    from elbowroom.trace.activity_figures import trace_figures

    save_panels(trace_figures(stat), path, columns=1, title=title, shared=False)


class TraceActivity(NamedTuple):
    """What tasks, workers and messages did, whether the trace's times can be trusted, and the tables that
    were written.
    """

    activity: RecordedActivity
    over_time: ActivityOverTime
    trusted: bool
    tables: tuple[Path, ...] = ()

    def __repr__(self) -> str:
        return f"TraceActivity(trusted={self.trusted})"

    def __str__(self) -> str:
        return display.text(self)

    def _repr_html_(self) -> str:
        return display.html(self)

    def tasks(self) -> Frame:
        """The tasks, a row each."""
        from elbowroom.store.trace_parquet import task_frame

        return task_frame(self.activity)

    def communications(self) -> Frame:
        """The communications, a row each."""
        from elbowroom.store.trace_parquet import communication_frame

        return communication_frame(self.activity)


class ShowActivity(Verb):
    """Show tasks, states of workers and durations of messages over time."""

    name = "trace activity"

    directory: Path | str = argument(metavar="DIR")
    bins: int = bins_option()
    figure: Path | str | None = option(
        "Draw figures: .png or .svg.", "FIGURE", spelled="-o --out", formerly="--figure", type=FIGURE
    )
    tables: Path | str | None = option(
        "Write tasks.parquet, communications.parquet and buffers.parquet there.", "FOLDER"
    )
    tell: Tell | None = None

    def do(self) -> TraceActivity:
        """Tasks submitted, ready and running, states of workers, utilisation and imbalance in `bins` of equal
        length; durations of messages. `tables`: the folder for tasks.parquet, communications.parquet
        and buffers.parquet.
        """
        from elbowroom.store.trace_parquet import write_tables
        from elbowroom.trace.activity import read_activity
        from elbowroom.trace.activity_figures import over_time
        from elbowroom.trace.columns import TraceColumns

        trace_reader.check_folder(self.directory)
        if self.tables is not None:
            # At once: a folder that cannot be made is refused before the trace is read.
            _new_tables(Path(self.tables))
        trace_reader.check_bins(self.bins)
        with trace_reader.columns(self.directory, self.tell) as columns:
            activity = read_activity(TraceColumns(columns.stream))
        result = TraceActivity(activity, over_time(activity, self.bins), columns.trusted)
        if self.figure is not None:
            _draw_activity(result, Path(self.figure), str(self.directory))
        if self.tables is None:
            return result
        _new_tables(Path(self.tables))
        return result._replace(tables=write_tables(activity, Path(self.tables)))

    def document(self, result: TraceActivity) -> ActivityOverTime:
        return result.over_time

    def print(self, result: TraceActivity) -> None:
        """Counts, and utilisation and imbalance of the whole trace."""
        print_activity(result.over_time, trusted=result.trusted)
        figures = () if self.figure is None else (self.figure,)
        for name in (*figures, *result.tables):
            click.echo(f"written: {name}")

    def answer(self, result: TraceActivity) -> Answer:
        """How busy the workers were, and what unequal shares of the work cost."""
        shown = result.over_time
        busy, uneven = shown.whole_utilisation, shown.whole_imbalance
        time = time_text(shown.duration_ns)
        return Answer(
            f"No task was recorded, and {plural(shown.messages, 'message')}, in {time}."
            if busy is None
            else f"The workers spend {percent(busy)} of the time in {plural(shown.tasks, 'task')}, beside "
            f"{plural(shown.messages, 'message')}, in {time}.",
            "Record with the categories task and message to see workers."
            if uneven is None
            else f"The busiest of {plural(shown.workers, 'worker')} has {percent(uneven)} more work than the "
            "mean.",
            command_line("trace", "merge", self.directory, "-o", "timeline.html"),
            "" if result.trusted else "yellow",
        )


trace_activity = function_of(ShowActivity, "trace_activity")


def _draw_activity(result: TraceActivity, path: Path, title: str) -> None:
    from elbowroom.trace.activity_figures import activity_figures

    figures = activity_figures(result.activity, result.over_time)
    if not figures:
        raise UsageError(
            "there is nothing to draw: the trace has no task and no message",
            field="figure",
            value=str(path),
            hint="record with the categories task and message",
        )
    save_panels(figures, path, columns=1, title=title, shared=False)


def _new_tables(folder: Path) -> None:
    """Makes the folder; UsageError where there is something of that name, or it cannot be made."""
    try:
        refuse_existing(folder, "tables", "name another")
    except OSError as error:
        raise UsageError(
            f"cannot be looked at ({error.strerror})", field="tables", value=str(folder), hint="name another"
        ) from error
    make_folder(folder, field="tables", hint="name another")


def save(result: Stat | TraceActivity, path: Path) -> None:
    """Draws counts of events, or tasks, workers and messages over time, below each other as .svg or .png."""
    if isinstance(result, TraceActivity):
        _draw_activity(result, path, "")
    else:
        _draw_stat(result, path, "")


class CheckTrace(Verb):
    """Check whether a trace is complete and its times can be trusted; exit code 3 if not."""

    name = "trace check"
    has_tables = True

    directory: Path | str = argument(metavar="DIR")

    def do(self) -> Checked:
        """Whether a trace is whole and its times can be trusted: events kept and lost, messages that arrive
        before they left or have ends of different sizes, ranks that are missing, damage.
        """
        return read_check(self.directory)

    def document(self, result: Checked) -> TraceCheck:
        return result.check

    def print(self, result: Checked) -> None:
        print_check(result.check)

    def answer(self, result: Checked) -> Answer:
        """Whether the trace can be trusted, and what bounds the error of its times."""
        check, trusted = result.check, result.trusted
        trust = _trust(check.doubts, trusted)
        return Answer(
            f"{plural(check.events, 'event')} of {plural(check.ranks, 'rank')}: {trust}.",
            _certainty(check),
            _following(self.directory, trusted),
            "green" if trusted else "yellow",
        )


check_trace = function_of(CheckTrace, "check_trace")


class CompareClocks(Verb):
    """Report the clock offsets of all ranks with error bounds; exit code 3 if they cannot be determined."""

    name = "trace sync"
    has_tables = True

    directory: Path | str = argument(metavar="DIR")
    report: Path | str | None = option(
        "Write a page with offsets, drifts and error bounds over time.",
        "FILE.html",
        spelled="-o --out",
        formerly="--report",
        type=Output(".html", ".htm", bare=True),
    )

    def do(self) -> Sync:
        """The clocks of all ranks: comparisons, offsets, drifts and error bars over time, which `report` has
        as one HTML page.
        """
        trace_reader.check_folder(self.directory)
        document = trace_reader.read(["sync", str(self.directory)]).document
        clocks = decode(document, Sync)
        if self.report is not None:
            write_atomically(Path(self.report), sync_report(document).encode())
        return clocks

    def print(self, result: Sync) -> None:
        """A line for each rank's clock."""
        print_sync(result)
        if self.report is not None:
            click.echo(f"report: {self.report}")

    def answer(self, result: Sync) -> Answer:
        """How far the clocks are known."""
        errors = [
            segment.error_ns
            for rank in result.ranks
            for segment in rank.segments
            if segment.error_ns is not None
        ]
        compared = sum(len(rank.points) for rank in result.ranks)
        known = f"to {time_text(max(errors))}" if errors else "not at all"
        return Answer(
            f"The clocks of {plural(len(result.ranks), 'rank')} are known {known}; "
            f"{_trust(result.doubts, not result.doubts)}.",
            f"They were compared {plural(compared, 'time')}.",
            command_line("trace", "overlap", self.directory)
            if not result.doubts or self.report is not None
            else self.again(report="clocks.html"),
            "yellow" if result.doubts else "",
        )

    def trusted(self, result: Sync) -> bool:
        return not result.doubts


trace_sync = function_of(CompareClocks, "trace_sync")
