"""What measuring says of an advice: both configurations' steps, and the gain beside the predicted one.

Steps come from bandwidths that the probe measured, by the same formulas as predicted ones, or were timed
themselves. Intervals are bootstraps over repetitions, in which both configurations stay paired, so that what
drifts cancels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.advise.advice import Advice, Configuration
from elbowroom.advise.gains import sure
from elbowroom.advise.job import Job
from elbowroom.advise.reasons import percent, seconds
from elbowroom.advise.setups import differing
from elbowroom.advise.steps import MEGA, Array, Rates, steps
from elbowroom.errors import UsageError
from elbowroom.model.document import LEVEL
from elbowroom.model.prediction import Interval
from elbowroom.stats.summary import RESAMPLES, interval, resampled_medians, weights

WIDE = 0.1
"""A measured step whose 90 % interval is wider than this share of it, either way, is too noisy."""

FEWEST = 4
"""Repetitions below which resampling them tells nothing."""


class Column(msgspec.Struct, frozen=True):
    """Values and the repetition of each."""

    values: Sequence[float]
    repetitions: Sequence[int]


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """The present and another configuration, predicted and measured: steps in s, gains as shares of the
    present step, 90 % intervals. `trusted` False, with `reasons`: too noisy; `source`: where the
    measurements are.
    """

    now: Configuration
    other: Configuration
    predicted: Interval
    measured: Interval
    now_measured: Interval
    other_measured: Interval
    repetitions: int
    sentence: str
    trusted: bool
    reasons: tuple[str, ...] = ()
    source: str = ""


def compared_with(advice: Advice) -> Configuration:
    """What is measured beside the present configuration: the advised one, or the best other prediction where
    none is advised. UsageError where there is none.
    """
    if advice.changes:
        return advice.advised
    others = [item for item in advice.runners_up if differing(item.setup, advice.now.setup)]
    if not others:
        raise UsageError("there is nothing to compare the present setup with", field="verify")
    return others[0]


def steps_of_rates(
    job: Job,
    configurations: Sequence[Configuration],
    measured: Sequence[Mapping[str, Column]],
    reference: Column | None,
    seed: int,
) -> Array:
    """Totals (s), (1 + RESAMPLES, configurations): row 0 of the medians, then of the resamples. `measured`:
    the four streams (MB/s) of each, those together absent where nothing overlaps; `reference`: computation
    alone where T_M was measured.
    """
    columns = [column for one in measured for column in one.values()]
    drawn = _drawn([*columns, *([reference] if reference is not None else [])], seed)
    streams = np.empty((4, 1 + RESAMPLES, len(configurations)))
    for index, one in enumerate(measured):
        for side in (0, 1):
            name = ("comp", "comm")[side]
            alone = _medians(one[f"{name}_alone"], drawn)
            streams[side, :, index] = alone
            together = one.get(f"{name}_together")
            streams[side + 2, :, index] = alone if together is None else _medians(together, drawn)
    if reference is None:
        assert job.step.moved is not None
        moved = np.array([job.step.moved])
    else:
        assert job.step.t_comp is not None
        moved = _medians(reference, drawn) * MEGA * job.step.t_comp.seconds
    given = Rates(streams=streams, moved=moved, discrepancy=np.zeros((4, len(configurations))))
    return steps(job, [item.setup for item in configurations], given).total


def steps_of_times(measured: Sequence[Column], seed: int) -> Array:
    """As `steps_of_rates`, of steps that were timed (s)."""
    drawn = _drawn(measured, seed)
    return np.stack([_medians(column, drawn) for column in measured], axis=1)


def _drawn(columns: Sequence[Column], seed: int) -> NDArray[np.int16]:
    """How often each repetition is in each resample, the same for all columns."""
    return weights(1 + max(max(column.repetitions) for column in columns), seed)


def _medians(column: Column, drawn: NDArray[np.int16]) -> Array:
    values, groups = np.asarray(column.values, dtype=float), np.asarray(column.repetitions, dtype=np.int64)
    return np.concatenate([[np.median(values)], resampled_medians(values, groups, drawn)])


def compare(
    advice: Advice,
    totals: Array,
    repetitions: int,
    *,
    reasons: Sequence[str] = (),
    source: str = "",
) -> Compared:
    """The verdict of two columns of totals (s): the present one's and the other's, row 0 the values."""
    other = compared_with(advice)
    now_measured, other_measured = (_interval(totals[:, index]) for index in (0, 1))
    measured = _interval(1.0 - totals[:, 1] / totals[:, 0])
    predicted = advice.gain if advice.changes else _predicted(advice.now, other)
    doubts = [*reasons, *_doubts(repetitions, now_measured, other_measured)]
    return Compared(
        now=advice.now,
        other=other,
        predicted=predicted,
        measured=measured,
        now_measured=now_measured,
        other_measured=other_measured,
        repetitions=repetitions,
        sentence=_sentence(bool(advice.changes), predicted, measured),
        trusted=not doubts,
        reasons=tuple(doubts),
        source=source,
    )


def _predicted(now: Configuration, other: Configuration) -> Interval:
    """The gain of two configurations whose draws are not at hand: as if their errors were independent, which
    is wider than it is.
    """
    logs = [np.log([item.total.low, item.total.value, item.total.high]) for item in (now, other)]
    middle = logs[1][1] - logs[0][1]
    half = float(np.hypot(logs[0][2] - logs[0][1], logs[1][2] - logs[1][1]))
    return Interval(value=-np.expm1(middle), low=-np.expm1(middle + half), high=-np.expm1(middle - half))


def _interval(column: Array) -> Interval:
    value = float(column[0])
    low, high = interval(column[1:], LEVEL)
    return Interval(value=value, low=min(low, value), high=max(high, value))


def _doubts(repetitions: int, *measured: Interval) -> list[str]:
    found = []
    if repetitions < FEWEST:
        found.append(f"{repetitions} repetitions say nothing of an interval; {FEWEST} do (--repeat).")
    for name, item in zip(("present", "other"), measured, strict=True):
        if max(item.high / item.value, item.value / item.low) > 1 + WIDE:
            found.append(
                f"The {name} step was measured as {seconds(item.low)} to {seconds(item.high)}: too uncertain."
            )
    return found


def _sentence(advised: bool, predicted: Interval, measured: Interval) -> str:
    figures = f"{_told(measured)}; predicted: it {_told(predicted)}"
    if not advised:
        if measured.low > 0:
            return f"There was something to gain after all: the best other setup {figures}."
        return f"Nothing to gain, as predicted: the best other setup {figures}."
    if not sure(measured):
        return f"Not confirmed, the interval holds 0: the advised setup {figures}."
    if measured.value < 0:
        return f"The advice was wrong: the advised setup {figures}."
    within = measured.low <= predicted.high and predicted.low <= measured.high
    how = "Confirmed" if within else "Confirmed, but not by as much as predicted"
    if not within and measured.low > predicted.high:
        how = "Confirmed, by more than predicted"
    return f"{how}: the advised setup {figures}."


def _told(found: Interval) -> str:
    """`saves 12.3 % (10.0 % to 14.1 %)`, or `costs` as much."""
    if found.value >= 0:
        return f"saves {span(found)}"
    return f"costs {span(Interval(value=-found.value, low=-found.high, high=-found.low))}"


def span(found: Interval) -> str:
    """`12.3 % (10.0 % to 14.1 %)`."""
    return f"{percent(found.value)} ({percent(found.low)} to {percent(found.high)})"
