"""A job of an accelerator, as the table `[gpu]` of job.toml: a kernel, and what is moved beside it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from elbowroom import display
from elbowroom.advise.job import SizeText, as_written
from elbowroom.advise.steps import MEGA, overlapped
from elbowroom.documents import TomlFormat
from elbowroom.errors import UsageError
from elbowroom.models.flow.law import Array
from elbowroom.models.gpu.case import COUNTS, LINKS, DeviceCase
from elbowroom.models.gpu.model import GpuDraws, GpuModel
from elbowroom.quantities import plural
from elbowroom.stats.interval import Interval

Positive = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]
Moves = Literal["h2d", "d2h", "both", "d2d"]
Way = Literal["copy", "sm_copy", "planned"]

PAGE = "`elbowroom help gpu-models`"


class GpuSetup(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, order=True):
    """Who moves the bytes: a copy engine (copy), `sms` SMs beside the kernel (sm_copy), or `sms` SMs that the
    kernel was planned without (planned). `node`: NUMA node of the pinned buffer, -1: none.
    """

    way: Way
    sms: int = 0
    node: int = -1

    def text(self) -> str:
        """For people."""
        sms = plural(self.sms, "SM")
        names = {"copy": "a copy engine", "sm_copy": f"{sms} beside the kernel",
                 "planned": f"{sms} that the kernel is planned without"}  # fmt: skip
        return names[self.way] + (f", buffer on node {self.node}" if self.node >= 0 else "")


class NcclCollective(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The collective whose line `advise -o FILE.conf` writes for NCCL's tuner: for messages of `minbytes` to
    `maxbytes`, on `nodes` nodes with `ranks` ranks in all (-1: any).
    """

    colltype: Literal["broadcast", "reduce", "allgather", "reducescatter", "allreduce"]
    algorithm: (
        Literal["tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"] | None
    ) = None
    protocol: Literal["ll", "ll128", "simple"] | None = None
    minbytes: Annotated[int, Meta(ge=0)] = 0
    maxbytes: Annotated[int, Meta(ge=1)] = 4294967295
    nodes: Annotated[int, Meta(ge=-1)] = -1
    ranks: Annotated[int, Meta(ge=-1)] = -1


class GpuJob(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A step: `victim` computes for `seconds` alone, and `bytes` are moved beside it (`moves`: between host
    and device, or inside it). `now`: how it runs, if it does; `ways`, `sms`, `pace_mb_s`: what it may
    choose. Up to `cores` cores compute on data of `comp_node` meanwhile, and copies shall keep `keep`.
    `nccl`: the collective that moves the bytes.
    """

    victim: Literal["gemm", "triad", "chain"]
    seconds: Positive
    bytes: Positive
    moves: Moves
    shape: tuple[Count, ...] = ()
    now: GpuSetup | None = None
    ways: tuple[Way, ...] = ("copy", "sm_copy", "planned")
    sms: tuple[Count, ...] = ()
    pace_mb_s: Annotated[float, Meta(ge=0)] = 0.0
    cores: Annotated[int, Meta(ge=0)] = 0
    comp_node: Annotated[int, Meta(ge=0)] = 0
    keep: Annotated[float, Meta(gt=0, le=1)] = 0.95
    nccl: NcclCollective | None = None


class GpuTables(msgspec.Struct, frozen=True):
    """The tables of job.toml of a job of an accelerator."""

    gpu: GpuJob


GpuJobFile: type[msgspec.Struct] = as_written(
    GpuTables, gpu=(as_written(GpuJob, bytes=(Positive | SizeText,)),)
)
"""The type of job.toml: a job in which sizes may be texts."""


def is_gpu_job(data: dict[str, Any]) -> bool:
    """Whether plain data is that of a job of an accelerator."""
    return "gpu" in data


GPU_JOB = TomlFormat(
    kind=GpuTables,
    field="job",
    of="a job of an accelerator",
    inside="gpu",
    sizes=("gpu.bytes",),
    page=PAGE,
)


def decode(text: str, where: str) -> GpuJob:
    """The job of a TOML text with the table `[gpu]`; `where` names it in errors, which also tell field, value
    and hint. Sizes may be `512MiB`.
    """
    job = GPU_JOB.decode(text, where).gpu
    if not job.ways:
        raise UsageError(
            "leaves nothing to choose", field="gpu.ways", value=[], hint='give ["copy", "sm_copy"]'
        )
    return job


CONTRAST = "the plan's and the copies' losses were measured apart, and are taken together"


class GpuSteps(msgspec.Struct, frozen=True, kw_only=True):
    """Of S setups, (1 + D, S): totals (s), what both sides keep, MB/s of the mover alone; flags of each."""

    setups: tuple[GpuSetup, ...]
    totals: Array
    kept: Array
    mover_kept: Array
    mover_alone: Array
    flags: tuple[tuple[str, ...], ...]

    def place(self, setup: GpuSetup) -> int:
        """Where a setup is among them."""
        return self.setups.index(setup)


def setups_of(model: GpuModel, job: GpuJob) -> tuple[list[GpuSetup], dict[str, int]]:
    """Every setup that the job may choose, the present one with them, and how many cannot be answered, by
    reason.
    """
    left_out: Counter[str] = Counter()
    chosen: list[GpuSetup] = []
    for way in job.ways:
        for setup in _ways(model, job, way):
            try:
                for case in cases_of(job, setup):
                    model.resolved(case)
            except UsageError as error:
                left_out[f"{setup.way}: {error.sentence()}"] += 1
            else:
                chosen.append(setup)
    if job.now is not None:
        for case in cases_of(job, job.now):
            model.resolved(case)
        if job.now not in chosen:
            chosen.insert(0, job.now)
    return chosen, dict(left_out)


def _ways(model: GpuModel, job: GpuJob, way: Way) -> list[GpuSetup]:
    if way == "copy":
        known = model.nodes(job.moves) if job.moves in LINKS else ()
        # Copies from a buffer on no known node are no choice beside those from known ones.
        nodes = [node for node in known if node >= 0] or [-1]
        return [GpuSetup(way="copy", node=node) for node in nodes]
    if job.moves in ("h2d", "both"):
        return []
    counts = job.sms or tuple(count for count in COUNTS if count < model.part.sms)
    return [GpuSetup(way=way, sms=count) for count in counts]


def cases_of(job: GpuJob, setup: GpuSetup) -> tuple[DeviceCase, ...]:
    """The cases whose product is what the victim keeps; of the last one the mover's rates count.

    UsageError for SMs that move data to the device, which no case has.
    """
    common = {"victim": job.victim, "shape": job.shape}
    if setup.way == "copy":
        return (_case(**common, mover="copy", direction=job.moves, node=setup.node),)
    if job.moves in ("h2d", "both"):
        raise UsageError(
            "is not what SMs were measured with", field="gpu.moves", value=job.moves, hint="give d2h or d2d"
        )
    where = "host" if job.moves == "d2h" else "hbm"
    copy = _case(**common, mover="sm_copy", direction=where, sms=setup.sms, pace_mb_s=job.pace_mb_s)
    if setup.way == "sm_copy":
        return (copy,)
    plan = _case(**common, mover="sm_target", sms=setup.sms)
    return (plan, _case(**common, mover="sm_idle", sms=setup.sms), copy)


def _case(**fields: object) -> DeviceCase:
    return msgspec.convert(fields, DeviceCase)


def steps(model: GpuModel, job: GpuJob, setups: Sequence[GpuSetup]) -> GpuSteps:
    """The steps of these setups, which all can be answered."""
    each = [cases_of(job, setup) for setup in setups]
    cases = list(dict.fromkeys(case for group in each for case in group))
    draws = model.draws(cases)
    flags = dict(zip(cases, (item.flags for item in model.predict(cases)), strict=True))
    kept = np.stack([_kept(draws, [cases.index(case) for case in group]) for group in each], axis=1)
    movers = [cases.index(group[-1]) for group in each]
    alone, together = draws.mover_alone[:, movers], draws.mover_together[:, movers]
    mover_kept = together / np.maximum(alone, 1e-9)
    t_comm = job.bytes / (np.maximum(alone, 1e-9) * MEGA)
    return GpuSteps(
        setups=tuple(setups),
        totals=overlapped(
            np.full_like(t_comm, job.seconds), t_comm, 1 / kept, 1 / np.maximum(mover_kept, 1e-9)
        ),
        kept=kept,
        mover_kept=mover_kept,
        mover_alone=alone,
        flags=tuple(
            tuple(dict.fromkeys(flag for case in group for flag in flags[case]))
            + ((CONTRAST,) if len(group) > 1 else ())
            for group in each
        ),
    )


def _kept(draws: GpuDraws, places: Sequence[int]) -> Array:
    if len(places) == 1:
        return draws.kept[:, places[0]]
    plan, idle, copy = (draws.kept[:, place] for place in places)
    both: Array = plan * np.minimum(copy / idle, 1.0)
    return both


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
    step's time that it saves beside the best other value, with its 90 % interval; `significant`: whether
    that leaves out 0; `alike`: other values that cannot be told from it.
    """

    question: str
    advised: str | int | None
    reason: str
    gain: Interval | None = None
    significant: bool = False
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
    significant: bool
    sentence: str
    answers: tuple[GpuAnswer, ...]
    configurations: tuple[GpuConfiguration, ...]
    left_out: dict[str, int] = {}
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"GpuAdvice(device={self.device!r}, model={self.model!r})"

    __str__, _repr_html_ = display.text, display.html
