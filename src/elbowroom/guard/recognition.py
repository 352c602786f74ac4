"""Where the steps of a program begin that does not mark them: its calls, counted by site and rank."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from elbowroom.profile.steps import between_computations, find_period

FEWEST_CALLS = 12
"""Calls of a rank before the first search for a pattern."""


class StepAnchor(NamedTuple):
    """A step begins at the end of each `every`-th call of a site."""

    site: int
    every: int


def find_anchor(calls: npt.NDArray[np.void]) -> StepAnchor | None:
    """The call before the longest computation of what the calls (step_file.CALL) repeat; None where they do
    not repeat.
    """
    if len(calls) < FEWEST_CALLS:
        return None
    sites = calls["site"].astype(np.int64)
    pattern = find_period(sites)
    if pattern is None:
        return None
    begin, end = (calls[name].astype(np.int64) for name in ("begin", "end"))
    gap = np.concatenate([[0], begin[1:] - end[:-1]])
    period = between_computations(gap, begin, pattern)
    whole = (period.end - period.first) // period.length
    shown: npt.NDArray[Any] = slice_of(gap, period.first, whole, period.length)
    longest = period.first + int(np.argmax(np.median(shown, axis=0)))
    # The gap of the first call of all is not known.
    site = int(sites[longest - 1] if longest else sites[period.length - 1])
    every = int(np.count_nonzero(sites[period.first : period.first + period.length] == site))
    return StepAnchor(site, max(every, 1))


def slice_of(values: npt.NDArray[Any], first: int, count: int, length: int) -> npt.NDArray[Any]:
    """`count` periods of `length` values from `first` on, shape (count, length)."""
    return values[first : first + count * length].reshape(count, length)
