"""The events of a file as json-events and otf2-events write them (lib/events): columns on disk, more than
memory holds if need be, and the cutting of them into parts by time.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from elbowroom.trace.overlap.events import Flags, Floats, Ints

_RECORD = np.dtype(
    [("kind", "<i4"), ("lane", "<i4"), ("start", "<f8"), ("duration", "<f8"), ("correlation", "<i8"),
     ("external", "<i8"), ("continued", "?")]
)  # fmt: skip
_COLUMNS = _RECORD.names[:-1]  # type: ignore[index]
_SAMPLES = 1 << 16
"""Begins that are kept to find times between which there are equally many events."""

Records = npt.NDArray[Any]
"""Events with the fields of _RECORD: numbers of class and lane in the header, us."""


class RawEvents:
    """The output of such a program in a file. EOFError where it ends early."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._places: list[tuple[int, int]] = []
        while count := self._count():
            self._places.append((stream.tell(), count))
            stream.seek(count * (_RECORD.itemsize - 1), 1)
        try:
            self.header: dict[str, Any] = json.loads(stream.read().decode("utf-8", "replace"))
        except ValueError as error:
            raise EOFError from error

    def __len__(self) -> int:
        return sum(count for _, count in self._places)

    def _count(self) -> int:
        data = self._stream.read(4)
        if len(data) < 4:
            raise EOFError
        return int.from_bytes(data, "little")

    def blocks(self) -> Iterator[Records]:
        """The events as they stand in the file, block by block."""
        for place, count in self._places:
            self._stream.seek(place)
            records = np.zeros(count, dtype=_RECORD)
            for name in _COLUMNS:
                kind = _RECORD[name]
                records[name] = np.frombuffer(self._stream.read(count * kind.itemsize), dtype=kind)
            yield records

    def whole(self) -> Records:
        """All events."""
        records: Records = np.zeros(len(self), dtype=_RECORD)
        at = 0
        for block in self.blocks():
            records[at : at + len(block)] = block
            at += len(block)
        return records


@dataclass(frozen=True)
class Timetable:
    """When a file's events begin (a sample of them, sorted) and when its steps do, us; and which classes
    other than steps and lanes it has together, as they come first (2, pairs).
    """

    samples: Floats
    steps: Floats
    pairs: Ints


def timetable(raw: RawEvents, chosen: Flags) -> Timetable:
    """`chosen`: which classes are steps; the steps of the lane with most are those of the file."""
    samples, stride, steps = list[Floats](), 1, dict[int, list[float]]()
    pairs = np.zeros((2, 0), dtype=np.int64)
    for block in raw.blocks():
        pairs = _in_order(np.concatenate([pairs, pairs_of(block)], axis=1))
        usable = block[np.isfinite(block["start"])]
        samples.append(usable["start"][::stride].copy())
        if sum(map(len, samples)) > _SAMPLES:
            samples, stride = [np.concatenate(samples)[::2]], 2 * stride
        for one in usable[chosen[usable["kind"]]] if chosen.any() else ():
            steps.setdefault(int(one["lane"]), []).append(float(one["start"]))
    most: list[float] = max(steps.values(), key=len, default=[])
    every = np.concatenate([np.zeros(0), *samples])
    return Timetable(np.sort(every), np.unique(np.array(most, dtype=float)), pairs[:, ~chosen[pairs[0]]])


def pairs_of(records: Records) -> Ints:
    """Which classes and lanes there are together, as they come first (2, pairs)."""
    return _in_order(np.stack([records["kind"], records["lane"]]).astype(np.int64))


def _in_order(pairs: Ints) -> Ints:
    lanes = int(pairs[1].max(initial=0)) + 1
    _, first = np.unique(pairs[0] * lanes + pairs[1], return_index=True)
    return pairs[:, np.sort(first)]


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
    """The events of a file by part, in the file `store`. An event that goes on in the next part is cut there:
    the rest is `continued`.
    """

    def __init__(self, raw: RawEvents, at: Floats, store: IO[bytes]) -> None:
        self.header, self._store = raw.header, store
        self._places: list[list[tuple[int, int]]] = [[] for _ in range(len(at) + 1)]
        for block in raw.blocks():
            while len(block):
                block = self._add(block, at)

    def _add(self, block: Records, at: Floats) -> Records:
        """Stores a block; gives what continues in the next part."""
        part = np.searchsorted(at, np.where(np.isfinite(block["start"]), block["start"], 0.0), side="right")
        end = np.append(at, np.inf)[part]
        over = block["start"] + block["duration"] > end
        rest: Records = block[over]
        rest["duration"] = rest["start"] + rest["duration"] - end[over]
        rest["start"], rest["continued"] = end[over], True
        block["duration"][over] = end[over] - block["start"][over]
        order = np.argsort(part.astype(np.int16), kind="stable")
        counts = np.bincount(part, minlength=len(self._places))
        place = self._store.tell()
        self._store.write(block[order].tobytes())
        for number in np.flatnonzero(counts).tolist():
            self._places[number].append((place, int(counts[number])))
            place += int(counts[number]) * _RECORD.itemsize
        return rest

    def part(self, number: int) -> Records:
        """The events of a part."""
        data = bytearray()
        for place, count in self._places[number]:
            self._store.seek(place)
            data += self._store.read(count * _RECORD.itemsize)
        records: Records = np.frombuffer(data, dtype=_RECORD)
        return records
