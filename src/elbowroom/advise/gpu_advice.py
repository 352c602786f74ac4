"""Advice for a job of an accelerator, as data."""

from __future__ import annotations

import msgspec

from elbowroom.advise.gpu_job import GpuJob, GpuSetup
from elbowroom.stats.interval import Interval

SCHEMA = "elbowroom/gpu-advice"


class GpuConfiguration(msgspec.Struct, frozen=True, kw_only=True):
    """One way to run a step and its predicted time (s) with its 90 % interval: what both sides keep, the
    mover's rate alone (MB/s), and the model's flags.
    """

    setup: GpuSetup
    total: Interval
    kept: float
    mover_kept: float
    mover_alone: float
    flags: tuple[str, ...] = ()


class GpuAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one question: `sms` (how many SMs to leave to communication), `way` (copy engine or
    kernel), `node` (where the pinned buffer is), `cores` (how many may compute beside the copies).

    `advised`: the best value, None where it cannot be told (n/a), and `reason` why; `gain`: the share of the
    step's time that it saves beside the best other value, with its 90 % interval; `sure`: whether that leaves
    out 0; `alike`: other values that cannot be told from it.
    """

    question: str
    advised: str | int | None
    reason: str
    gain: Interval | None = None
    sure: bool = False
    alike: tuple[str | int, ...] = ()


class GpuAdvice(msgspec.Struct, frozen=True, kw_only=True):
    """How a step of an accelerator should run: the best setup, what it saves beside the present one (None
    without one), and an answer to each question.
    """

    schema: str = SCHEMA
    version: int = 1
    elbowroom: str
    model: str
    device: str
    sms: int
    origin: str
    job: GpuJob
    now: GpuConfiguration | None
    advised: GpuConfiguration
    gain: Interval | None
    sure: bool
    sentence: str
    answers: tuple[GpuAnswer, ...]
    configurations: tuple[GpuConfiguration, ...]
    left_out: dict[str, int] = {}
    notes: tuple[str, ...] = ()
