"""Rings and the steps of a real program: what runs say of the statements of Langguth et al. (2018)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from elbowroom.experiments.diffusion.steps import StepRow, rows
from elbowroom.experiments.ring.results import loss
from elbowroom.points import ApplicationSteps, running
from elbowroom.results.curves import affected
from elbowroom.results.judgement import Judgement, change, in_all, larger, near
from elbowroom.results.result import PointResult, Summary
from elbowroom.stats.interval import Interval
from elbowroom.studies.evidence import Evidence, Where
from elbowroom.studies.judgements import missing
from elbowroom.studies.study import Judge, Outcome

Compared = Callable[[StepRow], Interval | None]
RING, DIFFUSION = "ring", "diffusion"
NEAR = 0.15
"""Largest error of the model in the paper's Table II, rounded up: 13.9 %."""
ALIKE = 0.1
"""Bandwidths that differ by less are `essentially the same`."""
LITTLE = 0.05
"""Steps that differ by less are `very similar`, and the impact on them is `minor`."""
FEW = "too few repetitions for an interval"
OVERLAP = "the intervals allow both"


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
    """Whether one process per socket and one per node have the same MPI bandwidth with all cores: that of a
    process times the processes of a node.
    """
    one, other = (_full(evidence, Where(processes=kind, threads=1)) for kind in ("node", "socket"))
    if one is None or other is None or one.comm.together is None or other.comm.together is None:
        return missing(evidence, RING)
    node, process, sockets = one.comm.together, other.comm.together, evidence.runs[RING].machine.packages
    ours = (
        f"{node.median:.4g} MB/s a node with one process, {sockets * process.median:.4g} with one on each of "
        f"{sockets} sockets"
    )
    difference = change(_times(process, sockets), node)
    if difference is None:
        return Outcome(judgement="undecided", ours=ours, why=FEW)
    judgement = near(difference, ALIKE)
    why = OVERLAP if judgement == "undecided" else ""
    return Outcome(judgement=judgement, ours=f"{ours} ({1 + difference.value:.2f} times)", why=why)


def _times(summary: Summary, factor: int) -> Summary:
    ends = summary.bounds
    low, high = (None, None) if ends is None else (factor * ends[0], factor * ends[1])
    return msgspec.structs.replace(summary, median=factor * summary.median, low=low, high=high)


def _rows(evidence: Evidence) -> list[StepRow]:
    """The steps of all runs, each with the loss ratios of its own run, by rising number of nodes."""
    mine = evidence.runs.get(DIFFUSION)
    parts = [] if mine is None else [part.results for part in mine.parts] or [mine.points]
    return sorted((row for part in parts for row in rows(part)), key=lambda row: row.nodes)


def _table(evidence: Evidence, threads: int = 1) -> list[StepRow]:
    return [row for row in _rows(evidence) if row.comm_threads == threads]


def _changes(evidence: Evidence, table: Sequence[StepRow], limit: float, of: Compared) -> Outcome:
    """Whether what is compared in every row differs by less than a limit."""
    pairs = [(row, one) for row in table if (one := of(row)) is not None]
    if not pairs:
        return missing(evidence, DIFFUSION)
    ours = ", ".join(f"{one.value:+.1%} ({one.text('+.1%')}) on {row.nodes} nodes" for row, one in pairs)
    judgement = in_all([near(one, limit) for _, one in pairs])
    return Outcome(judgement=judgement, ours=ours, why=OVERLAP if judgement == "undecided" else "")


def predicted(evidence: Evidence) -> Outcome:
    """Whether the model is within 15 % of every step, with the intervals of both. Without contention every
    model predicts the same, which confirms none.
    """
    table = _table(evidence)
    outcome = _changes(evidence, table, NEAR, _error)
    if outcome.judgement == "confirmed" and max(max(row.l_comp[1], row.l_comm[1]) for row in table) <= 1.05:
        why = "there is no contention here, so every model predicts the same step"
        return Outcome(judgement="undecided", ours=outcome.ours, why=why)
    return outcome


def _error(row: StepRow) -> Interval | None:
    ends = row.measured.bounds
    if ends is None:
        return None
    return Interval(value=row.error("predicted"), low=row.low / ends[1] - 1, high=row.high / ends[0] - 1)


def threads_change_little(evidence: Evidence) -> Outcome:
    """Whether more communication threads change the step by less than 5 %."""
    one = {row.nodes: row for row in _table(evidence)}
    more = [row for row in _rows(evidence) if row.comm_threads > 1 and row.nodes in one]
    if not more:
        return Outcome(judgement="not tested", why="one communication thread was measured here")
    return _changes(evidence, more, LITTLE, lambda row: change(row.measured, one[row.nodes].measured))


def overlap_is_no_faster(evidence: Evidence) -> Outcome:
    """Whether a step with overlap and one without differ by less than 5 %."""
    return _changes(
        evidence,
        _table(evidence),
        LITTLE,
        lambda row: None if row.apart is None else change(row.measured, row.apart),
    )


def _one_number(evidence: Evidence, table: Sequence[object]) -> Outcome:
    why = "one number of nodes here" if table else evidence.reason(DIFFUSION)
    return Outcome(judgement="not tested", why=why)


def communication_costs_on_many_nodes(evidence: Evidence) -> Outcome:
    """Whether a step without communication is faster by more on the most nodes than on the fewest."""
    table = _table(evidence)
    if len(table) < 2:
        return _one_number(evidence, table)
    first, last = table[0], table[-1]
    few, many = (change(row.measured, row.silent) for row in (first, last))
    if few is None or many is None:
        return Outcome(judgement="undecided", why=FEW)
    ours = f"{few.value:+.1%} ({few.text('+.1%')}) on {first.nodes} nodes"
    ours += f", {many.value:+.1%} ({many.text('+.1%')}) on {last.nodes}"
    judgement = larger(many, few)
    if judgement == "confirmed" and not many.above(0.0):
        return Outcome(judgement="undecided", ours=ours, why="communication costs nothing here")
    return Outcome(judgement=judgement, ours=ours, why=OVERLAP if judgement == "undecided" else "")


def exchange_shrinks(evidence: Evidence) -> Outcome:
    """Whether the exchange alone takes less time on more nodes, but by less than their number grows."""
    exchanges = {
        steps.nodes: item.comm.alone
        for item, steps in running(evidence.points(DIFFUSION), ApplicationSteps)
        if steps.variant == "communication" and item.comm_threads == 1 and item.comm.alone is not None
    }
    if len(exchanges) < 2:
        return _one_number(evidence, list(exchanges))
    few, many = min(exchanges), max(exchanges)
    ratio, more = change(exchanges[few], exchanges[many]), many / few
    if ratio is None:
        return Outcome(judgement="undecided", why=FEW)
    low, high = 1 + ratio.low, 1 + ratio.high
    ours = f"T_N {1 + ratio.value:.2f} ({low:.2f} to {high:.2f}) times shorter on {more:g} times the nodes"
    if high < 1 or low > more:
        return Outcome(judgement="refuted", ours=ours)
    judgement: Judgement = "confirmed" if low > 1 and high < more else "undecided"
    return Outcome(judgement=judgement, ours=ours, why=OVERLAP if judgement == "undecided" else "")
