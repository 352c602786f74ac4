"""FLOW fitted to few runs: parameters with 90 % intervals.

Bounded least squares on the logarithms of the measured bandwidths with a robust loss (soft L1), from several
fixed starts. Weak priors, centred on what the runs show at first sight, keep what the runs do not tell within
what is physically sensible; the posterior's width then is the prior's and is reported as such.

FLOW's own parameters come first, from situations, then those of other loads. Where situations told enough,
FLOW stays as it is, best fit and draws; else its parameters are fitted again, with all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.errors import UsageError
from elbowroom.models.curves import Curves, Row, Shape
from elbowroom.models.flow.extras import Extension
from elbowroom.models.flow.law import INDEX, NAMES, Array
from elbowroom.models.flow.least_squares import (
    BOTH_SOCKETS,
    LEAST_NOISE,
    FitProblem,
    Linear,
    Minimum,
    as_bands,
    by_side,
    discrepancy,
    linear_at,
    settle,
    shown_errors,
    solve,
    spread_of,
)
from elbowroom.models.flow.loads import PreparedLoads, evaluate, prepare
from elbowroom.models.flow.part import FlowPart, LoadPart
from elbowroom.models.flow.prior import KERNEL, PATTERN, decode, encode, load_prior, prior, questions
from elbowroom.models.load import NORMAL_90, Load, LoadRow, load_at, load_of

DRAWS = 48
"""Parameter vectors kept from the posterior."""

FIRST_ERROR = 0.01
"""Relative error of one value, measurement and model together, while fitting."""

ERRORS = (0.004, 0.1)
"""Bounds of the error of one value in the last fit: below, the priors would no longer count."""

SURE_WIDTHS = {"root": 0.2}
"""Widths of priors behind intervals, where those of the fit are wider than machines differ."""

LOW_FLOOR, LITTLE_ROOM = -1.0, -0.35
"""Logarithms: floors of a third of those of receptions, controllers of two thirds of their capacity."""


class _Effort(msgspec.Struct, frozen=True):
    """Evaluations of a `short` and of a `long` fit, how many `finalists` of the short ones go on to long ones
    (0: the best is taken as it is), and how many rows the draws are made to agree with, at most: more take
    seconds and tell little more.
    """

    short: int
    long: int
    finalists: int
    settled: int


OWN_EFFORT = _Effort(25, 80, 3, 40)
LOAD_EFFORT = _Effort(60, 60, 0, 60)


class _FlowProblem(FitProblem, frozen=True, kw_only=True):
    """N loads, the logarithms `logs` of the measured values, where `known` (4 + C, N), of STREAMS and of up
    to C copies, and the coordinates that are fitted to them: those of `before`, of which the first `own` are
    FLOW's parameters, all or none; `base` (B, P): these, where they are none. `group` (N,): rows of 0 and of
    1 are off by different errors; `kernels`, `patterns`: (N, E) which factor a row has; `scale`: of the
    coordinates.
    """

    loads: tuple[Load, ...]
    prepared: PreparedLoads
    known: NDArray[np.bool_]
    own: int
    group: NDArray[np.intp]
    base: Array = np.zeros((1, 0))
    kernels: Array = np.zeros((0, 0))
    patterns: Array = np.zeros((0, 0))
    scale: Array | float = 1.0
    size: int = 0
    intensity: float = 0.0

    def predicted(self, points: Array) -> Array:
        """Logarithms at the measured values, (D, values), for coordinates (D, C); D a multiple of B."""
        names, extra = self.before.names[self.own :], points[:, self.own :]
        if self.own:
            flow = decode(points[:, : self.own], NAMES)
        else:
            flow = np.repeat(self.base, len(points) // len(self.base), axis=0)
        extension = Extension(
            size=self.size,
            names=names,
            values=decode(extra, names),
            switches=self.before.switches,
            intensity=self.intensity,
        )
        rates = evaluate(flow, extension, self.prepared)
        # Of some of the rows there may be fewer copies, of which then none is known.
        rows = min(len(self.known), 4 + len(rates.copies))
        logs = np.log(np.maximum(np.concatenate([rates.streams, rates.copies])[:rows], 1e-9))
        if names:
            logs[0:4:2] += extra @ self.kernels.T
            logs[1:4:2] += extra @ self.patterns.T
        values: Array = logs.transpose(1, 0, 2)[:, self.known[:rows]]
        return values

    @property
    def stream(self) -> NDArray[np.intp]:
        """Which of STREAMS each measured value is; copies are off as messages together are."""
        return self.of_values(np.minimum(np.arange(len(self.known)), 3)[:, None])

    def of_values(self, rows: NDArray[Any]) -> NDArray[Any]:
        """What rows (N,) or streams and rows (4 + C, N) have, for each measured value."""
        return np.broadcast_to(rows, self.known.shape)[self.known]

    def part(self, kept: NDArray[np.bool_]) -> _FlowProblem:
        """Only some of the rows."""
        loads = tuple(load for load, there in zip(self.loads, kept.tolist(), strict=True) if there)
        return msgspec.structs.replace(
            self,
            loads=loads,
            prepared=prepare(self.prepared.shape, loads),
            logs=self.logs[self.of_values(kept)],
            known=self.known[:, kept],
            group=self.group[kept],
            kernels=self.kernels[kept] if len(self.kernels) else self.kernels,
            patterns=self.patterns[kept] if len(self.patterns) else self.patterns,
        )


def fit(
    curves: Curves,
    rows: Sequence[LoadRow] = (),
    *,
    intensity: float = 0.0,
    seed: int = 0,
    flow: FlowPart | None = None,
) -> FlowPart:
    """FLOW, fitted to runs of one machine, situations and, where they tell of more, other loads; the same
    seed gives the same draws. `intensity`: flop/B of the calibrated kernel; `flow`: as fitted to `curves`.

    Of situations only finite, positive bandwidths of runs with computing cores count. `flags` name what was
    not measured: `no local accesses measured`, `no remote accesses measured`, `messages into one socket
    only`, `both sockets never computed together`, `fewer values than parameters`. UsageError without any run
    of either stream, and for a row without any bandwidth above 0.
    """
    flow = _of_situations(curves, seed) if flow is None else flow
    if not questions(rows, curves.size, intensity):
        return flow
    own = [_as_load_row(row) for row in curves.rows] if _again(curves, rows) else []
    problem = _load_problem(flow, curves, own, rows, intensity)
    best = _best(problem, _starts(problem, flow), LOAD_EFFORT)
    kind = problem.stream + 4 * problem.of_values(problem.group)
    errors = linear_at(problem, best, kind, noise=_noise(flow, curves))
    draws = _draws(problem, best, errors, np.array(flow.draws), LOAD_EFFORT, seed)
    table = np.concatenate([best[None], _ends(problem, best, errors), draws])
    if own:
        flow = _fitted_again(flow, problem, table[:, : problem.own], errors, rows)
    return msgspec.structs.replace(flow, load=_load_part(problem, table[:, problem.own :], errors, rows))


def _of_situations(curves: Curves, seed: int) -> FlowPart:
    """FLOW's own parameters."""
    rows = [_as_load_row(row) for row in curves.rows if row.situation.n + row.situation.n_other > 0]
    if not rows:
        raise UsageError(
            "holds no run with computing cores", field="curves", value=curves.origin, hint="measure some"
        )
    measured = _table(rows)
    known = np.isfinite(measured) & (measured > 0)
    for stream, name in ((0, "comp"), (1, "comm")):
        if not known[stream::2].any():
            raise UsageError(
                "was measured in no run with computing cores",
                field=f"{name}_alone, {name}_together",
                hint="measure both streams, alone and together",
            )
    loads = tuple(row.load for row in rows)
    prepared = prepare(curves.shape, loads, plain=True)
    runs = prepared.situations
    before = prior(runs, np.where(known, measured, np.nan))
    problem = _FlowProblem(
        loads=loads,
        prepared=prepared,
        logs=np.log(measured[known]),
        known=known,
        before=before,
        own=len(NAMES),
        group=np.zeros(len(rows), dtype=int),
    )
    best = _best(problem, before.starts, OWN_EFFORT)
    widths = [
        min(width, SURE_WIDTHS.get(name, width)) for name, width in zip(NAMES, before.width, strict=True)
    ]
    sure = msgspec.structs.replace(problem, before=msgspec.structs.replace(before, width=np.array(widths)))
    local, remote = (problem.of_values(count > 0) for count in (runs.local, runs.remote))
    # How far off: the runs' noise from communication alone, where the model cannot be wrong; what is more
    # than noise in each stream, freed of what a value decided itself in the fit, is the model's discrepancy.
    errors = linear_at(sure, best, problem.stream, more=np.where(local & remote, BOTH_SOCKETS, 0.0))
    discrepancies = by_side(errors, problem.stream, local, remote)
    draws = _draws(sure, best, errors, np.zeros((DRAWS, 0)), OWN_EFFORT, seed)
    values, low, high, *drawn = _tuples(np.concatenate([best[None], _ends(sure, best, errors), draws]), NAMES)
    gaps = {
        "both sockets never computed together": not ((runs.local > 0) & (runs.remote > 0)).any(),
        "fewer values than parameters": len(problem.logs) < len(NAMES),
    }
    return FlowPart(
        names=NAMES,
        values=values,
        low=low,
        high=high,
        draws=tuple(drawn),
        discrepancy=as_bands(np.maximum(discrepancies.local, discrepancies.remote)),
        discrepancies=discrepancies,
        flags=(*before.flags, *(flag for flag, there in gaps.items() if there)),
    )


def _best(problem: _FlowProblem, starts: Sequence[Array], effort: _Effort) -> Array:
    """The best of short fits from every start, or of long ones from where the best of these ended; then once
    more with the errors it showed.
    """

    def fitted(start: Array, error: Array, evaluations: int) -> Minimum:
        return solve(
            problem.predicted, problem.logs, problem.before, start, error, evaluations, problem.scale
        )

    error = np.full(len(problem.logs), FIRST_ERROR)
    tried = sorted((fitted(start, error, effort.short) for start in starts), key=lambda item: item.cost)
    finalists = [fitted(item.point, error, effort.long) for item in tried[: effort.finalists]]
    point = min(finalists or tried, key=lambda item: item.cost).point
    missed = problem.predicted(point[None])[0] - problem.logs
    error = shown_errors(missed, problem.of_values(problem.group), error, ERRORS)
    return fitted(point, error, effort.long).point


def _ends(problem: _FlowProblem, point: Array, errors: Linear) -> Array:
    """Both ends of the coordinates' 90 % intervals, (2, C)."""
    half = NORMAL_90 * np.sqrt(np.diag(errors.covariance))
    return np.clip(np.stack([point - half, point + half]), problem.before.low, problem.before.high)


def _draws(
    problem: _FlowProblem, point: Array, errors: Linear, base: Array, effort: _Effort, seed: int
) -> Array:
    """As many draws of the linear approximation as `base` has rows, moved to where they agree with the runs
    (flow/least_squares.py); with many runs, with some from everywhere, that then weigh as much as all.
    Where FLOW stays, each is beside one of its own draws, `base`.
    """
    rng = np.random.default_rng(seed)
    spread = rng.standard_normal((len(base), len(point))) @ np.linalg.cholesky(errors.covariance).T
    runs = problem.known.shape[1]
    kept = np.zeros(runs, dtype=np.bool_)
    kept[np.linspace(0, runs - 1, min(runs, effort.settled)).round().astype(int)] = True
    part, chosen = problem.part(kept), problem.of_values(kept)
    return settle(
        point + spread,
        problem.before,
        msgspec.structs.replace(part, base=base).predicted,
        part.predicted(point[None])[0],
        errors.scale[chosen] * np.sqrt(chosen.mean()),
        rng,
    )


def _tuples(points: Array, names: tuple[str, ...]) -> list[tuple[float, ...]]:
    """Coordinates (D, C) of those names as rows of parameters."""
    return [tuple(row) for row in decode(points, names).tolist()]


def _table(rows: Sequence[Row] | Sequence[LoadRow]) -> Array:
    """The bandwidths (4 + C, N), NaN where not known; C: the most copies of a row."""
    values = [(*row.streams, *(row.copies_together if isinstance(row, LoadRow) else ())) for row in rows]
    most = max(map(len, values), default=4)
    return (
        np.array(
            [[np.nan if v is None else v for v in row] + [np.nan] * (most - len(row)) for row in values],
            dtype=float,
        )
        .reshape(len(values), most)
        .T
    )


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
        locals_ = {shape.socket(group.node) == group.socket for group in load.computing}
        covered |= {"local" if local else "remote" for local in locals_}
        if len({group.socket for group in load.computing}) > 1:
            covered.add("both")
        if load.messages is not None and load.computing:
            covered.add("first" if shape.local(load.messages.node) else "second")
    return covered


def _as_load_row(row: Row) -> LoadRow:
    values = msgspec.structs.asdict(row)
    return LoadRow(load=load_of(values.pop("situation")), **values)


def _load_problem(
    flow: FlowPart, curves: Curves, own: Sequence[LoadRow], others: Sequence[LoadRow], intensity: float
) -> _FlowProblem:
    """`own`: rows of `curves` where FLOW is fitted again, else none."""
    rows = [*own, *others]
    measured = _table(rows)
    known = np.isfinite(measured) & (measured > 0)
    for place in np.flatnonzero(~known.any(axis=0)).tolist():
        raise UsageError("holds no bandwidth", field="row", value=rows[place].source, hint="leave it out")
    before = load_prior(rows, curves.shape, curves.size, intensity, flow.values[INDEX["comm_first"]])
    names, loads = before.names, tuple(row.load for row in rows)
    if own:
        situations = [load_at(row.situation) for row in curves.rows]
        runs = prepare(curves.shape, situations, plain=True).situations
        before = prior(runs, _table(curves.rows)).followed_by(before)
    return _FlowProblem(
        loads=loads,
        prepared=prepare(curves.shape, loads),
        logs=np.log(measured[known]),
        known=known,
        before=before,
        own=len(NAMES) if own else 0,
        base=np.array([flow.values]),
        group=np.array([0] * len(own) + [1] * len(others)),
        kernels=np.array([[name == KERNEL + row.kernel for name in names] for row in rows], dtype=float),
        patterns=np.array([[name == PATTERN + row.pattern for name in names] for row in rows], dtype=float),
        scale=before.width,
        size=curves.size,
        intensity=intensity,
    )


def _starts(problem: _FlowProblem, flow: FlowPart) -> list[Array]:
    """Where fits begin: at the centres; and, if devices may lose more than receptions, where they do."""
    own, names = problem.own, problem.before.names[problem.own :]
    centre = problem.before.centre.copy()
    centre[:own] = encode(np.array(flow.values), NAMES)[:own]
    moved = np.array([*[0.0] * own, *map(_moved, names)])
    return [centre, centre + moved] if moved.any() else [centre]


def _moved(name: str) -> float:
    """What a coordinate is moved by where floors and room are low: the first sight tells neither."""
    words = name.split("_")
    if words[0] in ("send", "both", "copy") and len(words) > 1:
        return {"floor": LOW_FLOOR, "room": LITTLE_ROOM}.get(words[1], 0.0)
    return 0.0


def _noise(flow: FlowPart, curves: Curves) -> float:
    """Relative noise of a measured value, from messages alone, where FLOW cannot be wrong."""
    missed = []
    for row in curves.rows:
        if row.comm_alone:
            local = curves.shape.local(row.situation.comm_node)
            comm = flow.values[INDEX["comm_first" if local else "comm_second"]]
            missed.append(np.log(row.comm_alone / comm))
    return max(spread_of(np.array(missed)), LEAST_NOISE)


def _fitted_again(
    flow: FlowPart, problem: _FlowProblem, table: Array, errors: Linear, rows: Sequence[LoadRow]
) -> FlowPart:
    """FLOW with coordinates (3 + D, P): the best fit, both ends and draws; its flags without those that these
    rows correct.
    """
    values, low, high, *draws = _tuples(table, NAMES)
    both = any(len({group.socket for group in row.load.computing}) > 1 for row in rows)
    filled = ("both sockets never computed together",) if both else ()
    return msgspec.structs.replace(
        flow,
        values=values,
        low=low,
        high=high,
        draws=tuple(draws),
        discrepancy=discrepancy(errors, problem.of_values(problem.group) == 0, problem.stream),
        discrepancies=None,
        flags=tuple(flag for flag in flow.flags if flag not in filled),
    )


def _load_part(problem: _FlowProblem, table: Array, errors: Linear, rows: Sequence[LoadRow]) -> LoadPart:
    """The parameters beyond FLOW with coordinates (3 + D, E), in the same order; factors are dropped."""
    every = problem.before.names[problem.own :]
    kept = [k for k, name in enumerate(every) if not name.startswith((KERNEL, PATTERN))]
    names = tuple(every[k] for k in kept)
    values, low, high, *draws = _tuples(table[:, kept], names)
    sizes = [m.size or problem.size for m in (row.load.messages for row in rows) if m is not None]
    return LoadPart(
        names=names,
        values=values,
        low=low,
        high=high,
        draws=tuple(draws),
        discrepancy=discrepancy(errors, problem.of_values(problem.group) == 1, problem.stream),
        measured=questions(rows, problem.size, problem.intensity),
        switches=problem.before.switches,
        intensity=problem.intensity,
        intensity_high=max((g.intensity for row in rows for g in row.load.computing), default=0.0),
        size_low=min([*sizes, problem.size]),
        size_high=max([*sizes, problem.size]),
        runs=len(rows),
    )
