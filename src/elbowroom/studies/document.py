"""What a study says: each figure and table of the paper with its statements, our values and the verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from elbowroom import display
from elbowroom.machine.topology import Machine
from elbowroom.studies.evidence import Evidence
from elbowroom.studies.needs import two_nodes
from elbowroom.studies.study import Exhibit, Measurement, Outcome, Statement, Study

Verdict = Literal["confirmed", "refuted", "undecided", "not testable here"]
VERDICTS: tuple[Verdict, ...] = ("confirmed", "refuted", "undecided", "not testable here")
State = Literal["measured", "not measured", "failed"]


class JudgedStatement(msgspec.Struct, frozen=True, kw_only=True):
    """A statement of the paper beside our values. `criterion`: when it is confirmed and when refuted; `why`:
    the reason of the verdict, where it needs one.
    """

    text: str
    section: str
    paper: str
    ours: str
    verdict: Verdict
    why: str = ""
    criterion: str = ""


class JudgedExhibit(msgspec.Struct, frozen=True, kw_only=True):
    """A figure or table of the paper. `figures`, `tables`: how many of ours the report shows in its place;
    `instead`: why it has none, or the command that makes it; `absent`: why its run shows none; `differs`:
    what is done differently.
    """

    label: str
    title: str
    runs: tuple[str, ...]
    figures: int
    tables: int
    statements: tuple[JudgedStatement, ...]
    instead: str = ""
    absent: str = ""
    differs: str = ""


class StudiedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a study: its folder, or the reason why it was not measured or failed; `doubt`: why it is not
    trusted; `command`: what makes the same run by itself. Runs of one `measurement` on different numbers of
    `hosts` are joined.
    """

    name: str
    measurement: str
    hosts: int
    plan: str
    folder: str
    state: State
    points: int = 0
    reason: str = ""
    doubt: str = ""
    command: str = ""


class StudyDocument(msgspec.Struct, frozen=True, kw_only=True):
    """What `study --json` prints. `virtual`: a virtual machine answered, so that the verdicts describe it
    and are no evidence on the paper; `counts`: statements by verdict.
    """

    schema: str = "elbowroom/study"
    version: int = 1
    study: str
    paper: str
    folder: str
    report: str
    machine: str
    hosts: int
    virtual: bool
    quick: bool
    trusted: bool
    counts: dict[str, int]
    runs: tuple[StudiedRun, ...]
    exhibits: tuple[JudgedExhibit, ...]

    def __repr__(self) -> str:
        return f"StudyDocument(study={self.study!r}, machine={self.machine!r}, counts={self.counts!r})"

    __str__, _repr_html_ = display.text, display.html


class PlannedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A run that a study would make here: points and seconds, or the reason why not."""

    name: str
    measurement: str
    hosts: int
    plan: str
    points: int
    seconds: float
    command: str
    reason: str = ""
    notes: tuple[str, ...] = ()


class PlannedExhibit(msgspec.Struct, frozen=True, kw_only=True):
    """A figure or table: whether this machine can show it, and how many of its statements it can judge.
    `reasons`: why it cannot show or judge the others.
    """

    label: str
    title: str
    shown: bool
    judged: int
    statements: int
    reasons: tuple[str, ...] = ()


class StudyPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What `study --dry-run --json` prints; `seconds` for all runs; `builds`: what would be built first."""

    schema: str = "elbowroom/study-plan"
    version: int = 1
    study: str
    paper: str
    machine: str
    hosts: int
    virtual: bool
    quick: bool
    seconds: float
    builds: tuple[str, ...] = ()
    runs: tuple[PlannedRun, ...]
    exhibits: tuple[PlannedExhibit, ...]


def judged(statement: Statement, exhibit: Exhibit, evidence: Evidence, machine: Machine) -> JudgedStatement:
    """The verdict on a statement: not testable here where the machine lacks what it needs or nothing was
    measured; undecided where the runs are not trusted.
    """
    outcome = statement.judge(evidence)
    lack = "; ".join(reason for need in statement.needs if (reason := need(machine)))
    if two_nodes in statement.needs and two_nodes(machine):
        outcome = msgspec.structs.replace(outcome, ours="")
    verdict, why = _verdict(outcome, lack, evidence.doubts(exhibit.runs))
    return JudgedStatement(
        text=statement.text,
        section=statement.section,
        paper=statement.paper,
        ours=outcome.ours,
        verdict=verdict,
        why=why,
        criterion=statement.criterion,
    )


def _verdict(outcome: Outcome, lack: str, doubt: str) -> tuple[Verdict, str]:
    if lack:
        return (
            "not testable here",
            f"{lack}; the run is not trusted either" if doubt and outcome.ours else lack,
        )
    if outcome.judgement == "not tested":
        return "not testable here", outcome.why or "it was not measured"
    if doubt and outcome.judgement != "undecided":
        return "undecided", f"the run is not trusted: {doubt}"
    return outcome.judgement, outcome.why


def counted(exhibits: Sequence[JudgedExhibit]) -> dict[str, int]:
    """Statements by verdict, every verdict named."""
    counts = Counter(statement.verdict for exhibit in exhibits for statement in exhibit.statements)
    return {verdict: counts[verdict] for verdict in VERDICTS}


def lacking(measurement: Measurement, machine: Machine) -> str:
    """Why nothing of a run can be measured here; empty where something can."""
    return next((reason for need in measurement.needs if (reason := need(machine))), "")


def planned_exhibits(
    study: Study, machine: Machine, reasons: Mapping[str, str], unobserved: Mapping[str, str] | None = None
) -> tuple[PlannedExhibit, ...]:
    """What the machine can show and judge; `reasons`: why a measurement cannot be made at all, by its name;
    `unobserved`: why something cannot be observed, by name.
    """

    def lacks(of: Exhibit | Statement) -> list[str]:
        why = [reason for need in of.needs if (reason := need(machine))]
        hidden = (unobserved or {}).get(of.observes, "")
        return [*why, f"{of.observes}: {hidden}"] if hidden else why

    planned = []
    for exhibit in study.exhibits:
        without = [reasons[name] for name in exhibit.runs if reasons.get(name)]
        measured = bool(exhibit.runs) and len(without) < len(exhibit.runs)
        hindered = lacks(exhibit)
        of_statements = [lacks(statement) for statement in exhibit.statements]
        can = [lack for lack in of_statements if measured and not lack]
        why = [*filter(None, [exhibit.instead]), *without, *hindered]
        why += [reason for lack in of_statements for reason in lack]
        planned.append(
            PlannedExhibit(
                label=exhibit.label,
                title=exhibit.title,
                shown=measured and not hindered,
                judged=len(can),
                statements=len(exhibit.statements),
                reasons=tuple(dict.fromkeys(why)),
            )
        )
    return tuple(planned)
