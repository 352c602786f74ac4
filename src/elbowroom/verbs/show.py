"""`elbowroom show`, `list` and `plans`: a run, the runs in a folder, and the named plans."""

from __future__ import annotations

import itertools
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from elbowroom.cli.answer import Answer
from elbowroom.cli.console import print_wrapped
from elbowroom.cli.tables import new_table, print_table
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.files import wrong_kind
from elbowroom.quantities import plural
from elbowroom.verbs.declaration import Verb, argument, function_of, option

if TYPE_CHECKING:
    from elbowroom.experiments.plans import PlanList
    from elbowroom.store.folder import Manifest
    from elbowroom.verbs.import_files import LoggedTables
    from elbowroom.verbs.run_folder import Run


class ShowRun(Verb):
    """Print a run: verdict, table of points, findings and notes."""

    name = "show"
    has_tables = True

    path: Path | str = argument(metavar="RUN")
    tails: bool = option("Print percentiles of latencies and stalls in place of the points.")

    def do(self) -> Run | LoggedTables:
        """The run, or the tables of imported logs."""
        from elbowroom.store.tables import has_tables, read_tables
        from elbowroom.verbs.import_files import LoggedTables
        from elbowroom.verbs.run_folder import open

        if not has_tables(Path(self.path)):
            return open(self.path)
        if self.tails:
            hint = "leave it out: logs hold no single messages"
            raise UsageError("is not valid for tables of logs", field="tails", hint=hint)
        return LoggedTables(Path(self.path), read_tables(Path(self.path)))

    def document(self, result: Run | LoggedTables) -> dict[str, Any]:
        return result.show()

    def print(self, result: Run | LoggedTables) -> None:
        """The points, the tails of their messages, or the tables of logs."""
        from elbowroom.verbs import import_files, run_tables

        if isinstance(result, import_files.LoggedTables):
            import_files.print_tables(result.stored)
        elif self.tails:
            run_tables.print_tails(result)
        else:
            run_tables.print_run(result)

    def answer(self, result: Run | LoggedTables) -> Answer:
        """That of the run, or what the tables of logs hold."""
        from elbowroom.verbs.import_files import LoggedTables, tables_answer
        from elbowroom.verbs.run_answer import run_answer

        return tables_answer(result) if isinstance(result, LoggedTables) else run_answer(result)

    def trusted(self, result: Run | LoggedTables) -> bool:
        """Whatever the run says, it was shown."""
        return True


State = Literal["finished", "unfinished", "unreadable"]


class ListedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run, or the tables of imported logs. `verdict` is its sentence, or why it cannot be read; `created`
    is UTC (ISO 8601); `origin`: `measured here`, `measured on NAME`, `virtual NAME` or `imported from FILE`.
    """

    path: str
    plan: str = ""
    machine: str = ""
    virtual: bool = False
    created: str = ""
    origin: str = ""
    state: State
    trusted: bool | None = None
    interference: bool | None = None
    grade: str = ""
    verdict: str = ""


class RunList(msgspec.Struct, frozen=True, kw_only=True):
    """What `list --json` prints."""

    schema: str = "elbowroom/list"
    version: int = 1
    folder: str
    runs: tuple[ListedRun, ...]


class ListRuns(Verb):
    """List the runs in FOLDER (default: runs): plan, where from, date, state, verdict."""

    name = "list"
    has_tables = True

    folder: Path | str = argument("runs", metavar="[FOLDER]")

    def do(self) -> list[ListedRun]:
        """The runs in a folder, oldest first, unreadable ones at the end; a run folder lists itself.

        Raises UsageError where there is no such folder.
        """
        folder = Path(self.folder)
        if what := wrong_kind(folder, "folder"):
            raise UsageError(
                what, field="folder", value=str(folder), hint="name a folder with runs, such as runs"
            )
        if _is_run(folder):
            return [_listed(folder)]
        try:
            inside = [path for path in folder.iterdir() if not path.name.startswith(".") and _is_run(path)]
        except OSError as error:
            raise UsageError(
                f"cannot be read ({error.strerror})",
                field="folder",
                value=str(folder),
                hint="name another one",
            ) from error
        return sorted(map(_listed, sorted(inside)), key=lambda run: (run.created or "~", run.path))

    def document(self, result: list[ListedRun]) -> RunList:
        return RunList(folder=str(self.folder), runs=tuple(result))

    def print(self, result: list[ListedRun]) -> None:
        """A table, and why runs cannot be read."""
        if not result:
            print_wrapped(f"There are no runs in {self.folder}.")
            return
        table = new_table("~run", "plan", "~from", "date (UTC)", "state", "verdict")
        for run in result:
            name = os.path.basename(os.path.abspath(run.path))
            date = run.created[:16].replace("T", " ")
            table.add_row(name, run.plan, run.origin, date, run.state, _verdict(run))
        print_table(table)
        for run in result:
            if run.state == "unreadable":
                print_wrapped(f"- {run.verdict}")


list_runs = function_of(ListRuns, "list_runs")


def _is_run(path: Path) -> bool:
    # A link that leads nowhere still is the manifest of a damaged run.
    from elbowroom.store.tables import has_tables

    manifest = path / "manifest.json"
    return manifest.is_symlink() or manifest.exists() or has_tables(path)


def _listed(path: Path) -> ListedRun:
    # Not `Run`, whose report and exports take long to import.
    from elbowroom.measure.results import evaluate
    from elbowroom.store.folder import RunFolder
    from elbowroom.store.tables import has_tables, read_tables

    try:
        if has_tables(path):
            stored = read_tables(path)
            return ListedRun(
                path=str(path),
                plan=stored.benchmarks,
                created=stored.created,
                origin=_imported(stored.command),
                state="finished",
                verdict=f"{plural(len(stored.tables), 'table')}, {plural(stored.rows, 'row')}",
            )
        folder = RunFolder.open(path)
        manifest, verdict = folder.manifest, evaluate(folder).verdict
    except ElbowroomError as error:
        return ListedRun(path=str(path), state="unreadable", verdict=error.sentence())
    return ListedRun(
        path=str(path),
        plan=str(manifest.plan.get("name", "")),
        machine=manifest.machine.name,
        virtual=manifest.machine.virtual,
        created=manifest.created,
        origin=_origin(manifest),
        state="finished" if manifest.finished else "unfinished",
        trusted=verdict.trusted,
        interference=verdict.interference,
        grade=verdict.grade,
        verdict=verdict.text,
    )


def _origin(manifest: Manifest) -> str:
    """Where a run came from."""
    from elbowroom.measure.results import IMPORTED

    name = manifest.machine.name
    if manifest.launcher == IMPORTED:
        return _imported(manifest.command)
    if manifest.machine.virtual:
        return f"virtual {name}"
    return "measured here" if name == socket.gethostname() else f"measured on {name or 'an unknown machine'}"


def _imported(command: Sequence[str]) -> str:
    """`imported from FILE`, as the command names the files."""
    words = list(command)[2:]
    files = list(itertools.takewhile(lambda word: not word.startswith("-"), words))
    return f"imported from {' '.join(map(os.path.basename, files))}" if files else "imported"


def _verdict(run: ListedRun) -> str:
    """The grade, and whether the run is trusted; `show` prints the sentence."""
    if run.trusted is None:
        return "-"
    return run.grade if run.trusted else f"{run.grade} (not trusted)"


class ListPlans(Verb):
    """List the named plans and the question each answers."""

    name = "plans"

    def do(self) -> PlanList:
        """The named plans with the question each answers."""
        from elbowroom.experiments.plans import list_plans

        return list_plans()

    def print(self, result: PlanList) -> None:
        table = new_table("plan", "~question")
        for plan in result.plans:
            table.add_row(plan.name, plan.question)
        print_table(table)
