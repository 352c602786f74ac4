"""A job on the contention map of a machine, as Python sees it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from elbowroom.errors import UsageError

if TYPE_CHECKING:
    from elbowroom.advise.advice import Advice
    from elbowroom.advise.contention_map import ContentionMap
    from elbowroom.advise.job import Job
    from elbowroom.api.predicting import Model
    from elbowroom.api.runs import Run
    from elbowroom.draw.figure import Figure
    from elbowroom.report.jobs import Jobbed
    from elbowroom.report.modelled import Modelled

COLUMNS = 2


def contention_maps(advice: Advice, model: Model | Path | str | None = None) -> tuple[ContentionMap, ...]:
    """What each side keeps and how long a step takes, for any number of cores and any message size, with the
    job's data as now, and as advised where that differs; with the job's points on it.

    `model`: that of the advice (default: the file or machine it names). UsageError for one of another
    machine.
    """
    from elbowroom.advise.contention_map import check_shown
    from elbowroom.advise.contention_map import contention_maps as mapped
    from elbowroom.api.predicting import load_model

    document = load_model(advice.model if model is None else model).document
    check_shown(advice, document)
    return mapped(document, advice)


def map_figures(advice: Advice, model: Model | Path | str | None = None) -> tuple[Figure, ...]:
    """The maps of `contention_maps` as figures: two for each, who loses and how long a step takes."""
    from elbowroom.advise.map_figures import figures

    return figures(contention_maps(advice, model), advice.machine)


def save_map(advice: Advice, path: Path | str, model: Model | Path | str | None = None) -> Path:
    """Writes the maps as one .png or .svg, a row for each placement."""
    from elbowroom.draw.files import save_panels

    title = f"{advice.job.name} on {advice.machine.name}{' (virtual)' if advice.machine.virtual else ''}"
    save_panels(
        map_figures(advice, model),
        Path(path),
        columns=COLUMNS,
        title=f"{title}: {advice.sentence}",
        shared=False,
    )
    return Path(path)


def jobbed(run: Run, models: Sequence[Modelled], job: Job | Path | str) -> Jobbed:
    """The job as the report of a run shows it, advised by the first of its models.

    UsageError where there is none, or the job does not fit.
    """
    from elbowroom.advise.map_figures import figures
    from elbowroom.api.advising import advise, load_job
    from elbowroom.api.predicting import Model
    from elbowroom.report.jobs import Jobbed

    asked = load_job(job)
    if not models:
        raise UsageError(
            f"{run.path} has no model to ask",
            field="job",
            value=asked.name,
            mend=f"fit it first: elbowroom fit {run.path}",
        )
    first = models[0]
    model = Model(first.document)
    advice = advise(model, asked)
    found = contention_maps(advice, model)
    others = len(models) - 1
    note = f"{first.name} was asked; {others} more model{'s' if others > 1 else ''} of this page not."
    return Jobbed(
        model=first.name,
        advice=advice,
        maps=found,
        figures=figures(found, advice.machine),
        notes=(note,) if others else (),
    )
