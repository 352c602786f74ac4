"""The threshold model by robust least squares: fragile maxima and minima replaced by all that was measured.

The two breakpoints are tried on a grid of the measured counts; for each pair the other parameters minimise a
soft L1 loss of the relative errors of all four streams (default mode's equations), all pairs at once
(Levenberg-Marquardt). Intervals come from resampled residuals.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.models.threshold.law import Batch, Floats, Parameters, many
from elbowroom.models.threshold.samples import Sample, by_count
from elbowroom.stats.interval import Interval

CONFIDENCE = 0.9
REFINED = 24
"""Pairs of breakpoints that are looked at closely."""
CANDIDATES = 8
"""Those that are tried again for each resample."""
PLAUSIBLE = 2.706
"""Loss above the best one, in squares of the typical error, up to which other breakpoints are as good: the
90 % quantile of chi squared with one degree of freedom (profile likelihood).
"""

_STEP = 1e-6
_OUTLIER = 0.05
"""Relative error from which the loss grows linearly, before the spread of the residuals is known."""
_LEAST_OUTLIER = 0.005
_FREE = ("b_comp_seq", "b_comm_seq", "t_seq_max", "t_par_max", "drop", "alpha", "delta_r")
"""`drop` = t_par_max - t_par_max2; 0 where the breakpoints are one."""


class _RobustProblem(NamedTuple):
    """What is fitted: rows and their bandwidths, (m,) and (m, 4) or (k, m, 4); the scale of each unknown."""

    ns: NDArray[np.int64]
    measured: Floats
    cores: int
    scale: Floats


class _Solution(NamedTuple):
    """Unknowns in units of their scale (k, 7), breakpoints (k,) each, and the loss (k,)."""

    x: Floats
    n_par: NDArray[np.int64]
    n_seq: NDArray[np.int64]
    loss: Floats

    def part(self, chosen: NDArray[np.int64] | slice) -> _Solution:
        """Those solutions, in that order."""
        return _Solution._make(table[chosen] for table in self)


def calibrate(
    sample: Sample, start: Parameters, *, seed: int, resamples: int
) -> tuple[Parameters, dict[str, Interval]]:
    """The parameters that fit best, and the 90 % interval of each; `start` is the thesis' calibration."""
    scale = np.array(
        [
            start.b_comp_seq,
            start.b_comm_seq,
            start.t_seq_max,
            start.t_par_max,
            start.t_par_max,
            1.0,
            start.b_comp_seq,
        ]
    )
    problem = _RobustProblem(sample.ns, sample.meant, sample.cores, scale)
    counts, _ = by_count(sample)
    par, seq = (axis.ravel() for axis in np.meshgrid(counts, counts))
    ordered = par <= seq
    n_par, n_seq = par[ordered], seq[ordered]
    begin = np.tile(_from_medians(sample, start) / scale, (len(n_par), 1))
    rough = _minimise(problem, _Solution(begin, n_par, n_seq, np.zeros(len(n_par))), _OUTLIER, 8)
    outlier = max(_LEAST_OUTLIER, 2.0 * _spread(problem, rough))
    best = np.argsort(rough.loss, kind="stable")[:REFINED]
    # The law has kinks, where a descent may stop: the thesis' extremes are a second place to start from.
    extremes = np.tile(_unknowns(start) / scale, (len(best), 1))
    again = rough.part(np.concatenate((best, best)))
    again = again._replace(x=np.concatenate((rough.x[best], extremes)))
    fine = _minimise(problem, again, outlier, 20)
    fine = fine.part(np.argsort(fine.loss, kind="stable"))
    if not resamples:
        return _parameters(problem, fine), {}
    rough = rough._replace(loss=_loss(_off(problem, rough), outlier))
    tried = _Solution._make(map(np.concatenate, zip(fine, rough, strict=True)))
    return _parameters(problem, fine), _intervals(problem, fine, tried, outlier, seed, resamples)


def _unknowns(p: Parameters) -> Floats:
    drop = max(p.t_par_max - p.t_par_max2, 0.0)
    return np.array([p.b_comp_seq, p.b_comm_seq, p.t_seq_max, p.t_par_max, drop, p.alpha, p.delta_r])


def _from_medians(sample: Sample, start: Parameters) -> Floats:
    """Unknowns as in `start`, but each core's demand, the network and alpha from medians."""
    counts, table = by_count(sample)
    few = max(1, len(counts) // 3)
    each = table[:few, 0] / counts[:few]
    b_comp = float(np.nanmedian(each)) if np.isfinite(each).any() else start.b_comp_seq
    alone = sample.streams[:, 1]
    b_comm = float(np.median(alone[np.isfinite(alone)]))
    lowest = np.sort(table[np.isfinite(table[:, 3]), 3])[: max(1, len(counts) // 4)]
    alpha = float(np.clip(np.median(lowest) / b_comm, 0.01, 1.0))
    medians = msgspec.structs.replace(start, b_comp_seq=b_comp, b_comm_seq=b_comm, alpha=alpha)
    return _unknowns(medians)


def _batch(problem: _RobustProblem, at: _Solution) -> Batch:
    """Sets of parameters from unknowns (k, 7)."""
    b_comp, b_comm, t_seq, t_par, drop, alpha, delta_r = (at.x * problem.scale).T[:, :, None]
    between = (at.n_seq - at.n_par)[:, None].astype(np.float64)
    drop = np.where(between > 0, drop, 0.0)
    return Batch(
        n_par_max=at.n_par[:, None].astype(np.float64),
        t_par_max=t_par,
        n_seq_max=at.n_seq[:, None].astype(np.float64),
        t_seq_max=t_seq,
        t_par_max2=t_par - drop,
        alpha=alpha,
        delta_l=drop / np.maximum(between, 1.0),
        delta_r=delta_r,
        b_comp_seq=b_comp,
        b_comm_seq=b_comm,
    )


def _predicted(problem: _RobustProblem, sets: Batch) -> Floats:
    """What those sets predict for the problem's rows: (k, m, 4)."""
    return many(sets, problem.cores).streams(sets.b_comm_seq)[:, problem.ns]


def _off(problem: _RobustProblem, at: _Solution) -> Floats:
    """Relative errors, 0 where nothing was measured: (k, 4 m)."""
    off = np.nan_to_num(_predicted(problem, _batch(problem, at)) / problem.measured - 1.0)
    flat: Floats = off.reshape(len(at.x), -1)
    return flat


def _loss(off: Floats, outlier: float) -> Floats:
    """Soft L1: quadratic below `outlier`, linear far beyond."""
    loss: Floats = (2 * outlier**2 * (np.sqrt(1 + (off / outlier) ** 2) - 1)).sum(axis=1)
    return loss


def _bounded(x: Floats) -> Floats:
    """Unknowns kept where they mean something; the last, delta_r, may be a gain of a tenth of a core."""
    low = np.array([0.05, 0.05, 0.05, 0.05, 0.0, 0.0, -0.1])
    high = np.array([20.0, 20.0, 20.0, 20.0, 1.0, 1.0, 1.0])
    kept: Floats = np.clip(x, low, high)
    return kept


def _minimise(problem: _RobustProblem, begin: _Solution, outlier: float, iterations: int) -> _Solution:
    """Levenberg-Marquardt of k problems side by side."""
    k, unknowns = begin.x.shape
    x = _bounded(begin.x)
    damping = np.full(k, 1e-3)
    off = _off(problem, begin._replace(x=x))
    beside, every = _spread_out(problem, unknowns), begin.part(np.repeat(np.arange(k), unknowns))
    loss = _loss(off, outlier)
    for _ in range(iterations):
        moved = np.repeat(x[:, None, :], unknowns, axis=1) + _STEP * np.eye(unknowns)
        there = _off(beside, every._replace(x=moved.reshape(-1, unknowns)))
        jacobian = (there.reshape(k, unknowns, -1) - off[:, None, :]) / _STEP
        weight = 1 / np.sqrt(1 + (off / outlier) ** 2)
        weighted = jacobian * weight[:, None, :]
        normal = weighted @ jacobian.transpose(0, 2, 1)
        slope = (weighted @ off[:, :, None])[:, :, 0]
        # An unknown that nothing depends on has a zero row: the absolute term leaves it where it is.
        diagonal = damping[:, None] * np.einsum("kii->ki", normal) + 1e-9
        step = np.linalg.solve(normal + diagonal[:, :, None] * np.eye(unknowns), -slope[:, :, None])
        tried = _bounded(x + step[:, :, 0])
        off_tried = _off(problem, begin._replace(x=tried))
        loss_tried = _loss(off_tried, outlier)
        better = loss_tried < loss
        x = np.where(better[:, None], tried, x)
        off = np.where(better[:, None], off_tried, off)
        loss = np.where(better, loss_tried, loss)
        damping = np.clip(np.where(better, damping / 4, damping * 6), 1e-9, 1e6)
    return begin._replace(x=x, loss=loss)


def _spread_out(problem: _RobustProblem, times: int) -> _RobustProblem:
    """The problem with each of k sets of measurements `times` times; as it is where all share one."""
    if problem.measured.ndim == 2:
        return problem
    return problem._replace(measured=np.repeat(problem.measured, times, axis=0))


def _spread(problem: _RobustProblem, solved: _Solution) -> float:
    """Typical relative error of the best solution (scaled median of absolute values)."""
    best = int(np.argmin(solved.loss))
    off = _off(problem, solved.part(slice(best, best + 1)))[0]
    off = off[np.isfinite(problem.measured).ravel()]
    return float(1.4826 * np.median(np.abs(off)))


def _intervals(
    problem: _RobustProblem, solved: _Solution, tried: _Solution, outlier: float, seed: int, resamples: int
) -> dict[str, Interval]:
    """90 % interval of each parameter: from fits to resampled residuals, and from all breakpoints of `tried`
    that explain the measurement as well as the best ones do. `solved`: best first.
    """
    best = solved.part(np.arange(min(CANDIDATES, len(solved.loss))))
    sets = _batch(problem, _resampled(problem, best, outlier, seed, resamples))
    typical = max(_spread(problem, solved), 1e-6)
    alike = np.flatnonzero(tried.loss <= solved.loss[0] + PLAUSIBLE * typical**2)
    others = _batch(problem, tried.part(alike))
    value = _parameters(problem, solved)
    tail = (1 - CONFIDENCE) / 2
    intervals = {}
    for name, drawn, other in zip(Batch._fields, sets, others, strict=True):
        low, high = np.quantile(drawn[:, 0], (tail, 1 - tail))
        low, high = min(float(low), float(other.min())), max(float(high), float(other.max()))
        intervals[name] = Interval(value=float(getattr(value, name)), low=low, high=high)
    return intervals


def _resampled(
    problem: _RobustProblem, best: _Solution, outlier: float, seed: int, resamples: int
) -> _Solution:
    """The best fit to each of `resamples` measurements: what was predicted plus residuals drawn by stream."""
    predicted = _predicted(problem, _batch(problem, best.part(slice(1))))[0]
    off = problem.measured / predicted - 1.0
    known = int(np.isfinite(off).sum())
    widen = np.sqrt(known / max(known - len(_FREE) - 2, 1))
    generator = np.random.default_rng(seed)
    drawn = np.full((resamples, *off.shape), np.nan)
    for stream in range(4):
        rows = np.flatnonzero(np.isfinite(off[:, stream]))
        pool = (off[rows, stream] - off[rows, stream].mean()) * widen
        noise = generator.choice(pool, size=(resamples, len(rows))) if len(rows) else 0.0
        drawn[:, rows, stream] = predicted[rows, stream] * np.maximum(1 + noise, 0.05)
    tries = len(best.loss)
    every = best.part(np.tile(np.arange(tries), resamples))
    again = _minimise(problem._replace(measured=np.repeat(drawn, tries, axis=0)), every, outlier, 8)
    chosen = again.loss.reshape(resamples, tries).argmin(axis=1) + tries * np.arange(resamples)
    return again.part(chosen)


def _parameters(problem: _RobustProblem, solved: _Solution) -> Parameters:
    """The first solution as parameters."""
    sets = _batch(problem, solved.part(slice(1)))
    values = {name: float(column[0, 0]) for name, column in zip(Batch._fields, sets, strict=True)}
    return Parameters(
        **{name: value for name, value in values.items() if not name.startswith("n_")},
        n_par_max=int(values["n_par_max"]),
        n_seq_max=int(values["n_seq_max"]),
    )
