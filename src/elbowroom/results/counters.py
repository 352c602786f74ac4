"""Whether hardware counters agree with the bytes that the kernels are known to move (method.md, rule 18)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from elbowroom.plan.kernels import LEAST_STORE_FACTOR, MOST_STORE_FACTOR, Kernel

DISAGREES = 0.2  # docs/design/method.md, rule 18
LINE = 64  # bytes of a cache line, which a miss of the last level brings


def ratios(kernel: Kernel, record: Mapping[str, Any]) -> dict[str, list[float]]:
    """Counter over counted bytes in each phase of a repetition in which only rank 0 computes and nobody
    communicates (`record`: docs/reference/protocol.md, `repetition`), by name of the counter; nothing of a
    counter that was absent.

    Misses of the last level bring what is read and, before plain stores, what is written (write-allocate)
    unless the core avoids that. Of the byte counts that are possible, the one closest to the counter counts.
    Kernels that do not go to memory, and arrays that partly stay in the cache, say nothing about a counter.
    """
    ratios: dict[str, list[float]] = {}
    if not kernel.moves_memory or "working_set_small" in record.get("flags", ()):
        return ratios
    least, most = kernel.moved(LEAST_STORE_FACTOR), kernel.moved(MOST_STORE_FACTOR)
    read = kernel.bytes_read, most - kernel.bytes_written
    for phase in record.get("phases", ()):
        items = phase.get("comp", {}).get("items_all", 0)
        if phase["phase"] != "A" or not items:
            continue
        observed = phase.get("observed", {})
        misses = observed.get("counters", {}).get("llc_misses")
        if misses is not None and read[0] > 0:
            ratios.setdefault("llc_misses", []).append(_to_nearest(misses * LINE / items, *read))
        # The whole machine's bytes: what other ranks compute is not in rank 0's items. Rank 0 is the first.
        moved = observed.get("memory_bytes", {}).get("total")
        if moved is not None and not any("comp" in other for other in phase.get("ranks", ())[1:]):
            ratios.setdefault("memory_bytes", []).append(_to_nearest(moved / items, least, most))
    return ratios


def _to_nearest(counted: float, least: float, most: float) -> float:
    """A count over the nearest of the possible ones."""
    return counted / min(max(counted, least), most)


def suspects(by_counter: Mapping[str, Sequence[float]]) -> tuple[str, ...]:
    """The counters whose median ratio to the counted bytes is more than 20 % off, by name."""
    return tuple(
        name for name, values in by_counter.items() if values and abs(median(values) - 1) > DISAGREES
    )
