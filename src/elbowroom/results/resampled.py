"""What each side of each point kept, in resamples that all points of a run share.

The points of a run are measured in turns, repetition by repetition. Resamples of repetitions that are the
same for all points keep what drifts with time in both terms of a contrast between two points, where it
cancels (docs/design/method.md, rules 12 and 20).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elbowroom.plan.order import start_of
from elbowroom.points.point import Point
from elbowroom.stats.bootstrap import RESAMPLES, expansion, medians, weights
from elbowroom.stats.interval import Kept
from elbowroom.stats.signed_ranks import NORMAL_95, Floats
from elbowroom.stats.summary import Samples

LEAST = 2
"""Repetitions: resamples of one are all alike and give no interval."""


@dataclass(frozen=True)
class LogKept:
    """ln of what one side kept, and of each resample: shape (RESAMPLES,)."""

    value: float
    draws: Floats


def log_kept(
    points: Sequence[Point], samples: Samples, repetitions: int, seed: int = 0, starts: int = 1
) -> dict[tuple[str, str], LogKept]:
    """By point id and side (comp, comm), from raw samples; without those whose alone or together is not
    positive, or was seen in one repetition or none. Void samples and closing baselines are left out, as in
    `results`.

    `repetitions`: of the run's plan; resamples are drawn over them, once for all points. Percentiles of few
    repetitions are too narrow, so the draws are spread by `expansion`. With several `starts` of the program
    resamples are drawn over these, each with all of its repetitions.
    """
    index = np.asarray(samples.point, dtype=np.int64)
    rows = np.argsort(index, kind="stable")
    ends = np.searchsorted(index[rows], np.arange(len(points) + 1))
    value = np.asarray(samples.value, dtype=np.float64)[rows]
    repetition = np.asarray(samples.repetition, dtype=np.int64)[rows]
    good = np.isfinite(value) & (np.asarray(samples.status, dtype="U10")[rows] != "void")
    good &= ~np.asarray(samples.closing, dtype=bool)[rows] & (repetition < repetitions)
    together = np.asarray(samples.phase, dtype="U2")[rows] == "AB"
    sides = np.asarray(samples.side, dtype="U9")[rows]
    units = np.asarray(samples.unit, dtype="U16")[rows]
    blocks = np.arange(repetitions)
    if starts > 1:
        blocks = np.array([start_of(number, repetitions, starts) for number in range(repetitions)])
    drawn = weights(int(blocks[-1]) + 1, seed)[blocks]
    kept = {}
    for number, point in enumerate(points):
        here = slice(int(ends[number]), int(ends[number + 1]))
        for side in ("comp", "comm"):
            mask = good[here] & (sides[here] == side)
            both, apart = mask & together[here], mask & ~together[here]
            at = repetition[here]
            if min(len(np.unique(blocks[at[rows_of]])) for rows_of in (both, apart)) < LEAST:
                continue
            alone, joined = (medians(value[here][chosen], at[chosen], drawn) for chosen in (apart, both))
            if min(float(alone.min()), float(joined.min())) <= 0:
                continue
            logs = np.log(joined / alone)
            logs = -logs if units[here][mask][0] == "us" else logs
            draws = logs[0] + (logs[1:] - logs[0]) * expansion(len(np.unique(blocks[at[mask]])))
            kept[point.id, side] = LogKept(value=float(logs[0]), draws=draws)
    return kept


def log_of(kept: Kept, seed: Sequence[int]) -> LogKept:
    """As many draws that agree with the interval of a value whose samples are not at hand: normal in the
    logarithm, each half as wide as the interval's, and independent of every other value's.
    """
    value = float(np.log(kept.value))
    low, high = kept.ends(0.0)
    if low <= 0:
        raise ValueError(f"the interval {kept.low} to {kept.high} has no logarithm")
    below, above = (value - float(np.log(low))), (float(np.log(high)) - value)
    normal = np.random.default_rng(seed).standard_normal(RESAMPLES)
    return LogKept(value=value, draws=value + normal * np.where(normal < 0, below, above) / NORMAL_95)
