"""Loss ratios that a model predicts, in place of measured ones."""

from __future__ import annotations

from pathlib import Path

import msgspec

from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.machine.identity import SHAPE, check_same, difference
from elbowroom.machine.topology import Machine
from elbowroom.models import published
from elbowroom.models.document import Document
from elbowroom.models.predict import predict
from elbowroom.models.prediction import Prediction
from elbowroom.models.published_document import of_published
from elbowroom.models.run_data import layout_of, situation
from elbowroom.plan.file import Plan
from elbowroom.plan.point import Expansion, Point
from elbowroom.stats.interval import Interval
from elbowroom.store.models import read_model
from elbowroom.virtual.volumes import scaled
from elbowroom.workloads import Losses


def completed(expansion: Expansion, plan: Plan, machine: Machine) -> Expansion:
    """The points of a plan, with the losses that its model predicts; UsageError for nodes of a simulated
    cluster that no mesh was partitioned for, and as `with_losses`.
    """
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
