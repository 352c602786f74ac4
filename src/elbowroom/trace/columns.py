"""A merged trace as it comes from trace-reader: the job, then blocks of events, messages and gaps.

The format is that of lib/trace/outputs/columns.hpp. It is read as it is written, one block at a time, so that
a trace may be larger than memory; what ends early is refused. Times are ns since the job's `start`, on the
clock of the reference.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import IO, Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.errors import MachineError
from elbowroom.trace.documents import SyncPoint

SCHEMA = "elbowroom/trace-columns"
VERSION = 1

KINDS = ("event", "begin", "end", "counter", "send", "receive", "mask", "region", "lost")
"""Kinds of events by their number (include/elbowroom/trace.h)."""
EVENT, BEGIN, END, COUNTER, SEND, RECEIVE, MASK, REGION, LOST = range(len(KINDS))

FLAGS = (
    "tachyon",
    "suspect",
    "unmatched",
    "unsynced",
    "extrapolated",
    "moved",
    "mismatched",
    "clipped",
)
"""Bits of `flags`, from the lowest (lib/trace/merge/sink.hpp)."""
CLIPPED = 1 << FLAGS.index("clipped")

Block = npt.NDArray[np.void]
Tag = Literal["events", "messages", "gaps"]

EVENTS = np.dtype(
    [
        ("time", "<i8"),
        ("error", "<i8"),
        ("stamp", "<u8"),
        ("first", "<u8"),
        ("second", "<u8"),
        ("message", "<u8"),
        ("sequence", "<u4"),
        ("thread", "<u4"),
        ("type", "<u4"),
        ("small", "<u4"),
        ("kind", "u1"),
        ("flags", "u1"),
        ("reserved", "V6"),
    ]
)
"""An event; `error` is how wrong its time is at most, -1 not known."""
MESSAGES = np.dtype(
    [
        ("message", "<u8"),
        ("sent", "<i8"),
        ("received", "<i8"),
        ("bytes", "<u8"),
        ("from", "<u4"),
        ("to", "<u4"),
        ("communicator", "<u4"),
        ("tag", "<i4"),
        ("flags", "u1"),
        ("reserved", "V7"),
    ]
)
"""A message of which both ends are known; `from` and `to` are threads."""
GAPS = np.dtype(
    [("begin", "<i8"), ("end", "<i8"), ("lost", "<u8"), ("thread", "<u4"), ("reserved", "V4")],
)
"""An interval in which events of a thread are missing (`lost` of them), or its recorder was busy (0)."""
_TOTALS = np.dtype([("events", "<u8"), ("messages", "<u8"), ("gaps", "<u8")])
_HEAD = np.dtype([("tag", "S4"), ("records", "<u4")])
_BLOCKS: dict[bytes, tuple[Tag, np.dtype[np.void]]] = {
    b"EVNT": ("events", EVENTS),
    b"MESG": ("messages", MESSAGES),
    b"GAPS": ("gaps", GAPS),
}
_MOST_RECORDS = 1 << 22


class EventType(msgspec.Struct, frozen=True, kw_only=True):
    """A type of events; `category` is an index, `fields` names small, first and second (empty: not used)."""

    name: str
    category: int
    fields: tuple[str, str, str]


class Rank(msgspec.Struct, frozen=True, kw_only=True):
    """A process of the job: not `there` without a file of it, not `ended` where it was killed."""

    rank: int
    pid: int
    host: str
    there: bool
    ended: bool
    syncs: tuple[SyncPoint, ...]


class Thread(msgspec.Struct, frozen=True, kw_only=True):
    """A thread; `rank` is an index in the job's ranks, `damage` is empty where its file is whole."""

    rank: int
    thread: int
    tid: int
    name: str
    recorded: int
    kept: int
    lost: int
    damage: str


class TextRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A descriptive record of a thread."""

    thread: int
    type: int
    key: int
    text: str


class TracedJob(msgspec.Struct, frozen=True, kw_only=True):
    """All but the events of a merged trace. `start` is the reference's clock where times count from,
    `duration` the time of the last event, ns (0: not known).
    """

    schema: str
    version: int
    job: int
    start: int
    duration: int = 0
    categories: tuple[str, ...]
    types: tuple[EventType, ...]
    ranks: tuple[Rank, ...]
    threads: tuple[Thread, ...]
    texts: tuple[TextRecord, ...]
    warnings: tuple[str, ...]

    def category(self, kind: EventType) -> str:
        """The name of a type's category."""
        return self.categories[kind.category]


class TraceColumns:
    """A merged trace, read once: the `job` at once, its blocks in order."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self.job = _job(stream.readline())
        self._counts = {"events": 0, "messages": 0, "gaps": 0}

    def blocks(self) -> Iterator[tuple[Tag, Block]]:
        """What each block holds, and its records; of one kind they come in order. MachineError where the
        stream ends early or is damaged.
        """
        while True:
            head = self._read(_HEAD, 1)[0]
            tag, count = bytes(head["tag"]), int(head["records"])
            if tag == b"DONE" and count == 1:
                return self._check_totals(self._read(_TOTALS, 1)[0])
            if tag not in _BLOCKS or count > _MOST_RECORDS:
                raise _damaged(f"has a block {tag!r} of {count} records")
            name, kind = _BLOCKS[tag]
            block = self._read(kind, count)
            self._check(name, block)
            self._counts[name] += count
            yield name, block

    def _check(self, name: Tag, block: Block) -> None:
        for field in ("thread", "from", "to"):
            if field in (block.dtype.names or ()) and block[field].max(initial=0) >= max(
                1, len(self.job.threads)
            ):
                raise _damaged(f"refers to thread {block[field].max()} of {len(self.job.threads)}")
        if name == "events" and (
            block["type"].max(initial=0) >= max(1, len(self.job.types))
            or block["kind"].max(initial=0) >= len(KINDS)
        ):
            raise _damaged("has an event of an unknown type or kind")

    def _check_totals(self, totals: Any) -> None:
        stated = {name: int(totals[name]) for name in self._counts}
        if stated != self._counts:
            raise _damaged(f"has {self._counts}, but states {stated}")

    def _read(self, kind: np.dtype[np.void], count: int) -> Block:
        wanted = kind.itemsize * count
        parts = []
        while wanted:
            part = self._stream.read(wanted)
            if not part:
                raise _damaged("ends early")
            parts.append(part)
            wanted -= len(part)
        return np.frombuffer(parts[0] if len(parts) == 1 else b"".join(parts), dtype=kind)


def _job(line: bytes) -> TracedJob:
    if not line.endswith(b"\n"):
        raise _damaged("ends early")
    try:
        job = msgspec.json.decode(line, type=TracedJob)
    except msgspec.DecodeError as error:
        raise _damaged(f"does not begin with a job ({error})") from error
    if job.schema != SCHEMA or job.version != VERSION:
        raise _damaged(f"is {job.schema} version {job.version}; only {SCHEMA} version {VERSION} can be read")
    if any(kind.category >= len(job.categories) for kind in job.types) or any(
        thread.rank >= len(job.ranks) for thread in job.threads
    ):
        raise _damaged("refers to a category or a rank that does not exist")
    if any(text.type >= len(job.types) or text.thread >= len(job.threads) for text in job.texts):
        raise _damaged("has a text of an unknown type or thread")
    return job


def _damaged(what: str) -> MachineError:
    return MachineError(what, field="columns of the trace", hint="merge the trace again")


__all__ = ["CATEGORIES", "SET_UP", "communicates", "kind_of", "sets_up"]

CATEGORIES = ("mpi", "message")
"""Categories of this project's own traces whose events communicate, unless they set MPI up."""
SET_UP = "set-up of MPI"
"""How the category of MPI's other calls is named."""

_MPI = re.compile(r"\s*P?MPIX?_(\w+)", re.IGNORECASE)
_ENDS = re.compile(r"(_(c|x|f08|f08ts|fts))?_{0,2}$")
"""Large counts, and Fortran's."""
_KINDS = {
    "collective": r"i?(bcast|reduce(_scatter(_block)?)?|allreduce|(all)?gatherv?|scatterv?|alltoall[vw]?"
    r"|(ex)?scan|neighbor_(allgatherv?|alltoall[vw]?))$",
    "message": r"(i?[bsr]?send|i?m?recv|i?sendrecv(_replace)?|start(all)?|pready(_range|_list)?"
    r"|r?(put|get|accumulate|get_accumulate)|fetch_and_op|compare_and_swap"
    r"|win_(fence|complete|unlock|unlock_all|flush\w*))$",
    "wait": r"(wait|test|(wait|test)(all|any|some)|request_get_status\w*|cancel|i?m?probe|i?barrier|parrived"
    r"|win_(wait|test|post|start|lock|lock_all|sync))$",
    "input/output": r"file_",
}
_PATTERNS = {kind: re.compile(pattern, re.IGNORECASE) for kind, pattern in _KINDS.items()}


def kind_of(name: str) -> str:
    """`collective`, `message`, `wait`, `input/output`, or `set-up` for the others (MPI_Init, MPI_Comm_dup);
    empty if it is no function of MPI.
    """
    mpi = _MPI.match(name)
    if mpi is None:
        return ""
    call = _ENDS.sub("", mpi[1])
    return next((kind for kind, pattern in _PATTERNS.items() if pattern.match(call)), "set-up")


def sets_up(name: str) -> bool:
    """Whether `name` is a function of MPI that neither moves data nor waits."""
    return kind_of(name) == "set-up"


def communicates(category: str | None, name: str, categories: Collection[str] = CATEGORIES) -> bool:
    """Whether an event of a category is communication: MPI_Init, MPI_Finalize, MPI_Comm_* are not."""
    return category in categories and not sets_up(name)


_MIX = np.uint64(0x9E3779B97F4A7C15)


class Texts:
    """Finds texts of events. A text of a task belongs to events of all types of tasks: it may be told by
    another type than the task's own, and by the thread that made the task.
    """

    def __init__(self, job: TracedJob) -> None:
        self.texts = [text.text for text in job.texts]
        kinds = np.arange(len(job.types), dtype=np.uint64)
        for index, kind in enumerate(job.types):
            if job.category(kind) == "task" and kind.name != "dependency":
                kinds[index] = len(job.types)
        self._kinds = kinds
        self._ranks = np.array([thread.rank for thread in job.threads], dtype=np.uint64)
        owners = self._owners(
            np.array([text.thread for text in job.texts], dtype=np.intp),
            np.array([text.type for text in job.texts], dtype=np.intp),
        )
        keys = np.array([text.key for text in job.texts], dtype=np.uint64)
        # Told twice, the last one counts.
        order = np.lexsort((np.arange(len(keys))[::-1], keys, owners))
        owners, keys = owners[order], keys[order]
        first = np.ones(len(order), dtype=bool)
        first[1:] = (owners[1:] != owners[:-1]) | (keys[1:] != keys[:-1])
        owners, keys, order = owners[first], keys[first], order[first]
        mixed = _mixed(owners, keys)
        by_mix = np.argsort(mixed, kind="stable")
        self._mixed, self._numbers = mixed[by_mix], order[by_mix]
        self._owner, self._key = owners[by_mix], keys[by_mix]

    def of(self, events: Block) -> npt.NDArray[np.int64]:
        """For each event the number of its text in the job, -1 without one."""
        numbers = np.full(len(events), -1, dtype=np.int64)
        if not len(self._mixed) or not len(events):
            return numbers
        owners = self._owners(events["thread"], events["type"])
        mixed = _mixed(owners, events["first"])
        # Different keys may mix alike: the few that do stand beside each other.
        at = np.searchsorted(self._mixed, mixed)
        open_ = (events["kind"] != SEND) & (events["kind"] != RECEIVE)
        while open_.any():
            open_ &= at < len(self._mixed)
            place = np.minimum(at, len(self._mixed) - 1)
            open_ &= self._mixed[place] == mixed
            here = open_ & (self._owner[place] == owners) & (self._key[place] == events["first"])
            numbers[here] = self._numbers[place[here]]
            open_ &= ~here
            at = at + 1
        return numbers

    def _owners(
        self, threads: npt.NDArray[np.integer], types: npt.NDArray[np.integer]
    ) -> npt.NDArray[np.uint64]:
        size = np.uint64(len(self._kinds) + 1)
        owners: npt.NDArray[np.uint64] = self._ranks[threads] * size + self._kinds[types]
        return owners


def _mixed(owners: npt.NDArray[np.uint64], keys: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    mixed: npt.NDArray[np.uint64] = owners * _MIX ^ keys
    return mixed
