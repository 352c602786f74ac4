"""The documents of trace-reader as structs: `check`, `stat` and `sync` (docs/reference/trace-files.md).

Times are ns; those that cannot be known are None.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from elbowroom import display
from elbowroom.errors import MachineError

VERSION = 1

Document = TypeVar("Document", bound=msgspec.Struct)


class Damage(msgspec.Struct, frozen=True, kw_only=True):
    """A file that is not whole, and up to where it was read."""

    file: str
    what: str


class Pair(msgspec.Struct, frozen=True, kw_only=True):
    """The messages from one rank to another: how many, how many arrive before they left (tachyons), or
    faster than the pair's floor or by less than what the clocks may be wrong (suspect), or have two ends of
    different sizes (mismatched); the floor, ns.
    """

    from_: int = msgspec.field(name="from")
    to: int
    messages: int
    tachyons: int
    suspect: int
    mismatched: int = 0
    floor_ns: float | None = None


class TraceCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a trace is whole, and its times can be trusted: `events` = kept + lost; `missing` and `killed`
    ranks; `worst_error_ns`: of any time, as the comparisons of clocks bound it; `mismatched` messages have
    two ends of different sizes. `doubts`: why it is not to be trusted; none where it can be.
    """

    schema: str = "elbowroom/trace-check"
    version: int = VERSION
    events: int
    kept: int
    lost: int
    messages: int
    tachyons: int
    suspect: int
    mismatched: int = 0
    unmatched: int
    ranks: int
    threads: int
    missing: tuple[int, ...] = ()
    killed: tuple[int, ...] = ()
    monotone: bool = True
    sync_points: int = 0
    worst_error_ns: float | None = None
    duration_ns: int = 0
    damage: tuple[Damage, ...] = ()
    doubts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    pairs: tuple[Pair, ...] = ()


class TypeStat(msgspec.Struct, frozen=True, kw_only=True):
    """Events of a type: all, those in each bin of time, and the time between their begins and ends, in all
    and of the longest of the `whole` ones, which have both. `bytes`: of messages, or of calls that name
    theirs. `fields`: names of small, first and second; None where one is not used.
    """

    name: str
    category: str
    fields: tuple[str | None, ...] = ()
    events: int
    per_bin: tuple[float, ...]
    begins: int = 0
    ends: int = 0
    total_ns: int = 0
    whole: int = 0
    longest_ns: int = 0
    bytes: int = 0

    @property
    def calls(self) -> int:
        """How often it happened: a begin and its end are one."""
        return self.events - min(self.begins, self.ends)


class ThreadStat(msgspec.Struct, frozen=True, kw_only=True):
    """Events of a thread: recorded = kept + lost."""

    rank: int
    thread: int
    name: str
    kept: int
    lost: int
    recorded: int


class CategoryStat(msgspec.Struct, frozen=True, kw_only=True):
    """Events of a category in one rank, and what recording them took, estimated; None where the rank was
    killed before it could tell.
    """

    name: str
    events: int
    overhead_ns: float | None


class RankStat(msgspec.Struct, frozen=True, kw_only=True):
    """What recording took in a rank: one event, all of them, by category; `advised_bytes` for each thread for
    none to be lost. None where it was killed before it could tell.
    """

    rank: int
    host: str
    event_ns: float | None
    overhead_ns: float | None
    advised_bytes: int | None
    by_category: tuple[CategoryStat, ...] = ()


class Stat(msgspec.Struct, frozen=True, kw_only=True):
    """Events by type and bins of `bin_ns`, by thread and by rank (thesis, Figs. 3.5 to 3.7). `doubts`: why
    they are not to be trusted.
    """

    schema: str = "elbowroom/trace-stat"
    version: int = VERSION
    duration_ns: int
    bin_ns: float
    types: tuple[TypeStat, ...]
    threads: tuple[ThreadStat, ...]
    ranks: tuple[RankStat, ...]
    doubts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Stat(ranks={len(self.ranks)}, duration_ns={self.duration_ns})"

    __str__, _repr_html_ = display.text, display.html


class SyncPoint(msgspec.Struct, frozen=True, kw_only=True):
    """At `local` of a rank's clock the reference's was `offset` further, between `low` and `high`; not `used`
    where it is an outlier.
    """

    local: int
    offset: int
    low: int
    high: int
    used: bool = True


class SyncSegment(msgspec.Struct, frozen=True, kw_only=True):
    """Between two comparisons: the offset at its begin, how it drifts (1e-9), and how wrong it is at most."""

    from_: int = msgspec.field(name="from")
    to: int
    offset_ns: int
    drift_ppb: float
    error_ns: float | None = None


class SyncRank(msgspec.Struct, frozen=True, kw_only=True):
    """The clock of a rank beside the reference's."""

    rank: int
    host: str
    points: tuple[SyncPoint, ...] = ()
    segments: tuple[SyncSegment, ...] = ()
    flags: tuple[str, ...] = ()


class Sync(msgspec.Struct, frozen=True, kw_only=True):
    """The clocks of all ranks (thesis, Figs. 3.16 and 3.18). `doubts`: why times are not to be trusted."""

    schema: str = "elbowroom/trace-sync"
    version: int = VERSION
    ranks: tuple[SyncRank, ...]
    doubts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()


def decode(data: bytes, kind: type[Document]) -> Document:
    """Decodes a document of trace-reader. MachineError if it is not one."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.DecodeError as error:
        raise MachineError(
            f"the output of trace-reader cannot be read ({error})",
            field="trace-reader",
            hint="unset ELBOWROOM_TRACE_READER, so that the trace-reader of this release is built",
        ) from error
