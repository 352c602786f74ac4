"""The gain of changing from one setup to another, with its interval.

The model's draws are asked for both setups at once, so what they share cancels. What the model cannot follow
(its discrepancy) is an error of each bandwidth of its own: of the computation alone one for each set of
computing cores, of messages alone one for each kind of message, together one for each load. Setups that share
such a bandwidth share its error. With r the logarithm of the ratio of both totals, the interval is that of
r +- 1.645 s, s^2 = variance of r over the draws + sum of (difference of slopes x discrepancy)^2.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.advise.collectives import spread
from elbowroom.advise.job import Job, Setup
from elbowroom.advise.setups import load_of, reference_of
from elbowroom.advise.steps import SetupRates, SetupTimes, rates, slopes, steps
from elbowroom.models.curves import STREAMS
from elbowroom.models.document import Document
from elbowroom.models.prediction import NORMAL_90
from elbowroom.stats.interval import Interval, around

Array = NDArray[np.float64]


class Predicted(msgspec.Struct, frozen=True, kw_only=True):
    """One setup's step at the best fit (s), the logarithm of its total for each draw, row 0 the best fit, and
    what each error of the model's (relative standard deviation 1) would change of that logarithm, times it.
    """

    setup: Setup
    streams: tuple[float, float, float, float]
    separator: float
    t_comp: float
    t_comm: float
    l_comp: float
    l_comm: float
    t_acc: float
    collective: float
    w: float
    logs: Array
    errors: dict[Hashable, float]

    @property
    def total(self) -> float:
        """The step's time, s."""
        return math.exp(float(self.logs[0]))

    @property
    def interval(self) -> Interval:
        """The step's time with its 90 % interval, s."""
        spread = math.hypot(_deviation(self.logs), math.sqrt(sum(error**2 for error in self.errors.values())))
        factor = math.exp(NORMAL_90 * spread)
        return around(self.total, factor)


def gain(present: Predicted, other: Predicted) -> Interval:
    """The share of the present total that the other saves (below 0: costs), with its 90 % interval."""
    logs = other.logs - present.logs
    keys = present.errors.keys() | other.errors.keys()
    unlike = sum((other.errors.get(key, 0.0) - present.errors.get(key, 0.0)) ** 2 for key in keys)
    half = NORMAL_90 * math.hypot(_deviation(logs), math.sqrt(unlike))
    middle = float(logs[0])
    return Interval(
        value=-math.expm1(middle), low=-math.expm1(middle + half), high=-math.expm1(middle - half)
    )


def _deviation(logs: Array) -> float:
    return float(np.std(logs[1:])) if len(logs) > 1 else 0.0


class Predictor:
    """Predicted steps by setup, with a cache."""

    def __init__(self, document: Document, job: Job, name: str | None) -> None:
        self._document, self._job, self._name = document, job, name
        self._known: dict[Setup, Predicted] = {}

    def __call__(self, setup: Setup) -> Predicted:
        """One setup's step."""
        self.ask([setup])
        return self._known[setup]

    def ask(self, setups: Iterable[Setup]) -> list[Predicted]:
        """The steps of these setups, those not yet known all at once. UsageError for what the model cannot
        answer.
        """
        wanted = list(setups)
        missing = [setup for setup in dict.fromkeys(wanted) if setup not in self._known]
        if missing:
            given = rates(self._document, self._job, missing, name=self._name)
            self._known |= zip(missing, predicted(self._job, missing, given), strict=True)
        return [self._known[setup] for setup in wanted]


def predicted(job: Job, setups: Sequence[Setup], given: SetupRates) -> list[Predicted]:
    """The steps of these setups at these rates."""
    times = steps(job, setups, given)
    slope = slopes(job, setups, given, times.w)
    ways = [setup.way for setup in setups]
    deviation = spread(job.collective, ways, times.t_comp[0]) / times.total[0]
    return [
        Predicted(
            setup=setup,
            streams=tuple(given.streams[:, 0, index].tolist()),
            errors=_errors(job, setup, slope[:, index], given.discrepancy[:, index])
            | {("collective", *setup.way): float(deviation[index])},
            w=float(times.w[index]),
            logs=np.log(times.total[:, index]),
            **_step(times, index),
        )
        for index, setup in enumerate(setups)
    ]


def _step(times: SetupTimes, index: int) -> dict[str, float]:
    names = ("separator", "t_comp", "t_comm", "l_comp", "l_comm", "t_acc", "collective")
    return {name: float(getattr(times, name)[0, index]) for name in names}


def _errors(job: Job, setup: Setup, slope: Array, discrepancy: Array) -> dict[Hashable, float]:
    load = load_of(setup, job.step)
    of: tuple[Hashable, ...] = (load.computing, load.messages, load, load)
    errors: dict[Hashable, float] = {
        (stream, key): float(slope[k] * discrepancy[k])
        for k, (stream, key) in enumerate(zip(STREAMS, of, strict=True))
    }
    reference = reference_of(job.step)
    if reference is not None:
        # The bytes of a measured T_M are only as right as the bandwidth predicted where it was measured.
        key = (STREAMS[0], reference.computing)
        errors[key] = errors.get(key, 0.0) + float(slope[4] * discrepancy[0])
    return errors
