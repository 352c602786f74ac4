"""A job of an accelerator, as the table `[gpu]` of job.toml: a kernel, and what is moved beside it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from elbowroom.advise.job import SizeText, as_written
from elbowroom.documents import check_keys, convert, parse_toml
from elbowroom.errors import UsageError
from elbowroom.quantities import parse_size, plural

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


def decode(text: str, where: str) -> GpuJob:
    """The job of a TOML text with the table `[gpu]`; `where` names it in errors, which also tell field, value
    and hint. Sizes may be `512MiB`.
    """
    data = parse_toml(text, field="job", where=where)
    check_keys(data, ("gpu",), of="a job of an accelerator", where=where)
    table = data["gpu"]
    if isinstance(table, dict):
        check_keys(table, GpuJob.__struct_fields__, of="gpu", where=where, prefix="gpu.")
        if isinstance(table.get("bytes"), str):
            table["bytes"] = float(parse_size(table["bytes"], "gpu.bytes"))
    job = convert(data, GpuTables, where=where, subject="job", page=PAGE).gpu
    if not job.ways:
        raise UsageError(
            "leaves nothing to choose", field="gpu.ways", value=[], hint='give ["copy", "sm_copy"]'
        )
    return job
