"""Builds the columns of a trace from what readers meet: names and lanes are numbered once."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any

import msgspec
import numpy as np

from elbowroom.errors import UsageError
from elbowroom.trace.overlap.categories import STEP, on_device
from elbowroom.trace.overlap.events import NONE, EventClass, Events, Flags, Ints, Lane

STEPS = re.compile(r"(ProfilerStep#|(train(ing)?[ _]?)?(step|iter(ation)?)[ _#:]*)\d+$", re.IGNORECASE)
"""Names of steps."""


class Numbering(dict[Any, int]):
    """Numbers keys in the order in which they come."""

    def __missing__(self, key: Hashable) -> int:
        number = self[key] = len(self)
        return number


EVENT_BYTES = 300
"""Memory for each event while a trace is analysed, at most (benchmarks/autopsy.py measures it)."""


def check_memory(count: int) -> None:
    """UsageError where so many events do not fit in the memory that is available."""
    available = _available()
    if available is not None and count * EVENT_BYTES > available:
        raise UsageError(
            f"is larger than memory: more than {count} events, and {available >> 20} MiB are available",
            field="trace",
            hint="record fewer steps, or fewer kinds of events",
        )


def _available() -> int | None:
    """Bytes that the kernel can give; None where it does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return None


class Columns:
    """Blocks of numbers that become one column."""

    def __init__(self) -> None:
        self._blocks: list[Ints] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, values: Sequence[int] | Ints) -> None:
        """Appends a block."""
        self._blocks.append(np.asarray(values, dtype=np.int64))
        self._length += len(values)

    def whole(self) -> Ints:
        """All blocks."""
        return np.concatenate(self._blocks) if self._blocks else np.zeros(0, dtype=np.int64)


def events(
    *,
    format: str,
    classes: Sequence[EventClass],
    lanes: Sequence[Lane],
    ranks: Sequence[str],
    kind: Ints,
    lane: Ints,
    start: Ints,
    duration: Ints,
    launched: Ints | None = None,
    issued: Ints | None = None,
    continued: Flags | None = None,
    **more: Any,
) -> Events:
    """The columns, without events that have no duration. Classes that are named as a step are steps."""
    there = duration > 0
    return Events(
        format=format,
        classes=tuple(map(_with_step, classes)),
        lanes=tuple(lanes),
        ranks=tuple(ranks),
        kind=kind[there].astype(np.int32),
        lane=lane[there].astype(np.int32),
        start=start[there],
        duration=duration[there],
        launched=(
            np.full(int(there.sum()), NONE, dtype=np.int32)
            if launched is None
            else launched[there].astype(np.int32)
        ),
        issued=start[there] if issued is None else issued[there],
        continued=None if continued is None else continued[there],
        **more,
    )


def _with_step(one: EventClass) -> EventClass:
    named = not on_device(one.category) and STEPS.match(one.name)
    return msgspec.structs.replace(one, category=STEP) if named else one
