"""The table [gpu] of a virtual machine: what its accelerator is made of (docs/reference/virtual-gpu.md).

Defaults are those of a device with the shape of an H200 NVL in a PCIe slot of eight lanes. Where each comes
from is in docs/reference/virtual-gpu.md.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from elbowroom.machine.gpu import Clocks, Device, GpuFacts, GpuLibrary, Link, Management

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
        """All SMs."""
        return SMS_OF_UNIT * sum(self.gpcs)

    @property
    def memory(self) -> int:
        """Bytes."""
        return int(self.memory_gb * 1e9)

    def facts(self, node: int) -> GpuFacts:
        """What a program would find: kernels and products are there, clocks and links are not known."""
        unknown = Management(driver=ORIGIN, link=Link(), clocks_mhz=Clocks())
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
