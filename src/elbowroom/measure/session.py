"""A run from a plan to a report: prepare, measure, seal, judge. Losses that a model predicts take the place
of measured ones where the plan names a model.
"""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from elbowroom import experiments
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.experiments.plans import apply, decode, load
from elbowroom.launch.session import Conversation
from elbowroom.machine.identity import SHAPE, check_same, difference
from elbowroom.machine.topology import Machine
from elbowroom.measure.agenda import BudgetClock
from elbowroom.measure.budgets import Schedule, allowance, check_budget
from elbowroom.measure.loop import Loop, UnitGroup, groups, remaining
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
from elbowroom.measure.meshes import with_mesh
from elbowroom.measure.prepared import Prepared, Request
from elbowroom.measure.progress import Progress, TimedProgress
from elbowroom.measure.results import Results, evaluate
from elbowroom.measure.source import RecordedSource, Source, Where, choose, with_starpu
from elbowroom.models import published
from elbowroom.models.document import Document
from elbowroom.models.load import Prediction
from elbowroom.models.predict import predict
from elbowroom.models.published import of_published
from elbowroom.models.run_data import layout_of, situation
from elbowroom.plan.file import Plan
from elbowroom.plan.order import blocks, estimate, measured, order_units
from elbowroom.plan.validation import check_count, ranks_needed, validate
from elbowroom.points.point import Expansion, Note, Point
from elbowroom.points.steps import Losses
from elbowroom.points.unit import Unit
from elbowroom.signals import ends_as_interrupt
from elbowroom.stats.interval import Interval
from elbowroom.store.folder import RunFolder, refuse_existing
from elbowroom.store.journal import Journal
from elbowroom.store.models import read_model
from elbowroom.store.sealed import seal
from elbowroom.virtual.partitions import scaled

MANY_POINTS = 100
"""The results of more points take seconds."""
SIMULATED_UNIT = 0.003
"""Seconds that one repetition on a virtual machine takes, the journal's writing to the disk included."""


class Stopped(ElbowroomError):
    """The person stopped the run; what was measured is kept."""


def settled(request: Request, tell: Tell) -> Request:
    """The request with the MPI that its plan needs, which the manifest keeps for a run that is resumed."""
    plan = apply(load(request.plan), request.overrides)
    return msgspec.structs.replace(request, where=with_starpu(request.where, plan, tell))


def prepare(request: Request, source: Source, *, empty: bool = False) -> Prepared:
    """Loads, changes, expands, validates and orders a plan; measures nothing. `empty`: a plan without any
    point is none to refuse, and its notes say why.
    """
    plan = apply(load(request.plan), request.overrides)
    if request.seed is not None:
        plan = msgspec.structs.replace(plan, seed=request.seed)
    if not plan.question:
        plan = msgspec.structs.replace(plan, question=experiments.get(plan.experiment).question)
    machine = source.machine()
    wanted = completed(experiments.expand(plan, machine), plan, machine)
    if empty and not wanted.points:
        return Prepared(
            plan=plan,
            machine=machine,
            expansion=wanted,
            units=(),
            groups=(),
            seconds=0.0,
            measured_seconds=0.0,
            commands=(),
        )
    expansion = answerable(wanted, plan, source)
    check_overlap(expansion, wanted)
    prepared = concrete(plan, machine, expansion, source, request.reverse)
    if prepared.budget:
        check_budget(prepared)
    return prepared


def answerable(expansion: Expansion, plan: Plan, source: Source) -> Expansion:
    """The points that the source answers; a note for those it does not, by reason. UsageError for points that
    its machine cannot measure as asked, and where none is left.
    """
    validate(expansion.points, source.machine(), hosts=plan.hosts, scheduling=plan.scheduling)
    refused: dict[str, list[Point]] = {}
    for point in expansion.points:
        refused.setdefault(source.refuse(point), []).append(point)
    answered = tuple(refused.pop("", ()))
    notes = [
        Note(what=points[0].id if len(points) == 1 else f"{len(points)} points", reason=reason)
        for reason, points in refused.items()
    ]
    if notes and all(point.role == "control" for point in answered):
        # Reasons say what fixes them, where anything does.
        reason = notes[0].reason
        hint = "" if ";" in reason else "choose other axes"
        raise UsageError(
            f"nothing of it can be answered here: {reason}", field="plan", value=plan.name, hint=hint
        )
    return Expansion(points=answered, notes=(*expansion.notes, *notes))


def concrete(plan: Plan, machine: Machine, expansion: Expansion, source: Source, reverse: bool) -> Prepared:
    """A plan's points on a machine: validated, ordered, grouped by the probe that answers them."""
    points = expansion.points
    validate(points, machine, hosts=plan.hosts, scheduling=plan.scheduling)
    check_count(points, plan.repetitions)
    units = order_units(points, plan.repetitions, plan.seed, reverse)
    if plan.budget and isinstance(source, RecordedSource):
        units = source.recorded(units)
    by_id = {point.id: point for point in points}
    sorted_units = tuple(
        group
        for block in blocks(units, plan.repetitions, plan.starts)
        for group in groups(block, by_id, lambda point: ranks_needed(point, machine))
    )
    commands = (
        source.command(group.probe) if group.started is None else source.application_command(group.started)
        for group in sorted_units
    )
    return Prepared(
        plan=plan,
        machine=machine,
        expansion=expansion,
        units=units,
        groups=sorted_units,
        seconds=_seconds(points, units, machine, plan.starts),
        measured_seconds=0.0 if machine.virtual else measured(points, units),
        commands=tuple(dict.fromkeys(line for line in commands if line)),
        budget=plan.budget if source.live else 0.0,
    )


def _seconds(points: Sequence[Point], units: Sequence[Unit], machine: Machine, starts: int) -> float:
    """How long the units will take, about."""
    return SIMULATED_UNIT * len(units) if machine.virtual else estimate(points, units, starts)


def opened(source: Source, group: UnitGroup) -> Conversation:
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
    clock = BudgetClock(request.begun)
    out = Path(request.out) if request.out else default_out(request.plan)
    refuse_existing(out)
    if source is None:
        request = settled(request, tell)
        source = choose(request.where)
    if request.trace:
        refuse_existing(traces_of(out))
        source.record(traces_of(out))
    restore_frequencies(source, tell)
    prepared = prepared or prepare(request, source)
    state = {"before": state_of(source, tell)}
    probe = opened(source, prepared.groups[0])
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
        prepared = concrete(plan, manifest.machine, expansion, source, manifest.reverse)
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
                probe = opened(source, group)
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
        _seconds(prepared.expansion.points, left, prepared.machine, prepared.plan.starts),
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


def completed(expansion: Expansion, plan: Plan, machine: Machine) -> Expansion:
    """The points of a plan, with the losses that its model predicts; UsageError for nodes of a simulated
    cluster that no mesh was partitioned for, and as `with_losses`.
    """
    expansion = with_mesh(expansion, plan, machine)
    if machine.virtual:
        for point in expansion.points:
            point.workload.partition(scaled)
    return with_losses(expansion, plan, machine)


def check_overlap(expansion: Expansion, wanted: Expansion) -> None:
    """Refuses steps none of whose overlapped variants is answered: the table would be empty."""
    lost = [point for point in wanted.points if point.workload.overlaps]
    if lost and not any(point.workload.overlaps for point in expansion.points):
        threads = min(len(point.comm_cores) for point in lost)
        reasons = [note.reason for note in expansion.notes if note not in wanted.notes]
        reason = reasons[0] if reasons else "cannot be answered here"
        raise UsageError(reason, field="comm_threads", value=threads, hint="one communication thread works")


def with_losses(expansion: Expansion, plan: Plan, machine: Machine) -> Expansion:
    """The points with what the plan's model predicts for their cores and nodes; unchanged without a model.

    UsageError for a model of another machine, cores or nodes that it does not know, and a file that is none.
    """
    model = experiments.get(plan.experiment).model(plan)
    if not model:
        return expansion
    path = Path(model)
    known = model in published.names() and not path.is_file()
    document = of_published(model) if known else read_model(path)
    _same_machine(document, machine, model)

    def predicted(point: Point) -> Point:
        workload = point.workload.with_losses(lambda: losses(document, point, machine, model))
        return msgspec.structs.replace(point, workload=workload)

    return Expansion(points=tuple(map(predicted, expansion.points)), notes=expansion.notes)


def losses(document: Document, point: Point, machine: Machine, source: str) -> Losses:
    """Bandwidths alone over together, messages of the model's own size; ends from those of the intervals."""
    prediction = predict(document, (situation(point, point.comp_cores, layout_of(machine)),))[0]
    comp, comm = _ratio(prediction, "comp"), _ratio(prediction, "comm")
    return Losses(
        comp=comp[0],
        comp_low=comp[1],
        comp_high=comp[2],
        comm=comm[0],
        comm_low=comm[1],
        comm_high=comm[2],
        source=source,
        flags=prediction.flags,
        comm_rate=prediction.comm_together.value,
    )


def _ratio(prediction: Prediction, side: str) -> tuple[float, float, float]:
    """Alone over together, each with its own interval: ends from the alone value over the ends together."""
    alone: Interval = getattr(prediction, f"{side}_alone")
    together: Interval = getattr(prediction, f"{side}_together")
    if together.low <= 0:
        raise UsageError(
            "predicts that one side may stand still beside the other, which has no loss ratio",
            field="model",
            value=together.low,
            hint="leave the model out, and the run measures the ratios",
        )
    return alone.value / together.value, alone.value / together.high, alone.value / together.low


def _same_machine(document: Document, machine: Machine, source: str) -> None:
    check_same(
        difference(document.machine, layout_of(machine).shape, SHAPE),
        message=f"{source} is from another machine",
        field="model",
        value=document.machine.name,
        hint="fit a run of this machine, or leave the model out",
        places=("there", "here"),
    )
