"""A profile folder as a whole: the records of all its ranks on one time, and what is missing, in sentences.

Times of ranks are ns on their host's monotonic clock. They become ns since the first rank's start: the offset
between hosts is that of their wall clocks, so it is as good as these agree. What is compared inside one node
does not depend on it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.errors import UsageError
from elbowroom.files import wrong_kind
from elbowroom.profile.cores import sharing
from elbowroom.profile.rank_file import (
    BARRIER,
    BETWEEN,
    CALL,
    COLLECTIVE,
    ONE_SIDED,
    OPEN,
    POSTED_COLLECTIVE,
    POSTED_RECEIVE,
    RECEIVE,
    SENDING,
    SPAN,
    RankFile,
    Records,
    read_rank,
    release,
)
from elbowroom.profile.rank_tables import Site
from elbowroom.profile.scheduler import SchedulerSamples, samples_of_ranks
from elbowroom.profile.summary import (
    MANIFEST,
    MANIFEST_FILE,
    MEMORY,
    TRAFFIC_FILE,
    MemoryTraffic,
    ProfileManifest,
)

_NAME = re.compile(r"rank-(\d{6,})\.profile")
_SLACK_NS = 60_000_000_000
"""How far wall clocks of the hosts of one job may be apart."""
_HINT = "profile the program again, into a new folder"

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class MpiEvents(msgspec.Struct, frozen=True, kw_only=True):
    """Records of all ranks, N of each field, ordered by rank and begin; times in ns since the job's start.

    `peer` and `members` of a collective are its root and the size of its communicator, -1 where not known.
    `call` is an index in `names`, `site` one in `sites`; `site` is None if a rank's file has no sites.
    """

    names: tuple[str, ...]
    sites: tuple[Site, ...] = ()
    rank: Ints
    begin: Ints
    end: Ints
    bytes: Ints
    peer: Ints
    members: Ints
    call: Ints
    kind: Ints
    flags: Ints
    site: Ints | None = None

    @property
    def between(self) -> Bools:
        """Whether the peer is on another node, or the communicator spans nodes."""
        return (self.flags & BETWEEN) > 0

    @property
    def is_call(self) -> Bools:
        """Whether the interval is time inside MPI."""
        return (self.flags & CALL) > 0

    @property
    def is_span(self) -> Bools:
        """Whether the interval is between post and completion."""
        return (self.flags & SPAN) > 0

    @property
    def is_open(self) -> Bools:
        """Whether its completion is not known."""
        return (self.flags & OPEN) > 0

    def part(self, which: Bools | Ints | slice) -> MpiEvents:
        """Some of the records."""
        fields: dict[str, Any] = {name: getattr(self, name)[which] for name in FIELDS}
        site = None if self.site is None else self.site[which]
        return MpiEvents(names=self.names, sites=self.sites, site=site, **fields)

    def of_rank(self, rank: int) -> MpiEvents:
        """The records of one rank."""
        first, last = np.searchsorted(self.rank, (rank, rank + 1))
        return self.part(slice(int(first), int(last)))


FIELDS = ("rank", "begin", "end", "bytes", "peer", "members", "call", "kind", "flags")


class Profile(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A job. `ranks`: those that are there, by rank; `size`: how many the job had; `nodes_of`: (size,) node
    of each rank; `names`: of the nodes; `duration`: ns from the first rank's start to the last one's end;
    `notes`: what is missing or partial, in sentences; `scheduled`: None if no rank's file has samples;
    `recorded`: of a profile with ranks apart, the one that it comes from.
    """

    folder: str
    manifest: ProfileManifest | None
    ranks: tuple[RankFile, ...]
    size: int
    nodes_of: Ints
    names: tuple[str, ...]
    duration: int
    notes: tuple[str, ...]
    memory: MemoryTraffic | None = None
    scheduled: SchedulerSamples | None = None
    recorded: Profile | None = None

    @property
    def nodes(self) -> int:
        """How many nodes the job had."""
        return len(self.names)

    @functools.cached_property
    def events(self) -> MpiEvents:
        """The records of all ranks, which take memory: read when they are needed."""
        if self.recorded is not None:
            return _apart(self.recorded.events, self.size)
        return _events(self.ranks, self.ranks)

    def of_rank(self, rank: int) -> MpiEvents:
        """The records of one rank, without reading those of the others."""
        if "events" in self.__dict__ or self.recorded is not None:
            return self.events.of_rank(rank)
        return _events([own for own in self.ranks if own.rank == rank], self.ranks)


def with_ranks_apart(profile: Profile) -> Profile:
    """The profile as if each rank were a node of its own: what ranks send each other inside a node counts as
    sent between nodes. For a job on one node, whose messages are copies in its memory.
    """
    return msgspec.structs.replace(
        profile,
        recorded=profile,
        nodes_of=np.arange(profile.size),
        ranks=tuple(msgspec.structs.replace(rank, node=rank.rank) for rank in profile.ranks),
        names=tuple(profile.names[node] for node in profile.nodes_of),
    )


def _apart(events: MpiEvents, size: int) -> MpiEvents:
    collective = np.isin(events.kind, (COLLECTIVE, POSTED_COLLECTIVE, BARRIER))
    alone = np.where(collective, events.members == 1, (events.peer < 0) | (events.peer == events.rank))
    flags = np.where(alone | (size == 1), events.flags & ~BETWEEN, events.flags | BETWEEN)
    return msgspec.structs.replace(events, flags=flags)


def read_profile(folder: Path) -> Profile:
    """The profile in a folder.

    UsageError where it holds no profile, a damaged or newer file, or ranks of several jobs; what is missing
    otherwise is in `notes`.
    """
    manifest = _manifest(folder)
    ranks = _ranks(folder, manifest)
    _check_one_job(folder, ranks)
    ranks = _with_nodes(folder, ranks)
    start = clock_starts(ranks)
    first = ranks[0]
    return Profile(
        folder=str(folder),
        manifest=manifest,
        ranks=ranks,
        size=first.size,
        nodes_of=first.nodes_of.astype(np.int64),
        names=_node_names(ranks, first.nodes),
        duration=max(1, *_ends(ranks, start)),
        notes=(*(manifest.notes if manifest else ()), *_notes(ranks, manifest)),
        memory=_memory(folder),
        scheduled=samples_of_ranks({rank.rank: _samples(rank) for rank in ranks}, start),
    )


def _memory(folder: Path) -> MemoryTraffic | None:
    path = folder / TRAFFIC_FILE
    return MEMORY.read(path) if path.exists() else None


def _manifest(folder: Path) -> ProfileManifest | None:
    if what := wrong_kind(folder, "folder"):
        raise UsageError(
            what,
            field="profile",
            value=str(folder),
            hint="name a folder that `profile -o` wrote",
        )
    path = folder / MANIFEST_FILE
    return MANIFEST.read(path) if path.exists() else None


def _ranks(folder: Path, manifest: ProfileManifest | None) -> tuple[RankFile, ...]:
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise UsageError(
            f"cannot be read ({error.strerror})", field="profile", value=str(folder), hint="check its rights"
        ) from error
    ranks = []
    for name in names:
        match = _NAME.fullmatch(name)
        if match:
            rank = read_rank(folder / name)
            release(rank.kept)
            if rank.rank != int(match[1]):
                raise UsageError(
                    f"is the file of rank {rank.rank}",
                    field="profile",
                    value=rank.path,
                    hint="rename it back",
                )
            ranks.append(rank)
    if not ranks:
        raise _no_ranks(folder, manifest)
    return tuple(ranks)


_INIT = ("mpi_init", "mpi_init_thread")


def _no_ranks(folder: Path, manifest: ProfileManifest | None) -> UsageError:
    if manifest is None:
        return UsageError(
            "holds no profile",
            field="profile",
            value=str(folder),
            hint="name a folder that `profile -o` wrote",
        )
    own = [name for name in manifest.own_functions if name.lower().rstrip("_") in _INIT]
    if own:
        return UsageError(
            f"holds no file of a rank: the program defines {own[0]} itself, as a PMPI tool that is linked in "
            "does, and nothing that is preloaded sees such calls",
            field="profile",
            value=str(folder),
            hint="link the program without the tool, or preload the tool",
        )
    return UsageError(
        "holds no file of a rank: the program never called MPI_Init through a shared MPI library",
        field="profile",
        value=str(folder),
        hint="profile a program that is dynamically linked with the MPI that elbowroom was built for",
    )


def _check_one_job(folder: Path, ranks: Sequence[RankFile]) -> None:
    """Ranks of one job agree in its size, its nodes and its MPI, and all ran at some time together."""
    first = ranks[0]
    for other in ranks[1:]:
        if other.size != first.size:
            raise _two_jobs(folder, first, other, "have different sizes")
        if other.mpi != first.mpi:
            raise _two_jobs(folder, first, other, "use different MPI libraries")
    last = max(ranks, key=lambda rank: rank.start_wall_ns)
    for other in ranks:
        if (
            other.end_ns
            and other.start_wall_ns + other.end_ns - other.start_ns + _SLACK_NS < last.start_wall_ns
        ):
            raise _two_jobs(folder, other, last, "never ran at the same time")


def _with_nodes(folder: Path, ranks: tuple[RankFile, ...]) -> tuple[RankFile, ...]:
    """The ranks with one table of nodes. Hosts that recorded into folders of their own know only which ranks
    are on their node: these tables are joined, and ranks that are in none of them have a node of their own.
    """
    first = ranks[0]
    if all(np.array_equal(other.nodes_of, first.nodes_of) for other in ranks):
        return ranks
    leaders = np.full(first.size, first.size)  # the lowest rank of each rank's node
    for rank in ranks:
        here = np.flatnonzero(rank.nodes_of == rank.node)
        known = leaders[here][leaders[here] < first.size]
        if len(known) not in (0, len(here)) or (known != here[0]).any():
            raise _two_jobs(folder, first, rank, "have different nodes")
        leaders[here] = here[0]
    numbers, nodes_of = np.unique(leaders, return_inverse=True)
    return tuple(
        msgspec.structs.replace(
            rank,
            node=int(nodes_of[rank.rank]),
            nodes=len(numbers),
            nodes_of=nodes_of.astype(np.int32),
        )
        for rank in ranks
    )


def _two_jobs(folder: Path, a: RankFile, b: RankFile, why: str) -> UsageError:
    return UsageError(
        f"holds ranks of two jobs: ranks {a.rank} and {b.rank} {why}",
        field="profile",
        value=str(folder),
        hint=_HINT,
    )


def clock_starts(ranks: Sequence[RankFile]) -> dict[int, int]:
    """What to subtract from the times of each rank: its host's monotonic clock at the job's start."""
    walls: dict[str, list[int]] = {}
    for rank in ranks:
        walls.setdefault(rank.host, []).append(rank.start_wall_ns - rank.start_ns)
    offsets = {host: sorted(values)[len(values) // 2] for host, values in walls.items()}
    start = min(rank.start_ns + offsets[rank.host] for rank in ranks)
    return {rank.rank: start - offsets[rank.host] for rank in ranks}


def _ends(ranks: Sequence[RankFile], start: dict[int, int]) -> list[int]:
    """When each rank ended, or its last record."""
    return [max(rank.end_ns or rank.start_ns, rank.totals.last) - start[rank.rank] for rank in ranks]


def _samples(rank: RankFile) -> Records | None:
    samples = rank.samples
    release(rank.kept)
    return samples


def _events(ranks: Sequence[RankFile], job: Sequence[RankFile]) -> MpiEvents:
    """The records of some ranks of a job."""
    start = clock_starts(job)
    names = tuple(dict.fromkeys(kind.name for rank in job for kind in rank.call_kinds))
    number = {name: at for at, name in enumerate(names)}
    sites = tuple(dict.fromkeys(site for rank in job for site in rank.sites or ()))
    site_number = {site: at for at, site in enumerate(sites)}
    have_sites = all(rank.sites is not None for rank in job)
    parts: list[dict[str, Any]] = []
    for rank in ranks:
        records = rank.records
        begin, end = records["begin"].astype(np.int64), records["end"].astype(np.int64)
        last = rank.end_ns or max(int(end.max(initial=0)), int(begin.max(initial=0)))
        # What is still open lasts until the end of what is known.
        end = np.where(end == 0, np.maximum(last, begin), end)
        peer = records["peer"].astype(np.int64)
        calls = np.array([number[kind.name] for kind in rank.call_kinds], dtype=np.int64)
        order = np.argsort(begin, kind="stable")
        columns = {
            "rank": np.full(len(records), rank.rank, dtype=np.int64),
            "begin": begin - start[rank.rank],
            "end": end - start[rank.rank],
            "bytes": records["bytes"].astype(np.int64),
            "peer": np.maximum(peer, -1),
            "members": np.where(peer < -1, -peer - 1, -1),
            "call": calls[records["call"]] if len(records) else np.zeros(0, dtype=np.int64),
            "kind": records["kind"].astype(np.int64),
            "flags": records["flags"].astype(np.int64),
        }
        if have_sites:
            own = np.array([site_number[site] for site in rank.sites or ()], dtype=np.int64)
            columns["site"] = own[rank.site_of]
        parts.append({name: column[order] for name, column in columns.items()})
        release(rank.kept)
    joined: dict[str, Any] = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return MpiEvents(names=names, sites=sites if have_sites else (), **joined)


def _node_names(ranks: Sequence[RankFile], nodes: int) -> tuple[str, ...]:
    """Hosts, with the node's number where several (emulated) nodes are on one host; `node 3` if not known."""
    hosts = {rank.node: rank.host for rank in ranks}
    named = [hosts.get(node, "") for node in range(nodes)]
    return tuple(
        f"node {node}" if not host else f"{host}:{node}" if named.count(host) > 1 else host
        for node, host in enumerate(named)
    )


def _few(names: Sequence[str]) -> str:
    """The first names of a list, and how many more there are."""
    more = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return f"{', '.join(names[:3])}{more}"


def _notes(ranks: Sequence[RankFile], manifest: ProfileManifest | None) -> list[str]:
    size = ranks[0].size
    missing = sorted(set(range(size)) - {rank.rank for rank in ranks})
    killed = [rank.rank for rank in ranks if rank.end_ns is None]
    lost = sum(rank.lost for rank in ranks)
    notes = []
    if manifest is None:
        notes.append(f"{MANIFEST_FILE} is missing: the command and the machine are not known")
    elif manifest.own_functions:
        notes.append(
            f"partial: the program defines {_few(manifest.own_functions)} itself, as a PMPI tool that is "
            "linked in does: such calls are not recorded, and count as computation"
        )
    if missing:
        notes.append(f"partial: {_listed(missing)} of {size} ranks left no file")
        nodes = {rank.node for rank in ranks}
        apart = [rank for rank in missing if int(ranks[0].nodes_of[rank]) not in nodes]
        if apart:
            notes.append(
                f"the node of {_listed(apart)} may not be known: messages with them count as between nodes"
            )
    if killed:
        notes.append(f"partial: {_listed(killed)} never called MPI_Finalize; what they recorded is there")
    if lost:
        notes.append(f"partial: {lost} records were lost; windows and counts have them, intervals do not")
    notes += sharing(ranks)
    if not any(_moved(rank) for rank in ranks):
        notes.append("the program sent no data by MPI")
    elsewhere = sum(rank.totals.elsewhere for rank in ranks)
    if elsewhere:
        where = "in this node" if ranks[0].nodes == 1 else "on other nodes"
        notes.append(
            f"{elsewhere} B went to processes of other jobs (spawned or connected), which are not profiled; "
            f"they count as {where}"
        )
    return notes


MOVING = (*SENDING, RECEIVE, POSTED_RECEIVE, COLLECTIVE, POSTED_COLLECTIVE, ONE_SIDED)
"""Kinds of records that move data."""


def _moved(rank: RankFile) -> bool:
    """Whether the windows, which lose nothing, have bytes, or the records."""
    flows = ("sent_inside", "sent_between", "received_inside", "received_between")
    if any(rank.windows[flow].any() for flow in flows):
        return True
    return bool((rank.kept["bytes"][np.isin(rank.kept["kind"], MOVING)] > 0).any())


def _listed(ranks: Sequence[int]) -> str:
    shown = ", ".join(map(str, ranks[:8]))
    more = f" and {len(ranks) - 8} more" if len(ranks) > 8 else ""
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}{more}"
