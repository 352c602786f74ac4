"""The accelerator as a kind of model: fitted to runs, made of a document, and compared with what a run
measured, beside rules that need no fit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np

from elbowroom.errors import UsageError
from elbowroom.models.base import MeasuredCases, Provenance
from elbowroom.models.curves import Curves
from elbowroom.models.document import Document
from elbowroom.models.gpu import fit as calibration
from elbowroom.models.gpu.model import GpuModel, GpuPrediction
from elbowroom.models.gpu.part import GpuPart
from elbowroom.models.gpu.problem import mean_error, rule_errors
from elbowroom.models.gpu.samples import GpuSample
from elbowroom.models.load import NORMAL_90, LoadPrediction, LoadRow
from elbowroom.models.predict import FittedModel
from elbowroom.stats.interval import Interval


class GpuErrors(msgspec.Struct, frozen=True, kw_only=True):
    """Cases that are alike but for SMs, pace and node: mean |predicted - measured| / measured of what the
    victim keeps (`victim`) and of the mover's rate together (`mover`, None where nothing moves), the same of
    three rules for the victim (None where a rule does not apply), and the share of the measured values inside
    the 90 % intervals (widened by their own). `better`: whether the model is closer than every rule.
    """

    family: str
    cases: int
    victim: float
    mover: float | None
    covered: float
    share_rule: float | None
    max_min_rule: float | None
    no_loss_rule: float
    better: bool


class GpuErrorTable(msgspec.Struct, frozen=True, kw_only=True):
    """A line for each family; `unanswered`: cases that the model does not know, by reason."""

    device: str
    lines: tuple[GpuErrors, ...]
    unanswered: dict[str, int] = {}


class GpuEvaluationDocument(GpuErrorTable, frozen=True, kw_only=True):
    """What `evaluate --json` prints for a run of an accelerator."""

    schema: str = "elbowroom/gpu-evaluate"
    version: int = 1
    run: str
    model: str
    notes: tuple[str, ...]


def fit(_name: str, _curves: Curves | None, source: Provenance) -> GpuPart | None:
    """The model of the accelerator that the runs measured, if they measured one."""
    runs = source.accelerator
    if runs is None:
        return None
    return calibration.fit(
        runs.samples,
        runs.sms,
        links=runs.links,
        device=runs.device,
        run=source.run,
        origin="virtual" if source.origin == "virtual" else "measured",
        left_out=runs.left_out,
    )


def model(document: Document, _name: str = "gpu", _faithful: bool = False) -> GpuModel:
    """The model of a document's accelerator; UsageError where it has none."""
    if document.gpu is None:
        raise UsageError(
            f"the model of {document.machine.name} has no accelerator",
            field="gpu",
            hint="measure one, and fit it: elbowroom run gpu-overlap --out RUN; elbowroom fit RUN",
        )
    return GpuModel(document.gpu)


def evaluate(document: Document, measured: MeasuredCases) -> GpuErrorTable:
    """Errors of cases on the accelerator by the law alone (not by lookup), and of copies beside cores or
    messages by FLOW.

    UsageError where there is nothing that the document answers.
    """
    unanswered: dict[str, int] = {}
    lines = [
        *_of_device(document, measured.samples, unanswered),
        *_of_copies(document, measured.copies, unanswered),
    ]
    if not lines:
        reasons = "; ".join(unanswered) or "it measured no accelerator"
        raise UsageError(f"has nothing to compare with the model ({reasons})", field="run")
    device = document.gpu.device if document.gpu is not None else ""
    return GpuErrorTable(device=device, lines=tuple(lines), unanswered=unanswered)


def _of_device(
    document: Document, samples: Sequence[GpuSample], unanswered: dict[str, int]
) -> list[GpuErrors]:
    if document.gpu is None:
        if samples:
            unanswered["the model has no accelerator"] = len(samples)
        return []
    model = GpuModel(document.gpu)
    answered: dict[str, list[tuple[GpuSample, GpuPrediction]]] = {}
    for item in samples:
        try:
            prediction = model.predict((item.case,), law=True)[0]
        except UsageError as error:
            unanswered[error.sentence()] = unanswered.get(error.sentence(), 0) + 1
        else:
            answered.setdefault(item.case.family, []).append((item, prediction))
    triads = [item.traffic for item in samples if item.case.victim == "triad"]
    hbm = max(triads, default=math.inf)
    return [_family(name, rows, document.gpu.sms, hbm) for name, rows in sorted(answered.items())]


def _family(name: str, rows: Sequence[tuple[GpuSample, GpuPrediction]], sms: int, hbm: float) -> GpuErrors:
    kept = [item.kept for item, _ in rows]
    victim = mean_error([prediction.kept.value for _, prediction in rows], kept)
    movers = [
        (prediction.mover_together.value, item.mover_together)
        for item, prediction in rows
        if prediction.mover_together is not None and item.mover_together is not None
    ]
    rules = rule_errors([item for item, _ in rows], kept, sms, hbm)
    return GpuErrors(
        family=name,
        cases=len(rows),
        victim=victim,
        mover=mean_error([value for value, _ in movers], [value for _, value in movers]) if movers else None,
        covered=_covered([(item.kept, item.spread[0] or 0.0, prediction.kept) for item, prediction in rows]),
        share_rule=rules[0],
        max_min_rule=rules[1],
        no_loss_rule=rules[2],
        better=victim < min(rules),
    )


def _of_copies(document: Document, rows: Sequence[LoadRow], unanswered: dict[str, int]) -> list[GpuErrors]:
    if not rows:
        return []
    if document.models.flow is None:
        unanswered["the model has no FLOW, which predicts copies beside cores and messages"] = len(rows)
        return []
    families: dict[str, list[tuple[LoadRow, LoadPrediction]]] = {}
    for row in rows:
        try:
            prediction = _of_flow(document, row)
        except UsageError as error:
            unanswered[error.sentence()] = unanswered.get(error.sentence(), 0) + 1
            continue
        name = "cores/copy" if row.load.computing else "copy/messages"
        families.setdefault(name, []).append((row, prediction))
    return [_copies(name, pairs) for name, pairs in sorted(families.items())]


def _of_flow(document: Document, row: LoadRow) -> LoadPrediction:
    if row.kernel:
        raise UsageError("is not the kernel that FLOW knows", field="kernel", value=row.kernel)
    return FittedModel(document, "flow").predict_loads((row.load,))[0]


def _copies(name: str, pairs: Sequence[tuple[LoadRow, LoadPrediction]]) -> GpuErrors:
    """The victim is the computation, or else the copy beside messages; the mover the other one."""
    victims, movers = [], []
    for row, prediction in pairs:
        demand = row.load.copies[0].demand
        copy = (row.copies_together[0] if row.copies_together else None, prediction.copies[0], demand)
        other = (
            (row.comp_together, prediction.comp_together, row.comp_alone)
            if row.load.computing
            else (row.comm_together, prediction.comm_together, row.comm_alone)
        )
        victims.append(other if row.load.computing else copy)
        movers.append(copy if row.load.computing else other)
    known = [(got, answer, alone) for got, answer, alone in victims if got is not None and alone is not None]
    moved = [(got, answer) for got, answer, _ in movers if got is not None]
    victim = mean_error([answer.value for _, answer, _ in known], [got for got, _, _ in known])
    no_loss = mean_error([alone for _, _, alone in known], [got for got, _, _ in known])
    return GpuErrors(
        family=name,
        cases=len(pairs),
        victim=victim,
        mover=mean_error([answer.value for _, answer in moved], [got for got, _ in moved]) if moved else None,
        covered=_covered([(got, 0.0, answer) for got, answer, _ in known]),
        share_rule=None,
        max_min_rule=None,
        no_loss_rule=no_loss,
        better=victim < no_loss,
    )


def _covered(rows: Sequence[tuple[float, float, Interval]]) -> float:
    """Share of (measured, its relative standard error, predicted) inside, widened as `evaluate` does."""
    inside = []
    for measured, spread, answer in rows:
        below = math.hypot(math.log(answer.value / answer.low), NORMAL_90 * spread)
        above = math.hypot(math.log(answer.high / answer.value), NORMAL_90 * spread)
        inside.append(-below <= math.log(measured / answer.value) <= above)
    return float(np.mean(inside))
