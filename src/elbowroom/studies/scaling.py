"""Rings and the steps of a real program: what runs say of the statements of Langguth et al. (2018)."""

from __future__ import annotations

from elbowroom.experiments.diffusion.rows import StepRow, rows
from elbowroom.experiments.ring import loss
from elbowroom.results.curves import affected
from elbowroom.results.judgement import Judgement
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import apart
from elbowroom.studies.evidence import Evidence, Where
from elbowroom.studies.judgements import missing
from elbowroom.studies.study import Judge, Outcome

RING, DIFFUSION = "ring", "diffusion"
NEAR = 0.15
"""Largest error of the model in the paper's Table II, rounded up: 13.9 %."""


def _full(evidence: Evidence, where: Where) -> PointResult | None:
    points = evidence.points(RING, where)
    return max(points, key=lambda item: item.n, default=None)


def loses(side: str, where: Where) -> Judge:
    """Whether a side has a loss ratio above 1.05 with all computing cores."""

    def judge(evidence: Evidence) -> Outcome:
        item = _full(evidence, where)
        ratio = None if item is None else loss(getattr(item, side).kept)
        if item is None or ratio is None:
            return missing(evidence, RING)
        name = "L_N" if side == "comm" else "L_M"
        ours = f"{name} = {ratio[0]:.2f} ({ratio[1]:.2f} to {ratio[2]:.2f}) with {item.n} computing cores"
        if affected(getattr(item, side).kept):
            return Outcome(judgement="confirmed", ours=ours)
        refuted = ratio[2] <= 1 / 0.95
        why = "" if refuted else "an interval includes a loss of 5 %"
        return Outcome(judgement="refuted" if refuted else "undecided", ours=ours, why=why)

    return judge


def equal_at_ends(evidence: Evidence) -> Outcome:
    """Whether one process per socket and one per node have the same MPI bandwidth with all cores."""
    one, other = (_full(evidence, Where(processes=kind, threads=1)) for kind in ("node", "socket"))
    if one is None or other is None or one.comm.together is None or other.comm.together is None:
        return missing(evidence, RING)
    node, sockets = one.comm.together, other.comm.together
    ratio = 2 * sockets.median / node.median
    ours = f"{node.median:.4g} MB/s a node with one process, {2 * sockets.median:.4g} with one per socket"
    if node.bounds is None or sockets.bounds is None:
        return Outcome(judgement="undecided", ours=ours, why="too few repetitions")
    low, high = 2 * sockets.bounds[0] / node.bounds[1], 2 * sockets.bounds[1] / node.bounds[0]
    judgement: Judgement = "undecided"
    if low > 0.9 and high < 1.1:
        judgement = "confirmed"
    elif low > 1.1 or high < 0.9:
        judgement = "refuted"
    return Outcome(judgement=judgement, ours=f"{ours} ({ratio:.2f} times)")


def _table(evidence: Evidence, threads: int = 1) -> list[StepRow]:
    return [row for row in rows(evidence.points(DIFFUSION)) if row.comm_threads == threads]


def predicted(evidence: Evidence) -> Outcome:
    """Whether the model is within 15 % of every step, and closer than the longer of T_M and T_N: without
    contention every model predicts the same, which confirms none.
    """
    table = _table(evidence)
    if not table:
        return missing(evidence, DIFFUSION)
    errors = [row.error("predicted") for row in table]
    ours = ", ".join(f"{error:+.1%} on {row.nodes} nodes" for row, error in zip(table, errors, strict=True))
    if max(map(abs, errors)) > NEAR:
        return Outcome(judgement="refuted", ours=ours)
    if max(max(row.l_comp[1], row.l_comm[1]) for row in table) <= 1.05:
        why = "there is no contention here, so every model predicts the same step"
        return Outcome(judgement="undecided", ours=ours, why=why)
    return Outcome(judgement="confirmed", ours=ours)


def threads_change_little(evidence: Evidence) -> Outcome:
    """Whether more communication threads change the step by less than 5 %."""
    one = {row.nodes: row for row in _table(evidence)}
    more = [row for row in rows(evidence.points(DIFFUSION)) if row.comm_threads > 1 and row.nodes in one]
    if not more:
        return Outcome(judgement="not tested", why="one communication thread was measured here")
    changes = [row.measured.median / one[row.nodes].measured.median - 1 for row in more]
    ours = ", ".join(f"{change:+.1%} on {row.nodes} nodes" for row, change in zip(more, changes, strict=True))
    return Outcome(judgement="confirmed" if max(map(abs, changes)) < 0.05 else "refuted", ours=ours)


def overlap_is_no_faster(evidence: Evidence) -> Outcome:
    """Whether not overlapping is as fast: the intervals of both steps are less than 5 % apart."""
    table = [row for row in _table(evidence) if row.apart is not None]
    if not table:
        return missing(evidence, DIFFUSION)
    ours = ", ".join(f"overlap saves {row.saved or 0:+.1%} on {row.nodes} nodes" for row in table)
    large = [row for row in table if row.sure and abs(row.saved or 0) >= 0.05]
    if large:
        return Outcome(judgement="refuted", ours=ours)
    if all(abs(row.saved or 0) < 0.05 for row in table):
        return Outcome(judgement="confirmed", ours=ours)
    return Outcome(judgement="undecided", ours=ours, why="the intervals of the steps overlap")


def communication_costs_on_many_nodes(evidence: Evidence) -> Outcome:
    """Whether a step without communication is faster by more on the most nodes than on the fewest."""
    table = _table(evidence)
    if len(table) < 2:
        why = "one number of nodes here" if table else evidence.reason(DIFFUSION)
        return Outcome(judgement="not tested", why=why)
    first, last = table[0], table[-1]
    gains = [row.measured.median / row.silent.median - 1 for row in (first, last)]
    ours = f"{gains[0]:+.1%} on {first.nodes} nodes, {gains[1]:+.1%} on {last.nodes}"
    if not apart(last.silent, last.measured):
        return Outcome(judgement="undecided", ours=ours, why="the intervals overlap on the most nodes")
    return Outcome(judgement="confirmed" if gains[1] > gains[0] else "refuted", ours=ours)


def exchange_shrinks(evidence: Evidence) -> Outcome:
    """Whether the exchange alone takes less time on more nodes, but by less than their number grows."""
    table = _table(evidence)
    if len(table) < 2:
        why = "one number of nodes here" if table else evidence.reason(DIFFUSION)
        return Outcome(judgement="not tested", why=why)
    first, last = table[0], table[-1]
    ratio = first.step.t_comm / last.step.t_comm
    more = last.nodes / first.nodes
    ours = f"T_N {ratio:.2f} times shorter on {more:g} times the nodes"
    return Outcome(judgement="confirmed" if 1.0 < ratio < more else "refuted", ours=ours)
