"""The matrix of slowdowns as a map, with the chosen pairs on it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from elbowroom.draw.figure import Axis, Field, Figure, Label, NamedRegion
from elbowroom.schedule.matrix import Matrix
from elbowroom.schedule.pairing import Pair

MOST_WRITTEN = 12
"""Of more applications the values are left out: they would cover each other."""

LEVELS = (80.0, 90.0, 97.0, 100.0, 103.0, 110.0, 125.0)
"""Percent at which the shades change; those that the matrix does not reach are left out."""

DOT = "\u25cf"
"""Before the values of the given pairs."""

_EDGE = 0.499
"""Half the width of a cell."""
_INNER = (-0.4, 0.0, 0.4)


def matrix_figure(matrix: Matrix, pairs: Sequence[Pair]) -> Figure:
    """A cell for each pair, rows from top to bottom as in the matrix: the darker, the longer the measured
    application takes. The cells of the given pairs have a dot.
    """
    count = len(matrix.names)
    edges = tuple(place + side for place in range(count) for side in (-_EDGE, _EDGE))
    values = tuple(
        tuple(value for value in row for _ in range(2)) for row in reversed(matrix.percent) for _ in range(2)
    )
    lowest, highest = min(map(min, values)), max(map(max, values))
    levels = tuple(level for level in LEVELS if lowest < level < highest) or (highest,)
    return Figure(
        name="slowdowns",
        title="Runtime beside a companion (%)",
        x=Axis(label="measured application", names=matrix.names),
        left=Axis(label="companion", names=matrix.names[::-1]),
        fields=(
            Field(
                name="% of the exclusive runtime",
                drawn="shades",
                x=(-0.5, *edges[1:-1], count - 0.5),
                y=(-0.5, *edges[1:-1], count - 0.5),
                values=values,
                levels=levels,
                texts=(
                    f"under {levels[0]:g}",
                    *(f"{a:g} – {b:g}" for a, b in pairwise(levels)),
                    f"over {levels[-1]:g}",
                ),
            ),
        ),
        labels=() if count <= MOST_WRITTEN else tuple(_dots(matrix, pairs)),
        regions=tuple(_cells(matrix, pairs)) if count <= MOST_WRITTEN else (),
        caption="100 %: the exclusive runtime. Dots: the chosen pairs, once for each application.",
    )


def _chosen(matrix: Matrix, pairs: Sequence[Pair]) -> set[tuple[int, int]]:
    """Row and column of both cells of each pair."""
    places = [(matrix.names.index(a), matrix.names.index(b)) for a, b in pairs]
    return {cell for first, second in places for cell in ((first, second), (second, first))}


def _up(matrix: Matrix, row: int) -> float:
    """Where a row is on the axis, whose first name is at the bottom."""
    return float(len(matrix.names) - 1 - row)


def _dots(matrix: Matrix, pairs: Sequence[Pair]) -> list[Label]:
    """A dot in each cell of the pairs, for cells that are too small for a value."""
    return [
        Label(x=float(column), y=_up(matrix, row), text="") for row, column in sorted(_chosen(matrix, pairs))
    ]


def _cells(matrix: Matrix, pairs: Sequence[Pair]) -> list[NamedRegion]:
    """The values, each in the middle of its cell; a dot before those of the pairs."""
    chosen = _chosen(matrix, pairs)
    inside = ((False, False, False), (False, True, False), (False, False, False))
    return [
        NamedRegion(
            name=f"{DOT} {value:.1f}" if (row, column) in chosen else f"{value:.1f}",
            x=tuple(column + offset for offset in _INNER),
            y=tuple(_up(matrix, row) + offset for offset in _INNER),
            inside=inside,
        )
        for row, values in enumerate(matrix.percent)
        for column, value in enumerate(values)
    ]
