"""The file of one process: rank-NNNNNN.profile, which lib/profile maps while the program runs.

Everything is little endian. The header comes first; it holds the offsets of four tables: the node of each
rank, the calls, the windows, and a ring of records. A killed process leaves a file without `end_ns`.
"""

from __future__ import annotations

import mmap
import os
import stat
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.errors import UsageError

MAGIC = b"ELBPROF1"
VERSION = 1
HEADER_BYTES = 4096

(
    OTHER, SEND, RECEIVE, SENDRECV, COLLECTIVE, POSTED_SEND, POSTED_RECEIVE, POSTED_COLLECTIVE, COMPLETION,
    ONE_SIDED, MARK, BARRIER,
) = range(12)  # fmt: skip
KINDS = 12

BETWEEN, CALL, SPAN, OPEN = 1, 2, 4, 8
"""Flags of a record: the peer is on another node; a call; from post to completion; it was never completed."""

THREAD = np.dtype(
    [
        ("thread", "<i4"),
        ("cpus", "<u4"),
        ("first", "<u4"),
        ("last", "<u4"),
        ("mask", "<u8"),
        ("cpu_ns", "<u8"),
    ]
)
THREADS = 116
"""Threads of a process that are in its file at most."""

HEADER = np.dtype(
    [
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
        # Zero in files of older releases.
        ("threads", "<u4"),
        ("reserved", "<u4"),
        ("places", THREAD, THREADS),
    ]
)
"""The header, as a C structure with natural alignment has it; the rest of its 4096 bytes is zero."""

CALL_KIND = np.dtype([("name", "S40"), ("count", "<u8"), ("ns", "<u8"), ("bytes", "<u8")])
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

SAMPLE = np.dtype(
    [
        ("begin", "<i8"),
        ("end", "<i8"),
        ("thread", "<i8"),
        ("cpu_ns", "<i8"),
        ("waited_ns", "<i8"),
        ("cpu", "<i8"),
    ]
)
"""`thread`: its number in RankFile.threads; `waited_ns`: -1 where the kernel does not count it."""

Records = npt.NDArray[np.void]

_MOST_NS = 1 << 62
_MOST_BYTES = 1 << 50
"""Of one record or table entry: what is larger is damage."""
_MOST_RANKS = 1 << 24
_TORN = 64
"""Records that a killed process may leave incomplete: one for each of its threads."""


class CallKind(msgspec.Struct, frozen=True, kw_only=True):
    """What one MPI function did in a process: `ns` inside it, `bytes` that this process gave it."""

    name: str
    count: int
    ns: int
    bytes: int


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """A place in the program that calls MPI: the function's name, and the return address as a virtual address
    of the module (an executable or shared library, by its path). No module: the place is not known.
    `size` and `mtime_ns` are those of the module's file when the program ran, 0 if not known.
    """

    call: str
    module: str = ""
    offset: int = 0
    size: int = 0
    mtime_ns: int = 0


class ThreadPlace(msgspec.Struct, frozen=True, kw_only=True):
    """A thread: how many cores it may run on, the first and the last of them, a hash of all (threads with the
    same cores have the same), and its CPU time in ns.

    `waited_ns`: its time in the run queue; `cpu` and `node`: the core that it ran on last, and that core's
    NUMA node; `migrations`: how often it was seen on another core than before. None if not known.
    """

    thread: int
    cpus: int
    first: int
    last: int
    mask: int
    cpu_ns: int
    waited_ns: int | None = None
    cpu: int | None = None
    node: int | None = None
    migrations: int | None = None


class CpuLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the control group of a process allowed at MPI_Init: `cpus`, cores' worth of time (None: no limit),
    and the list of its cores, as "0-3,8" ("" if not known).
    """

    cpus: float | None
    cpuset: str


class RankFile(msgspec.Struct, frozen=True, kw_only=True):
    """A process. Times are ns on its host's monotonic clock; `end_ns` is None where MPI_Finalize never came.

    `nodes_of`: (size,) node of each rank of MPI_COMM_WORLD; `windows`: (window_count,) WINDOW; `records`:
    RECORD, the oldest first, those that are left; `lost` others were not recorded or overwritten.

    Not in files of format 1 (None): `sites`, with `site_of` (N,), the site of each record; `samples`,
    SAMPLE, what the scheduler did with a thread since its sample before; `limits`, None also where the
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
    records: Records
    threads: tuple[ThreadPlace, ...] = ()
    sites: tuple[Site, ...] | None = None
    site_of: npt.NDArray[np.int64] | None = None
    samples: Records | None = None
    limits: CpuLimits | None = None


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
    tables = {name: _table(path, data, name, int(head[name]), *size) for name, size in sizes.items()}
    nodes_of = _checked_nodes(path, head, tables["nodes_at"])
    names = _checked_calls(path, tables["calls_at"])
    # A process that was killed while it merged windows leaves them in disorder.
    windows = tables["windows_at"][: 0 if head["merging"] else int(head["window_count"])]
    _check(path, "windows", all(int(windows[name].max(initial=0)) < _MOST_NS for name in WINDOW.names or ()))
    records, torn = _checked_records(path, head, tables["records_at"], len(names))
    written, capacity = int(head["written"]), int(head["records"])
    plain: dict[str, Any] = {name: int(head[name]) for name in _PLAIN}
    return RankFile(
        path=str(path),
        **plain,
        end_ns=int(head["end_ns"]) or None,
        lost=max(int(head["lost"]), written - capacity, 0) + torn,
        host=_text(head["host"]),
        mpi=_text(head["mpi"]),
        call_kinds=names,
        nodes_of=nodes_of,
        windows=windows,
        records=records,
        threads=_threads(path, head),
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
        raise _error(path, f"cannot be read ({why})") from error
    try:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode):
            raise _error(path, "is not a file")
        if status.st_size < HEADER_BYTES:
            raise _error(path, f"is damaged: it has {status.st_size} B, fewer than its header")
        return mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise _error(path, f"cannot be read ({error.strerror})") from error
    finally:
        os.close(handle)


def _header(path: Path, data: mmap.mmap) -> Any:
    head = np.frombuffer(data, HEADER, 1)[0]
    if head["magic"] != MAGIC:
        raise _error(path, "is not a profile of a process")
    if head["version"] != VERSION:
        raise _error(
            path,
            f"has format {head['version']}, and this release reads format {VERSION}",
            "read it with the release that wrote it, or profile the program again",
        )
    _check(path, "header_bytes", head["header_bytes"] == HEADER_BYTES)
    _check(path, "size", 0 < head["size"] <= _MOST_RANKS)
    _check(path, "rank", 0 <= head["rank"] < head["size"])
    _check(path, "nodes", 0 < head["nodes"] <= head["size"])
    _check(path, "local_size", 0 < head["local_size"] <= head["size"])
    _check(path, "local_rank", 0 <= head["local_rank"] < head["local_size"])
    for name in ("start_wall_ns", "start_ns", "end_ns", "mpi_ns"):
        _check(path, name, head[name] < _MOST_NS)
    _check(path, "end_ns", head["end_ns"] == 0 or head["end_ns"] >= head["start_ns"])
    _check(path, "window_ns", 0 < head["window_ns"] < _MOST_NS)
    _check(path, "window_count", head["window_count"] <= head["windows"])
    for name in ("written", "lost", "calls"):
        _check(path, name, head[name] < _MOST_BYTES)
    return head


def _table(
    path: Path, data: mmap.mmap, name: str, at: int, kind: np.dtype[Any], count: int
) -> npt.NDArray[Any]:
    _check(path, name, at >= HEADER_BYTES)
    if at + kind.itemsize * count > len(data):
        raise _error(path, f"is truncated: its table at {at} B ends after the file, which has {len(data)} B")
    return np.frombuffer(data, kind, count, at)


def _threads(path: Path, head: Any) -> tuple[ThreadPlace, ...]:
    _check(path, "threads", head["threads"] <= THREADS)
    places = head["places"][: head["threads"]]
    return tuple(ThreadPlace(**{name: int(place[name]) for name in THREAD.names or ()}) for place in places)


def _checked_nodes(path: Path, head: Any, nodes: npt.NDArray[Any]) -> npt.NDArray[np.int32]:
    inside = nodes.min() >= 0 and nodes.max() < head["nodes"]
    _check(path, "nodes of the ranks", bool(inside) and nodes[head["rank"]] == head["node"])
    return nodes.astype(np.int32)


def _checked_calls(path: Path, table: npt.NDArray[Any]) -> tuple[CallKind, ...]:
    _check(path, "calls", len(table) <= 1 << 16)
    for name in ("count", "ns"):
        _check(path, f"calls.{name}", int(table[name].max(initial=0)) < _MOST_NS)
    return tuple(
        CallKind(name=_text(one["name"]), count=int(one["count"]), ns=int(one["ns"]), bytes=int(one["bytes"]))
        for one in table
    )


def _checked_records(path: Path, head: Any, ring: Records, call_kinds: int) -> tuple[Records, int]:
    """The records, the oldest first, and how many of a killed process were incomplete."""
    written, capacity = int(head["written"]), len(ring)
    if written <= capacity:
        records = ring[:written]
    else:
        first = written % capacity if capacity else 0
        records = np.concatenate([ring[first:], ring[:first]])
    # What was never completed has no end yet.
    still = (records["flags"] & OPEN) > 0
    peers = records["peer"].astype(np.int64)
    good = (
        (records["begin"] < _MOST_NS)
        & ((records["end"] >= records["begin"]) | (still & (records["end"] == 0)))
        & (records["end"] < _MOST_NS)
        & (records["bytes"] < _MOST_BYTES)
        & (records["call"] < call_kinds)
        & (records["kind"] < KINDS)
        & (peers < int(head["size"]))
        & (peers >= -int(head["size"]) - 1)
        & (records["begin"] > 0)
    )
    bad = len(records) - int(np.count_nonzero(good))
    if bad == 0:
        return records, 0
    if head["end_ns"] == 0 and bad <= _TORN:
        return records[good], bad
    raise _error(path, f"is damaged: {bad} of {len(records)} records have impossible values")


def release(records: npt.NDArray[Any]) -> None:
    """Take the pages of a mapped table out of this process' memory; they are read again when needed."""
    base: Any = records
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, memoryview):
        base = base.obj
    if isinstance(base, mmap.mmap):
        base.madvise(mmap.MADV_DONTNEED)


def _text(raw: bytes) -> str:
    text = raw.split(b"\0")[0].decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() else "�" for letter in text)


def _check(path: Path, what: str, good: object) -> None:
    if not good:
        raise _error(path, f"is damaged: its {what} cannot be right")


def _error(path: Path, message: str, hint: str = "profile the program again") -> UsageError:
    return UsageError(message, field="profile", value=str(path), hint=hint)
