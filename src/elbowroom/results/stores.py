"""How many bytes a plain store moves over the memory bus, from kernels that differ only in their stores.

Where memory is saturated, `triad` and `triad_nt` move as many bytes over the bus per second. The useful rate
of `triad` is then 3/4 of that of `triad_nt` if the line of a plain store is read before it is written (store
factor 2), and the same if the core avoids the read (factor 1). With fewer cores the latency of the cores
limits the rates, which say nothing about the bus (docs/design/method.md, rule 9).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from elbowroom.plan.kernels import (
    ASSUMED_STORE_FACTOR,
    LEAST_STORE_FACTOR,
    MOST_STORE_FACTOR,
    STORE_PAIRS,
    Kernel,
)
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Summary, WithInterval
from elbowroom.stats.signed_ranks import FEWEST

SATURATED = 2 / 3
"""Rate per core, over that of the fewest cores, below which memory limits the rate (our choice)."""
MIX = 0.05
"""Allowance for the bandwidth of memory itself, which depends on its mix of reads and writes (our choice)."""
WIDEST = 0.75
"""The widest interval that determines a factor, before it is cut at 1 and 2 (our choice)."""


class StoreFactor(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """Bytes on the memory bus for a byte of a plain store, from 1 to 2. `reason`: how it was measured, with a
    95 % interval, or why it is assumed.
    """

    value: float = ASSUMED_STORE_FACTOR
    low: float | None = None
    high: float | None = None
    source: Literal["assumed", "measured"] = "assumed"
    reason: str

    @property
    def measured(self) -> float | msgspec.UnsetType:
        """Its value if it was measured."""
        return self.value if self.source == "measured" else msgspec.UNSET

    @property
    def sentence(self) -> str:
        """What is known of it."""
        if self.bounds is None:
            return (
                "Bytes on the memory bus count a plain store twice, as a read and a write. "
                f"This is an assumption: {self.reason}."
            )
        return (
            f"A plain store moves {self.value:.2f} ({self.text()}) times its bytes over the memory bus here: "
            f"{self.reason}. Traffic is counted with this factor."
        )


def infer(
    plain_kernel: Kernel,
    plain: Mapping[int, Summary],
    non_temporal: Mapping[int, Summary],
) -> StoreFactor:
    """The store factor from the rates (MB/s of the algorithm's bytes, all cores together) of a kernel and of
    the one with non-temporal stores, by number of cores.

    Those of the most cores decide if both saturate memory there. The interval also allows for MIX, and is cut
    at 1 and 2: a line is read once or not at all.
    """
    name = plain_kernel.name
    counts = sorted(plain.keys() & non_temporal.keys())
    if len(counts) < 2:
        return StoreFactor(reason=f"{name} and {name}_nt need two numbers of cores, to show saturated memory")
    few, most = counts[0], counts[-1]
    if not all(_saturates(rates, few, most) for rates in (plain, non_temporal)):
        return StoreFactor(reason=f"{name} and {name}_nt do not saturate memory on {most} cores")
    slow, fast = plain[most].bounds, non_temporal[most].bounds
    if slow is None or fast is None or slow[0] <= 0:
        return StoreFactor(reason=f"{name} and {name}_nt have fewer than {FEWEST} repetitions")
    ratios = (
        fast[0] / slow[1] / (1 + MIX),
        non_temporal[most].median / plain[most].median,
        fast[1] / slow[0] * (1 + MIX),
    )
    low, value, high = (_factor(plain_kernel, ratio) for ratio in ratios)
    if high < LEAST_STORE_FACTOR or low > MOST_STORE_FACTOR:
        reason = f"{name}_nt reaches {ratios[1]:.2f} times the rate of {name}, which reads cannot explain"
        return StoreFactor(reason=reason)
    if high - low > WIDEST:
        return StoreFactor(reason=f"{name} and {name}_nt determine it to {low:.2f} to {high:.2f} only")
    low, value, high = (min(max(end, LEAST_STORE_FACTOR), MOST_STORE_FACTOR) for end in (low, value, high))
    reason = f"{name}_nt reaches {ratios[1]:.2f} times the rate of {name} on {most} cores"
    return StoreFactor(value=value, low=low, high=high, source="measured", reason=reason)


def _saturates(rates: Mapping[int, Summary], few: int, most: int) -> bool:
    return rates[most].median / most < SATURATED * rates[few].median / few


def _factor(kernel: Kernel, ratio: float) -> float:
    """From the rate with non-temporal stores over that with plain stores, at the same bytes on the bus."""
    return (kernel.algorithmic_bytes * ratio - kernel.bytes_read) / kernel.bytes_written


def store_factor(results: Sequence[PointResult]) -> StoreFactor | None:
    """That of the machine of these points, whose computing cores all use memory of their own socket: the
    narrowest that was measured, or why none was. None if they have no kernel with both kinds of stores.
    """
    factors = []
    for plain, non_temporal in STORE_PAIRS:
        places = _rates(results, plain), _rates(results, non_temporal)
        factors += [infer(plain, places[0][at], places[1][at]) for at in places[0] if at in places[1]]
    measured = [one for one in factors if one.source == "measured"]
    return min(measured, key=lambda one: one.width or 0.0) if measured else factors[0] if factors else None


def _rates(results: Sequence[PointResult], kernel: Kernel) -> dict[object, dict[int, Summary]]:
    """Rates of the computation alone by number of cores, for each placement and setting of the machine."""
    places: dict[object, dict[int, Summary]] = {}
    for item in results:
        alone = item.comp.alone
        if item.kernel != kernel.name or alone is None or not _usable(item):
            continue
        at = (item.comp_node, item.n_other, item.core_khz, item.uncore_khz, item.turbo, item.governor)
        # Computation alone does not depend on the message: of several points the first one stands for all.
        places.setdefault(at, {}).setdefault(item.n, alone)
    return places


def _usable(item: PointResult) -> bool:
    spoilt = {"working_set_small", "scheduling"}.intersection(item.flags)
    alike = item.workload.facts.explainable and item.processes == "node"
    return item.status == "ok" and alike and not spoilt


def with_store_factor(results: Sequence[PointResult], factor: StoreFactor | None) -> list[PointResult]:
    """The points with the factor if it was measured."""
    if factor is None or factor.source == "assumed":
        return list(results)
    return [msgspec.structs.replace(item, store_factor=factor.value) for item in results]


def of_one_machine(results: Iterable[PointResult]) -> float | msgspec.UnsetType:
    """The factor that a run of these points, which are all of one machine, measured."""
    return next((item.store_factor for item in results if item.store_factor), msgspec.UNSET)


def finding(factor: StoreFactor) -> Finding:
    """A sentence on the factor of a run that could measure it."""
    values: dict[str, float | int | str | None] = {
        "store_factor": factor.value,
        "low": factor.low,
        "high": factor.high,
        "source": factor.source,
    }
    return Finding(key="store-factor", level="note", text=factor.sentence, values=values)
