"""Table II of Langguth et al. (2018) for an application that was measured: what its steps take beside what
the overlap model predicts from their parts, and beside what people assume without a model; from how many
nodes on communication limits them (Fig. 4).

As in the paper (section V) T_M is a step without communication less its separator, so the barrier that ends
it is inside; T_N is the exchange alone. The model says how long the two take at once, and the separator,
which ends before the exchange can begin, is added ("it needs to be added when predicting the actual overall
performance", section IV).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import mean

import msgspec
import numpy as np

from elbowroom.experiments.ring import loss
from elbowroom.models.overlap.law import OverlappedStep
from elbowroom.points.point import running
from elbowroom.points.steps import CELL_FLOPS, ApplicationSteps, Losses
from elbowroom.quantities import plural
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Summary, WithInterval, apart

RIVALS = ("predicted", "naive_max", "naive_sum")
"""The model, the longer of the two, one after the other: names of properties of Row."""

NO_LOSS = 1.0
"""A ratio measured below it says that no contention was seen; the model's formula starts there."""


class StepRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table; times in us. `step` holds T_M, T_N, L_M and L_N as used; `l_comp` and `l_comm` the
    ratios as they came, with the ends of their intervals. `low`, `high`: the prediction with everything at
    one end of its 95 % interval. `silent`: the step without communication; `apart`: one after the other, None
    where it was not measured. `facts`: what the application reports.
    """

    nodes: int
    comm_threads: int
    step: OverlappedStep
    l_comp: tuple[float, float, float]
    l_comm: tuple[float, float, float]
    separator: float
    low: float
    high: float
    measured: Summary
    silent: Summary
    apart: Summary | None
    facts: dict[str, float]

    @property
    def predicted(self) -> float:
        """The whole step by the model."""
        return self.step.total + self.separator

    @property
    def naive_max(self) -> float:
        """The whole step where nothing is shared."""
        return self.step.naive_max + self.separator

    @property
    def naive_sum(self) -> float:
        """The whole step, one after the other."""
        return self.step.naive_sum + self.separator

    def node_gflops(self, step: float) -> float:
        """Gflop/s of a node, of whole steps of `step` us."""
        return self.facts.get("cells", 0.0) * CELL_FLOPS / self.nodes / step / 1e3

    def error(self, rival: str) -> float:
        """(predicted - measured) / measured of one of RIVALS."""
        time: float = getattr(self, rival)
        return (time - self.measured.median) / self.measured.median

    def error_of_predicted(self, rival: str) -> float:
        """|predicted - measured| / predicted, as the paper's table has it."""
        time: float = getattr(self, rival)
        return abs(time - self.measured.median) / time

    @property
    def saved(self) -> float | None:
        """What overlapping saved of the step that does one after the other; None: not measured."""
        return None if self.apart is None else 1.0 - self.measured.median / self.apart.median

    @property
    def sure(self) -> bool:
        """Whether the intervals of the two steps are apart."""
        if self.apart is None:
            return False
        return apart(self.measured, self.apart) or apart(self.apart, self.measured)


def rows(results: Sequence[PointResult]) -> tuple[StepRow, ...]:
    """A row for each number of nodes and of communication threads whose parts were all measured, often enough
    for an interval: the prediction's rests on theirs.
    """
    of = {}
    for item, steps in running(results, ApplicationSteps):
        if item.payload.steps is not None and item.status != "failed":
            threads = item.comm_threads if steps.variant in ("communication", "overlap") else 0
            of[steps.variant, steps.nodes, threads] = item
    table = []
    for (variant, nodes, threads), item in of.items():
        silent, exchange = of.get(("none", nodes, 0)), of.get(("communication", nodes, threads))
        if variant != "overlap" or silent is None or exchange is None:
            continue
        ratios = _ratios(item, results)
        if ratios is not None:
            table.append(_row(nodes, item, silent, exchange, of.get(("apart", nodes, 0)), *ratios))
    return tuple(
        sorted((row for row in table if row is not None), key=lambda row: (row.nodes, row.comm_threads))
    )


def mean_errors(table: Sequence[StepRow]) -> dict[str, tuple[float, float]]:
    """By name of RIVALS: mean absolute error of the measured, and of the predicted."""
    return {
        rival: (
            mean(abs(row.error(rival)) for row in table),
            mean(row.error_of_predicted(rival) for row in table),
        )
        for rival in (RIVALS if table else ())
    }


def sentence(row: StepRow) -> str:
    """Whether overlapping paid, from the two measured steps."""
    threads = plural(row.comm_threads, "communication thread")
    if row.apart is None or row.saved is None:
        return f"With {threads} a step takes {_ms(row.measured)}; without overlapping it was not measured."
    both = f"{_ms(row.measured)} overlapped with {threads}, {_ms(row.apart)} one after the other"
    if not row.sure:
        return f"Overlapping made no difference: {both}."
    if row.saved > 0:
        return f"Overlapping paid: {both}, {row.saved:.1%} saved."
    return f"Overlapping did not pay: {both}, {-row.saved:.1%} longer."


def _ms(summary: Summary) -> str:
    if summary.bounds is None:
        return f"{summary.median / 1e3:.4g} ms (no interval)"
    low, middle, high = (value / 1e3 for value in (summary.bounds[0], summary.median, summary.bounds[1]))
    return f"{middle:.4g} ms ({low:.4g} to {high:.4g})"


def _ratios(
    item: PointResult, results: Sequence[PointResult]
) -> tuple[tuple[float, float, float], tuple[float, float, float]] | None:
    """L_M and L_N with the ends of their intervals: the model's, else the ring's with as many threads."""
    for _, steps in running((item,), ApplicationSteps):
        if steps.losses is not None:
            return _of_model(steps.losses)
    for other in results:
        same = other.pattern == "ring" and other.role == "point" and other.workload.facts.beside_messages
        if same and other.comm_threads == item.comm_threads:
            comp, comm = loss(other.comp.kept), loss(other.comm.kept)
            return None if comp is None or comm is None else (comp, comm)
    return None


def _of_model(losses: Losses) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    return (losses.comp, losses.comp_low, losses.comp_high), (losses.comm, losses.comm_low, losses.comm_high)


def _row(
    nodes: int,
    item: PointResult,
    silent: PointResult,
    exchange: PointResult,
    apart: PointResult | None,
    l_comp: tuple[float, float, float],
    l_comm: tuple[float, float, float],
) -> StepRow | None:
    messages = exchange.comm.alone
    if messages is None or silent.payload.steps is None or item.payload.steps is None:
        return None
    whole, before = silent.payload.steps.total, 0.0
    if whole.bounds is None or messages.bounds is None:
        return None
    if silent.payload.steps.separator is not None:
        before = silent.payload.steps.separator.median
    ends = [
        OverlappedStep(
            t_comp=getattr(whole, end) - before,
            t_comm=getattr(messages, end),
            l_comp=max(NO_LOSS, l_comp[at]),
            l_comm=max(NO_LOSS, l_comm[at]),
        )
        for at, end in enumerate(("median", "low", "high"))
    ]
    return StepRow(
        nodes=nodes,
        comm_threads=item.comm_threads,
        step=ends[0],
        l_comp=l_comp,
        l_comm=l_comm,
        separator=before,
        low=ends[1].total + before,
        high=ends[2].total + before,
        measured=item.payload.steps.total,
        silent=whole,
        apart=None if apart is None or apart.payload.steps is None else apart.payload.steps.total,
        facts=item.payload.steps.facts,
    )


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


def limit_text(limits: ScalingLimit) -> str:
    """The sentence of a finding."""
    if limits.contended is None:
        return (
            "Communication does not come to limit the step: computation does not shrink faster than it with "
            "the number of nodes."
        )
    text = f"Communication limits the step from {_nodes(limits.contended)} on, where T_M^C = T_N^C"
    if limits.alone is None:
        return f"{text}."
    return f"{text}; a model without contention would say {_nodes(limits.alone)} (T_M = T_N)."


def _nodes(reached: NodeLimit) -> str:
    number = f"{round(reached.nodes):,} nodes"
    ends = reached.bounds
    between = "" if ends is None else f"{round(ends[0]):,} to {round(ends[1]):,}, "
    return f"{number} ({between}extrapolated by a power law)" if reached.beyond else number
