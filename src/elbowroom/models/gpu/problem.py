"""Samples of an accelerator as least squares take them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from elbowroom.models.flow.law import Array
from elbowroom.models.flow.least_squares import solve
from elbowroom.models.flow.prior import Prior
from elbowroom.models.gpu.law import Cases, rates
from elbowroom.models.gpu.prior import decode
from elbowroom.models.gpu.samples import GpuSample

FIRST_ERROR = {
    "": 0.01,
    "copy": 0.005,
    "messages": 0.01,
    "sm_target": 0.01,
    "sm_idle": 0.05,
    "sm_copy": 0.05,
    "sm_host": 0.2,
}
"""Relative error of what a victim keeps, measurement and model together, in the first fit, by what disturbs
it: where holders of SMs are placed is not known, and stores that stall others have the roughest law.
"""

RATE_ERROR = 0.01
"""The same of rates."""

ERRORS = (0.003, 0.3)
AGAIN = 12
"""Evaluations of a fit that begins near its end."""

OUTLIERS = 0.6744897501960817
"""Median of the absolute value of a standard normal variable."""

KEPT, ALONE, TOGETHER, TRIAD = 0, 1, 2, 3
"""Kinds of values: what the victim keeps, the mover's rates, a triad's rate alone."""


class Problem(msgspec.Struct, frozen=True):
    """Samples as the fit takes them: logarithms `logs` of what was measured, each of the kind `kind` (KEPT,
    ALONE, TOGETHER, TRIAD) and of the sample `row`.
    """

    samples: tuple[GpuSample, ...]
    cases: Cases
    before: Prior
    logs: Array
    kind: Any
    row: Any

    def predicted(self, points: Array) -> Array:
        """Logarithms at the measured values, (D, V), for coordinates (D, P)."""
        table = decode(points, self.before.names)
        values = {name: table[:, [place]] for place, name in enumerate(self.before.names)}
        got = rates(values, self.cases)
        four = np.stack([got.kept, got.mover_alone, got.mover_together, got.triad_alone])
        logs: Array = np.log(np.maximum(four[self.kind, :, self.row].T, 1e-9))
        return logs

    def part(self, rows: Sequence[int]) -> Problem:
        """Only these samples."""
        return problem_of([self.samples[row] for row in rows], self.cases, self.before, rows)


def problem_of(
    samples: Sequence[GpuSample], cases: Cases, before: Prior, rows: Sequence[int] | None = None
) -> Problem:
    """The problem of these samples; `rows`: which of `cases` they are, all without it."""
    chosen = list(range(len(samples))) if rows is None else list(rows)
    logs, kinds, places = [], [], []
    for place, item in enumerate(samples):
        triad = item.traffic if item.case.victim == "triad" else 0.0
        for kind, value in (
            (KEPT, item.kept if item.case.mover else 0.0),
            (ALONE, item.mover_alone or 0.0),
            (TOGETHER, item.mover_together or 0.0),
            (TRIAD, triad),
        ):
            if value > 0:
                logs.append(math.log(value))
                kinds.append(kind)
                places.append(place)
    return Problem(
        samples=tuple(samples),
        cases=_chosen(cases, chosen),
        before=before,
        logs=np.array(logs),
        kind=np.array(kinds, dtype=int),
        row=np.array(places, dtype=int),
    )


def _chosen(cases: Cases, rows: Sequence[int]) -> Cases:
    changed = {}
    for field in msgspec.structs.fields(Cases):
        value = getattr(cases, field.name)
        if isinstance(value, tuple):
            changed[field.name] = tuple(value[row] for row in rows)
        elif not isinstance(value, int):
            changed[field.name] = value[np.array(rows, dtype=int)]
    return msgspec.structs.replace(cases, **changed)


def kept_of(problem: Problem, point: Array) -> Array:
    """Logarithms of what victims keep, one for each sample."""
    count = len(problem.samples)
    everywhere = msgspec.structs.replace(
        problem, kind=np.full(count, KEPT), row=np.arange(count), logs=np.zeros(count)
    )
    logs: Array = everywhere.predicted(point[None])[0]
    return logs


def first_errors(problem: Problem) -> Array:
    """Relative errors of the measured values before anything was fitted."""
    kept = np.array([FIRST_ERROR[item.case.mover_class] for item in problem.samples])[problem.row]
    return np.where(problem.kind == KEPT, kept, RATE_ERROR)


def refit(problem: Problem, start: Array) -> Array:
    """The best coordinates from one start, with errors as that start shows them."""
    error = scales(problem, problem.predicted(start[None])[0] - problem.logs)
    return solve(problem.predicted, problem.logs, problem.before, start, error, AGAIN).point


def scales(problem: Problem, missed: Array) -> Array:
    """Relative errors as the residuals show them, by what disturbs the victim, and of rates by kind."""
    error, groups = first_errors(problem), groups_of(problem)
    for group in range(1 + max(groups.tolist())):
        chosen = groups == group
        if chosen.any():
            error[chosen] = np.clip(np.median(np.abs(missed[chosen])) / OUTLIERS, *ERRORS)
    return error


def groups_of(problem: Problem) -> Any:
    """Numbers of values that are off alike: those of rates by their kind, what victims keep by the mover."""
    classes = list(FIRST_ERROR)
    own = np.array([len(classes) + classes.index(item.case.mover_class) for item in problem.samples])
    return np.where(problem.kind == KEPT, own[problem.row], problem.kind)
