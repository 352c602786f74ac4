"""Columns of merged traces as trace-reader writes them, made by tests (lib/trace/outputs/columns.hpp)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
import numpy as np

from elbowroom.trace import columns as c

TYPES = (
    ("solve", "task", ("block", "task", "cells")),
    ("factor", "task", ("", "task", "")),
    ("dependency", "task", ("", "task", "waits for")),
    ("MPI_Send", "mpi", ("", "", "")),
    ("MPI_Recv", "mpi", ("", "", "")),
    ("power", "energy", ("socket", "watt", "")),
    ("region of interest", "trace", ("", "on", "")),
)
CATEGORIES = ("trace", "task", "mpi", "energy")
SOLVE, FACTOR, DEPENDENCY, MPI_SEND, MPI_RECV, POWER, REGION_TYPE = range(len(TYPES))


def job(
    ranks: int = 2,
    threads: int = 1,
    texts: Sequence[tuple[int, int, int, str]] = (),
    warnings: Sequence[str] = (),
    **changed: Any,
) -> bytes:
    """The first line: so many ranks with so many threads each; texts are (thread, type, key, text)."""
    types = [
        {"name": name, "category": CATEGORIES.index(category), "fields": fields}
        for name, category, fields in TYPES
    ]
    sync = {"local": 5, "offset": 1000, "low": 990, "high": 1010, "used": True}
    line = {
        "schema": c.SCHEMA,
        "version": c.VERSION,
        "job": 2**64 - 1,
        "start": 10**12,
        "categories": CATEGORIES,
        "types": types,
        "ranks": [
            {"rank": r, "pid": 100 + r, "host": f"node{r}", "there": True, "ended": True, "syncs": [sync]}
            for r in range(ranks)
        ],
        "threads": [
            {
                "rank": r,
                "thread": t,
                "tid": 10 * r + t,
                "name": f"worker {t}",
                "recorded": 10,
                "kept": 10,
                "lost": 0,
                "damage": "",
            }
            for r in range(ranks)
            for t in range(threads)
        ],
        "texts": [{"thread": a, "type": b, "key": k, "text": text} for a, b, k, text in texts],
        "warnings": list(warnings),
    }
    return msgspec.json.encode(line | changed) + b"\n"


def event(time: int, thread: int, kind: int, type_: int, **fields: int) -> tuple[Any, ...]:
    """A record of an event; the fields that are not given are 0, its error 7 ns."""
    values = {"error": 7, "time": time, "thread": thread, "kind": kind, "type": type_} | fields
    return tuple(values.get(name, b"" if name == "reserved" else 0) for name in c.EVENTS.names or ())


def task(number: int, begin: int, end: int, thread: int = 0, type_: int = SOLVE) -> list[tuple[Any, ...]]:
    """Begin and end of a task."""
    return [
        event(begin, thread, c.BEGIN, type_, first=number),
        event(end, thread, c.END, type_, first=number),
    ]


def message(
    number: int, sent: int, source: int, received: int, target: int, size: int = 400, flags: int = 0
) -> tuple[list[tuple[Any, ...]], tuple[Any, ...]]:
    """Both events of a message, and its record, between two threads (of ranks of the same numbers)."""
    shared = {"message": number, "second": size, "small": 3, "flags": flags}
    ends = [
        event(sent, source, c.SEND, MPI_SEND, first=7 << 32 | target, **shared),
        event(received, target, c.RECEIVE, MPI_RECV, first=7 << 32 | source, **shared),
    ]
    return ends, (number, sent, received, size, source, target, 7, 3, flags, b"")


def stream(
    head: bytes,
    events: Iterable[tuple[Any, ...]] = (),
    messages: Iterable[tuple[Any, ...]] = (),
    gaps: Iterable[tuple[Any, ...]] = (),
    block: int = 4,
) -> bytes:
    """All of it: events by time, in blocks of so many records. Gaps are (begin, end, lost, thread)."""
    rows = sorted(events, key=lambda row: row[0])
    parts = [head]
    for tag, kind, records in (
        (b"EVNT", c.EVENTS, rows),
        (b"MESG", c.MESSAGES, list(messages)),
        (b"GAPS", c.GAPS, [(*gap, b"") for gap in gaps]),
    ):
        for at in range(0, len(records), block):
            parts.append(blocks(tag, np.array(records[at : at + block], dtype=kind)))
    counts = np.array([len(rows), len(list(messages)), len(list(gaps))], dtype="<u8")
    return b"".join([*parts, b"DONE", np.uint32(1).tobytes(), counts.tobytes()])


def blocks(tag: bytes, records: Any) -> bytes:
    """One block of records."""
    return tag + np.uint32(len(records)).tobytes() + records.tobytes()
