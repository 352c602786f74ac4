"""Amounts of spans of time, spread over steps."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Pieces(NamedTuple):
    """Spans cut where steps begin: `span`: the index of each piece's span; `step`; `share`: of the span."""

    span: Ints
    step: Ints
    share: Floats

    def by_step(self, amount: Ints, steps: int) -> Floats:
        """(steps,) the amounts (N,) of the spans, each spread evenly over its span."""
        return np.bincount(self.step, weights=self.inside(amount), minlength=steps).astype(np.float64)

    def inside(self, amount: Ints) -> Floats:
        """The amount of each piece."""
        result: Floats = amount[self.span] * self.share
        return result


def count_until(edges: npt.NDArray[np.number], time: Ints, *, before: bool = False) -> Ints:
    """How many of the `edges`, in order, are not after each time (N,), in order as well, or are `before` it.
    As searchsorted, which would look each of many times up among few edges.
    """
    at = np.searchsorted(time, edges, side="right" if before else "left")
    return np.repeat(np.arange(len(edges) + 1), np.diff(at, prepend=0, append=len(time)))


def pieces_of(begin: Ints, end: Ints, edges: Ints) -> Pieces:
    """The spans [begin, end] (N,), in order of both, cut at `edges` (steps + 1,); what is outside of them is
    left out. A span of no length belongs to the step that begins with it.
    """
    steps = len(edges) - 1
    first = count_until(edges, begin) - 1
    last = np.maximum(count_until(edges, end, before=True) - 1, first)
    some = np.flatnonzero((last >= 0) & (first < steps))
    first, last = np.maximum(first[some], 0), np.minimum(last[some], steps - 1)
    count = last - first + 1
    if (count == 1).all():
        span, step = some, first
    else:
        span = np.repeat(some, count)
        step = np.repeat(first - np.cumsum(count) + count, count) + np.arange(int(count.sum()))
    since, until = begin[span], end[span]
    length = until - since
    part = np.minimum(until, edges[step + 1]) - np.maximum(since, edges[step])
    share = np.where(length > 0, part / np.maximum(length, 1), 1.0)
    return Pieces(span, step, share)
