"""What overlap hides in a trace, and what hiding costs (docs/guide/trace-overlap.md)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path

from elbowroom.api.traces import check_folder
from elbowroom.draw.files import save_panels
from elbowroom.errors import UsageError
from elbowroom.files import write_atomically
from elbowroom.launch import trace_reader
from elbowroom.trace.documents import TraceCheck, decode
from elbowroom.trace.overlap.analysis import analyse
from elbowroom.trace.overlap.chrome import read_json
from elbowroom.trace.overlap.comparison import compare_overlaps
from elbowroom.trace.overlap.document import OverlapComparison as OverlapComparison
from elbowroom.trace.overlap.document import TraceOverlap as TraceOverlap
from elbowroom.trace.overlap.events import Events
from elbowroom.trace.overlap.figures import overlap_figures as overlap_figures
from elbowroom.trace.overlap.figures import overlap_page
from elbowroom.trace.overlap.figures import slowdown_text as slowdown_text
from elbowroom.trace.overlap.formats import Format, format_of, joined
from elbowroom.trace.overlap.nsight import read_nsight
from elbowroom.trace.overlap.otf2 import read_otf2
from elbowroom.trace.overlap.own import read_columns, read_parquet
from elbowroom.trace.overlap.recognition import Patterns
from elbowroom.trace.overlap.verdict import duration as duration
from elbowroom.trace.overlap.verdict import short_name as short_name


def trace_overlap(
    files: Sequence[str | Path] | str | Path,
    *,
    computation: Sequence[str] = (),
    communication: Sequence[str] = (),
    step: Sequence[str] = (),
    between_calls: bool = False,
) -> TraceOverlap:
    """The overlap of one trace, in one file, or in one for each rank. Names that match a regular expression
    in `computation` or `communication` are of that side, whatever the trace says, and those in `step` are
    steps. `between_calls`: the time between two communications of a thread is computation, for traces that
    record MPI only.

    UsageError for what is no trace, is damaged at its begin, has no communication or no computation, or is of
    several runs; MachineError if a reader fails. What ends early is analysed up to there, with a doubt.
    """
    names = [str(file) for file in ([files] if isinstance(files, str | Path) else files)]
    if not names:
        raise UsageError("is missing", field="trace", hint="name a trace")
    patterns = Patterns(computation=tuple(computation), communication=tuple(communication), step=tuple(step))
    patterns.compiled()
    try:
        places = [_place(Path(name)) for name in names]
        events = joined([_read(*place) for place in places], names)
        return analyse(events, names, patterns, between_calls=between_calls)
    except MemoryError as error:
        raise UsageError(
            "is larger than memory",
            field="trace",
            value=", ".join(names),
            hint="record fewer steps, or fewer kinds of events",
        ) from error


def _place(path: Path) -> tuple[Format, Path]:
    """The format of a trace, and what to read; all are known before the first is read."""
    kind, place = format_of(path)
    if kind == "folder":
        check_folder(place)
    return kind, place


def _read(kind: Format, place: Path) -> Events:
    if kind == "json":
        return read_json(place)
    if kind == "sqlite":
        return read_nsight(place)
    if kind == "parquet":
        return read_parquet(place)
    if kind == "otf2":
        with trace_reader.otf2_records(place) as stream:
            return read_otf2(stream, place)
    with trace_reader.columns(place) as columns:
        read = read_columns(columns.stream)
    doubts = () if columns.trusted else decode(columns.summary, TraceCheck).doubts
    return dataclasses.replace(read, doubts=(*read.doubts, *doubts))


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
    for file in (first, second):
        _place(Path(file))
    found = [
        trace_overlap(
            file,
            computation=computation,
            communication=communication,
            step=step,
            between_calls=between_calls,
        )
        for file in (first, second)
    ]
    return compare_overlaps(*found)


def save_trace_overlap(found: TraceOverlap, file: str | Path) -> None:
    """The figures as .svg or .png, or with verdict and table as one .html page."""
    path = Path(file)
    if path.suffix.lower() == ".html":
        write_atomically(path, overlap_page(found).encode())
        return
    save_panels(overlap_figures(found), path, columns=1, title=" ".join(found.files), shared=False)
