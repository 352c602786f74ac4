"""The file of one process: rank-NNNNNN.profile, which lib/profile maps while the program runs.

Everything is little endian. The header comes first; it holds the offsets of the tables: the node of each
rank, threads, modules, calls, sites, windows, and a ring of records. A killed process leaves a file without
`end_ns`. Format 1 has no modules and sites, and its threads are in the header.
"""

from __future__ import annotations

import functools
import mmap
import os
import stat
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.profile.rank_tables import (
    CALL_KIND,
    MODULE,
    MOST_CPUS,
    MOST_NS,
    SITE,
    THREAD,
    THREAD_1,
    THREADS_1,
    CallKind,
    CpuLimits,
    Site,
    ThreadPlace,
    check,
    checked_sites,
    file_error,
    limits_of,
    text,
    threads_of,
    with_sites,
)
from elbowroom.profile.scheduler import samples_of

MAGIC = b"ELBPROF1"
VERSION = 2
HEADER_BYTES = 4096

(
    OTHER, SEND, RECEIVE, SENDRECV, COLLECTIVE, POSTED_SEND, POSTED_RECEIVE, POSTED_COLLECTIVE, COMPLETION,
    ONE_SIDED, MARK, BARRIER, RAN, WAITED,
) = range(14)  # fmt: skip

SENDING = (SEND, SENDRECV, POSTED_SEND)

BETWEEN, CALL, SPAN, OPEN = 1, 2, 4, 8
"""Flags of a record: the peer is on another node; a call; from post to completion; it was never completed."""

_HEADER = [
    ("magic", "S8"),
    ("version", "<u4"),
    ("header_bytes", "<u4"),
    ("rank", "<i4"),
    ("size", "<i4"),
    ("node", "<i4"),
    ("nodes", "<i4"),
    ("local_rank", "<i4"),
    ("local_size", "<i4"),
    ("pid", "<u8"),
    ("start_wall_ns", "<u8"),
    ("start_ns", "<u8"),
    ("end_ns", "<u8"),
    ("window_ns", "<u8"),
    ("windows", "<u4"),
    ("window_count", "<u4"),
    ("records", "<u8"),
    ("written", "<u8"),
    ("lost", "<u8"),
    ("calls", "<u8"),
    ("mpi_ns", "<u8"),
    ("call_kinds", "<u4"),
    ("merging", "<u4"),
    ("nodes_at", "<u8"),
    ("calls_at", "<u8"),
    ("windows_at", "<u8"),
    ("records_at", "<u8"),
    ("host", "S64"),
    ("mpi", "S128"),
]
HEADER = np.dtype(
    [
        *_HEADER,
        ("threads", "<u4"),
        ("thread_room", "<u4"),
        ("threads_at", "<u8"),
        ("modules", "<u4"),
        ("module_room", "<u4"),
        ("modules_at", "<u8"),
        ("sites", "<u4"),
        ("site_room", "<u4"),
        ("sites_at", "<u8"),
        ("cpu_limit", "<f8"),
        ("cpuset", "S256"),
    ]
)
"""The header, as a C structure with natural alignment has it; the rest of its 4096 bytes is zero."""
HEADER_1 = np.dtype([*_HEADER, ("threads", "<u4"), ("reserved", "<u4"), ("places", THREAD_1, THREADS_1)])
"""That of format 1; without threads in files of its first releases."""

WINDOW = np.dtype(
    [
        ("mpi_ns", "<u8"),
        ("wait_ns", "<u8"),
        ("calls", "<u8"),
        ("sent_inside", "<u8"),
        ("sent_between", "<u8"),
        ("received_inside", "<u8"),
        ("received_between", "<u8"),
        ("messages", "<u8"),
    ]
)
RECORD = np.dtype(
    [
        ("begin", "<u8"),
        ("end", "<u8"),
        ("bytes", "<u8"),
        ("peer", "<i4"),
        ("call", "<u2"),
        ("kind", "u1"),
        ("flags", "u1"),
    ]
)

Records = npt.NDArray[np.void]

_MOST_BYTES = 1 << 50
"""Of one record or table entry: what is larger is damage."""
_MOST_RANKS = 1 << 24
_TORN = 64
"""Records that a killed process may leave incomplete: one for each of its threads."""


class RecordTotals(msgspec.Struct, kw_only=True):
    """Of the records of a file: the `last` time in them, ns; the bytes that went `elsewhere`, to processes of
    other jobs; `samples`: indices of those that are the scheduler's.
    """

    last: int = 0
    elsewhere: int = 0
    samples: npt.NDArray[np.intp]


class RankFile(msgspec.Struct, frozen=True, kw_only=True, dict=True):
    """A process. Times are ns on its host's monotonic clock; `end_ns` is None where MPI_Finalize never came.

    `nodes_of`: (size,) node of each rank of MPI_COMM_WORLD; `windows`: (window_count,) WINDOW; `kept`:
    RECORD as in the file, the oldest first, those that are left, and their `totals`; `lost` others were not
    recorded or overwritten. `sites`: those of unknown place, one for each of `call_kinds`, come first.

    Not in files of format 1 (None): `sites`, `site_of`, samples, `limits`; `limits` is also None where the
    control group is not known.
    """

    path: str
    rank: int
    size: int
    node: int
    nodes: int
    local_rank: int
    local_size: int
    pid: int
    start_wall_ns: int
    start_ns: int
    end_ns: int | None
    window_ns: int
    lost: int
    calls: int
    mpi_ns: int
    host: str
    mpi: str
    call_kinds: tuple[CallKind, ...]
    nodes_of: npt.NDArray[np.int32]
    windows: Records
    kept: Records
    totals: RecordTotals
    threads: tuple[ThreadPlace, ...] = ()
    sites: tuple[Site, ...] | None = None
    limits: CpuLimits | None = None

    @property
    def is_sample(self) -> npt.NDArray[np.bool_]:
        """Which of `kept` are the scheduler's samples."""
        result = np.zeros(len(self.kept), dtype=bool)
        result[self.totals.samples] = True
        return result

    @property
    def call_of(self) -> npt.NDArray[np.int64]:
        """For each value of `call` in `kept`: the number in `call_kinds`."""
        if self.sites is None:
            return np.arange(len(self.call_kinds))
        number = {kind.name: at for at, kind in enumerate(self.call_kinds)}
        return np.array([number[site.call] for site in self.sites], dtype=np.int64)

    @property
    def records(self) -> Records:
        """RECORD of calls and messages, the oldest first; `call` is a number in `call_kinds`."""
        if self.sites is None:
            return self.kept
        records = self.kept.take(np.flatnonzero(~self.is_sample))
        records["call"] = self.call_of[records["call"]]
        return records

    @property
    def site_of(self) -> npt.NDArray[np.int64] | None:
        """(N,) number in `sites` of each of `records`."""
        return None if self.sites is None else self.kept["call"][~self.is_sample].astype(np.int64)

    @functools.cached_property
    def samples(self) -> Records | None:
        """SAMPLE (scheduler.py) of the threads that call MPI, ordered by begin."""
        if self.sites is None:
            return None
        records = self.kept.take(self.totals.samples)  # of rows faster than by a mask
        ran, waited = (records[records["kind"] == kind] for kind in (RAN, WAITED))
        return samples_of(ran, waited, (ran["flags"] & OPEN) > 0, len(self.threads))


def read_rank(path: Path) -> RankFile:
    """The file of one process; UsageError with one sentence if it cannot be read or is damaged."""
    data = _mapped(path)
    head = _header(path, data)
    sizes = {
        "nodes_at": (np.dtype("<i4"), int(head["size"])),
        "calls_at": (CALL_KIND, int(head["call_kinds"])),
        "windows_at": (WINDOW, int(head["windows"])),
        "records_at": (RECORD, int(head["records"])),
    }
    is_old = head["version"] == 1
    if not is_old:
        for name in ("threads", "modules", "sites"):
            check(path, name, head[name] <= head[name[:-1] + "_room"] <= 1 << 16)
        sizes |= {
            "threads_at": (THREAD, int(head["threads"])),
            "modules_at": (MODULE, int(head["modules"])),
            "sites_at": (SITE, int(head["sites"])),
        }
    tables = {name: _table(path, data, name, int(head[name]), *size) for name, size in sizes.items()}
    nodes_of = _checked_nodes(path, head, tables["nodes_at"])
    names = _checked_calls(path, tables["calls_at"])
    threads = threads_of(_places_1(path, data) if is_old else tables["threads_at"])
    sites = None
    if not is_old:
        sites = checked_sites(path, tables["sites_at"], tables["modules_at"], names)
        names = with_sites(path, names, tables["sites_at"])
    # A process that was killed while it merged windows leaves them in disorder.
    windows = tables["windows_at"][: 0 if head["merging"] else int(head["window_count"])]
    check(path, "windows", all(int(windows[name].max(initial=0)) < MOST_NS for name in WINDOW.names or ()))
    places = len(names) if sites is None else len(sites)
    kept, totals, torn = _checked_records(path, head, tables["records_at"], places)
    written, capacity = int(head["written"]), int(head["records"])
    plain: dict[str, Any] = {name: int(head[name]) for name in _PLAIN}
    return RankFile(
        path=str(path),
        **plain,
        end_ns=int(head["end_ns"]) or None,
        lost=max(int(head["lost"]), written - capacity, 0) + torn,
        host=text(head["host"]),
        mpi=text(head["mpi"]),
        call_kinds=names,
        nodes_of=nodes_of,
        windows=windows,
        kept=kept,
        totals=totals,
        threads=threads,
        sites=sites,
        limits=None if is_old else limits_of(path, head),
    )


_PLAIN = (
    "rank", "size", "node", "nodes", "local_rank", "local_size", "pid", "start_wall_ns", "start_ns",
    "window_ns", "calls", "mpi_ns",
)  # fmt: skip


def _mapped(path: Path) -> mmap.mmap:
    """The file in memory, only the used pages of it."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise file_error(path, f"cannot be read ({why})") from error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise file_error(path, "is not a file")
        if status.st_size < HEADER_BYTES:
            raise file_error(path, f"is damaged: it has {status.st_size} B, fewer than its header")
        return mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise file_error(path, f"cannot be read ({error.strerror})") from error
    finally:
        os.close(handle)


def _header(path: Path, data: mmap.mmap) -> Any:
    head = np.frombuffer(data, HEADER, 1)[0]
    if head["magic"] != MAGIC:
        raise file_error(path, "is not a profile of a process")
    if not 1 <= head["version"] <= VERSION:
        raise file_error(
            path,
            f"has format {head['version']}, and this release reads formats 1 to {VERSION}",
            "read it with the release that wrote it, or profile the program again",
        )
    check(path, "header_bytes", head["header_bytes"] == HEADER_BYTES)
    check(path, "size", 0 < head["size"] <= _MOST_RANKS)
    check(path, "rank", 0 <= head["rank"] < head["size"])
    check(path, "nodes", 0 < head["nodes"] <= head["size"])
    check(path, "local_size", 0 < head["local_size"] <= head["size"])
    check(path, "local_rank", 0 <= head["local_rank"] < head["local_size"])
    for name in ("start_wall_ns", "start_ns", "end_ns", "mpi_ns"):
        check(path, name, head[name] < MOST_NS)
    check(path, "end_ns", head["end_ns"] == 0 or head["end_ns"] >= head["start_ns"])
    check(path, "window_ns", 0 < head["window_ns"] < MOST_NS)
    check(path, "window_count", head["window_count"] <= head["windows"])
    for name in ("written", "lost", "calls"):
        check(path, name, head[name] < _MOST_BYTES)
    return head


def _table(
    path: Path, data: mmap.mmap, name: str, at: int, kind: np.dtype[Any], count: int
) -> npt.NDArray[Any]:
    check(path, name, at >= HEADER_BYTES)
    if at + kind.itemsize * count > len(data):
        raise file_error(
            path, f"is truncated: its table at {at} B ends after the file, which has {len(data)} B"
        )
    return np.frombuffer(data, kind, count, at)


def _places_1(path: Path, data: mmap.mmap) -> npt.NDArray[Any]:
    """The threads of a file of format 1."""
    head = np.frombuffer(data, HEADER_1, 1)[0]
    check(path, "threads", head["threads"] <= THREADS_1)
    places: npt.NDArray[Any] = head["places"][: head["threads"]]
    return places


def _checked_nodes(path: Path, head: Any, nodes: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    inside = nodes.min() >= 0 and nodes.max() < head["nodes"]
    check(path, "nodes of the ranks", bool(inside) and nodes[head["rank"]] == head["node"])
    return nodes.astype(np.int32)


def _checked_calls(path: Path, table: npt.NDArray[Any]) -> tuple[CallKind, ...]:
    check(path, "calls", len(table) <= 1 << 16)
    for name in ("count", "ns"):
        check(path, f"calls.{name}", int(table[name].max(initial=0)) < MOST_NS)
    return tuple(
        CallKind(name=text(one["name"]), count=int(one["count"]), ns=int(one["ns"]), bytes=int(one["bytes"]))
        for one in table
    )


def _checked_records(path: Path, head: Any, ring: Records, places: int) -> tuple[Records, RecordTotals, int]:
    """The records, the oldest first, their totals, and how many of a killed process were incomplete."""
    written, capacity = int(head["written"]), len(ring)
    if written <= capacity:
        records = ring[:written]
    else:
        first = written % capacity if capacity else 0
        records = np.concatenate([ring[first:], ring[:first]])
    good, totals = _totals(head, records, places)
    bad = len(records) - int(np.count_nonzero(good))
    if bad == 0:
        return records, totals, 0
    if head["end_ns"] == 0 and bad <= _TORN:
        return records[good], _totals(head, records[good], places)[1], bad
    raise file_error(path, f"is damaged: {bad} of {len(records)} records have impossible values")


def _totals(head: Any, records: Records, places: int) -> tuple[npt.NDArray[np.bool_], RecordTotals]:
    """Which records are possible, and the totals of all: in one pass over their memory."""
    good, samples, last, elsewhere = np.ones(len(records), dtype=bool), [], 0, 0
    for first in range(0, len(records), _BLOCK):
        block = columns_of(records[first : first + _BLOCK])
        sampled = block["kind"] >= RAN
        good[first : first + _BLOCK] = _possible(head, block, sampled, places)
        samples.append(first + np.flatnonzero(sampled))
        last = max(last, int(block["begin"].max()), int(block["end"].max()))
        unnamed = np.flatnonzero(block["peer"] < 0)
        sent = unnamed[np.isin(block["kind"][unnamed], (*SENDING, ONE_SIDED))]
        elsewhere += int(block["bytes"][sent].sum(dtype=np.int64))
    at = np.concatenate(samples) if samples else np.zeros(0, dtype=np.intp)
    return good, RecordTotals(last=last, elsewhere=elsewhere, samples=at)


def _possible(
    head: Any, block: dict[str, npt.NDArray[Any]], sampled: npt.NDArray[np.bool_], places: int
) -> npt.NDArray[np.bool_]:
    begin, end, peer, size = block["begin"], block["end"], block["peer"], int(head["size"])
    # What was never completed has no end yet.
    still = (end == 0) & (block["flags"] & OPEN > 0)
    of_call = (peer < size) & (peer >= -size - 1) & (block["call"] < places)
    of_sample = (peer < MOST_CPUS) & (peer >= -1)
    result: npt.NDArray[np.bool_] = (
        np.where(sampled, of_sample, of_call)
        & (begin > 0)
        & (begin < MOST_NS)
        & ((end >= begin) | still)
        & (end < MOST_NS)
        & (block["bytes"] < _MOST_BYTES)
        & (block["kind"] <= (BARRIER if head["version"] == 1 else WAITED))
    )
    return result


_BLOCK = 1 << 14
"""Records that fit in a cache."""


def columns_of(records: Records) -> dict[str, npt.NDArray[Any]]:
    """The fields of (N,) records, (N,) each. A pass over a field of the records reads all of their memory."""
    columns = {name: np.empty(len(records), records.dtype[name]) for name in records.dtype.names or ()}
    for first in range(0, len(records), _BLOCK):
        block = records[first : first + _BLOCK]
        for name, column in columns.items():
            column[first : first + _BLOCK] = block[name]
    return columns


def release(records: npt.NDArray[Any]) -> None:
    """Take the pages of a mapped table out of this process' memory; they are read again when needed."""
    base: Any = records
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    if isinstance(base, mmap.mmap):
        base.madvise(mmap.MADV_DONTNEED)
