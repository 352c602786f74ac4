"""An advice verified by measurement: both steps, and the measured gain beside the predicted one.

Steps are computed from bandwidths that the probe measured, by the formulas of the prediction, or are timed
directly. Intervals are bootstraps over repetitions, which keep both setups paired, so that drift cancels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom import display
from elbowroom.advise.advice import Advice, Configuration
from elbowroom.advise.job import Job
from elbowroom.advise.setups import differing
from elbowroom.advise.steps import MEGA, SetupRates, steps
from elbowroom.errors import UsageError
from elbowroom.models.document import LEVEL
from elbowroom.models.flow.law import Array
from elbowroom.quantities import percent, short_time, with_span
from elbowroom.stats.bootstrap import RESAMPLES, estimate, medians, weights
from elbowroom.stats.interval import Interval
from elbowroom.stats.signed_ranks import FEWEST

WIDE = 0.1
"""A measured step is too noisy if its 90 % interval reaches further than this share of it, up or down."""

NEGLIGIBLE = 0.01
"""A gain below this share of a step is negligible: "nothing to gain" needs an interval that excludes more."""


class RepeatedValues(msgspec.Struct, frozen=True):
    """Values and the repetition of each."""

    values: Sequence[float]
    repetitions: Sequence[int]


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """The present and another configuration, predicted and measured: steps in s, gains as shares of the
    present step, with 90 % intervals. Not `trusted` if too noisy, with `reasons`. `source` is the folder of
    the measurements.
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

    def __repr__(self) -> str:
        return f"Compared(trusted={self.trusted}, source={self.source!r})"

    __str__, _repr_html_ = display.text, display.html


def compared_with(advice: Advice) -> Configuration:
    """The configuration to measure beside the present one: the advised one, or the best other prediction if
    nothing is advised. UsageError if there is none.
    """
    if advice.changes:
        return advice.advised
    others = [item for item in advice.runners_up if differing(item.setup, advice.now.setup)]
    if not others:
        raise UsageError("no other setup can be compared with the present one", field="verify")
    return others[0]


def steps_of_rates(
    job: Job,
    configurations: Sequence[Configuration],
    measured: Sequence[Mapping[str, RepeatedValues]],
    reference: RepeatedValues | None,
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
    given = SetupRates(streams=streams, moved=moved, discrepancy=np.zeros((4, len(configurations))))
    return steps(job, [item.setup for item in configurations], given).total


def steps_of_times(measured: Sequence[RepeatedValues], seed: int) -> Array:
    """As `steps_of_rates`, of steps that were timed (s)."""
    drawn = _drawn(measured, seed)
    return np.stack([_medians(column, drawn) for column in measured], axis=1)


def _drawn(columns: Sequence[RepeatedValues], seed: int) -> NDArray[np.int16]:
    """How often each repetition is in each resample, the same for all columns."""
    return weights(1 + max(max(column.repetitions) for column in columns), seed)


def _medians(column: RepeatedValues, drawn: NDArray[np.int16]) -> Array:
    values, groups = np.asarray(column.values, dtype=float), np.asarray(column.repetitions, dtype=np.int64)
    return medians(values, groups, drawn)


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
    gains = 1.0 - totals[:, 1] / totals[:, 0]
    now_measured, other_measured, measured = (
        estimate(float(column[0]), column[1:], LEVEL) for column in (totals[:, 0], totals[:, 1], gains)
    )
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
        sentence=_sentence(bool(advice.changes), predicted, measured, is_certain=not doubts),
        trusted=not doubts,
        reasons=tuple(doubts),
        source=source,
    )


def _predicted(now: Configuration, other: Configuration) -> Interval:
    """The gain of one configuration over another without their draws: the errors are taken as independent,
    which makes the interval too wide.
    """
    logs = [np.log([item.total.low, item.total.value, item.total.high]) for item in (now, other)]
    middle = logs[1][1] - logs[0][1]
    half = float(np.hypot(logs[0][2] - logs[0][1], logs[1][2] - logs[1][1]))
    return Interval(value=-np.expm1(middle), low=-np.expm1(middle + half), high=-np.expm1(middle - half))


def _doubts(repetitions: int, *measured: Interval) -> list[str]:
    doubts = []
    if repetitions < FEWEST:
        doubts.append(
            f"{repetitions} repetitions are too few for an interval; use at least {FEWEST} (--repeat)."
        )
    for name, item in zip(("present", "other"), measured, strict=True):
        if max(item.high / item.value, item.value / item.low) > 1 + WIDE:
            doubts.append(
                f"The {name} step takes {short_time(item.low)} to {short_time(item.high)}: the interval is "
                "wide."
            )
    return doubts


def _sentence(advised: bool, predicted: Interval, measured: Interval, *, is_certain: bool) -> str:
    figures = f"{_gain_text(measured)}; predicted: {_gain_text(predicted)}"
    which = "the advised setup" if advised else "the best other setup"
    if not is_certain:
        return f"Undecided, because the measurements are too uncertain: {which} {figures}."
    if not advised:
        if measured.low > 0:
            return f"The advice missed a gain: {which} {figures}."
        if measured.high < NEGLIGIBLE:
            return f"Nothing to gain, as predicted: {which} {figures}."
        return f"Undecided, because the measured interval includes a gain: {which} {figures}."
    if not measured.excludes_zero:
        return f"Undecided, because the measured interval includes 0: {which} {figures}."
    if measured.value < 0:
        return f"The advice was wrong: {which} {figures}."
    within = measured.low <= predicted.high and predicted.low <= measured.high
    how = "Confirmed" if within else "Confirmed, but the gain is smaller than predicted"
    if not within and measured.low > predicted.high:
        how = "Confirmed, and the gain is larger than predicted"
    return f"{how}: {which} {figures}."


def _gain_text(share: Interval) -> str:
    """`saves 12.3 % (10.0 % to 14.1 %)`, or `costs` as much."""
    if share.value >= 0:
        return f"saves {span(share)}"
    return f"costs {span(Interval(value=-share.value, low=-share.high, high=-share.low))}"


def span(share: Interval) -> str:
    """`12.3 % (10.0 % to 14.1 %)`."""
    return with_span(percent(share.value), percent(share.low), percent(share.high))
