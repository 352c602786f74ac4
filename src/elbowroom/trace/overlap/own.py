"""elbowroom's own traces: folders, as columns of trace-reader, and merged Parquet files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
import numpy as np

from elbowroom.errors import UsageError
from elbowroom.trace.columns import BEGIN, END, KINDS, RECEIVE, SEND, TraceColumns, TracedJob
from elbowroom.trace.overlap.events import EventClass, Events, Ints, Lane, Small
from elbowroom.trace.overlap.tables import Columns, check_memory, events

SCHEMA = "elbowroom/trace-events"
IN_FLIGHT = "message in flight"
_FLIGHT = "a message is in flight from its send to the end of its receive, at most"
_NONBLOCKING = ("MPI_I", "MPI_Start", "MPI_Psend")
"""Beginnings of calls after which a message is still in flight."""


def read_columns(stream: IO[bytes]) -> Events:
    """The events of a merged trace as trace-reader writes it. MachineError where it ends early."""
    trace = TraceColumns(stream)
    table = _OwnTable(trace.job)
    for tag, block in trace.blocks():
        if tag == "events":
            table.add(block["thread"], block["type"], block["kind"], block["time"], block["message"])
    return table.events("elbowroom")


def read_parquet(path: Path) -> Events:
    """The events of a file of `trace merge -o t.parquet`. UsageError where it is no such file."""
    import pyarrow
    from pyarrow import parquet

    wrong = {
        "field": "trace",
        "value": str(path),
        "hint": "write it with `elbowroom trace merge -o t.parquet`",
    }
    try:
        file = parquet.ParquetFile(path)
        facts = file.schema_arrow.metadata or {}
        if facts.get(b"schema") != SCHEMA.encode():
            raise UsageError("is not a merged trace of elbowroom", **wrong)
        job = msgspec.json.decode(facts[b"job"], type=TracedJob)
        table = _OwnTable(job)
        for block in _row_groups(file, job):
            table.add(*block)
    except (pyarrow.ArrowException, msgspec.DecodeError, OSError, KeyError, ValueError, IndexError) as error:
        if isinstance(error, UsageError):
            raise
        raise UsageError(
            f"cannot be read as Parquet ({str(error).splitlines()[0][:120]})", **wrong
        ) from error
    return table.events("elbowroom")


def _row_groups(file: Any, job: TracedJob) -> Iterator[tuple[Any, ...]]:
    names = ["rank", "thread", "type", "category", "kind", "time_ns", "message"]
    threads = {(job.ranks[one.rank].rank, one.thread): at for at, one in enumerate(job.threads)}
    types = {(kind.name, job.category(kind)): at for at, kind in enumerate(job.types)}
    numbers = {name: at for at, name in enumerate(KINDS)}
    for group in range(file.num_row_groups):
        block = file.read_row_group(group, columns=names)
        plain = {name: block.column(name) for name in names}
        pairs = zip(plain["rank"].to_pylist(), plain["thread"].to_pylist(), strict=True)
        kinds = zip(plain["type"].to_pylist(), plain["category"].to_pylist(), strict=True)
        yield (
            np.array([threads[pair] for pair in pairs], dtype=np.int64),
            np.array([types.get(pair, 0) for pair in kinds], dtype=np.int64),
            np.array([numbers.get(kind, len(KINDS)) for kind in plain["kind"].to_pylist()], dtype=np.int64),
            plain["time_ns"].to_numpy(),
            plain["message"].fill_null(0).to_numpy(),
        )


class _OwnTable:
    """Begins, ends and messages while the blocks of a trace come."""

    def __init__(self, job: TracedJob) -> None:
        self.job = job
        self.thread, self.type, self.kind, self.time, self.message = (Columns() for _ in range(5))

    def add(self, thread: Ints, type_: Ints, kind: Ints, time: Ints, message: Ints) -> None:
        """A block of events; the others than begins, ends and messages are left out."""
        chosen = np.isin(kind, (BEGIN, END, SEND, RECEIVE))
        check_memory(len(self.kind) + len(kind))
        for column, values in zip(
            (self.thread, self.type, self.kind, self.time, self.message),
            (thread, type_, kind, time, message),
            strict=True,
        ):
            column.add(values[chosen].astype(np.int64))

    def events(self, format_: str) -> Events:
        """Spans of threads, and messages in flight beside each thread's rank."""
        job = self.job
        thread, kind = self.thread.whole(), self.kind.whole()
        type_, time, message = self.type.whole(), self.time.whole(), self.message.whole()
        first, last = paired(thread, type_, kind, time)
        classes = [EventClass(name=one.name, category=job.category(one)) for one in job.types]
        classes.append(EventClass(name=IN_FLIGHT, category="message"))
        lanes = [Lane(rank=one.rank, name=one.name or str(one.thread)) for one in job.threads]
        lanes += [Lane(rank=at, name="messages", device=True) for at in range(len(job.ranks))]
        start, end, rank = self._in_flight(thread, type_, kind, time, message, first, last)
        in_flight = len(classes) - 1
        return events(
            format=format_,
            classes=classes,
            lanes=lanes,
            ranks=[f"rank {one.rank}" for one in job.ranks],
            kind=np.concatenate([type_[first], np.full(len(start), in_flight)]),
            lane=np.concatenate([thread[first], len(job.threads) + rank]),
            start=np.concatenate([time[first], start]),
            duration=np.concatenate([time[last] - time[first], end - start]),
            notes=(*job.warnings, *((_FLIGHT,) if len(start) else ())),
        )

    def _in_flight(
        self, thread: Ints, type_: Ints, kind: Ints, time: Ints, message: Ints, first: Ints, last: Ints
    ) -> tuple[Ints, Ints, Ints]:
        """Begin, end and rank of messages in flight: on the sender's rank if the send does not block, on the
        receiver's if the receive was posted by another call than the one that completes it.
        """
        names = [one.name for one in self.job.types]
        posts = np.array([name.startswith(_NONBLOCKING) for name in names], dtype=bool)
        completes = np.array(["Wait" in name or "Test" in name for name in names], dtype=bool)
        around = _around(thread, type_, time, first, last)
        ends = np.flatnonzero(((kind == SEND) | (kind == RECEIVE)) & (message > 0))
        order = ends[np.lexsort((kind[ends], message[ends]))]
        pair = np.flatnonzero(message[order[1:]] == message[order[:-1]]) if len(order) else ends
        sent, received = order[pair], order[pair + 1]
        there = (kind[sent] == SEND) & (kind[received] == RECEIVE) & (time[received] > time[sent])
        sent, received = sent[there], received[there]
        of_thread: Small = np.array([one.rank for one in self.job.threads], dtype=np.int32)
        start, end, rank = [], [], []
        for chosen, at in ((_is(posts, around, sent), sent), (_is(completes, around, received), received)):
            start.append(time[sent[chosen]])
            end.append(time[received[chosen]])
            rank.append(of_thread[thread[at[chosen]]].astype(np.int64))
        return np.concatenate(start), np.concatenate(end), np.concatenate(rank)


def _is(wanted: Any, around: Ints, at: Ints) -> Any:
    kind = around[at]
    return (kind >= 0) & wanted[np.maximum(kind, 0)]


def paired(thread: Ints, type_: Ints, kind: Ints, time: Ints) -> tuple[Ints, Ints]:
    """Begins and their ends, as indices: of one thread and type, the innermost first."""
    chosen = np.flatnonzero((kind == BEGIN) | (kind == END))
    if not len(chosen):
        return chosen, chosen
    order = chosen[np.lexsort((chosen, type_[chosen], thread[chosen]))]
    changed = (np.diff(thread[order]) != 0) | (np.diff(type_[order]) != 0)
    group = np.concatenate([[0], np.cumsum(changed)])
    step = np.where(kind[order] == BEGIN, 1, -1)
    depth = np.cumsum(step)
    first_of_group = np.flatnonzero(np.concatenate([[True], changed]))
    depth -= (depth - step)[first_of_group][group]
    # A begin and its end are neighbours among the events of one depth.
    level = np.where(step > 0, depth, depth + 1)
    by_level = np.lexsort((np.arange(len(order)), level, group))
    begins = kind[order[by_level]] == BEGIN
    same = (np.diff(group[by_level]) == 0) & (np.diff(level[by_level]) == 0)
    follows = np.flatnonzero(begins[:-1] & ~begins[1:] & same)
    first, last = order[by_level[follows]], order[by_level[follows + 1]]
    there = time[last] >= time[first]
    return first[there], last[there]


def _around(thread: Ints, type_: Ints, time: Ints, first: Ints, last: Ints) -> Ints:
    """The type of the span that each event lies in, the one that begins last before it; -1 without one."""
    types = np.full(len(thread), -1, dtype=np.int64)
    order = first[np.lexsort((first, thread[first]))]
    end = np.zeros(len(thread), dtype=np.int64)
    end[first] = time[last]
    # Events of one thread are in the order of time.
    by_thread = np.lexsort((np.arange(len(thread)), thread))
    place = np.empty(len(thread), dtype=np.int64)
    place[by_thread] = np.arange(len(thread))
    at = np.searchsorted(place[order], place, side="right") - 1
    known = at >= 0
    span = order[np.maximum(at, 0)] if len(order) else at
    if len(order):
        inside = known & (thread[span] == thread) & (end[span] >= time)
        types[inside] = type_[span[inside]]
    return types
