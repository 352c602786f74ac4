"""Calibrating with few runs, as Python sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from elbowroom.api.measuring import chatter
from elbowroom.api.predicting import Model, fit
from elbowroom.api.runs import Run
from elbowroom.errors import UsageError
from elbowroom.plan.reading import Overrides

if TYPE_CHECKING:
    from elbowroom.campaign.calibrating import Calibration


class Calibrated(NamedTuple):
    """A calibrated machine: the run folder, how it went, and the model; None where the runs allow none, and
    `unknown` says why among the other things that could not be learned here, one sentence each.
    """

    run: Run
    calibration: Calibration
    model: Model | None
    unknown: tuple[str, ...]


def calibrate(
    *,
    budget: int = 24,
    half_width: float = 0.03,
    plan: str = "model",
    out: Path | str | None = None,
    run: str | None = None,
    overrides: Overrides | None = None,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: Sequence[str] = (),
    hostfile: str | None = None,
    machine: str | None = None,
    noise: float | None = None,
    seed: int | None = None,
    patience: float | None = None,
    command: Sequence[str] = (),
    report: bool = True,
    tell: Callable[[str], object] = chatter,
) -> Calibrated:
    """Measures only what teaches most of `plan`, and fits every model to it.

    Ends after `budget` runs (a placement with a number of computing cores each), or as soon as nine of ten
    predictions have a 90 % interval of at most the relative `half_width`. `run` names the new run folder,
    `out` the model's file (default: models/NAME.json in the run folder); the rest as of `elbowroom.run`.
    """
    from elbowroom.campaign import calibrating
    from elbowroom.campaign.running import Request
    from elbowroom.campaign.sources import Where

    where = Where(
        launcher=launcher,
        mpi=mpi,
        hosts=tuple(hosts),
        hostfile=hostfile,
        machine=machine,
        noise=noise,
        seed=seed if machine is not None else None,
    )
    request = Request(
        plan=plan,
        overrides=overrides or Overrides(),
        where=where,
        out=run,
        seed=seed,
        patience=patience,
        command=tuple(command),
    )
    goal = calibrating.Goal(budget=budget, half_width=half_width)
    folder, results, calibration = calibrating.start(request, goal, tell)
    return _fitted(Run(folder, results), calibration, out, report)


def resume_calibration(
    path: Path | str,
    *,
    budget: int = 24,
    half_width: float = 0.03,
    out: Path | str | None = None,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: Sequence[str] = (),
    hostfile: str | None = None,
    patience: float | None = None,
    report: bool = True,
    tell: Callable[[str], object] = chatter,
) -> Calibrated:
    """Goes on with a calibration that was stopped, or one that shall use more runs or be narrower."""
    from elbowroom.campaign import calibrating
    from elbowroom.campaign.sources import Where

    where = Where(launcher=launcher, mpi=mpi, hosts=tuple(hosts), hostfile=hostfile)
    goal = calibrating.Goal(budget=budget, half_width=half_width)
    folder, results, calibration = calibrating.resume(Path(path), goal, tell, where=where, patience=patience)
    return _fitted(Run(folder, results), calibration, out, report)


def _fitted(run: Run, calibration: Calibration, out: Path | str | None, report: bool) -> Calibrated:
    """The model of the run, then its report, which shows the model too."""
    unknown = [f"{note.what}: {note.reason}" for note in run.manifest.notes]
    model = None
    try:
        model = fit(run, out)
    except UsageError as error:
        unknown.append(f"no model: {error.sentence()}")
    else:
        unknown += model.validity
    if report:
        run.report()
    return Calibrated(run, calibration, model, tuple(unknown))
