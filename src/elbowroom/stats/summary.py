"""From raw samples to summaries: medians, deciles, bootstrap intervals, what each side kept.

Resamples are drawn over repetitions, not over samples: the alone and together samples of one repetition stay
together, so that what drifts with time cancels in the ratio (METHOD.md, rules 12 and 19).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from elbowroom.stats.result import Added, Kept, Side, Summary

RESAMPLES = 1000
CONFIDENCE = 0.95
MANY = 600
"""So many values, and medians of resamples are looked for in their middle only: it is faster."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Samples:
    """Raw samples as columns of equal length; one row is one phase seen from one side.

    `point`: index into the points; `phase`: A, B or AB; `side`: comp or comm, of an application also total
    and separator; `value` in `unit`; `status`:
    that of the phase (ok, not_stable, void); `closing`: the alone baselines measured again at the end.
    """

    point: Sequence[int] | Ints
    repetition: Sequence[int] | Ints
    closing: Sequence[bool] | NDArray[np.bool_]
    phase: Sequence[str]
    side: Sequence[str]
    value: Sequence[float] | Floats
    unit: Sequence[str]
    status: Sequence[str]

    def __post_init__(self) -> None:
        lengths = {name: len(column) for name, column in vars(self).items()}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns of samples differ in length: {lengths}")

    def __len__(self) -> int:
        return len(self.point)


def quantile(ordered: Floats, share: float) -> float:
    """Linear quantile of sorted values, as numpy's default; plain arithmetic, for it is asked thousands of
    times.
    """
    position = share * (len(ordered) - 1)
    below = int(position)
    if below + 1 >= len(ordered):
        return float(ordered[-1])
    left, right, part = float(ordered[below]), float(ordered[below + 1]), position - below
    return left + (right - left) * part if part < 0.5 else right - (right - left) * (1 - part)


def weights(repetitions: int, seed: int, resamples: int = RESAMPLES) -> NDArray[np.int16]:
    """How often each repetition is in each resample: shape (repetitions, resamples), columns sum to
    `repetitions`.
    """
    draws = np.random.default_rng(seed).integers(0, repetitions, size=(resamples, repetitions))
    counts = np.zeros((resamples, repetitions), dtype=np.int16)
    np.add.at(counts, (np.arange(resamples)[:, None], draws), 1)
    return np.ascontiguousarray(counts.T)


def resampled_medians(values: Floats, groups: Ints, drawn: NDArray[np.int16]) -> Floats:
    """Median of each resample: shape (resamples,). `groups` gives the row of `drawn` that each value belongs
    to.

    A resample that draws none of the values has the median of them all (it tells nothing).
    """
    by_value = np.argsort(values, kind="stable")
    ordered, members = values[by_value], groups[by_value]
    if len(values) >= MANY and (found := _of_the_middle(ordered, members, drawn)) is not None:
        return found
    narrow = 2 * len(values) * drawn.shape[0] < np.iinfo(np.int16).max
    cumulative = np.cumsum(drawn[members], axis=0, dtype=np.int16 if narrow else np.int32)
    total = cumulative[-1]
    doubled = cumulative * 2
    last = len(values) - 1
    lower = np.minimum((doubled < total).sum(axis=0), last)
    upper = np.minimum((doubled <= total).sum(axis=0), last)
    medians: Floats = (ordered[lower] + ordered[upper]) / 2
    if not total.all():
        medians[total == 0] = np.median(ordered)
    return medians


def _of_the_middle(ordered: Floats, members: Ints, drawn: NDArray[np.int16]) -> Floats | None:
    """The same from the middle third of the sorted values, a third of the work; None where the median of some
    resample lies outside it.
    """
    count, groups = len(ordered), drawn.shape[0]
    first, end = count // 3, count - count // 3
    wide = drawn.astype(np.int32)
    total = np.bincount(members, minlength=groups) @ wide
    before = np.bincount(members[:first], minlength=groups) @ wide
    cumulative = before + np.cumsum(drawn[members[first:end]], axis=0, dtype=np.int32)
    if (2 * before >= total).any() or (2 * cumulative[-1] <= total).any():
        return None
    lower = first + (2 * cumulative < total).sum(axis=0)
    upper = first + (2 * cumulative <= total).sum(axis=0)
    medians: Floats = (ordered[lower] + ordered[upper]) / 2
    return medians


def interval(estimates: Floats, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The percentile interval of resampled estimates."""
    count = len(estimates)
    below = min(int(np.floor(count * (1 - confidence) / 2)), count - 1)
    above = count - 1 - below
    parted = np.partition(estimates, (below, above))
    return float(parted[below]), float(parted[above])


def summarise(
    values: Sequence[float] | Floats,
    unit: str,
    seed: int = 0,
    repetitions: Sequence[int] | Ints | None = None,
) -> Summary:
    """Median, d1, d9 and the 95 % bootstrap interval of the median; deterministic for a seed.

    `repetitions` says which repetition each value is from; without it each value is its own. ValueError when
    empty.
    """
    column = np.asarray(values, dtype=np.float64)
    if column.size == 0:
        raise ValueError("no values to summarise")
    groups = np.arange(column.size) if repetitions is None else _numbered(np.asarray(repetitions))
    drawn = weights(int(groups.max()) + 1, seed)
    return _summary(column, unit, resampled_medians(column, groups, drawn))


def _numbered(repetitions: Ints) -> Ints:
    """0, 1, 2 … for the repetitions in rising order."""
    return np.asarray(np.unique(repetitions, return_inverse=True)[1], dtype=np.int64).reshape(-1)


def _summary(values: Floats, unit: str, medians: Floats) -> Summary:
    low, high = interval(medians)
    ordered = np.sort(values)
    d1, median, d9 = (quantile(ordered, share) for share in (0.1, 0.5, 0.9))
    return Summary(
        median=median,
        d1=d1,
        d9=d9,
        low=min(low, median),
        high=max(high, median),
        count=int(values.size),
        unit=unit,
    )


def kept(
    alone: Mapping[int, Sequence[float]],
    together: Mapping[int, Sequence[float]],
    *,
    duration: bool = False,
    seed: int = 0,
) -> Kept | None:
    """together/alone of medians of a rate (alone/together of a duration), with its paired-bootstrap interval.

    Both are samples by repetition. None where one side is empty or a median is not positive.
    """
    columns = [_column(side) for side in (alone, together)]
    return side_of(*columns[0], *columns[1], unit="us" if duration else "", seed=seed).kept


def _column(side: Mapping[int, Sequence[float]]) -> tuple[Floats, Ints]:
    values = [(value, repetition) for repetition, items in side.items() for value in items]
    return np.array([v for v, _ in values], dtype=np.float64), np.array(
        [r for _, r in values], dtype=np.int64
    )


def side_of(
    alone: Floats,
    alone_repetitions: Ints,
    together: Floats,
    together_repetitions: Ints,
    *,
    unit: str,
    seed: int = 0,
    drawn: NDArray[np.int16] | None = None,
) -> Side:
    """One side of one point; `us` is a duration, every other unit a rate."""
    numbered = _numbered(np.concatenate([alone_repetitions, together_repetitions]))
    if numbered.size == 0:
        return Side()
    count = int(numbered.max()) + 1
    if drawn is None or drawn.shape[0] != count:
        drawn = weights(count, seed)
    sides = []
    for values, groups in ((alone, numbered[: alone.size]), (together, numbered[alone.size :])):
        sides.append((values, resampled_medians(values, groups, drawn)) if values.size else None)
    summaries = [None if side is None else _summary(side[0], unit, side[1]) for side in sides]
    ratio = more = None
    if sides[0] is not None and sides[1] is not None and summaries[0] and summaries[1]:
        medians = summaries[0].median, summaries[1].median
        ratio = _ratio(*medians, sides[0][1], sides[1][1], unit == "us")
        more = _difference(*medians, sides[1][1] - sides[0][1]) if unit == "us" else None
    return Side(alone=summaries[0], together=summaries[1], kept=ratio, added=more)


def _difference(alone: float, together: float, resampled: Floats) -> Added:
    """Paired as the ratio is: each resample holds the same repetitions of both."""
    low, high = interval(resampled)
    value = together - alone
    return Added(value=value, low=min(low, value), high=max(high, value))


def _ratio(
    alone: float, together: float, alone_boot: Floats, together_boot: Floats, duration: bool
) -> Kept | None:
    """Nothing is clamped: above 1 stays above 1 (METHOD.md, rule 11)."""
    if duration:
        alone, together, alone_boot, together_boot = together, alone, together_boot, alone_boot
    if alone <= 0 or together <= 0:
        return None
    value = together / alone
    positive = alone_boot > 0
    low, high = interval(together_boot[positive] / alone_boot[positive]) if positive.any() else (value, value)
    return Kept(value=value, low=min(low, value), high=max(high, value))
