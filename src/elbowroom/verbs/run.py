"""`elbowroom run`: measures a plan, or the rest of it."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import msgspec

from elbowroom.cli.answer import Answer
from elbowroom.cli.console import chatter
from elbowroom.cli.options import completion
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import names
from elbowroom.launch import native
from elbowroom.launch.launchers import names as launcher_names
from elbowroom.machine.topology import Machine
from elbowroom.points.point import Note, Point
from elbowroom.verbs.declaration import Verb, argument, dry_run_option, function_of, included, option
from elbowroom.verbs.run_options import Launching, PlanChanges, Virtual, place, seed_option, timeout_option
from elbowroom.verbs.run_tables import print_dry_run, print_run

if TYPE_CHECKING:
    from elbowroom.measure.prepared import Prepared, Request
    from elbowroom.verbs.run_folder import Run


class PlannedPoint(Point, frozen=True, kw_only=True):
    """A point with its id."""

    id: str


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """What `run --dry-run --json` prints: what would be built first, points and command lines, `units` of
    work, and their time in s.
    """

    schema: str = "elbowroom/dry-run"
    version: int = 1
    plan: dict[str, Any]
    machine: Machine
    points: tuple[PlannedPoint, ...]
    units: int
    seconds: float
    budget: float | None
    measured_seconds: float
    builds: tuple[str, ...] = ()
    commands: tuple[str, ...]
    notes: tuple[Note, ...]


def dry_run_document(prepared: Prepared) -> dict[str, Any]:
    """A plan on a machine, before anything is measured, as plain data of a DryRun."""
    document = DryRun(
        plan=prepared.plan.plain(),
        machine=prepared.machine,
        points=tuple(
            PlannedPoint(id=point.id, **msgspec.structs.asdict(point)) for point in prepared.expansion.points
        ),
        units=len(prepared.units),
        seconds=min(prepared.seconds, prepared.budget or prepared.seconds),
        budget=prepared.budget or None,
        measured_seconds=prepared.measured_seconds,
        builds=prepared.builds,
        commands=prepared.commands,
        notes=prepared.expansion.notes,
    )
    plain: dict[str, Any] = msgspec.to_builtins(document)
    return plain | {"points": [point.plain() for point in document.points]}


class RunPlan(Verb):
    """Measure PLAN (a named plan, see `elbowroom plans`, or a TOML file)."""

    name = "run"
    has_tables = True
    with_resume = ("retry_failed", "launching", "budget", "patience", "report", "browser", "command", "tell")

    plan: str | None = argument(None, shell_complete=completion(names))
    out: str | None = option(
        "Folder of the run; default runs/PLAN-DATE-TIME. Never overwritten.", "RUN", spelled="-o --out"
    )
    resume: Path | str | None = option("Continue an interrupted run.", "RUN")
    retry_failed: bool = option("With --resume: measure failed repetitions again.", only_with="resume RUN")
    dry_run: bool = dry_run_option(
        "Print what would be done: command lines, estimated time, and what is n/a."
    )
    launching: Launching = included(
        Launching,
        own={
            "launcher": {
                "help": f"{', '.join(launcher_names())} or replay:RUN; "
                "default: that of the allocation, else local."
            }
        },
    )
    virtual: Virtual = included(
        Virtual,
        own={
            "machine": {
                "help": "Use a virtual machine: henri (see `elbowroom machine list`), FILE.toml or FILE.xml."
            },
            "noise": {"help": "With --machine: relative noise of its values; default 0.01 (1 %)."},
        },
    )
    changes: PlanChanges = included(
        PlanChanges,
    )
    seed: int | None = seed_option()
    reverse: bool = option("Reverse the order within each repetition.")
    patience: float | None = timeout_option()
    trace: bool = option("Trace the probe's threads into RUN.trace.")
    report: bool = option("Write no report.html.", spelled="--no-report", default=True)
    browser: bool = option(
        "Do not open the report in a browser.", spelled="--no-open", default=True, in_python=False
    )
    command: Sequence[str] = ()
    tell: Callable[[str], object] = chatter

    def do(self) -> Run:
        """Measures a plan into a new run folder; see `elbowroom run --help` for the options.

        `budget` (seconds) limits the time from this call to the report, as the plan's `budget` does: the
        points that tell most come first, and `Run.notes` says what there was no time for. `overrides` has all
        changes of the plan in one.

        `trace`: what the probe's threads do is recorded into OUT.trace/1 (and 2, ... where the probe is
        started again), traces as `elbowroom trace` reads them; some ten ns for each chunk of a millisecond.

        `machine`: a virtual one answers instead (published name or file, docs/guide/virtual.md), with `noise`
        as the relative standard deviation of its values, and `seed` for that and for the order of points.

        `resume`: measures what an interrupted run still lacks, within `budget` seconds from now; without it,
        in what is left of the run's own budget.
        """
        from elbowroom.signals import stopped_by_signals
        from elbowroom.verbs.run_folder import Run

        done = Run(*(self._start() if self.resume is None else self._resume()))
        if self.report:
            with stopped_by_signals(done.path, "elbowroom report"):
                done.report()
        return done

    def _start(self) -> Any:
        from elbowroom.measure import campaign

        started = time.monotonic()
        folder, results = campaign.start(msgspec.structs.replace(self._request(), start=started), self.tell)
        if self.trace:
            traces = campaign.traces_of(folder.path)
            self.tell(f"recorded: {traces} (elbowroom trace merge {traces / '1'} -o timeline.html)")
        return folder, results

    def _resume(self) -> Any:
        from elbowroom.measure import campaign

        return campaign.resume(
            Path(self.resume or ""),
            self.tell,
            where=place(self.launching),
            patience=self.patience,
            retry_failed=self.retry_failed,
            budget=self.changes.budget,
        )

    def _request(self) -> Request:
        """What is to be measured, and where."""
        from elbowroom.measure.prepared import Request

        if self.plan is None:
            raise UsageError(
                "no plan is given", field="plan", hint="name one of `elbowroom plans`, or --resume RUN"
            )
        return Request(
            plan=self.plan,
            overrides=self.changes.as_overrides(),
            where=place(self.launching, self.virtual, self.seed),
            out=self.out,
            seed=self.seed,
            reverse=self.reverse,
            patience=self.patience,
            command=tuple(self.command),
            trace=self.trace,
        )

    def planned(self) -> Prepared:
        """What `run` would do: points, notes, command lines and the time it would take. Measures and builds
        nothing.
        """
        from elbowroom.measure.prepare import load_plan, prepare
        from elbowroom.measure.source import choose

        request = self._request()
        with native.dry_run() as missing:
            plan, request = load_plan(request, lambda _: None)
            # Of another's machine, having nothing to measure is an answer.
            empty = self.virtual.machine is not None
            prepared = prepare(request, plan, choose(request.where), empty=empty)
        return msgspec.structs.replace(prepared, builds=tuple(missing))

    def planned_document(self, plan: Prepared) -> dict[str, Any]:
        """The plan on a machine, as plain data of a DryRun."""
        return dry_run_document(plan)

    def print_planned(self, plan: Prepared) -> None:
        print_dry_run(plan)

    def document(self, result: Run) -> dict[str, Any]:
        return result.show()

    def print(self, result: Run) -> None:
        """The run, and where its report is."""
        print_run(result)
        if self.report:
            report = result.path / "report.html"
            click.echo(f"report: {report}")
            if self.browser and sys.stdout.isatty() and _has_display():
                click.launch(str(report))

    def answer(self, result: Run) -> Answer:
        from elbowroom.verbs.run_answer import run_answer

        return run_answer(result)

    def trusted(self, result: Run) -> bool:
        return result.verdict.trusted


def _has_display() -> bool:
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


run = function_of(RunPlan)
resume = function_of(RunPlan, "resume", resuming=True, command=())
dry_run = function_of(RunPlan, "dry_run", dry_run=True, resume=None, retry_failed=False)
