"""Extraneous accesses of one side against those of the other, and the two observations of Tan and Jarvis
(2012): the lower bound rises with the bytes accessed, and the receiver's accesses do more harm.

The bounds of a window are the least and the greatest of what its sizes took on average (section 3.2 and Fig.
3 of the paper, windows of 100 sizes there), or of the fastest message of each size.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec
import numpy as np

from elbowroom.stats.floors import RESAMPLES, Estimate, Region, region_of
from elbowroom.stats.result import PointResult, Series, Spread
from elbowroom.stats.summary import Floats, interval

FEWEST_WINDOWS = 8
"""A trend over fewer says nothing."""

FLAT = 0.05
"""A floor that surely rises less than this does not rise: what elsewhere counts as undisturbed."""

MOVED = 0.03
"""Floors without accesses that surely differ by more than this: the machine moved (METHOD.md, rule 15)."""

Verdict = Literal["confirmed", "refuted", "undecided"]
Of = Literal["mean", "minimum"]


class Bounds(msgspec.Struct, frozen=True, kw_only=True):
    """Lower and upper bound (us) of one window; `bytes`: the middle of the sizes accessed."""

    point: str
    bytes: float
    lower: float
    upper: float


class Scatter(msgspec.Struct, frozen=True, kw_only=True):
    """Average (us) and variance (us^2) over all sizes of what each took on average (section 3.3); `within`:
    the variance inside a window, its median over windows: what grows with the bytes accessed is not in it.
    """

    average: Estimate
    variance: Estimate
    within: Estimate


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """Accesses of the receiver less those of the sender, us: medians over windows of the same sizes. `lower`,
    `upper`: of the bounds; `median`, `average`: of what accesses add to those of the messages without among
    them; `regions`: `median` in each region; `variances`, `within`: the receiver's variance over that of the
    sender, less 1.
    """

    windows: int
    lower: Estimate
    upper: Estimate
    median: Estimate
    average: Estimate
    variances: Estimate
    within: Estimate
    regions: dict[str, Estimate] = {}


class First(msgspec.Struct, frozen=True, kw_only=True):
    """The first observation: Kendall's rank correlation of lower bounds and bytes; how far the floor of the
    last region lies over that without accesses, less 1; the largest change of the latter from region to
    region, and whether it `moved` so far that nothing can be said.
    """

    verdict: Verdict
    trend: Estimate | None
    rise: Estimate | None
    control: Estimate | None
    moved: bool


def bounds(windows: Sequence[PointResult], *, of: Of = "mean", after: bool = True) -> list[Bounds]:
    """The bounds of each window, from few bytes to many; of the messages after accesses, or without."""
    found = []
    for item in windows:
        if item.series is not None:
            values = getattr(_spread(item.series, after), of)
            middle = (item.series.sizes[0] + item.series.sizes[-1]) / 2
            found.append(Bounds(point=item.id, bytes=middle, lower=min(values), upper=max(values)))
    return sorted(found, key=lambda one: one.bytes)


def _spread(series: Series, after: bool) -> Spread:
    return series.after if after else series.without


def scatter(windows: Sequence[PointResult], *, after: bool = True, seed: int = 0) -> Scatter | None:
    """Average and variances of what the sizes took on average; intervals by drawing sizes again inside each
    window. None where no window has two sizes.
    """
    columns = [np.asarray(_spread(item.series, after).mean) for item in windows if item.series is not None]
    if max(map(len, columns), default=0) < 2:
        return None
    values, drawn = _moments(columns), _moments(columns, np.random.default_rng(seed))
    average, variance, within = (_estimate(float(v[0]), d) for v, d in zip(values, drawn, strict=True))
    return Scatter(average=average, variance=variance, within=within)


def _moments(columns: Sequence[Floats], rng: np.random.Generator | None = None) -> tuple[Floats, ...]:
    """Average, variance, and the median of the variances inside columns: of resamples, or once, of what was
    measured. Values are taken from their mean, lest digits cancel.
    """
    count = sum(len(column) for column in columns)
    middle = float(np.concatenate(columns).mean())
    rows = 1 if rng is None else RESAMPLES
    total, squares, inside = np.zeros(rows), np.zeros(rows), []
    for column in columns:
        size = len(column)
        chosen = column[None, :] if rng is None else column[rng.integers(0, size, size=(rows, size))]
        off = chosen - middle
        total += off.sum(axis=1)
        squares += (off * off).sum(axis=1)
        if size > 1:
            inside.append(off.var(axis=1, ddof=1))
    within = np.array(inside)
    if rng is not None:
        within = within[rng.integers(0, len(within), size=within.shape), np.arange(rows)]
    variance = (squares - total * total / count) / (count - 1)
    return middle + total / count, variance, np.median(within, axis=0)


def _estimate(value: float, resampled: Floats) -> Estimate:
    finite = resampled[np.isfinite(resampled)]
    low, high = interval(finite) if finite.size else (value, value)
    return Estimate(value=value, low=min(low, value), high=max(high, value))


def difference(
    sender: Sequence[PointResult],
    receiver: Sequence[PointResult],
    levels: Mapping[int, float] | None = None,
    seed: int = 0,
) -> Difference | None:
    """How much more the receiver's accesses delay than as many of the sender's; None without windows of the
    same sizes on both sides, or with one size in each. `levels` tells the regions apart (`floors.edges`).
    """
    others = {item.series.sizes: item.series for item in receiver if item.series is not None}
    pairs = [
        (item.series, others[item.series.sizes])
        for item in sender
        if item.series is not None and item.series.sizes in others
    ]
    means = [[np.asarray(pair[side].after.mean) for pair in pairs] for side in (0, 1)]
    if not pairs or max(map(len, means[0])) < 2:
        return None
    found = [_moments(column) for column in means]
    drawn = [_moments(column, np.random.default_rng(seed + side)) for side, column in enumerate(means)]

    def less(of: Callable[[Series], float], chosen: Sequence[tuple[Series, Series]] = pairs) -> Estimate:
        gaps = np.array([of(theirs) - of(ours) for ours, theirs in chosen])
        again = np.random.default_rng(seed).integers(0, len(gaps), size=(RESAMPLES, len(gaps)))
        return _estimate(float(np.median(gaps)), np.median(gaps[again], axis=1))

    def over(which: int) -> Estimate:
        value = float(found[1][which][0] / found[0][which][0]) - 1 if found[0][which][0] > 0 else 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            return _estimate(value, drawn[1][which] / drawn[0][which] - 1)

    return Difference(
        windows=len(pairs),
        lower=less(lambda series: min(series.after.mean)),
        upper=less(lambda series: max(series.after.mean)),
        median=less(_added),
        average=less(lambda series: float(np.mean(series.after.mean) - np.mean(series.without.mean))),
        variances=over(1),
        within=over(2),
        regions={name: less(_added, chosen) for name, chosen in _by_region(pairs, levels or {}).items()},
    )


def _added(series: Series) -> float:
    return float(np.median(series.after.median) - np.median(series.without.median))


def _by_region(
    pairs: Sequence[tuple[Series, Series]], levels: Mapping[int, float]
) -> dict[str, list[tuple[Series, Series]]]:
    """Pairs of windows by the region that the middle of their sizes is in."""
    parts: dict[str, list[tuple[Series, Series]]] = {}
    for pair in pairs:
        middle = (pair[0].sizes[0] + pair[0].sizes[-1]) / 2
        parts.setdefault(region_of(middle, levels), []).append(pair)
    return parts


def sign(estimate: Estimate) -> Verdict:
    """Whether a value is surely above 0 (confirmed), surely below (refuted), or neither."""
    return "confirmed" if estimate.low > 0 else "refuted" if estimate.high < 0 else "undecided"


def trend(windows: Sequence[PointResult], seed: int = 0) -> Estimate | None:
    """Kendall's tau of the lower bounds (of averages) over the bytes accessed, from -1 to 1, windows drawn
    again for its interval; None of fewer than eight windows.
    """
    found = bounds(windows)
    if len(found) < FEWEST_WINDOWS:
        return None
    heights = np.array([one.lower for one in found])
    signs = np.sign(heights[None, :] - heights[:, None])
    rows = np.arange(len(found))
    signs = np.where(rows[None, :] > rows[:, None], signs, -signs)
    rng = np.random.default_rng(seed)
    counts = np.stack(
        [np.bincount(rng.integers(0, len(rows), len(rows)), minlength=len(rows)) for _ in range(RESAMPLES)]
    )
    np.fill_diagonal(signs, 0)
    # Pairs of a window with itself have no order: they are not among the pairs of a resample.
    sums = np.einsum("ri,ij,rj->r", counts, signs, counts, optimize=True)
    pairs = len(rows) ** 2 - (counts * counts).sum(axis=1)
    return _estimate(float(signs.sum() / (len(rows) * (len(rows) - 1))), sums / np.maximum(pairs, 1))


def first_observation(windows: Sequence[PointResult], found: Sequence[Region], seed: int = 0) -> First:
    """Confirmed where the lower bound has a trend upwards and the floor surely rises, by more than that of
    the messages without accesses moved; refuted where it surely rises less than 5 %; else undecided.

    `found`: the regions of these windows (stats.floors), the one without accesses first.
    """
    last = found[-1] if len(found) > 1 else None
    rise = None if last is None else last.over
    controls = [row.control for row in found if row.control is not None]
    control = max(controls, key=lambda one: abs(one.value), default=None)
    moved = any(one.low > MOVED or one.high < -MOVED for one in controls)
    slope = trend(windows, seed)
    verdict: Verdict = "undecided"
    if slope is not None and rise is not None and not moved:
        beyond = max([0.0, *(one.high for one in controls)])
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
    for item in windows:
        if item.series is None:
            continue
        largest = max(largest, item.series.sizes[-1])
        for size, mean in zip(item.series.sizes, item.series.after.mean, strict=True):
            if mean < limit and (last is None or size > last):
                last = size
    return None if last == largest else last


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
        most = max(self.lower)
        return next(
            (x for x, y in zip(self.bytes, self.lower, strict=True) if most and y >= 0.9 * most), None
        )


def miss_lines(windows: Sequence[PointResult], rank: str) -> list[MissLine]:
    """A line for each level that is known of every window, nearest cache first."""
    found: dict[tuple[str, str], list[tuple[float, float, str]]] = {}
    told = [item for item in windows if item.series is not None]
    for item in told:
        assert item.series is not None
        middle = (item.series.sizes[0] + item.series.sizes[-1]) / 2
        for one in item.series.misses:
            if one.rank == rank:
                found.setdefault((one.level, one.source), []).append((middle, min(one.count), item.id))
    lines = []
    for (level, source), rows in sorted(found.items()):
        if len(rows) == len(told):
            middles, least, ids = zip(*sorted(rows), strict=True)
            lines.append(MissLine(level=level, source=source, points=ids, bytes=middles, lower=least))
    return lines


def follows(windows: Sequence[PointResult], line: MissLine) -> float | None:
    """Correlation of the lower bounds of the one-way time with the misses; None where either never varies."""
    heights = {one.point: one.lower for one in bounds(windows)}
    both = np.array([[heights[point] for point in line.points], line.lower])
    if both.shape[1] < FEWEST_WINDOWS or (np.ptp(both, axis=1) == 0).any():
        return None
    return float(np.corrcoef(both)[0, 1])
