"""FLOW fitted to few runs: parameters with 90 % intervals.

Bounded least squares on the logarithms of the measured bandwidths with a robust loss (soft L1), from several
fixed starts. Weak priors, centred on what the runs show at first sight, keep what the runs do not tell within
what is physically sensible; the posterior's width then is the prior's and is reported as such.
"""

from __future__ import annotations

from typing import cast

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.errors import UsageError
from elbowroom.models.curves import Curves
from elbowroom.models.flow.errors import BOTH_SOCKETS, Linear, as_bands, by_side, linear
from elbowroom.models.flow.law import NAMES, Array, Cases, cases, distinct, evaluate
from elbowroom.models.flow.least_squares import Minimum, jacobian, solve
from elbowroom.models.flow.part import Discrepancies, FlowPart
from elbowroom.models.flow.posterior import settle
from elbowroom.models.flow.prior import Prior, decode, prior
from elbowroom.models.prediction import NORMAL_90

DRAWS = 48
"""Parameter vectors kept from the posterior."""

FIRST_ERROR = 0.01
"""Relative error of one value, measurement and model together, while fitting."""

SHORT, LONG, FINALISTS = 25, 80, 3
"""Evaluations of a first and of a last fit, and how many of the first go on."""

ERRORS = (0.004, 0.1)
"""Bounds of the error of one value in the last fit: below, the priors would no longer count."""

NORMAL_HALF = 0.6744897501960817
"""Median of the absolute value of a standard normal variable."""

SURE_WIDTHS = {"root": 0.2}
"""Widths of priors behind intervals, where those of the fit are wider than machines differ."""

SETTLED = 40
"""Runs that the draws are made to agree with, at most: more take seconds and tell little more."""


class _Data(msgspec.Struct, frozen=True):
    """The measured values that exist: logarithms, and where they stand in (4, S); `same` finds the S runs
    among `unlike`, the cases that the law tells apart.
    """

    runs: Cases
    unlike: Cases
    same: NDArray[np.intp]
    logs: Array
    known: Array


def fit(curves: Curves, *, seed: int = 0) -> FlowPart:
    """Fits FLOW to runs of one machine; the same seed gives the same draws.

    Only finite, positive bandwidths of runs with computing cores count. `flags` name what was not measured:
    `no local accesses measured`, `no remote accesses measured`, `messages into one socket only`, `both
    sockets never computed together`, `fewer values than parameters`. UsageError without any run of either
    stream.
    """
    rows = [row for row in curves.rows if row.situation.n + row.situation.n_other > 0]
    if not rows:
        raise UsageError(
            "holds no run with computing cores", field="curves", value=curves.origin, hint="measure some"
        )
    measured = np.array([[np.nan if v is None else v for v in row.streams] for row in rows], dtype=float).T
    runs = cases(curves.shape, [row.situation for row in rows])
    known = np.isfinite(measured) & (measured > 0)
    for stream, name in ((0, "comp"), (1, "comm")):
        if not known[stream::2].any():
            raise UsageError(
                "was measured in no run with computing cores",
                field=f"{name}_alone, {name}_together",
                hint="measure both streams, alone and together",
            )
    data = _data(runs, np.log(measured[known]), known)
    before = prior(runs, np.where(known, measured, np.nan))
    best = _best(data, before)
    return _posterior(data, _sure(before), best, seed)


def _sure(before: Prior) -> Prior:
    """The prior behind intervals."""
    widths = [
        min(width, SURE_WIDTHS.get(name, width)) for name, width in zip(NAMES, before.width, strict=True)
    ]
    return msgspec.structs.replace(before, width=np.array(widths))


def _data(runs: Cases, logs: Array, known: Array) -> _Data:
    return _Data(runs, *distinct(runs), logs, known)


def _best(data: _Data, before: Prior) -> Array:
    """The best of short fits from every start goes on to the end, then once more with the error it showed."""

    def fitted(start: Array, error: float, evaluations: int) -> Minimum:
        errors = np.full(len(data.logs), error)
        return solve(lambda points: _logs(points, data), data.logs, before, start, errors, evaluations)

    short = sorted(
        (fitted(start, FIRST_ERROR, SHORT) for start in before.starts), key=lambda solution: solution.cost
    )
    long = [fitted(solution.point, FIRST_ERROR, LONG) for solution in short[:FINALISTS]]
    best = min(long, key=lambda solution: solution.cost).point
    missed = _logs(best[None], data)[0] - data.logs
    error = float(np.clip(np.median(np.abs(missed)) / NORMAL_HALF, *ERRORS))
    return fitted(best, error, LONG).point


def _logs(points: Array, data: _Data) -> Array:
    """The model's logarithms at the measured values, (D, values), for coordinates (D, P)."""
    logs = np.log(np.maximum(evaluate(decode(points), data.unlike), 1e-9))[:, :, data.same]
    return cast("Array", logs.transpose(1, 0, 2)[:, data.known])


def _posterior(data: _Data, before: Prior, point: Array, seed: int) -> FlowPart:
    errors, discrepancies = _errors(point, data, before)
    half = NORMAL_90 * np.sqrt(np.diag(errors.covariance))
    low, high = decode(np.clip(np.stack([point - half, point + half]), before.low, before.high))
    rng = np.random.default_rng(seed)
    spread = rng.standard_normal((DRAWS, len(point))) @ np.linalg.cholesky(errors.covariance).T
    draws = decode(_settled(point, point + spread, data, before, errors, rng))
    return FlowPart(
        names=NAMES,
        values=tuple(decode(point[None])[0].tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        draws=tuple(tuple(draw) for draw in draws.tolist()),
        discrepancy=as_bands(np.maximum(discrepancies.local, discrepancies.remote)),
        discrepancies=discrepancies,
        flags=(*before.flags, *_gaps(data)),
    )


def _settled(
    point: Array, drawn: Array, data: _Data, before: Prior, errors: Linear, rng: np.random.Generator
) -> Array:
    """The draws of the linear approximation, moved to where they agree with the runs (flow/posterior.py);
    with many runs, with some of them from everywhere, that then weigh as much as all.
    """
    runs = data.known.shape[1]
    kept = np.zeros(runs, dtype=np.bool_)
    kept[np.linspace(0, runs - 1, min(runs, SETTLED)).round().astype(int)] = True
    chosen = np.broadcast_to(kept, data.known.shape)[data.known]
    part = _data(data.runs.part(kept), data.logs[chosen], data.known[:, kept])
    return settle(
        drawn,
        before.centre,
        before.width,
        (before.low, before.high),
        lambda points: _logs(points, part),
        _logs(point[None], part)[0],
        errors.scale[chosen] * np.sqrt(chosen.mean()),
        rng,
    )


def _gaps(data: _Data) -> tuple[str, ...]:
    flags = []
    if not data.runs.both.any():
        flags.append("both sockets never computed together")
    if len(data.logs) < len(NAMES):
        flags.append("fewer values than parameters")
    return tuple(flags)


def _errors(point: Array, data: _Data, before: Prior) -> tuple[Linear, Discrepancies]:
    """How far off: the runs' noise from communication alone, where the model cannot be wrong; what is more
    than noise in each stream, freed of what a value decided itself in the fit, is the model's discrepancy.
    """
    missed = _logs(point[None], data)[0] - data.logs
    stream, local, remote = (
        np.broadcast_to(table, data.known.shape)[data.known]
        for table in (np.arange(4)[:, None], data.runs.local > 0, data.runs.remote > 0)
    )
    more = np.where(local & remote, BOTH_SOCKETS, 0.0)
    errors = linear(
        missed, jacobian(lambda points: _logs(points, data), point), stream, before.width, more=more
    )
    return errors, by_side(errors, stream, local, remote)
