"""Logs of NCCL's Inspector plug-in: a line of JSON for each collective or message, one file per process."""

from __future__ import annotations

from pathlib import Path
from typing import IO

import msgspec

from elbowroom.errors import UsageError
from elbowroom.trace.overlap.event_rows import EventRows, RowLane, StoredRows
from elbowroom.trace.overlap.events import EventClass
from elbowroom.trace.overlap.json_events import lines_of

FORMAT = "nccl-inspector"
WRITTEN_BY = "logs of NCCL Inspector"
_US = 1000


class _Channel(msgspec.Struct, frozen=True):
    kernel_start_ts: int = 0
    kernel_stop_ts: int = 0


class _ChannelTimes(msgspec.Struct, frozen=True):
    kernel_events: list[_Channel] = []


class _Operation(msgspec.Struct, frozen=True):
    coll: str = ""
    p2p: str = ""
    coll_msg_size_bytes: int = 0
    p2p_msg_size_bytes: int = 0
    event_trace_ts: _ChannelTimes | None = None


class _Header(msgspec.Struct, frozen=True):
    id: str = ""
    rank: int = 0
    n_ranks: int = 0


class _InspectorLine(msgspec.Struct, frozen=True):
    header: _Header
    coll_perf: _Operation | None = None
    p2p_perf: _Operation | None = None


def is_of(start: bytes) -> bool:
    """Whether the file is one, by its first bytes."""
    return start.lstrip().startswith(b"{") and b'"header"' in start and b'_perf"' in start


def read(path: Path, store: IO[bytes]) -> StoredRows:
    """The operations of a file, as its GPU's channels timed them, in `store`. UsageError where it has
    durations only.
    """
    rows, untimed, doubts = EventRows(store), 0, list[str]()
    for number, text in enumerate(lines_of(path, "NCCL Inspector"), 1):
        if not text.strip():
            continue
        try:
            line = msgspec.json.decode(text, type=_InspectorLine)
        except (msgspec.DecodeError, UnicodeDecodeError):
            doubts.append(f"line {number} of {path.name} is not a record of NCCL Inspector")
            continue
        operation = line.coll_perf or line.p2p_perf
        if operation is not None:
            untimed += not _added(rows, line.header, operation)
    if untimed and not len(rows):
        raise UsageError(
            f"has durations of {untimed} operations, but not when they took place",
            field="trace",
            value=str(path),
            hint="record it with NCCL_INSPECTOR_DUMP_VERBOSE=1, or give the profiler's trace of the same run",
        )
    notes = [f"{untimed} operations have no times, and are left out"] if untimed else []
    return rows.stored(FORMAT, notes=notes, doubts=tuple(doubts[:3]))


def _added(rows: EventRows, header: _Header, operation: _Operation) -> bool:
    """Whether the operation has times; it lasts from its first channel's begin to its last one's end."""
    times = operation.event_trace_ts.kernel_events if operation.event_trace_ts else []
    channels = [one for one in times if 0 < one.kernel_start_ts <= one.kernel_stop_ts]
    if not channels:
        return False
    size = operation.coll_msg_size_bytes or operation.p2p_msg_size_bytes
    kind = EventClass(
        name=f"nccl{operation.coll or operation.p2p}",
        category="nccl",
        detail=f"{size} B, {len(channels)} channels",
        collective=bool(operation.coll),
    )
    lane = RowLane(f"rank {header.rank}", f"communicator {header.id}", True)
    start = min(one.kernel_start_ts for one in channels)
    rows.add(kind, lane, start * _US, max(one.kernel_stop_ts for one in channels) * _US)
    return True
