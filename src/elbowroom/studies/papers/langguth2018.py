"""Langguth, Cai, Sourouri: Memory Bandwidth Contention, ICPADS 2018: rings, and steps of a real program."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from elbowroom.experiments.diffusion.steps import StepRow, rows
from elbowroom.experiments.ring import loss as loss_ratio
from elbowroom.machine.topology import Machine
from elbowroom.points.point import running
from elbowroom.points.steps import ApplicationSteps
from elbowroom.results.curves import affected
from elbowroom.results.judgement import Judgement, change, in_all, larger, near
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Interval, Summary
from elbowroom.studies import needs
from elbowroom.studies.drawings import panels, run_tables
from elbowroom.studies.evidence import Evidence, PointSelection
from elbowroom.studies.judgements import Curve, loss, manner, rule
from elbowroom.studies.study import Exhibit, Measurement, Outcome, Statement, Study, outcome

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


def _full(evidence: Evidence, where: PointSelection) -> PointResult:
    if points := evidence.points(RING, where):
        return max(points, key=lambda item: item.n)
    raise evidence.missing(RING)


@rule
def loses(evidence: Evidence, side: str, where: PointSelection) -> Outcome:
    """Whether a side has a loss ratio above 1.05 with all computing cores."""
    item = _full(evidence, where)
    ratio = loss_ratio(getattr(item, side).kept)
    if ratio is None:
        raise evidence.missing(RING)
    name = "L_N" if side == "comm" else "L_M"
    ours = f"{name} = {ratio[0]:.2f} ({ratio[1]:.2f} to {ratio[2]:.2f}) with {item.n} computing cores"
    if affected(getattr(item, side).kept):
        return Outcome(judgement="confirmed", ours=ours)
    judgement: Judgement = "refuted" if ratio[2] <= 1 / 0.95 else "undecided"
    return outcome(judgement, ours, "an interval includes a loss of 5 %")


@rule
def equal_at_ends(evidence: Evidence) -> Outcome:
    """Whether one process per socket and one per node have the same MPI bandwidth with all cores: that of a
    process times the processes of a node.
    """
    one, other = (_full(evidence, PointSelection(processes=kind, threads=1)) for kind in ("node", "socket"))
    if one.comm.together is None or other.comm.together is None:
        raise evidence.missing(RING)
    node, process, sockets = one.comm.together, other.comm.together, evidence.runs[RING].machine.packages
    ours = (
        f"{node.median:.4g} MB/s a node with one process, {sockets * process.median:.4g} with one on each of "
        f"{sockets} sockets"
    )
    difference = change(_times(process, sockets), node)
    if difference is None:
        return Outcome(judgement="undecided", ours=ours, why=FEW)
    return outcome(near(difference, ALIKE), f"{ours} ({1 + difference.value:.2f} times)", OVERLAP)


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
        raise evidence.missing(DIFFUSION)
    ours = ", ".join(f"{one.value:+.1%} ({one.text('+.1%')}) on {row.nodes} nodes" for row, one in pairs)
    return outcome(in_all([near(one, limit) for _, one in pairs]), ours, OVERLAP)


@rule
def predicted(evidence: Evidence) -> Outcome:
    """Whether the model is within 15 % of every step, with the intervals of both. Without contention every
    model predicts the same, which confirms none.
    """
    table = _table(evidence)
    changes = _changes(evidence, table, NEAR, _error)
    if changes.judgement == "confirmed" and max(max(row.l_comp[1], row.l_comm[1]) for row in table) <= 1.05:
        why = "there is no contention here, so every model predicts the same step"
        return Outcome(judgement="undecided", ours=changes.ours, why=why)
    return changes


def _error(row: StepRow) -> Interval | None:
    ends = row.measured.bounds
    if ends is None:
        return None
    return Interval(value=row.error("predicted"), low=row.low / ends[1] - 1, high=row.high / ends[0] - 1)


@rule
def threads_change_little(evidence: Evidence) -> Outcome:
    """Whether more communication threads change the step by less than 5 %."""
    one = {row.nodes: row for row in _table(evidence)}
    more = [row for row in _rows(evidence) if row.comm_threads > 1 and row.nodes in one]
    if not more:
        return Outcome(judgement="not tested", why="one communication thread was measured here")
    return _changes(evidence, more, LITTLE, lambda row: change(row.measured, one[row.nodes].measured))


@rule
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


@rule
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
    return outcome(judgement, ours, OVERLAP)


@rule
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
    return outcome(judgement, ours, OVERLAP)


PAPER_CELLS = 115_000_000
CELLS_EACH = 1_500_000
"""Cells of a process on all hosts: some 100 MB that every step reads. Fewer hosts share the same mesh."""


def one_mesh(machine: Machine) -> Mapping[str, str]:
    """The mesh that all numbers of hosts share, at most the paper's."""
    if machine.virtual or machine.hosts < 2:
        return {}
    return {"cells": str(min(PAPER_CELLS, CELLS_EACH * machine.hosts))}


MEASUREMENTS = (
    Measurement(
        name=RING,
        plan="ring",
        settings={"n": "every", "sizes": "4MB", "processes": "node,socket,core"},
        quick={"n": "1,2,4,6,8,12,16,24,all", "comm_threads": "1", "processes": "node,socket"},
    ),
    Measurement(
        name=DIFFUSION,
        plan="diffusion",
        scaled=one_mesh,
        hosts=needs.scales,
        quick={"cells": "400000", "comm_threads": "1"},
    ),
)

NODE = PointSelection(processes="node", threads=1)
NETWORK = (needs.network,)
SCALING = (needs.network, needs.several_scales)
CURVE = (needs.network, needs.computing_cores(3))
RATIO = (
    "confirmed if the side keeps less than 0.95 with its interval below 1, refuted if the loss is below 5 %"
)
SMALL_CHANGE = "confirmed if the intervals differ by less than 5 % everywhere, refuted if by more anywhere"
DRAWN = "a drawing of the model: `elbowroom predict-step ... -o FILE --figure {}`"
FORMULA = (
    "an example by the formula: `elbowroom predict-step --work 60 ...`; nothing is measured in the paper"
)

FIGURE_2 = Exhibit(
    label="Fig. 2",
    title="MPI and STREAM bandwidths under contention (Cartesius)",
    runs=(RING,),
    draw=panels(RING, names="ring-"),
    tables=run_tables(RING),
    differs="one process per core is measured as well; the table has the slowest processes of the ring",
    section="III",
    judged_with=NETWORK,
    statements=(
        Statement(
            text="the MPI bandwidth declines steadily with the number of contending threads",
            paper="steadily",
            judge=manner(Curve(RING, "comm", NODE), "steadily"),
            criterion="steadily: no step between neighbours makes more than half of the loss",
            needs=CURVE,
        ),
        Statement(
            text="MPI loses bandwidth with all cores",
            paper="5.8 to 2.7 GB/s, L_N = 2.2 (printed values: 2.15)",
            judge=loses("comm", NODE),
            criterion=RATIO,
        ),
        Statement(
            text="STREAM loses bandwidth with all cores",
            paper="75 to 43 GB/s, L_M = 1.72 (printed values: 1.74)",
            judge=loses("comp", NODE),
            criterion=RATIO,
        ),
        Statement(
            text="one process per socket and one per node have the same MPI bandwidth with all cores",
            paper="essentially the same",
            judge=equal_at_ends(),
            criterion="confirmed if the intervals differ by less than 10 %, refuted if by more",
            needs=(needs.network, needs.two_sockets),
        ),
    ),
)

FIGURE_3 = Exhibit(
    label="Fig. 3",
    title="MPI and STREAM bandwidths under contention (Vilje)",
    runs=(RING,),
    draw=panels(RING, names="ring-"),
    differs="the same experiment on a second cluster: the figure shows this machine's ring again",
    section="III",
    statements=(
        Statement(
            text="the communicating cores lose approximately half of their MPI bandwidth",
            paper="approximately half",
            judge=loss(Curve(RING, "comm", NODE), 0.6, 0.4),
            criterion="confirmed if its interval with all cores is within 0.4 and 0.6, refuted if outside",
            needs=NETWORK,
        ),
    ),
)

FIGURE_8 = Exhibit(
    label="Fig. 8",
    title="Communication volumes and costs over the number of nodes",
    runs=(DIFFUSION,),
    draw=panels(DIFFUSION, names="diffusion-volumes"),
    needs=(needs.several_scales,),
    differs="a box of tetrahedra cut by METIS; the paper's is a heart cut by KaHiP and PaToH",
    section="V",
    statements=(
        Statement(
            text="the exchange takes less time on more nodes, but does not shrink in proportion",
            paper="0.86 ms on 4 nodes, 0.20 ms on 256",
            judge=exchange_shrinks(),
            criterion=(
                "confirmed if T_N shrinks, but by less than the nodes grow, with the intervals of both; "
                "refuted if it does not shrink, or by more"
            ),
            needs=SCALING,
        ),
    ),
)

TABLE_2 = Exhibit(
    label="Table II",
    title="Model predictions and errors for the diffusion code",
    runs=(DIFFUSION,),
    tables=run_tables(DIFFUSION),
    section="V",
    statements=(
        Statement(
            text="the model predicts the step from T_M, T_N and the loss ratios of the benchmark",
            paper="within 1.2 to 13.9 %",
            judge=predicted(),
            criterion=(
                "confirmed if all errors are below 15 % with the intervals of both, and there is contention; "
                "refuted if one is above"
            ),
            needs=(needs.network, needs.not_of_law),
        ),
    ),
)

FIGURE_9 = Exhibit(
    label="Fig. 9",
    title="Performance of a node with one or several communication threads, and without communication",
    runs=(DIFFUSION,),
    draw=panels(DIFFUSION, names="diffusion-performance"),
    needs=(needs.several_scales,),
    section="V",
    judged_with=NETWORK,
    statements=(
        Statement(
            text="communication costs performance only on many nodes",
            paper="no-communication version clearly above the others there",
            judge=communication_costs_on_many_nodes(),
            criterion=(
                "confirmed if a step without communication gains more on the most nodes than on the fewest, "
                "intervals apart; refuted if less"
            ),
            needs=SCALING,
        ),
        Statement(
            text="several communication threads change little",
            paper="minor",
            judge=threads_change_little(),
            criterion=SMALL_CHANGE,
        ),
        Statement(
            text="a step without overlap is as fast as with overlap",
            paper="very similar",
            judge=overlap_is_no_faster(),
            criterion=SMALL_CHANGE,
        ),
    ),
)

STUDY = Study(
    name="langguth2018",
    paper="Langguth, Cai, Sourouri: Memory Bandwidth Contention (ICPADS 2018)",
    page="docs/papers/paper-langguth2018.md",
    measurements=MEASUREMENTS,
    exhibits=(
        Exhibit(
            label="Fig. 1", title="Flop/s and memory bandwidth of Xeon processors", instead="data of vendors"
        ),
        Exhibit(
            label="Table I",
            title="Specifications of the test systems",
            instead="`elbowroom doctor`, and the manifest of each run",
        ),
        FIGURE_2,
        FIGURE_3,
        Exhibit(
            label="Fig. 4",
            title="Example of the effect of contention under strong scaling",
            instead=DRAWN.format("scaling"),
        ),
        Exhibit(label="Fig. 5", title="Performance over time in the model", instead=DRAWN.format("time")),
        Exhibit(label="Fig. 6", title="The plane of times", instead=DRAWN.format("plane")),
        Exhibit(
            label="Fig. 7",
            title="The plane of times with several computations",
            instead=DRAWN.format("plane"),
        ),
        FIGURE_8,
        TABLE_2,
        FIGURE_9,
        Exhibit(label="VI", title="Heterogeneous computations", instead=FORMULA),
    ),
)
