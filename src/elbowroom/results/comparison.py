"""Runs against a first one: per point and value, how much changed, for the better or not, and whether surely.

Each value of a repetition counts once, in logarithms. A change is claimed where Welch's t-test says so after
the false discovery rate of all values tested is held (Benjamini and Hochberg 1995), its interval leaves out 0
and it is large enough to matter. The estimate is the median of all differences between a repetition of one
run and one of the other, its interval that of the rank-sum test.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np

from elbowroom.points.point import Point
from elbowroom.results.result import Grade, PointResult
from elbowroom.stats.signed_ranks import FEWEST, NORMAL_95, Floats, by_repetition, known
from elbowroom.stats.summary import Samples, log_ratios

AT_LEAST = 0.01
"""The smallest change that is claimed."""
DISCOVERIES = 0.05
"""The share of the claimed changes that may be chance."""

Key = tuple[str, str, str]
Values = Mapping[Key, Floats]
"""By point id, side and phase (alone, together, kept): the logarithm of each repetition's value."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One value of one point in runs a and b; `step` is a whole step, solution or product.

    `change` is b/a - 1 with its 95 % interval; `p`: how likely as large a difference is by chance, `adjusted`
    the same after the false discovery rate; `better`: which run has more of a rate or less of a duration,
    `same` where the change is not `significant`; `metric`: what was measured, with its unit; `run`: which of
    the compared runs b is, from 1.
    """

    point: str
    metric: str
    side: Literal["comp", "comm", "step"]
    phase: Literal["alone", "together", "kept"]
    a: float
    b: float
    change: float
    low: float
    high: float
    better: Literal["a", "b", "same"]
    significant: bool
    higher_is_better: bool = True
    p: float = 1.0
    adjusted: float = 1.0
    run: int = 1


@dataclass(frozen=True)
class ComparedRun:
    """A run as it is compared."""

    results: Sequence[PointResult]
    values: Values


class ComparedHead(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was compared."""

    run: str
    trusted: bool
    virtual: bool
    grade: Grade = "cannot say"


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What `compare --json` prints; `b` is the first run compared with `a`, `others` the rest."""

    schema: str = "elbowroom/compare"
    version: int = 1
    a: ComparedHead
    b: ComparedHead
    others: tuple[ComparedHead, ...]
    at_least: float
    sentence: str
    changes: tuple[Change, ...]
    significant: int


def values_of(points: Sequence[Point], samples: Samples, starts: bool = False) -> dict[Key, Floats]:
    """The logarithms of the medians of each repetition, and of what it kept; without void samples, closing
    baselines, and repetitions in which nothing was done. Of a run with several `starts` of the program one
    value for each start, since repetitions of one start are not independent.
    """
    index, at = (
        np.asarray(column, dtype=np.int64)
        for column in (samples.point, samples.start if starts else samples.repetition)
    )
    value = np.asarray(samples.value, dtype=np.float64)
    good = np.isfinite(value) & (value > 0) & (np.asarray(samples.status) != "void")
    good &= ~np.asarray(samples.closing, dtype=bool)
    together = np.asarray(samples.phase) == "AB"
    sides, units = np.asarray(samples.side), np.asarray(samples.unit)
    count = int(at.max()) + 1 if len(at) else 0
    values: dict[Key, Floats] = {}
    for number, point in enumerate(points):
        for name, side in (("comp", "comp"), ("comm", "comm"), ("total", "step")):
            mine = good & (index == number) & (sides == name)
            if not mine.any():
                continue
            by = [by_repetition(value[rows], at[rows], count) for rows in (mine & ~together, mine & together)]
            values[point.id, side, "alone"], values[point.id, side, "together"] = (
                np.log(median) for median in by
            )
            if side != "step":
                duration = bool(units[mine][0] == "us")
                values[point.id, side, "kept"] = log_ratios(*by, duration=duration)
    return values


def compare(a: ComparedRun, *others: ComparedRun, at_least: float = AT_LEAST) -> list[Change]:
    """Changes from run `a` to each other run, of all values that both have in at least FEWEST repetitions, in
    a's order; the false discovery rate is that of all of them.
    """
    from scipy.stats import false_discovery_control

    tested = [
        change for number, other in enumerate(others, 1) for result in a.results
        for change in _changes(result, a, other, number)
    ]  # fmt: skip
    if not tested:
        return []
    adjusted = false_discovery_control([change.p for change in tested])
    return [_with_verdict(change, float(p), at_least) for change, p in zip(tested, adjusted, strict=True)]


def agreement(changes: Sequence[Change]) -> float | None:
    """Share of the changes that are not significant: how well a repeated run agrees; None without changes."""
    return sum(not change.significant for change in changes) / len(changes) if changes else None


def worse(changes: Sequence[Change], than: float = 0.0) -> list[Change]:
    """The changes for the worse by more than a share."""
    return [change for change in changes if change.better == "a" and abs(change.change) > than]


def _with_verdict(change: Change, adjusted: float, at_least: float) -> Change:
    outside = change.low > 0 or change.high < 0
    significant = adjusted <= DISCOVERIES and outside and abs(change.change) >= at_least
    better: Literal["a", "b", "same"] = "same"
    if significant:
        better = "b" if (change.change > 0) == change.higher_is_better else "a"
    return msgspec.structs.replace(change, adjusted=adjusted, significant=significant, better=better)


def _changes(result: PointResult, a: ComparedRun, b: ComparedRun, number: int) -> list[Change]:
    changes = []
    for side in ("comp", "comm", "step"):
        for phase in ("alone", "together", "kept"):
            key = (result.id, side, phase)
            first, second = (known(run.values[key]) if key in run.values else np.empty(0) for run in (a, b))
            if min(first.size, second.size) < FEWEST:
                continue
            metric, higher = _metric(result, side, phase)
            value, low, high = _shift(first, second)
            changes.append(
                Change(
                    point=result.id,
                    metric=metric,
                    side=side,
                    phase=phase,
                    a=math.exp(float(np.median(first))),
                    b=math.exp(float(np.median(second))),
                    change=math.expm1(value),
                    low=math.expm1(low),
                    high=math.expm1(high),
                    better="same",
                    significant=False,
                    higher_is_better=higher,
                    p=_by_chance(first, second),
                    run=number,
                )
            )
    return changes


def _metric(result: PointResult, side: str, phase: str) -> tuple[str, bool]:
    """What is compared, with its unit, and whether more of it is better."""
    if phase == "kept":
        return "kept", True
    if side == "step":
        return f"{result.workload.facts.duration} (us)", False
    of = result.comp if side == "comp" else result.comm
    unit = next((summary.unit for summary in (of.alone, of.together) if summary is not None), "")
    name = result.metric if side == "comm" else ("memory bandwidth" if unit == "MB/s" else "rate")
    return f"{name} ({unit})", unit != "us"


def _shift(first: Floats, second: Floats) -> tuple[float, float, float]:
    """The median of all differences and the 95 % interval of the rank-sum test."""
    differences = np.sort((second[:, None] - first[None, :]).ravel())
    m, n = first.size, second.size
    spread = math.sqrt(m * n * (m + n + 1) / 12)
    rank = max(0, int(m * n / 2 - NORMAL_95 * spread - 0.5))
    return float(np.median(differences)), float(differences[rank]), float(differences[-1 - rank])


def _by_chance(first: Floats, second: Floats) -> float:
    """Welch's two-sided t-test; of values without any scatter, whether they are the same."""
    from scipy.special import stdtr

    parts = first.var(ddof=1) / first.size, second.var(ddof=1) / second.size
    difference = abs(float(second.mean() - first.mean()))
    if sum(parts) <= (1e-12 * (1 + difference)) ** 2:
        return 1.0 if difference < 1e-9 else 0.0
    degrees = sum(parts) ** 2 / (parts[0] ** 2 / (first.size - 1) + parts[1] ** 2 / (second.size - 1))
    return float(2 * stdtr(degrees, -difference / math.sqrt(sum(parts))))
