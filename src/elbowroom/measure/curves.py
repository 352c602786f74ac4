"""Curves that were measured with something else, as a run folder: one sample a value, nothing made up."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from elbowroom.machine.layout import regular_machine, topology_xml
from elbowroom.machine.topology import Machine
from elbowroom.measure.campaign import finish
from elbowroom.measure.results import IMPORTED, Results
from elbowroom.models.curves import Curves, Row, Shape
from elbowroom.plan.file import Plan
from elbowroom.points.point import Note, Point
from elbowroom.points.unit import Entry
from elbowroom.store.folder import Manifest, RunFolder
from elbowroom.version import __version__

UNKNOWN_CORE = -1
"""Stands for the core of the communication thread, which curves do not tell."""


def import_curves(
    curves: Curves, out: Path, *, notes: Sequence[Note] = (), command: Sequence[str] = ()
) -> tuple[RunFolder, Results]:
    """Makes a run folder that show, report, fit, evaluate, export and compare accept.

    Raises UsageError when `out` exists, MachineError when the disk refuses; then nothing is written.
    """
    machine = machine_of(curves.shape)
    points = tuple(_point(row, curves) for row in curves.rows)
    manifest = Manifest(
        elbowroom=__version__,
        created=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        command=tuple(command),
        plan=_plan(curves).plain(),
        points=points,
        notes=tuple(notes),
        seed=1,
        launcher=IMPORTED,
        where={"file": curves.origin},
        machine=machine,
        unknown={"state of the machine": "not recorded for imported values"},
    )
    entries = [
        Entry(point=point.id, repetition=0, record=_record(point, row))
        for point, row in zip(points, curves.rows, strict=True)
    ]
    folder = RunFolder.create(out, manifest, topology_xml(machine), entries)
    return folder, finish(folder)


def machine_of(shape: Shape) -> Machine:
    """The machine as far as its curves tell it."""
    return regular_machine(
        name=shape.name,
        model="unknown processor",
        cores_per_socket=shape.cores_first_socket,
        numa_per_socket=shape.numa_per_socket,
        sockets=shape.sockets,
        nic_node=shape.nic_node,
        virtual=shape.virtual,
    )


def _plan(curves: Curves) -> Plan:
    situations = [row.situation for row in curves.rows]
    return Plan(
        name="imported",
        experiment="model",
        question="How do computation and communication share the memory bandwidth? (imported curves)",
        kernels=(curves.kernel,),
        n=tuple(sorted({at.n + at.n_other for at in situations})),
        sizes=(curves.size,),
        comp_nodes=tuple(sorted({at.comp_node for at in situations})),
        comm_nodes=tuple(sorted({at.comm_node for at in situations})),
        pattern="receive",
        repetitions=1,
        sequence=("A", "B", "AB"),
        control=False,
    )


def _point(row: Row, curves: Curves) -> Point:
    """The point of a row; computing cores fill the first socket from its first core, then the second."""
    at, each = row.situation, curves.shape.cores_first_socket
    return Point(
        plan="imported",
        kernel=curves.kernel,
        n=at.n + at.n_other,
        size=curves.size,
        comp_node=at.comp_node,
        comm_node=at.comm_node,
        comm_core=UNKNOWN_CORE,
        metric="bandwidth",
        comp_cores=(*range(at.n), *range(each, each + at.n_other)),
        pattern="receive",
        sequence=("A", "B", "AB"),
        n_other=at.n_other,
    )


def _record(point: Point, row: Row) -> dict[str, Any]:
    """The record a probe would have given; phases without a value are absent, times are not known."""
    phases: list[dict[str, Any]] = []
    for phase, comp, comm in (
        ("A", row.comp_alone, None),
        ("B", None, row.comm_alone),
        ("AB", row.comp_together, row.comm_together),
    ):
        content: dict[str, Any] = {
            "phase": phase,
            "index": len(phases),
            "status": "ok",
            "flags": [IMPORTED],
            "measured_s": 0.0,
        }
        if comp is not None:
            content["comp"] = {"rate": comp, "unit": "MB/s", "batches": [comp]}
        if comm is not None:
            content["comm"] = {"value": comm, "unit": "MB/s", "batches": [comm]}
        if comp is not None or comm is not None:
            phases.append(content)
    return {
        "record": "repetition",
        "point": point.id,
        "repetition": 0,
        "status": "ok",
        "reason": "",
        "flags": [IMPORTED],
        "phases": phases,
    }
