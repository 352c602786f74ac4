"""The report of a run: its page, its models and a job on the contention map."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elbowroom.advise import map_figures
from elbowroom.advise.contention_map import contention_maps
from elbowroom.errors import UsageError
from elbowroom.models import figures
from elbowroom.models.curves import Shape, Streams
from elbowroom.models.evaluate import ErrorTable, sample_placements
from elbowroom.models.registry import fitted_models
from elbowroom.models.threshold.law import Threshold, curve
from elbowroom.points.point import Note
from elbowroom.report.columns import use_of
from elbowroom.report.page import Page
from elbowroom.report.sections import JobSection, ModelSection
from elbowroom.verbs.model_file import Evaluation, Model, advise, curves_of, evaluation, load_job, load_model

if TYPE_CHECKING:
    from elbowroom.advise.job import Job
    from elbowroom.cli.answer import Answer
    from elbowroom.draw.figure import Figure
    from elbowroom.measure.results import Results
    from elbowroom.models.curves import Row
    from elbowroom.models.document import Document
    from elbowroom.models.threshold.law import Parameters
    from elbowroom.verbs.run_protocols import MeasuredRun


def build_page(
    results: Results,
    models: tuple[ModelSection, ...] = (),
    doubts: tuple[Note, ...] = (),
    job: JobSection | None = None,
    answer: Answer | None = None,
) -> Page:
    """The report's page for the results of a run. `doubts`: why a model of the run is not shown; `answer`:
    how the text of the run ends.
    """
    manifest = results.manifest
    plan = manifest.plan
    share = manifest.measured_share
    return Page(
        title=f"{plan['name']}: {plan.get('question') or 'computation beside communication'}",
        manifest=manifest.plain(),
        machine=results.machine,
        verdict=results.verdict,
        results=results.points,
        state=known_state(manifest.state.get("before", {})),
        observers=manifest.observers,
        findings=results.findings,
        figures=results.figures(),
        notes=(*results.notes, *doubts),
        models=models,
        job=job,
        uses={point.id: use_of(point, results.machine.hosts) for point in manifest.points},
        drifts=results.drifts,
        tables=(*results.tables(), *results.tail_tables()),
        answer="" if answer is None else answer.verdict,
        why="" if answer is None else answer.why,
        next="" if answer is None else answer.next,
        method=(
            ("repetitions", str(plan["repetitions"])),
            (
                "order",
                f"random inside each repetition, seed {manifest.seed}" + ", reversed" * manifest.reverse,
            ),
            ("time inside measured windows", _share(share, manifest.machine.virtual)),
        ),
    )


def _share(share: float | None, virtual: bool) -> str:
    if virtual:
        return "none: virtual"
    return "unknown" if share is None else f"{share:.0%}"


def known_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """A machine's state without what is unknown; that is listed apart, with the reasons."""
    known: dict[str, Any] = {}
    for name, value in state.items():
        if not isinstance(value, Mapping):
            known[name] = value
        elif set(value) != {"unknown"} and (inner := known_state(value)):
            known[name] = inner
    return known


def model_sections(
    run: MeasuredRun, files: Sequence[Path | str]
) -> tuple[tuple[ModelSection, ...], tuple[Note, ...]]:
    """The models of `files`, or else all of the run folder (models/*.json), best name first.

    A file of the folder that cannot be used becomes a note; for one of `files` that is a UsageError.
    """
    if files:
        return tuple(_part(run, load_model(file), Path(file).name) for file in files), ()
    parts, notes = [], []
    for path in sorted((run.path / "models").glob("*.json")):
        try:
            parts.append(_part(run, load_model(path), path.name))
        except UsageError as error:
            notes.append(Note(what=f"the model {path.name}", reason=error.sentence()))
    return tuple(parts), tuple(notes)


def _part(run: MeasuredRun, model: Model, name: str) -> ModelSection:
    if not fitted_models(model.document) and model.document.gpu is not None:
        return ModelSection(name=name, document=model.document, shown="")
    shown = model.name()
    rows, errors = _measured(run, model)
    panels = figures.panels(
        model.machine, model.curves(model=shown), rows, calibrated=_calibrated(model.document, shown)
    )
    return ModelSection(
        name=name,
        document=model.document,
        shown=shown,
        figures=(*_stacked(model, rows), *panels),
        errors=errors.table if errors is not None and isinstance(errors.table, ErrorTable) else None,
        notes=() if errors is None else errors.notes,
    )


def _measured(run: MeasuredRun, model: Model) -> tuple[tuple[Row, ...], Evaluation | None]:
    """What the run measured of the model's benchmark, and how far the models are from it; nothing where it
    measured another kernel or size, or nothing together. A run of another machine is refused.
    """
    try:
        rows = curves_of(run, model).curves.rows
    except UsageError as error:
        if error.field == "model":
            raise
        return (), None
    try:
        return rows, evaluation(run, model)
    except UsageError:
        return rows, None


def _calibrated(document: Document, shown: str) -> tuple[figures.Placement, ...]:
    """The placements that the model learned from, where those are not all."""
    shape, known = document.machine, document.calibration.placements
    if shown != "flow":
        return tuple(place for place in sample_placements(shape) if place in known)
    return known if len(known) < shape.nodes**2 else ()


def _stacked(model: Model, rows: Sequence[Row]) -> list[Figure]:
    """Fig. 6.1 for local and remote data, of what was measured there, else of the model."""
    shape, models = model.machine, model.document.models
    part = models.threshold or models.robust
    if part is None:
        return []
    drawn = []
    for node, parameters in ((0, part.local), (shape.numa_per_socket, part.remote)):
        if parameters is None or node >= shape.nodes:
            continue
        streams = _at(rows, node)
        if len(streams) > 1:
            drawn.append(figures.stacked(shape, node, parameters, streams, source="measured"))
        else:
            drawn.append(
                figures.stacked(shape, node, parameters, _predicted(shape, parameters, node), source="model")
            )
    return drawn


def _at(rows: Sequence[Row], node: int) -> list[tuple[int, Streams]]:
    """The rows with all data on the node, cores of the first socket computing, and all four bandwidths."""
    streams: list[tuple[int, Streams]] = []
    for row in rows:
        at = row.situation
        comp_alone, comm_alone, comp_together, comm_together = row.streams
        if at.comp_node != node or at.comm_node != node or at.n_other or not at.n:
            continue
        if comp_alone is None or comm_alone is None or comp_together is None or comm_together is None:
            continue
        streams.append((at.n, (comp_alone, comm_alone, comp_together, comm_together)))
    return streams


def _predicted(shape: Shape, parameters: Parameters, node: int) -> list[tuple[int, Streams]]:
    """The same as the threshold model says it."""
    ns = range(1, shape.cores_first_socket + 1)
    local = shape.local(node)
    model = Threshold(shape=shape, local=parameters if local else None, remote=None if local else parameters)
    rows = curve(model, node, node, tuple(ns)).tolist()
    return [(n, (a, b, c, d)) for n, (a, b, c, d) in zip(ns, rows, strict=True)]


def job_section(run: MeasuredRun, models: Sequence[ModelSection], job: Job | Path | str) -> JobSection:
    """The job as the report of a run shows it, advised by the first of its models.

    UsageError where there is none, or the job does not fit.
    """
    loaded = load_job(job)
    first = next((model for model in models if model.shown), None)
    if first is None:
        raise UsageError(
            f"{run.path} has no model to ask",
            field="job",
            value=loaded.name,
            hint=f"fit it first: elbowroom fit {run.path}",
        )
    model = Model(first.document)
    advice = advise(model, loaded)
    maps = contention_maps(model.document, advice)
    others = len(models) - 1
    plural = "s" if others > 1 else ""
    note = f"These are predictions of {first.name}, not of the {others} other model{plural} of this page."
    return JobSection(
        model=first.name,
        advice=advice,
        maps=maps,
        figures=map_figures.figures(maps, advice.machine),
        notes=(note,) if others else (),
    )
