"""The slowdown of a class of events beside the other side's activity, from matched instances.

The instances of a class on one lane are cut, in order of time, into blocks of neighbours. In each block those
that begin while the other side is active are compared with those that do not. A level and a linear drift are
fitted in each block, so that what changes more slowly than a block cancels; blocks are independent.

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
BLOCKS = 40
"""Blocks that a class is cut into, if they hold enough instances: intervals need tens of comparisons."""
SMALLEST_BLOCK, LARGEST_BLOCK = 8, 32
"""Instances. In a block as short as a message, long instances would be over-represented."""
LEAST_CHANGE = 0.5
"""Of the sum of squares of the state in a block: with less, the block has hardly both states."""
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
    """Instances of one class in order of lane and time: `lane`, `own` time and the part of it that the other
    side shares (ns), and whether it is active (`beside`) when they begin.
    """

    lane: Small
    own: Floats
    shared: Floats
    beside: Flags


@dataclass(frozen=True, kw_only=True)
class Comparisons:
    """Of each comparison how much `longer` instances beside the other side take, and how much more time they
    `shared` with it: sums over a block, in units of its mean duration. `bias`: by how much 1 - 1/s may be too
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
    found = compare(instances)
    alone = np.log(instances.own[~instances.beside])
    if not len(found) or len(alone) < NEIGHBOURS:
        return NOTHING
    variation = NORMAL * float(np.median(np.abs(alone - _rolling_median(alone))))
    others = len(alone) / len(instances.own)
    part = float((instances.shared / instances.own)[instances.beside].mean())
    return dataclasses.replace(found, bias=variation**2 / others / part)


def compare(instances: Instances) -> Comparisons:
    """A comparison for each block of a class that has both states."""
    instances = _without_outliers(instances)
    block = _blocks(instances.lane)
    if not len(block):
        return NOTHING
    sizes = np.bincount(block)
    count = len(sizes)

    def summed(values: Floats) -> Floats:
        return np.bincount(block, values, count).astype(np.float64)

    place = np.arange(len(block)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    time = place - (sizes[block] - 1) / 2
    state = instances.beside.astype(float)
    slope = summed(state * time) / np.maximum(summed(time * time), 1e-9)
    state = state - (summed(state) / sizes)[block] - slope[block] * time
    level = summed(instances.own) / sizes
    longer, shared = summed(state * instances.own) / level, summed(state * instances.shared) / level
    kept = (summed(state * state) >= LEAST_CHANGE) & (shared > 0) & (sizes >= SMALLEST_BLOCK // 2)
    kept &= _even(np.log(instances.own), block, time < 0, count)
    if not kept.any() or shared[kept].sum() < LEAST_CONTRAST * summed(state * state)[kept].sum():
        return NOTHING
    return Comparisons(longer=longer[kept], shared=shared[kept])


def _blocks(lane: Small) -> Ints:
    """The block of each instance: neighbours on one lane."""
    if not len(lane):
        return np.zeros(0, dtype=np.int64)
    size = min(max(len(lane) // BLOCKS, SMALLEST_BLOCK), LARGEST_BLOCK)
    first = np.concatenate([[True], lane[1:] != lane[:-1]])
    begin = np.flatnonzero(first)
    place = np.arange(len(lane)) - np.repeat(begin, np.diff(np.append(begin, len(lane))))
    return np.cumsum(place % size == 0) - 1


def _even(logs: Floats, block: Ints, early: Flags, count: int) -> Flags:
    """Blocks whose halves take about as long. Where a phase of the program ends inside one, its instances are
    no neighbours.
    """
    means = [
        np.bincount(block[half], weights=logs[half], minlength=count)
        / np.maximum(np.bincount(block[half], minlength=count), 1)
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
    return Instances(
        lane=instances.lane[kept],
        own=instances.own[kept],
        shared=instances.shared[kept],
        beside=instances.beside[kept],
    )


def _rolling_median(values: Floats) -> Floats:
    """Of NEIGHBOURS values around each; at both ends of the first and the last ones."""
    windows = np.lib.stride_tricks.sliding_window_view(values, NEIGHBOURS)
    medians = np.median(windows, axis=1)
    half = NEIGHBOURS // 2
    return np.concatenate([np.repeat(medians[:1], half), medians, np.repeat(medians[-1:], half)])
