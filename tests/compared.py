"""Results as `compare` takes them, where a test has no samples at hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elbowroom.points.steps import ApplicationSteps
from elbowroom.results.comparison import ComparedRun, Key
from elbowroom.results.result import PointResult
from elbowroom.stats.signed_ranks import Floats

SPREAD = np.linspace(-1, 1, 9)


def as_measured(results: Sequence[PointResult], spread: float = 0.002) -> ComparedRun:
    """Nine repetitions of each value, up to `spread` (of the logarithm) around its median."""
    values: dict[Key, Floats] = {}
    for item in results:
        for side, of in (("comp", item.comp), ("comm", item.comm)):
            for phase, summary in (("alone", of.alone), ("together", of.together)):
                if summary is not None:
                    values[item.id, side, phase] = np.log(summary.median) + spread * SPREAD
            if of.kept is not None:
                values[item.id, side, "kept"] = np.log(of.kept.value) + spread * SPREAD
        if item.payload.steps is not None:
            lone = isinstance(item.workload, ApplicationSteps) and item.workload.variant != "overlap"
            phase = "alone" if lone else "together"
            values[item.id, "step", phase] = np.log(item.payload.steps.total.median) + spread * SPREAD
    return ComparedRun(results=results, values=values)
