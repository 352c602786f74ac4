"""Profiling a program: who communicates when; what a profile says (docs/reference/profile-md)."""

from __future__ import annotations

import contextlib
import datetime
import shutil
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

import msgspec

from elbowroom.draw.files import save_panels
from elbowroom.errors import UsageError
from elbowroom.files import make_folder, write_atomically
from elbowroom.launch import profiler, recorder
from elbowroom.launch.memory_counters import Counters, Sampler, find_counters
from elbowroom.launch.nic import NicSettings, emulated
from elbowroom.launch.recorder import RecordedCommand
from elbowroom.machine.identity import read_host
from elbowroom.measure.planned_starts import PlannedStart, PlannedStarts, plan_starts
from elbowroom.profile.analysis import Analysis, analyse, summarise, write_intervals
from elbowroom.profile.calibration import load_curve
from elbowroom.profile.figures import COLUMNS, node_row, profile_figures, profile_page, sentences
from elbowroom.profile.profile import Profile, read_profile, with_ranks_apart
from elbowroom.profile.summary import (
    MANIFEST,
    MANIFEST_FILE,
    MEMORY,
    TRAFFIC_FILE,
    EmulatedNic,
    Manifest,
    MemoryTraffic,
    ProfileSummary,
)
from elbowroom.version import __version__

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


def record_profile(
    command: Sequence[str],
    directory: str | Path = "profile",
    *,
    records: int = profiler.DEFAULT_RECORDS,
    mpi: str | None = None,
    nic: NicSettings | None = None,
    stdout: IO[bytes] | int | None = None,
) -> Profiled:
    """Runs `command` with the profiler preloaded, into a new folder.

    `records`: how many each process keeps, the latest; `mpi` where the command's cannot be told; `nic`: an
    emulated one to run behind. What the program prints and its exit code stay its own. UsageError for what
    cannot be profiled, MachineError where the command cannot be started.
    """
    where = Path(directory)
    prepared = _prepare(command, where, records, mpi, nic)
    make_folder(where, field="directory", hint="name another")
    manifest = Manifest(
        elbowroom=__version__,
        command=tuple(command),
        hosts=(socket.gethostname(),),
        machine=msgspec.structs.asdict(read_host()),
        mpi="" if prepared.mpi is None else prepared.mpi.name,
        started=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        nic=_emulated_nic(prepared.env),
    )
    MANIFEST.write(where / MANIFEST_FILE, manifest, own=True)
    begun = time.monotonic()
    with contextlib.nullcontext() if nic is None else emulated(nic):
        code, traffic = _run(prepared, stdout)
    seconds = time.monotonic() - begun
    for agreement in where.glob(profiler.AGREEMENTS):
        shutil.rmtree(agreement, ignore_errors=True)
    manifest = msgspec.structs.replace(manifest, exit_code=code, **_memory(where, traffic))
    MANIFEST.write(where / MANIFEST_FILE, manifest, own=True)
    found, notes = _read(where)
    ranks = () if found is None else found.ranks
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


def plan_profile(
    command: Sequence[str],
    directory: str | Path = "profile",
    *,
    records: int = profiler.DEFAULT_RECORDS,
    mpi: str | None = None,
    nic: NicSettings | None = None,
) -> PlannedStarts:
    """What `record_profile` would build and start; errors as there."""

    def find() -> Iterator[PlannedStart]:
        prepared = _prepare(command, Path(directory), records, mpi, nic)
        yield PlannedStart(what="the program, with the profiler", commands=(prepared.line(),))

    return plan_starts(find)


def _prepare(
    command: Sequence[str], where: Path, records: int, mpi: str | None, nic: NicSettings | None
) -> RecordedCommand:
    if where.is_dir() and ((where / MANIFEST_FILE).exists() or any(where.glob(_FILES))):
        raise UsageError(
            "already holds a profile", field="directory", value=str(where), hint="name another, or remove it"
        )
    settings = profiler.Settings(directory=str(where), records=_checked_records(records))
    return profiler.prepare(command, settings, mpi, nic)


class ShownProfile(NamedTuple):
    """What a profile says; `analysis` has its network intervals, for figures and files."""

    summary: ProfileSummary
    analysis: Analysis

    def sentences(self) -> list[tuple[str, tuple[str, ...]]]:
        """In words, each sentence with its notes."""
        return sentences(self.summary)

    def table(self) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """The nodes: names of columns, and rows."""
        return COLUMNS, [node_row(node) for node in self.summary.nodes]


def show_profile(directory: str | Path, curve: str | Path | None = None) -> ShownProfile:
    """Who was on the network, how many at once, and what else the profile in this folder says. `curve`: a
    file of `profile calibrate`; without it n senders share the highest bandwidth that the profile shows.

    UsageError where it holds no profile, a damaged or newer one, or those of two jobs.
    """
    analysis = analyse(read_profile(Path(directory)), None if curve is None else load_curve(curve))
    return ShownProfile(summarise(analysis), analysis)


class NodeAnalysis(NamedTuple):
    """A profile of which the messages between nodes count, or, `inside`, those inside the only one."""

    analysis: Analysis
    inside: bool

    @property
    def hosts(self) -> tuple[str, ...]:
        """The hosts of the ranks, each once."""
        return tuple(dict.fromkeys(rank.host for rank in self.analysis.profile.ranks))


def analyse_nodes(
    directory: str | Path, curve: str | Path | None = None, *, communication_threads: bool = False
) -> NodeAnalysis:
    """The profile in this folder. Of a job on one node the messages inside it count: they are copies in its
    memory. `communication_threads`: other threads of a rank compute while its messages are pending.
    """
    profile = read_profile(Path(directory))
    inside = profile.nodes == 1
    analysis = analyse(
        with_ranks_apart(profile) if inside else profile,
        None if curve is None else load_curve(curve),
        has_communication_threads=communication_threads,
    )
    return NodeAnalysis(analysis, inside)


def save_profile(shown: ShownProfile, file: str | Path) -> None:
    """Writes the profile as a page (.html), its figures (.svg, .png) or its network intervals (.parquet)."""
    path = Path(file)
    ending = path.suffix.lower()
    if ending == ".html":
        write_atomically(path, profile_page(shown.analysis, shown.summary).encode())
    elif ending == ".parquet":
        write_intervals(shown.analysis, path)
    else:
        figures = profile_figures(shown.analysis, shown.summary)
        save_panels(figures, path, columns=1, title=shown.analysis.profile.folder, shared=False)


def _run(prepared: RecordedCommand, stdout: IO[bytes] | int | None) -> tuple[int, MemoryTraffic | str]:
    """The command's exit code, and the memory traffic of this host meanwhile, or why it is not known."""
    counters = find_counters()
    if not isinstance(counters, Counters):
        return recorder.run(prepared, stdout), counters
    with Sampler(counters) as sampler:
        code = recorder.run(prepared, stdout)
    return code, sampler.traffic(socket.gethostname()) or f"{counters.source} stopped to count"


def _memory(where: Path, traffic: MemoryTraffic | str) -> dict[str, float | str]:
    """What the manifest says of memory traffic; its samples have a file of their own."""
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
    if not any(where.glob(_FILES)):
        return None, (_nothing(where),)
    try:
        found = read_profile(where)
    except UsageError as error:
        return None, (error.sentence(),)
    return found, found.notes


def _nothing(directory: Path) -> str:
    return (
        f"No process left a profile in {directory}. Nothing is recorded of a program that never calls "
        "MPI_Init or MPI_Comm_create_from_group, whose MPI is linked statically into it, or that "
        "has or opens another MPI than its launcher's; on several hosts that folder must be the same on all."
    )
