"""Execution traces of Chakra whose nodes have times: those that chakra_trace_link joined with a profile."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

import msgspec

from elbowroom.errors import UsageError
from elbowroom.trace.overlap.event_rows import EventRows, RowLane, StoredRows
from elbowroom.trace.overlap.events import NONE, EventClass
from elbowroom.trace.overlap.json_stream import json_stream

FORMAT = "chakra"
WRITTEN_BY = "execution traces of Chakra with times"
_US = 1000


class _ChakraNode(msgspec.Struct, frozen=True):
    name: str = ""
    cat: str = ""
    ts: float | None = None
    inclusive_dur: float | None = None
    stream: int | str | None = None
    tid: int | str | None = None
    rf_id: int | None = None
    external_id: Any = None


_NODES = msgspec.json.Decoder(list[_ChakraNode])


def is_of(start: bytes) -> bool:
    """Whether the file is one, by its first bytes."""
    return start.lstrip().startswith(b"{") and b"-chakra." in start[:1024]


def read(path: Path, store: IO[bytes]) -> StoredRows:
    """The nodes that have a time and a duration, in `store`. UsageError where none has one."""
    wrong: dict[str, Any] = {
        "field": "trace",
        "value": str(path),
        "hint": "give the trace of PyTorch's profiler (Kineto), or join both by chakra_trace_link",
    }
    rows, nodes = EventRows(store), 0
    try:
        with json_stream(path, "Chakra") as stream:
            for key in stream.members():
                if key != "nodes":
                    stream.skip()
                    continue
                for batch in stream.batches(_NODES):
                    nodes += len(batch)
                    _add(rows, batch, path.name)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"is a damaged execution trace of Chakra ({error})", **wrong) from error
    untimed = nodes - len(rows) - rows.impossible
    if not len(rows):
        what = f"is an execution trace of Chakra without times: none of its {untimed} nodes has a duration"
        raise UsageError(what, **wrong)
    notes = [f"{untimed} nodes have no time or no duration, and are left out"] if untimed else []
    return rows.stored(FORMAT, notes=notes)


def _add(rows: EventRows, nodes: list[_ChakraNode], rank: str) -> None:
    for node in nodes:
        if node.ts is None or node.inclusive_dur is None:
            continue
        device = node.stream is not None
        lane = RowLane(rank, f"stream {node.stream}" if device else f"thread {node.tid or 0}", device)
        kind = EventClass(name=node.name, category=node.cat or ("kernel" if device else "cpu_op"))
        start, length = round(node.ts * _US), round(node.inclusive_dur * _US)
        rows.add(kind, lane, start, start + length, node.external_id if _whole(node.external_id) else NONE)


def _whole(value: Any) -> bool:
    return type(value) is int and value >= 0
