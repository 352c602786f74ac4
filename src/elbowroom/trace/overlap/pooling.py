"""Partial pooling: the slowdown of a class beside a kind, shrunk towards that of all (empirical Bayes)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import chdtri

from elbowroom.trace.overlap.events import NONE, Floats, Ints
from elbowroom.trace.overlap.instances import dense

FEWEST_CONTRASTS = 3.0
"""Independent contrasts of a row with its own slowdown, at least."""
ALIKE = 0.001
"""Rows differ if chance would spread them so far with this probability."""
ROW_ERROR = 1.3
"""Errors of rows are larger than the variances of their sums: other rows and levels are estimates, too."""
MODEL_WEIGHT = 4.0
"""Contrasts that the variance by the weights counts as, in that of a row."""


@dataclass(frozen=True, kw_only=True)
class RowEffect:
    """A class beside a kind of the other side: the logarithm of its slowdown, shrunk towards that of all, its
    standard error, and how many independent `contrasts` it has of its own.
    """

    kernel: int
    other: int
    log: float
    error: float
    contrasts: float


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Of each row: its `kernel`, the logarithm of its slowdown (`log`), its standard `error` and its
    `contrasts`. `multiplier`: of each class's weight, for the mean over the shared time; `unseen`: the
    variance of that mean, since the parts of rows in it are not those of the shared time (without
    multipliers: `unweighted`); `spread`: the variance between rows, 0 where they may be alike.
    """

    kernel: Ints
    log: Floats
    error: Floats
    contrasts: Floats
    multiplier: Floats
    unseen: float
    unweighted: float
    spread: float


def pool_rows(
    place: Ints,
    kernel: Ints,
    row: Ints,
    weight: Floats,
    noise: Floats,
    state: Floats,
    change: Floats,
    rest: Floats,
    shared: Floats,
    log: Floats,
    inflation: float,
) -> Pool | None:
    """Pools the rows of instances whose `rest` remains after the slowdowns `log` (of each row); None without
    any contrast. `noise`: the variance of each instance; `state`: the instrument; `change`: the derivative by
    the logarithm of the slowdown; columns of shape (instances,). `inflation`: of errors, since neighbours are
    not independent.
    """
    rows = int(row.max()) + 1
    longer, dose, variance, model, largest = _sums(place, row, weight, noise, state, change, rest)
    variance, model = variance * inflation**2, model * inflation**2
    if dose.sum() <= 0:
        return None
    contrasts = np.where(largest > 0, dose**2 / np.maximum(largest, 1e-30), 0.0)
    usable = (dose > 0) & (contrasts >= FEWEST_CONTRASTS)
    error2 = np.full(rows, np.inf)
    steady = (contrasts * variance + MODEL_WEIGHT * model) / (contrasts + MODEL_WEIGHT)
    error2[usable] = steady[usable] * ROW_ERROR**2 / dose[usable] ** 2
    own = log.copy()
    own[usable] += longer[usable] / dose[usable]
    excess, differ = _spread(own[usable], error2[usable])
    spread = excess if differ else 0.0
    kept = np.where(usable, spread / (spread + error2), 0.0)
    part = dose.clip(0) / dose.clip(0).sum()
    mean = float((part * own)[usable].sum() / part[usable].sum()) if spread else 0.0
    of_row = np.zeros(rows, dtype=np.int64)
    of_row[row[row != NONE]] = kernel[row != NONE]
    time = np.bincount(row[row != NONE], shared[row != NONE], rows)
    time = time / time.sum()
    mixed = time * kept + part * float((time * (1 - kept)).sum())
    kernels = int(kernel.max()) + 1
    doses = np.bincount(of_row, dose, kernels)
    multiplier = np.where(doses > 0, np.bincount(of_row, mixed, kernels) / np.where(doses > 0, doses, 1), 0.0)
    all_error2 = float(variance.sum()) / float(dose.sum()) ** 2
    return Pool(
        kernel=of_row,
        log=mean + kept * (own - mean) if spread else log,
        error=np.sqrt(
            np.where(usable, kept * np.where(usable, error2, 0.0), spread) + (1 - kept) ** 2 * all_error2
        ),
        contrasts=np.where(usable, contrasts, 0.0),
        multiplier=multiplier,
        unseen=float(((mixed - time) ** 2).sum()) * excess,
        unweighted=float(((part - time) ** 2).sum()) * excess,
        spread=spread,
    )


def _sums(
    place: Ints, row: Ints, weight: Floats, noise: Floats, state: Floats, change: Floats, rest: Floats
) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Of each row, with an instrument that is the state for its instances, 0 for others, without the level of
    the place: its sum with the rest, with the dose, the variance of the first by the rest and by the noise,
    and the sum of squares of the second.
    """
    rows = int(row.max()) + 1
    there = row != NONE
    pair = np.full(len(row), NONE)
    pair[there] = dense(place[there], row[there])
    of, group = row[there], pair[there]
    count = int(group.max()) + 1
    pair_row, pair_place = np.zeros((2, count), dtype=np.int64)
    pair_row[group], pair_place[group] = of, place[there]
    size = np.bincount(place, weight)[pair_place]
    squares = np.bincount(place, (weight * rest) ** 2)[pair_place]
    noises = np.bincount(place, weight**2 * noise)[pair_place]
    own = (weight**2 * noise)[there]
    w, z, x, e = weight[there], state[there], change[there], rest[there]
    level = np.bincount(group, w * z, count) / size
    apart = z - level[group]

    def of_rows(values: Floats, less: Floats) -> Floats:
        sums: Floats = (np.bincount(of, values, rows) + np.bincount(pair_row, less, rows)).astype(float)
        return sums

    none = np.zeros(count)
    longer = of_rows(w * z * e, none)
    dose = of_rows(w * apart * x, none)
    here = np.bincount(group, (w * e) ** 2, count)
    variance = of_rows((w * e * apart) ** 2, level**2 * (squares - here))
    model = of_rows(own * apart**2, level**2 * (noises - np.bincount(group, own, count)))
    largest = of_rows((w * apart * x) ** 2, none)
    return longer, dose, variance, model, largest


def _spread(own: Floats, error2: Floats) -> tuple[float, bool]:
    """The variance of the rows' true values (DerSimonian and Laird, Controlled Clinical Trials 7, 1986), and
    whether they differ significantly.
    """
    if len(own) < 2:
        return 0.0, False
    part = 1 / error2
    mean = float((part * own).sum() / part.sum())
    total = float((part * (own - mean) ** 2).sum())
    excess = total - (len(own) - 1)
    size = float(part.sum() - (part**2).sum() / part.sum())
    variance = max(excess / size, 0.0) if size > 0 else 0.0
    return variance, bool(total >= chdtri(len(own) - 1, ALIKE))
