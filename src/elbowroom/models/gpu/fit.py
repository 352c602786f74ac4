"""The accelerator's model fitted to samples: parameters with 90 % intervals, draws, and errors held out.

As FLOW: bounded least squares on logarithms with a robust loss and weak priors, draws that agree with the
samples (flow/posterior.py). Beside it every product gets the tiles that its samples agree with best, from a
list of those that libraries use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from elbowroom.errors import UsageError
from elbowroom.models.flow.errors import Linear, linear, spread_of
from elbowroom.models.flow.law import Array
from elbowroom.models.flow.least_squares import jacobian
from elbowroom.models.flow.posterior import settle
from elbowroom.models.flow.prior import Prior
from elbowroom.models.gpu.case import DeviceCase, check_case
from elbowroom.models.gpu.held_out import family_errors
from elbowroom.models.gpu.part import FamilyErrors, GpuPart, GpuVictim, MeasuredCase
from elbowroom.models.gpu.prior import decode, prior
from elbowroom.models.gpu.problem import ALONE, TOGETHER, Problem, groups_of, kept_of
from elbowroom.models.gpu.samples import GpuSample, LinkRate
from elbowroom.models.gpu.tiles import TileSearch

DRAWS = 48
LEAST_NOISE = 0.002
LEVELS = (0.05, 0.95)
"""Ends of the parameters' 90 % intervals among the draws: at an edge of the law slopes say nothing."""


def fit(
    samples: Sequence[GpuSample],
    sms: int,
    *,
    links: Sequence[LinkRate] = (),
    device: str = "",
    run: str = "",
    origin: str = "measured",
    left_out: dict[str, int] | None = None,
    seed: int = 0,
) -> GpuPart:
    """The model of an accelerator with `sms` SMs; the same seed gives the same draws. `links`: copies between
    host and device that were measured alone.

    UsageError without such links, and without a sample whose victim computes on the accelerator beside
    something.
    """
    samples = _merged(samples)
    if not links and not any(item.case.mover for item in samples):
        raise UsageError(
            "has no case of a kernel beside a copy or beside held SMs",
            field="run",
            hint="measure with: elbowroom run gpu-overlap",
        )
    for item in samples:
        check_case(item.case, sms)
    before, unknown = prior(samples, links)
    rng = np.random.default_rng(seed)
    found = _fitted(samples, sms, before, rng) if samples else _believed(before, rng)
    ends = np.quantile(np.concatenate([found.best[None], found.draws]), LEVELS, axis=0)
    table = np.concatenate([found.best[None], ends, found.draws])
    values, low, high, *rows = decode(table, before.names).tolist()
    return GpuPart(
        device=device,
        sms=sms,
        names=before.names,
        values=tuple(values),
        low=tuple(low),
        high=tuple(high),
        draws=tuple(tuple(row) for row in rows),
        victims=found.victims,
        measured=found.measured,
        errors=found.errors,
        mover_discrepancy=found.mover_discrepancy,
        unknown=unknown,
        notes=_notes(found.victims, unknown),
        left_out=left_out or {},
        run=run,
        origin=origin,
    )


class _Fitted(NamedTuple):
    """The best coordinates (P,), draws (D, P), and what samples tell beside."""

    best: Array
    draws: Array
    victims: tuple[GpuVictim, ...] = ()
    measured: tuple[MeasuredCase, ...] = ()
    errors: tuple[FamilyErrors, ...] = ()
    mover_discrepancy: float = LEAST_NOISE


def _believed(before: Prior, rng: np.random.Generator) -> _Fitted:
    """The prior, where links were measured and no kernel."""
    draws = before.centre + before.width * rng.standard_normal((DRAWS, len(before.centre)))
    return _Fitted(before.centre, np.clip(draws, before.low, before.high))


def _fitted(samples: Sequence[GpuSample], sms: int, before: Prior, rng: np.random.Generator) -> _Fitted:
    victims, problem, best = TileSearch(samples, sms, before).fitted()
    errors = _errors(problem, best)
    spread = rng.standard_normal((DRAWS, len(best))) @ np.linalg.cholesky(errors.covariance).T
    bounds = (before.low, before.high)
    draws = settle(
        np.clip(best + spread, *bounds), before.centre, before.width, bounds, problem.predicted,
        problem.predicted(best[None])[0], errors.scale, rng,
    )  # fmt: skip
    law = np.exp(kept_of(problem, best)).tolist()
    return _Fitted(
        best=best,
        draws=draws,
        victims=victims,
        measured=tuple(
            _measured(item, value, errors.noise) for item, value in zip(samples, law, strict=True)
        ),
        errors=family_errors(problem, best),
        mover_discrepancy=_mover_discrepancy(problem, best),
    )


def _merged(samples: Sequence[GpuSample]) -> list[GpuSample]:
    """One sample for each case, the first one."""
    cases: dict[DeviceCase, GpuSample] = {}
    for item in samples:
        cases.setdefault(item.case, item)
    return list(cases.values())


def _measured(item: GpuSample, law: float, noise: float) -> MeasuredCase:
    return MeasuredCase(
        case=item.case,
        kept=item.kept,
        spread=item.spread[0] if item.spread[0] is not None else noise,
        mover_alone=item.mover_alone,
        mover_together=item.mover_together,
        law=law,
    )


def _errors(problem: Problem, best: Array) -> Linear:
    missed = problem.predicted(best[None])[0] - problem.logs
    spreads = [value for item in problem.samples for value in item.spread if value is not None]
    noise = max(float(np.median(spreads)) if spreads else 0.0, LEAST_NOISE)
    slopes = jacobian(problem.predicted, best)
    return linear(missed, slopes, groups_of(problem), problem.before.width, noise=noise)


def _mover_discrepancy(problem: Problem, best: Array) -> float:
    missed = problem.predicted(best[None])[0] - problem.logs
    return max(spread_of(missed[np.isin(problem.kind, (ALONE, TOGETHER))]), LEAST_NOISE)


def _notes(victims: Sequence[GpuVictim], unknown: Sequence[str]) -> tuple[str, ...]:
    """Where not to trust it, one sentence each."""
    notes = [
        f"{item.victim} {'x'.join(map(str, item.shape))}: tiles of {item.tile[0]}x{item.tile[1]} explain it "
        f"best, and {' or '.join(f'{m}x{n}' for m, n in item.alike)} as well."
        for item in victims
        if item.alike
    ]
    unmeasured = [name for name in unknown if not name.startswith("link_")]
    if unmeasured:
        notes.append(f"Not measured, and as assumed before: {', '.join(unmeasured)}.")
    return tuple(notes)
