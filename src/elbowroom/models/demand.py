"""What a program loses beside memory traffic, and what traffic it is itself, without counters.

Bubble-Up (Mars, Tang, Hundt, Skadron and Soffa, MICRO 2011): a load of known size runs beside the program.
What the program loses is its *sensitivity*, a curve over the load; what the load loses is the program's
*pressure*, given as the load that would cost the load the same. Here the load has two axes: `memory`,
traffic to and from memory in shares of what the cores can do, and `cache`, a footprint in shares of the
last-level cache that is swept as fast as possible.

The rule (docs/reference/demand.md): beside B, A takes as much longer as beside a load of B's pressure; of
both axes, the larger. A stream through memory also takes cache, and both axes see that, so they do not add
up.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.documents import DocumentFormat
from elbowroom.stats.interval import Interval

Floats = npt.NDArray[np.float64]
Axis = Literal["memory", "cache"]
AXES: tuple[Axis, ...] = ("memory", "cache")
SHARES = (0.25, 0.5, 1.0)
"""Where each curve is measured; at 0 nothing is lost."""
REPORTERS: Mapping[Axis, float] = {"memory": 1.0, "cache": 0.5}
"""The share at which the load's own loss says what pressure a program has."""

RESOLVED = 1.02
"""A load that loses less beside the largest load cannot tell pressures apart."""
MOST_NOISE = 0.05
"""Runs alone that differ more (median absolute deviation by median) say nothing."""
MOST_WAITING = 0.05
"""A load that had to wait for its cores for a larger share of the time was no known load."""
RESAMPLES = 400
_TAILS = (0.05, 0.95)


class LoadLevel(NamedTuple):
    """A load: `share` on its axis."""

    axis: Axis
    share: float


LEVELS = tuple(LoadLevel(axis, share) for axis in AXES for share in SHARES)


class LoadedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the program: `seconds` beside a load (axis None: alone), and B/s that the load moved
    meanwhile and alone, just before. `waited`: the share of the time in which another thread had the
    load's cores.
    """

    repetition: int
    seconds: float
    axis: Axis | None = None
    share: float = 0.0
    rate: float = 0.0
    rate_alone: float = 0.0
    waited: float = 0.0

    @property
    def level(self) -> LoadLevel | None:
        """The load."""
        return None if self.axis is None else LoadLevel(self.axis, self.share)


class LoadCurve(msgspec.Struct, frozen=True, kw_only=True):
    """How many times as long something takes beside a load: at each share of an axis, with 90 % intervals. It
    does not fall: what falls in a measurement is averaged.
    """

    axis: Axis
    shares: tuple[float, ...]
    slower: tuple[Interval, ...]

    def at(self, share: Interval) -> Interval:
        """Beside a load of this share; the interval has the ends of both."""
        places = (0.0, *self.shares)

        def read(end: str, place: float) -> float:
            return float(np.interp(place, places, (1.0, *(getattr(one, end) for one in self.slower))))

        return Interval(
            value=read("value", share.value), low=read("low", share.low), high=read("high", share.high)
        )

    def share_of(self, slower: float) -> float | None:
        """The share at which this much is lost, 1 beyond the curve; None where the curve is too flat to
        tell.
        """
        values = [1.0, *(one.value for one in self.slower)]
        if values[-1] < RESOLVED:
            return None
        # Where the curve is level, its first share: np.interp needs values that rise.
        rising = np.maximum.accumulate(np.array(values) + np.arange(len(values)) * 1e-12)
        return float(np.interp(slower, rising, (0.0, *self.shares)))


class Pressure(msgspec.Struct, frozen=True, kw_only=True):
    """A program as a load: `share` of an axis, or from 0 to 1 with the reason in `unresolved`; `kept`: the
    load's rate beside the program by its rate alone.
    """

    axis: Axis
    share: Interval
    kept: Interval
    unresolved: str = ""


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """Sensitivity and pressure of a program, `demand.json` in its profile.

    `ranks`: on the host, on its `cores`; `load_cores`: of the load; `full_rate`: B/s to and from memory of
    the largest load; `seconds`: of a run alone, `noise`: how runs alone differ; `notes`: why it cannot be
    trusted, if `trusted` is false. `loads`: what the load loses beside itself, by axis.
    """

    schema: str = "elbowroom/demand"
    version: int = 1
    command: tuple[str, ...]
    ranks: int
    host: str
    cores: tuple[int, ...]
    load_cores: tuple[int, ...]
    cache: int
    full_rate: float
    seconds: float
    noise: float
    repetitions: int
    sensitivity: tuple[LoadCurve, ...]
    pressure: tuple[Pressure, ...]
    loads: tuple[LoadCurve, ...]
    trusted: bool
    notes: tuple[str, ...] = ()

    @property
    def traffic(self) -> float | None:
        """B/s to and from memory that are as much as the program; None where its pressure is not resolved."""
        memory = next(one for one in self.pressure if one.axis == "memory")
        return None if memory.unresolved else memory.share.value * self.full_rate


DEMAND = DocumentFormat(
    kind=Demand,
    schema="elbowroom/demand",
    version=1,
    name="demand",
    hint="measure it: elbowroom colocate demand PROFILE -- CMD",
    own=True,
)
FILE = "demand.json"
"""Where a profile has it."""


def demand_of_profile(folder: Path | str) -> Demand | None:
    """What was measured beside a known load; None where nothing was. UsageError for a damaged file."""
    path = Path(folder, FILE)
    return DEMAND.read(path) if path.exists() else None


def predicted_slowdown(program: Demand, companion: Demand) -> Interval:
    """How many times as long `program` takes beside `companion`, by the rule above; 90 %."""
    pressures = {one.axis: one.share for one in companion.pressure}
    beside = [curve.at(pressures[curve.axis]) for curve in program.sensitivity]
    return Interval(
        value=max(one.value for one in beside),
        low=max(one.low for one in beside),
        high=max(one.high for one in beside),
    )


class LoadFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of the machine and the load before the program runs; fields as in Demand."""

    command: tuple[str, ...]
    ranks: int
    host: str
    cores: tuple[int, ...]
    load_cores: tuple[int, ...]
    cache: int
    full_rate: float


class LoadBesideLoad(msgspec.Struct, frozen=True, kw_only=True):
    """B/s of an axis's reporter alone, and beside a load of that share on the program's cores."""

    axis: Axis
    share: float
    rate: float
    rate_alone: float


def demand_of(
    facts: LoadFacts, runs: Sequence[LoadedRun], loads: Sequence[LoadBesideLoad], seed: int = 0
) -> Demand:
    """Sensitivity and pressure by the runs of a program, in the order in which they were measured."""
    alone = np.array([run.seconds for run in runs if run.axis is None])
    middle = float(np.median(alone))
    noise = float(np.median(np.abs(alone - middle)) / middle)
    ratios = _ratios(runs)
    own = {
        axis: {
            share: np.array([
                one.rate_alone / one.rate for one in loads if (one.axis, one.share) == (axis, share)
            ])
            for share in SHARES
        }
        for axis in AXES
    }  # fmt: skip
    generator = np.random.default_rng(seed)
    curves = tuple(
        _curve(axis, {share: ratios[LoadLevel(axis, share)] for share in SHARES}, generator) for axis in AXES
    )
    beside = tuple(_curve(axis, own[axis], generator) for axis in AXES)
    notes = _doubts(noise, runs)
    return Demand(
        command=facts.command,
        ranks=facts.ranks,
        host=facts.host,
        cores=facts.cores,
        load_cores=facts.load_cores,
        cache=facts.cache,
        full_rate=facts.full_rate,
        seconds=middle,
        noise=noise,
        repetitions=1 + max(run.repetition for run in runs),
        sensitivity=curves,
        pressure=tuple(_pressure(curve, runs, generator) for curve in beside),
        loads=beside,
        trusted=not notes,
        notes=tuple(notes),
    )


def _ratios(runs: Sequence[LoadedRun]) -> dict[LoadLevel, Floats]:
    """Seconds beside each load by those alone: the mean of the runs alone before and after it."""
    places = [place for place, run in enumerate(runs) if run.axis is None]
    seconds = [runs[place].seconds for place in places]
    ratios: dict[LoadLevel, list[float]] = {}
    for place, run in enumerate(runs):
        if (level := run.level) is not None:
            alone = float(np.interp(place, places, seconds))
            ratios.setdefault(level, []).append(run.seconds / alone)
    return {level: np.array(values) for level, values in ratios.items()}


def _curve(axis: Axis, ratios: Mapping[float, Floats], generator: np.random.Generator) -> LoadCurve:
    """Medians of the ratios at each share, made not to fall, with intervals over repetitions."""
    weights = [float(len(values)) for values in ratios.values()]

    def rising(medians: Sequence[float]) -> Floats:
        return np.maximum(not_falling(medians, weights), 1.0)

    value = rising([float(np.median(values)) for values in ratios.values()])
    drawn = [
        np.median(generator.choice(values, (RESAMPLES, len(values))), axis=1) for values in ratios.values()
    ]
    resampled = np.array([rising(row) for row in np.stack(drawn, axis=1).tolist()])
    low, high = np.quantile(resampled, _TAILS, axis=0)
    return LoadCurve(
        axis=axis,
        shares=tuple(ratios),
        slower=tuple(
            Interval(value=one, low=min(below, one), high=max(above, one))
            for one, below, above in zip(value.tolist(), low.tolist(), high.tolist(), strict=True)
        ),
    )


def not_falling(values: Sequence[float], weights: Sequence[float]) -> Floats:
    """The sequence nearest in weighted squares that does not fall (pool adjacent violators)."""
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(values, weights, strict=True):
        blocks.append((value, weight, 1))
        while len(blocks) > 1 and blocks[-2][0] > blocks[-1][0]:
            (left, wide, count), (right, more, others) = blocks[-2:]
            mean = (left * wide + right * more) / (wide + more)
            blocks[-2:] = [(mean, wide + more, count + others)]
    return np.repeat([block[0] for block in blocks], [block[2] for block in blocks])


def _pressure(curve: LoadCurve, runs: Sequence[LoadedRun], generator: np.random.Generator) -> Pressure:
    """The share of a load that costs the reporter of this curve as much as the program does."""
    reporter = LoadLevel(curve.axis, REPORTERS[curve.axis])
    kept = np.array([run.rate / run.rate_alone for run in runs if run.level == reporter])
    medians = np.median(generator.choice(kept, (RESAMPLES, len(kept))), axis=1)
    value, (low, high) = float(np.median(kept)), np.quantile(medians, _TAILS)
    measured = Interval(value=value, low=min(float(low), value), high=max(float(high), value))
    share = curve.share_of(1 / value)
    if share is None:
        return Pressure(
            axis=curve.axis,
            share=Interval(value=0.5, low=0.0, high=1.0),
            kept=measured,
            unresolved="a load beside the largest load keeps its rate here: these cores share too little",
        )
    ends = [curve.share_of(1 / end) or 0.0 for end in (measured.high, measured.low)]
    return Pressure(
        axis=curve.axis,
        share=Interval(value=share, low=min(ends[0], share), high=max(ends[1], share)),
        kept=measured,
    )


def _doubts(noise: float, runs: Sequence[LoadedRun]) -> list[str]:
    """Why nothing can be said."""
    doubts = []
    if noise > MOST_NOISE:
        doubts.append(f"runs alone differ by {noise:.1%}: the machine is busy, or the program's time varies")
    waited = float(np.median([run.waited for run in runs if run.axis is not None] or [0.0]))
    if waited > MOST_WAITING:
        doubts.append(f"other programs used the cores of the load for {waited:.0%} of the time")
    return doubts
