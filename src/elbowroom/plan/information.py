"""Which points tell most: a coarse grid first, the ends and then the middle of each axis, then between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from elbowroom.plan.axes import is_control
from elbowroom.points.point import Point

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

AnyPoint = TypeVar("AnyPoint", bound=Point)

_NUMBERS = (
    "n", "size", "cursor", "comm_threads", "core_khz", "uncore_khz", "n_other",
    "first", "order", "backoff", "nodes", "cells",
)  # fmt: skip
_NAMES = ("kernel", "comp_node", "comm_node", "comm_core", "processes", "reuse", "pattern", "metric")


def by_information(points: Sequence[Point]) -> tuple[Point, ...]:
    """The points so that any beginning of them covers the axes as evenly as so many points can.

    Controls come first, since without them no result is trusted. Then come the ends of the numeric axes, for
    all kernels and placements; then their middles, then the middles of what is left (`levels`). Within a
    level each point is the one farthest from those before it (Gonzalez, "Clustering to minimize the maximum
    intercluster distance", 1985), from the most cores and the largest message on, where interference shows
    first: numbers are apart by their ranks, from 0 to 1 along an axis, names by 1.
    """
    first = [point for point in points if is_control(point, points)]
    rest = [point for point in points if not is_control(point, points)]
    return (*first, *(rest[number] for number in _farthest_first(rest)))


def most_informative(points: Sequence[AnyPoint]) -> AnyPoint:
    """The first point of `by_information` behind the controls; a control only where there is nothing else.

    ValueError without points.
    """
    rest = [point for point in points if not is_control(point, points)] or list(points)
    return rest[_first(rest, _coordinates(rest)[2])]


def levels(count: int) -> list[int]:
    """The level of each of `count` values in rising order: 0 for both ends, 1 for the middle, and so on."""
    numbers = [0] * count
    gaps, level = [(0, count - 1)], 0
    while gaps := [(low, high) for low, high in gaps if high - low > 1]:
        level += 1
        halves = []
        for low, high in gaps:
            middle = (low + high) // 2
            numbers[middle] = level
            halves += [(low, middle), (middle, high)]
        gaps = halves
    return numbers


def _farthest_first(points: Sequence[Point]) -> list[int]:
    if not points:
        return []
    import numpy as np

    numbers, names, level = _coordinates(points)
    order: list[int] = []
    nearest = np.full(len(points), np.inf)
    last = _first(points, level)
    for current in range(int(level.max()) + 1):
        left = level == current
        for _ in range(int(left.sum())):
            if order:
                last = int(np.argmax(np.where(left, nearest, -1.0)))
            order.append(last)
            left[last] = False
            apart = np.abs(numbers - numbers[last]).sum(axis=1) + (names != names[last]).sum(axis=1)
            nearest = np.minimum(nearest, apart)
    return order


def _first(points: Sequence[Point], level: Ints) -> int:
    """Of the ends of all axes the one with the most cores and the largest message."""
    ends: list[int] = (level == level.min()).nonzero()[0].tolist()
    return max(ends, key=lambda index: (points[index].n, points[index].size, -index))


def _coordinates(points: Sequence[Point]) -> tuple[Floats, Ints, Ints]:
    """Shapes (points, numeric axes), from 0 to 1 by rank, (points, axes of names), numbered, and (points,):
    the highest of the levels of a point's numbers.
    """
    import numpy as np

    count = len(points)
    facts = [_facts(point) for point in points]
    numbers, names, level = [], [], np.zeros(count, dtype=np.int64)
    for axis in dict.fromkeys(axis for fact in facts for axis in fact):
        column = [fact.get(axis) for fact in facts]
        if axis.rpartition(".")[2] in _NUMBERS:
            values, rank = np.unique(
                [-1 if value is None else value for value in column], return_inverse=True
            )
            numbers.append(rank / max(1, len(values) - 1))
            level = np.maximum(level, np.array(levels(len(values)))[rank])
        else:
            known: dict[Any, int] = {}
            names.append([known.setdefault(value, len(known)) for value in column])
    return np.array(numbers).T.reshape(count, -1), np.array(names).T.reshape(count, -1), level


def _facts(point: Point) -> dict[str, Any]:
    """What tells the points of a plan apart, by axis."""
    facts: dict[str, Any] = {
        name: getattr(point, name) for name in (*_NUMBERS, *_NAMES) if hasattr(point, name)
    }
    facts["comm_threads"] = len(point.comm_cores)
    workload = point.workload
    own: dict[str, Any] = msgspec.to_builtins(workload)
    return facts | {
        f"{workload.key}.{name}": value for name, value in own.items() if not isinstance(value, dict)
    }
