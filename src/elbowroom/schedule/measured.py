"""The measured matrix of co-location: what sharing and half of the cores cost each application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import msgspec
import numpy as np
from scipy.stats import rankdata

from elbowroom.errors import MachineError
from elbowroom.schedule.applications import Mode
from elbowroom.stats.bootstrap import RESAMPLES

FEWEST = 5
"""Repetitions below which there is no interval."""

PERCENT = 100.0

NOISY = 5.0
"""Percent of the median by which runs of an application alone may differ (median absolute deviation)."""


LEAST_BESIDE = 0.5
"""Of the time of runs in a pair that must be beside a run of the other one."""


class SharedTime(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the journal. `first`, `second`: seconds of each complete run of both applications; an
    application alone has no second ones. `first_beside`, `second_beside`: the share of each run in which one
    of the other application was under way, which is not there while it starts again (none: all of it).
    """

    repetition: int
    mode: Mode
    application: str
    companion: str | None = None
    first: Annotated[tuple[float, ...], msgspec.Meta(min_length=1)]
    second: tuple[float, ...] = ()
    first_beside: tuple[float, ...] = ()
    second_beside: tuple[float, ...] = ()
    wall_s: float


class Percent(msgspec.Struct, frozen=True, kw_only=True):
    """A runtime in percent of the exclusive one, with a 95 % interval; None below five repetitions."""

    value: float
    low: float | None
    high: float | None


class Cell(msgspec.Struct, frozen=True, kw_only=True):
    """`application` beside `companion`."""

    application: str
    companion: str
    percent: Percent


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """How well predicted slowdowns agree with measured ones: mean and worst absolute error in percent of the
    measured value, and Spearman's rank correlation (null where all are alike). `cells`: how many.
    """

    cells: int
    mean_error: float
    worst_error: float
    rank_correlation: float | None


class PredictedCell(msgspec.Struct, frozen=True, kw_only=True):
    """`application` beside `companion`: percent of the exclusive runtime by the forecast, with its interval,
    which knows the profiles of both alone and no pair.
    """

    application: str
    companion: str
    percent: Percent


class ForecastComparison(msgspec.Struct, frozen=True, kw_only=True):
    """The forecast of the applications that name a profile, and how well it agrees with the measurement."""

    cells: tuple[PredictedCell, ...]
    agreement: Agreement
    notes: tuple[str, ...] = ()


class MeasuredMatrix(msgspec.Struct, frozen=True, kw_only=True):
    """What `colocate measure --json` prints: seconds of each application alone on all cores, what half of the
    cores on twice the nodes take in percent of that, and each pair on the same cores and nodes together.
    `noise`: why the measurement cannot be trusted, empty where it can; `notes`: what else to know;
    `prediction`: null where fewer than two cells have profiles.
    """

    schema: str = "elbowroom/colocation"
    version: int = 1
    applications: tuple[str, ...]
    repetitions: int
    exclusive_s: tuple[float, ...]
    half: tuple[Percent, ...]
    cells: tuple[Cell, ...]
    noise: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    prediction: ForecastComparison | None = None

    def percent(self, application: str, companion: str) -> float:
        """Of one cell."""
        return next(
            cell.percent.value
            for cell in self.cells
            if (cell.application, cell.companion) == (application, companion)
        )

    def csv(self) -> str:
        """As `colocate schedule --matrix` reads it: columns are measured applications, rows companions."""
        names = self.applications
        lines = [",".join(("companion", *names))]
        for companion in names:
            values = (f"{self.percent(name, companion):.1f}" for name in names)
            lines.append(",".join((companion, *values)))
        return "\n".join(lines) + "\n"

    def half_csv(self) -> str:
        """As `colocate schedule --half` reads it."""
        values = (f"{percent.value:.1f}" for percent in self.half)
        return f"{','.join(self.applications)}\n{','.join(values)}\n"


def with_prediction(
    matrix: MeasuredMatrix, predicted: Sequence[PredictedCell], notes: Sequence[str] = ()
) -> MeasuredMatrix:
    """The matrix with a forecast of some of its cells."""
    measured = [matrix.percent(cell.application, cell.companion) for cell in predicted]
    compared = agreement([cell.percent.value for cell in predicted], measured)
    return msgspec.structs.replace(
        matrix, prediction=ForecastComparison(cells=tuple(predicted), agreement=compared, notes=tuple(notes))
    )


def measured_matrix(names: Sequence[str], lines: Sequence[SharedTime], seed: int = 1) -> MeasuredMatrix:
    """The matrix of a journal that has all applications and pairs. MachineError where one is missing."""
    exclusive = {name: _times(lines, "exclusive", name) for name in names}
    on_half = {name: _times(lines, "half", name) for name in names}
    generator = np.random.default_rng(seed)

    def percent(times: Sequence[float], name: str, what: str) -> Percent:
        if not times or not exclusive[name]:
            raise MachineError("was not measured", field="apps", value=what, hint="continue with --resume")
        return _percent(times, exclusive[name], generator)

    half = tuple(percent(on_half[name], name, f"half {name}") for name in names)
    cells = tuple(
        Cell(
            application=name,
            companion=companion,
            percent=percent(
                _together(lines, name, companion, float(np.median(on_half[name]))),
                name,
                f"{name} beside {companion}",
            ),
        )
        for name in names
        for companion in names
    )
    return MeasuredMatrix(
        applications=tuple(names),
        repetitions=min(len(times) for times in exclusive.values()),
        exclusive_s=tuple(float(np.median(exclusive[name])) for name in names),
        half=half,
        cells=cells,
        noise=_noise(names, lines),
        notes=_notes(lines),
    )


def _noise(names: Sequence[str], lines: Sequence[SharedTime]) -> tuple[str, ...]:
    """A sentence for each application that takes another time when it runs alone again. Pairs may differ:
    they meet at another offset each time.
    """
    sentences = []
    places: tuple[tuple[Mode, str], ...] = (("exclusive", "on all cores"), ("half", "on half of the cores"))
    for name in names:
        for mode, what in places:
            times = np.array(_times(lines, mode, name), dtype=float)
            median = np.median(times)
            spread = PERCENT * float(np.median(np.abs(times - median)) / median)
            if spread > NOISY:
                sentences.append(f"the runs of {name} alone {what} differ by {spread:.1f} % of their median")
    return (*sentences, *_apart(lines))


def _apart(lines: Sequence[SharedTime]) -> list[str]:
    """Pairs that mostly did not run beside each other."""
    shares: dict[tuple[str, str], list[float]] = {}
    for line in lines:
        if line.companion is not None:
            shares.setdefault((line.application, line.companion), []).extend(line.first_beside)
            shares.setdefault((line.companion, line.application), []).extend(line.second_beside)
    return [
        f"{name} ran beside {companion} for only {PERCENT * float(np.mean(beside)):.0f} % of its time: "
        "give both more to do"
        for (name, companion), beside in shares.items()
        if beside and np.mean(beside) < LEAST_BESIDE
    ]


def _notes(lines: Sequence[SharedTime]) -> tuple[str, ...]:
    repetitions = len({line.repetition for line in lines})
    if repetitions == 1:
        return ("one repetition: how much runs differ is not known",)
    if repetitions < FEWEST:
        return (f"{repetitions} repetitions: no intervals below {FEWEST}",)
    return ()


def _times(lines: Sequence[SharedTime], mode: Mode, name: str) -> list[float]:
    """Of each run alone."""
    return [line.first[0] for line in lines if (line.mode, line.application) == (mode, name)]


def _together(lines: Sequence[SharedTime], name: str, companion: str, alone: float) -> list[float]:
    """Of each repetition the time of a run that is beside the companion from its begin to its end. An
    application beside itself has the runs of both jobs. `alone`: its time with as many cores and nodes.
    """
    values = []
    for line in lines:
        runs: list[tuple[float, float]] = []
        if line.mode == "shared" and (line.application, line.companion) == (name, companion):
            runs += zip(line.first, line.first_beside or (1.0,) * len(line.first), strict=True)
        if line.mode == "shared" and (line.companion, line.application) == (name, companion):
            runs += zip(line.second, line.second_beside or (1.0,) * len(line.second), strict=True)
        if runs:
            values.append(_whole(runs, alone))
    return values


def _whole(runs: Sequence[tuple[float, float]], alone: float) -> float:
    """The time of a run that is never without its companion.

    A run of t seconds spends (1 - b) t without it, as fast as alone. In the other b t it does what is left of
    its work, alone - (1 - b) t seconds of it: beside the companion it takes b t / that times as long. Runs
    count by their time beside the companion; where there is none, all is as it was measured.
    """
    beside = sum(share * time for time, share in runs)
    work = sum(alone - (1 - share) * time for time, share in runs)
    if beside <= 0 or work <= 0:
        return sum(time for time, _ in runs) / len(runs)
    return alone * beside / work


def _percent(times: Sequence[float], alone: Sequence[float], generator: np.random.Generator) -> Percent:
    value = PERCENT * float(np.median(times)) / float(np.median(alone))
    if min(len(times), len(alone)) < FEWEST:
        return Percent(value=value, low=None, high=None)
    drawn = [
        np.median(generator.choice(np.asarray(one), size=(RESAMPLES, len(one))), axis=1)
        for one in (times, alone)
    ]
    low, high = np.quantile(PERCENT * drawn[0] / drawn[1], (0.025, 0.975))
    return Percent(value=value, low=float(low), high=float(high))


def agreement(predicted: Sequence[float], measured: Sequence[float]) -> Agreement:
    """Both in the same order and unit."""
    p, m = np.asarray(predicted), np.asarray(measured)
    errors = PERCENT * np.abs(p - m) / m
    ranks = [rankdata(one) for one in (p, m)]
    alike = any(np.ptp(one) == 0 for one in ranks)
    return Agreement(
        cells=len(p),
        mean_error=float(errors.mean()),
        worst_error=float(errors.max()),
        rank_correlation=None if alike else float(np.corrcoef(ranks)[0, 1]),
    )
