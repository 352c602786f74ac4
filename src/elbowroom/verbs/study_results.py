"""What a study writes and what it would measure: a paper's runs, figures and judged statements."""

from __future__ import annotations

import msgspec

from elbowroom.files import write_atomically
from elbowroom.launch import native
from elbowroom.measure import study as measured
from elbowroom.measure.prepared import Prepared
from elbowroom.measure.results import UNTRUSTED
from elbowroom.measure.study import Conducted, Planned, StudyRequest, StudyRun
from elbowroom.report.page import StudyPage, render_study
from elbowroom.studies.document import (
    JudgedExhibit,
    PlannedRun,
    State,
    StudiedRun,
    StudyDocument,
    StudyPlan,
    counted,
    judged,
    planned_exhibits,
)
from elbowroom.studies.drawings import titled

REPORT, DOCUMENT = "report.html", "results.json"


def write_results(request: StudyRequest, done: Conducted) -> StudyDocument:
    """Judges the statements of a paper, and writes report.html and results.json into the study's folder."""
    evidence = done.evidence()
    figures = {
        exhibit.label: titled(
            exhibit.draw(evidence),
            exhibit.label,
            virtual=done.machine.virtual,
            warning=UNTRUSTED if evidence.doubts(exhibit.runs) else "",
        )
        for exhibit in done.study.exhibits
    }
    tables = {exhibit.label: tuple(exhibit.tables(evidence)) for exhibit in done.study.exhibits}
    exhibits = tuple(
        JudgedExhibit(
            label=exhibit.label,
            title=exhibit.title,
            runs=exhibit.runs,
            figures=len(figures[exhibit.label]),
            tables=len(tables[exhibit.label]),
            statements=tuple(
                judged(statement, exhibit, evidence, done.machine) for statement in exhibit.statements
            ),
            instead=exhibit.instead,
            absent=exhibit.absent,
            differs=exhibit.differs,
        )
        for exhibit in done.study.exhibits
    )
    document = StudyDocument(
        study=done.study.name,
        paper=done.study.paper,
        folder=str(done.folder),
        report=str(done.folder / REPORT),
        machine=done.machine.name,
        hosts=done.machine.hosts,
        virtual=done.machine.virtual,
        quick=request.quick,
        trusted=all(item.verdict.trusted for item in done.results.values()),
        counts=counted(exhibits),
        runs=_runs(request, done),
        exhibits=exhibits,
    )
    page = StudyPage(
        document=document,
        machine=done.machine,
        headline=headline(document),
        warnings=warnings(document),
        figures=figures,
        tables=tables,
    )
    write_atomically(done.folder / REPORT, render_study(page).encode())
    write_atomically(done.folder / DOCUMENT, msgspec.json.format(msgspec.json.encode(document), indent=1))
    return document


def _runs(request: StudyRequest, done: Conducted) -> tuple[StudiedRun, ...]:
    runs = []
    for run in done.runs:
        results = done.results.get(run.name)
        reason = done.reasons.get(run.name, "") or done.failures.get(run.name, "")
        path = measured.run_path(done.folder, run.name)
        trusted = results is None or results.verdict.trusted
        runs.append(
            StudiedRun(
                name=run.name,
                measurement=run.measurement.name,
                hosts=run.hosts,
                plan=run.measurement.plan,
                folder=str(path) if results is not None else "",
                state=_state(run.name, done),
                points=0 if results is None else len(results.points),
                reason="" if results is not None else reason,
                doubt="" if trusted or results is None else " ".join(results.verdict.reasons[:1]),
                command=measured.command(request, run, done.machine),
            )
        )
    return tuple(runs)


def _state(name: str, done: Conducted) -> State:
    if name in done.results:
        return "measured"
    return "failed" if name in done.failures else "not measured"


def headline(document: StudyDocument) -> str:
    """How many statements of the paper hold here, in a sentence."""
    parts = [f"{count} {verdict}" for verdict, count in document.counts.items()]
    total = sum(document.counts.values())
    where = f"virtual machine {document.machine}" if document.virtual else document.machine
    return f"Of {total} statements on {where}: {', '.join(parts)}."


def warnings(document: StudyDocument) -> tuple[str, ...]:
    """What the verdicts are not."""
    sentences = []
    if document.virtual:
        sentences.append(
            "A virtual machine answered and nothing was measured. The verdicts describe this virtual "
            "machine; they are no evidence for or against the paper."
        )
    if not document.trusted:
        names = ", ".join(run.name for run in document.runs if run.doubt)
        sentences.append(f"These runs are not trusted, and decide nothing: {names}.")
    if document.quick:
        sentences.append("This was a quick study: few repetitions, short windows and fewer points.")
    return tuple(sentences)


def _seconds(prepared: Prepared) -> float:
    """What a run takes, at most its share of the budget."""
    return min(prepared.seconds, prepared.budget or prepared.seconds)


def plan_study(request: StudyRequest) -> StudyPlan:
    """What a study would measure here, how long that takes, and what can be shown and judged."""
    with native.dry_run() as missing:
        planned = measured.plan(request)
        unobserved = measured.unobserved(request.where)
    runs = tuple(_planned_run(request, run, planned) for run in planned.runs)
    return StudyPlan(
        study=planned.study.name,
        paper=planned.study.paper,
        machine=planned.machine.name,
        hosts=planned.machine.hosts,
        virtual=planned.machine.virtual,
        quick=request.quick,
        seconds=sum(run.seconds for run in runs),
        builds=tuple(missing),
        runs=runs,
        exhibits=planned_exhibits(
            planned.study,
            planned.machine,
            measured.by_measurement(planned.runs, planned.reasons),
            unobserved,
        ),
    )


def _planned_run(request: StudyRequest, run: StudyRun, planned: Planned) -> PlannedRun:
    prepared = planned.prepared.get(run.name)
    return PlannedRun(
        name=run.name,
        measurement=run.measurement.name,
        hosts=run.hosts,
        plan=run.measurement.plan,
        points=0 if prepared is None else len(prepared.expansion.points),
        seconds=0.0 if prepared is None else _seconds(prepared),
        command=measured.command(request, run, planned.machine),
        reason=planned.reasons.get(run.name, ""),
        notes=()
        if prepared is None
        else tuple(f"{note.what}: {note.reason}" for note in prepared.expansion.notes),
    )
