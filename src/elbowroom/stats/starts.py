"""Variation between starts of a program, beside that of repetitions within a start.

Pages and the order in which things start up move results from one start of a program to the next. The
repetitions of one start share that, so they are not independent. With several starts the start is therefore
the unit: an interval comes from one value for each start. The parts of the variation come from the analysis
of variance of one random effect, and the interval of their ratio from the F distribution (Searle, Casella and
McCulloch, Variance Components, 1992, sections 3.6 and 3.8).
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from elbowroom.stats.interval import StartVariation
from elbowroom.stats.signed_ranks import CONFIDENCE, FEWEST, Floats, Ints, pseudo_median, rank_interval


def by_start(values: Floats, starts: Ints, middle: Callable[[Floats], float] = pseudo_median) -> Floats:
    """The middle of each start's values, without NaN; shape (starts with a value,)."""
    known = ~np.isnan(values)
    return np.array([middle(values[known & (starts == start)]) for start in np.unique(starts[known])])


def start_interval(middles: Floats, confidence: float = CONFIDENCE) -> tuple[float, float] | None:
    """The interval of the middle of all starts, from one value for each; None for a single start.

    Ranks from FEWEST starts on, as for repetitions; Student's distribution for fewer, which ranks cannot
    hold.
    """
    count = len(middles)
    if count >= FEWEST:
        return rank_interval(middles, confidence)
    if count < 2:
        return None
    from scipy.special import stdtrit

    half = float(stdtrit(count - 1, (1 + confidence) / 2)) * float(middles.std(ddof=1)) / math.sqrt(count)
    centre = float(middles.mean())
    return centre - half, centre + half


def variation(logs: Floats, starts: Ints) -> StartVariation | None:
    """The parts of the variation of one logarithm for each repetition (NaN: none); `starts`: which start each
    is from. None unless there are two starts, and one of them has two repetitions.
    """
    known = ~np.isnan(logs)
    values, numbers = logs[known], np.unique(starts[known], return_inverse=True)[1]
    sizes = np.bincount(numbers) if values.size else np.empty(0)
    groups, total = len(sizes), values.size
    if groups < 2 or total <= groups:
        return None
    means = np.bincount(numbers, weights=values) / sizes
    within = float(((values - means[numbers]) ** 2).sum()) / (total - groups)
    among = float((sizes * (means - values.mean()) ** 2).sum()) / (groups - 1)
    usual = (total - float((sizes**2).sum()) / total) / (groups - 1)
    between = max(0.0, (among - within) / usual)
    low, high = _share_ends(among, within, usual, (groups - 1, total - groups))
    return StartVariation(
        starts=groups,
        share=between / (between + within) if between + within > 0 else 0.0,
        low=low,
        high=high,
        between=math.sqrt(between),
        within=math.sqrt(within),
    )


def _share_ends(
    among: float, within: float, usual: float, degrees: tuple[int, int]
) -> tuple[float | None, float | None]:
    """The 95 % interval of the share; exact for equally many repetitions a start and normal noise. None where
    repetitions of a start are all alike.
    """
    if within <= 0:
        return None, None
    from scipy.stats import f

    tail = (1 - CONFIDENCE) / 2
    ratios = (among / within / float(f.ppf(share, *degrees)) for share in (1 - tail, tail))
    low, high = (max(0.0, (ratio - 1) / (usual + ratio - 1)) for ratio in ratios)
    return low, high
