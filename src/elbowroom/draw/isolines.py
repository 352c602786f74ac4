"""Lines along which a value on a grid is one number, and outlines of where it is more (marching squares).

Between the nodes of the grid the value is linear along each edge; where two opposite corners of a cell are
above the level and two below, the mean of the four tells which pair is joined.
"""

from __future__ import annotations

from collections.abc import Sequence

Spot = tuple[float, float]
Grid = Sequence[Sequence[float]]
_Edge = tuple[int, int, int]
"""(0, i, j): from node (i, j) to (i + 1, j); (1, i, j): from (i, j) to (i, j + 1)."""


def lines(xs: Sequence[float], ys: Sequence[float], values: Grid, level: float) -> list[list[Spot]]:
    """The lines at `level`, `values[j][i]` being at (xs[i], ys[j]); closed ones end where they begin."""
    return _joined(xs, ys, values, level)


def outlines(xs: Sequence[float], ys: Sequence[float], values: Grid, level: float) -> list[list[Spot]]:
    """Closed outlines of where the value is above `level`, along the grid's ends as well; of coordinates that
    ascend, the inside is on the left, so that either rule fills them.
    """
    low = level - 1.0
    padded = [[low] * (len(xs) + 2)]
    padded += [[low, *row, low] for row in values]
    padded.append([low] * (len(xs) + 2))
    return _joined([xs[0], *xs, xs[-1]], [ys[0], *ys, ys[-1]], padded, level)


def _joined(xs: Sequence[float], ys: Sequence[float], values: Grid, level: float) -> list[list[Spot]]:
    after: dict[_Edge, _Edge] = {}
    for j in range(len(ys) - 1):
        for i in range(len(xs) - 1):
            after.update(_crossings(values, level, i, j))
    found = []
    entered = set(after.values())
    begins = [edge for edge in after if edge not in entered]
    while after:
        edge = begins.pop() if begins else next(iter(after))
        chain = [edge]
        while (edge_after := after.pop(edge, None)) is not None:
            chain.append(edge_after)
            edge = edge_after
        found.append([_spot(xs, ys, values, level, edge) for edge in chain])
    return found


def _crossings(values: Grid, level: float, i: int, j: int) -> list[tuple[_Edge, _Edge]]:
    """How the line goes through a cell, with what is above the level on its left."""
    corners = (values[j][i], values[j][i + 1], values[j + 1][i + 1], values[j + 1][i])
    edges: tuple[_Edge, ...] = ((0, i, j), (1, i + 1, j), (0, i, j + 1), (1, i, j))
    above = [value > level for value in corners]
    leaves = [edges[k] for k in range(4) if above[k] and not above[(k + 1) % 4]]
    enters = [edges[k] for k in range(4) if not above[k] and above[(k + 1) % 4]]
    if len(leaves) == 2:
        # Counterclockwise both kinds alternate: with the middle above, each line cuts off a corner below.
        cuts_below = sum(corners) / 4 > level
        first_leaves = above[0]
        if cuts_below != first_leaves:
            enters.reverse()
    return list(zip(leaves, enters, strict=True))


def _spot(xs: Sequence[float], ys: Sequence[float], values: Grid, level: float, edge: _Edge) -> Spot:
    upright, i, j = edge
    k, m = (i, j + 1) if upright else (i + 1, j)
    a, b = values[j][i], values[m][k]
    share = (level - a) / (b - a)
    return xs[i] + share * (xs[k] - xs[i]), ys[j] + share * (ys[m] - ys[j])
