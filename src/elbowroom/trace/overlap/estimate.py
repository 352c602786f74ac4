"""By how much longer computations take beside communication: pure functions on a table of instances.

Model: the logarithm of an instance's duration is the level of its place, the level and trend of its step, and
`-log(1 - share (1 - 1/s))` for the share of it that communication covers and the slowdown s; the rest is
heavy-tailed. s is the mean over the shared time, a ratio of sums: instances weigh as long as they last.
docs/reference/trace-estimate.md has the assumptions, and how often intervals hold.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from elbowroom.trace.overlap.events import NONE, Floats, Ints
from elbowroom.trace.overlap.instances import Instances, Windows, dense, windows_of
from elbowroom.trace.overlap.levels import FLOOR, MAD, cut_far, dot, levels_of, weights, with_class_levels
from elbowroom.trace.overlap.pooling import Pool, RowEffect, pool_rows
from elbowroom.trace.overlap.spans import Spans

SHIFTS = 200
"""Random circular shifts of the communication of each step."""
OUTSIDE = 3
"""Of 201 arrangements, the observed one among them, so many lie beyond each end of an interval: 97 %, since
the slowdown fits the noise of the observed arrangement better than that of the others.
"""
NORMAL = 1.96
"""Standard errors on either side of a 95 % interval."""
LARGEST, SMALLEST = math.log(20.0), -math.log(3.0)
"""Logarithms of slowdowns that are considered."""
ENDS = np.sinh(np.linspace(-6.0, 6.0, 801)) / math.sinh(6.0) * (LARGEST - SMALLEST)
"""Distances of the ends of an interval from its value: dense around 0."""
ROUNDS, FEWEST_ROUNDS = 8, 3
"""Steps to the slowdown, at most, and at least: what is far is settled by then, too."""
POOLED = 15
"""Times that rows are pooled at most, since the slowdown of one changes the rest of others."""
LEAST_MOVE = 1e-3
"""Of a logarithm of a slowdown: rows that move less have settled."""
FAR_OF_COVERED = 6.0
"""Robust standard deviations of covered instances from which the rest of any is cut: slowdowns of theirs may
differ, and the mean needs the large ones.
"""
NONLINEAR = 10
"""Of 201 arrangements: with fewer beyond the observed one, what is lost does not follow the covered share."""
LEAST_CONTRAST = 0.1
"""By how much the covered shares that compare differ, a part of the covered share, at least: what is nearly
always covered does not say how long it takes alone.
"""
A_THIRD = 1 / 3
"""Of the estimate: a placebo with a larger effect confounds it."""
PARTS = 4
"""Groups by the time in the step, by how long communication lasts, by how long instances usually take, and by
the part of that which it covers, each with as much shared time: slowdowns may differ between them.
"""
KEPT = 100_000_000
"""Bytes of instruments that are kept."""
LEAST_PLACEBO = 0.01
"""Of the logarithm of a duration: a smaller placebo confounds nothing."""

Instrument = Literal["schedule", "any"]
Confounder = Literal["", "near", "faster", "placebo"]


@dataclass(frozen=True, kw_only=True)
class SlowdownEffect:
    """What the comparison gives. `rows`: the slowdown of each class beside each kind; `of_all`: its logarithm
    for all others. `low`, `value` and `high` are to be added to the logarithms of all rows: the interval of
    all together (None: it has no end). `groups`: the slowdown of all classes beside each group of kinds
    (`other`).
    `confounder`: what else explains the estimate: computation `near` communication, but not beside it, is
    longer as well; it is `faster` beside communication; or the `placebo` shows an effect. `worst`: the
    classes that contribute most to it.
    """

    rows: tuple[RowEffect, ...]
    groups: tuple[RowEffect, ...]
    of_all: float
    value: float
    low: float | None
    high: float | None
    instrument: Instrument
    confounder: Confounder = ""
    worst: tuple[int, ...] = ()

    @property
    def bounded(self) -> bool:
        """Whether the interval has both ends."""
        return self.low is not None and self.high is not None


def estimate(
    table: Instances,
    active: Mapping[int, Spans],
    *,
    tick: float = 1.0,
    seed: int = 1,
    groups: Ints | None = None,
) -> SlowdownEffect | None:
    """The slowdown of a table beside the other side (`active`, by rank); None where nothing compares: no
    covered instance has its place in another step or on another rank, or all are nearly always covered.
    `tick`: resolution of durations, ns. `groups`: the group of each kind of the other side (None: each is
    one).
    """
    table = _comparable(table)
    if not len(table) or not table.shared.any():
        return None
    windows = windows_of(table, active)
    fit = _WeightedFit(table, windows, tick)
    if fit.contrast() < LEAST_CONTRAST:
        return None
    shifts = np.random.default_rng(seed).random((SHIFTS + 1, int(windows.step.max()) + 1))
    shifts[0] = 0.0
    circle = _Circle(fit, windows, shifts)
    if not _linear(fit, circle):
        fit.count_any()
    arranged = _arrange(fit, circle, np.ones(len(table)))
    inflation = max(1.0, float(arranged.student(np.zeros(1))[1:].std()))
    of_all = float(fit.log[0])
    of_groups = _grouped(fit, table.other if groups is None else groups[table.other], inflation)
    pool = _pool(fit, inflation)
    if pool is None:
        return None
    multiplier = pool.multiplier[fit.kernel] if pool.spread else np.ones(len(table))
    if pool.spread:
        arranged = _arrange(fit, circle, multiplier)
    value, low, high = _refined(fit, circle, multiplier, arranged)
    low, high = _wider(value, low, high, max(pool.unseen, _unseen(fit, windows, inflation)))
    confounder, worst = _confounder(fit, windows, shifts, value, low, high)
    # No row is known better than all together.
    least = 0.0 if low is None or high is None else (high - low) / 2 / NORMAL
    error = np.maximum(pool.error, least)
    of_groups = tuple(dataclasses.replace(one, error=max(one.error, least)) for one in of_groups)
    columns = (fit.kernels[pool.kernel], fit.others(), fit.log, error, pool.contrasts)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    names = ("kernel", "other", "log", "error", "contrasts")
    return SlowdownEffect(
        rows=tuple(RowEffect(**dict(zip(names, row, strict=True))) for row in rows),
        groups=of_groups,
        of_all=of_all,
        value=value,
        low=low,
        high=high,
        instrument=fit.instrument,
        confounder=confounder,
        worst=worst,
    )


def _comparable(table: Instances) -> Instances:
    """The instances whose place has several: in other steps, or on other ranks."""
    table = table.only((table.place != NONE) & (table.own > 0))
    if not len(table):
        return table
    several = len(np.unique(table.step)) > 1
    place = dense(table.place, table.rank) if several else dense(table.place)
    return table.only(np.bincount(place)[place] > 1)


class _WeightedFit:
    """One slowdown for all rows, and what is left of the logarithms of durations: the `rest`, and what of it
    is `far`. A `row` is a class beside a kind; instances beside nothing are in none. `weight`: of the levels;
    `usual`: of the slowdown.
    """

    rest: Floats
    far: Floats
    values: Floats
    instrument: Instrument = "schedule"

    def __init__(self, table: Instances, windows: Windows, tick: float) -> None:
        self.table, self.tick = table, tick
        self.share = np.minimum(table.shared / table.own, 1.0)
        self.logs = np.log(table.own)
        self.levels = levels_of(table, windows)
        self.usual = _usual(self.levels.place, self.logs)
        self.kernels, self.kernel = np.unique(table.kernel, return_inverse=True)
        covered = table.other != NONE
        self.row = np.full(len(table), NONE)
        self.row[covered] = dense(self.kernel[covered], table.other[covered])
        self.log = np.zeros(int(self.row.max()) + 1)
        self.state = next(windows.shares(np.zeros((1, int(windows.step.max()) + 1)), self.usual))
        self._one(weights(self.logs, self.kernel, self.levels, tick))
        # Again without the effect: what is covered must not weigh less.
        self._one(weights(self.alone(), self.kernel, self.levels, tick))
        self.levels = with_class_levels(self.levels, self.rest, self.weight)
        self._one(self.weight)

    def count_any(self) -> None:
        """Compares what communication covers at all with what it does not, whatever the share."""
        self.instrument, self.state = "any", (self.state > 0).astype(float)
        self._one(self.weight)

    def contrast(self) -> float:
        """By how much the instrument differs where levels are alike, a part of itself."""
        apart = np.abs(self.levels.residual(self.state, self.usual))
        return dot(self.usual, apart) / max(dot(self.usual, self.state), 1e-12)

    def others(self) -> Ints:
        """The kind of each row."""
        kinds = np.zeros(len(self.log), dtype=np.int64)
        kinds[self.row[self.row != NONE]] = self.table.other[self.row != NONE]
        return kinds

    def change(self) -> Floats:
        """The derivative of the logarithm of a duration by that of the slowdown."""
        log = self._of_instances()
        change: Floats = self.share * np.exp(-log) / (1 - self.share * -np.expm1(-log))
        return change

    def alone(self) -> Floats:
        """The logarithms of durations without the effect."""
        alone: Floats = self.logs + np.log1p(self.share * np.expm1(-self._of_instances()))
        return alone

    def longer(self) -> tuple[Floats, Floats]:
        """By how much instances take longer than the levels and slowdowns say, a part of that, and its
        derivative by the logarithm of a smaller slowdown.
        """
        whole = self.rest + self.far
        far = FAR_OF_COVERED * MAD * max(float(np.median(np.abs(whole[self.row != NONE]))), FLOOR)
        whole = np.clip(whole, -far, far)
        return np.expm1(whole), np.exp(whole) * self.change()

    def settle(self) -> None:
        """The rest by the present slowdowns, without what is `far` (Huber's estimator by modified residuals).

        Levels are linear: only what changed since the last time is solved for.
        """
        values = self.alone() - self.far
        self.rest = self.rest + self.levels.residual(values - self.values, self.weight)
        self.values = values
        whole = self.rest + self.far
        self.far = whole - cut_far(whole, self.weight)

    def moved(self, by: float) -> _WeightedFit:
        """The fit where the logarithms of all slowdowns are larger by so much, and weights follow."""
        other = copy.copy(self)
        other.log = np.clip(self.log + by, SMALLEST, LARGEST)
        other._begin(weights(other.alone(), self.kernel, self.levels, self.tick))
        for _ in range(FEWEST_ROUNDS):
            other.settle()
        return other

    def _of_instances(self) -> Floats:
        return np.where(self.row == NONE, 0.0, self.log[np.maximum(self.row, 0)])

    def _begin(self, weight: Floats) -> None:
        self.weight = weight
        self.rest, self.values, self.far = (np.zeros(len(self.logs)) for _ in range(3))

    def _one(self, weight: Floats) -> None:
        self._begin(weight)
        state = self.levels.residual(self.state, self.usual) * self.usual
        self.settle()
        for number in range(ROUNDS):
            longer, dose = self.longer()
            information = dot(state, dose)
            if information <= 0:
                break
            step = dot(state, longer) / information
            self.log = np.clip(self.log + step, SMALLEST, LARGEST)
            self.settle()
            if abs(step) < 1e-4 and number >= FEWEST_ROUNDS:
                break


def _grouped(fit: _WeightedFit, group: Ints, inflation: float) -> tuple[RowEffect, ...]:
    """The slowdowns of all classes beside each group, while all rows of the fit have one slowdown."""
    covered = fit.row != NONE
    numbers, row = np.unique(group[covered], return_inverse=True)
    rows = np.full(len(group), NONE)
    rows[covered] = row
    log = np.full(len(numbers), fit.log[0])
    pool = _rows_pooled(fit, rows, log, inflation)
    if pool is None:
        return ()
    columns = (numbers, pool.log, pool.error, pool.contrasts)
    return tuple(
        RowEffect(kernel=NONE, other=other, log=one, error=error, contrasts=contrasts)
        for other, one, error, contrasts in zip(*(column.tolist() for column in columns), strict=True)
    )


def _pool(fit: _WeightedFit, inflation: float) -> Pool | None:
    """Pools the rows, and gives each its own slowdown where they differ."""
    pool = None
    for _ in range(POOLED):
        pool = _rows_pooled(fit, fit.row, fit.log, inflation)
        if pool is None or not pool.spread:
            break
        moved = float(np.abs(pool.log - fit.log).max())
        fit.log = np.clip(pool.log, SMALLEST, LARGEST)
        fit.settle()
        if moved < LEAST_MOVE:
            break
    return pool


def _unseen(fit: _WeightedFit, windows: Windows, inflation: float) -> float:
    """The variance of the mean slowdown, since what compares is not spread over the shared time alike: the
    largest of all ways to part it.
    """
    covered = np.flatnonzero(fit.row != NONE)
    shared = fit.table.shared[covered]
    largest = 0.0
    for column in (fit.levels.time, windows.episode(fit.table.own), fit.usual, fit.state):
        values = column[covered]
        order = np.argsort(values, kind="stable")
        until = np.searchsorted(np.cumsum(shared[order]), shared.sum() * np.arange(1, PARTS) / PARTS)
        part = np.full(len(fit.row), NONE)
        part[covered] = np.unique(np.searchsorted(values[order][until], values), return_inverse=True)[1]
        pool = _rows_pooled(fit, part, np.zeros(int(part.max()) + 1), inflation)
        largest = max(largest, 0.0 if pool is None else pool.unweighted)
    return largest


def _rows_pooled(fit: _WeightedFit, row: Ints, log: Floats, inflation: float) -> Pool | None:
    longer, dose = fit.longer()
    longer = fit.levels.residual(longer, fit.usual)
    return pool_rows(fit.levels.place, fit.kernel, row, fit.usual, 1 / fit.weight, fit.state, dose, longer,
                     fit.table.shared, log, inflation)  # fmt: skip


def _usual(place: Ints, logs: Floats) -> Floats:
    """The usual duration of each instance's place, ns."""
    middle = np.bincount(place, logs) / np.bincount(place)
    usual: Floats = np.floor(np.maximum(np.exp(middle), 1))[place]
    return usual


@dataclass(frozen=True)
class _Arrangements:
    """Of each arrangement of the communication (the observed one first): sums of the instrument times the
    rest (`longer`) and times the dose, and the variance of longer - c dose: `v0 - 2 c v1 + c^2 v2`.
    """

    longer: Floats
    dose: Floats
    v0: Floats
    v1: Floats
    v2: Floats

    def student(self, c: Floats) -> Floats:
        """Studentised sums, of shape (arrangements, values of c), if all rows were c larger."""
        size = self.v0[:, None] - 2 * c * self.v1[:, None] + c * c * self.v2[:, None]
        sums: Floats = (self.longer[:, None] - c * self.dose[:, None]) / np.sqrt(np.maximum(size, 1e-30))
        return sums

    def interval(self) -> tuple[float, float | None, float | None]:
        """The value, and the ends of what the shifts do not exclude."""
        if self.dose[0] <= 0:
            return 0.0, None, None
        value = float(np.clip(self.longer[0] / self.dose[0], SMALLEST, LARGEST))
        c = value + ENDS
        statistics = self.student(c)
        above, below = (statistics[1:] >= statistics[0]).sum(0), (statistics[1:] <= statistics[0]).sum(0)
        held = (above >= OUTSIDE) & (below >= OUTSIDE)
        middle = len(c) // 2
        if not held[middle]:
            return value, value, value
        left, right = np.flatnonzero(~held[:middle]), np.flatnonzero(~held[middle:])
        low = float(c[left[-1]]) if len(left) else None
        high = float(c[middle + right[0]]) if len(right) else None
        return value, low, high


class _Circle:
    """Both instruments at each of the `shifts`, without the levels; kept where memory allows."""

    def __init__(self, fit: _WeightedFit, windows: Windows, shifts: Floats) -> None:
        self._usual, self._windows, self._shifts = fit.usual, windows, shifts
        self._without = fit.levels.remover(fit.usual)
        self._kept: list[tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]] = []

    def both(self) -> Iterator[tuple[Floats, Floats]]:
        """The share of the usual durations that communication covers, and whether it covers any."""
        if len(self._kept) == len(self._shifts):
            yield from ((share.astype(float), some.astype(float)) for share, some in self._kept)
            return
        keep = len(self._usual) * len(self._shifts) * 8 <= KEPT
        for one in self._windows.shares(self._shifts, self._usual):
            share, some = self._without(one), self._without((one > 0).astype(float))
            if keep:
                self._kept.append((share.astype(np.float32), some.astype(np.float32)))
            yield share, some

    def of(self, instrument: Instrument) -> Iterator[Floats]:
        """One of them."""
        return (share if instrument == "schedule" else some for share, some in self.both())


def _arrange(fit: _WeightedFit, circle: _Circle, multiplier: Floats) -> _Arrangements:
    """The sums of all arrangements; `multiplier`: of each instance's weight."""
    return _sums(fit, circle.of(fit.instrument), multiplier)


def _linear(fit: _WeightedFit, circle: _Circle) -> bool:
    """Whether what is lost follows the covered share: then the estimate is the same if instances compare that
    are covered at all. The difference of both instruments has no sum with the dose.
    """
    dose = fit.levels.residual(fit.longer()[1], fit.usual) * fit.usual
    share = dot(dose, fit.state)
    if share <= 0:
        return True
    part = dot(dose, (fit.state > 0).astype(float)) / share
    arranged = _sums(fit, (some - part * share for share, some in circle.both()), np.ones(len(fit.state)))
    sizes = arranged.student(np.zeros(1))[:, 0]
    return bool(min((sizes[1:] >= sizes[0]).sum(), (sizes[1:] <= sizes[0]).sum()) >= NONLINEAR)


def _sums(fit: _WeightedFit, states: Iterable[Floats], multiplier: Floats) -> _Arrangements:
    """The sums of the instrument's `states`, one of each arrangement."""
    rest, dose = (fit.levels.residual(one, fit.usual) for one in fit.longer())
    weight = fit.usual * multiplier
    sums = np.stack([weight * rest, weight * dose])
    squares = np.stack([sums[0] ** 2, sums[0] * sums[1], sums[1] ** 2])
    of_shifts = [[*np.einsum("ij,j", sums, one), *np.einsum("ij,j", squares, one * one)] for one in states]
    return _Arrangements(*np.array(of_shifts).T)


def _refined(
    fit: _WeightedFit, circle: _Circle, multiplier: Floats, arranged: _Arrangements
) -> tuple[float, float | None, float | None]:
    """The interval with weights at each end that follow from the slowdown at this end.

    Weights of the estimate itself fit the noise of the observed arrangement better than that of others: with
    two steps, intervals by them hold in 83 % of plantings.
    """
    value, low, high = arranged.interval()
    if low is None or high is None or low == high:
        return value, low, high
    of_low, of_high = (
        _arrange(fit.moved(end), circle, multiplier).interval()[at] for at, end in ((1, low), (2, high))
    )
    low = None if of_low is None else min(low + of_low, value)
    high = None if of_high is None else max(high + of_high, value)
    return value, low, high


def _wider(
    value: float, low: float | None, high: float | None, unseen: float
) -> tuple[float | None, float | None]:
    """The ends with the variance of rows that nothing compares added."""
    if low is not None:
        low = value - math.hypot(value - low, NORMAL * math.sqrt(unseen))
    if high is not None:
        high = value + math.hypot(high - value, NORMAL * math.sqrt(unseen))
    return low, high


def _confounder(
    fit: _WeightedFit, windows: Windows, shifts: Floats, value: float, low: float | None, high: float | None
) -> tuple[Confounder, tuple[int, ...]]:
    """What else explains the estimate, and the classes that contribute most."""
    time = np.bincount(np.maximum(fit.row, 0), np.where(fit.row == NONE, 0, fit.table.shared), len(fit.log))
    total = float((time * (fit.log + value)).sum() / time.sum())
    longer = fit.levels.residual(fit.longer()[0], fit.usual)
    without = fit.levels.remover(fit.usual)
    if low is not None and low == high:
        return "placebo", _largest(fit, fit.usual * without(fit.state) * longer)
    if high is not None and total + high - value < 0:
        gain = -np.where(fit.row == NONE, 0.0, fit.table.shared * fit.log[np.maximum(fit.row, 0)])
        return "faster", _largest(fit, gain)
    around = windows.around()
    near = next(around.shares(shifts[:1], fit.usual))
    near = near if fit.instrument == "schedule" else (near > 0).astype(float)
    state = fit.usual * without(near)
    placebo = dot(state, longer) / max(dot(state, near), 1e-12)
    if abs(placebo) > max(A_THIRD * abs(total), LEAST_PLACEBO):
        arranged = _arrange(fit, _Circle(fit, around, shifts), np.ones(len(fit.weight)))
        sizes = arranged.student(np.zeros(1))[:, 0]
        if not (sizes[1:] * np.sign(sizes[0]) >= abs(sizes[0])).any():
            return "near", _largest(fit, math.copysign(1.0, placebo) * state * longer)
    return "", ()


def _largest(fit: _WeightedFit, part: Floats) -> tuple[int, ...]:
    """The classes with the three largest sums of `part`."""
    sums = np.bincount(fit.kernel, part)
    return tuple(int(fit.kernels[one]) for one in np.argsort(-sums)[:3] if sums[one] > 0)
