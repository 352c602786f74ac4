"""How much two jobs slow each other down on the same nodes, from profiles of each alone; no pair is run.

Both are replayed on one NIC per node, at random offsets: each time a stretch of each job, alone and beside
the other one. Memory and last-level cache are a factor on the computation that the caller's model gives, with
its interval: what that changes is in the intervals of the slowdowns.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.profile.analysis import Analysis
from elbowroom.profile.curve import NicCurve
from elbowroom.profile.replay import Replay, stretch
from elbowroom.profile.replay_job import ReplayJob, replay_job

Floats = npt.NDArray[np.float64]

OFFSETS = 32
MOST_OFFSETS = 256
"""Of jobs with few calls: more offsets cost little, and collisions of rare bursts need many."""
CALLS = 3000
"""Calls of both jobs together in a stretch, about: they decide how long a forecast takes."""
RESAMPLES = 2000
TAIL = 0.05
"""On each side of a 90 % interval."""


class Factor(msgspec.Struct, frozen=True, kw_only=True):
    """How much longer a job computes while the other one computes too, with a 90 % interval: 1.2 is 20 %
    longer.
    """

    value: float = 1.0
    low: float = 1.0
    high: float = 1.0


class Contended(msgspec.Struct, frozen=True, kw_only=True):
    """What memory and last-level cache cost each of two jobs; `notes`: where that comes from."""

    a: Factor = Factor()
    b: Factor = Factor()
    notes: tuple[str, ...] = ()


Contention = Callable[[Analysis, Analysis], Contended]
NO_MODEL = "memory and cache are left out: no model of the machine was given"


class Forecast(msgspec.Struct, frozen=True, kw_only=True):
    """Together by alone of a duration, with a 90 % interval of the mean over the offsets. `samples`: of each
    offset.
    """

    value: float
    low: float
    high: float
    samples: tuple[float, ...]


class PairForecast(msgspec.Struct, frozen=True, kw_only=True):
    """Slowdowns of two jobs that share their nodes. With `half` both have half of their ranks on each of
    twice the nodes, and alone means all ranks on the nodes of the profile; `spread_a`, `spread_b`: what half
    of the cores gain or lose without a companion. `notes`: what was left out, and why.
    """

    slowdown_a: Forecast
    slowdown_b: Forecast
    half: bool
    spread_a: Forecast | None
    spread_b: Forecast | None
    notes: tuple[str, ...]


def forecast(
    a: Analysis,
    b: Analysis,
    *,
    contention: Contention | None = None,
    half: bool = False,
    offsets: int | None = None,
    seed: int = 0,
) -> PairForecast:
    """Slowdowns of `a` and `b` beside each other, on the NIC of `a`'s curve.

    `offsets`: how many (None: 32, and up to 256 where the jobs have few calls); the same seed gives the same
    ones.
    """
    curve = a.network.curve
    alone = [replay_job(one) for one in (a, b)]
    shared = [replay_job(one, half=True) for one in (a, b)] if half else alone
    factors, notes = _factors(a, b, alone, contention)
    settings = _settings(factors)
    generator = np.random.default_rng(seed)
    length, enough = _effort(alone)
    times = np.array(
        [_offset(alone, shared, curve, settings, length, generator) for _ in range(offsets or enough)]
    )
    # Columns: alone a and b, spread a and b, together a and b: with the factors, their lows, their highs.
    together = [
        _with_factors(_ratio(times[:, 4 + job], times[:, job], generator), times[:, job::2]) for job in (0, 1)
    ]
    spread = [_ratio(times[:, 2 + job], times[:, job], generator) for job in (0, 1)]
    return PairForecast(
        slowdown_a=together[0],
        slowdown_b=together[1],
        half=half,
        spread_a=spread[0] if half else None,
        spread_b=spread[1] if half else None,
        notes=(*notes, *_differences(a, b)),
    )


def _offset(
    alone: Sequence[ReplayJob],
    shared: Sequence[ReplayJob],
    curve: NicCurve,
    settings: Sequence[tuple[float, float]],
    length: float,
    generator: np.random.Generator,
) -> list[float]:
    """Durations of one stretch of each job: alone, spread, together with each setting of the factors."""
    starts = [float(generator.uniform(0.0, max(job.duration - length, 0.0))) for job in alone]
    before = [stretch(job, start, length) for job, start in zip(alone, starts, strict=True)]
    after = before if shared is alone else [
        stretch(job, start, length) for job, start in zip(shared, starts, strict=True)
    ]  # fmt: skip
    totals = curve.totals(sum(job.size for job in alone))
    own = [Replay([part], totals, curve.latency).run()[0] for part in before]
    spread = own if after is before else [Replay([part], totals, curve.latency).run()[0] for part in after]
    together = [Replay(after, totals, curve.latency, factors).run() for factors in settings]
    return [*own, *spread, *(time for times in together for time in times)]


def _effort(jobs: Sequence[ReplayJob]) -> tuple[float, int]:
    """Seconds of a stretch, as long as possible within CALLS and short enough that stretches differ, and how
    many offsets.
    """
    rate = sum(len(job.begin) / job.duration for job in jobs)
    length = min(*(job.duration / 2 for job in jobs), CALLS / rate if rate > 0 else np.inf)
    calls = max(1.0, rate * length)
    return length, int(np.clip(OFFSETS * CALLS / calls, OFFSETS, MOST_OFFSETS))


def _factors(
    a: Analysis, b: Analysis, jobs: Sequence[ReplayJob], contention: Contention | None
) -> tuple[tuple[Factor, Factor], tuple[str, ...]]:
    """Factors on the computation: they apply for the share of time in which the other job computes."""
    if contention is None:
        return (Factor(), Factor()), (NO_MODEL,)
    result = contention(a, b)
    return (_part(result.a, jobs[1].computing), _part(result.b, jobs[0].computing)), result.notes


def _part(factor: Factor, share: float) -> Factor:
    value, low, high = (1 + (one - 1) * share for one in (factor.value, factor.low, factor.high))
    return Factor(value=value, low=low, high=high)


def _settings(factors: tuple[Factor, Factor]) -> list[tuple[float, float]]:
    """The factors of both jobs, and where they are not exact all lows and all highs."""
    values = [(factors[0].value, factors[1].value)]
    if any(factor.low < factor.high for factor in factors):
        values += [(factors[0].low, factors[1].low), (factors[0].high, factors[1].high)]
    return values


def _with_factors(forecast: Forecast, times: Floats) -> Forecast:
    """The interval over the offsets, wider by what the factors' intervals change; `times`: (offsets, 3 or 5)
    of this job: alone, spread, together with the factors, their lows, their highs.
    """
    if times.shape[1] < 5:
        return forecast
    ends = times[:, 3:5].sum(axis=0) / times[:, 0].sum()
    below, above = max(forecast.value - float(ends[0]), 0.0), max(float(ends[1]) - forecast.value, 0.0)
    return msgspec.structs.replace(
        forecast,
        low=forecast.value - float(np.hypot(forecast.value - forecast.low, below)),
        high=forecast.value + float(np.hypot(forecast.high - forecast.value, above)),
    )


def _ratio(together: Floats, alone: Floats, generator: np.random.Generator) -> Forecast:
    drawn = generator.integers(0, len(alone), size=(RESAMPLES, len(alone)))
    ratios = together[drawn].sum(axis=1) / alone[drawn].sum(axis=1)
    low, high = np.quantile(ratios, (TAIL, 1 - TAIL))
    value = float(together.sum() / alone.sum())
    return Forecast(
        value=value,
        low=min(float(low), value),
        high=max(float(high), value),
        samples=tuple((together / alone).tolist()),
    )


def _differences(a: Analysis, b: Analysis) -> list[str]:
    # What is missing in a profile is missing in its forecast.
    notes = [f"{one.profile.folder}: {note}" for one in (a, b) for note in one.profile.notes]
    if a.profile.nodes != b.profile.nodes:
        notes.append(
            f"the jobs have {a.profile.nodes} and {b.profile.nodes} nodes: they share the first "
            f"{min(a.profile.nodes, b.profile.nodes)}"
        )
    machines = [one.profile.manifest.machine if one.profile.manifest else {} for one in (a, b)]
    if machines[0] and machines[1] and machines[0] != machines[1]:
        notes.append("the profiles are of different machines: what one computes may take longer on the other")
    return notes
