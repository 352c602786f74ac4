"""Extraneous accesses of one side against those of the other, and the two observations of Tan and Jarvis
(2012): the lower bound rises with the bytes accessed, and the receiver's accesses do more harm.

The bounds of a window are the least and the greatest of what its sizes took on average (section 3.2 and Fig.
3 of the paper, windows of 100 sizes there), or of the fastest message of each size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Literal

import msgspec
import numpy as np

from elbowroom.experiments.ema.floors import RESAMPLES, CacheRegion, region_of
from elbowroom.points.accesses import Spread, WindowSeries, series_of
from elbowroom.results.judgement import Judgement
from elbowroom.results.result import PointResult
from elbowroom.schemas import WRITTEN
from elbowroom.stats.bootstrap import estimate, indices, weights
from elbowroom.stats.interval import Interval
from elbowroom.stats.signed_ranks import NORMAL_95, Floats

FEWEST_WINDOWS = 8
"""A trend over fewer says nothing."""

FEWEST_PAIRS = 3
"""Windows of a region that two sides are compared in; of fewer there is no interval."""

FEWEST_SIZES = 5
"""Sizes of a window that an interval of its lower bound needs."""

FLAT = 0.05
"""A floor that surely rises less than this does not rise: what elsewhere counts as undisturbed."""

MOVED = 0.03
"""Floors without accesses that surely differ by more than this: the machine moved (method.md, rule 15)."""

MOST_CORRELATED = 1 - 1e-12
"""Fisher's transformation of 1 is infinite."""

Of = Literal["mean", "minimum"]


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Lower and upper bound (us) of one window; `bytes`: the middle of the sizes accessed."""

    point: str
    bytes: float
    lower: float
    upper: float


class Scatter(msgspec.Struct, frozen=True, kw_only=True):
    """Average (us) and variance (us^2) over all sizes of what each took on average (section 3.3)."""

    average: Interval
    variance: Interval


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Accesses of the receiver less those of the sender, us: medians over windows of the same sizes.

    `lower`, `upper`: of the bounds; `median`, `average`, `spread` (d9 - d1): of what accesses add to those of
    the messages without among them; `regions`: `median` in each region; `variances`: the receiver's variance
    of averages over the sender's, less 1, None where the latter is 0.
    """

    windows: int
    lower: Interval
    upper: Interval
    median: Interval
    average: Interval
    spread: Interval
    variances: Interval | None
    regions: Annotated[dict[str, Interval], WRITTEN] = {}


class First(msgspec.Struct, frozen=True, kw_only=True):
    """The first observation: Kendall's rank correlation of lower bounds and bytes; how far the floor of the
    last region lies over that without accesses, less 1; the change of the latter from the region before the
    last one, and whether it `moved` too far in any for a verdict.
    """

    verdict: Judgement
    trend: Interval | None
    rise: Interval | None
    control: Interval | None
    moved: bool


def bounds(windows: Sequence[PointResult], *, of: Of = "mean", after: bool = True) -> list[Bounds]:
    """The bounds of each window, from few bytes to many; of the messages after accesses, or without."""
    intervals = []
    for item in windows:
        if (series := series_of(item.payload)) is not None:
            values = getattr(_spread(series, after), of)
            middle = (series.sizes[0] + series.sizes[-1]) / 2
            intervals.append(Bounds(point=item.id, bytes=middle, lower=min(values), upper=max(values)))
    return sorted(intervals, key=lambda bound: bound.bytes)


def all_series(windows: Sequence[PointResult]) -> list[WindowSeries]:
    """What was measured of these windows."""
    return [series for item in windows if (series := series_of(item.payload)) is not None]


def _spread(series: WindowSeries, after: bool) -> Spread:
    return series.after if after else series.without


def scatter(windows: Sequence[PointResult], *, after: bool = True, seed: int = 0) -> Scatter | None:
    """Average and variance of what the sizes took on average; intervals by drawing sizes again inside each
    window. None of fewer than two sizes.
    """
    columns = [np.asarray(_spread(series, after).mean) for series in all_series(windows)]
    if sum(map(len, columns)) < 2:
        return None
    values = np.concatenate(columns)
    averages, variances = _moments(columns, seed)
    return Scatter(
        average=estimate(float(values.mean()), averages),
        variance=estimate(float(values.var(ddof=1)), variances),
    )


def _moments(columns: Sequence[Floats], seed: int) -> tuple[Floats, Floats]:
    """Averages and variances of resamples; values are taken from their mean, lest digits cancel."""
    rng = np.random.default_rng(seed)
    count = sum(map(len, columns))
    middle = float(np.concatenate(columns).mean())
    total, squares = np.zeros(RESAMPLES), np.zeros(RESAMPLES)
    for column in columns:
        off = column[indices(rng, len(column), RESAMPLES)] - middle
        total += off.sum(axis=1)
        squares += (off * off).sum(axis=1)
    return middle + total / count, (squares - total * total / count) / (count - 1)


def difference(
    sender: Sequence[PointResult],
    receiver: Sequence[PointResult],
    levels: Mapping[int, float] | None = None,
    seed: int = 0,
) -> Difference | None:
    """How much more the receiver's accesses delay than as many of the sender's; None without windows of the
    same sizes on both sides, or with one size only. `levels` tells the regions apart (`floors.edges`).
    """
    others = {series.sizes: series for series in all_series(receiver)}
    pairs = [(series, others[series.sizes]) for series in all_series(sender) if series.sizes in others]
    if sum(len(sent.sizes) for sent, _ in pairs) < 2:
        return None

    def less(
        of: Callable[[WindowSeries], float], chosen: Sequence[tuple[WindowSeries, WindowSeries]] = pairs
    ) -> Interval:
        gaps = np.array([of(theirs) - of(ours) for ours, theirs in chosen])
        again = indices(np.random.default_rng(seed), len(gaps), RESAMPLES)
        return estimate(float(np.median(gaps)), np.median(gaps[again], axis=1))

    return Difference(
        windows=len(pairs),
        lower=less(lambda series: min(series.after.mean)),
        upper=less(lambda series: max(series.after.mean)),
        median=less(lambda series: _added(series, _middle)),
        average=less(lambda series: _added(series, lambda spread: float(np.mean(spread.mean)))),
        spread=less(lambda series: _added(series, _deciles)),
        variances=_variances(pairs, seed),
        regions={
            name: less(lambda series: _added(series, _middle), chosen)
            for name, chosen in _by_region(pairs, levels or {}).items()
            if len(chosen) >= FEWEST_PAIRS
        },
    )


def _variances(pairs: Sequence[tuple[WindowSeries, WindowSeries]], seed: int) -> Interval | None:
    """Variance of the receiver's averages over that of the sender's, less 1."""
    columns = [[np.asarray(pair[side].after.mean) for pair in pairs] for side in (0, 1)]
    drawn = [_moments(column, seed + side)[1] for side, column in enumerate(columns)]
    values = [np.concatenate(column).var(ddof=1) for column in columns]
    if values[0] == 0:
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        return estimate(float(values[1] / values[0]) - 1, drawn[1] / drawn[0] - 1)


def _added(series: WindowSeries, of: Callable[[Spread], float]) -> float:
    """What accesses add to the messages without among them."""
    return of(series.after) - of(series.without)


def _middle(spread: Spread) -> float:
    return float(np.median(spread.median))


def _deciles(spread: Spread) -> float:
    return float(np.median(np.subtract(spread.d9, spread.d1)))


def _by_region(
    pairs: Sequence[tuple[WindowSeries, WindowSeries]], levels: Mapping[int, float]
) -> dict[str, list[tuple[WindowSeries, WindowSeries]]]:
    """Pairs of windows by the region that the middle of their sizes is in."""
    parts: dict[str, list[tuple[WindowSeries, WindowSeries]]] = {}
    for pair in pairs:
        middle = (pair[0].sizes[0] + pair[0].sizes[-1]) / 2
        parts.setdefault(region_of(middle, levels), []).append(pair)
    return parts


def trend(windows: Sequence[PointResult], seed: int = 0) -> Interval | None:
    """Kendall's tau of the lower bounds (of averages) over the bytes accessed, from -1 to 1, windows drawn
    again for its interval; None of fewer than eight windows.
    """
    lows = bounds(windows)
    if len(lows) < FEWEST_WINDOWS:
        return None
    heights = np.array([bound.lower for bound in lows])
    signs = np.sign(heights[None, :] - heights[:, None])
    rows = np.arange(len(lows))
    signs = np.where(rows[None, :] > rows[:, None], signs, -signs)
    counts = weights(len(rows), seed, RESAMPLES).T.astype(np.int64)
    np.fill_diagonal(signs, 0)
    # Pairs of a window with itself have no order: they are not among the pairs of a resample.
    sums = np.einsum("ri,ij,rj->r", counts, signs, counts, optimize=True)
    pairs = len(rows) ** 2 - (counts * counts).sum(axis=1)
    return estimate(float(signs.sum() / (len(rows) * (len(rows) - 1))), sums / np.maximum(pairs, 1))


def first_observation(windows: Sequence[PointResult], regions: Sequence[CacheRegion], seed: int = 0) -> First:
    """Confirmed where the lower bound has a trend upwards and the floor surely rises, by more than that of
    the messages without accesses moved; refuted where it surely rises less than 5 %; else undecided.

    `regions`: those of the windows (stats.floors), the one without accesses first.
    """
    last = regions[-1] if len(regions) > 1 else None
    rise = None if last is None else last.over
    controls = [row.control for row in regions if row.control is not None]
    control = controls[-1] if controls else None
    moved = any(estimate.low > MOVED or estimate.high < -MOVED for estimate in controls)
    slope = trend(windows, seed)
    verdict: Judgement = "undecided"
    if slope is not None and rise is not None and not moved:
        beyond = max([0.0, *(estimate.high for estimate in controls)])
        if slope.low > 0 and rise.low > beyond:
            verdict = "confirmed"
        elif rise.high < FLAT or slope.high < 0:
            verdict = "refuted"
    return First(verdict=verdict, trend=slope, rise=rise, control=control, moved=moved)


def never_below(windows: Sequence[PointResult], limit: float) -> int | None:
    """The most bytes accessed at which the average one-way time was still below `limit` us: beyond them it
    never was. None where it was never below, or where it was so at the very last size.
    """
    last, largest = None, -1
    for series in all_series(windows):
        largest = max(largest, series.sizes[-1])
        for size, mean in zip(series.sizes, series.after.mean, strict=True):
            if mean < limit and (last is None or size > last):
                last = size
    return None if last == largest else last


def floor(item: PointResult, seed: int = 0) -> Interval | None:
    """The least of what the sizes of a window took on average, us; its interval by drawing sizes again. None
    of fewer than FEWEST_SIZES.
    """
    series = series_of(item.payload)
    if series is None or len(series.after.mean) < FEWEST_SIZES:
        return None
    values = np.asarray(series.after.mean)
    drawn = values[indices(np.random.default_rng(seed), len(values), RESAMPLES)]
    return estimate(float(values.min()), drawn.min(axis=1))


class MissLine(msgspec.Struct, frozen=True, kw_only=True):
    """Misses of one level at one rank over bytes accessed: the least of each window (Fig. 2), from few bytes
    to many. `plateau`: bytes from which they reach nine tenths of their most; None where there is none.
    """

    level: str
    source: str
    points: tuple[str, ...]
    bytes: tuple[float, ...]
    lower: tuple[float, ...]

    @property
    def plateau(self) -> float | None:
        """The middle of the first window with nine tenths of the most."""
        return next((x for x, high in self._high() if high), None)

    @property
    def settled(self) -> float | None:
        """The middle of the first window from which no later one has less than that."""
        start = None
        for x, high in reversed(self._high()):
            if not high:
                break
            start = x
        return start

    def _high(self) -> list[tuple[float, bool]]:
        most = max(self.lower)
        return [(x, bool(most) and y >= 0.9 * most) for x, y in zip(self.bytes, self.lower, strict=True)]


def miss_lines(windows: Sequence[PointResult], rank: str, *, models: bool = False) -> list[MissLine]:
    """A line for each level that is known of every window, nearest cache first: what was counted, or else
    what a model says; with `models` that of each level that was counted, too.
    """
    counts: dict[tuple[str, str], list[tuple[float, float, str]]] = {}
    measured = [(item, series) for item in windows if (series := series_of(item.payload)) is not None]
    for item, series in measured:
        middle = (series.sizes[0] + series.sizes[-1]) / 2
        for misses in series.misses:
            if misses.rank == rank:
                counts.setdefault((misses.level, misses.source), []).append(
                    (middle, min(misses.count), item.id)
                )
    lines: list[MissLine] = []
    for (level, source), rows in sorted(counts.items()):
        counted = source == "modelled" and any(line.level == level for line in lines)
        if len(rows) == len(measured) and (models or not counted):
            middles, least, ids = zip(*sorted(rows), strict=True)
            lines.append(MissLine(level=level, source=source, points=ids, bytes=middles, lower=least))
    return lines


def follows(windows: Sequence[PointResult], line: MissLine) -> Interval | None:
    """Correlation of the lower bounds of the one-way time with the misses, with Fisher's interval; None where
    either never varies, and of fewer than eight windows.
    """
    heights = {bound.point: bound.lower for bound in bounds(windows)}
    both = np.array([[heights[point] for point in line.points], line.lower])
    if both.shape[1] < FEWEST_WINDOWS or (np.ptp(both, axis=1) == 0).any():
        return None
    correlation = float(np.corrcoef(both)[0, 1])
    middle = np.arctanh(np.clip(correlation, -MOST_CORRELATED, MOST_CORRELATED))
    half = NORMAL_95 / math.sqrt(both.shape[1] - 3)
    return Interval(value=correlation, low=float(np.tanh(middle - half)), high=float(np.tanh(middle + half)))
