"""Models of accelerators: fitted to runs, asked for cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from elbowroom.documents import encode
from elbowroom.errors import UsageError
from elbowroom.files import read_text, write_atomically
from elbowroom.models.gpu.case import LINKS, DeviceCase, decode, holds_cases, over_counts
from elbowroom.models.gpu.model import GpuModel, GpuPrediction, penalty_table
from elbowroom.models.load import Copy, parse_copy
from elbowroom.models.registry import accelerator
from elbowroom.verbs.model_file import Model

TRIAD = "triad"
"""The kernel that cores and accelerators both have."""


def gpu_model(model: Model) -> GpuModel:
    """The model of the accelerator in a file; UsageError where it has none."""
    known: GpuModel = accelerator().model(model.document)
    return known


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
            hint=f"measured nodes: {', '.join(map(str, known.nodes(word))) or 'none'}; or write RATE@NODE",
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
