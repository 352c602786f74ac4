"""The computing kernels as data: the same names and costs as the probe's table (`probe kernels`).

Needed where no probe is at hand: to validate a plan, to say an arithmetic intensity, to size working sets. A
test holds the two tables together.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Literal

import msgspec

from elbowroom.errors import UsageError

RateUnit = Literal["MB/s", "M/s", "Mflop/s"]


class Kernel(msgspec.Struct, frozen=True, kw_only=True):
    """What one item costs: `flops` (per repetition where `uses_cursor`), bytes read and written, bytes on the
    bus.

    Bus bytes add what the hardware moves besides: the write-allocate of plain stores (METHOD.md, rule 9).
    Cache-resident kernels stay in the core's own cache, or with `shared_cache` in the last-level one. Workers
    of a task pool (`pool`) move no memory of their own, but pass the lines of its list from core to core;
    their cursor is the most `nop` instructions between two polls.
    """

    name: str
    rate_unit: RateUnit
    flops: float
    bytes_read: float
    bytes_written: float
    bus_bytes: float
    arrays: int
    non_temporal: bool = False
    uses_cursor: bool = False
    cache_resident: bool = False
    shared_cache: bool = False
    pool: bool = False

    @property
    def algorithmic_bytes(self) -> float:
        """Bytes the algorithm reads and writes per item."""
        return self.bytes_read + self.bytes_written

    @property
    def moves_memory(self) -> bool:
        """Whether it goes to memory at all (register-only and cache-resident kernels do not)."""
        return self.arrays > 0 and not self.cache_resident

    @property
    def register_only(self) -> bool:
        """Whether it uses nothing but its core: what tells causes apart (METHOD.md, rules 15 and 20)."""
        return self.arrays == 0 and not self.pool


def _memory(
    name: str, flops: float, read: float, written: float, bus: float, arrays: int, **more: bool
) -> Kernel:
    return Kernel(
        name=name,
        rate_unit="MB/s",
        flops=flops,
        bytes_read=read,
        bytes_written=written,
        bus_bytes=bus,
        arrays=arrays,
        **more,
    )


def _registers(name: str, unit: RateUnit, flops: float, **more: bool) -> Kernel:
    return Kernel(
        name=name, rate_unit=unit, flops=flops, bytes_read=0, bytes_written=0, bus_bytes=0, arrays=0, **more
    )


# One item is one 8-byte element; FMA counts two flops per item. Of pools it is a poll, or a wait of 5 ms.
KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        _registers("prime", "M/s", 0),
        _registers("fma", "Mflop/s", 2),
        _registers("fma128", "Mflop/s", 2),
        _registers("fma256", "Mflop/s", 2),
        _registers("fma512", "Mflop/s", 2),
        _memory("memset_nt", 0, 0, 8, 8, 1, non_temporal=True),
        _memory("load", 1, 8, 0, 8, 1),
        _memory("copy", 0, 8, 8, 24, 2),
        _memory("triad", 2, 16, 8, 32, 3),
        _memory("copy_nt", 0, 8, 8, 16, 2, non_temporal=True),
        _memory("triad_nt", 2, 16, 8, 24, 3, non_temporal=True),
        _memory("triad_cursor", 2, 16, 8, 32, 3, uses_cursor=True),
        _memory("load_cache", 1, 8, 0, 0, 1, cache_resident=True),
        _memory("triad_cache", 2, 16, 8, 0, 3, cache_resident=True),
        _memory("triad_llc", 2, 16, 8, 0, 3, cache_resident=True, shared_cache=True),
        _registers("polling", "M/s", 0, uses_cursor=True, pool=True),
        _registers("paused", "M/s", 0, pool=True),
    )
}

NONE = "none"


def names() -> tuple[str, ...]:
    """Every kernel a plan may name, `none` (no computation) included."""
    return (*KERNELS, NONE)


def closest(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'? known: a, b, c`, the first half only where something is close."""
    known = sorted(known)
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}known: {', '.join(known)}"


def find(name: str) -> Kernel | None:
    """The kernel of that name, None for `none`; UsageError when there is no such kernel."""
    if name == NONE:
        return None
    if name not in KERNELS:
        raise UsageError("no such kernel", field="kernels", value=name, mend=closest(name, names()))
    return KERNELS[name]


def arithmetic_intensity(name: str, cursor: int = 1) -> float | None:
    """flop per byte moved by the algorithm (roofline; Denis et al. 2021, section 4.5); None without memory
    traffic.
    """
    kernel = find(name)
    if kernel is None or kernel.algorithmic_bytes == 0 or kernel.flops == 0:
        return None
    return kernel.flops * (cursor if kernel.uses_cursor else 1) / kernel.algorithmic_bytes
