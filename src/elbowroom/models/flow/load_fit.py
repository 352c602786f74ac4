"""FLOW's parameters for loads, fitted to runs of them: best fit, 90 % intervals, draws.

FLOW itself comes first, from situations (models/flow/fit.py). Where these told enough it stays as it is, best
fit and draws; where they were fewer values than parameters (a machine with one core to spare), its parameters
are fitted again here, with all rows. Bounded least squares on logarithms with a robust loss and weak priors,
as there.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.errors import UsageError
from elbowroom.models.curves import Curves, Row, Shape
from elbowroom.models.flow.errors import LEAST_NOISE, discrepancy, linear, spread_of
from elbowroom.models.flow.extras import Extension
from elbowroom.models.flow.fit import (
    ERRORS,
    FIRST_ERROR,
    NORMAL_HALF,
)
from elbowroom.models.flow.law import INDEX, NAMES, Array, cases
from elbowroom.models.flow.least_squares import Minimum, jacobian, solve
from elbowroom.models.flow.load_prior import (
    KERNEL,
    PATTERN,
    decode,
    load_prior,
    questions,
)
from elbowroom.models.flow.loads import evaluate
from elbowroom.models.flow.part import FlowPart, LoadPart
from elbowroom.models.flow.posterior import settle
from elbowroom.models.flow.prior import Prior, prior
from elbowroom.models.flow.prior import decode as decode_flow
from elbowroom.models.flow.prior import encode as encode_flow
from elbowroom.models.load import Load, LoadRow, load_of
from elbowroom.models.prediction import NORMAL_90, Bands

EVALUATIONS = 60
LOW_FLOOR, LITTLE_ROOM = -1.0, -0.35
"""Logarithms: floors of a third of those of receptions, controllers of two thirds of their capacity."""

SETTLED = 60
"""Rows that the draws are made to agree with, at most."""


class _LoadProblem(msgspec.Struct, frozen=True):
    """Coordinates are FLOW's own where they are `free`, else none of them; then those of `beliefs`.

    `logs`: of the measured values, where `known` (4, N); the first `base` rows are situations of FLOW's own
    runs; `kernels`, `patterns`: (N, E) which factor a row has.
    """

    shape: Shape
    loads: tuple[Load, ...]
    size: int
    intensity: float
    logs: Array
    known: NDArray[np.bool_]
    beliefs: Prior
    free: Prior | None
    base: int
    kernels: Array
    patterns: Array

    @property
    def own(self) -> int:
        """How many coordinates FLOW's parameters take."""
        return 0 if self.free is None else len(NAMES)

    def predicted(self, base: Array, points: Array) -> Array:
        """Logarithms at the measured values, (D, values), for FLOW's parameters (D, P) or (1, P), unless they
        are among the coordinates (D, C).
        """
        if self.free is not None:
            base = decode_flow(points[:, : self.own])
        elif len(base) < len(points):
            base = np.repeat(base, len(points) // len(base), axis=0)
        extra = points[:, self.own :]
        extension = Extension(
            size=self.size,
            names=self.beliefs.names,
            values=decode(extra, self.beliefs.names),
            switches=self.beliefs.switches,
            intensity=self.intensity,
        )
        rates = evaluate(base, extension, self.shape, self.loads).streams
        logs = np.log(np.maximum(rates, 1e-9))
        logs[0::2] += extra @ self.kernels.T
        logs[1::2] += extra @ self.patterns.T
        return logs.transpose(1, 0, 2)[:, self.known]

    def is_base(self) -> NDArray[np.bool_]:
        """Which of the measured values are of situations of FLOW's own runs."""
        rows = np.arange(self.known.shape[1]) < self.base
        return np.broadcast_to(rows, self.known.shape)[self.known]

    @property
    def prior(self) -> Prior:
        """Of all coordinates."""
        return self.beliefs if self.free is None else self.free.followed_by(self.beliefs)

    def part(self, kept: NDArray[np.bool_]) -> _LoadProblem:
        """Only some of the rows."""
        chosen = np.broadcast_to(kept, self.known.shape)[self.known]
        return msgspec.structs.replace(
            self,
            loads=tuple(load for load, there in zip(self.loads, kept.tolist(), strict=True) if there),
            logs=self.logs[chosen],
            known=self.known[:, kept],
            base=int(kept[: self.base].sum()),
            kernels=self.kernels[kept],
            patterns=self.patterns[kept],
        )


def fit(
    flow: FlowPart, curves: Curves, rows: Sequence[LoadRow], *, intensity: float = 0.0, seed: int = 0
) -> FlowPart | None:
    """`flow`, fitted to `curves`, with the parameters beyond it, fitted to rows of loads on the same machine;
    itself fitted again where situations alone told too little. None if the rows tell of nothing that
    situations do not. `intensity`: flop/B of the calibrated kernel.

    The same seed gives the same draws. UsageError for a row without any bandwidth above 0.
    """
    if not questions(rows, curves.size, intensity):
        return None
    again = _again(curves, rows)
    own = [_as_load_row(row) for row in curves.rows] if again else []
    problem = _problem(flow, curves, own, rows, intensity)
    base = np.array([flow.values])
    best = _best(problem, base, _starts(problem, flow))
    covariance, scale, unlike = _errors(problem, base, best, _noise(flow, curves))
    return _result(flow, problem, best, covariance, scale, unlike, rows, seed)


def _again(curves: Curves, rows: Sequence[LoadRow]) -> bool:
    """Whether FLOW itself learns from these rows: situations were fewer values than parameters, or none had
    both sockets computing, data of either kind, or messages into a socket, which rows do.
    """
    known = _covered(curves.shape, [load_of(row.situation) for row in curves.rows])
    values = sum(value is not None for row in curves.rows for value in row.streams)
    return values < len(NAMES) or not _covered(curves.shape, [row.load for row in rows]) <= known


def _covered(shape: Shape, loads: Sequence[Load]) -> set[str]:
    covered = set()
    for load in loads:
        locals_ = {group.node // shape.numa_per_socket == group.socket for group in load.computing}
        covered |= {"local" if local else "remote" for local in locals_}
        if len({group.socket for group in load.computing}) > 1:
            covered.add("both")
        if load.messages is not None and load.computing:
            covered.add("first" if shape.local(load.messages.node) else "second")
    return covered


def _as_load_row(row: Row) -> LoadRow:
    return LoadRow(
        load=load_of(row.situation),
        comp_alone=row.comp_alone,
        comm_alone=row.comm_alone,
        comp_together=row.comp_together,
        comm_together=row.comm_together,
        spread=row.spread,
        source=row.source,
    )


def _table(rows: Sequence[Row] | Sequence[LoadRow]) -> Array:
    """The bandwidths (4, N), NaN where not known."""
    return np.array([[np.nan if v is None else v for v in row.streams] for row in rows], dtype=float).T


def _problem(
    flow: FlowPart, curves: Curves, own: Sequence[LoadRow], others: Sequence[LoadRow], intensity: float
) -> _LoadProblem:
    """`own`: rows of `curves` where FLOW is fitted again, else none."""
    rows = [*own, *others]
    measured = _table(rows)
    known = np.isfinite(measured) & (measured > 0)
    for place in np.flatnonzero(~known.any(axis=0)).tolist():
        raise UsageError("holds no bandwidth", field="row", value=rows[place].source, hint="leave it out")
    beliefs = load_prior(rows, curves.shape, curves.size, intensity, flow.values[INDEX["comm_first"]])
    names = beliefs.names
    situations = cases(curves.shape, [row.situation for row in curves.rows])
    return _LoadProblem(
        shape=curves.shape,
        loads=tuple(row.load for row in rows),
        size=curves.size,
        intensity=intensity,
        logs=np.log(measured[known]),
        known=known,
        beliefs=beliefs,
        free=prior(situations, _table(curves.rows)) if own else None,
        base=len(own),
        kernels=np.array([[name == KERNEL + row.kernel for name in names] for row in rows], dtype=float),
        patterns=np.array([[name == PATTERN + row.pattern for name in names] for row in rows], dtype=float),
    )


def _starts(problem: _LoadProblem, flow: FlowPart) -> list[Array]:
    """Where fits begin: at the centres; and, if devices may lose more than receptions, where they do."""
    before = [] if problem.free is None else [encode_flow(np.array(flow.values))]
    names, centre = problem.beliefs.names, problem.beliefs.centre
    moved = np.array([_moved(name) for name in names])
    starts = [centre, centre + moved] if moved.any() else [centre]
    return [np.concatenate([*before, start]) for start in starts]


def _moved(name: str) -> float:
    """What a coordinate is moved by where floors and room are low: the first sight tells neither."""
    words = name.split("_")
    if words[0] in ("send", "both", "copy") and len(words) > 1:
        return {"floor": LOW_FLOOR, "room": LITTLE_ROOM}.get(words[1], 0.0)
    return 0.0


def _best(problem: _LoadProblem, base: Array, starts: Sequence[Array]) -> Array:
    """The best fit, then once more with the errors it showed, those of situations apart from others."""
    before = problem.prior

    def fitted(start: Array, error: Array) -> Minimum:
        predicted = partial(problem.predicted, base)
        return solve(predicted, problem.logs, before, start, error, EVALUATIONS, before.width)

    first = np.full(len(problem.logs), FIRST_ERROR)
    point = min((fitted(start, first) for start in starts), key=lambda solution: solution.cost).point
    missed = np.abs(problem.predicted(base, point[None])[0] - problem.logs)
    own, error = problem.is_base(), first.copy()
    for chosen in (own, ~own):
        if chosen.any():
            error[chosen] = np.clip(np.median(missed[chosen]) / NORMAL_HALF, *ERRORS)
    return fitted(point, error).point


def _noise(flow: FlowPart, curves: Curves) -> float:
    """Relative noise of a measured value, from messages alone, where FLOW cannot be wrong."""
    missed = []
    for row in curves.rows:
        if row.comm_alone:
            local = curves.shape.local(row.situation.comm_node)
            comm = flow.values[INDEX["comm_first" if local else "comm_second"]]
            missed.append(np.log(row.comm_alone / comm))
    return max(spread_of(np.array(missed)), LEAST_NOISE)


def _errors(
    problem: _LoadProblem, base: Array, point: Array, noise: float
) -> tuple[Array, Array, tuple[Bands, Bands]]:
    """Covariance of the coordinates, relative errors of the measured values, and the relative standard
    deviation of what the model cannot follow, by stream, in FLOW's own runs (0: there are none here) and in
    the others (as in models/flow/fit.py).
    """
    missed = problem.predicted(base, point[None])[0] - problem.logs
    stream = np.broadcast_to(np.arange(4)[:, None], problem.known.shape)[problem.known]
    is_base = problem.is_base()
    kind = stream + 4 * ~is_base
    errors = linear(
        missed, jacobian(partial(problem.predicted, base), point), kind, problem.prior.width, noise=noise
    )
    bands = discrepancy(errors, is_base, stream), discrepancy(errors, ~is_base, stream)
    return errors.covariance, errors.scale, bands


def _result(
    flow: FlowPart,
    problem: _LoadProblem,
    best: Array,
    covariance: Array,
    scale: Array,
    unlike: tuple[Bands, Bands],
    rows: Sequence[LoadRow],
    seed: int,
) -> FlowPart:
    lowest, highest = problem.prior.low, problem.prior.high
    half = NORMAL_90 * np.sqrt(np.diag(covariance))
    ends = np.clip(np.stack([best - half, best + half]), lowest, highest)
    draws = _draws(flow, problem, best, covariance, scale, seed)
    own, names = problem.own, problem.beliefs.names
    kept = [k for k, name in enumerate(names) if not name.startswith((KERNEL, PATTERN))]

    def parameters(points: Array) -> list[list[float]]:
        values: list[list[float]] = decode(points[:, own:], names)[:, kept].tolist()
        return values

    if problem.free is not None:
        low, high = decode_flow(ends[:, :own]).tolist()
        flow = msgspec.structs.replace(
            flow,
            values=tuple(decode_flow(best[None, :own])[0].tolist()),
            low=tuple(low),
            high=tuple(high),
            draws=tuple(tuple(row) for row in decode_flow(draws[:, :own]).tolist()),
            discrepancy=unlike[0],
            discrepancies=None,
            flags=tuple(flag for flag in flow.flags if flag not in _filled(rows)),
        )
    low, high = parameters(ends)
    sizes = [m.size or problem.size for m in (row.load.messages for row in rows) if m is not None]
    part = LoadPart(
        names=tuple(names[k] for k in kept),
        values=tuple(parameters(best[None])[0]),
        low=tuple(low),
        high=tuple(high),
        draws=tuple(tuple(row) for row in parameters(draws)),
        discrepancy=unlike[1],
        measured=questions(rows, problem.size, problem.intensity),
        switches=problem.beliefs.switches,
        intensity=problem.intensity,
        intensity_high=max((g.intensity for row in rows for g in row.load.computing), default=0.0),
        size_low=min([*sizes, problem.size]),
        size_high=max([*sizes, problem.size]),
        runs=len(rows),
    )
    return msgspec.structs.replace(flow, load=part)


def _filled(rows: Sequence[LoadRow]) -> tuple[str, ...]:
    """Flags of FLOW's own fit that these rows correct."""
    both = any(len({group.socket for group in row.load.computing}) > 1 for row in rows)
    return ("both sockets never computed together",) if both else ()


def _draws(
    flow: FlowPart, problem: _LoadProblem, best: Array, covariance: Array, scale: Array, seed: int
) -> Array:
    """As in models/flow/fit.py; where FLOW stays, each beside one of its own draws."""
    rng = np.random.default_rng(seed)
    base = np.array(flow.draws)
    spread = rng.standard_normal((len(base), len(best))) @ np.linalg.cholesky(covariance).T
    runs = problem.known.shape[1]
    kept = np.zeros(runs, dtype=np.bool_)
    kept[np.linspace(0, runs - 1, min(runs, SETTLED)).round().astype(int)] = True
    part = problem.part(kept)
    chosen = np.broadcast_to(kept, problem.known.shape)[problem.known]
    before = problem.prior
    measured = part.predicted(np.array([flow.values]), best[None])[0]
    return settle(
        best + spread,
        before.centre,
        before.width,
        (before.low, before.high),
        partial(part.predicted, base),
        measured,
        scale[chosen] * np.sqrt(chosen.mean()),
        rng,
    )
