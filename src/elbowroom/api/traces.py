"""Reading traces: merging, checking and counting (docs/guide/trace.md)."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from elbowroom.draw.files import save_panels
from elbowroom.errors import UsageError
from elbowroom.files import is_stdout, make_folder, write_atomically, wrong_kind
from elbowroom.launch import trace_reader
from elbowroom.launch.trace_reader import Tell as Tell
from elbowroom.store.activity_parquet import write_tables
from elbowroom.store.exporters import exporter_of
from elbowroom.store.folder import refuse_existing
from elbowroom.trace.activity import Activity, read_activity
from elbowroom.trace.activity_figures import ActivityOverTime as ActivityOverTime
from elbowroom.trace.activity_figures import activity_figures, over_time
from elbowroom.trace.activity_figures import rates as rates
from elbowroom.trace.activity_figures import trace_figures as trace_figures
from elbowroom.trace.columns import TraceColumns
from elbowroom.trace.documents import Stat as Stat
from elbowroom.trace.documents import Sync as Sync
from elbowroom.trace.documents import TraceCheck as TraceCheck
from elbowroom.trace.documents import decode
from elbowroom.trace.exporter import Exporter, ExportRequest
from elbowroom.trace.sync_figures import sync_report

BINS = 100
MOST_BINS = 100_000
_MOST_SECONDS = 1e9


class Merged(NamedTuple):
    """What was written, and what is to be said of the trace."""

    file: Path
    check: TraceCheck
    trusted: bool


class MergeDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `trace merge --json` and `trace dag --json` print."""

    schema: str = "elbowroom/trace-merge"
    version: int = 1
    file: str
    trusted: bool
    check: TraceCheck


class Checked(NamedTuple):
    """What is to be said of a trace, and whether its times can be trusted."""

    check: TraceCheck
    trusted: bool


def merge_trace(
    directory: str | Path,
    out: str | Path,
    *,
    to: str | None = None,
    tell: Tell | None = None,
    begin_s: float | None = None,
    end_s: float | None = None,
    categories: Sequence[str] = (),
) -> Merged:
    """Merges the trace of all ranks into `out`, in the format `to` (store/exporters) or that of its ending;
    `tell` hears how much of how much is done. A timeline may show a part: from `begin_s` to `end_s`, seconds
    since the start, and some `categories`; intervals that reach out of it are cut at its bounds. What cannot
    be finished leaves no file.
    """
    exporter = exporter_of(out, to)
    check_folder(directory)
    request = ExportRequest(
        directory=str(directory),
        path=Path(out),
        begin_ns=_moment(begin_s, "from"),
        end_ns=_moment(end_s, "until"),
        categories=tuple(categories),
    )
    _check_part(exporter, request, begin_s)
    if exporter.write is not None:
        with trace_reader.columns(directory, tell, request.begin_ns, request.end_ns) as columns:
            exporter.write(columns.stream, request)
        return Merged(request.path, decode(columns.summary, TraceCheck), columns.trusted)
    words = ["merge", str(directory), "--to", exporter.name, "-o"]
    if is_stdout(request.path):
        sys.stdout.flush()
        output = trace_reader.copy([*words, "-"], sys.stdout.buffer, tell)
    else:
        output = trace_reader.read([*words, str(request.path)], tell)
    return Merged(request.path, decode(output.document, TraceCheck), output.trusted)


def _check_part(exporter: Exporter, request: ExportRequest, begin_s: float | None) -> None:
    if not request.whole and not exporter.parts:
        raise UsageError(
            "is merged as a whole",
            field="to",
            value=exporter.name,
            hint="leave --from, --until and --categories out",
        )
    if request.begin_ns is not None and request.end_ns is not None and request.begin_ns >= request.end_ns:
        raise UsageError(
            f"is not before {request.end_ns / 1e9:.9g} s",
            field="from",
            value=begin_s,
            hint="give an earlier time",
        )


def _moment(seconds: float | None, field: str) -> int | None:
    """A time since the start, ns."""
    if seconds is None:
        return None
    if not 0 <= seconds < _MOST_SECONDS:
        raise UsageError(
            "is not a time in a trace", field=field, value=seconds, hint="seconds since its start, 0 or more"
        )
    return round(seconds * 1e9)


def check_trace(directory: str | Path) -> Checked:
    """Whether a trace is whole and its times can be trusted: events kept and lost, messages that arrive
    before they left or have ends of different sizes, ranks that are missing, damage.
    """
    check_folder(directory)
    output = trace_reader.read(["check", str(directory)])
    return Checked(decode(output.document, TraceCheck), output.trusted)


def trace_stat(directory: str | Path, bins: int = BINS) -> Stat:
    """Events by type and over time (`bins` of equal length), by thread, and what recording took by rank."""
    check_folder(directory)
    _check_bins(bins)
    return decode(trace_reader.read(["stat", str(directory), "--bins", str(bins)]).document, Stat)


def _check_bins(bins: int) -> None:
    """UsageError for fewer intervals than one, or so many that their counts would fill the memory."""
    if bins < 1:
        raise UsageError("there is at least one", field="bins", value=bins, hint="leave it out")
    if bins > MOST_BINS:
        raise UsageError(
            f"there are at most {MOST_BINS}", field="bins", value=bins, hint=f"leave it out for {BINS}"
        )


def save_trace_figure(stat: Stat, file: str | Path, *, title: str = "") -> None:
    """These figures below each other, as .svg or .png."""
    save_panels(trace_figures(stat), Path(file), columns=1, title=title, shared=False)


class TraceActivity(NamedTuple):
    """What tasks, workers and messages did, and whether the trace's times can be trusted."""

    activity: Activity
    over_time: ActivityOverTime
    trusted: bool

    def save_figure(self, file: str | Path, *, title: str = "") -> None:
        """The figures below each other, as .svg or .png; UsageError where there are none."""
        figures = activity_figures(self.activity, self.over_time)
        if not figures:
            raise UsageError(
                "there is nothing to draw: the trace has no task and no message",
                field="figure",
                value=str(file),
                hint="record with the categories task and message",
            )
        save_panels(figures, Path(file), columns=1, title=title, shared=False)

    def save_tables(self, folder: str | Path) -> tuple[Path, Path]:
        """`tasks.parquet` and `communications.parquet` in that folder, which is made; UsageError where there
        is something of that name.
        """
        _new_tables(Path(folder))
        return write_tables(self.activity, Path(folder))


def _new_tables(folder: Path) -> None:
    """Makes the folder; UsageError where there is something of that name, or it cannot be made."""
    try:
        refuse_existing(folder, "tables", "name another")
    except OSError as error:
        raise UsageError(
            f"cannot be looked at ({error.strerror})", field="tables", value=str(folder), hint="name another"
        ) from error
    make_folder(folder, field="tables", hint="name another")


def trace_activity(
    directory: str | Path, bins: int = BINS, tell: Tell | None = None, tables: str | Path | None = None
) -> TraceActivity:
    """Tasks submitted, ready and running, states of workers, utilisation and imbalance in `bins` of equal
    length; durations of messages. `tables`: the folder for save_tables, made at once so that one that cannot
    be is refused before the trace is read.
    """
    check_folder(directory)
    if tables is not None:
        _new_tables(Path(tables))
    _check_bins(bins)
    with trace_reader.columns(directory, tell) as columns:
        activity = read_activity(TraceColumns(columns.stream))
    return TraceActivity(activity, over_time(activity, bins), columns.trusted)


def trace_dag(directory: str | Path, out: str | Path) -> Merged:
    """The graph of tasks and their dependencies as a DOT file."""
    return merge_trace(directory, out, to="dot")


def trace_sync(directory: str | Path) -> Sync:
    """The clocks of all ranks: comparisons, offsets, drifts and error bars over time."""
    return decode(sync_document(directory), Sync)


def sync_document(directory: str | Path) -> bytes:
    """The same as JSON."""
    check_folder(directory)
    return trace_reader.read(["sync", str(directory)]).document


def save_sync_report(directory: str | Path, file: str | Path) -> None:
    """Offsets, drifts and error bars of all clocks over time, as one HTML page."""
    write_atomically(Path(file), sync_report(sync_document(directory)).encode())


def check_folder(directory: str | Path) -> None:
    """UsageError where a directory holds no trace, or those of several jobs."""
    path = Path(directory)
    if trace_reader.has_ranks(path):
        return
    several = trace_reader.jobs(path)
    if several:
        raise UsageError(
            f"holds {len(several)} jobs: {', '.join(map(trace_reader.described, several))}",
            field="directory",
            value=str(directory),
            hint=f"name one of them, for instance {several[0]}",
        )
    raise UsageError(
        wrong_kind(path, "folder") or "holds no trace (rank-*.jsonl)",
        field="directory",
        value=str(directory),
        hint="name the directory that `elbowroom trace record -o` was given",
    )
