"""Models of accelerators: fitted to runs, asked for cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from elbowroom.documents import encode
from elbowroom.errors import UsageError
from elbowroom.files import read_text, write_atomically
from elbowroom.models import registry
from elbowroom.models.copy_rows import base_of, copy_rows
from elbowroom.models.gpu.case import LINKS, decode, holds_cases, over_counts
from elbowroom.models.gpu.case import DeviceCase as DeviceCase
from elbowroom.models.gpu.case import parse_shape as parse_shape
from elbowroom.models.gpu.evaluate import GpuErrorTable
from elbowroom.models.gpu.evaluate import evaluate as evaluated
from elbowroom.models.gpu.model import GpuModel, penalty_table
from elbowroom.models.gpu.model import GpuPrediction as GpuPrediction
from elbowroom.models.gpu.model import model as accelerator_model
from elbowroom.models.gpu.samples import links, samples
from elbowroom.models.load import Copy, LoadRow, parse_copy
from elbowroom.models.run_data import Layout, layout_of
from elbowroom.verbs.model_file import Model, same_machine

if TYPE_CHECKING:
    from elbowroom.verbs.run_folder import Run


TRIAD = "triad"
"""The kernel that cores and accelerators both have."""


def gpu_model(model: Model) -> GpuModel:
    """The model of the accelerator in a file; UsageError where it has none."""
    return accelerator_model(model.document)


def predict_cases(model: Model, cases: Sequence[DeviceCase]) -> list[GpuPrediction]:
    """One prediction for each case, those without a number of SMs for several of them."""
    known = gpu_model(model)
    return known.predict([each for case in cases for each in over_counts(case, known.part.sms)])


def read_cases(path: Path | str) -> tuple[DeviceCase, ...]:
    """The cases of a file with tables `[[gpu]]`; none where the file holds a load.

    UsageError names the key, its value and a hint.
    """
    text = read_text(Path(path), field="load", hint="name a TOML file")
    return decode(text, str(path)) if holds_cases(text, str(path)) else ()


def copy_of(model: Model, text: str) -> Copy:
    """`12000@0`, or `d2h@0`: at the rate that copies of that direction have alone with a buffer there."""
    word, _, place = text.partition("@")
    if word not in LINKS:
        return parse_copy(text)
    known = gpu_model(model)
    node = int(place) if place.isascii() and place.isdigit() else -1
    if node not in known.nodes(word):
        raise UsageError(
            f"copies {word} were not measured with a buffer there",
            field="copy",
            value=text,
            hint=f"measured nodes: {', '.join(map(str, known.nodes(word))) or 'none'}; or write MB/s@NODE",
        )
    return Copy(node=node, demand=known.link(word, node).value)


def accelerator_rate(model: Model) -> float:
    """MB/s of the accelerator's triad alone: its work per unit of time beside that of cores that run the
    triad.

    UsageError where the model has no accelerator, did not measure its triad, or knows cores with another
    kernel, whose bytes are not the same work.
    """
    part, kernel = gpu_model(model).part, model.document.calibration.kernel
    if kernel != TRIAD:
        raise UsageError(
            f"the cores ran {kernel or 'nothing'} and the accelerator {TRIAD}, which is not the same work",
            field="split",
            hint="fit a run of the plan model with --kernels triad, or give --p-acc",
        )
    for item in part.victims:
        if item.victim == TRIAD and item.unit == "MB/s":
            return item.alone
    raise UsageError(
        "the accelerator's triad was not measured", field="split", hint="measure it, or give --p-acc"
    )


class GpuPredictionDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `predict --gpu --json` prints: what both sides keep in each case, with 90 % intervals."""

    schema: str = "elbowroom/gpu-prediction"
    version: int = 1
    machine: str
    device: str
    sms: int
    origin: str
    predictions: tuple[GpuPrediction, ...]


def gpu_document(model: Model, predictions: Sequence[GpuPrediction]) -> GpuPredictionDocument:
    """Predictions of cases as one document."""
    part = gpu_model(model).part
    return GpuPredictionDocument(
        machine=model.machine.name,
        device=part.device,
        sms=part.sms,
        origin=part.origin,
        predictions=tuple(predictions),
    )


def export_penalties(model: Model, path: Path | str) -> Path:
    """Writes the penalty table of a model's accelerator as JSON, whole or not at all."""
    target = Path(path)
    write_atomically(target, encode(penalty_table(gpu_model(model).part, model.machine.name)))
    return target


class GpuEvaluationDocument(GpuErrorTable, frozen=True, kw_only=True):
    """What `evaluate --json` prints for a run of an accelerator."""

    schema: str = "elbowroom/gpu-evaluate"
    version: int = 1
    run: str
    model: str
    notes: tuple[str, ...]


def evaluate_gpu(run: Run, model: Model) -> GpuEvaluationDocument | None:
    """How far the model is from a run of an accelerator; None for another run. The law predicts, also where a
    case was measured.

    UsageError where the model answers nothing of it, or is of another machine.
    """
    points = run.points()
    measured, left_out = samples(points)
    if not measured and not links(points):
        return None
    layout = layout_of(run.machine)
    same_machine(layout.shape, model.machine)
    copies: Sequence[LoadRow] = ()
    if registry.fitted_models(model.document):
        copies = _copy_rows(run, model, layout)
    table = evaluated(model.document, measured, copies)
    known = model.document.calibration
    fitted = [Path(path).resolve() for path in (known.run, *known.with_runs) if path]
    notes = []
    if run.path.resolve() in fitted:
        notes.append("The model was fitted to this very run: its errors are how well it fits.")
    if run.machine.virtual:
        notes.append("The run is virtual: nothing here was measured on hardware.")
    notes += [f"Left out: {count} points, {reason}." for reason, count in left_out.items()]
    worse = [line.family for line in table.lines if not line.better]
    if worse:
        notes.append(f"No closer than a rule without a fit: {', '.join(worse)}.")
    return GpuEvaluationDocument(
        **msgspec.structs.asdict(table), run=str(run.path), model=str(model.path), notes=tuple(notes)
    )


def _copy_rows(run: Run, model: Model, layout: Layout) -> Sequence[LoadRow]:
    known = model.document.calibration
    cores = {point.id: point.comp_cores for point in run.manifest.points}
    base = base_of(known.kernel, known.size, layout)
    return copy_rows(run.points(), cores, base)[0]
