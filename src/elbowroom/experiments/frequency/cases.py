"""Which points belong together."""

from __future__ import annotations

from elbowroom.results.result import PointResult

CaseKey = tuple[str, int, int, int, bool | None, str | None]


def case_of(item: PointResult) -> CaseKey:
    """What points of one curve over the number of cores share."""
    return item.kernel, item.size, item.comm_node, item.comm_core, item.turbo, item.governor


def is_constant(item: PointResult) -> bool:
    """Whether communication was measured alone at constant frequencies."""
    return item.core_khz is not None or item.uncore_khz is not None


def condition_text(item: PointResult) -> str:
    """`, without turbo, governor powersave`; empty as the machine is."""
    turbo = "" if item.turbo is None else f", {'with' if item.turbo else 'without'} turbo"
    return turbo + ("" if item.governor is None else f", governor {item.governor}")
