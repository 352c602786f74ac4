"""`elbowroom study`: a paper's figures and statements on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from elbowroom.cli.answer import Answer, command_line
from elbowroom.cli.console import chatter, print_all, print_wrapped
from elbowroom.cli.options import REPEAT, Output, completion
from elbowroom.cli.tables import new_table, print_table
from elbowroom.errors import UsageError
from elbowroom.files import write_atomically
from elbowroom.launch import native
from elbowroom.launch.launchers import names as launcher_names
from elbowroom.quantities import duration
from elbowroom.verbs.declaration import Verb, argument, dry_run_option, function_of, included, option
from elbowroom.verbs.run_options import Launching, Virtual, place, seed_option, timeout_option
from elbowroom.verbs.run_tables import print_builds

if TYPE_CHECKING:
    from elbowroom.measure.prepared import Prepared
    from elbowroom.measure.study import Conducted, Planned, StudyRequest, StudyRun
    from elbowroom.studies.document import PlannedRun, State, StudiedRun, StudyDocument, StudyPlan

COLOURS = {"confirmed": "green", "refuted": "red", "undecided": "yellow", "not testable here": ""}


def study_names() -> tuple[str, ...]:
    """The papers that can be studied."""
    from elbowroom.studies import STUDIES

    return STUDIES.names()


class StudyPaper(Verb):
    """Measure the runs behind the figures of PAPER, and judge its statements.

    PAPER: denis2021, koop2009, langguth2018, swartvagher2022, tan2012.
    """

    name = "study"
    has_tables = True
    resumed = "study"
    with_resume = ("patience", "tell", "bundle")

    paper: str | None = argument(None, shell_complete=completion(study_names))
    out: str | None = option(
        "Folder of the study; default runs/study-PAPER. The same command continues it.",
        "FOLDER",
        spelled="-o --out",
    )
    resume: str | None = option("Continue the study in FOLDER with its settings.", "FOLDER")
    bundle: Path | str | None = option(
        "Also write everything into one file: samples, topology, versions, command lines, citation.",
        "FILE.zip",
        type=Output(".zip"),
    )
    dry_run: bool = dry_run_option("Print what this machine can show and judge, and the time.")
    only: tuple[str, ...] = option("Only this figure or table: 'Fig. 4a'; may be repeated.", "LABEL")
    quick: bool = option("Few repetitions, short windows, fewer points.")
    repeat: int | None = option("Number of repetitions of each point.", "N", type=REPEAT)
    starts: int | None = option(
        "Start each program anew K times, each with its share of N.", "K", type=REPEAT
    )
    turbo: str | None = option(
        "Turbo setting during runs about frequencies.", type=click.Choice(["on", "off"])
    )
    governor: str | None = option("Set this governor during runs about frequencies.", "NAME")
    budget: float | None = option("Time for all runs together: 30min, 4h.", "TIME")
    launching: Launching = included(
        Launching,
        own={
            "launcher": {
                "help": f"{', '.join(launcher_names())}; default: that of the allocation, else local."
            }
        },
    )
    virtual: Virtual = included(Virtual)
    seed: int | None = seed_option()
    patience: float | None = timeout_option()
    tell: Callable[[str], object] = chatter

    def do(self) -> StudyDocument:
        """Measures all runs behind a paper's figures into one folder, judges its statements, and writes
        report.html and results.json there.

        A folder with the same study is continued: what is measured is kept. `resume` names it in place of
        `paper`. `only`: labels of the figures and tables to make (`Fig. 4a`). `quick`: few repetitions, short
        windows and fewer points; `budget`: seconds for all runs together; `starts`: each run starts its
        program so often; `turbo`, `governor`: set during runs about frequencies.
        `bundle`: a zip file of all that was measured and what it was measured with, which `compare` takes.
        UsageError for an unknown paper, and for a folder of other settings or of another machine.
        """
        from elbowroom.measure import study
        from elbowroom.signals import stopped_by_signals

        request = self._request() if self.resume is None else study.request_of(self.resume)
        request = msgspec.structs.replace(request, patience=self.patience)
        done = study.conduct(request, self.tell)
        with stopped_by_signals(done.folder, "elbowroom study --resume"):
            document = write_results(request, done)
        if self.bundle is not None:
            from elbowroom.verbs.bundles import write_bundle

            write_bundle(done.folder, Path(self.bundle))
        return document

    def _request(self) -> StudyRequest:
        from elbowroom.measure.study import StudyRequest

        if self.paper is None:
            known = ", ".join(study_names())
            raise UsageError(
                "no paper is given", field="paper", hint=f"name one of {known}, or --resume FOLDER"
            )
        return StudyRequest(
            study=self.paper,
            out=self.out or str(Path("runs") / f"study-{self.paper}"),
            where=place(self.launching, self.virtual, self.seed),
            only=tuple(self.only),
            quick=self.quick,
            repeat=self.repeat,
            starts=self.starts,
            turbo=self.turbo or "",  # type: ignore[arg-type]  # one of the choices
            governor=self.governor or "",
            budget=self.budget or 0.0,
            seed=self.seed,
        )

    def planned(self) -> StudyPlan:
        """What a study would measure here and how long that takes, at most `budget` seconds; for each figure
        and table whether this machine can show and judge it, with the reason if it cannot. Measures nothing.
        """
        return plan_study(self._request())

    def print_planned(self, plan: StudyPlan) -> None:
        """The runs, and what of each figure can be shown and judged."""
        _print_plan(plan)

    def print(self, result: StudyDocument) -> None:
        _print_study(result)
        if self.bundle is not None:
            print_wrapped(f"bundle: {self.bundle}")

    def answer(self, result: StudyDocument) -> Answer:
        """How many statements hold, and the first that does not."""
        judged = [(exhibit, item) for exhibit in result.exhibits for item in exhibit.statements]
        wrong = next((pair for pair in judged if pair[1].verdict == "refuted"), None)
        right = next((pair for pair in judged if pair[1].verdict == "confirmed"), None)
        shown = wrong or right
        of_run = {run.name: run.folder for run in result.runs if run.folder}
        folder = next((of_run[name] for name in (shown[0].runs if shown else ()) if name in of_run), "")
        doubtful = next((run.folder for run in result.runs if run.doubt and run.folder), "")
        following = command_line("study", "--resume", result.folder)
        if not any(run.state == "failed" for run in result.runs) and (doubtful or folder):
            following = command_line("show", doubtful or folder)
        why = " ".join(warnings(result)[:1]) or "No statement could be judged here."
        if shown:
            exhibit, item = shown
            why = f"{exhibit.label}, {item.verdict}: {item.text} {item.ours or item.why}".strip()
        return Answer(headline(result), why, following, "yellow" if not result.trusted else "")

    def exit_code(self, result: StudyDocument) -> int:
        if any(run.state == "failed" for run in result.runs):
            return 1
        return super().exit_code(result)


study = function_of(StudyPaper)
study_plan = function_of(StudyPaper, "study_plan", dry_run=True, resume=None)


def _print_study(done: StudyDocument) -> None:
    print_wrapped(done.paper, style="bold")
    print_all(warnings(done))
    for exhibit in done.exhibits:
        print()
        print_wrapped(f"{exhibit.label}: {exhibit.title}", style="bold")
        if exhibit.instead:
            print_wrapped(f"{exhibit.instead}.", indent="  ")
        for statement in exhibit.statements:
            colour = COLOURS[statement.verdict]
            print_wrapped(f"{statement.verdict}: {statement.text}", indent="  ", style=colour)
            print_wrapped(f"paper: {statement.paper}", indent="    ")
            if statement.ours:
                print_wrapped(f"here: {statement.ours}", indent="    ")
            if statement.why:
                print_wrapped(f"because: {statement.why}", indent="    ")
    print()
    print_wrapped(f"report: {done.report}")


def _print_plan(planned: StudyPlan) -> None:
    print_wrapped(planned.paper, style="bold")
    where = " (virtual)" if planned.virtual else ""
    time = duration(planned.seconds)
    print_wrapped(f"on {planned.machine}{where}, {planned.hosts} hosts: about {time}")
    print_builds(planned.builds)
    print()
    table = new_table("run", "plan", ">points", ">time", "~")
    for run in planned.runs:
        took = duration(run.seconds) if run.points else "-"
        table.add_row(
            run.name, run.plan, str(run.points), took, f"cannot: {run.reason}" if run.reason else ""
        )
    print_table(table)
    print()
    for exhibit in planned.exhibits:
        shows = "can be shown" if exhibit.shown else "not shown by this study"
        count = f"{exhibit.judged} of {exhibit.statements} statements"
        judged = f", {count} can be judged" if exhibit.statements else ""
        print_wrapped(f"{exhibit.label}: {shows}{judged}", style="bold")
        print_all(exhibit.reasons, indent="  ")


REPORT, DOCUMENT = "report.html", "results.json"


def write_results(request: StudyRequest, done: Conducted) -> StudyDocument:
    """Judges the statements of a paper, and writes report.html and results.json into the study's folder."""
    from elbowroom.measure.results import UNTRUSTED
    from elbowroom.report.study_page import StudyPage, render_study
    from elbowroom.studies.document import JudgedExhibit, StudyDocument, counted, judged
    from elbowroom.studies.drawings import titled

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
    from elbowroom.measure.study import command, run_path
    from elbowroom.studies.document import StudiedRun

    runs = []
    for run in done.runs:
        results = done.results.get(run.name)
        reason = done.reasons.get(run.name, "") or done.failures.get(run.name, "")
        path = run_path(done.folder, run.name)
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
                command=command(request, run, done.machine),
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
    if not total:
        return "The study judges no statement: it names the command of each figure."
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
    from elbowroom.measure import study as measured
    from elbowroom.studies.document import StudyPlan, planned_exhibits

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
    from elbowroom.measure.study import command
    from elbowroom.studies.document import PlannedRun

    prepared = planned.prepared.get(run.name)
    return PlannedRun(
        name=run.name,
        measurement=run.measurement.name,
        hosts=run.hosts,
        plan=run.measurement.plan,
        points=0 if prepared is None else len(prepared.expansion.points),
        seconds=0.0 if prepared is None else _seconds(prepared),
        command=command(request, run, planned.machine),
        reason=planned.reasons.get(run.name, ""),
        notes=()
        if prepared is None
        else tuple(f"{note.what}: {note.reason}" for note in prepared.expansion.notes),
    )
