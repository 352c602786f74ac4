"""Models of accelerators: fitted to runs, asked for cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from elbowroom.errors import UsageError
from elbowroom.files import read_text
from elbowroom.models.gpu.case import DeviceCase as DeviceCase
from elbowroom.models.gpu.fit import fit
from elbowroom.models.gpu.load_file import decode, holds_cases, over_counts
from elbowroom.models.gpu.load_file import parse_shape as parse_shape
from elbowroom.models.gpu.model import GpuModel
from elbowroom.models.gpu.model import GpuPrediction as GpuPrediction
from elbowroom.models.gpu.part import GpuPart
from elbowroom.models.gpu.samples import links, samples
from elbowroom.models.gpu.words import LINKS
from elbowroom.models.load import Copy, parse_copy

if TYPE_CHECKING:
    from elbowroom.api.models import Model
    from elbowroom.api.runs import Run


def gpu_part(runs: Sequence[Run], sms: int | None = None) -> GpuPart | None:
    """The model of the accelerator that these runs measured; None where they measured none. `sms`: its
    multiprocessors, where the runs do not say it.

    UsageError where there are cases but none that a model can be fitted to, and where the number of SMs is
    not known, or `sms` is given without such cases.
    """
    points = [item for run in runs for item in run.points()]
    measured, left_out = samples(points)
    rates = links(points)
    if not measured and not rates:
        if sms is not None:
            raise UsageError(
                "is only valid with runs of an accelerator", field="sms", value=sms, hint="leave it out"
            )
        return None
    known = {device["sms"] for run in runs if (device := device_of(run)).get("sms")}
    if sms is not None and sms < 2:
        raise UsageError("is no number of SMs", field="sms", value=sms, hint="give 2 or more")
    if len(known) > 1:
        raise UsageError(
            f"the runs are of accelerators with {' and '.join(map(str, sorted(known)))} SMs",
            field="run",
            hint="fit the runs of one accelerator together, others apart",
        )
    if sms is None and not known:
        raise UsageError(
            "the runs do not say how many SMs the accelerator has", field="sms", hint="add --sms N"
        )
    first = runs[0]
    return fit(
        measured,
        sms if sms is not None else int(known.pop()),
        links=rates,
        device=str(device_of(first).get("name", "")),
        run=str(first.path),
        origin="virtual" if first.machine.virtual else "measured",
        left_out=left_out,
    )


def device_of(run: Run) -> dict[str, Any]:
    """What a run says of its accelerator: `name`, `sms`; empty where it says nothing."""
    said: dict[str, Any] = dict(run.manifest.hello.get("gpu") or {})
    device = dict(said.get("device") or said)
    if "sms" not in device:
        counts = {item.facts["sms"] for item in run.points() if "sms" in item.facts}
        device |= {"sms": int(counts.pop())} if len(counts) == 1 else {}
    return device


def gpu_model(model: Model) -> GpuModel:
    """The model of the accelerator in a file; UsageError where it has none."""
    part = model.document.gpu
    if part is None:
        raise UsageError(
            f"the model of {model.machine.name} has no accelerator",
            field="gpu",
            hint="measure one, and fit it: elbowroom run gpu-overlap --out RUN; elbowroom fit RUN",
        )
    return GpuModel(part)


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
