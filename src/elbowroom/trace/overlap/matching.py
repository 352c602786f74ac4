"""The slowdown of a class of events beside the other side's activity, from matched instances.

The instances of a class on one lane, in order of time, form runs: the other side is active when they begin,
or it is not. Three neighbouring runs are one comparison: the middle one against the mean of the other two. A
linear drift cancels in it, and so does everything that changes more slowly. No run is in two comparisons, so
they are independent.

Instances are told apart by what is active when they *begin*. Whether anything is active *during* them depends
on how long they take: long ones would be taken for disturbed ones. An instance that takes d, of which the other side
shares o, would take d - o (1 - 1/s) alone. So 1 - 1/s is the difference of the mean durations over that of the
mean shared times (the estimator of Wald, Annals of Mathematical Statistics 11, 1940, with the state at the
begin as instrument); s is the ratio of durations of an instance that is beside the other side all the time.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from elbowroom.stats.interval import Interval
from elbowroom.stats.signed_ranks import CONFIDENCE, pseudo_median, rank_interval
from elbowroom.trace.overlap.events import Flags, Floats, Ints, Small

LEAST_CONTRAST = 0.25
"""Comparisons whose shared times differ by less than this part of the duration are left out."""
REACH = 32
"""Instances of a run, nearest to the middle of a comparison, that enter it."""
NEIGHBOURS = 9
FAR = 7.0
"""Median deviations from the median of its neighbours: so far is no normal noise (4.7 standard deviations)."""
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
    """Of each comparison the logarithm of the slowdown, at full exposure."""

    logs: Floats

    def __len__(self) -> int:
        return len(self.logs)

    def slowdown(self, confidence: float = CONFIDENCE) -> Interval | None:
        """The middle of all comparisons with its interval; None where too few can hold it."""
        if len(self) < fewest(confidence):
            return None
        ends = rank_interval(self.logs, confidence)
        if ends is None:
            return None
        middle = pseudo_median(self.logs)
        value, low, high = (math.exp(end) for end in (middle, *ends))
        return Interval(value=value, low=min(low, value), high=max(high, value))


def fewest(confidence: float) -> int:
    """Comparisons whose widest interval has (nearly) this confidence: five for 95 %, more for more."""
    return max(5, math.floor(1 - math.log2(1 - confidence)))


def compare(instances: Instances) -> Comparisons:
    """All comparisons of a class."""
    instances = _without_outliers(instances)
    lane, beside = instances.lane, instances.beside
    if len(lane) < 3:
        return Comparisons(logs=np.zeros(0))
    first = np.concatenate([[True], (lane[1:] != lane[:-1]) | (beside[1:] != beside[:-1])])
    begin = np.flatnonzero(first)
    end = np.append(begin[1:], len(lane))
    middle = _middles(lane[begin])
    if not len(middle):
        return Comparisons(logs=np.zeros(0))
    values = (instances.own, instances.shared)
    before = [_means(value, np.maximum(begin, end - REACH), end)[middle - 1] for value in values]
    here = [_means(value, begin, end)[middle] for value in values]
    after = [_means(value, begin, np.minimum(end, begin + REACH))[middle + 1] for value in values]
    sign = np.where(beside[begin[middle]], 1.0, -1.0)
    longer, shared = (sign * (here[i] - (before[i] + after[i]) / 2) for i in (0, 1))
    kept = shared >= LEAST_CONTRAST * here[0]
    return Comparisons(logs=-np.log(np.maximum(1 - longer[kept] / shared[kept], SMALLEST)))


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


def _middles(lanes: Small) -> Ints:
    """The middle run of each comparison: three neighbours of one lane, from its first run on."""
    first = np.concatenate([[True], lanes[1:] != lanes[:-1]])
    begin = np.flatnonzero(first)
    place = np.arange(len(lanes)) - np.repeat(begin, np.diff(np.append(begin, len(lanes))))
    there = place % 3 == 1
    there[:-1] &= lanes[1:] == lanes[:-1]
    there[-1] = False
    return np.flatnonzero(there)


def _means(values: Floats, begin: Ints, end: Ints) -> Floats:
    """The mean of each range of values."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    means: Floats = (sums[end] - sums[begin]) / (end - begin)
    return means

