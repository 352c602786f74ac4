"""Streams of a point beside its two sides: a third stream, percentiles, clocks; each alone and beside others.

A phase is named by the streams that run: A and B the sides, C the third one; ABC is all three.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from elbowroom.points.payload import Payload, Records
from elbowroom.stats.interval import Kept, Side, Summary
from elbowroom.stats.signed_ranks import Floats, Ints
from elbowroom.stats.summary import side_of


class StreamBeside(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream did and kept in `phase`, which names the streams that ran: AB, AC, BC, ABC."""

    phase: str
    together: Summary
    kept: Kept | None = None


class StreamResult(msgspec.Struct, frozen=True, kw_only=True):
    """A stream of a point, alone and beside others: of three streams `cores`, `copies` and `messages`; of a
    chain of launches `p99`; of a device `sm_clock` and `power`.
    """

    name: str
    alone: Summary | None = None
    beside: tuple[StreamBeside, ...] = ()

    def kept(self, phase: str) -> Kept | None:
        """What it kept in a phase; None where that was not measured."""
        return next((item.kept for item in self.beside if item.phase == phase), None)


class StreamPayload(Payload, frozen=True, kw_only=True):
    """Streams beside the two sides, where any ran."""

    streams: tuple[StreamResult, ...] | msgspec.UnsetType = msgspec.UNSET


def stream_of(payload: Payload, name: str) -> StreamResult | None:
    """The stream of that name; None if the point has none."""
    streams = payload.streams if isinstance(payload, StreamPayload) else ()
    return next((item for item in streams or () if item.name == name), None)


class StreamSample(NamedTuple):
    """One value of a stream in one phase."""

    name: str
    phase: str
    repetition: int
    value: float
    unit: str
    start: int


def stream_samples(records: Records) -> list[StreamSample]:
    """The streams of the phases that count (docs/reference/protocol.md)."""
    return [
        StreamSample(
            name,
            str(phase["phase"]),
            entry.repetition,
            float(item["value"]),
            str(item["unit"]),
            int(entry.record.get("start", 0)),
        )
        for entry, phase in records.phases()
        for name, item in phase.get("streams", {}).items()
    ]


def streams_of(records: Records) -> tuple[StreamResult, ...]:
    """Each stream, alone and beside others."""
    by_name: dict[str, list[StreamSample]] = {}
    for sample in stream_samples(records):
        by_name.setdefault(sample.name, []).append(sample)
    return tuple(_stream(name, several, records.seed, records.starts) for name, several in by_name.items())


def _stream(name: str, samples: Sequence[StreamSample], seed: int, starts: bool) -> StreamResult:
    by_phase: dict[str, list[StreamSample]] = {}
    alone = []
    for sample in samples:
        if len(sample.phase) == 1:
            alone.append(sample)
        else:
            by_phase.setdefault(sample.phase, []).append(sample)
    sides = {phase: _side(alone, by_phase[phase], seed, starts) for phase in sorted(by_phase, key=_order)}
    first = next(iter(sides.values())) if sides else _side(alone, [], seed, starts)
    beside = tuple(
        StreamBeside(phase=phase, together=side.together, kept=side.kept)
        for phase, side in sides.items()
        if side.together is not None
    )
    return StreamResult(name=name, alone=first.alone, beside=beside)


def _order(phase: str) -> tuple[int, str]:
    return len(phase), phase


def _side(alone: Sequence[StreamSample], together: Sequence[StreamSample], seed: int, starts: bool) -> Side:
    of_start = tuple(_whole(item.start for item in items) for items in (alone, together))
    return side_of(
        *_columns(alone),
        *_columns(together),
        unit=next(item.unit for item in (*alone, *together)),
        seed=seed,
        starts=(of_start[0], of_start[1]) if starts else None,
    )


def _columns(samples: Sequence[StreamSample]) -> tuple[Floats, Ints]:
    values = np.fromiter((item.value for item in samples), dtype=np.float64)
    return values, _whole(item.repetition for item in samples)


def _whole(numbers: Iterable[int]) -> Ints:
    return np.fromiter(numbers, dtype=np.int64)
