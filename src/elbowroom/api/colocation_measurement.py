"""Measured co-location: all pairs of some applications, beside the forecast from profiles of each alone."""

from __future__ import annotations

import os
from itertools import combinations_with_replacement
from pathlib import Path

import msgspec

from elbowroom.api.network_calibration import load_curve
from elbowroom.documents import encode
from elbowroom.errors import UsageError
from elbowroom.files import read_text, write_atomically
from elbowroom.measure.colocation import FIRST_GUESS, measure_colocation
from elbowroom.measure.colocation_commands import check_commands
from elbowroom.measure.manifest import Tell
from elbowroom.profile.analysis import Analysis, analyse
from elbowroom.profile.curve import NicCurve
from elbowroom.profile.forecast import OFFSETS, Forecast, forecast
from elbowroom.profile.profile import read_profile
from elbowroom.schedule.applications import Applications, decode, turns
from elbowroom.schedule.measured import (
    PERCENT,
    Percent,
    PredictedCell,
    measured_matrix,
    with_prediction,
)
from elbowroom.schedule.measured import MeasuredMatrix as MeasuredMatrix

REPETITIONS = 3
MATRIX, HALF, DOCUMENT = "matrix.csv", "half.csv", "matrix.json"
"""What a measurement leaves in its folder beside the journal."""

_APPS = "give a file of applications, see `elbowroom help colocate`"


class PlannedRuns(msgspec.Struct, frozen=True, kw_only=True):
    """What `colocate measure --dry-run --json` prints: how many runs and pairs of runs would be measured, a
    first guess of the seconds that they take, and the commands of each application alone on all cores, alone
    on half of them, and as the second one of a pair.
    """

    schema: str = "elbowroom/colocation-plan"
    version: int = 1
    measurements: int
    seconds: float
    commands: dict[str, tuple[str, str, str]]


def read_applications(file: Path | str) -> Applications:
    """The applications of a file; UsageError where they cannot be measured."""
    return decode(read_text(Path(file), field="apps", hint=_APPS), str(file))


def plan_colocation(apps: Path | str, *, repetitions: int = REPETITIONS) -> PlannedRuns:
    """What would be run; nothing is."""
    applications = read_applications(apps)
    check_commands(applications, os.environ)
    count = len(turns(applications, repetitions, 0))
    return PlannedRuns(
        measurements=count,
        seconds=count * FIRST_GUESS,
        commands={
            name: (
                " ".join(applications.words(name, "exclusive")),
                " ".join(applications.words(name, "half")),
                " ".join(applications.words(name, "shared", 1)),
            )
            for name in applications.names
        },
    )


def measure_pairs(
    apps: Path | str,
    out: Path | str,
    *,
    repetitions: int = REPETITIONS,
    seed: int = 1,
    timeout: float | None = None,
    resume: bool = False,
    curve: Path | str | None = None,
    tell: Tell | None = None,
) -> MeasuredMatrix:
    """Runs all applications of a file alone, on half of the cores, and in pairs, into the folder `out`; the
    matrix, which is written there too (matrix.csv, half.csv, matrix.json).

    `timeout`: seconds that a run, or a pair, may take; `resume`: goes on with a measurement that was stopped;
    `curve`: the NIC of the forecast, a file of `profile calibrate`. `tell` gets lines of progress.

    UsageError for applications that cannot be measured, MachineError where one fails or prints no time. What
    was measured before an error or an interrupt is kept.
    """
    applications = read_applications(apps)
    check_commands(applications, os.environ)
    profiles = _profiles(applications, None if curve is None else load_curve(curve))
    folder = Path(out)
    lines = measure_colocation(
        applications,
        folder,
        repetitions=repetitions,
        seed=seed,
        patience=timeout,
        tell=tell or (lambda _line: None),
        again=resume,
    )
    matrix = measured_matrix(applications.names, lines)
    if profiles:
        matrix = with_prediction(matrix, *_predicted(profiles, seed))
    write_atomically(folder / MATRIX, matrix.csv().encode())
    write_atomically(folder / HALF, matrix.half_csv().encode())
    write_atomically(folder / DOCUMENT, encode(matrix))
    return matrix


def _profiles(apps: Applications, curve: NicCurve | None) -> dict[str, Analysis]:
    """Of the applications that name one. UsageError for one of other nodes than the applications run on."""
    found = {}
    for name, app in apps.apps.items():
        if app.profile is None:
            continue
        profile = read_profile(Path(app.profile))
        if profile.nodes != apps.nodes:
            raise UsageError(
                f"has {profile.nodes} nodes, and the application runs on {apps.nodes}",
                field=f"apps.{name}.profile",
                value=app.profile,
                hint="profile it alone on all cores",
            )
        found[name] = analyse(profile, curve)
    return found


def _predicted(jobs: dict[str, Analysis], seed: int) -> tuple[list[PredictedCell], list[str]]:
    """All pairs of these jobs on half of the cores, and notes."""
    cells, notes = {}, dict[str, None]()
    for a, b in combinations_with_replacement(jobs, 2):
        found = forecast(jobs[a], jobs[b], half=True, offsets=OFFSETS, seed=seed)
        notes.update(dict.fromkeys(found.notes))
        cells[b, a] = found.slowdown_b
        cells[a, b] = found.slowdown_a
    return [
        PredictedCell(application=name, companion=companion, percent=_percent(cells[name, companion]))
        for name in jobs
        for companion in jobs
    ], list(notes)


def _percent(found: Forecast) -> Percent:
    return Percent(value=PERCENT * found.value, low=PERCENT * found.low, high=PERCENT * found.high)
