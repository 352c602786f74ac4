"""Run folders: opening, showing, reporting and exporting them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from elbowroom import display, experiments
from elbowroom.cli.console import chatter
from elbowroom.draw.figure import TextTable
from elbowroom.errors import UsageError
from elbowroom.experiments.diffusion.steps import rows
from elbowroom.files import write_atomically
from elbowroom.frames import Frame, frame
from elbowroom.heartbeat import Wait
from elbowroom.machine.topology import Machine
from elbowroom.measure import export, results
from elbowroom.measure.explanation import observed
from elbowroom.measure.formats import Format
from elbowroom.measure.measurements import collect
from elbowroom.measure.tails import PointTail
from elbowroom.points.point import Note
from elbowroom.quantities import plural
from elbowroom.report.page import render
from elbowroom.results.comparison import ComparedRun, values_of
from elbowroom.results.result import Finding, PointResult, Verdict, documented_point
from elbowroom.store import sealed
from elbowroom.store.curves import write_curves
from elbowroom.store.folder import Manifest, RunFolder
from elbowroom.verbs.model_file import curves_of
from elbowroom.verbs.run_answer import run_answer
from elbowroom.verbs.run_report import build_page, job_section, model_sections

if TYPE_CHECKING:
    from elbowroom.advise.job import Job
    from elbowroom.draw.figure import Figure
    from elbowroom.experiments.diffusion.steps import StepRow
    from elbowroom.explain.explainer import ObservedRun


class Run:
    """A run folder, read only. Nothing is computed before it is asked for."""

    def __init__(self, folder: RunFolder, evaluated: results.Results | None = None) -> None:
        self._folder = folder
        if evaluated is not None:
            self.__dict__["_results"] = evaluated

    def __repr__(self) -> str:
        manifest = self.manifest
        finished = manifest.finished or None
        return f"Run({str(self.path)!r}, plan={manifest.plan.get('name', '')!r}, finished={finished!r})"

    __str__, _repr_html_ = display.text, display.html

    @cached_property
    def _results(self) -> results.Results:
        return results.evaluate(self._folder)

    @property
    def evaluated(self) -> results.Results:
        """All that is computed from the folder."""
        return self._results

    @property
    def path(self) -> Path:
        """The run folder."""
        return self._folder.path

    @property
    def manifest(self) -> Manifest:
        """What the run was asked for and where it ran."""
        return self._folder.manifest

    @property
    def machine(self) -> Machine:
        """The machine: packages, cores, NUMA nodes, caches, NICs."""
        return self._results.machine

    @property
    def verdict(self) -> Verdict:
        """Whether to trust the run, and what it says."""
        return self._results.verdict

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What was found in the data, in words and numbers."""
        return self._results.findings

    @property
    def notes(self) -> tuple[Note, ...]:
        """What the machine cannot answer, and what there was no time for."""
        return self._results.notes

    def points(self) -> list[PointResult]:
        """One result per point, in the plan's order, without those that there was no time for (`notes`)."""
        return list(self._results.points)

    @cached_property
    def figures(self) -> tuple[Figure, ...]:
        """The figures of the experiment, as data."""
        return self._results.figures()

    @cached_property
    def tables(self) -> tuple[TextTable, ...]:
        """The tables of the experiment, as text; none where those of the points are enough."""
        return self._results.tables()

    @cached_property
    def tail_tables(self) -> tuple[TextTable, ...]:
        """Percentiles and stalls of messages that were due at fixed times; if empty, see `no_tails`."""
        return self._results.tail_tables()

    @property
    def no_tails(self) -> str:
        """Why the run has no tails; empty where it has."""
        return self._results.no_tails

    def observed(self) -> ObservedRun:
        """The run as `explain` takes it: results, and resamples of the raw samples."""
        return observed(self._folder, self._results)

    def measured(self) -> ComparedRun:
        """The run as `compare` takes it: results, and each repetition's values."""
        points = self.manifest.points
        return ComparedRun(
            results=self.points(),
            values=values_of(
                points,
                collect(self._folder.entries(), points).samples,
                self.manifest.starts > 1,
            ),
        )

    def frame(self) -> Frame:
        """The points, a row each: axes, both sides alone and together, both ratios, with their intervals."""
        return frame(self.points())

    def samples(self) -> Frame:
        """All raw samples, a row for each unit, phase and side (docs/reference/exports.md)."""
        return Frame(sealed.table(self._folder.entries(), self.manifest.points))

    def show(self) -> dict[str, Any]:
        """What `show --json` prints, as plain data."""
        return show_document(self.path, self.manifest, self._results)

    def report(
        self,
        path: Path | str | None = None,
        *,
        models: Sequence[Path | str] = (),
        job: Job | Path | str | None = None,
    ) -> Path:
        """Writes the report, one HTML file without network; default: report.html in the run folder.

        It shows the models of `models` (files, or names of published machines), else those of the run folder;
        and the `job` on the contention map of the first of them. UsageError for a job that does not fit it.
        """
        target = Path(path) if path is not None else self._folder.report_path
        shown, doubts = model_sections(self, models)
        shown_job = None if job is None else job_section(self, shown, job)
        with Wait("writing the report"):
            page = build_page(self._results, shown, doubts, shown_job, run_answer(self))
            write_atomically(target, render(page).encode())
        return target

    def export(self, kind: Format, path: Path | str) -> list[Path]:
        """Writes raw samples (parquet, csv), results (json, osu, bmf, openmetrics, junit), figures (png, svg:
        `path` is a folder), the topology with measured memory attributes (hwloc), or the bandwidths that
        models learn from (curves: what `import_curves` reads). See docs/reference/exports.md.
        """
        if kind == "curves":
            return self._export_curves(Path(path))
        return export.export(self._folder, self._results, self.show, kind, Path(path))

    def _export_curves(self, path: Path) -> list[Path]:
        collected = curves_of(self)
        for reason, count in collected.left_out.items():
            chatter(f"left out: {plural(count, 'point')}, {reason}")
        write_curves(path, collected.curves)
        return [path]


def open(path: Run | Path | str) -> Run:
    """Opens a run folder, unless it is open; raises UsageError when it is none, is damaged, or was written by
    a newer release.
    """
    return path if isinstance(path, Run) else Run(RunFolder.open(path))


def open_each(paths: Iterable[Run | Path | str]) -> list[Run]:
    """Opens run folders as `open`; UsageError where one is named twice: its points would count twice."""
    named, places = list(paths), set[str]()
    for path in (item.path if isinstance(item, Run) else item for item in named):
        if (place := os.path.realpath(path)) in places:
            raise UsageError("is named twice", field="run", value=str(path), hint="name each run once")
        places.add(place)
    return [open(path) for path in named]


class ShownMachine(Machine, frozen=True, kw_only=True):
    """The machine of a run, its `state` before and after, and why what is `unknown` could not be read."""

    state: dict[str, dict[str, Any]]
    unknown: dict[str, str]


class Show(msgspec.Struct, frozen=True, kw_only=True):
    """What `show --json` prints, but for what experiments add."""

    schema: str = "elbowroom/show"
    version: int = 1
    run: str = ""
    elbowroom: str = ""
    created: str = ""
    command: tuple[str, ...] = ()
    plan: dict[str, Any] = {}
    machine: ShownMachine
    mpi: dict[str, Any] = {}
    measured_share: float | None = None
    verdict: Verdict
    points: tuple[PointResult, ...]
    findings: tuple[Finding, ...]
    notes: tuple[Note, ...]
    tails: tuple[PointTail, ...] | msgspec.UnsetType = msgspec.UNSET


def show_type() -> type[msgspec.Struct]:
    """The type of the whole document: with what experiments add."""
    added: list[Any] = [
        (key, kind | msgspec.UnsetType, msgspec.UNSET)
        for experiment in experiments.all()
        for key, kind in experiment.data_types.items()
    ]
    added.append(("points", tuple[documented_point(), ...]))  # type: ignore[misc]
    return msgspec.defstruct("Show", added, bases=(Show,), namespace={"__doc__": Show.__doc__}, kw_only=True)


def show_document(path: Path, manifest: Manifest, evaluated: results.Results) -> dict[str, Any]:
    """The results of the run in a folder, as plain data."""
    whole = Show(
        run=str(path),
        elbowroom=manifest.elbowroom,
        created=manifest.created,
        command=manifest.command,
        plan=manifest.plan,
        machine=ShownMachine(
            **msgspec.structs.asdict(evaluated.machine), state=manifest.state, unknown=manifest.unknown
        ),
        mpi=manifest.hello.get("mpi", {}),
        measured_share=manifest.measured_share,
        verdict=evaluated.verdict,
        points=evaluated.points,
        findings=evaluated.findings,
        notes=evaluated.notes,
        tails=evaluated.tails or msgspec.UNSET,
    )
    plain: dict[str, Any] = msgspec.to_builtins(whole) | msgspec.to_builtins(evaluated.data())
    plain["points"] = [point.plain() for point in evaluated.points]
    return plain


def step_table(run: Run) -> tuple[StepRow, ...]:
    """Table II of Langguth et al. (2018) for a run of `diffusion`: a row for each number of nodes and of
    communication threads; empty for runs of kernels. Times are in us.
    """
    return rows(run.points())
