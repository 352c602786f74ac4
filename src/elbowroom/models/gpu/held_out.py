"""How far off the law is where it was not fitted, beside rules that need no fit.

Held out: all samples of a family with one number of SMs (of a family that holds none, one sample) are left
out, the rest is fitted again, and these are predicted, as long as anything else has such a mover.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from elbowroom.models.flow.law import Array
from elbowroom.models.gpu.part import FamilyErrors
from elbowroom.models.gpu.problem import Problem, kept_of, refit
from elbowroom.models.gpu.samples import GpuSample

LEAST_DISCREPANCY = 0.003
UNKNOWN = 0.3
"""Relative standard deviation where nothing could be held out."""
FEW_MARGIN = {1: 3.0, 2: 2.0, 3: 1.5}
"""The spread of so few residuals is known to about such a factor, by which it is taken larger."""


def share_rule(case_sms: float, sms: int) -> float:
    """kept = 1 - k / S."""
    return 1 - case_sms / sms


def max_min_rule(item: GpuSample, hbm: float) -> float:
    """Max-min of one memory between the victim's traffic and the mover's bytes, as fast as alone."""
    asked = item.traffic
    if not asked or not item.mover_alone:
        return 1.0
    twice = 2.0 if item.case.direction in ("d2d", "hbm") else 1.0
    moved = twice * item.mover_alone
    if asked + moved <= hbm:
        return 1.0
    return min(1.0, max(hbm / 2, hbm - moved) / asked)


def family_errors(problem: Problem, best: Array) -> tuple[FamilyErrors, ...]:
    """The errors of each family, in the order of their names."""
    held_out = _held_out(problem, best)
    fitted = kept_of(problem, best)
    measured = np.log([item.kept for item in problem.samples])
    # No more than a triad reached is known of the memory without a model.
    triads = [item.traffic for item in problem.samples if item.case.victim == "triad"]
    hbm = max(triads, default=math.inf)
    families: dict[str, list[int]] = {}
    for row, item in enumerate(problem.samples):
        if item.case.mover:
            families.setdefault(item.case.family, []).append(row)
    pooled = _spread(held_out - measured) or UNKNOWN
    return tuple(
        _family(name, rows, problem, (fitted, held_out, measured), (hbm, pooled))
        for name, rows in sorted(families.items())
    )


def _held_out(problem: Problem, best: Array) -> Array:
    """Logarithms of what victims keep, each predicted without its group; NaN where nothing else is left."""
    groups: dict[tuple[str, int, str], list[int]] = {}
    for row, item in enumerate(problem.samples):
        if item.case.mover:
            own = "" if item.case.sms else str(row)
            groups.setdefault((item.case.family, item.case.sms, own), []).append(row)
    classes = [item.case.mover_class for item in problem.samples]
    predicted = np.full(len(problem.samples), np.nan)
    for rows in groups.values():
        left_out = set(rows)
        rest = [row for row in range(len(problem.samples)) if row not in left_out]
        if any(classes[row] == classes[rows[0]] for row in rest):
            predicted[rows] = kept_of(problem, refit(problem.part(rest), best))[rows]
    return predicted


def _spread(missed: Array) -> float | None:
    """Root mean square, larger of few; None of none."""
    known = missed[np.isfinite(missed)]
    if not len(known):
        return None
    return float(np.sqrt(np.mean(known**2))) * FEW_MARGIN.get(len(known), 1.0)


def _family(
    name: str,
    rows: Sequence[int],
    problem: Problem,
    logs: tuple[Array, Array, Array],
    known: tuple[float, float],
) -> FamilyErrors:
    """`known`: MB/s of HBM for the rule, and the discrepancy where nothing of the family was held out."""
    fitted, held_out, measured = (values[list(rows)] for values in logs)
    samples = [problem.samples[row] for row in rows]
    kept, there = np.exp(measured), np.isfinite(held_out)

    def off(predicted: Array, of: Array = kept) -> float:
        return float(np.mean(np.abs(predicted - of) / of))

    out = off(np.exp(held_out[there]), kept[there]) if there.any() else None
    rules = (
        off(np.array([share_rule(item.case.sms, problem.cases.sms) for item in samples])),
        off(np.array([max_min_rule(item, known[0]) for item in samples])),
        off(np.ones(len(samples))),
    )
    counts = [item.case.sms for item in samples]
    return FamilyErrors(
        family=name,
        cases=len(rows),
        fitted=off(np.exp(fitted)),
        held_out=out,
        share_rule=rules[0],
        max_min_rule=rules[1],
        no_loss_rule=rules[2],
        discrepancy=max(_spread(held_out - measured) or known[1], LEAST_DISCREPANCY),
        better=out is not None and out < min(rules),
        sms_low=min(counts),
        sms_high=max(counts),
    )
