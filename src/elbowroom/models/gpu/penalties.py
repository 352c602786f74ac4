"""The penalty table: how much longer kernels and copies take beside each other, for schedulers that overlap
them.

A compiler that decides which kernel runs beside which transfer needs both factors for each pair, not a
model: the table lists them for the measured families, for numbers of SMs inside what was measured
(docs/reference/gpu-models.md).
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from elbowroom.models.gpu.case import COUNTS, SMS_OF, DeviceCase
from elbowroom.models.gpu.model import MEASURED, GpuModel, GpuPrediction
from elbowroom.models.gpu.part import GpuPart
from elbowroom.stats.interval import Interval
from elbowroom.version import __version__

SCHEMA = "elbowroom/gpu-penalties"


class Penalty(msgspec.Struct, frozen=True, kw_only=True):
    """One pair. `victim_slowdown`, `mover_slowdown`: how many times as long each takes as alone, with 90 %
    intervals (1: undisturbed; None of a mover that moves nothing); `mover_mb_s`: its rate alone; `measured`:
    whether the pair itself was, else the model says it; `flags` of the prediction.
    """

    case: DeviceCase
    victim_slowdown: Interval
    mover_slowdown: Interval | None
    mover_mb_s: float | None
    measured: bool
    flags: tuple[str, ...] = ()


class PenaltyTable(msgspec.Struct, frozen=True, kw_only=True):
    """All pairs of one accelerator with `sms` SMs; `origin`: measured by runs, or of a virtual machine."""

    schema: str = SCHEMA
    version: int = 1
    elbowroom: str
    machine: str
    device: str
    sms: int
    origin: str
    penalties: tuple[Penalty, ...]


def penalty_table(part: GpuPart, machine: str) -> PenaltyTable:
    """The table of an accelerator's model; `machine` is its name."""
    model = GpuModel(part)
    predictions = model.predict(list(dict.fromkeys(_cases(part))))
    return PenaltyTable(
        elbowroom=__version__,
        machine=machine,
        device=part.device,
        sms=part.sms,
        origin=part.origin,
        penalties=tuple(_penalty(item) for item in predictions),
    )


def _cases(part: GpuPart) -> Iterator[DeviceCase]:
    """What was measured, and between those numbers of SMs the usual ones."""
    for item in part.measured:
        case = item.case
        if not case.mover:
            continue
        yield case
        family = next(errors for errors in part.errors if errors.family == case.family)
        for count in COUNTS if case.mover in SMS_OF else ():
            if family.sms_low <= count <= family.sms_high:
                yield msgspec.structs.replace(case, sms=count)


def _penalty(item: GpuPrediction) -> Penalty:
    mover = item.mover_kept
    return Penalty(
        case=item.case,
        victim_slowdown=_inverse(item.kept),
        mover_slowdown=None if mover is None else _inverse(mover),
        mover_mb_s=None if item.mover_alone is None else item.mover_alone.value,
        measured=MEASURED in item.flags,
        flags=tuple(flag for flag in item.flags if flag != MEASURED),
    )


def _inverse(kept: Interval) -> Interval:
    return Interval(value=1 / kept.value, low=1 / kept.high, high=1 / kept.low)
