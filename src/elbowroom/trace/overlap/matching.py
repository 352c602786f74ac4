"""The slowdown of a class of events beside the other side's activity, from instances at the same place.

Only instances at the same place of a step are compared (places.py): some steps or ranks have the other side
active there, others do not. They are cut into tiles: some places of the class in some consecutive steps of a
rank (of all ranks, where they have few steps). The level of each place and the level of each step of a rank
are removed from each tile; of a class with one place a level and a linear drift. So what differs between
places, between ranks or between whole steps cancels, and tiles are independent.

Instances are told apart by what is active when they *begin*. Whether anything is active *during* them depends
on how long they take: long ones would be taken for disturbed ones. An instance that takes d, of which the
other side shares o, would take d - o (1 - 1/s) alone. So 1 - 1/s is the difference of durations over that of
shared times (the estimator of Wald, Annals of Mathematical Statistics 11, 1940, with the state at the begin
as instrument); s is the ratio of durations of an instance that is beside the other side all the time.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from elbowroom.stats.interval import Interval
from elbowroom.stats.signed_ranks import CONFIDENCE, FEWEST, MOST, between_ranks, pair_means
from elbowroom.trace.overlap.events import Flags, Floats, Ints, Small

LEAST_CONTRAST = 0.1
"""If instances that begin beside the other side share less than this part of their duration with it, more
than the others do, the ratio is not determined.
"""
TILES = 40
"""Tiles that a class is cut into, if they hold enough instances: intervals need tens of comparisons."""
FEWEST_STEPS, MOST_STEPS = 6, 32
"""Steps of a tile, where a rank has so many."""
MOST_PLACES = 8
"""Of a tile that has more degrees of freedom than FREEDOM."""
FREEDOM = 7
"""Degrees of freedom of a tile of several places, at least."""
ROUNDS = 50
"""Of removing the levels of places and steps in turn, at most: until the levels are below SETTLED."""
SETTLED = 1e-6
LEAST_CHANGE = 0.5
"""Of the sum of squares of the state in a tile: with less, the tile has hardly both states."""
DENSE = 8
"""Numbers for each instance up to which a table of all is faster than sorting."""
NORMAL = 1.4826
"""Standard deviation of normal values, in median deviations."""
NEIGHBOURS = 9
FAR = 7.0
"""Median deviations from the median of its neighbours: so far is no normal noise (4.7 standard deviations).
"""
NEAR = 0.01
"""Of the logarithm of a duration: so little is never an outlier."""
SMALLEST = 0.01
"""Of 1/s in one comparison: noise may exceed the shared time."""


@dataclass(frozen=True, kw_only=True)
class Instances:
    """Instances of one class in order of lane and time: `place` and `cell` (places.Places) and `lane`; `own`
    time and the part of it that the other side shares (ns), and whether it is active (`beside`) when they
    begin.
    """

    place: Ints
    cell: Ints
    lane: Small
    own: Floats
    shared: Floats
    beside: Flags

    def only(self, kept: Flags | Ints) -> Instances:
        """Those that are kept, or in another order."""
        return Instances(**{one.name: getattr(self, one.name)[kept] for one in dataclasses.fields(self)})

    def relative(self) -> Instances:
        """With times relative to the usual one of their place, of those alone where there are any."""
        number = _dense(self.place)
        logs = np.log(self.own)
        level = _medians(logs, number)
        alone = np.unique(number[~self.beside])
        level[alone] = _medians(logs[~self.beside], number[~self.beside])[alone]
        factor = np.exp(-level)[number]
        return dataclasses.replace(self, own=self.own * factor, shared=self.shared * factor)


def _dense(numbers: Ints) -> Ints:
    """The numbers, which are 0 or more, without those that do not occur: 0, 1, 2, in the same order."""
    largest = int(numbers.max(initial=0))
    if largest > DENSE * (len(numbers) + 1):
        numbers_of_pairs: Ints = np.unique(numbers, return_inverse=True)[1]
        return numbers_of_pairs
    there = np.zeros(largest + 1, dtype=np.int64)
    there[numbers] = 1
    return (np.cumsum(there) - 1)[numbers]


def _medians(values: Floats, group: Ints) -> Floats:
    """The median of each group; any number for one that has no values."""
    if not len(values):
        return np.zeros(0)
    order = np.lexsort((values, group))
    size = np.bincount(group)
    begin = np.minimum(np.cumsum(size) - size, len(values) - 1)
    medians: Floats = (
        values[order][begin + np.maximum(size - 1, 0) // 2] + values[order][begin + size // 2]
    ) / 2
    return medians


@dataclass(frozen=True, kw_only=True)
class Comparisons:
    """Of each comparison how much `longer` instances beside the other side take, and how much more time they
    `shared` with it: sums over a tile, in units of its mean duration. `bias`: by how much 1 - 1/s may be too
    large, since long instances meet more messages.
    """

    longer: Floats
    shared: Floats
    bias: float = 0.0

    def __len__(self) -> int:
        return len(self.longer)

    def slowdown(self, confidence: float = CONFIDENCE) -> Interval | None:
        """The slowdown with its interval; None where too few comparisons can hold it.

        1 - 1/s is the median of (longer_i + longer_j) / (shared_i + shared_j) of all pairs of comparisons;
        its interval lies between ranks of them: those for which signed ranks (stats/signed_ranks.py) find
        longer - (1 - 1/s) shared to be around 0.
        """
        if len(self) < fewest(confidence):
            return None
        longer, shared = _at_most(self.longer), _at_most(self.shared)
        ratios = pair_means(longer) / pair_means(shared)
        ends = between_ranks(ratios, len(longer), confidence)
        if ends is None:
            return None
        middle, low, high = float(np.median(ratios)), ends[0] - self.bias, ends[1]
        value, low, high = (1 / max(1 - lost, SMALLEST) for lost in (middle, low, high))
        return Interval(value=value, low=min(low, value), high=max(high, value))


NOTHING = Comparisons(longer=np.zeros(0), shared=np.zeros(0))


def _at_most(values: Floats) -> Floats:
    """The values; means of neighbours in place of more than MOST."""
    return values if len(values) <= MOST else np.array([part.mean() for part in np.array_split(values, MOST)])


def fewest(confidence: float) -> int:
    """Comparisons whose widest interval has this confidence: five for (nearly) 95 %, more for more."""
    return max(FEWEST, math.ceil(1 - math.log2(1 - confidence)) if confidence > CONFIDENCE else FEWEST)


def compare_short(instances: Instances) -> Comparisons:
    """The same for messages that are shorter than the instances, and are active when few or none of them
    begin: those with a shared time are compared with the others. Of durations with a coefficient of variation
    c, those that meet a message are at most c^2 / (1 - p) longer on average, where a share p meets one: the
    bias.
    """
    instances = dataclasses.replace(instances, beside=instances.shared > 0)
    comparison = compare(instances)
    alike = instances.relative()
    alone = np.log(alike.own[~alike.beside])
    if not len(comparison) or len(alone) < NEIGHBOURS:
        return NOTHING
    variation = NORMAL * float(np.median(np.abs(alone - _rolling_median(alone))))
    others = len(alone) / len(alike.own)
    part = float((alike.shared / alike.own)[alike.beside].mean())
    return dataclasses.replace(comparison, bias=variation**2 / others / part)


def compare(instances: Instances) -> Comparisons:
    """A comparison for each tile of a class that has both states; for each window of time, if tiles do not
    differ, since the state is that of whole steps.
    """
    instances = _without_outliers(instances.relative())
    if not len(instances.own):
        return NOTHING
    by_tiles = _by_tiles(instances)
    if len(by_tiles) >= FEWEST:
        return by_tiles
    by_windows = _by_windows(instances)
    return by_windows if len(by_windows) > len(by_tiles) else by_tiles


def _by_tiles(instances: Instances) -> Comparisons:
    place = _dense(instances.place)
    if not place.any():
        return NOTHING
    tile = _tiles(instances, place)
    return _sums(instances.own, instances.shared, tile, _without_levels(instances, tile))


def _by_windows(instances: Instances) -> Comparisons:
    """The means of each step, in windows of consecutive steps of a rank."""
    cell = _dense(instances.cell)
    sizes = np.bincount(cell)
    own, shared, state = (
        np.bincount(cell, values) / sizes for values in (instances.own, instances.shared, instances.beside)
    )
    window = _windows(instances, min(max(len(sizes) // TILES, FEWEST_STEPS), MOST_STEPS))
    of_cell = np.zeros(len(sizes), dtype=np.int64)
    of_cell[cell] = window
    if len(sizes) < FEWEST_STEPS * len(np.unique(instances.lane)):
        return NOTHING
    return _sums(own, shared, of_cell, *_without_drift(own, state, of_cell))


def _tiles(instances: Instances, place: Ints) -> Ints:
    """The tile of each instance of a class with several places. The places of a tile are far apart, since
    neighbours are mostly in the same state; those with one state show the level of each step.
    """
    window = _windows(instances, FEWEST_STEPS)
    places, windows = int(place.max()) + 1, int(window.max()) + 1
    beside, sizes = np.bincount(place, instances.beside), np.bincount(place)
    both = (beside > 0) & (beside < sizes)
    steps = (int(_dense(instances.cell).max()) + 1) / windows
    fewest = max(2, math.ceil(FREEDOM / max(steps - 1, 1)) + 1)
    wide = max(fewest, min(places * windows // TILES, MOST_PLACES))
    groups = max(min(places // wide, int(both.sum())), 1)
    number = np.empty(places, dtype=np.int64)
    number[np.argsort(~both, kind="stable")] = np.arange(places)
    tile: Ints = _dense(window * groups + number[place] % groups)
    return tile


def _windows(instances: Instances, size: int) -> Ints:
    """The window of each instance: `size` consecutive steps or more, of one rank where each has so many."""
    cell = _dense(instances.cell)
    cells = int(cell.max()) + 1
    lane = np.zeros(cells, dtype=np.int64)
    lane[cell] = instances.lane
    if cells < size * len(np.unique(lane)):
        lane[:] = 0
    begin = np.concatenate([[True], np.diff(lane) != 0])
    number = np.cumsum(begin) - 1
    length = np.bincount(number)
    place = np.arange(cells) - (np.cumsum(length) - length)[number]
    parts = np.maximum(length // size, 1)
    window: Ints = (np.cumsum(parts) - parts)[number] + place * parts[number] // length[number]
    return window[cell]


def _sums(own: Floats, shared: Floats, tile: Ints, state: Floats, even: Flags | None = None) -> Comparisons:
    """The sums of each tile. `state`: what is left of the state without levels and drift; `even`: tiles to
    use.
    """
    sizes = np.bincount(tile)

    def summed(values: Floats) -> Floats:
        return np.bincount(tile, values, len(sizes)).astype(np.float64)

    level = summed(own) / np.maximum(sizes, 1)
    longer, together = summed(state * own) / level, summed(state * shared) / level
    kept = (summed(state * state) >= LEAST_CHANGE) & (together > 0)
    if even is not None:
        kept &= even & (sizes >= FEWEST_STEPS // 2)
    if not kept.any() or together[kept].sum() < LEAST_CONTRAST * summed(state * state)[kept].sum():
        return NOTHING
    return Comparisons(longer=longer[kept], shared=together[kept])


def _without_drift(own: Floats, state: Floats, tile: Ints) -> tuple[Floats, Flags]:
    """The state without the level and the linear drift of each tile, and which tiles are even."""
    sizes = np.bincount(tile)
    place = np.arange(len(tile)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    time = place - (sizes[tile] - 1) / 2
    mean = np.bincount(tile, state) / sizes
    slope = np.bincount(tile, state * time) / np.maximum(np.bincount(tile, time * time), 1e-9)
    return state - mean[tile] - slope[tile] * time, _even(np.log(own), tile, time < 0, len(sizes))


def _without_levels(instances: Instances, tile: Ints) -> Floats:
    """The state without the levels of the places and of the steps of each tile."""
    places, cells = int(instances.place.max()) + 1, int(instances.cell.max()) + 1
    place = _dense(tile * places + instances.place)
    cell = _dense(tile * cells + instances.cell)
    sizes = np.bincount(cell), np.bincount(place)
    state = instances.beside.astype(float)
    for _ in range(ROUNDS):
        largest = 0.0
        for group, size in zip((cell, place), sizes, strict=True):
            level = np.bincount(group, state) / size
            largest = max(largest, float(np.abs(level).max()))
            state = state - level[group]
        if largest < SETTLED:
            break
    return state


def _even(logs: Floats, tile: Ints, early: Flags, count: int) -> Flags:
    """Tiles whose halves take about as long. Where a phase of the program ends inside one, its instances are
    no neighbours.
    """
    means = [
        np.bincount(tile[half], weights=logs[half], minlength=count)
        / np.maximum(np.bincount(tile[half], minlength=count), 1)
        for half in (early, ~early)
    ]
    away = np.abs(means[0] - means[1])
    kept: Flags = away <= max(FAR * float(np.median(away)), NEAR)
    return kept


def _without_outliers(instances: Instances) -> Instances:
    """Without instances that something else prolonged (an interrupt, a page fault): far from the median of
    their neighbours of the same state. The state decides nothing else, so neither state is preferred.
    """
    logs = np.log(instances.own)
    kept = np.ones(len(logs), dtype=bool)
    for state in (True, False):
        chosen = np.flatnonzero(instances.beside == state)
        if len(chosen) >= NEIGHBOURS:
            away = np.abs(logs[chosen] - _rolling_median(logs[chosen]))
            kept[chosen] = away <= max(FAR * float(np.median(away)), NEAR)
    return instances.only(kept)


def _rolling_median(values: Floats) -> Floats:
    """Of NEIGHBOURS values around each; at both ends of the first and the last ones."""
    windows = np.lib.stride_tricks.sliding_window_view(values, NEIGHBOURS)
    medians = np.median(windows, axis=1)
    half = NEIGHBOURS // 2
    return np.concatenate([np.repeat(medians[:1], half), medians, np.repeat(medians[-1:], half)])
