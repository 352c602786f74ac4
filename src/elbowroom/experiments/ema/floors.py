"""How far the floor of one-way times rises when extraneous accesses outgrow each cache.

The fastest message of a size is one that nothing else delayed. The floor of a window is the
median of these over its sizes, each repetition apart; a region's (all sizes that are past one cache and not
past the next) is the median of its windows' floors. Unlike the least of all values it does not fall when
more is measured, so regions of different width compare. What accesses add is relative to the messages
without any that were measured among them, repetition by repetition, so that what moves from one repetition
to the next (where pages lie, the machine's own drift) cancels. Intervals come from drawing windows and
repetitions again, and inside each its sizes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.machine.topology import Machine
from elbowroom.points.accesses import ExtraneousAccesses, WindowSeries, series_of
from elbowroom.results.result import PointResult
from elbowroom.schemas import WRITTEN
from elbowroom.stats.bootstrap import estimate, indices
from elbowroom.stats.interval import Interval
from elbowroom.stats.signed_ranks import Floats

RESAMPLES = 500
WITHOUT = "without"
"""The row of the control: messages without accesses, of all windows."""

Mask = NDArray[np.bool_]


class CacheRegion(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes of accesses between two caches; one-way times in us, ratios less 1.

    `name`: `without` accesses, `within L1`, `past L1` ...; `low`, `high`: the least and most bytes accessed,
    `sizes` how many. `floor` as above; `median`, `d1`, `d9`: medians over the sizes of each one's own.
    `over`: the floor over that of the messages without accesses among them, less 1. `rise`: how far that
    ratio lies over the one of the region before, less 1; of the first region `over`. `control`: the floor
    without accesses in these windows over that in those of the region before, less 1: 0 where nothing moved.
    """

    name: str
    low: int
    high: int
    sizes: int
    floor: float
    median: float
    d1: float
    d9: float
    over: Annotated[Interval | None, WRITTEN] = None
    rise: Annotated[Interval | None, WRITTEN] = None
    control: Annotated[Interval | None, WRITTEN] = None


def edges(item: PointResult, machine: Machine) -> dict[int, float]:
    """Bytes at which the accesses of a point outgrow each level of cache that a message goes through.

    Only caches of the sender's and the receiver's core count; one that several accessing cores share is
    outgrown by all of them together. Levels that no accessing core shares with a message are left out.
    """
    series = series_of(item.payload)
    if series is None or not isinstance(item.workload, ExtraneousAccesses):
        return {}
    cores = {"sender": (series.sender,), "receiver": (series.receiver,), "bystanders": series.bystanders}
    accessing = [core for rank in item.workload.accessing_ranks for core in cores[rank]]
    smallest: dict[int, float] = {}
    for cache in machine.caches:
        sharers = sum(core in cache.cores for core in accessing)
        if sharers and {series.sender, series.receiver} & set(cache.cores):
            smallest[cache.level] = min(smallest.get(cache.level, np.inf), cache.size / sharers)
    return smallest


def regions(windows: Sequence[PointResult], levels: Mapping[int, float], seed: int = 0) -> list[CacheRegion]:
    """The row without accesses, then each region that has sizes, from small to large.

    `windows`: points that differ in their sizes only; `levels`: bytes by level of cache (`edges`).
    """
    windowed = [series for item in windows if (series := series_of(item.payload)) is not None]
    if not windowed:
        return []
    everything = [np.ones(len(series.sizes), dtype=bool) for series in windowed]
    rows = [_row(WITHOUT, windowed, everything, after=False)]
    before: list[Mask] | None = None
    bounds = [-1.0, *sorted(levels.values()), np.inf]
    for low, high in pairwise(bounds):
        inside = [_between(series, low, high) for series in windowed]
        if not any(mask.any() for mask in inside):
            continue
        name = region_of(high, levels)
        rows.append(_with_rises(_row(name, windowed, inside, after=True), windowed, inside, before, seed))
        before = inside
    return rows


def region_of(size: float, levels: Mapping[int, float]) -> str:
    """`within L1`, `past L1`, `past L2` ...: the last cache that so many bytes outgrow; `all` without any."""
    past = [level for level, edge in levels.items() if size > edge]
    if past:
        return f"past L{max(past)}"
    return f"within L{min(levels)}" if levels else "all"


def _between(series: WindowSeries, low: float, high: float) -> Mask:
    sizes = np.asarray(series.sizes, dtype=np.float64)
    mask: Mask = (sizes > low) & (sizes <= high)
    return mask


def _row(name: str, windowed: Sequence[WindowSeries], inside: Sequence[Mask], *, after: bool) -> CacheRegion:
    spreads = [series.after if after else series.without for series in windowed]
    sizes = np.concatenate([np.asarray(s.sizes)[mask] for s, mask in zip(windowed, inside, strict=True)])

    def middle(field: str) -> float:
        columns = [np.asarray(getattr(s, field))[mask] for s, mask in zip(spreads, inside, strict=True)]
        return float(np.median(np.concatenate(columns)))

    return CacheRegion(
        name=name,
        low=int(sizes.min()) if after else 0,
        high=int(sizes.max()) if after else 0,
        sizes=len(sizes),
        floor=_floor(clusters(windowed, inside, after=after)),
        median=middle("median"),
        d1=middle("d1"),
        d9=middle("d9"),
    )


def _with_rises(
    row: CacheRegion,
    windowed: Sequence[WindowSeries],
    inside: Sequence[Mask],
    before: Sequence[Mask] | None,
    seed: int,
) -> CacheRegion:
    here, without = excess(windowed, inside, seed), Floors(clusters(windowed, inside, after=False), seed)
    if before is None:
        return msgspec.structs.replace(row, over=here.less_1(), rise=here.less_1())
    there = excess(windowed, before, seed + 1)
    return msgspec.structs.replace(
        row,
        over=here.less_1(),
        rise=here.over(there),
        control=without.over(Floors(clusters(windowed, before, after=False), seed + 1)),
    )


def clusters(windowed: Sequence[WindowSeries], inside: Sequence[Mask], *, after: bool) -> list[Floats]:
    """The fastest message of each size inside a region, sorted: an array for each window and repetition."""
    return [
        np.sort(np.asarray(fastest, dtype=np.float64)[mask])
        for series, mask in zip(windowed, inside, strict=True)
        if mask.any()
        for fastest in (series.after if after else series.without).minima
    ]


def _floor(parts: Sequence[Floats]) -> float:
    return float(np.median([np.median(part) for part in parts]))


class Floors:
    """The median over clusters of each one's median, and as many of resamples: `value`, `drawn`.

    With `under`, clusters that were measured together with these, of their ratios.
    """

    def __init__(self, parts: Sequence[Floats], seed: int, under: Sequence[Floats] | None = None) -> None:
        rng = np.random.default_rng(seed)
        middles, again = _medians(parts), _resampled(parts, rng)
        if under is not None:
            middles, again = middles / _medians(under), again / _resampled(under, rng)
        drawn = indices(rng, len(parts), RESAMPLES)
        self.value = float(np.median(middles))
        self.drawn: Floats = np.median(again[drawn, np.arange(RESAMPLES)[:, None]], axis=1)

    def less_1(self) -> Interval:
        """Of a ratio: how far it lies over 1."""
        return estimate(self.value - 1, self.drawn - 1)

    def over(self, other: Floors) -> Interval:
        """How far these lie over others that were drawn apart from them."""
        return estimate(self.value / other.value - 1, self.drawn / other.drawn - 1)


def excess(windowed: Sequence[WindowSeries], inside: Sequence[Mask], seed: int) -> Floors:
    """Floors after accesses over those without, cluster by cluster."""
    without = clusters(windowed, inside, after=False)
    return Floors(clusters(windowed, inside, after=True), seed, without)


def _medians(parts: Sequence[Floats]) -> Floats:
    return np.array([np.median(part) for part in parts])


def _resampled(parts: Sequence[Floats], rng: np.random.Generator) -> Floats:
    """Medians of clusters whose sizes are drawn again: shape (clusters, RESAMPLES)."""
    ranks = {size: _median_ranks(size, rng) for size in sorted({len(part) for part in parts})}
    medians = np.empty((len(parts), RESAMPLES))
    for row, part in zip(medians, parts, strict=True):
        # The ranks are shared by clusters of one size; each takes them in an order of its own.
        mine = ranks[len(part)][:, rng.permutation(RESAMPLES)]
        row[:] = (part[mine[0]] + part[mine[1]]) / 2
    return medians


def _median_ranks(size: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Which of `size` sorted values are the middle two of a resample: shape (2, RESAMPLES)."""
    drawn = np.sort(rng.integers(0, size, size=(RESAMPLES, size)), axis=1)
    return np.stack([drawn[:, (size - 1) // 2], drawn[:, size // 2]])
