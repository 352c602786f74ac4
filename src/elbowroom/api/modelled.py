"""The models of a run, composed for its report: lines over what was measured, errors, sliders."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from elbowroom.api.predicting import Evaluation, Model, curves_of, evaluate, load_model
from elbowroom.errors import UsageError
from elbowroom.model.curves import Shape, Streams
from elbowroom.plan.point import Note
from elbowroom.predict import figures
from elbowroom.report.modelled import Modelled

if TYPE_CHECKING:
    from elbowroom.api.runs import Run
    from elbowroom.draw.figure import Figure
    from elbowroom.model.curves import Row
    from elbowroom.model.document import Document, ModelName
    from elbowroom.model.threshold import Parameters


def modelled(run: Run, files: Sequence[Path | str]) -> tuple[tuple[Modelled, ...], tuple[Note, ...]]:
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


def _part(run: Run, model: Model, name: str) -> Modelled:
    shown = model.name()
    rows, found = _measured(run, model)
    panels = figures.panels(
        model.machine, model.curves(model=shown), rows, calibrated=_calibrated(model.document, shown)
    )
    return Modelled(
        name=name,
        document=model.document,
        shown=shown,
        figures=(*_stacked(model, rows), *panels),
        errors=None if found is None else found.table,
        notes=() if found is None else found.notes,
    )


def _measured(run: Run, model: Model) -> tuple[tuple[Row, ...], Evaluation | None]:
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
        return rows, evaluate(run, model)
    except UsageError:
        return rows, None


def _calibrated(document: Document, shown: ModelName) -> tuple[figures.Placement, ...]:
    """The placements that the model learned from, where those are not all."""
    from elbowroom.predict.evaluating import sample_placements

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
                figures.stacked(shape, node, parameters, _said(shape, parameters, node), source="model")
            )
    return drawn


def _at(rows: Sequence[Row], node: int) -> list[tuple[int, Streams]]:
    """The rows with all data on the node, cores of the first socket computing, and all four bandwidths."""
    found: list[tuple[int, Streams]] = []
    for row in rows:
        at = row.situation
        comp_alone, comm_alone, comp_together, comm_together = row.streams
        if at.comp_node != node or at.comm_node != node or at.n_other or not at.n:
            continue
        if comp_alone is None or comm_alone is None or comp_together is None or comm_together is None:
            continue
        found.append((at.n, (comp_alone, comm_alone, comp_together, comm_together)))
    return found


def _said(shape: Shape, parameters: Parameters, node: int) -> list[tuple[int, Streams]]:
    """The same as the threshold model says it."""
    from elbowroom.model.threshold import Threshold, curve

    ns = range(1, shape.cores_first_socket + 1)
    local = shape.local(node)
    model = Threshold(shape=shape, local=parameters if local else None, remote=None if local else parameters)
    rows = curve(model, node, node, tuple(ns)).tolist()
    return [(n, (a, b, c, d)) for n, (a, b, c, d) in zip(ns, rows, strict=True)]
