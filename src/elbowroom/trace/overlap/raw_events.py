"""The events of a file as json-events and otf2-events write them (lib/events), and as EventRows does: columns
on disk, more than memory holds if need be, and the cutting of them into parts by time.
"""

from __future__ import annotations

import dataclasses
import errno
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from elbowroom.files import no_space
from elbowroom.trace.overlap.categories import on_device
from elbowroom.trace.overlap.events import NONE, Events, Flags, Floats, Ints, Small

_SAMPLES = 1 << 16
"""Begins that are kept to find times between which there are equally many events."""
_TYPES: dict[str, np.dtype[Any]] = {
    "kind": np.dtype("<i4"), "lane": np.dtype("<i4"), "start": np.dtype("<f8"), "duration": np.dtype("<f8"),
    "correlation": np.dtype("<i8"), "external": np.dtype("<i8"),
}  # fmt: skip
_BYTES = sum(one.itemsize for one in _TYPES.values())
_CORRELATIONS = ("correlation", "external")
_UNCORRELATED = 1 << 31
"""A bit in the count of a block whose events have no correlation (lib/events/table.hpp)."""


@dataclass(frozen=True)
class RawColumns:
    """Events as columns of shape (events,): numbers of class and lane in the header; times in us.
    `continued`: as in Events.
    """

    kind: Small
    lane: Small
    start: Floats
    duration: Floats
    correlation: Ints
    external: Ints
    continued: Flags | None = None

    def __len__(self) -> int:
        return len(self.kind)

    def only(self, chosen: Flags | Ints) -> RawColumns:
        """Those that are chosen; none is `continued`."""
        return RawColumns(*(getattr(self, name)[chosen] for name in _TYPES))


@dataclass(frozen=True)
class _ColumnBlock:
    """Where so many events stand in a file, column by column; not `correlated`: without the last ones."""

    stream: IO[bytes]
    place: int
    count: int
    correlated: bool = True

    @property
    def size(self) -> int:
        """Bytes."""
        missing = 0 if self.correlated else sum(_TYPES[name].itemsize for name in _CORRELATIONS)
        return self.count * (_BYTES - missing)

    def column(self, name: str, into: npt.NDArray[Any]) -> None:
        """Reads a column. EOFError where the file ends early."""
        if name in _CORRELATIONS and not self.correlated:
            into.fill(NONE)
            return
        before = list(_TYPES)[: list(_TYPES).index(name)]
        self.stream.seek(self.place + self.count * sum(_TYPES[one].itemsize for one in before))
        if self.stream.readinto(into.view(np.uint8).data) < into.nbytes:  # type: ignore[attr-defined]
            raise EOFError

    def columns(self) -> RawColumns:
        """All columns."""
        return _whole([self])


def _whole(blocks: Sequence[_ColumnBlock]) -> RawColumns:
    """The events of several blocks, one after the other."""
    count = sum(one.count for one in blocks)
    missing = () if any(one.correlated for one in blocks) else _CORRELATIONS
    columns: dict[str, npt.NDArray[Any]] = {
        name: np.empty(count, dtype=kind) for name, kind in _TYPES.items() if name not in missing
    }
    at = 0
    for block in blocks:
        for name, column in columns.items():
            block.column(name, column[at : at + block.count])
        at += block.count
    columns |= dict.fromkeys(missing, np.broadcast_to(np.int64(NONE), count))
    return RawColumns(**columns)


class RawEvents:
    """The output of such a program in a file. EOFError where it ends early."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.blocks: list[_ColumnBlock] = []
        while count := self._count(stream):
            count, correlated = count & ~_UNCORRELATED, not count & _UNCORRELATED
            self.blocks.append(_ColumnBlock(stream, stream.tell(), count, correlated))
            stream.seek(self.blocks[-1].size, 1)
        try:
            self.header: dict[str, Any] = json.loads(stream.read().decode("utf-8", "replace"))
        except ValueError as error:
            raise EOFError from error

    def __len__(self) -> int:
        return sum(one.count for one in self.blocks)

    @staticmethod
    def _count(stream: IO[bytes]) -> int:
        data = stream.read(4)
        if len(data) < 4:
            raise EOFError
        return int.from_bytes(data, "little")

    def whole(self) -> RawColumns:
        """All events."""
        return _whole(self.blocks)

    @property
    def pairs(self) -> Ints:
        """Which classes and lanes there are together, as they come first (2, pairs)."""
        return np.array(self.header.get("pairs", ()), dtype=np.int64).reshape(-1, 2).T


def write_block(store: IO[bytes], columns: RawColumns) -> None:
    """Appends a block of events. MachineError where the disk is full."""
    try:
        store.write(len(columns).to_bytes(4, "little"))
        _write_columns(store, columns, correlated=True)
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        raise no_space(f"the events of the trace, {_BYTES} bytes each") from error


def _write_columns(store: IO[bytes], columns: RawColumns, *, correlated: bool) -> None:
    for name, kind in _TYPES.items():
        if correlated or name not in _CORRELATIONS:
            store.write(getattr(columns, name).astype(kind, copy=False).tobytes())


def write_end(store: IO[bytes]) -> None:
    """Ends the blocks, without a header; the file can be read from its begin."""
    store.write((0).to_bytes(4, "little") + b"{}")
    store.seek(0)


@dataclass(frozen=True, kw_only=True)
class RawFile(ABC):
    """A file whose events are on disk."""

    raw: RawEvents

    @abstractmethod
    def classes(self) -> list[tuple[str, str]]:
        """Name and category of each class of the records."""

    @abstractmethod
    def events(self, columns: RawColumns, steps: Flags | None = None) -> Events:
        """The events of these columns of it, which it may change. `steps`: which classes are steps, in a part
        of a file: those of other parts are left out.
        """

    def whole(self) -> Events:
        """All of it."""
        return self.events(self.raw.whole())

    def are_steps(self, patterns: Sequence[re.Pattern[str]]) -> Flags:
        """Of each class of the records: whether it is a step of the host."""
        classes = self.classes()
        named = (
            not on_device(category) and any(pattern.search(name) for pattern in patterns)
            for name, category in classes
        )
        return np.fromiter(named, dtype=bool, count=len(classes))


@dataclass(frozen=True)
class Timetable:
    """When a file's events begin (a sample of them, sorted) and when its steps do, us."""

    samples: Floats
    steps: Floats


def timetable(raw: RawEvents, chosen: Flags) -> Timetable:
    """`chosen`: which classes are steps; the steps of the lane with most are those of the file."""
    samples, stride, steps = list[Floats](), 1, dict[int, list[Floats]]()
    for block in raw.blocks:
        start, kind = np.empty(block.count), np.empty(block.count, dtype=np.int32)
        block.column("start", start)
        block.column("kind", kind)
        usable = np.isfinite(start)
        samples.append(start[usable][::stride].copy())
        if sum(map(len, samples)) > _SAMPLES:
            samples, stride = [np.concatenate(samples)[::2]], 2 * stride
        if (there := chosen[kind] & usable).any():
            lane = np.empty(block.count, dtype=np.int32)
            block.column("lane", lane)
            for number in np.unique(lane[there]).tolist():
                steps.setdefault(number, []).append(start[there & (lane == number)])
    most = max((np.concatenate(one) for one in steps.values()), key=len, default=np.zeros(0))
    return Timetable(np.sort(np.concatenate([np.zeros(0), *samples])), np.unique(most))


def borders(tables: Sequence[Timetable], parts: int) -> list[Floats]:
    """Times that cut each file into `parts` with about equally many events, at the begin of a step where it
    has steps: of the same step where all files have the same number.
    """
    shares = np.arange(1, parts) / parts
    first = tables[0]
    wanted = [np.quantile(one.samples, shares) if len(one.samples) else np.zeros(parts - 1) for one in tables]
    alike = len(first.steps) > 0 and all(len(one.steps) == len(first.steps) for one in tables)
    if alike:
        mean = np.mean(
            [np.searchsorted(one.steps, at) for one, at in zip(tables, wanted, strict=True)], axis=0
        )
        number = np.clip(np.round(mean).astype(np.int64), 0, len(first.steps) - 1)
        return [one.steps[number] for one in tables]
    return [
        one.steps[np.clip(np.searchsorted(one.steps, at), 0, len(one.steps) - 1)] if len(one.steps) else at
        for one, at in zip(tables, wanted, strict=True)
    ]


class CutEvents:
    """The events of a file by part. An event that goes on in the next part is cut there: the rest is
    `continued`. What the file does not have as whole blocks of one part is in the file `store`.
    """

    def __init__(self, raw: RawEvents, at: Floats, store: IO[bytes]) -> None:
        self._at, self._store = at, store
        # Of each part in the order of the file, with what is continued in front of what began later.
        self._blocks: list[list[tuple[_ColumnBlock, bool]]] = [[] for _ in range(len(at) + 1)]
        for block in raw.blocks:
            start, duration = np.empty(block.count), np.empty(block.count)
            block.column("start", start)
            block.column("duration", duration)
            first, last = np.searchsorted(at, [start.min(), (start + duration).max()], side="right").tolist()
            if first == last and np.isfinite(start).all():
                self._blocks[first].append((block, False))
            else:
                self._cut(block.columns(), correlated=block.correlated, continued=False)

    def _cut(self, events: RawColumns, *, correlated: bool, continued: bool) -> None:
        """Stores events, each in its part; of what goes on in the next part, the rest as well."""
        start = np.where(np.isfinite(events.start), events.start, 0.0)
        part = np.searchsorted(self._at, start, side="right")
        end = np.append(self._at, np.inf)[part]
        over = events.start + events.duration > end
        rest = dataclasses.replace(
            events.only(over),
            start=end[over],
            duration=(events.start + events.duration - end)[over],
        )
        events.duration[over] = (end - events.start)[over]
        if len(rest):
            self._cut(rest, correlated=correlated, continued=True)
        for number in np.unique(part).tolist():
            chosen = events.only(part == number)
            block = _ColumnBlock(self._store, self._store.seek(0, 2), len(chosen), correlated)
            _write_columns(self._store, chosen, correlated=correlated)
            self._blocks[number].append((block, continued))

    def part(self, number: int) -> RawColumns:
        """The events of a part."""
        blocks = self._blocks[number]
        columns = _whole([block for block, _ in blocks])
        flags = np.zeros(len(columns), dtype=bool)
        at = 0
        for block, continued in blocks:
            flags[at : at + block.count] = continued
            at += block.count
        return dataclasses.replace(columns, continued=flags if flags.any() else None)
