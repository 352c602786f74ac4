"""Regimes of message sizes: where a library switches protocols, its messages' latency and speed change.

In a regime a message of s bytes takes t0 + s/B alone. Which sizes belong together is found by the optimal
segmentation of the measured times (Bellman and Roth 1969): all splits of the sizes into runs, each with its
own line, least squares of relative errors, and every regime more must pay for itself (Schwarz' criterion).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.models.flow.law import Array

MOST = 6
"""Regimes: eager, rendezvous, pipelined, and what caches make of the largest."""

FEWEST, SPAN = 3, 2.0
"""Sizes of a regime, and its largest over its smallest: two lie on a line, and near ones tell none."""

LEAST_ERROR = 0.003
"""Relative error of a time that is taken for measured exactly: smaller ones make no regimes."""


class Regime(msgspec.Struct, frozen=True, kw_only=True):
    """From `first` bytes on: `latency` (us) and `bandwidth` (MB/s) of a message that is moving."""

    first: int
    latency: float
    bandwidth: float


def regimes(sizes: Sequence[int], times: Sequence[float]) -> tuple[Regime, ...]:
    """The regimes of messages alone, smallest first, for sizes (bytes, any order, repeated or not) and half
    round trips (us). The first one begins at 0 B. At least one size.
    """
    order = np.argsort(np.asarray(sizes), kind="stable")
    size, time = np.asarray(sizes, dtype=float)[order], np.asarray(times, dtype=float)[order]
    edges = np.concatenate([[0], np.flatnonzero(np.diff(size) > 0) + 1, [len(size)]])
    count = len(edges) - 1
    loss = np.full((count, count + 1), np.inf)
    for begin in range(count):
        for end in range(begin + 1, count + 1):
            here = slice(edges[begin], edges[end])
            wide = end - begin >= FEWEST and size[edges[end] - 1] >= SPAN * size[edges[begin]]
            if wide or end - begin == count:
                loss[begin, end] = _line(size[here], time[here])[2]
    cuts = _cheapest(loss, len(size))
    parts = []
    for begin, end in pairwise(cuts):
        here = slice(edges[begin], edges[end])
        latency, per_byte, _ = _line(size[here], time[here])
        # The switch is somewhere between two measured sizes: halfway, by ratio.
        first = round(float(np.sqrt(size[edges[begin] - 1] * size[edges[begin]]))) if begin else 0
        parts.append(Regime(first=first, latency=latency, bandwidth=1 / per_byte if per_byte > 0 else np.inf))
    return tuple(parts)


def _line(size: Array, time: Array) -> tuple[float, float, float]:
    """t0 >= 0, 1/B >= 0 and the sum of squares of (t0 + s/B) / t - 1."""
    one, slope = 1 / time, size / time
    a, b, c = one @ one, one @ slope, slope @ slope
    p, q = one.sum(), slope.sum()
    determinant = a * c - b * b
    candidates = [(p / a, 0.0), (0.0, q / c)]
    if determinant > 1e-12 * a * c:
        both = ((p * c - q * b) / determinant, (a * q - b * p) / determinant)
        if min(both) >= 0:
            candidates.append(both)
    losses = [float(np.sum((t0 * one + unit * slope - 1) ** 2)) for t0, unit in candidates]
    best = int(np.argmin(losses))
    return float(candidates[best][0]), float(candidates[best][1]), losses[best]


def _cheapest(loss: Array, values: int) -> list[int]:
    """The cuts (first index of each run, then the end) by Schwarz' criterion over 1 to MOST regimes."""
    count = len(loss)
    reached, came = loss[0].copy(), [np.zeros(count + 1, dtype=int)]
    best, chosen = np.inf, [0, count]
    for number in range(1, MOST + 1):
        if number > 1:
            options = reached[:count, None] + loss
            came.append(np.argmin(options, axis=0))
            reached = np.min(options, axis=0)
        if not np.isfinite(reached[count]):
            break
        price = values * np.log(reached[count] / values + LEAST_ERROR**2) + 3 * number * np.log(values)
        if price < best:
            best, chosen = float(price), _back(came, count)
    return chosen


def _back(came: Sequence[NDArray[np.intp]], count: int) -> list[int]:
    cuts = [count]
    for step in reversed(came):
        cuts.append(int(step[cuts[-1]]))
    return cuts[::-1]
