"""Measuring and comparing plans."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.api.runs import Run, chatter, open
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import Overrides as Overrides
from elbowroom.launch import native
from elbowroom.machine.topology import Machine
from elbowroom.measure import session
from elbowroom.measure.prepared import Prepared as Prepared
from elbowroom.measure.prepared import Request
from elbowroom.measure.session import stopped_by_signals
from elbowroom.measure.source import Where, choose
from elbowroom.plan.file import Plan as Plan
from elbowroom.points.point import Note
from elbowroom.points.point import Point as Point
from elbowroom.results.comparison import Change as Change
from elbowroom.results.comparison import compare as changes
from elbowroom.results.comparison import worse as worse


class ListedPlan(msgspec.Struct, frozen=True, kw_only=True):
    """A named plan."""

    name: str
    experiment: str
    question: str


class PlanList(msgspec.Struct, frozen=True, kw_only=True):
    """What `plans --json` prints."""

    schema: str = "elbowroom/plans"
    version: int = 1
    plans: tuple[ListedPlan, ...]


def plan_list(plans: Sequence[Plan]) -> PlanList:
    """Plans with the question each answers."""
    listed = (ListedPlan(name=p.name, experiment=p.experiment, question=p.question) for p in plans)
    return PlanList(plans=tuple(listed))


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


class ComparedHead(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was compared."""

    run: str
    trusted: bool
    virtual: bool


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """What `compare --json` prints; `b` is the first run compared with `a`, `others` the rest."""

    schema: str = "elbowroom/compare"
    version: int = 1
    a: ComparedHead
    b: ComparedHead
    others: tuple[ComparedHead, ...]
    at_least: float
    sentence: str
    changes: tuple[Change, ...]
    significant: int


def comparison(runs: Sequence[Run], changes: Sequence[Change], at_least: float, sentence: str) -> Comparison:
    """Runs with their changes, and the answer in a sentence."""
    a, b, *others = (
        ComparedHead(run=str(run.path), trusted=run.verdict.trusted, virtual=run.machine.virtual)
        for run in runs
    )
    return Comparison(
        a=a,
        b=b,
        others=tuple(others),
        at_least=at_least,
        sentence=sentence,
        changes=tuple(changes),
        significant=sum(change.significant for change in changes),
    )


def run(
    plan: str,
    *,
    out: str | None = None,
    overrides: Overrides | None = None,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: Sequence[str] = (),
    hostfile: str | None = None,
    machine: str | None = None,
    noise: float | None = None,
    seed: int | None = None,
    reverse: bool = False,
    patience: float | None = None,
    command: Sequence[str] = (),
    trace: bool = False,
    report: bool = True,
    tell: Callable[[str], object] = chatter,
) -> Run:
    """Measures a plan into a new run folder; see `elbowroom run --help` for the options.

    `overrides.budget` (seconds) limits the time from this call to the report, as the plan's `budget` does:
    the points that tell most come first, and `Run.notes` says what there was no time for.

    `trace`: what the probe's threads do is recorded into OUT.trace/1 (and 2, ... where the probe is started
    again), traces as `elbowroom trace` reads them; some ten ns for each chunk of a millisecond.

    `machine`: a virtual one answers instead (published name or file, docs/guide/virtual.md), with `noise` as
    the relative standard deviation of its values, and `seed` for that and for the order of points.
    """
    begun = time.monotonic()
    where = Where.of(launcher, mpi, hosts, hostfile, machine, noise, seed)
    request = Request(
        plan=plan,
        overrides=overrides or Overrides(),
        where=where,
        out=out,
        seed=seed,
        reverse=reverse,
        patience=patience,
        command=tuple(command),
        trace=trace,
        begun=begun,
    )
    folder, results = session.start(request, tell)
    if trace:
        traces = session.traces_of(folder.path)
        tell(f"recorded: {traces} (elbowroom trace merge {traces / '1'} -o timeline.html)")
    return _reported(Run(folder, results), report)


def resume(
    path: Path | str,
    *,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: Sequence[str] = (),
    hostfile: str | None = None,
    patience: float | None = None,
    retry_failed: bool = False,
    budget: float | None = None,
    report: bool = True,
    tell: Callable[[str], object] = chatter,
) -> Run:
    """Measures what an interrupted run still lacks, within `budget` seconds from now; without it, in what is
    left of the run's own budget.
    """
    where = Where.of(launcher, mpi, hosts, hostfile)
    folder, results = session.resume(
        Path(path), tell, where=where, patience=patience, retry_failed=retry_failed, budget=budget
    )
    return _reported(Run(folder, results), report)


def _reported(done: Run, report: bool) -> Run:
    if report:
        with stopped_by_signals(done.path, "elbowroom report"):
            done.report()
    return done


def dry_run(
    plan: str,
    *,
    overrides: Overrides | None = None,
    launcher: str | None = None,
    mpi: str | None = None,
    hosts: Sequence[str] = (),
    hostfile: str | None = None,
    machine: str | None = None,
    noise: float | None = None,
    seed: int | None = None,
    reverse: bool = False,
) -> Prepared:
    """What `run` would do: points, notes, command lines and the time it would take. Measures and builds
    nothing.
    """
    where = Where.of(launcher, mpi, hosts, hostfile, machine, noise)
    request = Request(plan=plan, overrides=overrides or Overrides(), where=where, seed=seed, reverse=reverse)
    with native.dry_run() as missing:
        request = session.settled(request, lambda _: None)
        # Of another's machine, having nothing to measure is an answer.
        prepared = session.prepare(request, choose(request.where), empty=machine is not None)
    return msgspec.structs.replace(prepared, builds=tuple(missing))


def compare(a: Run | Path | str, *others: Run | Path | str, at_least: float = 0.01) -> list[Change]:
    """Changes from run `a` to each other run of all values both have; those below the share `at_least` are
    never significant. UsageError where a run has no point in common with `a`.
    """
    first, *rest = (item if isinstance(item, Run) else open(item) for item in (a, *others))
    ids = {point.id for point in first.points()}
    for run in rest:
        if not ids & {point.id for point in run.points()}:
            raise UsageError(
                f"has no point in common with {first.path}",
                field="run",
                value=str(run.path),
                hint="compare runs of one plan, of the same kernels, cores and sizes",
            )
    return changes(first.measured(), *(run.measured() for run in rest), at_least=at_least)
