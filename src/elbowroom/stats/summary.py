"""From raw samples to summaries: medians, deciles, intervals, what each side kept.

Repetitions are the units, not samples. What a side kept is estimated from the ratios inside the repetitions,
so that what drifts with time cancels (docs/design/method.md, rules 12 and 19; stats/signed_ranks.py). The
interval of a median is a bootstrap over repetitions, widened for few of them.

Pages and the order in which things start up move results from one start of a program to the next. The
repetitions of one start share that, so they are not independent. With several starts the start is therefore
the unit: an interval comes from one value for each start. The parts of the variation come from the analysis
of variance of one random effect, and the interval of their ratio from the F distribution (Searle, Casella and
McCulloch, Variance Components, 1992, sections 3.6 and 3.8).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.stats.bootstrap import expansion, percentile_interval, resampled_medians, weights
from elbowroom.stats.interval import Added, Kept, LogMean, Side, StartVariation, Summary
from elbowroom.stats.signed_ranks import (
    CONFIDENCE,
    FEWEST,
    Floats,
    Ints,
    by_repetition,
    known,
    pseudo_median,
    rank_interval,
)


@dataclass(frozen=True)
class Samples:
    """Raw samples as columns of equal length; one row is one phase seen from one side.

    `point`: index into the points; `phase`: A, B or AB; `side`: comp or comm, of an application also total
    and separator; `value` in `unit`; `status`:
    that of the phase (ok, not_stable, void); `closing`: the alone baselines measured again at the end;
    `start`: which start of the program the row is from, empty where that does not matter.
    """

    point: Sequence[int] | Ints
    repetition: Sequence[int] | Ints
    closing: Sequence[bool] | NDArray[np.bool_]
    phase: Sequence[str]
    side: Sequence[str]
    value: Sequence[float] | Floats
    unit: Sequence[str]
    status: Sequence[str]
    start: Sequence[int] | Ints = ()

    def __post_init__(self) -> None:
        lengths = {name: len(column) for name, column in vars(self).items() if name != "start" or len(column)}
        if len(set(lengths.values())) > 1:
            raise ValueError(f"columns of samples differ in length: {lengths}")

    def __len__(self) -> int:
        return len(self.point)


def quantile(ordered: Floats, share: float) -> float:
    """Linear quantile of sorted values, as numpy's default, in plain arithmetic: it is called very often."""
    position = share * (len(ordered) - 1)
    below = int(position)
    if below + 1 >= len(ordered):
        return float(ordered[-1])
    left, right, part = float(ordered[below]), float(ordered[below + 1]), position - below
    return left + (right - left) * part if part < 0.5 else right - (right - left) * (1 - part)


def summarise(
    values: Sequence[float] | Floats,
    unit: str,
    seed: int = 0,
    repetitions: Sequence[int] | Ints | None = None,
) -> Summary:
    """Median, d1, d9 and the 95 % bootstrap interval of the median; deterministic for a seed.

    `repetitions` says which repetition each value is from; without it each value is its own. No interval of
    fewer than FEWEST repetitions. ValueError when empty.
    """
    column = np.asarray(values, dtype=np.float64)
    if column.size == 0:
        raise ValueError("no values to summarise")
    groups = np.arange(column.size) if repetitions is None else _numbered(np.asarray(repetitions))
    return _summary(column, groups, unit, weights(int(groups.max()) + 1, seed))


def _numbered(repetitions: Ints) -> Ints:
    """0, 1, 2 … for the repetitions in rising order."""
    return np.asarray(np.unique(repetitions, return_inverse=True)[1], dtype=np.int64).reshape(-1)


def _summary(
    values: Floats, groups: Ints, unit: str, drawn: NDArray[np.int16], starts: Ints | None = None
) -> Summary:
    """`groups`: the row of `drawn` that each value belongs to; `starts`: the start of each row, where there
    are several.
    """
    ordered = np.sort(values)
    d1, median, d9 = (quantile(ordered, share) for share in (0.1, 0.5, 0.9))
    low = high = None
    repetitions = len(np.unique(groups))
    if starts is not None:
        return _over_starts(
            Summary(median=median, d1=d1, d9=d9, count=int(values.size), unit=unit),
            by_repetition(values, groups, len(starts)),
            starts,
        )
    if repetitions >= FEWEST:
        wider = expansion(repetitions)
        low, high = percentile_interval(resampled_medians(values, groups, drawn))
        # The medians of resamples say how far the median moves; it does not leave what was measured.
        low = max(float(ordered[0]), median - wider * max(0.0, median - low))
        high = min(float(ordered[-1]), median + wider * max(0.0, high - median))
    return Summary(median=median, d1=d1, d9=d9, low=low, high=high, count=int(values.size), unit=unit)


def _over_starts(summary: Summary, medians: Floats, starts: Ints) -> Summary:
    """With the interval that holds for other starts too, and the parts of the variation. `medians`: one for
    each repetition; a quantity that is not positive has no logarithm, and then no parts.
    """
    positive = bool((medians[~np.isnan(medians)] > 0).all())
    values = np.log(medians) if positive else medians
    ends = start_interval(by_start(values, starts))
    if ends is None:
        return summary
    low, high = (math.exp(end) for end in ends) if positive else ends
    parts = variation(values, starts) if positive else None
    return msgspec.structs.replace(
        summary,
        low=min(low, summary.median),
        high=max(high, summary.median),
        variation=msgspec.UNSET if parts is None else parts,
    )


def kept(
    alone: Mapping[int, Sequence[float]], together: Mapping[int, Sequence[float]], *, duration: bool = False
) -> Kept | None:
    """together/alone of a rate (alone/together of a duration) inside each repetition: their pseudo-median.

    Both are samples by repetition. None where one side is empty or a median is not positive; no interval
    where fewer than FEWEST repetitions have both.
    """
    values, repetitions = zip(*(_column(side) for side in (alone, together)), strict=True)
    if not min(map(len, values)):
        return None
    numbered = _numbered(np.concatenate(repetitions))
    groups = numbered[: len(values[0])], numbered[len(values[0]) :]
    by = [by_repetition(*side, int(numbered.max()) + 1) for side in zip(values, groups, strict=True)]
    return _ratio(float(np.median(values[0])), float(np.median(values[1])), *by, duration=duration)


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
    starts: tuple[Ints, Ints] | None = None,
) -> Side:
    """One side of one point; `us` is a duration, every other unit a rate. `starts`: which start of the
    program each value is from, where intervals are to hold for other starts too.
    """
    numbered = _numbered(np.concatenate([alone_repetitions, together_repetitions]))
    if numbered.size == 0:
        return Side()
    count = int(numbered.max()) + 1
    if drawn is None or drawn.shape[0] != count:
        drawn = weights(count, seed)
    columns = ((alone, numbered[: alone.size]), (together, numbered[alone.size :]))
    of_start = None
    if starts is not None:
        of_start = np.zeros(count, dtype=np.int64)
        of_start[numbered] = np.concatenate(starts)
    apart, joined = (
        _summary(values, groups, unit, drawn, of_start) if values.size else None for values, groups in columns
    )
    if apart is None or joined is None:
        return Side(alone=apart, together=joined)
    by = [by_repetition(values, groups, count) for values, groups in columns]
    return Side(
        alone=apart,
        together=joined,
        kept=_ratio(apart.median, joined.median, *by, duration=unit == "us", starts=of_start),
        added=_difference(joined.median - apart.median, by[1] - by[0], of_start) if unit == "us" else None,
    )


def _interval(values: Floats, starts: Ints | None) -> tuple[float, float] | None:
    """Of the middle of values, one for each repetition."""
    return rank_interval(values) if starts is None else start_interval(by_start(values, starts))


def _difference(of_medians: float, pairs: Floats, starts: Ints | None) -> Added:
    """`pairs`: one difference for each repetition; without any, that of the medians."""
    if np.isnan(pairs).all():
        return Added(value=of_medians)
    low, high = _interval(pairs, starts) or (None, None)
    return Added(value=pseudo_median(pairs), low=low, high=high)


def log_ratios(alone: Floats, together: Floats, *, duration: bool) -> Floats:
    """ln of what each repetition kept; NaN where it lacks a side, or where nothing was done alone."""
    before, after = (together, alone) if duration else (alone, together)
    with np.errstate(divide="ignore", invalid="ignore"):
        logs: Floats = np.log(after / before)
    logs[~(before > 0)] = np.nan
    return logs


def _ratio(
    alone_median: float,
    together_median: float,
    alone: Floats,
    together: Floats,
    *,
    duration: bool,
    starts: Ints | None = None,
) -> Kept | None:
    """Nothing is clamped: above 1 stays above 1 (docs/design/method.md, rule 11). Without a repetition that
    has both sides, the ratio of the medians.
    """
    if min(alone_median, together_median) <= 0:
        return None
    logs = log_ratios(alone, together, duration=duration)
    if np.isnan(logs).all():
        value = together_median / alone_median
        return Kept(value=1 / value if duration else value)
    low, high = _interval(logs, starts) or (None, None)
    parts = None if starts is None else variation(logs, starts)
    return Kept(
        value=math.exp(pseudo_median(logs)),
        low=None if low is None else math.exp(low),
        high=None if high is None else math.exp(high),
        variation=msgspec.UNSET if parts is None else parts,
        log=_log_mean(known(logs) if starts is None else by_start(logs, starts)),
    )


def _log_mean(logs: Floats) -> LogMean:
    count = logs.size
    error = float(logs.std(ddof=1)) / math.sqrt(count) if count > 1 else None
    return LogMean(mean=float(logs.mean()), error=error, count=count)


def by_start(values: Floats, starts: Ints, middle: Callable[[Floats], float] = pseudo_median) -> Floats:
    """The middle of each start's values, without NaN; shape (starts with a value,)."""
    known = ~np.isnan(values)
    return np.array([middle(values[known & (starts == start)]) for start in np.unique(starts[known])])


def start_interval(middles: Floats, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """The interval of the middle of all starts, from one value for each; None for a single start.

    Ranks from FEWEST starts on, as for repetitions; Student's distribution for fewer, which ranks cannot
    hold.
    """
    count = len(middles)
    if count >= FEWEST:
        return rank_interval(middles, confidence)
    if count < 2:
        return None
    from scipy.special import stdtrit

    half = float(stdtrit(count - 1, (1 + confidence) / 2)) * float(middles.std(ddof=1)) / math.sqrt(count)
    centre = float(middles.mean())
    return centre - half, centre + half


def variation(logs: Floats, starts: Ints) -> StartVariation | None:
    """The parts of the variation of one logarithm for each repetition (NaN: none); `starts`: which start each
    is from. None unless there are two starts, and one of them has two repetitions.
    """
    known = ~np.isnan(logs)
    values, numbers = logs[known], np.unique(starts[known], return_inverse=True)[1]
    sizes = np.bincount(numbers) if values.size else np.empty(0)
    groups, total = len(sizes), values.size
    if groups < 2 or total <= groups:
        return None
    means = np.bincount(numbers, weights=values) / sizes
    within = float(((values - means[numbers]) ** 2).sum()) / (total - groups)
    among = float((sizes * (means - values.mean()) ** 2).sum()) / (groups - 1)
    usual = (total - float((sizes**2).sum()) / total) / (groups - 1)
    between = max(0.0, (among - within) / usual)
    low, high = _share_ends(among, within, usual, (groups - 1, total - groups))
    return StartVariation(
        starts=groups,
        share=between / (between + within) if between + within > 0 else 0.0,
        low=low,
        high=high,
        between=math.sqrt(between),
        within=math.sqrt(within),
    )


def _share_ends(
    among: float, within: float, usual: float, degrees: tuple[int, int]
) -> tuple[float | None, float | None]:
    """The 95 % interval of the share; exact for equally many repetitions a start and normal noise. None where
    repetitions of a start are all alike.
    """
    if within <= 0:
        return None, None
    from scipy.stats import f

    tail = (1 - CONFIDENCE) / 2
    ratios = (among / within / float(f.ppf(share, *degrees)) for share in (1 - tail, tail))
    low, high = (max(0.0, (ratio - 1) / (usual + ratio - 1)) for ratio in ratios)
    return low, high
