"""The best pairing of applications: each shares its nodes with one other, and the mean runtime is least.

It is a perfect matching of least weight. The weight of a pair is what both take in percent of their exclusive
runtimes. One of an odd number stays alone and takes 100 %.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations, pairwise
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csc_array

from elbowroom.draw.figure import Axis, Field, Figure, Label, NamedRegion, Series
from elbowroom.errors import MachineError, UsageError
from elbowroom.schedule.matrix import Array, Matrix, check_half, check_known

SECONDS = 60.0
"""Time limit of one search."""

_WHOLE = 0.999
"""A variable above this is 1 within the solver's tolerance."""


class Partition(NamedTuple):
    """Indices of the chosen groups, what they cost together, and the cost that no choice is below."""

    chosen: tuple[int, ...]
    cost: float
    bound: float


class Relaxed(NamedTuple):
    """Shares of the groups in the cheapest fractional choice, its cost, and the price of each member."""

    shares: Array
    cost: float
    prices: Array


def partition(
    groups: Sequence[Sequence[int]],
    costs: Sequence[float],
    members: int,
    *,
    seconds: float = SECONDS,
    gap: float = 0.0,
) -> Partition | None:
    """The cheapest partition of 0 .. `members` - 1; None where there is none, or none was found in time.

    The search ends after `seconds`, or where the cost is within the share `gap` of the bound.
    """
    if members == 0:
        return Partition((), 0.0, 0.0)
    # Costs of similar size as 1: the solver's tolerances are absolute.
    scale = float(np.mean(costs)) or 1.0
    solution: Any = milp(
        np.asarray(costs) / scale,
        integrality=np.ones(len(groups), dtype=np.int64),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(_incidence(groups, members), 1, 1),
        options={"time_limit": seconds, "mip_rel_gap": gap},
    )
    if solution.x is None:
        return None
    chosen = tuple(int(index) for index in np.flatnonzero(solution.x > 0.5))
    cost = float(np.sum(np.asarray(costs)[list(chosen)]))
    return Partition(chosen, cost, min(cost, float(solution.mip_dual_bound) * scale))


def relax(groups: Sequence[Sequence[int]], costs: Sequence[float], members: int) -> Relaxed:
    """The same with groups that may be chosen in part: a lower bound, and prices of members."""
    solution: Any = linprog(
        costs, A_eq=_incidence(groups, members), b_eq=np.ones(members), bounds=(0, None), method="highs"
    )
    if solution.x is None:
        raise MachineError(
            f"ended without a result ({solution.message})", field="solver", hint="give fewer jobs"
        )
    return Relaxed(np.asarray(solution.x), float(solution.fun), np.asarray(solution.eqlin.marginals))


def whole(shares: Array) -> NDArray[np.intp]:
    """The groups that the fractional choice has entirely."""
    return np.flatnonzero(shares > _WHOLE)


def _incidence(groups: Sequence[Sequence[int]], members: int) -> Any:
    """A row for each member, a column for each group."""
    rows = np.concatenate([np.asarray(group, dtype=np.int64) for group in groups])
    columns = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return csc_array((np.ones(len(rows)), (rows, columns)), shape=(members, len(groups)))


ALONE = 100.0
"""Percent of an application that shares with no other one."""

Pair = tuple[str, str]


class Pairing(msgspec.Struct, frozen=True, kw_only=True):
    """What `colocate schedule --matrix` prints: pairs and the applications that stay alone, with percents of
    exclusive runtimes.

    `mean`: of all applications; `random`: expected of a random pairing; `bound`: with the best companion of
    each, which no pairing is below; `half_cores`: with half of the cores and no companion, where it is known.
    `apart`: pairs that must not share, `losing`: the others that take longer together than alone.
    """

    schema: str = "elbowroom/pairing"
    version: int = 1
    pairs: tuple[Pair, ...]
    alone: tuple[str, ...]
    mean: float
    random: float
    bound: float
    half_cores: float | None
    apart: tuple[Pair, ...]
    losing: tuple[Pair, ...]


def best_pairing(
    matrix: Matrix,
    *,
    apart: Collection[Pair] = (),
    limit: float | None = None,
    half: Mapping[str, float] | None = None,
) -> Pairing:
    """As many pairs as possible, of least mean runtime.

    `apart`: pairs that must not share; `limit`: nor those in which one takes more percent than this; `half`:
    percents with half of the cores. UsageError for applications that the matrix does not have.
    """
    percent = matrix.array()
    allowed = _allowed(matrix, apart, limit)
    indices = match(percent, allowed)
    names = matrix.names
    both = _both(percent)
    if half is not None:
        check_half(dict(half), names)
    paired = {index for pair in indices for index in pair}
    everyone = list(combinations(range(len(names)), 2))
    return Pairing(
        pairs=tuple((names[i], names[j]) for i, j in indices),
        alone=tuple(name for index, name in enumerate(names) if index not in paired),
        mean=mean_of(percent, indices),
        random=random_mean(percent),
        bound=companion_bound(percent, allowed),
        half_cores=None if half is None else float(np.mean([half[name] for name in names])),
        apart=tuple((names[i], names[j]) for i, j in everyone if not allowed[i, j]),
        losing=tuple((names[i], names[j]) for i, j in everyone if allowed[i, j] and both[i, j] > 2 * ALONE),
    )


def match(percent: Array, allowed: Array | None = None) -> tuple[tuple[int, int], ...]:
    """Index pairs of least weight, as many as possible, among the `allowed` ones."""
    count = len(percent)
    both = _both(percent)
    pairs = [(i, j) for i, j in combinations(range(count), 2) if allowed is None or allowed[i, j]]
    # To leave two alone costs more than any pairing of all, so as many as possible are paired.
    lonely = 1.0 + float(both.max(initial=0.0)) * (count + 1)
    groups: list[tuple[int, ...]] = [*pairs, *((index,) for index in range(count))]
    costs = [float(both[i, j]) for i, j in pairs] + [lonely] * count
    solution = partition(groups, costs, count)
    if solution is None:
        raise MachineError(
            "found no pairing in time", field="solver", value=count, hint="give fewer applications"
        )
    return tuple((group[0], group[1]) for index in solution.chosen if len(group := groups[index]) == 2)


def mean_of(percent: Array, pairs: Sequence[tuple[int, int]]) -> float:
    """Mean percent of all applications; those without a pair take 100."""
    both = _both(percent)
    alone = len(percent) - 2 * len(pairs)
    return (sum(float(both[i, j]) for i, j in pairs) + ALONE * alone) / len(percent)


def random_mean(percent: Array) -> float:
    """The exact expectation of `mean_of` over all pairings of all applications (of all but one, if odd)."""
    count = len(percent)
    if count == 1:
        return ALONE
    others = (float(percent.sum()) - float(np.trace(percent))) / (count * (count - 1))
    return others if count % 2 == 0 else (others * (count - 1) + ALONE) / count


def companion_bound(percent: Array, allowed: Array | None = None) -> float:
    """The mean if each application had the companion that suits it best; none is taken into account twice.

    No pairing has a lower mean: in a pairing each has one companion, or takes 100.
    """
    others = percent.copy()
    np.fill_diagonal(others, np.inf)
    if allowed is not None:
        others = np.where(allowed > 0, others, np.inf)
    best = others.min(axis=0)
    if len(percent) % 2 == 0 and np.isfinite(best).all():
        return float(best.mean())
    return float(np.minimum(best, ALONE).mean())


def apart_indices(matrix: Matrix, apart: Collection[Pair]) -> list[tuple[int, int]]:
    """Pairs of applications as indices; UsageError for applications that the matrix does not have."""
    for pair in apart:
        for name in pair:
            check_known(name, matrix.names, field="apart")
    return [(matrix.names.index(a), matrix.names.index(b)) for a, b in apart]


def parse_apart(text: str) -> tuple[Pair, ...]:
    """Pairs of applications from `CG:CG,FT:IS`; UsageError for other texts."""
    pairs = []
    for word in text.split(","):
        first, _, second = (part.strip() for part in word.partition(":"))
        if not first or not second or ":" in second:
            raise UsageError("is not a pair", field="apart", value=word, hint="write CG:CG,FT:IS")
        pairs.append((first, second))
    return tuple(pairs)


def _both(percent: Array) -> Array:
    both: Array = percent + percent.T
    return both


def _allowed(matrix: Matrix, apart: Collection[Pair], limit: float | None) -> Array:
    """1 for the pairs that may share."""
    percent = matrix.array()
    allowed = np.ones_like(percent)
    for i, j in apart_indices(matrix, apart):
        allowed[i, j] = allowed[j, i] = 0
    if limit is not None:
        beyond = percent > limit
        allowed[beyond | beyond.T] = 0
    np.fill_diagonal(allowed, 0)
    return allowed


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


def companions_figure(matrix: Matrix, half: Mapping[str, float] | None = None) -> Figure:
    """The runtimes of each application by companion, as bars side by side from the least to the most (Koop,
    Luo, Panda: slide 25); `half`: those on half of the cores without a companion, the first bar of each.
    """
    bars: list[Series] = []
    names, place = [], 0.0
    for column, name in enumerate(matrix.names):
        runtimes = [(matrix.percent[row][column], beside) for row, beside in enumerate(matrix.names)]
        alone = [(half[name], "half")] if half is not None and name in half else []
        shown = [*alone, *sorted(runtimes)]
        bars.append(
            Series(
                name=name,
                hue=("blue", "red", "black")[column % 3],
                style="line",
                drawn="bars",
                x=tuple(place + step for step in range(len(shown))),
                y=tuple(value for value, _ in shown),
                value="% of exclusive",
            )
        )
        names += [beside for _, beside in shown] + [""]
        place += len(shown) + 1
    return Figure(
        name="companions",
        title="Runtime by companion (%)",
        x=Axis(label="companion", names=tuple(names[:-1])),
        left=Axis(label="% of the exclusive runtime", reference=100.0),
        series=tuple(bars),
        caption="100 %: the exclusive runtime on all cores. half: half of the cores, no companion.",
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
