"""From how many nodes on communication limits a step: where T_M^C = T_N^C (Langguth et al. 2018, Fig. 4)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import msgspec
import numpy as np

from elbowroom.experiments.diffusion.rows import StepRow
from elbowroom.stats.interval import WithInterval

FEWEST = 3
"""Numbers of nodes that an interval needs: a line through two has no residuals."""

CONFIDENCE = 0.95


class NodeLimit(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """The number of nodes at which both sides of a step take equally long, with its 95 % interval where the
    runs give one. `beyond`: it is outside of the runs, and a power law through all of them leads there.
    """

    nodes: float
    low: float | None = None
    high: float | None = None
    beyond: bool


class ScalingLimit(msgspec.Struct, frozen=True, kw_only=True):
    """Where communication limits: `contended` by T_M^C = T_N^C, `alone` by T_M = T_N, which ignores
    contention. None where computation does not shrink faster than communication.
    """

    contended: NodeLimit | None
    alone: NodeLimit | None


def limit(table: Sequence[StepRow]) -> ScalingLimit | None:
    """Of the rows with the fewest communication threads; None of a single number of nodes."""
    threads = min((row.comm_threads for row in table), default=0)
    rows = [row for row in table if row.comm_threads == threads and row.step.t_comm > 0]
    if len(rows) < 2:
        return None
    nodes = [row.nodes for row in rows]
    return ScalingLimit(
        contended=crossing(nodes, [row.step.comp_contended / row.step.comm_contended for row in rows]),
        alone=crossing(nodes, [row.step.t_comp / row.step.t_comm for row in rows]),
    )


def crossing(nodes: Sequence[float], ratios: Sequence[float]) -> NodeLimit | None:
    """Where the ratio of computation to communication, falling with the nodes, is 1.

    Between two neighbouring numbers of nodes it is interpolated in logarithms; outside of them a power law
    through all of them leads there, with the interval of inverse prediction (Fieller's). None where the ratio
    does not fall.
    """
    x, y = np.log(np.asarray(nodes, dtype=float)), np.log(np.asarray(ratios, dtype=float))
    for (left, above), (right, below) in pairwise(zip(x, y, strict=True)):
        if above > 0 >= below:
            at = left + (right - left) * above / (above - below)
            return NodeLimit(nodes=float(np.exp(at)), beyond=False)
    centre, spread = float(x.mean()), float(((x - x.mean()) ** 2).sum())
    slope = float(((x - centre) * y).sum()) / spread
    if slope >= 0:
        return None
    middle = float(y.mean())
    ends = _fieller(x - centre, y - middle, slope, middle, spread)
    return NodeLimit(
        nodes=math.exp(centre - middle / slope),
        low=None if ends is None else math.exp(centre + ends[0]),
        high=None if ends is None else math.exp(centre + ends[1]),
        beyond=True,
    )


def _fieller(
    x: np.ndarray, y: np.ndarray, slope: float, middle: float, spread: float
) -> tuple[float, float] | None:
    """Ends of where the line is 0, from the centre of x; None where the slope is too uncertain for both."""
    count = len(x)
    if count < FEWEST:
        return None
    from scipy.special import stdtrit

    variance = float(((y - slope * x) ** 2).sum()) / (count - 2)
    uncertain = float(stdtrit(count - 2, (1 + CONFIDENCE) / 2)) ** 2 * variance
    a, b, c = slope**2 - uncertain / spread, 2 * slope * middle, middle**2 - uncertain / count
    if a <= 0:
        return None
    root = math.sqrt(max(0.0, b * b - 4 * a * c))
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


def limit_text(found: ScalingLimit) -> str:
    """The sentence of a finding."""
    if found.contended is None:
        return (
            "Communication does not come to limit the step: computation does not shrink faster than it with "
            "the number of nodes."
        )
    text = f"Communication limits the step from {_nodes(found.contended)} on, where T_M^C = T_N^C"
    if found.alone is None:
        return f"{text}."
    return f"{text}; a model without contention would say {_nodes(found.alone)} (T_M = T_N)."


def _nodes(found: NodeLimit) -> str:
    number = f"{round(found.nodes):,} nodes"
    ends = found.bounds
    between = "" if ends is None else f"{round(ends[0]):,} to {round(ends[1]):,}, "
    return f"{number} ({between}extrapolated by a power law)" if found.beyond else number
