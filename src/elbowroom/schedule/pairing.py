"""The best pairing of applications: each shares its nodes with one other, and the mean runtime is least.

It is a perfect matching of least weight. The weight of a pair is what both take in percent of their exclusive
runtimes. One of an odd number stays alone and takes 100 %.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

import msgspec
import numpy as np

from elbowroom.errors import MachineError, UsageError
from elbowroom.schedule.matrix import Array, Matrix, check_half, check_known
from elbowroom.schedule.partition import partition

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
    found = partition(groups, costs, count)
    if found is None:
        raise MachineError(
            "found no pairing in time", field="solver", value=count, hint="give fewer applications"
        )
    return tuple((group[0], group[1]) for index in found.chosen if len(group := groups[index]) == 2)


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
            raise UsageError("is no pair", field="apart", value=word, hint="write CG:CG,FT:IS")
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
