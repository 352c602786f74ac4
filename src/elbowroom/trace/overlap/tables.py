"""Builds the columns of a trace from what readers meet: names and lanes are numbered once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from elbowroom.trace.overlap.events import NONE, EventClass, Events, Ints, Lane


class Numbering(dict[Any, int]):
    """Numbers keys in the order in which they come."""

    def __missing__(self, key: Hashable) -> int:
        number = self[key] = len(self)
        return number


class Columns:
    """Blocks of numbers that become one column."""

    def __init__(self) -> None:
        self._blocks: list[Ints] = []

    def add(self, values: Sequence[int] | Ints) -> None:
        """Appends a block."""
        self._blocks.append(np.asarray(values, dtype=np.int64))

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
    **more: Any,
) -> Events:
    """The columns, without events that have no duration."""
    there = duration > 0
    return Events(
        format=format,
        classes=tuple(classes),
        lanes=tuple(lanes),
        ranks=tuple(ranks),
        kind=kind[there].astype(np.int32),
        lane=lane[there].astype(np.int32),
        start=start[there],
        duration=duration[there],
        launched=(
            np.full(int(there.sum()), NONE, dtype=np.int32) if launched is None else launched[there].astype(np.int32)
        ),
        **more,
    )
