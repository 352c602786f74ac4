"""A campaign from a plan to a report: prepare, measure, seal, judge."""

from __future__ import annotations

import datetime
import re
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from elbowroom import experiments
from elbowroom.campaign import neighbours
from elbowroom.campaign.application import check_overlap, completed
from elbowroom.campaign.measuring import Group, Measuring, as_they_are, groups, remaining
from elbowroom.campaign.parts import (
    Tell,
    close_part,
    forget_failed,
    manifest_of,
    mend_frequencies,
    now,
    same_library,
    same_machine,
    same_simulation,
    state_of,
    terminated_as_interrupt,
)
from elbowroom.campaign.progress import Progress
from elbowroom.campaign.results import Results, evaluate
from elbowroom.campaign.sources import Source, Where, choose, with_starpu
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.launch.session import Conversation
from elbowroom.machine.frequencies import Frequencies
from elbowroom.machine.topology import Machine
from elbowroom.plan.ordering import estimate, measured, order
from elbowroom.plan.point import Expansion, Note, Point, Unit
from elbowroom.plan.reading import Overrides, Plan, apply, decode, load
from elbowroom.plan.validating import ranks_needed, validate
from elbowroom.store.folder import RunFolder, refuse_existing
from elbowroom.store.sealed import seal

SIMULATED_UNIT = 0.003
"""Seconds that one repetition on a virtual machine takes, the journal's writing to the disk included."""


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A plan made concrete on a machine, before anything is measured."""

    plan: Plan
    machine: Machine
    expansion: Expansion
    units: tuple[Unit, ...]
    groups: tuple[Group, ...]
    seconds: float
    measured_seconds: float
    commands: tuple[str, ...]


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """What `run` is asked for. `patience`: seconds to wait for an answer, None for a generous guess per
    point. `trace`: the probe's threads are recorded beside the run folder (`traces_of`).
    """

    plan: str
    overrides: Overrides = Overrides()
    where: Where = Where()
    out: str | None = None
    seed: int | None = None
    reverse: bool = False
    patience: float | None = None
    command: tuple[str, ...] = ()
    trace: bool = False


class Stopped(ElbowroomError):
    """The person stopped the run; what was measured is kept."""


def settled(request: Request, tell: Tell) -> Request:
    """The request with the MPI that its plan needs, which the manifest keeps for a run that is resumed."""
    plan = apply(load(request.plan), request.overrides)
    return msgspec.structs.replace(request, where=with_starpu(request.where, plan, tell))


def prepare(request: Request, source: Source) -> Prepared:
    """Loads, changes, expands, validates and orders a plan; measures nothing."""
    plan = apply(load(request.plan), request.overrides)
    if request.seed is not None:
        plan = msgspec.structs.replace(plan, seed=request.seed)
    machine = source.machine()
    wanted = completed(experiments.get(plan.experiment).expand(plan, machine), plan, machine)
    expansion = answerable(wanted, plan, source)
    check_overlap(expansion, wanted)
    return concrete(plan, machine, expansion, source, request.reverse)


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
        # Reasons say what mends them, where anything does.
        reason = notes[0].reason
        mend = "" if ";" in reason else "choose other axes"
        raise UsageError(
            f"nothing of it can be answered here: {reason}", field="plan", value=plan.name, mend=mend
        )
    return Expansion(points=answered, notes=(*expansion.notes, *notes))


def concrete(plan: Plan, machine: Machine, expansion: Expansion, source: Source, reverse: bool) -> Prepared:
    """A plan's points on a machine: validated, ordered, grouped by the probe that answers them."""
    points = expansion.points
    validate(points, machine, hosts=plan.hosts, scheduling=plan.scheduling)
    units = order(points, plan.repetitions, plan.seed, reverse)
    by_id = {point.id: point for point in points}
    sorted_units = groups(units, by_id, lambda point: ranks_needed(point, machine))
    commands = (
        source.command(group.ranks, group.share_core, group.several_threads)
        if group.started is None
        else source.application_command(group.started)
        for group in sorted_units
    )
    return Prepared(
        plan=plan,
        machine=machine,
        expansion=expansion,
        units=units,
        groups=sorted_units,
        seconds=_seconds(points, units, machine),
        measured_seconds=0.0 if machine.virtual else measured(points, units),
        commands=tuple(dict.fromkeys(line for line in commands if line)),
    )


def _seconds(points: Sequence[Point], units: Sequence[Unit], machine: Machine) -> float:
    """How long the units will take, about."""
    return SIMULATED_UNIT * len(units) if machine.virtual else estimate(points, units)


def opened(source: Source, group: Group) -> Conversation:
    """The probe or application that answers a group, started."""
    if group.started is not None:
        return source.start(group.started)
    return source.open(group.ranks, group.share_core, group.several_threads)


def start(
    request: Request, tell: Tell, source: Source | None = None, prepared: Prepared | None = None
) -> tuple[RunFolder, Results]:
    """Measures a plan, or what was prepared of one, into a new run folder. Nothing is written when the
    request cannot be met.
    """
    out = Path(request.out) if request.out else default_out(request.plan)
    refuse_existing(out)
    if source is None:
        request = settled(request, tell)
        source = choose(request.where)
    if request.trace:
        refuse_existing(traces_of(out))
        source.record(traces_of(out))
    mend_frequencies(source, tell)
    prepared = prepared or prepare(request, source)
    state = {"before": state_of(source, tell)}
    probe = opened(source, prepared.groups[0])
    try:
        manifest = manifest_of(request, prepared, source, state, probe.hello)
        folder = RunFolder.create(out, manifest, source.topology())
    except BaseException:
        probe.close()
        raise
    return folder, _measure(folder, prepared, source, probe, request.patience, tell)


def resume(
    path: Path,
    tell: Tell,
    *,
    where: Where | None = None,
    patience: float | None = None,
    retry_failed: bool = False,
    source: Source | None = None,
) -> tuple[RunFolder, Results]:
    """Measures what a run folder still lacks, with the launcher, MPI and hosts it was begun with."""
    folder = RunFolder.open(path)
    manifest = folder.manifest
    if where is None or where == Where():
        where = msgspec.convert(manifest.where, Where)
    source = source or choose(where)
    plan = decode(manifest.plan)
    machine = manifest.machine
    mend_frequencies(source, tell)
    same_machine(path, source, manifest)
    expansion = Expansion(points=manifest.points, notes=manifest.notes)
    prepared = concrete(plan, machine, expansion, source, manifest.reverse)
    if retry_failed:
        forget_failed(folder)
    done = {entry.unit for entry in folder.entries()}
    probe = None
    for group in prepared.groups:
        if remaining(group.units, done):
            probe = opened(source, group)
            break
    if probe is not None:
        try:
            same_library(manifest, probe.hello)
            same_simulation(manifest, probe.hello)
            folder.update(resumed=(*manifest.resumed, now()))
        except BaseException:
            probe.close()
            raise
    return folder, _measure(folder, prepared, source, probe, patience, tell)


def _measure(
    folder: RunFolder,
    prepared: Prepared,
    source: Source,
    probe: Conversation | None,
    patience: float | None,
    tell: Tell,
) -> Results:
    """Goes through the groups, then seals, judges and reports. `probe` is up for the first group with
    work.
    """
    manifest = folder.manifest
    begun = time.monotonic()
    clocks = neighbours.look()
    journal = None
    work = None
    try:
        journal = folder.journal()
        left = remaining(prepared.units, journal.done)
        work = Measuring(
            journal,
            {point.id: point for point in prepared.expansion.points},
            prepared.plan.steady,
            open_probe=source.open,
            start=source.start,
            limit=patience,
            constant=Frequencies().constant if source.live else as_they_are,
        )
        with (
            terminated_as_interrupt(),
            Progress(
                len(left),
                _seconds(prepared.expansion.points, left, prepared.machine),
                tell,
                "answering" if prepared.machine.virtual else "measuring",
            ) as bar,
        ):
            for group in prepared.groups:
                if remaining(group.units, journal.done):
                    first, probe = probe, None
                    work.run(group, first, lambda unit: bar.step(unit.point))
    except KeyboardInterrupt as interrupt:
        raise Stopped(
            "stopped; what was measured is kept",
            field="run",
            value=str(folder.path),
            mend=f"go on with: elbowroom run --resume {folder.path}",
        ) from interrupt
    finally:
        if probe is not None:
            probe.close()
        if journal is not None:
            journal.close()
        if work is not None and work.asked:
            close_part(folder, source, manifest, clocks, begun, work)
    return finish(folder)


def finish(folder: RunFolder) -> Results:
    """Seals the samples to Parquet and computes the results; the journal is kept."""
    seal(folder.parquet_path, folder.entries(), folder.manifest.points)
    folder.update(finished=now())
    return evaluate(folder)


def traces_of(run: Path) -> Path:
    """Where what was recorded during a run lies: a folder for each start of the probe, from 1."""
    return Path(f"{run}.trace")


def default_out(plan: str) -> Path:
    """runs/PLAN-DATE-TIME below the current folder."""
    stem = re.sub(r"[^\w.-]+", "-", Path(plan).stem) or "run"
    return Path("runs") / f"{stem}-{datetime.datetime.now():%Y%m%d-%H%M%S}"
