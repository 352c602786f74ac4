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

_EDGE = 0.499
"""Half the width of a cell."""
_INNER = (-0.4, 0.0, 0.4)


def matrix_figure(matrix: Matrix, pairs: Sequence[Pair]) -> Figure:
    """A cell for each pair: the darker, the longer the measured application takes. Dots: the given pairs."""
    count = len(matrix.names)
    edges = tuple(place + side for place in range(count) for side in (-_EDGE, _EDGE))
    values = tuple(
        tuple(value for value in row for _ in range(2)) for row in matrix.percent for _ in range(2)
    )
    lowest, highest = min(map(min, values)), max(map(max, values))
    levels = tuple(level for level in LEVELS if lowest < level < highest) or (highest,)
    return Figure(
        name="slowdowns",
        title="Runtime beside a companion (%)",
        x=Axis(label="measured application", names=matrix.names),
        left=Axis(label="companion", names=matrix.names),
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
        labels=tuple(_dots(matrix, pairs)),
        regions=tuple(_cells(matrix, pairs)) if count <= MOST_WRITTEN else (),
        caption="100 %: the exclusive runtime. Dots: the chosen pairs, once for each application.",
    )


def _dots(matrix: Matrix, pairs: Sequence[Pair]) -> list[Label]:
    """Both cells of each pair, with their values."""
    places = [(matrix.names.index(a), matrix.names.index(b)) for a, b in pairs]
    cells = sorted({cell for first, second in places for cell in ((first, second), (second, first))})
    return [Label(x=float(x), y=float(y), text=f"{matrix.percent[y][x]:.1f}") for x, y in cells]


def _cells(matrix: Matrix, pairs: Sequence[Pair]) -> list[NamedRegion]:
    """The values of all other cells, written into them."""
    chosen = {frozenset(matrix.names.index(name) for name in pair) for pair in pairs}
    inside = ((False, False, False), (False, True, False), (False, False, False))
    return [
        NamedRegion(
            name=f"{value:.1f}",
            x=tuple(column + offset for offset in _INNER),
            y=tuple(row + offset for offset in _INNER),
            inside=inside,
        )
        for row, values in enumerate(matrix.percent)
        for column, value in enumerate(values)
        if frozenset((row, column)) not in chosen
    ]
