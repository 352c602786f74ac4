"""A run from a plan to a report: prepare, measure, seal, judge."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec

from elbowroom.errors import ElbowroomError
from elbowroom.experiments.plans import decode
from elbowroom.launch.session import Conversation
from elbowroom.measure.agenda import BudgetClock
from elbowroom.measure.budgets import Schedule, allowance
from elbowroom.measure.loop import Loop, UnitGroup, remaining
from elbowroom.measure.manifest import (
    Tell,
    locked,
    manifest_of,
    note_resumed,
    now,
    part_of,
    restore_frequencies,
    same_machine,
    state_of,
)
from elbowroom.measure.prepare import estimated_seconds, load_plan, prepare, resolve_mpi, schedule, with_mesh
from elbowroom.measure.prepared import Prepared, Request
from elbowroom.measure.progress import Progress, TimedProgress
from elbowroom.measure.results import Results, evaluate
from elbowroom.measure.source import RecordedSource, Source, Where, choose
from elbowroom.plan.validation import validate
from elbowroom.points.point import Expansion
from elbowroom.signals import ends_as_interrupt
from elbowroom.store.folder import RunFolder, refuse_existing
from elbowroom.store.journal import Journal
from elbowroom.store.sealed import seal

MANY_POINTS = 100
"""The results of more points take seconds."""


class Stopped(ElbowroomError):
    """The person stopped the run; what was measured is kept."""


def start_program(source: Source, group: UnitGroup) -> Conversation:
    """The probe or application that answers a group, started."""
    if group.started is not None:
        return source.start(group.started)
    return source.open(group.probe)


def start(
    request: Request, tell: Tell, source: Source | None = None, prepared: Prepared | None = None
) -> tuple[RunFolder, Results]:
    """Measures a plan, or what was prepared of one, into a new run folder. Nothing is written when the
    request cannot be met.
    """
    clock = BudgetClock(request.start)
    out = Path(request.out) if request.out else default_out(request.plan)
    refuse_existing(out)
    plan = load_plan(request) if prepared is None else prepared.plan
    if source is None:
        request = resolve_mpi(request, plan, tell)
        source = choose(request.where)
    if request.trace:
        refuse_existing(traces_of(out))
        source.record(traces_of(out))
    restore_frequencies(source, tell)
    prepared = prepared or prepare(request, plan, source)
    state = {"before": state_of(source, tell)}
    probe = start_program(source, prepared.groups[0])
    try:
        manifest = manifest_of(request, prepared, source, state, probe.hello)
        journal = RunFolder.create(out, manifest, source.topology()).journal()
    except BaseException:
        probe.close()
        raise
    folder = RunFolder(out, manifest)
    clock.limit(prepared.budget)
    with contextlib.closing(journal):
        return folder, _measure(folder, journal, prepared, source, probe, request.patience, tell, clock)


def resume(
    path: Path,
    tell: Tell,
    *,
    where: Where | None = None,
    patience: float | None = None,
    retry_failed: bool = False,
    source: Source | None = None,
    budget: float | None = None,
) -> tuple[RunFolder, Results]:
    """Measures what a run folder still lacks, with the launcher, MPI and hosts it was begun with.

    `budget`: seconds from now; without it, what is left of the run's own.
    """
    clock = BudgetClock()
    with locked(path) as (folder, journal):
        manifest = folder.manifest
        if where is None or where == Where():
            where = Where.stored(manifest.where, folder.manifest_path)
        source = source or choose(where)
        restore_frequencies(source, tell)
        same_machine(path, source, manifest)
        expansion = Expansion(points=manifest.points, notes=manifest.notes)
        plan = decode(manifest.plan)
        if source.live:
            expansion = with_mesh(expansion, plan, manifest.machine)
        validate(expansion.points, manifest.machine, hosts=plan.hosts, scheduling=plan.scheduling)
        prepared = schedule(plan, manifest.machine, expansion, source, manifest.reverse)
        if retry_failed:
            journal.drop_failed()
        limit, sentence = allowance(folder, prepared, budget)
        if limit is not None:
            clock.limit(limit)
            prepared = msgspec.structs.replace(
                prepared, budget=limit, groups=prepared.groups if limit else ()
            )
            tell(sentence)
        probe = None
        for group in prepared.groups:
            if remaining(group.units, journal.done):
                probe = start_program(source, group)
                break
        if probe is not None:
            try:
                note_resumed(folder, probe.hello)
            except BaseException:
                probe.close()
                raise
        return folder, _measure(folder, journal, prepared, source, probe, patience, tell, clock)


def _measure(
    folder: RunFolder,
    journal: Journal,
    prepared: Prepared,
    source: Source,
    probe: Conversation | None,
    patience: float | None,
    tell: Tell,
    clock: BudgetClock,
) -> Results:
    """Goes through the groups, then seals, judges and reports. `probe` is up for the first group with
    work.
    """
    work = Loop(
        journal,
        {point.id: point for point in prepared.expansion.points},
        prepared.plan.steady,
        open_probe=source.open,
        start=source.start,
        limit=patience,
    )
    schedule = Schedule(folder, prepared, clock) if prepared.budget else None
    with stopped_by_signals(folder.path):
        try:
            with part_of(folder, source, work), _progress(prepared, journal, clock, tell) as bar:
                for number, group in enumerate(prepared.groups):
                    if remaining(group.units, journal.done):
                        first, probe = probe, None
                        course = schedule.course(number) if schedule else None
                        work.run(group, first, lambda unit: bar.step(unit.point), course)
            if len(prepared.expansion.points) > MANY_POINTS:
                tell("computing the results")
            if schedule:
                schedule.close()
            elif isinstance(source, RecordedSource) and source.budget:
                folder.update(budget=source.budget)
        finally:
            if probe is not None:
                probe.close()
        return finish(folder)


@contextlib.contextmanager
def stopped_by_signals(path: Path, again: str = "elbowroom run --resume") -> Iterator[None]:
    """Ctrl-C or SIGTERM ends the block with a sentence that names the run and how to go on."""
    try:
        with ends_as_interrupt():
            yield
    except KeyboardInterrupt as interrupt:
        raise Stopped(
            "stopped; what was measured is kept",
            field="run",
            value=str(path),
            hint=f"continue with: {again} {shlex.quote(str(path))}",
        ) from interrupt


def _progress(prepared: Prepared, journal: Journal, clock: BudgetClock, tell: Tell) -> Progress:
    """By time where that is limited, else by units."""
    if prepared.budget:
        return TimedProgress(clock.spent, prepared.budget, len(prepared.expansion.points), tell)
    left = remaining((unit for group in prepared.groups for unit in group.units), journal.done)
    return Progress(
        len(left),
        estimated_seconds(prepared.expansion.points, left, prepared.machine, prepared.plan.starts),
        tell,
        "answering" if prepared.machine.virtual else "measuring",
    )


def finish(folder: RunFolder) -> Results:
    """Seals the samples to Parquet and computes the results; the journal is kept."""
    seal(folder.parquet_path, folder.entries(), folder.manifest.points, own=True)
    folder.update(finished=now())
    return evaluate(folder)


def traces_of(run: Path) -> Path:
    """Where what was recorded during a run lies: a folder for each start of the probe, from 1."""
    return Path(f"{run}.trace")


def default_out(plan: str) -> Path:
    """runs/PLAN-DATE-TIME below the current folder, with -2, -3, ... behind it where an earlier run began in
    the same second.
    """
    stem = re.sub(r"[^\w.-]+", "-", Path(plan).stem) or "run"
    first = Path("runs") / f"{stem}-{datetime.datetime.now():%Y%m%d-%H%M%S}"
    numbered = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
    return next(path for path in itertools.chain([first], numbered) if not os.path.lexists(path))
