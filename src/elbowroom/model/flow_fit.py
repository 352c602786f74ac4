"""FLOW fitted to few runs: parameters and predictions with 90 % intervals.

Bounded least squares on the logarithms of the measured bandwidths with a robust loss (soft L1), from several
fixed starts. Weak priors, centred on what the runs show at first sight, keep what the runs do not tell within
what is physically sensible; the posterior's width then is the prior's and is reported as such.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import msgspec
import numpy as np
from numpy.typing import NDArray
from scipy.optimize import OptimizeResult, least_squares

from elbowroom.errors import UsageError
from elbowroom.model.curves import STREAMS, Curves, Shape, Situation
from elbowroom.model.flow import NAMES, PARAMETERS, Array, Cases, cases, distinct, evaluate
from elbowroom.model.flow_prior import Prior, decode, prior
from elbowroom.model.prediction import NORMAL_90, Interval, Prediction
from elbowroom.model.settling import settle

DRAWS = 48
"""Parameter vectors kept from the posterior."""

FIRST_ERROR = 0.01
"""Relative error of one value, measurement and model together, while fitting."""

STEP = 1e-5
"""Of the finite differences, in the fit's coordinates (logarithms, mostly)."""

SHORT, LONG, FINALISTS = 25, 80, 3
"""Evaluations of a first and of a last fit, and how many of the first go on."""

ERRORS = (0.004, 0.1)
"""Bounds of the error of one value in the last fit: below, the priors would no longer count."""

NORMAL_HALF = 0.6744897501960817
"""Median of the absolute value of a standard normal variable."""

LEAST_NOISE = 5e-4
"""Relative; of runs without any, for instance of a virtual machine."""

NOISE_MARGIN = 1.1
"""The noise itself is known to about a tenth."""

TAIL, TAIL_NORMAL = 0.15, 1.4395314709384563
"""Share of errors left out of a spread, and where a standard normal variable has them: models are far off in
few places (knees), which would make every other place's interval too wide.
"""

BOTH_SOCKETS = 2.5
"""Runs with both sockets computing are so few that they are met however wrong the model is there: they narrow
the intervals as if their errors were larger by this.
"""

SETTLED = 40
"""Runs that the draws are made to agree with, at most: more take seconds and tell little more."""

LEAST_FREEDOM = 0.2
"""What a value decides itself in the fit at least leaves this much of its error to be seen."""


class FlowParameter(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter with its 90 % interval and what it means."""

    name: str
    value: float
    low: float
    high: float
    unit: str
    text: str


class FlowFit(msgspec.Struct, frozen=True, kw_only=True):
    """FLOW for one machine. `names`, `values`, `low`, `high` (90 % interval) and each of `draws` (vectors
    from the joint posterior) are in the same order; `discrepancy`: relative standard deviation of what the
    model cannot follow, by stream in the order of STREAMS; `calibrated_on`: the situations of the runs.
    """

    shape: Shape
    names: tuple[str, ...]
    values: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    draws: tuple[tuple[float, ...], ...]
    discrepancy: tuple[float, float, float, float]
    flags: tuple[str, ...] = ()
    calibrated_on: tuple[Situation, ...] = ()

    @property
    def parameters(self) -> tuple[FlowParameter, ...]:
        """The parameters with interval, unit and meaning."""
        meaning = {item.name: item for item in PARAMETERS}
        return tuple(
            FlowParameter(
                name=name, value=value, low=low, high=high, unit=meaning[name].unit, text=meaning[name].text
            )
            for name, value, low, high in zip(self.names, self.values, self.low, self.high, strict=True)
        )


class _Data(msgspec.Struct, frozen=True):
    """The measured values that exist: logarithms, and where they stand in (4, S); `same` finds the S runs
    among `told`, the cases that the law tells apart.
    """

    asked: Cases
    told: Cases
    same: NDArray[np.intp]
    logs: Array
    known: Array


class _Errors(msgspec.Struct, frozen=True):
    """Covariance of the coordinates, relative errors of the measured values, and relative standard deviation
    of the model's own error, by stream.
    """

    covariance: Array
    scale: Array
    discrepancy: tuple[float, float, float, float]


def fit(curves: Curves, *, seed: int = 0) -> FlowFit:
    """Fits FLOW to runs of one machine; the same seed gives the same draws.

    Only finite, positive bandwidths of runs with computing cores count. `flags` say what was not seen: `no
    local accesses measured`, `no remote accesses measured`, `messages into one socket only`, `both sockets
    never computed together`, `fewer values than parameters`. UsageError without any run of either stream.
    """
    rows = [row for row in curves.rows if row.situation.n + row.situation.n_other > 0]
    if not rows:
        raise UsageError(
            "holds no run with computing cores", field="curves", value=curves.origin, mend="measure some"
        )
    measured = np.array([[np.nan if v is None else v for v in row.streams] for row in rows], dtype=float).T
    asked = cases(curves.shape, [row.situation for row in rows])
    known = np.isfinite(measured) & (measured > 0)
    for stream, name in ((0, "comp"), (1, "comm")):
        if not known[stream::2].any():
            raise UsageError(
                "was measured in no run with computing cores",
                field=f"{name}_alone, {name}_together",
                mend="measure both streams, alone and together",
            )
    data = _data(asked, np.log(measured[known]), known)
    before = prior(asked, np.where(known, measured, np.nan))
    best = _best(data, before)
    return _posterior(curves, data, before, best, seed)


def _data(asked: Cases, logs: Array, known: Array) -> _Data:
    return _Data(asked, *distinct(asked), logs, known)


def _best(data: _Data, before: Prior) -> OptimizeResult:
    """The best of short fits from every start goes on to the end, then once more with the error it showed."""
    short = [_solve(data, before, start, FIRST_ERROR, SHORT) for start in before.starts]
    short.sort(key=lambda found: float(found.cost))
    long = [_solve(data, before, found.x, FIRST_ERROR, LONG) for found in short[:FINALISTS]]
    best = min(long, key=lambda found: float(found.cost))
    missed = _logs(np.asarray(best.x)[None], data)[0] - data.logs
    error = float(np.clip(np.median(np.abs(missed)) / NORMAL_HALF, *ERRORS))
    return _solve(data, before, best.x, error, LONG)


def _logs(points: Array, data: _Data) -> Array:
    """The model's logarithms at the measured values, (D, values), for coordinates (D, P)."""
    found = np.log(np.maximum(evaluate(decode(points), data.told), 1e-9))[:, :, data.same]
    return cast("Array", found.transpose(1, 0, 2)[:, data.known])


def _jacobian(point: Array, data: _Data) -> Array:
    steps = STEP * np.eye(len(point))
    logs = _logs(np.concatenate([point + steps, point - steps]), data)
    return (logs[: len(point)] - logs[len(point) :]).T / (2 * STEP)


def _solve(data: _Data, before: Prior, start: Array, error: float, evaluations: int) -> OptimizeResult:
    def residuals(point: Array) -> Array:
        missed = (_logs(point[None], data)[0] - data.logs) / error
        return np.concatenate([missed, (point - before.centre) / before.width])

    def slopes(point: Array) -> Array:
        return np.concatenate([_jacobian(point, data) / error, np.diag(1 / before.width)])

    margin = 1e-6
    inside = np.clip(start, before.low + margin, before.high - margin)
    return least_squares(
        residuals, inside, slopes, bounds=(before.low, before.high), loss="soft_l1", max_nfev=evaluations
    )


def _posterior(curves: Curves, data: _Data, before: Prior, best: OptimizeResult, seed: int) -> FlowFit:
    point = np.asarray(best.x, dtype=float)
    errors = _errors(point, data, before)
    half = NORMAL_90 * np.sqrt(np.diag(errors.covariance))
    low, high = decode(np.clip(np.stack([point - half, point + half]), before.low, before.high))
    rng = np.random.default_rng(seed)
    spread = rng.standard_normal((DRAWS, len(point))) @ np.linalg.cholesky(errors.covariance).T
    draws = decode(_settled(point, point + spread, data, before, errors, rng))
    return FlowFit(
        shape=curves.shape,
        names=NAMES,
        values=tuple(decode(point[None])[0].tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
        draws=tuple(tuple(draw) for draw in draws.tolist()),
        discrepancy=errors.discrepancy,
        flags=(*before.flags, *_gaps(data)),
        calibrated_on=tuple(row.situation for row in curves.rows),
    )


def _settled(
    point: Array, drawn: Array, data: _Data, before: Prior, errors: _Errors, rng: np.random.Generator
) -> Array:
    """The draws of the linear approximation, moved to where they agree with the runs (model/settling.py);
    with many runs, with some of them from everywhere, that then weigh as much as all.
    """
    runs = data.known.shape[1]
    kept = np.zeros(runs, dtype=np.bool_)
    kept[np.linspace(0, runs - 1, min(runs, SETTLED)).round().astype(int)] = True
    chosen = np.broadcast_to(kept, data.known.shape)[data.known]
    part = _data(data.asked.part(kept), data.logs[chosen], data.known[:, kept])
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
    if not ((data.asked.local > 0) & (data.asked.remote > 0)).any():
        flags.append("both sockets never computed together")
    if len(data.logs) < len(NAMES):
        flags.append("fewer values than parameters")
    return tuple(flags)


def _errors(point: Array, data: _Data, before: Prior) -> _Errors:
    """How far off: the runs' noise from communication alone, where the model cannot be wrong; what is more
    than noise in each stream, freed of what a value decided itself in the fit, is the model's discrepancy.
    """
    missed = _logs(point[None], data)[0] - data.logs
    slopes = _jacobian(point, data)
    stream = np.broadcast_to(np.arange(4)[:, None], data.known.shape)[data.known]
    noise = max(spread_of(missed[stream == 1]), LEAST_NOISE)
    scale = np.array([noise if k == 1 else max(spread_of(missed[stream == k]), noise) for k in range(4)])[
        stream
    ]
    both = (data.asked.local > 0) & (data.asked.remote > 0)
    scale *= np.where(np.broadcast_to(both, data.known.shape)[data.known], BOTH_SOCKETS, 1.0)
    information = (slopes / scale[:, None] ** 2).T @ slopes + np.diag(1 / before.width**2)
    covariance = np.linalg.inv(information)
    covariance = (covariance + covariance.T) / 2
    own = np.einsum("ij,jk,ik->i", slopes, covariance, slopes)
    free = missed / np.sqrt(np.maximum(1 - own / scale**2, LEAST_FREEDOM))
    known = (NOISE_MARGIN * noise) ** 2
    more = [spread_of(free[stream == k]) ** 2 - known - _middle(own[stream == k]) for k in range(4)]
    found = np.sqrt(np.maximum(more, 0.0)).tolist()
    return _Errors(covariance, scale, (found[0], 0.0, found[2], found[3]))


def _middle(values: Array) -> float:
    return float(np.median(values)) if len(values) else 0.0


def spread_of(missed: Array) -> float:
    """Standard deviation of normal errors of which TAIL are larger than these; 0 of none."""
    return float(np.quantile(np.abs(missed), 1 - TAIL)) / TAIL_NORMAL if len(missed) else 0.0


def predict(fitted: FlowFit, situation: Situation) -> tuple[Prediction]:
    """The four bandwidths of one situation."""
    return (predictions(fitted, [situation])[0],)


def curve(
    fitted: FlowFit, comp_node: int, comm_node: int, ns: Sequence[int], n_other: int = 0
) -> tuple[Prediction, ...]:
    """One placement for several numbers of computing cores."""
    asked = [Situation(comp_node=comp_node, comm_node=comm_node, n=n, n_other=n_other) for n in ns]
    return predictions(fitted, asked)


def surface(fitted: FlowFit) -> tuple[Prediction, ...]:
    """Every number of computing cores of the first socket in every placement."""
    nodes = range(fitted.shape.nodes)
    cores = range(1, fitted.shape.cores_first_socket + 1)
    asked = [Situation(comp_node=i, comm_node=j, n=n) for i in nodes for j in nodes for n in cores]
    return predictions(fitted, asked)


def predictions(fitted: FlowFit, situations: Sequence[Situation]) -> tuple[Prediction, ...]:
    """Any situations at once; `extrapolated` marks more cores than were calibrated on, and a socket whose
    nodes were not.
    """
    values, low, high = bands(fitted, situations)
    flags = [_flags(fitted, situation) for situation in situations]
    return tuple(
        Prediction(
            situation=situation,
            flags=flags[s],
            **{
                stream: Interval(value=values[k][s], low=low[k][s], high=high[k][s])
                for k, stream in enumerate(STREAMS)
            },
        )
        for s, situation in enumerate(situations)
    )


def bands(fitted: FlowFit, situations: Sequence[Situation]) -> tuple[list[list[float]], ...]:
    """Values, lower and upper ends of the 90 % intervals, each (4, S) in MB/s.

    The relative half width is exp(1.645 s), s^2 = variance of the draws' logarithms + discrepancy^2.
    """
    asked, same = distinct(cases(fitted.shape, situations))
    order = [fitted.names.index(name) for name in NAMES]
    vectors = np.array([fitted.values, *fitted.draws])[:, order]
    found = evaluate(vectors, asked)
    logs = np.log(np.maximum(found[:, 1:], 1e-9))
    spread = np.sqrt(logs.var(axis=1) + np.square(fitted.discrepancy)[:, None])
    value, factor = found[:, 0, same], np.exp(NORMAL_90 * spread[:, same])
    return value.tolist(), (value / factor).tolist(), (value * factor).tolist()


def _flags(fitted: FlowFit, situation: Situation) -> tuple[str, ...]:
    known, shape = fitted.calibrated_on, fitted.shape
    flags = ["virtual"] if shape.virtual else []
    if known and (
        situation.n > max(item.n for item in known)
        or situation.n_other > max(item.n_other for item in known)
        or shape.local(situation.comp_node) not in {shape.local(item.comp_node) for item in known}
        or shape.local(situation.comm_node) not in {shape.local(item.comm_node) for item in known}
    ):
        flags.append("extrapolated")
    return tuple(flags)
