"""What an application's plan needs from outside: a model file's loss ratios in place of measured ones."""

from __future__ import annotations

from pathlib import Path

import msgspec

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.model import published
from elbowroom.model.document import Document
from elbowroom.model.prediction import Interval, Prediction
from elbowroom.plan.point import Expansion, Losses, Point
from elbowroom.plan.reading import Plan
from elbowroom.predict.answering import predict
from elbowroom.predict.collecting import layout, situation
from elbowroom.store.models import read_model
from elbowroom.virtual.volumes import scaled


def completed(expansion: Expansion, plan: Plan, machine: Machine) -> Expansion:
    """The points of a plan, an application's with what its model predicts; UsageError for nodes of a
    simulated cluster that no mesh was partitioned for, and as `with_losses`.
    """
    if machine.virtual:
        for point in expansion.points:
            if point.application is not None:
                scaled(point.application.cells, point.application.nodes)
    return with_losses(expansion, plan, machine)


def check_overlap(expansion: Expansion, wanted: Expansion) -> None:
    """Refuses an application none of whose overlapped variants is answered: the table would be empty."""
    lost = [point for point in wanted.points if _overlaps(point)]
    if lost and not any(_overlaps(point) for point in expansion.points):
        threads = min(len(point.comm_cores) for point in lost)
        reasons = [note.reason for note in expansion.notes if note not in wanted.notes]
        said = reasons[0] if reasons else "cannot be answered here"
        raise UsageError(said, field="comm_threads", value=threads, mend="one communication thread works")


def _overlaps(point: Point) -> bool:
    return point.application is not None and point.application.variant == "overlap"


def with_losses(expansion: Expansion, plan: Plan, machine: Machine) -> Expansion:
    """The points with what the plan's model predicts for their cores and nodes; unchanged without a model.

    UsageError for a model of another machine, cores or nodes that it does not know, and a file that is none.
    """
    if not plan.model:
        return expansion
    # Imported here: fitting is heavy, and only published machines need it.
    from elbowroom.predict.fitting import of_published

    path = Path(plan.model)
    known = plan.model in published.names() and not path.is_file()
    document = of_published(plan.model) if known else read_model(path)
    _same_machine(document, machine, plan.model)
    points = tuple(
        point
        if point.application is None
        else msgspec.structs.replace(
            point,
            application=msgspec.structs.replace(
                point.application, losses=losses(document, point, machine, plan.model)
            ),
        )
        for point in expansion.points
    )
    return Expansion(points=points, notes=expansion.notes)


def losses(document: Document, point: Point, machine: Machine, source: str) -> Losses:
    """Bandwidths alone over together, messages of the model's own size; ends from those of the intervals."""
    said = predict(document, (situation(point, point.comp_cores, layout(machine)),))[0]
    comp, comm = _ratio(said, "comp"), _ratio(said, "comm")
    return Losses(
        comp=comp[0],
        comp_low=comp[1],
        comp_high=comp[2],
        comm=comm[0],
        comm_low=comm[1],
        comm_high=comm[2],
        source=source,
        flags=said.flags,
    )


def _ratio(said: Prediction, side: str) -> tuple[float, float, float]:
    """Alone over together, each with its own interval: ends from the alone value over the ends together."""
    alone: Interval = getattr(said, f"{side}_alone")
    together: Interval = getattr(said, f"{side}_together")
    if together.low <= 0:
        raise UsageError(
            "predicts that one side may stand still beside the other, which has no loss ratio",
            field="model",
            value=together.low,
            mend="leave the model out, and the run measures the ratios",
        )
    return alone.value / together.value, alone.value / together.high, alone.value / together.low


def _same_machine(document: Document, machine: Machine, source: str) -> None:
    here = layout(machine).shape
    for field in ("name", "cores_first_socket", "numa_per_socket", "sockets"):
        mine, its = getattr(here, field), getattr(document.machine, field)
        if mine != its:
            raise UsageError(
                f"{source} is of another machine: {field} is {its!r} there and {mine!r} here",
                field="model",
                value=document.machine.name,
                mend="fit a run of this machine, or leave the model out",
            )
