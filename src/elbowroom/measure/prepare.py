"""What a run measures: its plan loaded, expanded, validated and ordered on a machine. Losses that a model
predicts take the place of measured ones where the plan names a model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import apply, load
from elbowroom.launch.native import cache_folder
from elbowroom.machine.identity import SHAPE, check_same, difference
from elbowroom.machine.topology import Machine
from elbowroom.measure.budgets import check_budget
from elbowroom.measure.manifest import Tell
from elbowroom.measure.prepared import Prepared, Request, UnitGroup
from elbowroom.measure.source import RecordedSource, Source, with_starpu
from elbowroom.models import published
from elbowroom.models.document import Document
from elbowroom.models.load import Prediction
from elbowroom.models.predict import predict
from elbowroom.models.published import of_published
from elbowroom.models.run_data import layout_of, situation
from elbowroom.plan.file import Plan
from elbowroom.plan.order import blocks, measured, order_units, unit_seconds
from elbowroom.plan.validation import check_count, validate
from elbowroom.points.point import Expansion, Note, Point, running
from elbowroom.points.probe import ProbeStart, several_threads, shares_core
from elbowroom.points.steps import ApplicationSteps, Losses
from elbowroom.points.unit import Unit
from elbowroom.stats.interval import Interval
from elbowroom.store.meshes import check_mesh, read_mesh, write_mesh
from elbowroom.store.models import read_model
from elbowroom.virtual.partitions import scaled

SIMULATED_UNIT = 0.003
"""Seconds that one repetition on a virtual machine takes, the journal's writing to the disk included."""


def load_plan(request: Request, tell: Tell) -> tuple[Plan, Request]:
    """The plan of a request, with the changes that it asks for; and the request with the MPI that the plan
    needs, which the manifest keeps for a run that is resumed.
    """
    plan = apply(load(request.plan), request.overrides)
    if request.seed is not None:
        plan = msgspec.structs.replace(plan, seed=request.seed)
    if not plan.question:
        plan = msgspec.structs.replace(plan, question=experiments.get(plan.experiment).question)
    return plan, msgspec.structs.replace(request, where=with_starpu(request.where, plan, tell))


def prepare(request: Request, plan: Plan, source: Source, *, empty: bool = False) -> Prepared:
    """Expands, validates and orders a plan; measures nothing. `empty`: a plan without any point is not
    refused, and its notes say why.
    """
    machine = source.machine()
    wanted = add_meshes_and_losses(experiments.expand(plan, machine), plan, machine)
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
    expansion = drop_unmeasurable(wanted, plan, source)
    check_overlap(expansion, wanted)
    prepared = schedule(plan, machine, expansion, source, request.reverse)
    if prepared.budget:
        check_budget(prepared)
    return prepared


def drop_unmeasurable(expansion: Expansion, plan: Plan, source: Source) -> Expansion:
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
            f"this machine cannot measure any point of the plan: {reason}",
            field="plan",
            value=plan.name,
            hint=hint,
        )
    return Expansion(points=answered, notes=(*expansion.notes, *notes))


def schedule(plan: Plan, machine: Machine, expansion: Expansion, source: Source, reverse: bool) -> Prepared:
    """A plan's valid points on a machine: ordered, grouped by the probe that answers them."""
    points = expansion.points
    check_count(points, plan.repetitions)
    units = order_units(points, plan.repetitions, plan.seed, reverse)
    if plan.budget and isinstance(source, RecordedSource):
        units = source.recorded(units)
    by_id = {point.id: point for point in points}
    sorted_units = tuple(
        group
        for block in blocks(units, plan.repetitions, plan.starts)
        for group in groups(block, by_id, machine)
    )
    commands = (source.command(group.probe) for group in sorted_units)
    return Prepared(
        plan=plan,
        machine=machine,
        expansion=expansion,
        units=units,
        groups=sorted_units,
        seconds=sum(estimated_seconds(points, units, machine, plan.starts)),
        measured_seconds=0.0 if machine.virtual else measured(points, units),
        commands=tuple(dict.fromkeys(line for line in commands if line)),
        budget=plan.budget if source.live else 0.0,
    )


def groups(units: Sequence[Unit], points: dict[str, Point], machine: Machine) -> tuple[UnitGroup, ...]:
    """Units by what answers them, each group in the order of the plan.

    Groups follow one another instead of alternating, since the ranks of a second, idle probe would poll
    beside the measurement. The probe's groups come first.
    """
    members: dict[tuple[Any, ...], list[Unit]] = {}
    for unit in units:
        point = points[unit.point]
        workload = point.workload
        order, key = workload.facts.order, workload.group(point, workload.rank_count(point, machine))
        members.setdefault((order != "planned", key if order == "last, sorted" else (), key), []).append(unit)
    ordered = sorted(members, key=lambda member: member[:2])
    return tuple(_group(members[member], points, machine) for member in ordered)


def _group(units: Sequence[Unit], points: dict[str, Point], machine: Machine) -> UnitGroup:
    most = max((points[unit.point] for unit in units), key=lambda point: len(point.comm_cores))
    return UnitGroup(
        probe=ProbeStart(
            ranks=most.workload.rank_count(most, machine),
            share_core=shares_core(most),
            several_threads=several_threads(most),
            library_progress=most.workload.needs.library_progress,
            program=most if most.workload.program else None,
        ),
        units=tuple(units),
    )


def estimated_seconds(
    points: Sequence[Point], units: Sequence[Unit], machine: Machine, starts: int
) -> list[float]:
    """How long each unit will take, about."""
    return [SIMULATED_UNIT] * len(units) if machine.virtual else unit_seconds(points, units, starts)


def add_meshes_and_losses(expansion: Expansion, plan: Plan, machine: Machine) -> Expansion:
    """The points of a plan, with the losses that its model predicts; UsageError for nodes of a simulated
    cluster that no mesh was partitioned for, and as `with_losses`.
    """
    expansion = with_mesh(expansion, plan, machine)
    if machine.virtual:
        for _, steps in running(expansion.points, ApplicationSteps):
            scaled(steps.cells, steps.processes)
    return with_losses(expansion, plan, machine)


def check_overlap(expansion: Expansion, wanted: Expansion) -> None:
    """Refuses steps none of whose overlapped variants is answered: the table would be empty."""

    def overlapped(of: Expansion) -> list[Point]:
        return [point for point, steps in running(of.points, ApplicationSteps) if steps.variant == "overlap"]

    lost = overlapped(wanted)
    if lost and not overlapped(expansion):
        threads = min(len(point.comm_cores) for point in lost)
        reasons = [note.reason for note in expansion.notes if note not in wanted.notes]
        reason = reasons[0] if reasons else "cannot be measured on this machine"
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
        workload: Any = point.workload
        if "losses" not in workload.__struct_fields__:
            return point
        own = losses(document, point, machine, model)
        return msgspec.structs.replace(point, workload=msgspec.structs.replace(workload, losses=own))

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
            "predicts that one side may not progress while the other runs, so there is no loss ratio",
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


def with_mesh(expansion: Expansion, plan: Plan, machine: Machine) -> Expansion:
    """The points on the mesh that the plan names; unchanged without one. UsageError for a mesh that cannot be
    used, and on a simulated cluster, whose partitions are of boxes.
    """
    name = str(getattr(plan.keys, "mesh", ""))
    if not name:
        return expansion
    if machine.virtual:
        raise UsageError(
            "a simulated cluster has partitions of boxes only",
            field="mesh",
            value=name,
            hint="measure on a real machine, or leave the mesh out",
        )
    path, cells = written(Path(name), cavities=bool(plan.keys.cavities))

    def on_mesh(point: Point) -> Point:
        if not isinstance(point.workload, ApplicationSteps):
            return point
        return msgspec.structs.replace(point, workload=point.workload.on_mesh(str(path), cells))

    return Expansion(points=tuple(map(on_mesh, expansion.points)), notes=expansion.notes)


def written(source: Path, *, cavities: bool = False) -> tuple[Path, int]:
    """The file that programs read, made once for each content, and its number of cells."""
    if not source.is_file():
        read_mesh(source)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    mesh = read_mesh(source)
    target = cache_folder("meshes") / f"{digest}.mesh"
    neighbours = check_mesh(mesh, source, cavities=cavities)
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        write_mesh(target, mesh, neighbours)
    return target, len(mesh.cells)
