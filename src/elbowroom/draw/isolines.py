"""Lines along which a value on a grid has one level, and outlines of the area above it, from contourpy.

The value is linear along the edges of the grid. In a cell with two opposite corners above the level, the mean
of its four corners decides which pair is joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

Spot = tuple[float, float]
Grid = Sequence[Sequence[float]]


def lines(xs: Sequence[float], ys: Sequence[float], values: Grid, level: float) -> list[list[Spot]]:
    """The lines at `level`, with `values[j][i]` at (xs[i], ys[j]); closed lines end where they begin."""
    from contourpy import LineType

    return [_spots(line) for line in _generator(xs, ys, values, line_type=LineType.Separate).lines(level)]


def outlines(xs: Sequence[float], ys: Sequence[float], values: Grid, level: float) -> list[list[Spot]]:
    """Closed outlines of the area above `level`, also along the ends of the grid. Outlines of holes have the
    opposite direction.
    """
    from contourpy import FillType

    highest = max(map(max, values))
    if highest <= level:
        return []
    areas = _generator(xs, ys, values, fill_type=FillType.OuterOffset).filled(level, highest + 1.0)
    return [
        _spots(points[begin:end])
        for points, offsets in zip(*areas, strict=True)
        for begin, end in pairwise(offsets)
    ]


def _generator(xs: Sequence[float], ys: Sequence[float], values: Grid, **kind: Any) -> Any:
    """contourpy is imported here, since most commands draw no map."""
    from contourpy import contour_generator

    return contour_generator(list(xs), list(ys), [list(row) for row in values], name="serial", **kind)


def _spots(points: Any) -> list[Spot]:
    return [(x, y) for x, y in points.tolist()]
