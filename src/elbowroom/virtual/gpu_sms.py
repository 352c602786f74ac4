"""SMs of a virtual GPU: which of them are held, how many clusters of blocks fit on the others, and in how
many waves the tiles of a matrix product run.

- **Holding**: each block that holds an SM goes to the GPC with the most free SMs, of these to the one that
  has the fewest held; in pairs it takes both SMs of a TPC.
- **Clusters**: the blocks of a product run in clusters whose SMs are all in one GPC. What is left of a GPC is
  not used. The library plans for a number of SMs: the largest cluster of 8, 4 or 2 blocks that divides this
  number and of which as many fit on the empty device.
- **Waves**: a product has a block for each tile; clusters start as others end. All tiles take equally long,
  so that T tiles on S SMs take ceil(T / S) times.

With pairs, the GPCs that are taken are those of the SM numbers which the source of the published figures has
recorded (docs/reference/virtual-gpu.md). The rule for clusters is an assumption.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom.virtual.gpu import SMS_OF_UNIT, Gpu

CLUSTERS = (8, 4, 2)


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """How a product is planned: `clusters` of `size` blocks that may run at once."""

    size: int
    clusters: int


def free_sms(gpu: Gpu, held: int, *, pairs: bool = False) -> tuple[int, ...]:
    """SMs of each GPC that are free while so many are held, at most all of them, one by one or in pairs."""
    sizes = [SMS_OF_UNIT * count for count in gpu.gpcs]
    free = list(sizes)
    left = held
    while left > 0:
        gpc = min(range(len(free)), key=lambda gpc: (-free[gpc], sizes[gpc]))
        taken = min(left, SMS_OF_UNIT if pairs else 1)
        free[gpc] -= taken
        left -= taken
    return tuple(free)


def slots(free: Sequence[int], size: int) -> int:
    """Clusters of that size that fit at once."""
    return sum(count // size for count in free)


def grid(gpu: Gpu, target: int) -> Grid:
    """The plan of a product for so many SMs of an empty device."""
    empty = free_sms(gpu, 0)
    for size in CLUSTERS:
        if target % size == 0 and slots(empty, size) >= target // size:
            return Grid(size=size, clusters=target // size)
    return Grid(size=1, clusters=target)


def waves(gpu: Gpu, tiles: int, target: int, free: Sequence[int]) -> int:
    """Times a tile's that so many tiles take, planned for `target` SMs while `free` of each GPC are free; 0:
    none of its clusters fits.
    """
    plan = grid(gpu, target)
    at_once = plan.size * min(plan.clusters, slots(free, plan.size))
    return -(-tiles // at_once) if at_once else 0


def tiles(gpu: Gpu, m: int, n: int) -> int:
    """Of a product of m rows and n columns."""
    return -(-m // gpu.tile[0]) * -(-n // gpu.tile[1])
