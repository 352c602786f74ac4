"""The period of a sequence of calls: the shortest pattern that, repeated, gives most of the sequence.

Calls before it (a warm-up) and after it may be anything. Where a pattern of an inner loop is part of one of
an outer loop, only the outer one goes on through the whole sequence, and is the one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

COVERED = 0.5
"""Of the sequence, by the pattern in one run."""
REPETITIONS = 3
CANDIDATES = 256
_LIKE = 0.35
"""Share of equal calls at a distance, from which on it may be a period."""


class Period(NamedTuple):
    """`length` calls that repeat from call `first` to before call `end`."""

    length: int
    first: int
    end: int


def find_period(codes: Ints) -> Period | None:
    """The period of a sequence (N,) of codes; None where nothing repeats for most of it."""
    count = len(codes)
    if count < REPETITIONS:
        return None
    found = (repeats(codes, length) for length in _candidates(codes))
    return next((period for period in found if period is not None), None)


def repeats(codes: Ints, length: int) -> Period | None:
    """The part of (N,) codes that repeats after `length` of them; None where most codes do not."""
    if length >= len(codes):
        return None
    first, end = _longest_run(codes, length)
    if end - first < max(REPETITIONS * length, COVERED * len(codes)):
        return None
    return Period(length, first, end)


def _longest_run(codes: Ints, length: int) -> tuple[int, int]:
    """The longest part in which each call is the same as that one period later."""
    same = np.concatenate([[False], codes[:-length] == codes[length:], [False]])
    edges = np.flatnonzero(same[1:] != same[:-1])
    if not len(edges):
        return 0, 0
    begins, ends = edges[::2], edges[1::2]
    best = int(np.argmax(ends - begins))
    return int(begins[best]), int(ends[best]) + length


def _candidates(codes: Ints) -> list[int]:
    """Distances at which many calls are equal, the shortest first.

    Each code gets a random sign; the autocorrelation of the signs is near the share of equal calls.
    """
    count = len(codes)
    generator = np.random.default_rng(0)
    size = 1 << int(np.ceil(np.log2(2 * count)))
    likeness = np.zeros(count)
    for _ in range(4):
        signs = generator.choice((-1.0, 1.0), size=int(codes.max()) + 1)[codes]
        spectrum = np.fft.rfft(signs, size)
        likeness += np.fft.irfft(spectrum * np.conj(spectrum), size)[:count] / 4
    longest = max(1, count // REPETITIONS)
    lags = np.arange(1, longest + 1)
    share = likeness[lags] / (count - lags)
    likely = lags[share >= _LIKE]
    if len(likely) > CANDIDATES:
        best = np.argsort(share[likely - 1])[::-1][: CANDIDATES // 2]
        likely = np.union1d(likely[: CANDIDATES // 2], likely[best])
    return [int(lag) for lag in likely]
