"""The table [gpu] of a virtual machine: what its accelerator is made of (docs/reference/virtual-gpu.md).

Defaults are those of a device with the shape of an H200 NVL in a PCIe slot of eight lanes. Where each comes
from is in docs/reference/virtual-gpu.md.

The sides of a case of an accelerator, as the program is sent them (docs/reference/gpu-bench.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from elbowroom.errors import UsageError
from elbowroom.machine.gpu import Device, GpuClocks, GpuFacts, GpuLibrary, Link, Management
from elbowroom.plan.kernels import find

Positive = Annotated[float, Meta(gt=0, le=1e9)]
Units = Annotated[int, Meta(ge=1, le=64)]
Bytes = Annotated[int, Meta(ge=1, le=2**40)]
TileSide = Annotated[int, Meta(ge=16, le=1024)]

SMS_OF_UNIT = 2
"""SMs of a TPC: they come in pairs."""

ORIGIN = "virtual"


class Gpu(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An accelerator on the NIC's socket. Rates in MB/s, times in us.

    `gpcs`: TPCs of each GPC, two SMs each.

    Memory: `hbm` is the most that it carries, `hbm_latency_us` and `hbm_delay_us` its idle latency and its
    scale of waiting (virtual/network.py). An SM has `sm_bytes` outstanding there, and `product_bytes` of a
    matrix product, whose data come from the cache after `cache_latency_us`. `posted_bytes` of stores to the
    host wait in the device for each SM that issues them.

    Products: a tile of `tile` rows and columns takes `tile_us`, and `sm_tflops` for its arithmetic.

    Copies: `h2d`, `d2h`; `both` of them together when they run at once; `stores` to the host by SMs;
    `engine` inside the device, with a round trip of `engine_latency_us`. A copy takes `copy_us`, with the
    host `host_copy_us`, beside its bytes. `launch_us`: a launch in a chain of small kernels.
    """

    name: str = "virtual GPU"
    gpcs: Annotated[tuple[Units, ...], Meta(min_length=1, max_length=64)] = (9, 9, 9, 9, 8, 8, 7, 7)
    memory_gb: Positive = 141.0
    hbm: Positive = 4_800_000.0
    hbm_latency_us: Positive = 0.65
    hbm_delay_us: Positive = 0.148
    sm_bytes: Bytes = 38_000
    product_bytes: Bytes = 196_608
    cache_latency_us: Positive = 0.3
    posted_bytes: Bytes = 49_152
    tile: tuple[TileSide, TileSide] = (128, 256)
    tile_us: Positive = 1.86
    sm_tflops: Positive = 6.503
    h2d: Positive = 29_000.0
    d2h: Positive = 29_000.0
    both: Positive = 52_000.0
    stores: Positive = 27_000.0
    engine: Positive = 85_800.0
    engine_latency_us: Positive = 2.15
    copy_us: Positive = 0.65
    host_copy_us: Positive = 2.0
    launch_us: Positive = 3.0

    @property
    def sms(self) -> int:
        return SMS_OF_UNIT * sum(self.gpcs)

    @property
    def memory(self) -> int:
        """Bytes."""
        return int(self.memory_gb * 1e9)

    def facts(self, node: int) -> GpuFacts:
        """What a program would find: kernels and products are there, clocks and links are not known."""
        unknown = Management(driver=ORIGIN, link=Link(), clocks_mhz=GpuClocks())
        library = GpuLibrary(path=ORIGIN)
        return GpuFacts(
            cuda=ORIGIN,
            devices=1,
            device=Device(
                name=self.name, pci=ORIGIN, sms=self.sms, capability=90, memory=self.memory, node=node
            ),
            stand_in=False,
            batch_copies=True,
            management=unknown,
            compiler=library,
            gemm=library,
        )


WAYS = ("h2d", "d2h")
"""Directions of the link."""

LETTERS = "abc"

Kind = Literal["cores", "gemm", "triad", "chain", "copy", "messages", "sm_copy", "sm_idle", "sm_target"]

DIRECTIONS = {"copy": ("h2d", "d2h", "both", "d2d"), "sm_copy": ("hbm", "host")}
"""Of each kind that copies, the default first."""


class GpuSide(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A side; what another kind has is 0 or empty. `node` -1: memory of the host near the device; `pace_mb_s`
    0: as fast as it can; `sm_target` 0: planned for all SMs. `pairs`: SMs are held in pairs; `plan_others`:
    a product beside it is planned for the SMs that it leaves.
    """

    kind: Kind
    direction: str = ""
    bytes: int = 0
    node: int = -1
    engine: str = ""
    sms: int = 0
    pairs: bool = False
    plan_others: bool = False
    pace_mb_s: float = 0.0
    m: int = 0
    n: int = 0
    k: int = 0
    sm_target: int = 0
    launches: int = 0
    kernel: str = ""
    cores: tuple[int, ...] = ()
    cursor: int = 1
    core: int = -1
    peer_core: int = -1
    latency: bool = False

    @property
    def holds(self) -> int:
        return self.sms if self.kind in ("sm_idle", "sm_copy") else 0

    @property
    def left_free(self) -> int:
        """SMs that a product beside it is planned without."""
        return self.sms if self.kind == "sm_target" or self.plan_others else 0

    @property
    def way(self) -> str:
        return self.direction or DIRECTIONS.get(self.kind, ("",))[0]

    @property
    def ways(self) -> tuple[str, ...]:
        """The directions in which it uses the link."""
        if self.stores:
            return ("d2h",)
        if self.kind != "copy" or self.way == "d2d":
            return ()
        return WAYS if self.way == "both" else (self.way,)

    @property
    def stores(self) -> bool:
        """Whether its SMs store to the host."""
        return self.kind == "sm_copy" and self.way == "host"

    @property
    def passes(self) -> int:
        """How often each byte that it counts goes through the device's memory: twice in copies inside."""
        return 2 if self.kind in ("copy", "sm_copy") and not self.ways else 1

    def pace(self, most: float) -> float:
        """MB/s, at most `most`."""
        return min(self.pace_mb_s, most) if self.pace_mb_s > 0 else most


def sides_of(case: Mapping[str, Any]) -> dict[str, GpuSide]:
    """The sides of a case by letter. UsageError for what a virtual GPU does not know."""
    return {letter: _side(case[letter]) for letter in LETTERS if letter in case}


def _side(plain: Mapping[str, Any]) -> GpuSide:
    try:
        side = msgspec.convert(plain, GpuSide)
    except msgspec.ValidationError as error:
        raise _unknown(f"does not know this side: {error}", plain.get("kind")) from None
    if side.way not in DIRECTIONS.get(side.kind, (side.way,)):
        raise _unknown(f"knows no copies in the direction {side.way}", side.kind)
    if side.engine == "plain":
        raise _unknown("leaves copies inside the device to its copy engine", side.engine)
    kernel = find(side.kernel or "none")
    if side.kind == "cores" and kernel is None:
        raise _unknown("needs a kernel for the cores of the host", side.kernel)
    if kernel is not None and kernel.pool:
        raise _unknown("simulates no list of tasks", side.kernel)
    return side


def _unknown(message: str, value: object) -> UsageError:
    return UsageError(
        f"a virtual GPU {message}", field="case", value=str(value), hint="see `elbowroom help virtual-gpu`"
    )


def held(sides: Sequence[GpuSide]) -> int:
    """SMs that are held."""
    return sum(side.holds for side in sides)
