"""Blue and red points (METHOD.md, rule 20): only the computation slows while the bandwidth is far from
saturated, or both slow, as where the memory saturates (Vuppalapati et al., "Understanding the Host Network",
SIGCOMM 2024).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from elbowroom.experiments.wording import Values, hit
from elbowroom.plan.kernels import find
from elbowroom.stats.result import PointResult, Summary

Regime = Literal["blue", "red"]
SATURATED = 0.8  # of the highest traffic seen on the node; our choice for what the paper calls "far from"


def traffic(item: PointResult, style: Literal["alone", "together"]) -> float | None:
    """MB/s over the memory bus: what the kernel moves with its write-allocates, and together with it each
    byte of a message once (copies through shared memory move more). None for a kernel that does not go to
    memory.
    """
    kernel = find(item.kernel)
    comp: Summary | None = getattr(item.comp, style)
    if kernel is None or not kernel.moves_memory or comp is None:
        return None
    moved = comp.median * kernel.bus_bytes / kernel.algorithmic_bytes
    if style == "alone":
        return moved
    comm = item.comm.together
    if comm is None:
        return None
    return moved + (item.size / comm.median if comm.unit == "us" else comm.median)


def highest(results: Sequence[PointResult]) -> dict[int, float]:
    """The highest traffic seen on each NUMA node of the computations' data, MB/s."""
    found: dict[int, float] = {}
    for item in results:
        for seen in (traffic(item, "alone"), traffic(item, "together")):
            if seen is not None:
                found[item.comp_node] = max(found.get(item.comp_node, 0.0), seen)
    return found


def regime(item: PointResult, peaks: dict[int, float]) -> Regime | None:
    """Red: both sides suffer. Blue: only the computation does, and both together move less than 0.8 of the
    highest traffic seen on the node. None else, and where the traffic is not known.
    """
    moved = traffic(item, "together")
    if moved is None or not hit(item, "comp"):
        return None
    if hit(item, "comm"):
        return "red"
    return "blue" if moved < SATURATED * peaks[item.comp_node] else None


def regimes_over(
    group: Sequence[PointResult],
    peaks: dict[int, float],
    x: Callable[[PointResult], float],
    at: Callable[[float], str],
) -> tuple[str, Values]:
    """A sentence about where along an axis points are red and blue, and the places as `red` and `blue`; an
    empty sentence where none is.
    """
    sentences = []
    values: Values = {}
    explained = {
        "red": "both sides slow, as where the memory saturates (red)",
        "blue": "only the computation slows, while the bandwidth is far from saturated (blue)",
    }
    for name, what in explained.items():
        places = sorted(x(item) for item in group if regime(item, peaks) == name)
        if len(places) == 1:
            sentences.append(f"At {at(places[0])} {what}.")
        elif places:
            between = f"{at(places[0])} to {at(places[-1])}"
            sentences.append(f"At {len(places)} of {len(group)} points, {between}, {what}.")
        if places:
            values[name] = ",".join(f"{place:g}" for place in places)
    return " ".join(sentences), values
