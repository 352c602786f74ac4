"""What tasks, workers and messages of a merged trace did over time (thesis, Figs. 3.1 and 3.16).

Times are ns since the start of the job; what is not known is -1.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.trace.columns import (
    BEGIN,
    END,
    EVENT,
    EVENTS,
    MESSAGES,
    SET_UP,
    Block,
    Rank,
    TraceColumns,
    TracedJob,
    sets_up,
)

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

UNKNOWN = -1
TASK = "task"
IDLE = "idle"
_SUBMIT, _READY, _REGISTER, _ITERATION = "submit", "ready", "register data", "iteration"
_FIELDS = ("small", "first", "second")
_UNORDERED = np.int64(1) << 48


class Tasks(NamedTuple):
    """A row for each task: its process and number there, the index of its type (-1: never run), the worker
    and thread that ran it, the outermost iteration that it was submitted in, and when it was submitted,
    became ready, began and ended.
    """

    rank: Ints
    task: Ints
    type: Ints
    worker: Ints
    thread: Ints
    iteration: Ints
    submitted: Ints
    ready: Ints
    start: Ints
    end: Ints


class Communications(NamedTuple):
    """A row for each message of which both ends are known: threads, times on one clock, and the times that
    one offset for the whole job gives.
    """

    message: Ints
    sender: Ints
    receiver: Ints
    sent: Ints
    received: Ints
    bytes: Ints
    tag: Ints
    flags: Ints
    sent_once: Ints
    received_once: Ints


class DataBuffers(NamedTuple):
    """A row for each piece of data that a runtime system got: its number in the process, the thread that
    registered it, when, its bytes, how many tasks used it, the bytes copied between memory nodes, and when it
    was unregistered.
    """

    data: Ints
    thread: Ints
    registered: Ints
    bytes: Ints
    uses: Ints
    copied: Ints
    unregistered: Ints


class RecordedActivity(NamedTuple):
    """A trace's tasks, communications and data buffers, and for each thread and category when it was inside a
    span: sorted begins and ends that do not overlap; `exits`: how much later than the first process each
    leaves each barrier (barriers.py); `polling`: the share of idle workers' time in which they used their
    cores, None where it was not recorded.
    """

    job: TracedJob
    tasks: Tasks
    communications: Communications
    buffers: DataBuffers
    spans: dict[tuple[int, str], tuple[Ints, Ints]]
    exits: Ints
    polling: float | None = None

    @property
    def ranks(self) -> list[int]:
        """The numbers of the processes, in the order of `exits`."""
        return [rank.rank for rank in self.job.ranks]

    @property
    def workers(self) -> list[int]:
        """Threads that ran tasks, in order."""
        return [int(thread) for thread in np.unique(self.tasks.thread) if thread != UNKNOWN]

    @property
    def duration(self) -> int:
        """To the last end of a span, task or message."""
        ends = [self.tasks.end, self.tasks.submitted, self.communications.received]
        ends += [ends for _, ends in self.spans.values()]
        return max((int(one.max()) for one in ends if one.size), default=0)


def read_activity(columns: TraceColumns) -> RecordedActivity:
    """Reads a merged trace to its end. MachineError where it ends early."""
    return read_events(columns)[0]


def read_events(columns: TraceColumns) -> tuple[RecordedActivity, Block]:
    """The same, and the events that it was made of."""
    events: list[Block] = []
    messages: list[Block] = []
    for name, block in columns.blocks():
        if name == "events":
            events.append(block[np.isin(block["kind"], (EVENT, BEGIN, END))])
        elif name == "messages":
            messages.append(block)
    every = np.concatenate(events) if events else np.zeros(0, dtype=EVENTS)
    sent = np.concatenate(messages) if messages else np.zeros(0, dtype=MESSAGES)
    job = columns.job
    activity = RecordedActivity(
        job=job,
        tasks=_tasks(job, every),
        communications=_communications(job, sent),
        buffers=_buffers(job, every),
        spans=_spans(job, every),
        exits=barrier_exits(job, every),
        polling=_polling(job, every),
    )
    return activity, every


def _tasks(job: TracedJob, events: Block) -> Tasks:
    """Joins what was recorded of each task, by its process and number."""
    kinds = {
        name: [i for i, one in enumerate(job.types) if one.name == name and "task" in one.fields]
        for name in (_SUBMIT, _READY)
    }
    runs = [
        index
        for index, one in enumerate(job.types)
        if job.category(one) == TASK and "task" in one.fields and one.name not in (_SUBMIT, _READY)
    ]
    run = np.isin(events["type"], runs) & np.isin(events["kind"], (BEGIN, END))
    parts = {
        "submitted": events[np.isin(events["type"], kinds[_SUBMIT])],
        "ready": events[np.isin(events["type"], kinds[_READY])],
        "start": events[run & (events["kind"] == BEGIN)],
        "end": events[run & (events["kind"] == END)],
    }
    keys = {name: _keys(job, part) for name, part in parts.items()}
    every = np.unique(np.concatenate(list(keys.values())))
    times = {}
    for name, part in parts.items():
        times[name] = np.full(len(every), UNKNOWN, dtype=np.int64)
        # The first submission, readiness and begin; the last end (a task may be suspended).
        order = slice(None) if name == "end" else slice(None, None, -1)
        times[name][np.searchsorted(every, keys[name])[order]] = part["time"][order]
    started = parts["start"][::-1]
    place = np.searchsorted(every, keys["start"])[::-1]
    of_run = {name: np.full(len(every), UNKNOWN, dtype=np.int64) for name in ("type", "worker", "thread")}
    of_run["type"][place] = started["type"]
    of_run["thread"][place] = started["thread"]
    of_run["worker"][place] = _field(job, started, "worker")
    inside = _named(job, events, _ITERATION, EVENT)
    inside = inside[_field(job, inside, "level") == 0]
    of_run["iteration"] = np.full(len(every), UNKNOWN, dtype=np.int64)
    keys_inside = _keys(job, inside)
    there = np.isin(keys_inside, every)
    of_run["iteration"][np.searchsorted(every, keys_inside[there])] = _field(job, inside, "iteration")[there]
    return Tasks(rank=every // _UNORDERED, task=every % _UNORDERED, **of_run, **times)


def _buffers(job: TracedJob, events: Block) -> DataBuffers:
    """Joins what was recorded of each handle. Uses and copies are unknown where the category `data` was not
    recorded.
    """
    registered = _named(job, events, _REGISTER, EVENT)
    ends, uses, copies = (
        _named(job, events, name, kind)
        for name, kind in (("unregister data", BEGIN), ("use", EVENT), ("copy", BEGIN))
    )
    every = [_keys(job, part, "data") for part in (registered, ends, uses, copies)]
    known, place = np.unique(np.concatenate(every), return_inverse=True)
    own, ended, used, copied = np.split(place, np.cumsum([len(part) for part in every])[:-1])
    until = np.full(len(known), UNKNOWN, dtype=np.int64)
    until[ended] = ends["time"]
    sums = {
        "uses": np.bincount(used, minlength=len(known)),
        "copied": np.bincount(copied, _field(job, copies, "bytes"), minlength=len(known)),
    }
    recorded = any(one.name == "use" and "data" in one.fields for one in job.types)
    return DataBuffers(
        data=_field(job, registered, "data"),
        thread=registered["thread"].astype(np.int64),
        registered=registered["time"].astype(np.int64),
        bytes=_field(job, registered, "bytes"),
        unregistered=until[own],
        **{
            name: values[own].astype(np.int64) if recorded else np.full(len(own), UNKNOWN, dtype=np.int64)
            for name, values in sums.items()
        },
    )


def _polling(job: TracedJob, events: Block) -> float | None:
    """CPU time of idle workers by their time without a task."""
    begins, ends = (_named(job, events, IDLE, kind) for kind in (BEGIN, END))
    cpu = _field(job, ends, "cpu_ns")
    if not (cpu != UNKNOWN).any():
        return None
    elapsed = 0
    for thread in np.unique(ends["thread"]):
        until = ends["time"][ends["thread"] == thread]
        own = begins["time"][begins["thread"] == thread][: len(until)]
        elapsed += int(until[: len(own)].sum() - own.sum())
    return float(np.clip(cpu.sum() / elapsed, 0, 1)) if elapsed > 0 else None


def _named(job: TracedJob, events: Block, name: str, kind: int) -> Block:
    """The events of that kind of the types of that name."""
    types = [index for index, one in enumerate(job.types) if one.name == name]
    chosen: Block = events[np.isin(events["type"], types) & (events["kind"] == kind)]
    return chosen


def _keys(job: TracedJob, events: Block, name: str = "task") -> Ints:
    """One number for the process and the number of the task, or of what else the field says."""
    ranks = np.array([job.ranks[thread.rank].rank for thread in job.threads] or [0], dtype=np.int64)
    keys: Ints = ranks[events["thread"]] * _UNORDERED + _field(job, events, name)
    return keys


def _field(job: TracedJob, events: Block, name: str) -> Ints:
    """The field of that name of each event; unknown where its type has none."""
    values = np.full(len(events), UNKNOWN, dtype=np.int64)
    for column, field in enumerate(_FIELDS):
        types = [index for index, one in enumerate(job.types) if one.fields[column] == name]
        chosen = np.isin(events["type"], types)
        values[chosen] = events[field][chosen].astype(np.int64)
    return values


def _spans(job: TracedJob, events: Block) -> dict[tuple[int, str], tuple[Ints, Ints]]:
    """When each thread was inside a span of each category, nested spans as one; one without an end lasts to
    the end of the trace. Calls that set MPI up have a category of their own: they do not communicate.
    """
    last = int(events["time"].max(initial=0))
    names = (*job.categories, SET_UP)
    categories = np.array(
        [len(job.categories) if sets_up(kind.name) else kind.category for kind in job.types] or [0],
        dtype=np.int64,
    )
    both = events[np.isin(events["kind"], (BEGIN, END))]
    keys = both["thread"].astype(np.int64) * len(names) + categories[both["type"]]
    order = np.lexsort((both["time"], keys))
    both, keys = both[order], keys[order]
    spans = {}
    for part in np.split(np.arange(len(both)), np.flatnonzero(np.diff(keys)) + 1):
        if not part.size:
            continue
        steps = np.where(both["kind"][part] == BEGIN, 1, -1)
        depth = np.cumsum(steps)
        # An end without its begin (lost, or before the part that was read) does not count.
        depth -= np.minimum(np.minimum.accumulate(depth), 0)
        before = np.concatenate([[0], depth[:-1]])
        begins = both["time"][part][(before == 0) & (depth == 1)]
        ends = both["time"][part][(before == 1) & (depth == 0)]
        thread, category = divmod(int(keys[part[0]]), len(names))
        if len(ends) < len(begins):
            ends = np.append(ends, last)
        spans[thread, names[category]] = begins.copy(), ends.copy()
    return spans


def ns_inside(begins: Ints, ends: Ints, edges: Floats) -> Floats:
    """ns of each part between neighbouring edges that are inside the spans, which do not overlap."""
    if not len(begins):
        return np.zeros(len(edges) - 1)
    bounds = np.column_stack([begins, ends]).ravel().astype(np.float64)
    until = np.column_stack([np.zeros(len(begins)), ends - begins]).ravel()
    until = np.cumsum(until)
    return np.diff(np.interp(edges, bounds, until))


def _communications(job: TracedJob, messages: Block) -> Communications:
    once = {
        end: _with_one_offset(job, messages[end], messages[thread])
        for end, thread in (("sent", "from"), ("received", "to"))
    }
    return Communications(
        message=messages["message"].astype(np.int64),
        sender=messages["from"].astype(np.int64),
        receiver=messages["to"].astype(np.int64),
        sent=messages["sent"].copy(),
        received=messages["received"].copy(),
        bytes=messages["bytes"].astype(np.int64),
        tag=messages["tag"].astype(np.int64),
        flags=messages["flags"].astype(np.int64),
        sent_once=once["sent"],
        received_once=once["received"],
    )


def _with_one_offset(job: TracedJob, times: npt.NDArray[np.int64], threads: Iterable[int]) -> Ints:
    """The times that each clock's first comparison alone gives, as a trace with one comparison has them."""
    of_thread = np.asarray(threads)
    result = times.astype(np.int64)
    for index, rank in enumerate(job.ranks):
        mine = [number for number, thread in enumerate(job.threads) if thread.rank == index]
        chosen = np.isin(of_thread, mine)
        used = [point for point in rank.syncs if point.used]
        if len(used) > 1 and chosen.any():
            result[chosen] += used[0].offset - _offsets(rank, job.start, result[chosen])
    return result


def _offsets(rank: Rank, start: int, times: Ints) -> Ints:
    """The offset of the clock at times of the job: linear between comparisons, constant outside of them."""
    used = [point for point in rank.syncs if point.used]
    at = np.array([point.local + point.offset - start for point in used], dtype=np.float64)
    first = used[0].offset
    # From the first offset on: offsets of two hosts have more digits than a double.
    change = np.array([point.offset - first for point in used], dtype=np.float64)
    return first + np.rint(np.interp(times, at, change)).astype(np.int64)


BARRIER = "MPI_Barrier"


class RankExit(msgspec.Struct, frozen=True, kw_only=True):
    """How much later than the first process a rank leaves barriers, ns: median, last decile, most."""

    rank: int
    median_ns: float
    d9_ns: float
    most_ns: int


class BarrierExits(msgspec.Struct, frozen=True, kw_only=True):
    """Of barriers of all ranks: how much later than the first process the last one leaves, ns; by rank."""

    barriers: int
    median_ns: float
    d9_ns: float
    most_ns: int
    ranks: tuple[RankExit, ...]


def barrier_exits(job: TracedJob, events: Block) -> Ints:
    """How much later than the first process each leaves each barrier, ns: (barriers, ranks); (0, 0) where not
    all ranks record the same number of barriers, so that nobody knows which belong together.
    """
    none = np.zeros((0, 0), dtype=np.int64)
    types = [index for index, kind in enumerate(job.types) if kind.name == BARRIER]
    ranks = np.array([thread.rank for thread in job.threads] or [0], dtype=np.int64)
    ends = events[np.isin(events["type"], types) & (events["kind"] == END)]
    exits = [np.sort(ends["time"][ranks[ends["thread"]] == rank]) for rank in range(len(job.ranks))]
    if len(exits) < 2 or not len(exits[0]) or len({len(times) for times in exits}) > 1:
        return none
    table = np.stack(exits, axis=1)
    delays: Ints = table - table.min(axis=1, keepdims=True)
    return delays


def exits_summary(delays: Ints, ranks: Sequence[int]) -> BarrierExits | None:
    """None where no barrier of all ranks is known."""
    if not delays.size:
        return None
    last = delays.max(axis=1)
    return BarrierExits(
        barriers=len(delays),
        median_ns=float(np.median(last)),
        d9_ns=float(np.quantile(last, 0.9)),
        most_ns=int(last.max()),
        ranks=tuple(
            RankExit(
                rank=rank,
                median_ns=float(np.median(own)),
                d9_ns=float(np.quantile(own, 0.9)),
                most_ns=int(own.max()),
            )
            for rank, own in zip(ranks, delays.T, strict=True)
        ),
    )


MOST_CURVES = 6
"""Ranks that are drawn, evenly chosen among all, beside the last of all."""


def exits_figure(delays: Ints, ranks: Sequence[int]) -> Figure:
    """The distribution of the delays: which share of the barriers a process has left by then."""
    chosen = np.unique(np.linspace(0, len(ranks) - 1, MOST_CURVES).astype(np.int64))
    curves = [(f"rank {ranks[place]}", delays[:, place]) for place in chosen]
    curves.append(("last of all", delays.max(axis=1)))
    return Figure(
        name="barriers",
        title=f"When processes leave {len(delays)} barriers",
        x=Axis(label="Time since the first process left (µs)"),
        left=Axis(label="Share of the barriers", reach=1.0),
        series=tuple(
            Series(
                name=name,
                hue="black" if name == "last of all" else "blue",
                style="line",
                drawn="smooth",
                x=tuple((np.sort(values) / 1e3).tolist()),
                y=tuple(((np.arange(len(values)) + 1) / len(values)).tolist()),
                value="share",
            )
            for name, values in curves
        ),
        caption="Times of two ranks are as accurate as their clocks' comparison (trace sync).",
    )
