"""Samples of an accelerator as least squares take them.

What is believed of an accelerator's parameters before a fit: centres read off the samples, wide bands.

How far off the law is where it was not fitted, beside rules that need no fit.

Held out: all samples of a family with one number of SMs (of a family that holds none, one sample) are left
out, the rest is fitted again, and these are predicted, as long as anything else has such a mover.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

import msgspec
import numpy as np

from elbowroom.models.flow.law import Array
from elbowroom.models.flow.least_squares import FitProblem, shown_errors, solve
from elbowroom.models.flow.prior import Prior, around, decode
from elbowroom.models.gpu.case import LINKS
from elbowroom.models.gpu.law import PARAMETERS, Cases, link_name, rates
from elbowroom.models.gpu.part import FamilyErrors
from elbowroom.models.gpu.samples import GpuSample, LinkRate

BELIEFS = {
    "hbm": (3e6, 0.7),
    "issue": (1.5, 0.3),
    "corner": (4.0, 0.4),
    "traffic": (2.0, 0.5),
    "quant": (0.9, 0.2),
    "hold": (1.0, 0.4),
    "late": (1.0, 0.4),
    "engine": (5e4, 0.7),
    "sm_hbm": (4e4, 0.9),
    "sm_host": (1e4, 0.9),
    "store": (2.5e4, 0.7),
    "engine_weight": (0.1, 1.0),
    "sm_weight": (1.0, 0.7),
    "stall_gemm": (0.5, 1.5),
    "stall_triad": (0.5, 1.5),
    "stall_chain": (0.5, 1.5),
    "stall_power": (1.0, 0.3),
    "launch_engine": (0.05, 1.0),
    "launch_sm": (0.3, 1.0),
}
"""Centre, of a large accelerator, and width of each parameter; what samples show at first sight stands in the
place of the centre.
"""

LINK = (2.5e4, 0.7)
"""The same of a link that nothing is known of, MB/s."""

ROUGH_WIDTH = 0.3
"""The width of what samples show at first sight."""

BEYOND = 1.5
"""What a mover could reach over the pace that it was held to."""

MOST = ("engine", "sm_hbm", "sm_host", "store")
"""Bandwidths that other limits may hide in some samples: the largest one counts."""
REACH = 3.5
"""Bounds of a logarithm around its centre, in widths of the prior."""

BOUNDS = {"quant": (0.0, 1.0), "late": (0.0, 1.2), "hold": (math.log(0.5), math.log(6.0))}

HOLDS = (1.0, 1.3, 1.7, 2.2)
"""Where fits begin: waves make steps, which no slope leads over."""


def prior(samples: Sequence[GpuSample], links: Sequence[LinkRate] = ()) -> tuple[Prior, tuple[str, ...]]:
    """The prior of all parameters that these samples may tell of, and the names of those they do not.

    `links`: rates that were measured by themselves; no sample need tell of them.
    """
    rough = _rough_rates(samples)
    sure = {
        name: item.spread for item in links if (name := link_name(item.direction, item.node)) not in rough
    }
    rough |= {name: item.rate for item in links if (name := link_name(item.direction, item.node)) in sure}
    floors = _floors(samples)
    known = [item.name for item in PARAMETERS]
    names = (*known, *sorted(name for name in {*rough, *floors} if name.startswith("link_")))
    beliefs = {name: BELIEFS.get(name, LINK) for name in names}
    centres = {name: max(centre, floors.get(name, 0.0)) for name, (centre, _) in beliefs.items()} | rough
    known_widths = {name: sure.get(name, ROUGH_WIDTH) for name in rough if name != "sm_host"}
    widths = {name: known_widths.get(name, width) for name, (_, width) in beliefs.items()}
    before = around(centres, widths, BOUNDS, {name: REACH * width for name, width in widths.items()})
    starts = tuple(_start(before.centre, names, hold) for hold in HOLDS)
    before = msgspec.structs.replace(before, starts=starts)
    return before, tuple(name for name in names if name not in _used(samples, rough))


def _start(centre: Array, names: tuple[str, ...], hold: float) -> Array:
    start = centre.copy()
    start[names.index("hold")] = math.log(hold)
    return start


def _rough_rates(samples: Sequence[GpuSample]) -> dict[str, float]:
    """First sight of bandwidths; of a mover with a pace only that it can do so much, which `_floors` has."""
    rates = _rates([item for item in samples if not item.case.pace_mb_s])
    rough = {name: max(values) if name in MOST else median(values) for name, values in rates.items()}
    triads = [item.traffic for item in samples if item.case.victim == "triad" and item.traffic]
    if triads:
        rough["hbm"] = 1.05 * median(triads)
    return rough


def _floors(samples: Sequence[GpuSample]) -> dict[str, float]:
    """The most that movers with a pace reached, which they can surely do."""
    rates = _rates([item for item in samples if item.case.pace_mb_s])
    return {name: BEYOND * max(values) for name, values in rates.items()}


def _rates(samples: Sequence[GpuSample]) -> dict[str, list[float]]:
    """Rates of movers alone, by the parameter that limits them."""
    rates: dict[str, list[float]] = {}
    for item in samples:
        case, rate = item.case, item.mover_alone
        if rate is None:
            continue
        if case.mover == "copy":
            name = link_name(case.direction, case.node) if case.direction in LINKS else "engine"
            rates.setdefault(name, []).append(rate)
        elif case.mover == "sm_copy":
            host = case.direction == "host"
            rates.setdefault("sm_host" if host else "sm_hbm", []).append(rate / case.sms)
            if host:
                rates.setdefault("store", []).append(rate)
    return rates


def _used(samples: Sequence[GpuSample], rough: dict[str, float]) -> set[str]:
    """The parameters that some sample depends on."""
    used = set(rough)
    for item in samples:
        case = item.case
        held = case.mover in ("sm_copy", "sm_idle")
        if case.victim == "triad":
            used |= {"issue", "corner"}
            # A mover whose own rate is not known shows it by what it takes of the memory.
            used |= {"engine"} if case.direction == "d2d" and not case.pace_mb_s else set()
            used |= {"sm_hbm"} if case.direction == "hbm" and not case.pace_mb_s else set()
        if case.victim == "gemm":
            used |= {"quant"} if held or case.planned else set()
            used |= {"traffic"} if item.traffic and case.mover in ("copy", "sm_copy") else set()
        if held and case.victim != "chain":
            used |= {"hold"} | ({"late"} if case.first == "victim" else set())
        if case.mover == "copy":
            used |= {"launch_engine" if case.victim == "chain" else "engine_weight"}
        elif held and case.victim == "chain":
            used.add("launch_sm")
        if case.mover == "sm_copy":
            used |= {"stall_power", f"stall_{case.victim}"} if case.direction == "host" else {"sm_weight"}
    return used


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

KEPT, ALONE, TOGETHER, TRIAD = 0, 1, 2, 3
"""Kinds of values: what the victim keeps, the mover's rates, a triad's rate alone."""


class Problem(FitProblem, frozen=True, kw_only=True):
    """Samples as the fit takes them: logarithms `logs` of what was measured, each of the kind `kind` (KEPT,
    ALONE, TOGETHER, TRIAD) and of the sample `row`.
    """

    samples: tuple[GpuSample, ...]
    cases: Cases
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
    missed = problem.predicted(start[None])[0] - problem.logs
    error = shown_errors(missed, groups_of(problem), first_errors(problem), ERRORS)
    return solve(problem.predicted, problem.logs, problem.before, start, error, AGAIN).point


def groups_of(problem: Problem) -> Any:
    """Numbers of values that are off alike: those of rates by their kind, what victims keep by the mover."""
    classes = list(FIRST_ERROR)
    own = np.array([len(classes) + classes.index(item.case.mover_class) for item in problem.samples])
    return np.where(problem.kind == KEPT, own[problem.row], problem.kind)


LEAST_DISCREPANCY = 0.003
UNKNOWN = 0.3
"""Relative standard deviation where nothing could be held out."""
FEW_MARGIN = {1: 3.0, 2: 2.0, 3: 1.5}
"""The spread of so few residuals is known to about such a factor, by which it is taken larger."""


def mean_error(predicted: Array | Sequence[float], measured: Array | Sequence[float]) -> float:
    """Mean of |predicted - measured| / measured."""
    values = np.asarray(measured)
    return float(np.mean(np.abs(np.asarray(predicted) - values) / values))


def rule_errors(
    samples: Sequence[GpuSample], kept: Array | Sequence[float], sms: int, hbm: float
) -> tuple[float, float, float]:
    """Errors of the rules that kept is 1 - k / S, that it is max-min of one memory, and 1 always."""
    shares = [1 - item.case.sms / sms for item in samples]
    max_min = [_max_min_rule(item, hbm) for item in samples]
    return mean_error(shares, kept), mean_error(max_min, kept), mean_error([1.0] * len(samples), kept)


def _max_min_rule(item: GpuSample, hbm: float) -> float:
    """Max-min of one memory between the victim's traffic and the mover's bytes, as fast as alone."""
    demand = item.traffic
    if not demand or not item.mover_alone:
        return 1.0
    twice = 2.0 if item.case.direction in ("d2d", "hbm") else 1.0
    moved = twice * item.mover_alone
    if demand + moved <= hbm:
        return 1.0
    return min(1.0, max(hbm / 2, hbm - moved) / demand)


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
        _family_errors(name, rows, problem, (fitted, held_out, measured), (hbm, pooled))
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


def _family_errors(
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

    out = mean_error(np.exp(held_out[there]), kept[there]) if there.any() else None
    rules = rule_errors(samples, kept, problem.cases.sms, known[0])
    counts = [item.case.sms for item in samples]
    return FamilyErrors(
        family=name,
        cases=len(rows),
        fitted=mean_error(np.exp(fitted), kept),
        held_out=out,
        share_rule=rules[0],
        max_min_rule=rules[1],
        no_loss_rule=rules[2],
        discrepancy=max(_spread(held_out - measured) or known[1], LEAST_DISCREPANCY),
        better=out is not None and out < min(rules),
        sms_low=min(counts),
        sms_high=max(counts),
    )
