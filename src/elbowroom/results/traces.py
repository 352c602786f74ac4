"""What frequency traces say."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from elbowroom.results.result import PointResult


def mean_mhz(items: Sequence[PointResult], phase: str, role: str) -> float | None:
    """Mean frequency of the cores that play a role during a phase, MHz; None where none was readable."""
    traces = [trace for item in items for trace in item.traces if trace.phase == phase and trace.role == role]
    values = [khz / 1000 for trace in traces for khz in trace.khz]
    return fmean(values) if values else None
