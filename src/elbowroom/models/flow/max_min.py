"""Sharing capacities: streams with a demand, a guaranteed floor and a weight fill the resources they pass.

The law, step by step, so that another implementation gives the same to the last digits. K streams with
demand d_k, floor f_k <= d_k and weight w_k >= 0 (all rates in one unit); R resources with capacity c_r >= 0;
a_rk is what a unit of stream k takes of resource r, 0 where it does not pass. Only + - * /, min and max.

1. Floors. F_r = sum of a_rk f_k. A stream's rate: f_k times the least of 1 and c_r / F_r of its resources.
2. Filling. Active: the streams with w_k > 0. At most K rounds of: free_r = c_r - sum of a_rk rate_k, not
   below 0; a stream with d_k - rate <= 1e-12 d_k, or with a resource whose free_r <= 1e-12 c_r, is no longer
   active; every active rate grows by w_k x, x being the least of (d_k - rate) / w_k of the active streams and
   free_r / (sum of a_rk w_k of the active streams) of the resources with an active stream.
3. What is left. The same as step 2 with the streams of weight 0, each with weight 1.

Each round ends with one stream more at its demand or at a full resource, so K rounds are enough.
Sources: progressive filling of max-min fairness; floors and the weight 0 are the hypotheses of Swartvagher
2022, section 6.1.1 (messages lose first, a minimum is always theirs).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

EXHAUSTED = 1e-12
"""Relative to the demand or the capacity: what is less than this from being full is full."""


def fill(demands: Array, floors: Array, weights: Array, capacities: Array, costs: Array) -> Array:
    """Rates, shape (K, B), of K streams in B independent networks.

    demands, floors, weights: (K, B); capacities: (R, B), infinite for a resource that never limits; costs:
    (R, K, B), what a unit of the stream takes of the resource, 0 where it does not pass.
    """
    rates = _guaranteed(floors, capacities, costs) + np.zeros_like(demands)
    eager = weights > 0
    rates = _grow(rates, np.where(eager, weights, 0.0), demands, capacities, costs)
    if not eager.all():
        rates = _grow(rates, np.where(eager, 0.0, 1.0), demands, capacities, costs)
    return rates


def _guaranteed(floors: Array, capacities: Array, costs: Array) -> Array:
    wanted = (costs * floors).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        kept = np.where(wanted > capacities, capacities / wanted, 1.0)
    least: Array = np.where(costs > 0, kept[:, None], 1.0).min(axis=0)
    return floors * least


def _grow(rates: Array, weights: Array, demands: Array, capacities: Array, costs: Array) -> Array:
    """Lets the streams of positive weight grow together until each has met its demand or a full resource."""
    for _ in range(len(demands)):
        free = np.maximum(capacities - (costs * rates).sum(axis=1), 0.0)
        full = free <= EXHAUSTED * np.where(np.isfinite(capacities), capacities, 0.0)
        stopped = ((costs > 0) & full[:, None]).any(axis=0) | (demands - rates <= EXHAUSTED * demands)
        active = np.where(stopped, 0.0, weights)
        if not active.any():
            break
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            own = np.where(active > 0, (demands - rates) / active, np.inf).min(axis=0)
            load = (costs * active).sum(axis=1)
            common = np.where(load > 0, free / load, np.inf).min(axis=0)
        step = np.minimum(own, common)
        rates = rates + active * np.where(np.isfinite(step), step, 0.0)
    return rates
