"""Traces in JSON: Kineto's (PyTorch), elbowroom's own, and any other in Chrome's Trace Event Format."""

from __future__ import annotations

import dataclasses
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from elbowroom.errors import UsageError
from elbowroom.trace.overlap import names
from elbowroom.trace.overlap.accelerators import ASYNCHRONOUS, OPERATIONS, ProcessFacts, backends_of, of_host
from elbowroom.trace.overlap.categories import ANNOTATION, STEP, on_device
from elbowroom.trace.overlap.events import (
    EventClass,
    Events,
    FastReader,
    Flags,
    Floats,
    Ints,
    Lane,
    Small,
    launch_detail,
)
from elbowroom.trace.overlap.json_events import (
    NO_ARGUMENTS,
    EventArguments,
    JsonEvent,
    JsonTrace,
    text_behind,
    text_in_front,
)
from elbowroom.trace.overlap.launches import Launches, find_launches
from elbowroom.trace.overlap.raw_events import RawColumns, RawEvents, RawFile
from elbowroom.trace.overlap.tables import STEPS, Columns, Numbering, check_memory, events

US = 1000.0
_GROUPS = (None, False, True)
"""Whether the events of a lane are on a device; None: their process says it."""
LATEST = 4e15
"""us: 126 years; later times, and earlier ones than minus that, are damage."""


def read_json(path: Path, fast: FastReader | None = None) -> Events:
    """The events of a file. UsageError where it is no trace in JSON.

    `fast` reads the columns of a large file that is whole (json-events); what it declines, and all else, is
    read here.
    """
    if fast is not None:
        with fast(path) as stream, suppress(EOFError):  # it declined the file, or was ended
            return JsonFile(raw=RawEvents(stream), path=path).whole()
    trace = JsonTrace(path)
    table = EventTable()
    for block in trace.blocks():
        table.add(block)
    return table.events(path, trace.about, trace.doubt, trace.remark)


@dataclass(frozen=True, kw_only=True)
class JsonFile(RawFile):
    """What json-events wrote of a file."""

    path: Path
    format: str = "json"

    def classes(self) -> list[tuple[str, str]]:
        """Their names and categories."""
        return [(str(one[0]), str(one[1])) for one in self.raw.header["classes"]]

    def events(self, columns: RawColumns, steps: Flags | None = None) -> Events:
        """The events of these columns, which it changes. The classes and lanes that the file has together
        decide what its lanes are.
        """
        header, pairs = self.raw.header, self.raw.pairs
        if steps is not None:
            there = np.bincount(columns.kind, minlength=len(steps)) > 0
            pairs = pairs[:, (there | ~steps)[pairs[0]]]
        table = EventTable()
        table.add_columns(columns, header, pairs)
        behind, remark = text_behind(
            header["tail"], header.get("tail_at", 0), self.path, in_object=bool(header["head"])
        )
        about = text_in_front(header["head"]) | behind
        read = table.events(self.path, about, header.get("doubt", ""), remark)
        return dataclasses.replace(read, format=self.format)


class _Groups(dict[Any, bool | None]):
    """Whether events of a category are on a device; None: their lane says it."""

    def __missing__(self, category: Any) -> bool | None:
        answer = self[category] = on_device(str(category))
        return answer


class EventTable:
    """What is known of a trace while its blocks come."""

    def __init__(self) -> None:
        # (name, category, detail, collective, on a device, or its process that decides)
        self.classes = Numbering()
        self.lanes = Numbering()  # (on a device or None, process, stream or thread, whether asynchronous)
        self.groups = _Groups()
        self.kind, self.lane = Columns(np.int32), Columns(np.int32)
        self.correlation, self.external = Columns(), Columns()
        self.start: list[Floats] = []
        self.duration: list[Floats] = []
        self.open: dict[tuple[Any, ...], list[JsonEvent]] = {}
        self.facts = ProcessFacts()
        self.timeless = 0
        self.unended = 0
        self.merged = False  # steps have no numbers
        self.continued: Flags | None = None

    def add(self, block: list[JsonEvent]) -> None:
        """Adds the events of a block."""
        whole = [event for event in block if event.ph == "X"]
        if len(whole) != len(block):
            whole += self._paired(event for event in block if event.ph != "X")
        timed = [event for event in whole if type(event.ts) is float and type(event.dur) is float]
        if len(timed) != len(whole):
            read = [_with_numbers(event) for event in whole if not _has_numbers(event)]
            timed += [event for event in read if event is not None]
            self.timeless += len(whole) - len(timed)
        if not timed:
            return
        check_memory(len(self.kind) + len(timed))
        arguments = [event.args if type(event.args) is EventArguments else NO_ARGUMENTS for event in timed]
        pairs = list(zip(timed, arguments, strict=True))
        try:
            kinds, lanes = self._keys(pairs)
        except TypeError:  # a name, category, process or thread that is a list
            for event, more in pairs:
                event.name, event.cat, event.pid, event.tid, more.stream = map(
                    _hashable, (event.name, event.cat, event.pid, event.tid, more.stream)
                )
            kinds, lanes = self._keys(pairs)
        self.kind.add(kinds)
        self.lane.add(lanes)
        self.start.append(np.array([event.ts for event in timed], dtype=float))
        self.duration.append(np.array([event.dur for event in timed], dtype=float))
        self.correlation.add([_whole(more.correlation) for more in arguments])
        self.external.add([_whole(more.external) for more in arguments])

    def _keys(self, pairs: list[tuple[JsonEvent, EventArguments]]) -> tuple[list[int], list[int]]:
        classes, lanes, groups = self.classes, self.lanes, self.groups
        kinds: list[int] = []
        places: list[int] = []
        add_kind, add_place = kinds.append, places.append
        key: tuple[Any, ...]
        for event, more in pairs:
            category = event.cat
            group = groups[category]
            if group is None and type(more.device) is int and more.device >= 0:
                group = True
            row = event.tid
            if group is False:
                key = event.name, category, bytes(more.dims) if category == "cpu_op" else b"", False, False
            else:
                detail, on = (
                    (_launch(more.grid, more.block, more.shared), True) if group else (b"", (event.pid,))
                )
                key = event.name, category, detail, more.collective is not None, on
                if more.stream is not None:
                    row = more.stream
            add_kind(classes[key])
            add_place(lanes[group, event.pid, row, event.ph == "b"])
        return kinds, places

    def _paired(self, block: Any) -> list[JsonEvent]:
        """Begins and ends as one event; what metadata say of processes is kept."""
        whole = []
        for event in block:
            key: tuple[Any, ...] = (_hashable(event.pid), _hashable(event.tid))
            if event.ph in ("b", "e"):  # asynchronous: they belong together by their id
                number = event.id if event.id2 is None else event.id2
                key = (key[0], *map(_hashable, (event.cat, number, event.scope)), "b")
            if event.ph in ("B", "b"):
                self.open.setdefault(key, []).append(event)
            elif event.ph in ("E", "e"):
                if self.open.get(key):
                    begin = self.open[key].pop()
                    start, end = _number(begin.ts), _number(event.ts)
                    if start is not None and end is not None:
                        begin.ts, begin.dur = start, end - start
                        whole.append(begin)
            elif event.ph == "M" and type(event.args) is EventArguments:
                self.facts.add(key[0], event.name, event.args, key[1])
        return whole

    def add_columns(self, columns: RawColumns, header: dict[str, Any], pairs: Ints) -> None:
        """Adds what json-events wrote (raw_events.py). `pairs`: the classes and lanes that the file has
        together.
        """
        check_memory(len(columns))
        self.correlation.add(columns.correlation)
        self.external.add(columns.external)
        self.start.append(columns.start)
        self.duration.append(columns.duration)
        self.continued = columns.continued
        kind, group = np.zeros((2, len(header["classes"])), dtype=np.int32)
        for at in _in_order(pairs[0]):
            key, group[at] = self._class_key(header["classes"][at])
            kind[at] = self.classes[key]
        self.kind.add(kind[columns.kind])
        # A lane is of one group of events: of the host, of a device, or of what its process decides.
        places_of = columns.lane + np.int32(len(header["lanes"])) * group[columns.kind]
        places = pairs[1] + len(header["lanes"]) * group[pairs[0]]
        lane = np.zeros(len(_GROUPS) * len(header["lanes"]), dtype=np.int32)
        for at in _in_order(places):
            which = _GROUPS[at // len(header["lanes"])]
            process, thread, stream_, *more = header["lanes"][at % len(header["lanes"])]
            row = thread if which is False or stream_ is None else stream_
            lane[at] = self.lanes[which, _hashable(process), _hashable(row), bool(more)]
        self.lane.add(lane[places_of])
        for process, thread, fact, name, labels, place in header["metadata"]:
            arguments = EventArguments(name=name, labels=labels, sort_index=place)
            self.facts.add(_hashable(process), fact, arguments, _hashable(thread))
        self.timeless, self.unended = header["timeless"], header["waiting"]
        self.merged = bool(header.get("merged"))

    def _class_key(self, raw: list[Any]) -> tuple[tuple[Any, ...], int]:
        """The key of a class as `_keys` makes it, and which of _GROUPS its lanes are of."""
        name, category, device, collective, process, dims, *launch = raw
        name, category = _hashable(name), _hashable(category)
        group = self.groups[category]
        if group is None and device:
            group = True
        if group is False:
            return (
                name,
                category,
                dims.encode() if category == "cpu_op" else b"",
                False,
                False,
            ), _GROUPS.index(group)
        detail, on = (_launch(*map(str.encode, launch)), True) if group else (b"", (_hashable(process),))
        return (name, category, detail, collective, on), _GROUPS.index(group)

    def events(self, path: Path, about: dict[str, Any], doubt: str, remark: str) -> Events:
        """All of it as columns."""
        start, duration = (
            one[0] if len(one) == 1 else np.concatenate([np.zeros(0), *one])
            for one in (self.start, self.duration)
        )
        self.start, self.duration = [], []
        usable = (np.abs(start) < LATEST) & (duration >= 0) & (duration < LATEST)
        origin = float(start[usable].min()) if usable.any() else 0.0
        began, lasted = _ns(start, usable, origin), _ns(duration, usable, 0.0)
        lasted[~usable] = 0
        del start, duration
        classes, kind, note = self._classes(about, device=any(self._on_devices()))
        lane = self.lane.taken()
        kind = self._of_named_threads(classes, kind, lane)
        self._extend_collectives(classes, kind, lane, began, lasted)
        launches = find_launches(
            classes, kind, lane, began, lasted, self.correlation.taken(), self.external.taken()
        )
        ranks, lanes = self._lanes(path, about, self._on_devices(), launches, lane)
        if not self.merged:
            _check_one_run(path, classes, lanes, kind[usable], lane[usable])
        return events(
            format="json",
            classes=classes,
            lanes=lanes,
            ranks=ranks,
            kind=kind,
            lane=lane,
            start=began,
            duration=lasted,
            launched=launches.operation,
            issued=launches.issued,
            continued=self.continued,
            job=_job(about),
            multiprocessors=_multiprocessors(about),
            doubts=(f"{path.name} {doubt}: the events before that are analysed",) if doubt else (),
            notes=(
                *self._notes(path, int((~usable).sum())),
                *((note,) if note else ()),
                *((f"{path.name}: {remark}",) if remark else ()),
            ),
        )

    def _notes(self, path: Path, impossible: int) -> list[str]:
        unended = self.unended + sum(map(len, self.open.values()))
        counts = (
            (unended, "have no end"),
            (self.timeless, "have no time or duration that is a number"),
            (impossible, "have an impossible time or duration (negative, or too large)"),
        )
        return [f"{path.name}: {count} events {what}, and are left out" for count, what in counts if count]

    def _on_devices(self) -> list[bool]:
        """Whether each lane is one of a device."""
        return [self._on_device(group, process) for group, process, *_ in self.lanes]

    def _on_device(self, group: bool | None, process: Any) -> bool:
        return process in self.facts.devices if group is None else group

    def _classes(self, about: dict[str, Any], *, device: bool) -> tuple[list[EventClass], Small, str]:
        """The classes, the class of each event, and a note. Categories of the host are those that follow from
        what else was recorded; the same class of several processes is one.
        """
        there = [
            self._on_device(None, key[4][0]) if isinstance(key[4], tuple) else key[4] for key in self.classes
        ]
        classes = [_event_class(key, device=on) for key, on in zip(self.classes, there, strict=True)]
        hosts = [one for one, on in zip(classes, there, strict=True) if not on]
        resolved, note = of_host(hosts, device=device, backends=backends_of(about.get("distributedInfo")))
        rest = iter(resolved)
        numbers = Numbering()
        number = np.array(
            [numbers[one if on else next(rest)] for one, on in zip(classes, there, strict=True)],
            dtype=np.int32,
        )
        kind = self.kind.taken()
        return list(numbers), number[kind] if len(kind) else kind, note

    def _of_named_threads(self, classes: list[EventClass], kind: Small, lane: Small) -> Small:
        """The class of each event, where the names of threads say what they hold; new classes are added."""
        roles = [self.facts.role_of(process, row) for _, process, row, _ in self.lanes]
        if not any(roles):
            return kind
        communicates = np.array([names.communicates(one.name) for one in classes])
        for role in {*roles} - {"", OPERATIONS}:
            chosen = np.array([one == role for one in roles])[lane]
            if role == ASYNCHRONOUS:
                chosen[chosen] = ~communicates[kind[chosen]]
            own, number = np.unique(kind[chosen], return_inverse=True)
            kind[chosen] = (len(classes) + number).astype(np.int32)
            category = STEP if role == STEP else ANNOTATION
            classes += [msgspec.structs.replace(classes[at], category=category) for at in own]
        return kind

    def _extend_collectives(
        self, classes: list[EventClass], kind: Small, lane: Small, start: Ints, duration: Ints
    ) -> None:
        """XLA's collectives are in flight from `all-gather-start.3` to the end of `all-gather-done.3`: they
        get this time, and a lane of their own, where no thread of the device has them.
        """
        ends = {one.name: at for at, one in enumerate(classes) if names.communicates(one.name)}
        pairs = [(at, ends[done]) for name, at in ends.items() if (done := _end_of(name)) in ends]
        for number, (group, process, row, _) in enumerate(list(self.lanes)):
            threads = self.facts.threads.get(process, {}).values()
            if self.facts.role_of(process, row) != OPERATIONS or ASYNCHRONOUS in threads:
                continue
            for begin, end in pairs:
                first, last = (np.flatnonzero((lane == number) & (kind == one)) for one in (begin, end))
                last = last[np.argsort(start[last], kind="stable")]
                at = np.searchsorted(start[last], start[first])
                first, at = first[at < len(last)], at[at < len(last)]
                duration[first] = start[last[at]] + duration[last[at]] - start[first]
                lane[first] = self.lanes[group, process, "in flight", True]

    def _lanes(
        self, path: Path, about: dict[str, Any], on_devices: list[bool], launches: Launches, lane: Small
    ) -> tuple[list[str], list[Lane]]:
        """One rank for the file where it states its rank or has one device; otherwise one for each device,
        with the process that launches for it alone; for each process where there is no device.
        """
        owners = [process for _, process, *_ in self.lanes]
        devices = {one for one, on in zip(owners, on_devices, strict=True) if on}
        stated = about.get("distributedInfo")
        rank = stated.get("rank") if isinstance(stated, dict) else None
        whole = isinstance(rank, int) or len(devices) == 1
        own = f"rank {rank}" if isinstance(rank, int) else path.name
        served = launches.served(lane, owners)
        titles = self.facts.titles(devices or owners, "device" if devices else "process")
        ranks = Numbering()
        lanes = []
        for (_, process, row, free), on in zip(self.lanes, on_devices, strict=True):
            if whole:
                name = own
            elif on or not devices:
                name = titles[process]
            else:
                name = titles.get(served.get(process), f"host {process}")
            nests = self.facts.role_of(process, row) == OPERATIONS
            lanes.append(Lane(rank=ranks[name], name=str(row), device=free or (on and not nests)))
        return list(ranks), lanes


def _end_of(name: str) -> str:
    """The name of the operation that ends a collective which begins with `-start`; else empty."""
    match = re.fullmatch(r"(.+)-start((?:\.\d+)?)", name)
    return f"{match[1]}-done{match[2]}" if match else ""


def _ns(us: Floats, usable: Flags, origin: float) -> Ints:
    """In place of `us`; 0 where it is not usable."""
    us[~usable] = 0.0
    us -= origin
    us *= US
    return np.round(us, out=us).astype(np.int64)


def _in_order(numbers: Ints) -> list[int]:
    """Each number once, as it comes first."""
    values, first = np.unique(numbers, return_index=True)
    order: list[int] = values[np.argsort(first)].tolist()
    return order


def _job(about: dict[str, Any]) -> str:
    """The size of the job, as the files of all its ranks state it."""
    stated = about.get("distributedInfo")
    size = stated.get("world_size") if isinstance(stated, dict) else None
    return str(size) if isinstance(size, int) else ""


def _multiprocessors(about: dict[str, Any]) -> int | None:
    """The SMs of the first device that states them."""
    devices = about.get("deviceProperties")
    stated = (
        [one.get("numSms") for one in devices if isinstance(one, dict)] if isinstance(devices, list) else []
    )
    return next((one for one in stated if isinstance(one, int) and one > 0), None)


def _check_one_run(
    path: Path, classes: list[EventClass], lanes: list[Lane], kind: Small, lane: Small
) -> None:
    """UsageError where a thread has a step twice: files of several runs were put together."""
    steps = np.array([one.category == STEP for one in classes], dtype=bool)
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


def _event_class(key: tuple[Any, ...], *, device: bool) -> EventClass:
    name, category, detail, collective, _ = key
    text = detail.decode("utf-8", "replace").strip()
    if text and device:
        *sizes, shared = text.split("\0", 2)
        grid, block = (re.findall(r"-?\d+", one) for one in sizes)
        text = launch_detail(grid, block, int(shared) if re.fullmatch(r"\d{1,18}", shared) else 0)
    stated = str(category) or ("device" if device else "")
    return EventClass(
        name=str(name), category=STEP if not device and STEPS.match(str(name)) else stated,
        detail=re.sub(r"\s*([][,])\s*", r"\1", text).replace(",", ", "), collective=collective,
    )  # fmt: skip


def _launch(*texts: bytes) -> bytes:
    """How a kernel was launched, as the file says it; nothing where it does not."""
    return b"\0".join(texts) if texts[0] else b""


def _has_numbers(event: JsonEvent) -> bool:
    return type(event.ts) is float and type(event.dur) is float


def _with_numbers(event: JsonEvent) -> JsonEvent | None:
    """An event whose times are texts; None for one that has none."""
    event.ts, event.dur = _number(event.ts), _number(event.dur)
    return event if _has_numbers(event) else None


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def _hashable(value: Any) -> Any:
    return value if isinstance(value, int | float | str | None) else str(value)


def _whole(value: Any) -> int:
    return value if type(value) is int and 0 <= value < 2**62 else -1
