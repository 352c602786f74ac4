"""The computing kernels as data, for where no probe is at hand: to validate a plan, to give an arithmetic
intensity, to size working sets.

kernels.json is the probe's own table (core/kernels/kernel.cpp). `tools/kernel_table.py PROBE` writes it, and
a test compares it with the probe.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from elbowroom.errors import UsageError, closest

RateUnit = Literal["MB/s", "M/s", "Mflop/s"]

LEAST_STORE_FACTOR, MOST_STORE_FACTOR = 1.0, 2.0
"""Bytes on the memory bus for a byte of a plain store: 2 if its line is read before it is written
(write-allocate), 1 if the core avoids the read (docs/design/method.md, rule 9).
"""
ASSUMED_STORE_FACTOR = MOST_STORE_FACTOR
"""That of the table, and of machines on which it was not measured (results/stores.py)."""


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """What one item costs: `flops` (per repetition where `uses_cursor`), bytes read and written, bytes on the
    bus.

    Bus bytes add what the hardware moves besides: the write-allocate of plain stores, with the assumed store
    factor (method.md, rule 9); `moved` gives those of another factor.
    Cache-resident kernels stay in the core's own cache, or with `shared_cache` in the last-level one. Workers
    of a task pool (`pool`) move no memory of their own, but pass the lines of its list from core to core;
    their cursor is the most `nop` instructions between two polls.
    """

    name: str
    description: str
    rate_unit: RateUnit = msgspec.field(name="unit")
    flops: float
    bytes_read: float
    bytes_written: float
    bus_bytes: float
    arrays: int
    non_temporal: bool
    uses_cursor: bool
    cache_resident: bool
    shared_cache: bool
    pool: bool

    @property
    def algorithmic_bytes(self) -> float:
        """Bytes the algorithm reads and writes per item."""
        return self.bytes_read + self.bytes_written

    def moved(self, store_factor: float = ASSUMED_STORE_FACTOR) -> float:
        """Bytes per item on the memory bus, where a plain store moves `store_factor` times its bytes."""
        plain = 0.0 if self.non_temporal or not self.moves_memory else self.bytes_written
        return self.bus_bytes - (ASSUMED_STORE_FACTOR - store_factor) * plain

    def traffic(self, rate: float, store_factor: float = ASSUMED_STORE_FACTOR) -> float:
        """What goes over the memory bus at a rate in bytes of the algorithm, in the unit of the rate."""
        return rate * self.moved(store_factor) / self.algorithmic_bytes

    def bus_share(self, store_factor: float = ASSUMED_STORE_FACTOR) -> float:
        """Bytes of the algorithm per byte on the memory bus; of kernels that move memory only."""
        return self.algorithmic_bytes / self.moved(store_factor)

    @property
    def moves_memory(self) -> bool:
        """Whether it goes to memory at all (register-only and cache-resident kernels do not)."""
        return self.arrays > 0 and not self.cache_resident

    @property
    def register_only(self) -> bool:
        """Whether it uses only its core, to tell causes apart (docs/design/method.md, rules 15, 20)."""
        return self.arrays == 0 and not self.pool


def _table() -> dict[str, Kernel]:
    data = Path(__file__).with_name("kernels.json").read_bytes()
    return {kernel.name: kernel for kernel in msgspec.json.decode(data, type=tuple[Kernel, ...])}


KERNELS = _table()
"""By name, in the probe's order. One item is one 8-byte element, and of pools a poll or a wait of 5 ms;
FMA counts two flops per item.
"""

NONE = "none"

STORE_PAIRS = tuple(
    (kernel, KERNELS[f"{name}_nt"]) for name, kernel in KERNELS.items() if f"{name}_nt" in KERNELS
)
"""Kernels with plain stores, each with the one that does the same with non-temporal stores."""


def names() -> tuple[str, ...]:
    """Every kernel a plan may name, `none` (no computation) included."""
    return (*KERNELS, NONE)


def find(name: str) -> Kernel | None:
    """The kernel of that name, None for `none`; UsageError when there is no such kernel."""
    if name == NONE:
        return None
    if name not in KERNELS:
        raise UsageError("no such kernel", field="kernels", value=name, hint=closest(name, names()))
    return KERNELS[name]


def arithmetic_intensity(name: str, cursor: int = 1) -> float | None:
    """flop per byte moved by the algorithm (roofline; Denis et al. 2021, section 4.5); None without memory
    traffic.
    """
    kernel = find(name)
    if kernel is None or kernel.algorithmic_bytes == 0 or kernel.flops == 0:
        return None
    return kernel.flops * (cursor if kernel.uses_cursor else 1) / kernel.algorithmic_bytes


KERNEL_NAMES = {
    "triad": "TRIAD",
    "triad_nt": "TRIAD (non-temporal stores)",
    "triad_cursor": "TRIAD with cursor",
    "triad_cache": "TRIAD in cache",
    "triad_llc": "TRIAD in the last-level cache",
    "copy": "COPY",
    "copy_nt": "COPY (non-temporal stores)",
    "memset_nt": "non-temporal memset",
    "load": "load",
    "load_cache": "load in cache",
    "prime": "prime counting",
    "fma": "FMA",
    "fma128": "FMA (128 bit)",
    "fma256": "FMA (256 bit)",
    "fma512": "FMA (512 bit)",
    "polling": "polling workers",
    "paused": "paused workers",
}
"""As the literature writes them."""


def kernel_name(kernel: str) -> str:
    """How sentences call a kernel."""
    return KERNEL_NAMES.get(kernel, kernel)
