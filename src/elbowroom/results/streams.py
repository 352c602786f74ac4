"""Streams of a point beside its two sides: a third stream, percentiles, clocks; each alone and beside others.

A phase is named by the streams that run: A and B the sides, C the third one; ABC is all three.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from elbowroom.results.result import PointResult, Side, StreamBeside, StreamResult
from elbowroom.results.summary import side_of
from elbowroom.stats.signed_ranks import Floats, Ints


class StreamSample(NamedTuple):
    """One value of a stream in one phase."""

    name: str
    phase: str
    repetition: int
    value: float
    unit: str
    start: int


def samples_of(phase: Mapping[str, Any], repetition: int, start: int) -> list[StreamSample]:
    """The streams of a phase of an answer (docs/reference/protocol.md); none of a void one."""
    if phase.get("status") == "void":
        return []
    return [
        StreamSample(name, str(phase["phase"]), repetition, float(item["value"]), str(item["unit"]), start)
        for name, item in phase.get("streams", {}).items()
    ]


def with_streams(
    results: Sequence[PointResult],
    samples: Mapping[str, Sequence[StreamSample]],
    seed: int,
    starts: bool = False,
) -> list[PointResult]:
    """The results with their streams, where a point has any."""
    return [
        msgspec.structs.replace(result, streams=_streams(samples[result.id], seed, starts))
        if samples.get(result.id)
        else result
        for result in results
    ]


def _streams(samples: Sequence[StreamSample], seed: int, starts: bool) -> tuple[StreamResult, ...]:
    by_name: dict[str, list[StreamSample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    return tuple(_stream(name, several, seed, starts) for name, several in by_name.items())


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
