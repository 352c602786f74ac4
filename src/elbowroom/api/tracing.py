"""Recording traces and reading them, as Python sees it (docs/trace.md)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from elbowroom.errors import MachineError, UsageError

if TYPE_CHECKING:
    from elbowroom.draw.figure import Figure
    from elbowroom.launch.recording import Adapter, Policy
    from elbowroom.launch.tracing import Tell
    from elbowroom.trace.documents import Check, Stat, Sync

FORMATS = {
    "pftrace": (".pftrace", ".perfetto-trace"),
    "json": (".json",),
    "otf2": (".otf2",),
    "paje": (".paje", ".trace"),
    "parquet": (".parquet",),
    "html": (".html",),
    "dot": (".dot", ".gv"),
}
"""What a trace can be merged into, and the endings of names that say so."""

BINS = 100
_SLOT_BYTES = 32
_NAME = r"[\w.+-]+"


class Recorded(NamedTuple):
    """A traced run: its exit code as of a shell, how long it took, what was preloaded for which MPI, what is
    in the trace (None where the program failed before there was one), and what else is to be said.
    """

    directory: Path
    exit_code: int
    seconds: float
    adapters: tuple[str, ...]
    mpi: str | None
    buffer: int
    stat: Stat | None
    check: Check | None
    notes: tuple[str, ...]

    @property
    def capacity(self) -> int:
        """Events that a thread's ring holds (a power of two)."""
        return 1 << ((self.buffer // _SLOT_BYTES).bit_length() - 1)


class Merged(NamedTuple):
    """What was written, and what is to be said of the trace."""

    file: Path
    check: Check
    trusted: bool


class Checked(NamedTuple):
    """What is to be said of a trace, and whether its times can be trusted."""

    check: Check
    trusted: bool


def record_trace(
    command: Sequence[str],
    directory: str | Path = "trace",
    *,
    categories: Sequence[str] | None = None,
    buffer: int | str = "4MiB",
    policy: Policy = "stop",
    core: int | None = None,
    sync_seconds: float = 10.0,
    adapters: Sequence[Adapter] | None = None,
    mpi: str | None = None,
    stdout: IO[bytes] | int | None = None,
) -> Recorded:
    """Runs `command` with the recorder preloaded, and reads what it recorded.

    `categories` (default: all), `buffer` bytes of events for each thread, `policy` where that is full; `core`
    is the draining thread's; `adapters` by default those that fit; `mpi` where the command's cannot be told.
    UsageError for what cannot be asked, MachineError where nothing was recorded.
    """
    from elbowroom.launch import build, recording
    from elbowroom.plan.sizes import parse_size

    where = Path(directory)
    if recorded(where):
        raise UsageError(
            "has a trace already", field="directory", value=str(where), mend="name another, or remove it"
        )
    settings = recording.Settings(
        directory=str(where),
        job=secrets.randbits(63) + 1,
        categories=None if categories is None else _names(categories),
        bytes=parse_size(buffer, "buffer"),
        policy=_policy(policy, core),
        core=core,
        sync_seconds=_seconds(sync_seconds),
    )
    prepared = recording.prepare(command, settings, adapters=_adapters(adapters), mpi=mpi)
    build.trace_reader()  # before the program runs, which may take long
    _make(where)
    begun = time.monotonic()
    code = recording.run(prepared, stdout)
    seconds = time.monotonic() - begun
    notes, found, checked = list(prepared.notes), None, None
    if recorded(where):
        found, checked = trace_stat(where), check_trace(where).check
        notes += _unknown(settings.categories, found)
    elif code == 0:
        raise _nothing(where, command)
    else:
        notes.append(f"No process recorded anything in {where}.")
    return Recorded(
        directory=where,
        exit_code=code,
        seconds=seconds,
        adapters=prepared.adapters,
        mpi=None if prepared.mpi is None else prepared.mpi.name,
        buffer=settings.bytes,
        stat=found,
        check=checked,
        notes=tuple(notes),
    )


def recorded(directory: Path) -> bool:
    """Whether some process has recorded into this directory."""
    return any(directory.glob("rank-*.jsonl"))


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
    """Merges the trace of all ranks into `out`, in the format `to` (one of FORMATS) or that of its ending;
    `tell` hears how much of how much is done. A timeline may show a part: from `begin_s` to `end_s`, seconds
    since the start, and some `categories`. What cannot be finished leaves no file.
    """
    from elbowroom.launch import tracing
    from elbowroom.trace.documents import Check, decode

    path, kind = Path(out), format_of(out, to)
    _there(directory)
    part = (begin_s, end_s, tuple(categories))
    if part != (None, None, ()) and kind != "html":
        raise UsageError(
            "is merged as a whole", field="to", value=kind, mend="leave --from, --until and --categories out"
        )
    if kind in ("parquet", "html"):
        return _from_columns(directory, path, kind, tell, part)
    said = tracing.read(["merge", str(directory), "--to", kind, "-o", str(path)], tell)
    return Merged(path, decode(said.document, Check), said.trusted)


def format_of(out: str | Path, to: str | None = None) -> str:
    """The format that was asked for, else that of the ending; UsageError where it is none."""
    if to is not None:
        if to not in FORMATS:
            raise UsageError("no such format", field="to", value=to, mend=f"one of: {', '.join(FORMATS)}")
        return to
    ending = Path(out).suffix.lower()
    for kind, endings in FORMATS.items():
        if ending in endings:
            return kind
    raise UsageError(
        "its ending names no format",
        field="out",
        value=str(out),
        mend=f"end it in {', '.join(endings[0] for endings in FORMATS.values())}, or give --to FORMAT",
    )


def _from_columns(
    directory: str | Path,
    path: Path,
    kind: str,
    tell: Tell | None,
    part: tuple[float | None, float | None, tuple[str, ...]],
) -> Merged:
    from elbowroom.launch import tracing
    from elbowroom.trace.documents import Check, decode

    with tracing.columns(directory, tell) as columns:
        if kind == "parquet":
            from elbowroom.store.trace_parquet import write_parquet

            write_parquet(columns.stream, path)
        else:
            from elbowroom.store.files import write_atomically
            from elbowroom.trace.timeline import timeline_page

            begin, end = (None if moment is None else round(moment * 1e9) for moment in part[:2])
            page = timeline_page(
                columns.stream, str(directory), begin_ns=begin, end_ns=end, categories=part[2]
            )
            write_atomically(path, page.encode())
    return Merged(path, decode(columns.summary, Check), columns.trusted)


def check_trace(directory: str | Path) -> Checked:
    """Whether a trace is whole and its times can be trusted: events kept and lost, messages that arrive
    before they left, ranks that are missing, damage.
    """
    from elbowroom.launch import tracing
    from elbowroom.trace.documents import Check, decode

    _there(directory)
    said = tracing.read(["check", str(directory)])
    return Checked(decode(said.document, Check), said.trusted)


def trace_stat(directory: str | Path, bins: int = BINS) -> Stat:
    """Events by type and over time (`bins` of equal length), by thread, and what recording took by rank."""
    from elbowroom.launch import tracing
    from elbowroom.trace.documents import Stat, decode

    _there(directory)
    if bins < 1:
        raise UsageError("there is at least one", field="bins", value=bins, mend="leave it out")
    return decode(tracing.read(["stat", str(directory), "--bins", str(bins)]).document, Stat)


def trace_figures(stat: Stat) -> list[Figure]:
    """Numbers of events by type, over time, and over time by type (thesis, Figs. 3.5 to 3.7)."""
    from elbowroom.trace.stat_figures import figures

    return figures(stat)


def save_trace_figure(stat: Stat, file: str | Path, *, title: str = "") -> None:
    """These figures below each other, as .svg or .png."""
    from elbowroom.draw.files import save_panels

    save_panels(trace_figures(stat), Path(file), columns=1, title=title, shared=False)


def trace_dag(directory: str | Path, out: str | Path) -> Merged:
    """The graph of tasks and their dependencies as a DOT file."""
    return merge_trace(directory, out, to="dot")


def trace_sync(directory: str | Path) -> Sync:
    """The clocks of all ranks: comparisons, offsets, drifts and error bars over time."""
    from elbowroom.trace.documents import Sync, decode

    return decode(sync_document(directory), Sync)


def sync_document(directory: str | Path) -> bytes:
    """The same as JSON."""
    from elbowroom.launch import tracing

    _there(directory)
    return tracing.read(["sync", str(directory)]).document


def save_sync_report(directory: str | Path, file: str | Path) -> None:
    """Offsets, drifts and error bars of all clocks over time, as one HTML page."""
    from elbowroom.store.files import write_atomically
    from elbowroom.trace.sync_figures import sync_report

    write_atomically(Path(file), sync_report(sync_document(directory)).encode())


def _there(directory: str | Path) -> None:
    if not recorded(Path(directory)):
        raise UsageError(
            "holds no trace (rank-*.jsonl)" if Path(directory).is_dir() else "is no directory",
            field="directory",
            value=str(directory),
            mend="name the directory that `elbowroom trace record -o` was given",
        )


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot be made ({error.strerror})", field="directory", value=str(directory), mend="name another"
        ) from error


def _names(categories: Sequence[str]) -> tuple[str, ...]:
    """Names of categories, which any program may have others of; those that nobody can have are refused."""
    import re

    if not categories:
        raise UsageError("names none", field="categories", mend="leave it out for all")
    for name in categories:
        if not re.fullmatch(_NAME, name):
            raise UsageError(
                "is no name of a category",
                field="categories",
                value=name,
                mend="for instance mpi,message,task",
            )
    return tuple(dict.fromkeys(categories))


def _policy(policy: Policy, core: int | None) -> Policy:
    from elbowroom.launch.recording import POLICIES

    if policy not in POLICIES:
        raise UsageError(
            "no such policy", field="policy", value=policy, mend=f"one of: {', '.join(POLICIES)}"
        )
    if core is not None and policy != "drain":
        raise UsageError(
            "is the draining thread's", field="core", value=core, mend="leave it out, or give --policy drain"
        )
    if core is not None and core < 0:
        raise UsageError("is no core", field="core", value=core, mend="cores count from 0")
    return policy


def _adapters(adapters: Sequence[Adapter] | None) -> Sequence[Adapter] | None:
    from elbowroom.launch.recording import ADAPTERS

    for name in adapters or ():
        if name not in ADAPTERS:
            raise UsageError(
                "no such adapter", field="adapters", value=name, mend=f"some of: {', '.join(ADAPTERS)}"
            )
    return adapters


def _seconds(seconds: float) -> float:
    if not 0 <= seconds < float("inf"):
        raise UsageError("is no time", field="sync", value=seconds, mend="seconds, 0 for begin and end only")
    return seconds


def _unknown(categories: Sequence[str] | None, stat: Stat) -> list[str]:
    """What is to be said of categories that no process has."""
    there = sorted({one.category for one in stat.types})
    absent = [name for name in categories or () if name not in there]
    if not absent:
        return []
    has = f"there are {', '.join(there)}" if there else "there are none"
    return [f"No process has a category {' or '.join(map(repr, absent))}: {has}."]


def _nothing(directory: Path, command: Sequence[str]) -> MachineError:
    return MachineError(
        "recorded nothing: no process started the recorder",
        field="command",
        value=" ".join(command),
        mend="a program that is linked statically, or calls neither MPI_Init nor a task runtime, is not "
        f"heard; on several hosts {directory} must be the same folder on all (docs/trace.md)",
    )
