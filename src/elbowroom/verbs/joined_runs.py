"""Runs of one program on different numbers of nodes, shown as one (`elbowroom report RUN RUN …`)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.experiment import JoinedResults, RunPart
from elbowroom.files import write_atomically
from elbowroom.machine.identity import HARDWARE, check_same, difference
from elbowroom.report.page import Page, render
from elbowroom.results.grades import NOT_TRUSTED, graded
from elbowroom.results.result import Finding, PointResult, Verdict
from elbowroom.verbs.run_folder import Run, open_each
from elbowroom.verbs.run_report import build_page

if TYPE_CHECKING:
    from elbowroom.draw.figure import Figure, TextTable

ALIKE = tuple(field for field in HARDWARE if field != "hosts")
"""What runs of one machine share on any number of its nodes."""


class JoinedRuns:
    """Several runs as one: findings, tables, figures and data of all of them together."""

    def __init__(self, runs: Sequence[Run], results: JoinedResults) -> None:
        self.runs = tuple(runs)
        self._results = results

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What all runs together show."""
        return self._results.findings

    @property
    def tables(self) -> tuple[TextTable, ...]:
        """The experiment's tables over all runs."""
        return self._results.tables

    @property
    def figures(self) -> tuple[Figure, ...]:
        """The experiment's figures over all runs."""
        virtual = " (virtual machine)" * self.runs[0].machine.virtual
        return tuple(
            msgspec.structs.replace(figure, title=f"{figure.title}{virtual}")
            for figure in self._results.figures
        )

    @property
    def data(self) -> dict[str, Any]:
        """What the experiment adds to `show --json`, of all runs."""
        return self._results.data

    @property
    def verdict(self) -> Verdict:
        """Trusted where every run is; else with the reasons of those that are not, by run."""
        reasons = tuple(
            f"{run.path}: {reason}"
            for run in self.runs
            if not run.verdict.trusted
            for reason in run.verdict.reasons
        )
        shown = self.findings[0].text if self.findings else "These runs allow no statement together."
        if self.runs[0].machine.virtual:
            shown = f"Virtual machine {self.runs[0].machine.name}, nothing was measured: {shown}"
        text = shown if not reasons else f"{shown} {NOT_TRUSTED} {reasons[0]}"
        levels = {finding.level for finding in self.findings}
        judged = Verdict(
            trusted=not reasons,
            text=text,
            reasons=reasons,
            interference=True if "interference" in levels else (False if "quiet" in levels else None),
            findings=self.findings,
        )
        return graded(judged, None)

    def report(self, path: Path | str) -> Path:
        """Writes one HTML file of all runs."""
        target = Path(path)
        write_atomically(target, render(self._page()).encode())
        return target

    def _page(self) -> Page:
        pages = [build_page(run.evaluated) for run in self.runs]
        first = pages[0]
        results, uses = [], {}
        names: set[str] = set()
        for run, page in zip(self.runs, pages, strict=True):
            for result in page.results:
                named = _renamed(result, run, names)
                names.add(named.id)
                results.append(named)
                if result.id in page.uses:
                    uses[named.id] = page.uses[result.id]
        paths = ", ".join(str(run.path) for run in self.runs)
        return msgspec.structs.replace(
            first,
            title=f"{first.manifest['plan']['name']}: {len(self.runs)} runs joined",
            verdict=self.verdict,
            results=tuple(results),
            findings=self.findings,
            figures=self.figures,
            tables=self.tables,
            notes=tuple(dict.fromkeys(note for page in pages for note in page.notes)),
            drifts=tuple(drift for page in pages for drift in page.drifts),
            uses=uses,
            method=(("runs", paths), *first.method),
        )


def _renamed(result: PointResult, run: Run, names: set[str]) -> PointResult:
    """With its run in its name, where an earlier run has a point of that name."""
    if result.id not in names:
        return result
    return msgspec.structs.replace(result, id=f"{result.id} of {run.path}")


def join_runs(*runs: Run | Path | str) -> JoinedRuns:
    """Several runs of one plan, on different numbers of nodes of one machine, as one.

    UsageError for runs of different machines or experiments, runs that are named twice, an experiment that
    cannot join runs, and runs that do not fit together (one mesh, each number of nodes once).
    """
    opened = open_each(runs)
    if len(opened) < 2:
        raise UsageError("needs two runs", field="run", hint="name a run of each number of nodes")
    first = opened[0]
    experiment = experiments.get(str(first.manifest.plan["experiment"]))
    for run in opened[1:]:
        other = run.manifest.plan["experiment"]
        if other != experiment.name:
            raise UsageError(
                f"is a run of {other}, and {first.path} of {experiment.name}",
                field="run",
                value=str(run.path),
                hint="join runs of one plan",
            )
        check_same(
            difference(run.machine, first.machine, ALIKE, cluster=True),
            message="is from another machine",
            field="run",
            value=str(run.path),
            hint="join runs of different numbers of nodes of one machine",
            places=("there", f"in {first.path}"),
        )
    if experiment.join is None:
        names = ", ".join(item.name for item in experiments.all() if item.join is not None)
        raise UsageError(
            f"runs of {experiment.name} cannot be joined",
            field="run",
            value=str(first.path),
            hint=f"report one run, or join runs of {names}",
        )
    parts = [RunPart(name=str(run.path), results=tuple(run.points()), machine=run.machine) for run in opened]
    return JoinedRuns(opened, experiment.join(parts))
