"""Table II of Langguth et al. (2018) for an application that was measured: what its steps take beside what
the overlap model predicts from their parts, and beside what people assume without a model.

As in the paper (section V) T_M is a step without communication less its separator, so the barrier that ends
it is inside; T_N is the exchange alone. The model says how long the two take at once, and the separator,
which ends before the exchange can begin, is added ("it needs to be added when predicting the actual overall
performance", section IV).
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean

import msgspec

from elbowroom.experiments.ring import loss
from elbowroom.model.overlap import Step
from elbowroom.plan.point import Losses
from elbowroom.stats.result import PointResult, Summary

RIVALS = ("predicted", "naive_max", "naive_sum")
"""The model, the longer of the two, one after the other: names of properties of Row."""

NO_LOSS = 1.0
"""A ratio measured below it says that no contention was seen; the model's formula starts there."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the table; times in us. `step` holds T_M, T_N, L_M and L_N as used; `l_comp` and `l_comm` the
    ratios as they came, with the ends of their intervals. `low`, `high`: the prediction with everything at
    one end of its 95 % interval. `silent`: the step without communication; `apart`: one after the other, None
    where it was not measured. `facts`: what the application said of itself.
    """

    nodes: int
    comm_threads: int
    step: Step
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

    def error(self, rival: str) -> float:
        """(predicted - measured) / measured of one of RIVALS."""
        said: float = getattr(self, rival)
        return (said - self.measured.median) / self.measured.median

    def error_of_predicted(self, rival: str) -> float:
        """|predicted - measured| / predicted, as the paper's table has it."""
        said: float = getattr(self, rival)
        return abs(said - self.measured.median) / said

    @property
    def saved(self) -> float | None:
        """What overlapping saved of the step that does one after the other; None: not measured."""
        return None if self.apart is None else 1.0 - self.measured.median / self.apart.median

    @property
    def sure(self) -> bool:
        """Whether the intervals of the two steps are apart."""
        if self.apart is None:
            return False
        return self.measured.high < self.apart.low or self.measured.low > self.apart.high


def rows(results: Sequence[PointResult]) -> tuple[Row, ...]:
    """A row for each number of nodes and of communication threads whose parts were all measured."""
    of = {}
    for item in results:
        if item.application is not None and item.steps is not None and item.status != "failed":
            threads = item.comm_threads if item.application.variant in ("communication", "overlap") else 0
            of[item.application.variant, item.application.nodes, threads] = item
    found = []
    for (variant, nodes, threads), item in of.items():
        silent, exchange = of.get(("none", nodes, 0)), of.get(("communication", nodes, threads))
        if variant != "overlap" or silent is None or exchange is None:
            continue
        ratios = _ratios(item, results)
        if ratios is not None:
            found.append(_row(item, silent, exchange, of.get(("apart", nodes, 0)), *ratios))
    return tuple(
        sorted((row for row in found if row is not None), key=lambda row: (row.nodes, row.comm_threads))
    )


def mean_errors(table: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """By name of RIVALS: mean absolute error of the measured, and of the predicted."""
    return {
        rival: (
            mean(abs(row.error(rival)) for row in table),
            mean(row.error_of_predicted(rival) for row in table),
        )
        for rival in (RIVALS if table else ())
    }


def sentence(row: Row) -> str:
    """Whether overlapping paid, from the two measured steps."""
    threads = f"{row.comm_threads} communication thread{'s' if row.comm_threads > 1 else ''}"
    if row.apart is None or row.saved is None:
        return f"With {threads} a step takes {_ms(row.measured)}; without overlapping it was not measured."
    both = f"{_ms(row.measured)} overlapped with {threads}, {_ms(row.apart)} one after the other"
    if not row.sure:
        return f"Overlapping made no difference: {both}."
    if row.saved > 0:
        return f"Overlapping paid: {both}, {row.saved:.1%} saved."
    return f"Overlapping did not pay: {both}, {-row.saved:.1%} longer."


def _ms(summary: Summary) -> str:
    low, middle, high = (value / 1e3 for value in (summary.low, summary.median, summary.high))
    return f"{middle:.4g} ms ({low:.4g} to {high:.4g})"


def _ratios(
    item: PointResult, results: Sequence[PointResult]
) -> tuple[tuple[float, float, float], tuple[float, float, float]] | None:
    """L_M and L_N with the ends of their intervals: the model's, else the ring's with as many threads."""
    assert item.application is not None
    told = item.application.losses
    if told is not None:
        return _of_model(told)
    for other in results:
        same = other.pattern == "ring" and other.role == "point" and other.application is None
        if same and other.comm_threads == item.comm_threads:
            comp, comm = loss(other.comp.kept), loss(other.comm.kept)
            return None if comp is None or comm is None else (comp, comm)
    return None


def _of_model(told: Losses) -> tuple[tuple[float, float, float], tuple[float, float, float]]:
    return (told.comp, told.comp_low, told.comp_high), (told.comm, told.comm_low, told.comm_high)


def _row(
    item: PointResult,
    silent: PointResult,
    exchange: PointResult,
    apart: PointResult | None,
    l_comp: tuple[float, float, float],
    l_comm: tuple[float, float, float],
) -> Row | None:
    assert item.application is not None
    messages = exchange.comm.alone
    if messages is None or silent.steps is None or item.steps is None:
        return None
    whole, before = silent.steps.total, 0.0
    if silent.steps.separator is not None:
        before = silent.steps.separator.median
    ends = [
        Step(
            t_comp=getattr(whole, end) - before,
            t_comm=getattr(messages, end),
            l_comp=max(NO_LOSS, l_comp[at]),
            l_comm=max(NO_LOSS, l_comm[at]),
        )
        for at, end in enumerate(("median", "low", "high"))
    ]
    return Row(
        nodes=item.application.nodes,
        comm_threads=item.comm_threads,
        step=ends[0],
        l_comp=l_comp,
        l_comm=l_comm,
        separator=before,
        low=ends[1].total + before,
        high=ends[2].total + before,
        measured=item.steps.total,
        silent=whole,
        apart=None if apart is None or apart.steps is None else apart.steps.total,
        facts=item.steps.facts,
    )
