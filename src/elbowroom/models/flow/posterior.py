"""Draws from a posterior whose model has kinks: each is fitted to measurements of its own.

At the best fit a kinked model may not depend on a parameter at all (a capacity that nothing reaches), and the
linear approximation then says that the runs know nothing of it. They do: with a small enough value something
measured would change. So every draw is moved until it agrees with what was measured, with noise of its own
(randomised maximum a posteriori; Oliver, He and Reynolds 1996).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

STEP = 1e-4
ROUNDS = 8
OUTLIER = 3.0
"""Errors beyond that many standard deviations count less and less."""


def settle(
    begin: Array,
    centre: Array,
    width: Array,
    bounds: tuple[Array, Array],
    predicted: Callable[[Array], Array],
    measured: Array,
    error: Array,
    rng: np.random.Generator,
) -> Array:
    """The draws (D, P) moved to where each fits its own noise and its own prior's centre.

    `predicted` gives (D, V) for coordinates (D, P); `measured` and `error` (V,); the prior is normal around
    `centre` with `width` (P,), inside `bounds`.
    """
    draws, unknowns = begin.shape
    low, high = bounds
    wanted = measured + error * rng.standard_normal((draws, len(measured)))
    belief = centre + width * rng.standard_normal((draws, unknowns))

    def missed(points: Array, targets: Array, beliefs: Array) -> Array:
        data = (predicted(points) - targets) / error
        return np.concatenate([data, (points - beliefs) / width], axis=1)

    points = np.clip(begin, low, high)
    off = missed(points, wanted, belief)
    loss = _loss(off)
    damping = np.full(draws, 1e-2)
    targets, beliefs = (np.repeat(table, unknowns, axis=0) for table in (wanted, belief))
    for _ in range(ROUNDS):
        # Forward where there is room above, backward else: at a bound the step must stay inside.
        step = np.where(points + STEP > high, -STEP, STEP)
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
