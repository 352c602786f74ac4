"""Drift of the machine: baselines measured again at the end of the run beside those of the run."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from elbowroom.results.result import PointResult, Summary

if TYPE_CHECKING:
    from elbowroom.results.summary import Samples

Name = Literal["computation", "communication"]


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """One side alone: during the run (`alone`), and the median of the repetition at its end (`closing`)."""

    point: str
    side: Name
    alone: Summary
    closing: float

    @property
    def relative(self) -> float:
        """closing/alone of the medians, minus 1; infinite where alone is zero."""
        return self.closing / self.alone.median - 1 if self.alone.median else float("inf")

    @property
    def outside(self) -> bool:
        """Whether the end of the run lies outside d1 to d9 of the run."""
        return not self.alone.d1 <= self.closing <= self.alone.d9


def drifts(results: Sequence[PointResult], samples: Samples) -> tuple[Drift, ...]:
    """One drift per side that was measured again, in the order of `results`; void samples are left out.

    `samples.point` holds indices into `results`.
    """
    again: dict[tuple[int, str], list[float]] = {}
    rows = zip(samples.closing, samples.status, samples.point, samples.side, samples.value, strict=True)
    for closing, status, point, side, value in rows:
        if closing and status != "void" and math.isfinite(value):
            again.setdefault((int(point), side), []).append(float(value))
    result_drifts = []
    names: tuple[Name, Name] = ("computation", "communication")
    for index, result in enumerate(results):
        for name in names:
            key, alone = ("comp", result.comp.alone) if name == "computation" else ("comm", result.comm.alone)
            values = again.get((index, key))
            if alone is not None and values:
                result_drifts.append(
                    Drift(point=result.id, side=name, alone=alone, closing=statistics.median(values))
                )
    return tuple(result_drifts)
