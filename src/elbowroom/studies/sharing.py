"""The model of bandwidth sharing: what a run of the plan `model` says of chapter 6 of Swartvagher (2022)."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.draw.table import TextTable
from elbowroom.errors import ElbowroomError
from elbowroom.models import published
from elbowroom.models.evaluate import ErrorTable, evaluate, threshold_predictor
from elbowroom.models.run_data import collect
from elbowroom.models.threshold.fit import fit
from elbowroom.results.judgement import Judgement, suffers
from elbowroom.results.result import PointResult
from elbowroom.studies.evidence import Evidence
from elbowroom.studies.judgements import missing
from elbowroom.studies.study import Outcome

MODEL = "sharing"
AVERAGE = 0.04
"""The thesis: an average prediction error lower than 4 % (6.4)."""


def errors(evidence: Evidence) -> ErrorTable | str:
    """Table 6.1 for this machine: the thesis' calibration on the sample placements of the run, evaluated on
    all; the reason where there is none.
    """
    mine = evidence.runs.get(MODEL)
    if mine is None:
        return evidence.reason(MODEL)
    cores = {item.id: item.comp_cores for item in mine.points}
    try:
        curves = collect(mine.points, cores, mine.machine).curves
        fitted = fit(curves, "thesis")
        return evaluate(curves, {"threshold": threshold_predictor(fitted.model, faithful=True)})
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


def accurate(evidence: Evidence) -> Outcome:
    """Whether the average error of the model on all placements is below 4 %, where there is contention: no
    model errs where nothing is lost.
    """
    table = errors(evidence)
    if isinstance(table, str):
        return Outcome(judgement="not tested", why=table)
    average = table.lines[0].average
    if average is None:
        return missing(evidence, MODEL)
    ours = f"average error {average:.2%}"
    lost = [suffers(item.comm.kept) for item in evidence.points(MODEL)]
    if "confirmed" not in lost:
        return Outcome(judgement="undecided", ours=ours, why="communication loses nothing here")
    return Outcome(judgement="confirmed" if average < AVERAGE else "refuted", ours=ours)


def communications_lose_first(evidence: Evidence) -> Outcome:
    """Whether in every placement the communication suffers from fewer cores than the computation."""
    groups: dict[tuple[int, int], list[PointResult]] = {}
    for item in evidence.points(MODEL):
        groups.setdefault((item.comp_node, item.comm_node), []).append(item)
    if not groups:
        return missing(evidence, MODEL)
    verdicts: list[Judgement] = []
    texts = []
    for place, items in groups.items():
        comm, comp = (
            min((item.n for item in items if suffers(getattr(item, side).kept) == "confirmed"), default=None)
            for side in ("comm", "comp")
        )
        if comm is None and comp is None:
            continue
        first = comm is not None and (comp is None or comm <= comp)
        verdicts.append("confirmed" if first else "refuted")
        texts.append(
            f"nodes {place[0]} and {place[1]}: communication {_from(comm)}, computation {_from(comp)}"
        )
    if not verdicts:
        return Outcome(judgement="undecided", why="no side suffers in any placement")
    return Outcome(judgement="refuted" if "refuted" in verdicts else "confirmed", ours="; ".join(texts[:4]))


def _from(count: int | None) -> str:
    return "never suffers" if count is None else f"suffers from {count} cores"


def minimum_assured(evidence: Evidence) -> Outcome:
    """Whether the communication keeps some bandwidth at the most cores, though it suffers."""
    points = [item for item in evidence.points(MODEL) if item.comm.kept is not None]
    hurt = [item for item in points if suffers(item.comm.kept) == "confirmed"]
    if not points:
        return missing(evidence, MODEL)
    if not hurt:
        return Outcome(judgement="undecided", why="communication loses nothing here")
    least = min(hurt, key=lambda item: item.comm.kept.value if item.comm.kept else 1.0)
    assert least.comm.kept is not None
    ours = f"at worst it keeps {least.comm.kept.value:.2f} with {least.n} cores"
    return Outcome(judgement="confirmed" if least.comm.kept.above(0.05) else "refuted", ours=ours)


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
    if worst[0].high is not None and worst[1].low is not None and worst[0].high < worst[1].low:
        return Outcome(judgement="confirmed", ours=ours)
    if worst[0].low is not None and worst[1].high is not None and worst[0].low > worst[1].high:
        return Outcome(judgement="refuted", ours=ours)
    return Outcome(judgement="undecided", ours=ours, why="the intervals overlap")
