"""What runs say of chapters 4 and 6 of Swartvagher's thesis (2022): broadcasts over trees in factorizations,
and the model of bandwidth sharing.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from elbowroom.draw.figure import TextTable
from elbowroom.errors import ElbowroomError
from elbowroom.experiments.common.factorizations.results import gain, pairs, rows
from elbowroom.experiments.common.panels import cores_of
from elbowroom.experiments.common.sentences import grouped
from elbowroom.models import published
from elbowroom.models.curves import STREAMS, Curves
from elbowroom.models.evaluate import ErrorTable, Predictor, evaluate, threshold_predictor
from elbowroom.models.run_data import collect
from elbowroom.models.threshold.fit import fit
from elbowroom.points.factorizations import Task
from elbowroom.results.curves import TOLERANCE
from elbowroom.results.family import suffering
from elbowroom.results.judgement import Judgement, above, in_all, in_some, larger, unanimous
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Interval
from elbowroom.stats.signed_ranks import NORMAL_95
from elbowroom.studies.evidence import Evidence
from elbowroom.studies.judgements import Start, earlier, opposite, rule, start_of
from elbowroom.studies.study import Outcome, outcome

FASTER = 1 + TOLERANCE
"""Times as fast from which a factorization is faster."""


@rule
def trees_gain(evidence: Evidence, run: str, task: Task) -> Outcome:
    """Whether each tree makes the factorization faster than a message for each recipient, on the matrix where
    it gains most (`up to` in the thesis).
    """
    table = [row for row in rows(evidence.points(run)) if row.program.task == task]
    gains: dict[str, list[Interval]] = {}
    for without, tree in pairs(table):
        if (ratio := gain(without, tree)) is not None:
            gains.setdefault(tree.program.way, []).append(ratio)
    if not gains:
        raise evidence.missing(run)
    best = {way: max(ratios, key=lambda ratio: ratio.low) for way, ratios in gains.items()}
    ours = ", ".join(f"{way} {one.value:.2f} times as fast ({one.text()})" for way, one in best.items())
    judgement = unanimous([in_some([above(ratio, FASTER) for ratio in ratios]) for ratios in gains.values()])
    return outcome(judgement, f"at best {ours}", "the trees differ, or an interval includes 1.05")


MODEL = "sharing"
ASSURED = 0.05
"""Kept by communications that keep anything: the least of the thesis is 0.27."""

COMP_TOGETHER, COMM_TOGETHER = (STREAMS.index(f"{side}_together") for side in ("comp", "comm"))


def calibrated(evidence: Evidence) -> tuple[Curves, Predictor] | str:
    """The curves of the run, and the thesis' model calibrated on its sample placements; the reason where
    there is none.
    """
    mine = evidence.runs.get(MODEL)
    if mine is None:
        return evidence.reason(MODEL)
    by_point = {item.id: item.comp_cores for item in mine.points}
    try:
        curves = collect(mine.points, by_point, mine.machine).curves
        return curves, threshold_predictor(fit(curves, "thesis").model, faithful=True)
    except ElbowroomError as error:
        return error.message


def errors(evidence: Evidence) -> ErrorTable | str:
    """Table 6.1 for this machine, evaluated on all placements of the run; the reason where there is none."""
    fitted = calibrated(evidence)
    if isinstance(fitted, str):
        return fitted
    try:
        return evaluate(fitted[0], {"threshold": fitted[1]})
    except ElbowroomError as error:
        return error.message


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.2%}"


def error_table(evidence: Evidence) -> Sequence[TextTable]:
    """The machine's row of Table 6.1, and the thesis' row where the machine is one of its nine."""
    table = errors(evidence)
    if isinstance(table, str):
        return ()
    line = table.lines[0]
    sides = (line.comm, line.comp)
    row = (
        table.machine,
        *(_percent(value) for side in sides for value in (side.samples, side.others, side.all)),
    )
    rows = [(*row, _percent(line.average))]
    if table.machine in published.names():
        known = published.load(table.machine).errors
        cells = [
            f"{value:.2f}%"
            for side in (known.comm, known.comp)
            for value in (side.samples, side.non_samples, side.all)
        ]
        rows.append((f"{table.machine}, thesis", *cells, f"{known.average:.2f}%"))
    names = ("samples", "others", "all")
    columns = ("platform", *(f"{side} {name}" for side in ("comm.", "comp.") for name in names), "average")
    return (TextTable(title="Table 6.1: mean errors of the model", columns=columns, rows=tuple(rows)),)


def mean_error(evidence: Evidence) -> Interval | str:
    """The mean error of the model over all placements, that of both streams as in Table 6.1; its ends are the
    means of the least and of the greatest errors that the intervals of the measured values allow. The reason
    where there is none.
    """
    fitted = calibrated(evidence)
    if isinstance(fitted, str):
        return fitted
    curves, predictor = fitted
    rows = [row for row in curves.rows if row.situation.n + row.situation.n_other > 0]
    streams = []
    for column in (COMP_TOGETHER, COMM_TOGETHER):
        errors = []
        for row, answer in zip(rows, predictor([row.situation for row in rows]), strict=True):
            measured, spread = row.streams[column], row.spread[column]
            if measured is not None and isinstance(answer, tuple):
                error = abs(measured - answer[column]) / measured
                own = NORMAL_95 * (spread or 0.0)
                errors.append((error, max(0.0, error - own), error + own))
        if errors:
            streams.append([fmean(ends) for ends in zip(*errors, strict=True)])
    if not streams:
        return evidence.reason(MODEL)
    value, low, high = (fmean(ends) for ends in zip(*streams, strict=True))
    return Interval(value=value, low=low, high=high)


@rule
def accurate(evidence: Evidence) -> Outcome:
    """Whether the mean error of the model on this machine is one of those of the thesis' nine machines, where
    there is contention: no model errs where nothing is lost. The thesis' 4 % is a mean over nine machines,
    three of which are above it.
    """
    error = mean_error(evidence)
    if isinstance(error, str):
        return Outcome(judgement="not tested", why=error)
    most = max(published.load(name).errors.average for name in published.names()) / 100
    ours = f"average error {error.value:.2%} ({error.text('.2%')})"
    if not _lossy(evidence):
        return Outcome(judgement="undecided", ours=ours, why="communication loses nothing here")
    return outcome(opposite(above(error, most)), ours, f"the interval includes {most:.2%}")


def _lossy(evidence: Evidence) -> list[PointResult]:
    """The points where communication certainly suffers."""
    return suffering(evidence.points(MODEL), "comm")


@rule
def communications_lose_first(evidence: Evidence) -> Outcome:
    """Whether in every placement the communication suffers from as few cores as the computation, or fewer."""
    groups = grouped(evidence.points(MODEL), lambda item: (item.comp_node, item.comm_node))
    if not groups:
        raise evidence.missing(MODEL)
    verdicts: list[Judgement] = []
    texts = []
    for place, items in groups.items():
        points = sorted((item for item in items if item.comm.kept and item.comp.kept), key=cores_of)
        comm, comp = start_of(points, "comm", cores_of), start_of(points, "comp", cores_of)
        if comm.possible is None and comp.possible is None:
            continue
        verdicts.append(earlier(comm, comp, equal=True))
        texts.append(
            f"nodes {place[0]} and {place[1]}: communication {_from(comm)}, computation {_from(comp)}"
        )
    if not verdicts:
        return Outcome(judgement="undecided", why="no side suffers in any placement")
    return outcome(in_all(verdicts), "; ".join(texts[:4]), "the intervals allow both orders")


def _from(start: Start) -> str:
    return "never suffers" if start.certain is None else f"suffers from {start.certain:.0f} cores"


@rule
def minimum_assured(evidence: Evidence) -> Outcome:
    """Whether the communication keeps some bandwidth at the most cores, though it suffers."""
    hurt = _lossy(evidence)
    if not evidence.points(MODEL):
        raise evidence.missing(MODEL)
    if not hurt:
        return Outcome(judgement="undecided", why="communication loses nothing here")
    least = min(hurt, key=lambda item: item.comm.kept.value if item.comm.kept else 1.0)
    assert least.comm.kept is not None
    ours = f"at worst it keeps {least.comm.kept.value:.2f} with {least.n} cores"
    return Outcome(judgement=above(least.comm.kept, ASSURED), ours=ours)


@rule
def same_node_matters(evidence: Evidence) -> Outcome:
    """Whether the communication loses more with the data of both on one node than on different ones."""
    points = [item for item in evidence.points(MODEL) if item.comm.kept is not None]
    same = [item for item in points if item.comp_node == item.comm_node]
    apart = [item for item in points if item.comp_node != item.comm_node]
    if not same or not apart:
        return Outcome(judgement="not tested", why="data of both sides was on one node only")
    worst = [
        min((item.comm.kept for item in group if item.comm.kept is not None), key=lambda kept: kept.value)
        for group in (same, apart)
    ]
    ours = f"at worst {worst[0].value:.2f} on one node, {worst[1].value:.2f} on different nodes"
    return outcome(larger(worst[1], worst[0]), ours, "the intervals overlap")
