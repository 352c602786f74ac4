"""Traces in JSON: Kineto's (PyTorch), elbowroom's own, and any other in Chrome's Trace Event Format."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np

from elbowroom.errors import UsageError
from elbowroom.trace.overlap.events import NONE, EventClass, Events, Floats, Ints, Lane
from elbowroom.trace.overlap.json_events import NO_ARGUMENTS, EventArguments, JsonEvent, JsonTrace
from elbowroom.trace.overlap.recognition import KERNELS
from elbowroom.trace.overlap.tables import Columns, Numbering, check_memory, events

DEVICE = frozenset((*KERNELS, "gpu_memcpy", "gpu_memset"))
"""Categories of events on a device."""
LAUNCHES = frozenset(("cuda_runtime", "cuda_driver", "hip_runtime"))
STEP = re.compile(r"(ProfilerStep#|(train(ing)?[ _]?)?(step|iter(ation)?)[ _#:]*)\d+$", re.IGNORECASE)
"""Names of steps."""
US = 1000.0


def read_json(path: Path) -> Events:
    """The events of a file. UsageError where it is no trace in JSON."""
    trace = JsonTrace(path)
    table = _Table()
    for block in trace.blocks():
        table.add(block)
    return table.events(path, trace)


class _Table:
    """What is known of a trace while its blocks come."""

    def __init__(self) -> None:
        self.classes = Numbering()  # (name, category, detail, collective)
        self.lanes = Numbering()  # (on a device, process, stream or thread)
        self.kind, self.lane, self.correlation, self.external = Columns(), Columns(), Columns(), Columns()
        self.start: list[Floats] = []
        self.duration: list[Floats] = []
        self.open: dict[tuple[Any, Any], list[JsonEvent]] = {}
        self.names: dict[Any, str] = {}
        self.unended = 0

    def add(self, block: list[JsonEvent]) -> None:
        """Adds the events of a block."""
        whole = [event for event in block if event.ph == "X"]
        if len(whole) != len(block):
            whole += self._paired(event for event in block if event.ph != "X")
        timed = [event for event in whole if type(event.ts) is float and type(event.dur) is float]
        if len(timed) != len(whole):
            timed += [event for event in map(_with_numbers, whole) if event is not None]
        if not timed:
            return
        check_memory(len(self.kind) + len(timed))
        arguments = [event.args if type(event.args) is EventArguments else NO_ARGUMENTS for event in timed]
        pairs = list(zip(timed, arguments, strict=True))
        classes, lanes = self.classes, self.lanes
        self.kind.add([classes[_class_key(event, more)] for event, more in pairs])
        self.lane.add([lanes[_lane_key(event, more)] for event, more in pairs])
        self.start.append(np.array([event.ts for event in timed], dtype=float))
        self.duration.append(np.array([event.dur for event in timed], dtype=float))
        self.correlation.add([_whole(more.correlation) for more in arguments])
        self.external.add([_whole(more.external) for more in arguments])

    def _paired(self, block: Any) -> list[JsonEvent]:
        """Begins and ends as one event; names of processes are kept."""
        whole = []
        for event in block:
            key = (_hashable(event.pid), _hashable(event.tid))
            if event.ph == "B":
                self.open.setdefault(key, []).append(event)
            elif event.ph == "E":
                if self.open.get(key):
                    begin = self.open[key].pop()
                    if isinstance(begin.ts, float) and isinstance(event.ts, float):
                        begin.dur = event.ts - begin.ts
                        whole.append(begin)
            elif event.ph == "M" and event.name == "process_name" and type(event.args) is EventArguments:
                self.names[_hashable(event.pid)] = str(event.args.name)
        return whole

    def events(self, path: Path, trace: JsonTrace) -> Events:
        """All of it as columns."""
        start = np.concatenate(self.start) if self.start else np.zeros(0)
        duration = np.concatenate(self.duration) if self.duration else np.zeros(0)
        kind, lane = self.kind.whole(), self.lane.whole()
        usable = np.isfinite(start) & np.isfinite(duration) & (duration > 0) & (np.abs(start) < 1e18)
        usable &= duration < 1e15
        start = np.where(usable, start, 0.0)
        origin = float(start[usable].min()) if usable.any() else 0.0
        began = np.round((start - origin) * US).astype(np.int64)
        lasted = np.where(usable, np.round(np.where(usable, duration, 0.0) * US), 0).astype(np.int64)
        classes = [_event_class(key) for key in self.classes]
        ranks, lanes = self._lanes(path, trace)
        unended = sum(map(len, self.open.values()))
        doubts = [f"{path.name} {trace.doubt}: the events before that are analysed"] if trace.doubt else []
        notes = [f"{path.name}: {unended} events have no end, and are left out"] if unended else []
        _check_one_run(path, classes, lanes, kind[usable], lane[usable])
        launched = _launched(
            classes, kind, lane, began, lasted, self.correlation.whole(), self.external.whole()
        )
        steps = len({one.name for one in classes if STEP.match(one.name)})
        return events(
            format="json",
            classes=classes,
            lanes=lanes,
            ranks=ranks,
            kind=kind,
            lane=lane,
            start=began,
            duration=lasted,
            launched=launched,
            steps=steps or None,
            job=_job(trace),
            doubts=tuple(doubts),
            notes=tuple(notes),
        )

    def _lanes(self, path: Path, trace: JsonTrace) -> tuple[list[str], list[Lane]]:
        """One rank for the file where it has at most one device, otherwise one for each device; for each
        process where there is none.
        """
        devices = {key[1] for key in self.lanes if key[0]}
        stated = trace.about.get("distributedInfo")
        rank = stated.get("rank") if isinstance(stated, dict) else None
        own = f"rank {rank}" if isinstance(rank, int) else path.name
        ranks = Numbering()
        lanes = []
        for on_device, process, row in self.lanes:
            if len(devices) == 1:
                name = own
            elif on_device or not devices:
                name = self.names.get(process, f"{'device' if devices else 'process'} {process}")
            else:
                name = f"host {process}"
            lanes.append(Lane(rank=ranks[name], name=str(row), device=on_device))
        return list(ranks), lanes


def _job(trace: JsonTrace) -> str:
    """The size of the job, as the files of all its ranks state it."""
    stated = trace.about.get("distributedInfo")
    size = stated.get("world_size") if isinstance(stated, dict) else None
    return str(size) if isinstance(size, int) else ""


def _check_one_run(path: Path, classes: list[EventClass], lanes: list[Lane], kind: Ints, lane: Ints) -> None:
    """UsageError where a thread has a step twice: files of several runs were put together."""
    steps = np.array([one.category == "step" for one in classes], dtype=bool)
    host = np.array([not one.device for one in lanes], dtype=bool)
    if not steps.any():
        return
    chosen = steps[kind] & host[lane]
    pairs, counts = np.unique(np.stack([kind[chosen], lane[chosen]]), axis=1, return_counts=True)
    if (counts > 1).any():
        name = classes[int(pairs[0, int(np.argmax(counts))])].name
        raise UsageError(
            f"has {name} twice on one thread: several runs are mixed",
            field="trace",
            value=str(path),
            hint="give the trace of one run",
        )


def _class_key(event: JsonEvent, more: EventArguments) -> tuple[Any, ...]:
    category = event.cat
    if category in DEVICE:
        return event.name, category, bytes(more.grid), more.collective is not None
    return event.name, category, bytes(more.dims) if category == "cpu_op" else b"", False


def _lane_key(event: JsonEvent, more: EventArguments) -> tuple[bool, Any, Any]:
    if event.cat in DEVICE:
        return True, event.pid, event.tid if more.stream is None else more.stream
    return False, event.pid, event.tid


def _event_class(key: tuple[Any, ...]) -> EventClass:
    name, category, detail, collective = key
    text = detail.decode("utf-8", "replace").strip()
    if text and category in DEVICE:
        text = "grid " + "x".join(re.findall(r"-?\d+", text))
    return EventClass(
        name=str(name), category="step" if STEP.match(str(name)) else str(category),
        detail="".join(text.split("\n")), collective=collective, )  # fmt: skip


def _with_numbers(event: JsonEvent) -> JsonEvent | None:
    """An event whose times are texts, or None for one that has none; None for one that is complete."""
    if type(event.ts) is float and type(event.dur) is float:
        return None
    try:
        event.ts, event.dur = float(event.ts or ""), float(event.dur or "")
    except (TypeError, ValueError):
        return None
    return event


def _hashable(value: Any) -> Any:
    return value if isinstance(value, int | str) else str(value)


def _whole(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 2**62 else NONE


def _launched(
    classes: list[EventClass],
    kind: Ints,
    lane: Ints,
    start: Ints,
    duration: Ints,
    correlation: Ints,
    external: Ints,
) -> Ints:
    """The class of the host's operation that launched each event of a device: the one with its external id,
    or the one around the launch with its correlation.
    """
    category = np.array(
        [{"cpu_op": 1, "user_annotation": 1}.get(one.category, 0) for one in classes], dtype=np.int64
    )
    category[[one.category in LAUNCHES for one in classes]] = 2
    category[[one.category in DEVICE for one in classes]] = 3
    found = np.full(len(kind), NONE, dtype=np.int64)
    of_event = category[kind] if len(kind) else kind
    operations, launches, device = (np.flatnonzero(of_event == number) for number in (1, 2, 3))
    if not len(operations) or not len(device):
        return found
    by_external = _joined(external, device, operations)
    found[device] = np.where(by_external != NONE, kind[by_external], NONE)
    by_correlation = _joined(correlation, device, launches)
    around = _around(lane, start, duration, launches, operations)
    known = (by_correlation != NONE) & (by_external == NONE)
    found[device[known]] = around[np.searchsorted(launches, by_correlation[known])]
    operation = found != NONE
    found[device[known]] = np.where(operation[device[known]], kind[found[device[known]]], NONE)
    return found


def _joined(key: Ints, of: Ints, to: Ints) -> Ints:
    """For each event `of` the event among `to` with the same key, NONE without one."""
    to = to[key[to] != NONE]
    if not len(to):
        return np.full(len(of), NONE, dtype=np.int64)
    order = to[np.argsort(key[to], kind="stable")]
    at = np.minimum(np.searchsorted(key[order], key[of]), len(order) - 1)
    return np.where(key[order[at]] == key[of], order[at], NONE)


def _around(lane: Ints, start: Ints, duration: Ints, inner: Ints, outer: Ints) -> Ints:
    """For each event `inner` the event `outer` of the same thread that begins last before it and has not
    ended, or the one before that; NONE without one.
    """
    order = outer[np.lexsort((start[outer], lane[outer]))]
    # One number that sorts by thread, then time.
    span = int(start.max() - start.min()) + 1
    first = int(start.min())
    key, wanted = lane[order] * span + start[order] - first, lane[inner] * span + start[inner] - first
    at = np.searchsorted(key, wanted, side="right") - 1
    found = np.full(len(inner), NONE, dtype=np.int64)
    for _ in range(16):
        there = (at >= 0) & (found == NONE)
        place = order[np.maximum(at, 0)]
        inside = there & (lane[place] == lane[inner]) & (start[place] + duration[place] >= start[inner])
        found[inside] = place[inside]
        at = at - 1
    return found
