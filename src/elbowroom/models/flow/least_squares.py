"""Least squares as FLOW is fitted: of logarithms, with bounds, normal priors and a robust loss (soft L1).

Draws from a posterior whose model has kinks: each is fitted to measurements of its own.

At the best fit a kinked model may not depend on a parameter at all (a capacity that nothing reaches), and the
linear approximation then says that the runs know nothing of it. They do: with a small enough value something
measured would change. So every draw is moved until it agrees with what was measured, with noise of its own
(randomised maximum a posteriori; Oliver, He and Reynolds 1996).

How far off a fit of FLOW is: the covariance of its coordinates, and what the model cannot follow.

The constants were set on machines made at random, by benchmarks/intervals.py with the numbers 1000 to 1002;
what the intervals cover on machines with other numbers is in docs/reference/models.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.models.flow.law import Array
from elbowroom.models.flow.part import Discrepancies
from elbowroom.models.flow.prior import Prior
from elbowroom.models.load import Bands

STEP = 1e-5
"""Of the finite differences, in the fit's coordinates (logarithms, mostly)."""

MARGIN = 1e-6
"""A fit starts so far inside the bounds."""

Predicted = Callable[[Array], Array]
"""The model's logarithms at the measured values, (D, V), for coordinates (D, P)."""


class Minimum(NamedTuple):
    """Coordinates (P,), and what they cost."""

    point: Array
    cost: float


def jacobian(predicted: Predicted, point: Array) -> Array:
    """Slopes of the measured values, (V, P), by central differences, all at once."""
    steps = STEP * np.eye(len(point))
    logs = predicted(np.concatenate([point + steps, point - steps]))
    return (logs[: len(point)] - logs[len(point) :]).T / (2 * STEP)


def solve(
    predicted: Predicted,
    logs: Array,
    before: Prior,
    start: Array,
    error: Array,
    evaluations: int,
    scale: Array | float = 1.0,
) -> Minimum:
    """The best fit from `start`; `logs`, `error` of the measured values (V,), `scale` of the coordinates."""
    from scipy.optimize import least_squares  # 0.2 s to load: only who fits pays

    def residuals(point: Array) -> Array:
        missed = (predicted(point[None])[0] - logs) / error
        return np.concatenate([missed, (point - before.centre) / before.width])

    def slopes(point: Array) -> Array:
        return np.concatenate([jacobian(predicted, point) / error[:, None], np.diag(1 / before.width)])

    best = least_squares(
        residuals,
        np.clip(start, before.low + MARGIN, before.high - MARGIN),
        slopes,
        bounds=(before.low, before.high),
        loss="soft_l1",
        max_nfev=evaluations,
        x_scale=scale,
    )
    return Minimum(np.asarray(best.x, dtype=float), float(best.cost))


NORMAL_HALF = 0.6744897501960817
"""Median of the absolute value of a standard normal variable."""


class FitProblem(msgspec.Struct, frozen=True, kw_only=True):
    """What is fitted: `logs` of the measured values (V,), by coordinates of which `before` is believed."""

    logs: Array
    before: Prior

    def predicted(self, points: Array) -> Array:
        """The model's logarithms at the measured values, (D, V), for coordinates (D, P)."""
        raise NotImplementedError


def shown_errors(missed: Array, groups: NDArray[np.intp], first: Array, bounds: tuple[float, float]) -> Array:
    """Relative errors (V,) as the residuals of each group show them, within bounds; `first` elsewhere."""
    error = first.copy()
    for group in np.unique(groups):
        chosen = groups == group
        error[chosen] = np.clip(np.median(np.abs(missed[chosen])) / NORMAL_HALF, *bounds)
    return error


LEAST_NOISE = 5e-4
"""Relative; of runs without any, for instance of a virtual machine."""

NOISE_MARGIN = 1.1
"""The noise itself is known to about a tenth."""

TAIL, TAIL_NORMAL = 0.15, 1.4395314709384563
"""Share of errors left out of a spread, and where a standard normal variable has them: models are far off in
few places (knees), which would make every other place's interval too wide.
"""

BOTH_SOCKETS = 0.02
"""Relative error of the model in runs with both sockets computing, beside the noise: they are so few that the
fit meets them however wrong the model is there.
"""

LEAST_DISCREPANCY = (0.002, 0.001, 0.002, 0.001)
"""The least relative standard deviation of the model's own error, by stream: noise may hide it."""

BETWEEN_SOCKETS = (0.008, 0.0, 0.008, 0.008)
"""What is added to it, in squares, where both sockets compute, which hardly any run shows."""

LEAST_FREEDOM = 0.2
"""What a value decides itself in the fit at least leaves this much of its error to be seen."""

ROUNDS = 2
"""The first takes spreads of residuals as they are, the second frees them of what a value decided itself."""

COMM_ALONE = 1
"""The stream in which the model cannot be wrong: its residuals are noise."""


class Linear(msgspec.Struct, frozen=True):
    """The fit as a linear one: `covariance` of the coordinates; of each measured value its error `scale`, the
    residual `free` of what the value decided itself, and the variance `own` that the coordinates give it. All
    relative.
    """

    covariance: Array
    scale: Array
    free: Array
    own: Array
    noise: float


def linear(
    missed: Array,
    slopes: Array,
    kind: NDArray[np.intp],
    width: Array,
    *,
    more: Array | float = 0.0,
    noise: float | None = None,
) -> Linear:
    """The linear approximation around a fit with the residuals `missed` (V,) and their `slopes` (V, P).

    `kind`: values of one kind have errors alike; `width`: standard deviations of the priors (P,); `more`:
    error beside that of the kind; `noise`: relative, by default that of the values of kind COMM_ALONE.
    """
    free, known = missed, noise
    for _ in range(ROUNDS):
        spreads = np.array([spread_of(free[kind == k]) for k in range(1 + int(kind.max()))])
        known = max(spreads[COMM_ALONE], LEAST_NOISE) if noise is None else noise
        scale = np.hypot(np.maximum(spreads, known)[kind], more)
        information = (slopes / scale[:, None] ** 2).T @ slopes + np.diag(1 / width**2)
        covariance = np.linalg.inv(information)
        covariance = (covariance + covariance.T) / 2
        own = np.einsum("ij,jk,ik->i", slopes, covariance, slopes)
        free = missed / np.sqrt(np.maximum(1 - own / scale**2, LEAST_FREEDOM))
    assert known is not None
    return Linear(covariance=covariance, scale=scale, free=free, own=own, noise=float(known))


def linear_at(
    problem: FitProblem,
    point: Array,
    kind: NDArray[np.intp],
    *,
    more: Array | float = 0.0,
    noise: float | None = None,
) -> Linear:
    """The linear approximation of a problem around its best coordinates."""
    missed = problem.predicted(point[None])[0] - problem.logs
    slopes = jacobian(problem.predicted, point)
    return linear(missed, slopes, kind, problem.before.width, more=more, noise=noise)


def discrepancy(errors: Linear, chosen: NDArray[np.bool_], stream: NDArray[np.intp]) -> Bands:
    """What is more than noise in the chosen values, by stream."""
    known = (NOISE_MARGIN * errors.noise) ** 2
    parts = [chosen & (stream == k) for k in range(4)]
    more = [
        0.0
        if k == COMM_ALONE or not part.any()
        else spread_of(errors.free[part]) ** 2 - known - float(np.median(errors.own[part]))
        for k, part in enumerate(parts)
    ]
    return as_bands(np.maximum(np.sqrt(np.maximum(more, 0.0)), LEAST_DISCREPANCY))


def by_side(
    errors: Linear, stream: NDArray[np.intp], local: NDArray[np.bool_], remote: NDArray[np.bool_]
) -> Discrepancies:
    """The discrepancy where cores of one socket compute on local, or remote, data, and where both sockets do.

    `local`, `remote`: (V,) whether such cores compute. Where a side was not measured, the other stands in.
    """
    alone = [here & ~there for here, there in ((local, remote), (remote, local))]
    measured = [part if part.any() else np.ones_like(part) for part in alone]
    one, other = (discrepancy(errors, part, stream) for part in measured)
    both = np.hypot(np.maximum(one, other), BETWEEN_SOCKETS)
    return Discrepancies(local=one, remote=other, both=as_bands(both))


def as_bands(values: Array) -> Bands:
    """One number for each stream."""
    first, second, third, fourth = values.tolist()
    return first, second, third, fourth


def spread_of(missed: Array) -> float:
    """Standard deviation of normal errors of which TAIL are larger than these; 0 of none."""
    return float(np.quantile(np.abs(missed), 1 - TAIL)) / TAIL_NORMAL if len(missed) else 0.0


DRAW_STEP = 1e-4
DRAW_ROUNDS = 8
OUTLIER = 3.0
"""Errors beyond that many standard deviations count less and less."""


def settle(
    begin: Array,
    before: Prior,
    predicted: Predicted,
    measured: Array,
    error: Array,
    rng: np.random.Generator,
) -> Array:
    """The draws (D, P) moved to where each fits its own noise and its own prior's centre.

    `predicted` gives (D, V) for coordinates (D, P); `measured` and `error` (V,).
    """
    draws, unknowns = begin.shape
    low, high, width = before.low, before.high, before.width
    wanted = measured + error * rng.standard_normal((draws, len(measured)))
    belief = before.centre + width * rng.standard_normal((draws, unknowns))

    def missed(points: Array, targets: Array, beliefs: Array) -> Array:
        data = (predicted(points) - targets) / error
        return np.concatenate([data, (points - beliefs) / width], axis=1)

    points = np.clip(begin, low, high)
    off = missed(points, wanted, belief)
    loss = _loss(off)
    damping = np.full(draws, 1e-2)
    targets, beliefs = (np.repeat(table, unknowns, axis=0) for table in (wanted, belief))
    for _ in range(DRAW_ROUNDS):
        # Forward where there is room above, backward else: at a bound the step must stay inside.
        step = np.where(points + DRAW_STEP > high, -DRAW_STEP, DRAW_STEP)
        moved = np.repeat(points[:, None, :], unknowns, axis=1) + step[:, :, None] * np.eye(unknowns)
        there = missed(moved.reshape(-1, unknowns), targets, beliefs).reshape(draws, unknowns, -1)
        slopes = (there - off[:, None, :]) / step[:, :, None]
        weight = 1 / np.sqrt(1 + (off / OUTLIER) ** 2)
        weighted = slopes * weight[:, None, :]
        normal = weighted @ slopes.transpose(0, 2, 1)
        downhill = -(weighted @ off[:, :, None])
        diagonal = damping[:, None] * np.einsum("dpp->dp", normal)
        change = np.linalg.solve(normal + diagonal[:, :, None] * np.eye(unknowns), downhill)[:, :, 0]
        tried = np.clip(points + change, low, high)
        off_tried = missed(tried, wanted, belief)
        loss_tried = _loss(off_tried)
        better = loss_tried < loss
        points, off = (
            np.where(better[:, None], new, old) for new, old in ((tried, points), (off_tried, off))
        )
        loss = np.where(better, loss_tried, loss)
        damping = np.clip(np.where(better, damping / 4, damping * 8), 1e-6, 1e8)
    return points


def _loss(off: Array) -> Array:
    loss: Array = (2 * OUTLIER**2 * (np.sqrt(1 + (off / OUTLIER) ** 2) - 1)).sum(axis=1)
    return loss
