"""Spans of time of many groups at once: unions, what they cover, how many overlap, amounts over time.

A span is a begin and an end, N of each; `group` (N,) says to which rank or node it belongs.
"""

from __future__ import annotations

import msgspec
import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Union(msgspec.Struct, frozen=True):
    """Spans of each group that do not touch each other, in order of group and time."""

    group: Ints
    begin: Floats
    end: Floats

    def covered(self, group: Ints, begin: Floats, end: Floats) -> Floats:
        """How much of each span [begin, end] of `group` these cover, in time."""
        return self._until(group, end) - self._until(group, begin)

    def _until(self, group: Ints, time: Floats) -> Floats:
        """Time covered in a group before `time`."""
        if not len(self.begin):
            return np.zeros(len(time))
        total = np.concatenate([[0.0], np.cumsum(self.end - self.begin)])
        wide = _width(self.end, time)
        at = np.searchsorted(self.begin + self.group * wide, time + group * wide, side="right")
        first = np.searchsorted(self.group, group)
        inside = at > first
        last = np.maximum(at - 1, 0)
        over = np.where(inside, np.maximum(self.end[last] - time, 0.0), 0.0)
        return np.where(inside, total[at] - total[first] - over, 0.0)


def _width(*times: Floats) -> float:
    return 1.0 + 2.0 * max(float(np.abs(some).max(initial=0.0)) for some in times)


def union(group: Ints, begin: Floats, end: Floats) -> Union:
    """The spans of each group, joined where they overlap or touch."""
    if not len(group):
        return Union(group, begin, end)
    order = np.lexsort((begin, group))
    group, begin, end = group[order], begin[order], end[order]
    shift = group * _width(begin, end)
    until = np.maximum.accumulate(end + shift)
    first = np.flatnonzero(np.concatenate([[True], begin[1:] + shift[1:] > until[:-1]]))
    last = np.concatenate([first[1:] - 1, [len(group) - 1]])
    return Union(group[first], begin[first], until[last] - shift[last])


def joined(*some: Union) -> Union:
    """The time that any of these covers."""
    return union(
        np.concatenate([one.group for one in some]),
        np.concatenate([one.begin for one in some]),
        np.concatenate([one.end for one in some]),
    )


def complement(spans: Union, groups: Ints, first: float, last: float) -> Union:
    """Of each of these groups, the time between `first` and `last` that no span covers."""
    parts = []
    for group in groups:
        own = (spans.group == group) & (spans.end > first) & (spans.begin < last)
        begin = np.concatenate([[first], spans.end[own]])
        end = np.concatenate([spans.begin[own], [last]])
        some = end > begin
        parts.append(Union(np.full(int(some.sum()), group), begin[some], end[some]))
    return joined(*parts)


def without(spans: Union, others: Union) -> Union:
    """The time that these cover and the others do not."""
    if not len(spans.group):
        return spans
    groups = np.unique(spans.group)
    ends = float(spans.begin.min()), float(spans.end.max())
    return complement(joined(complement(spans, groups, *ends), others), groups, *ends)


def levels(begin: Floats, end: Floats, duration: float, most: int) -> Floats:
    """(most + 1,) time of [0, duration] in which 0, 1, 2 … of these spans are there at once."""
    times = np.clip(np.concatenate([begin, end, [0.0, duration]]), 0.0, duration)
    steps = np.concatenate([np.ones(len(begin)), -np.ones(len(end)), [0.0, 0.0]])
    order = np.lexsort((steps, times))
    count = np.cumsum(steps[order])[:-1].astype(np.int64)
    lengths = np.diff(times[order])
    return np.bincount(np.clip(count, 0, most), weights=lengths, minlength=most + 1).astype(np.float64)


def amounts(begin: Floats, end: Floats, amount: Floats, edges: Floats) -> Floats:
    """(edges - 1,) how much of the amounts, each spread evenly over its span, is between two edges each."""
    result = np.zeros(len(edges) - 1)
    long = end > begin
    if long.any():
        rate = amount[long] / (end[long] - begin[long])
        times = np.concatenate([begin[long], end[long]])
        order = np.argsort(times, kind="stable")
        rates = np.cumsum(np.concatenate([rate, -rate])[order])
        there = np.concatenate([[0.0], np.cumsum(rates[:-1] * np.diff(times[order]))])
        result += np.diff(np.interp(edges, times[order], there))
    if not long.all():
        at = np.clip(np.searchsorted(edges, begin[~long], side="right") - 1, 0, len(result) - 1)
        result += np.bincount(at, weights=amount[~long], minlength=len(result))
    return result
