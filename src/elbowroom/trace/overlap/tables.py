"""Builds the columns of a trace from what readers meet: names and lanes are numbered once."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.errors import UsageError
from elbowroom.trace.overlap.categories import STEP, on_device
from elbowroom.trace.overlap.events import (
    NONE,
    EventClass,
    Events,
    Flags,
    Ints,
    Lane,
    Small,
    are_ordered,
    order_of,
)

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

    def __init__(self, kind: type[np.signedinteger[Any]] = np.int64) -> None:
        self._kind = kind
        self._blocks: list[npt.NDArray[Any]] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def add(self, values: Sequence[int] | npt.NDArray[Any]) -> None:
        """Appends a block, which is not copied where it is a column of this kind."""
        self._blocks.append(np.asarray(values, dtype=self._kind))
        self._length += len(values)

    def whole(self) -> npt.NDArray[Any]:
        """All blocks."""
        if len(self._blocks) != 1:
            self._blocks = [np.concatenate([np.zeros(0, dtype=self._kind), *self._blocks])]
        return self._blocks[0]

    def taken(self) -> npt.NDArray[Any]:
        """All blocks, which are forgotten here."""
        whole, self._blocks, self._length = self.whole(), [], 0
        return whole


def events(
    *,
    format: str,
    classes: Sequence[EventClass],
    lanes: Sequence[Lane],
    ranks: Sequence[str],
    kind: Ints | Small,
    lane: Ints | Small,
    start: Ints,
    duration: Ints,
    launched: Ints | Small | None = None,
    issued: Ints | None = None,
    continued: Flags | None = None,
    **more: Any,
) -> Events:
    """The columns, without events that have no duration, in the order of `order_of`. Classes that are named
    as a step are steps.
    """
    there: slice | Ints = slice(None)  # nothing is copied
    if not (duration > 0).all():
        there = np.flatnonzero(duration > 0)
        there = there[order_of(lane[there], start[there], duration[there])]
    elif not are_ordered(lane, start, duration):
        there = order_of(lane, start, duration)
    began = start[there]
    return Events(
        format=format,
        classes=tuple(map(_with_step, classes)),
        lanes=tuple(lanes),
        ranks=tuple(ranks),
        kind=kind[there].astype(np.int32, copy=False),
        lane=lane[there].astype(np.int32, copy=False),
        start=began,
        duration=duration[there],
        launched=(
            np.full(len(began), NONE, dtype=np.int32)
            if launched is None
            else launched[there].astype(np.int32, copy=False)
        ),
        issued=began if issued is None else issued[there],
        continued=None if continued is None else continued[there],
        ordered=True,
        **more,
    )


def _with_step(one: EventClass) -> EventClass:
    named = one.category != STEP and not on_device(one.category) and STEPS.match(one.name)
    return msgspec.structs.replace(one, category=STEP) if named else one
