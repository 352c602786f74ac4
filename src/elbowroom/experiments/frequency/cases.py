"""Which points belong together."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.results.result import PointResult

CaseKey = tuple[str, int, int, int, bool | None, str | None]


def case_of(item: PointResult) -> CaseKey:
    """What points of one curve over the number of cores share."""
    return item.kernel, item.size, item.comm_node, item.comm_core, item.turbo, item.governor


def spread(group: Sequence[PointResult]) -> list[PointResult]:
    """Of the points of one curve those with the fewest, the middle and the most cores: what is said and drawn
    point by point.
    """
    counts = sorted({item.n for item in group})
    chosen = {counts[0], counts[(len(counts) - 1) // 2], counts[-1]} if counts else set()
    return [item for item in group if item.n in chosen]


def is_constant(item: PointResult) -> bool:
    """Whether communication was measured alone at constant frequencies."""
    return item.core_khz is not None or item.uncore_khz is not None


def condition_text(item: PointResult) -> str:
    """`, without turbo, governor powersave`; empty as the machine is."""
    turbo = "" if item.turbo is None else f", {'with' if item.turbo else 'without'} turbo"
    return turbo + ("" if item.governor is None else f", governor {item.governor}")
