"""The cheapest choice of groups that has every member exactly once: set partitioning by scipy's HiGHS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csc_array

from elbowroom.errors import MachineError

Floats = NDArray[np.float64]

SECONDS = 60.0
"""Time limit of one search."""

_WHOLE = 0.999
"""A variable above this is 1 within the solver's tolerance."""


class Partition(NamedTuple):
    """Indices of the chosen groups, what they cost together, and the cost that no choice is below."""

    chosen: tuple[int, ...]
    cost: float
    bound: float


class Relaxed(NamedTuple):
    """Shares of the groups in the cheapest fractional choice, its cost, and the price of each member."""

    shares: Floats
    cost: float
    prices: Floats


def partition(
    groups: Sequence[Sequence[int]],
    costs: Sequence[float],
    members: int,
    *,
    seconds: float = SECONDS,
    gap: float = 0.0,
) -> Partition | None:
    """The cheapest partition of 0 .. `members` - 1; None where there is none, or none was found in time.

    The search ends after `seconds`, or where the cost is within the share `gap` of the bound.
    """
    if members == 0:
        return Partition((), 0.0, 0.0)
    # Costs of similar size as 1: the solver's tolerances are absolute.
    scale = float(np.mean(costs)) or 1.0
    found: Any = milp(
        np.asarray(costs) / scale,
        integrality=np.ones(len(groups), dtype=np.int64),
        bounds=Bounds(0, 1),
        constraints=LinearConstraint(_incidence(groups, members), 1, 1),
        options={"time_limit": seconds, "mip_rel_gap": gap},
    )
    if found.x is None:
        return None
    chosen = tuple(int(index) for index in np.flatnonzero(found.x > 0.5))
    cost = float(np.sum(np.asarray(costs)[list(chosen)]))
    return Partition(chosen, cost, min(cost, float(found.mip_dual_bound) * scale))


def relax(groups: Sequence[Sequence[int]], costs: Sequence[float], members: int) -> Relaxed:
    """The same with groups that may be chosen in part: a lower bound, and prices of members."""
    found: Any = linprog(
        costs, A_eq=_incidence(groups, members), b_eq=np.ones(members), bounds=(0, None), method="highs"
    )
    if found.x is None:
        raise MachineError(
            f"ended without an answer ({found.message})", field="solver", hint="give fewer jobs"
        )
    return Relaxed(np.asarray(found.x), float(found.fun), np.asarray(found.eqlin.marginals))


def whole(shares: Floats) -> NDArray[np.intp]:
    """The groups that the fractional choice has entirely."""
    return np.flatnonzero(shares > _WHOLE)


def _incidence(groups: Sequence[Sequence[int]], members: int) -> Any:
    """A row for each member, a column for each group."""
    rows = np.concatenate([np.asarray(group, dtype=np.int64) for group in groups])
    columns = np.repeat(np.arange(len(groups)), [len(group) for group in groups])
    return csc_array((np.ones(len(rows)), (rows, columns)), shape=(members, len(groups)))
