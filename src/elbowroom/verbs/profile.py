"""`elbowroom profile record` and `show`: who communicates when (docs/reference/profile-quantities.md)."""

from __future__ import annotations

import contextlib
import datetime
import resource
import shutil
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

import msgspec

from elbowroom import display
from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import print_all, print_wrapped
from elbowroom.cli.options import Output
from elbowroom.cli.tables import new_table, print_table
from elbowroom.draw.files import save_panels
from elbowroom.errors import UsageError
from elbowroom.files import make_folder, write_atomically
from elbowroom.launch import profiler, recorder
from elbowroom.launch.nic import NicSettings, emulated
from elbowroom.launch.planned_starts import PlannedStart
from elbowroom.launch.recorder import RecordedCommand
from elbowroom.machine.host_use import cpu_times, host_use
from elbowroom.machine.identity import read_host
from elbowroom.quantities import number, plural
from elbowroom.verbs.declaration import (
    Verb,
    argument,
    command_argument,
    dry_run_option,
    function_of,
    included,
    option,
)
from elbowroom.verbs.nic import EmulatedNicOptions as NicOptions
from elbowroom.version import __version__

if TYPE_CHECKING:
    from elbowroom.frames import Frame
    from elbowroom.profile.analysis import Analysis
    from elbowroom.profile.profile import Profile
    from elbowroom.profile.summary import EmulatedNic, MemoryTraffic, ProfileSummary

_FILES = "rank-*.profile"


class ProfileRecordDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `profile record --json` prints. `ranks`: how many left a file; `partial`: those of them that never
    called MPI_Finalize; `lost`: records that are not kept.
    """

    schema: str = "elbowroom/profile-record"
    version: int = 1
    directory: str
    exit_code: int
    seconds: float
    mpi: str | None
    ranks: int
    partial: tuple[int, ...]
    calls: int
    lost: int
    notes: tuple[str, ...]


class Profiled(NamedTuple):
    """A profiled run: where its profile is, how it ended and what it left."""

    directory: Path
    document: ProfileRecordDocument

    def __repr__(self) -> str:
        return f"Profiled({str(self.directory)!r}, ranks={self.document.ranks})"

    def __str__(self) -> str:
        return display.text(self)

    def _repr_html_(self) -> str:
        return display.html(self)


class RecordProfile(Verb):
    """Run CMD and profile its MPI calls; `record` may be left out.

    The exit code is that of CMD. The program is not recompiled.
    """

    name = "profile record"

    command: Sequence[str] = command_argument()
    out: Path | str = option(
        "New folder for the profile.", "P", spelled="-o --out", default="profile", positional=True
    )
    records: int = option(
        "Number of the latest records that each process keeps (32 B each).", default=1 << 20
    )
    mpi: str | None = option("MPI of the program; default: that of its launcher.", "PREFIX")
    emulated: NicOptions = included(NicOptions)
    dry_run: bool = dry_run_option()
    stdout: IO[bytes] | int | None = None

    def do(self) -> Profiled:
        """Runs `command` with the profiler preloaded, into a new folder.

        `records`: how many each process keeps, the latest; `mpi` where the command's cannot be told; `nic`:
        an emulated one to run behind. What the program prints and its exit code stay its own. UsageError for
        what cannot be profiled, MachineError where the command cannot be started.
        """
        from elbowroom.profile.summary import MANIFEST, MANIFEST_FILE, ProfileManifest

        where, nic = Path(self.out), self.emulated.settings()
        prepared = self._prepared(where, nic)
        make_folder(where, field="directory", hint="name another")
        manifest = ProfileManifest(
            elbowroom=__version__,
            command=tuple(self.command),
            hosts=(socket.gethostname(),),
            machine=msgspec.structs.asdict(read_host()),
            mpi="" if prepared.mpi is None else prepared.mpi.name,
            started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            nic=_emulated_nic(prepared.env),
            own_functions=recorder.own_mpi_functions(self.command),
        )
        MANIFEST.write(where / MANIFEST_FILE, manifest, own=True)
        begin, before, own = time.monotonic(), cpu_times(), _children_s()
        with contextlib.nullcontext() if nic is None else emulated(nic):
            code, traffic = _run(prepared, self.stdout)
        seconds = time.monotonic() - begin
        use = host_use(before, seconds, _children_s() - own)
        for agreement in where.glob(profiler.AGREEMENTS):
            shutil.rmtree(agreement, ignore_errors=True)
        manifest = msgspec.structs.replace(manifest, exit_code=code, use=use, **_memory(where, traffic))
        MANIFEST.write(where / MANIFEST_FILE, manifest, own=True)
        profile, notes = _read(where)
        ranks = () if profile is None else profile.ranks
        if ranks:
            hosts = tuple(dict.fromkeys(rank.host for rank in ranks))
            MANIFEST.write(where / MANIFEST_FILE, msgspec.structs.replace(manifest, hosts=hosts), own=True)
        document = ProfileRecordDocument(
            directory=str(where),
            exit_code=code,
            seconds=seconds,
            mpi=manifest.mpi or None,
            ranks=len(ranks),
            partial=tuple(rank.rank for rank in ranks if rank.end_ns is None),
            calls=sum(rank.calls for rank in ranks),
            lost=sum(rank.lost for rank in ranks),
            notes=notes,
        )
        return Profiled(where, document)

    def planned_starts(self) -> Iterator[PlannedStart]:
        prepared = self._prepared(Path(self.out), self.emulated.settings())
        yield PlannedStart(what="the program, with the profiler", commands=(prepared.line(),))

    def _prepared(self, where: Path, nic: NicSettings | None) -> RecordedCommand:
        from elbowroom.profile.summary import MANIFEST_FILE

        if where.is_dir() and ((where / MANIFEST_FILE).exists() or any(where.glob(_FILES))):
            raise UsageError(
                "already holds a profile",
                field="directory",
                value=str(where),
                hint="name another, or remove it",
            )
        settings = profiler.ProfilerSettings(directory=str(where), records=_checked_records(self.records))
        return profiler.prepare(self.command, settings, self.mpi, nic)

    def document(self, result: Profiled) -> ProfileRecordDocument:
        return result.document

    def print(self, result: Profiled) -> None:
        """On stderr: stdout is the program's."""
        document = result.document
        mpi = f", {document.mpi}" if document.mpi else ""
        print_wrapped(
            f"{result.directory}: {number(document.seconds, 3)} s, {document.ranks} ranks, "
            f"{document.calls} calls{mpi}",
            style="bold",
        )
        print_all(document.notes, style="yellow")

    def answer(self, result: Profiled) -> Answer:
        """What was profiled, whether all of it, and the diagnosis of it."""
        document = result.document
        failed = f" The program ended with exit code {document.exit_code}." if document.exit_code else ""
        if not document.ranks:
            where = command_line("help", "profile")
            return Answer(f"Nothing was profiled.{failed}", " ".join(document.notes[:1]), where, "yellow")
        kept = f"{document.lost} of its records were lost" if document.lost else "no record was lost"
        partial = f", and {plural(len(document.partial), 'rank')} never ended MPI" if document.partial else ""
        return Answer(
            f"{plural(document.ranks, 'rank')} made {document.calls} MPI calls in "
            f"{number(document.seconds, 3)} s.{failed}",
            f"The profile is in {result.directory}; {kept}{partial}.",
            command_line("diagnose", "--profile", result.directory),
            "yellow" if document.exit_code else "",
        )

    def stdout_is_taken(self, as_json: bool) -> bool:
        """By the program, whose output goes to stderr beside a document."""
        return not as_json

    def exit_code(self, result: Profiled) -> int:
        return result.document.exit_code


record_profile = function_of(RecordProfile, "record_profile")


def _run(prepared: RecordedCommand, stdout: IO[bytes] | int | None) -> tuple[int, MemoryTraffic | str]:
    """The command's exit code, and the memory traffic of this host meanwhile, or why it is not known."""
    from elbowroom.launch.memory_counters import Counters, Sampler, find_counters

    counters = find_counters()
    if not isinstance(counters, Counters):
        return recorder.run(prepared, stdout), counters
    with Sampler(counters) as sampler:
        code = recorder.run(prepared, stdout)
    return code, sampler.traffic(socket.gethostname()) or f"{counters.source} stopped to count"


def _children_s() -> float:
    """CPU seconds of the processes that this one started and that ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _memory(where: Path, traffic: MemoryTraffic | str) -> dict[str, float | str]:
    """What the manifest says of memory traffic; its samples have a file of their own."""
    from elbowroom.profile.summary import MEMORY, TRAFFIC_FILE

    if isinstance(traffic, str):
        return {"memory_reason": traffic}
    MEMORY.write(where / TRAFFIC_FILE, traffic, own=True)
    return {"memory_bytes": traffic.total, "memory_reason": ""}


def _checked_records(records: int) -> int:
    """A power of two."""
    if not 2 <= records <= profiler.MOST_RECORDS:
        raise UsageError(
            f"is not from 2 to {profiler.MOST_RECORDS}",
            field="records",
            value=records,
            hint="leave it out for 1,048,576",
        )
    return 1 << (records - 1).bit_length()


def _emulated_nic(env: dict[str, str]) -> EmulatedNic | None:
    """What the environment says of an emulated NIC."""
    from elbowroom.profile.summary import EmulatedNic

    name, ranks = env.get("ELBOW_NIC_NAME", ""), env.get("ELBOW_NIC_RANKS_PER_NODE", "")
    if not name and not ranks:
        return None
    try:
        bandwidth = float(env["ELBOW_NIC_BANDWIDTH"])
    except (KeyError, ValueError):
        bandwidth = None
    nodes = env.get("ELBOW_NIC_NODES", "").split(",")
    return EmulatedNic(
        name=name,
        bandwidth=bandwidth,
        ranks_per_node=int(ranks) if ranks.isdecimal() else None,
        nodes=tuple(int(node) for node in nodes if node.isdecimal()),
    )


def _read(where: Path) -> tuple[Profile | None, tuple[str, ...]]:
    """What the processes left, and notes; what cannot be read does not change how the command ends."""
    from elbowroom.profile.profile import read_profile

    if not any(where.glob(_FILES)):
        return None, (_nothing(where),)
    try:
        profile = read_profile(where)
    except UsageError as error:
        return None, (error.sentence(),)
    return profile, profile.notes


def _nothing(directory: Path) -> str:
    return (
        f"No process left a profile in {directory}. Nothing is recorded of a program that never calls "
        "MPI_Init or MPI_Comm_create_from_group, whose MPI is linked statically into it, or that "
        "has or opens another MPI than its launcher's; on several hosts that folder must be the same on all."
    )


class ShownProfile(NamedTuple):
    """What a profile says; `analysis` has its network intervals, for figures and files; `together`: that of a
    job on the same nodes, whose network is drawn with it.
    """

    summary: ProfileSummary
    analysis: Analysis
    together: Analysis | None = None

    def __repr__(self) -> str:
        return f"ShownProfile({str(self.analysis.profile.folder)!r}, ranks={self.summary.ranks})"

    def __str__(self) -> str:
        return display.text(self)

    def _repr_html_(self) -> str:
        return display.html(self)

    def sentences(self) -> list[tuple[str, tuple[str, ...]]]:
        """In words, each sentence with its notes."""
        from elbowroom.profile.figures import sentences

        return sentences(self.summary)

    def intervals(self) -> Frame:
        """When each message was on the network, a row for each of its ends."""
        from elbowroom.profile.analysis import interval_frame

        return interval_frame(self.analysis)

    def windows(self) -> Frame:
        """The nodes over time: bytes and ranks on the network in each window."""
        from elbowroom.profile.analysis import window_frame

        return window_frame(self.analysis)

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The nodes: names of columns, and rows."""
        from elbowroom.profile.figures import COLUMNS, node_row

        return COLUMNS, [node_row(node) for node in self.summary.nodes]

    def rank_table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The ranks, those that send most first: names of columns, and rows."""
        from elbowroom.profile.figures import RANK_COLUMNS, rank_rows

        return RANK_COLUMNS, rank_rows(self.summary)


class ShowProfile(Verb):
    """Show how each node used its network, over time."""

    name = "profile show"
    has_tables = True
    saves = True

    directory: Path | str = argument(metavar="P")
    curve: Path | str | None = option(
        "NIC: a file that `nic measure -o` wrote; default: from the profile.", positional=True
    )
    out: Path | str | None = option(
        "Write a page (.html), figures (.svg, .png) or the network intervals (.parquet).",
        "FILE",
        spelled="-o --out",
        type=Output(".html", ".svg", ".png", ".parquet"),
    )
    together: Path | str | None = option(
        "With -o .svg or .png: draw this profile of a job on the same nodes with it.",
        "Q",
        only_with="out FILE.svg",
    )

    def do(self) -> ShownProfile:
        """Who was on the network, how many at once, and what else the profile in this folder says. `curve`: a
        file of `nic measure`; without it n senders share the highest bandwidth that the profile shows.
        `together`: the profile of a job that ran on the same nodes at the same time.

        UsageError where it holds no profile, a damaged or newer one, or those of two jobs.
        """
        from elbowroom.profile.analysis import analyse, summarise
        from elbowroom.profile.curve import load_curve
        from elbowroom.profile.profile import read_profile

        curve = None if self.curve is None else load_curve(self.curve)
        analysis, *others = (
            analyse(read_profile(Path(folder)), curve) for folder in (self.directory, self.together) if folder
        )
        if others and Path(str(self.out)).suffix.lower() not in (".svg", ".png"):
            hint = "give -o FILE.svg"
            raise UsageError("is only drawn as .svg or .png", field="out", value=str(self.out), hint=hint)
        return ShownProfile(summarise(analysis), analysis, *others)

    def document(self, result: ShownProfile) -> ProfileSummary:
        return result.summary

    def print(self, result: ShownProfile) -> None:
        """Sentences with notes, then a line for each node, and for each rank, those that send most first."""
        sentences = result.sentences()
        print_all((note for _, notes in sentences for note in notes), style="yellow")
        print_all(sentence for sentence, _ in sentences[2:])
        for columns, rows in (result.table(), result.rank_table()):
            first, *others = (name.replace(" (", "\n(") for name in columns)
            table = new_table(first, *(f">{name}" for name in others))
            for row in rows:
                table.add_row(*row)
            print_table(table)
        if self.out is not None:
            print_wrapped(f"written: {self.out}")

    def answer(self, result: ShownProfile) -> Answer:
        """What the ranks did, and how much of it overlapped."""
        (first, _), (overlap, _), *_ = result.sentences()
        return Answer(first, overlap, command_line("diagnose", "--profile", self.directory))


show_profile = function_of(ShowProfile, "show_profile")


def save(result: ShownProfile, path: Path) -> None:
    """Writes the profile as a page (.html), its figures (.svg, .png) or its network intervals (.parquet)."""
    from elbowroom.profile.analysis import interval_frame
    from elbowroom.profile.figures import profile_figures, profile_page, together_figures

    ending = path.suffix.lower()
    if result.together is not None:
        both = (result.analysis, result.together)
        jobs = {Path(one.profile.folder).name: one for one in both}
        if len(jobs) < len(both):
            jobs = {one.profile.folder: one for one in both}
        save_panels(together_figures(jobs), path, columns=1, title="Two jobs on the same nodes", shared=False)
    elif ending == ".html":
        write_atomically(path, profile_page(result.analysis, result.summary).encode())
    elif ending == ".parquet":
        interval_frame(result.analysis).write(path)
    else:
        figures = profile_figures(result.analysis, result.summary)
        save_panels(figures, path, columns=1, title=result.analysis.profile.folder, shared=False)
