"""Points that several experiments share: the control, placements of ranks, notes on what a machine lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.plan import placement
from elbowroom.plan.axes import with_control
from elbowroom.plan.file import Plan
from elbowroom.plan.placement import Seats, near_node, nic_node
from elbowroom.points.point import Expansion, Note, Placement, Point


def machine_notes(machine: Machine) -> tuple[Note, ...]:
    """What the paper had and this machine lacks: a NIC, a second host, NUMA."""
    notes = []
    if machine.hosts < 2:
        reason = "one host: both ranks run on it, and messages are copies by its cores"
        notes.append(Note(what="exchange over the network", reason=reason))
    if nic_node(machine) is None:
        known = "the NUMA node of the NIC is unknown" if machine.nics else "no NIC was detected"
        near = f"; node {near_node(machine)} is taken as near" if len(machine.nodes) > 1 else ""
        notes.append(Note(what="near and far from the NIC", reason=f"{known}{near}"))
    return tuple(notes)


def with_notes(expansion: Expansion, notes: Sequence[Note]) -> Expansion:
    """The expansion with more notes, each once."""
    known = {note.what for note in notes}
    kept = tuple(note for note in expansion.notes if note.what not in known)
    return msgspec.structs.replace(expansion, notes=(*notes, *kept))


def elsewhere(cores: Sequence[int], machine: Machine) -> int:
    """How many of the cores are on another socket than the first."""
    packages = {core.number: core.package for core in machine.cores}
    return sum(packages.get(core) != packages.get(cores[0]) for core in cores)


Nodes = tuple[int, int]
"""NUMA nodes of the data of computations, and of messages."""


def no_core_left(machine: Machine) -> UsageError:
    """The error of a plan that leaves no core to compute."""
    cores = list(machine.allowed)
    hint = "allow at least two cores"
    return UsageError("no core is left to compute", field="cpuset", value=cores, hint=hint)


def seats_of(plan: Plan, machine: Machine, core: int) -> Seats:
    """Seats beside a communication thread on `core`; UsageError where none is left to compute."""
    seats = placement.seats(
        machine,
        core,
        comp_cores=plan.comp_cores,
        peer_core=plan.peer_core,
        socket_only=plan.pool == "socket",
    )
    if seats is None:
        raise no_core_left(machine)
    return seats


def point_of(plan: Plan, node: Nodes, **others: Any) -> Point:
    """A point of a program, which no kernel runs beside, with data on these nodes; `others` are the fields
    that the plan does not say, and those in place of the plan's.
    """
    fields: dict[str, Any] = {
        "kernel": "none",
        "size": 0,
        "sequence": plan.sequence,
        "observe": plan.observe,
        "window": plan.window,
    }
    return Point(plan=plan.name, comp_node=node[0], comm_node=node[1], **(fields | others))


def control_of(plan: Plan, seats: Seats, node: Nodes, size: int | None = None) -> tuple[Point, ...]:
    """A register-only kernel on all computing cores beside the largest message, or one of `size`."""
    messages = point_of(
        plan,
        node,
        kernel="triad",
        n=len(seats.comp_cores),
        size=max(plan.sizes) if size is None else size,
        comm_core=seats.comm_cores[0],
        metric="bandwidth",
        comp_cores=seats.comp_cores,
        comm_cores=seats.comm_cores,
        peer_cores=seats.peer_cores,
        sequence=("A", "B", "AB", "AB", "B", "A"),
        observe=(),
    )
    return with_control((messages,))[1:]


RankCores = tuple[tuple[int, ...], tuple[int, ...]]
"""Computing cores and communication cores of a rank."""


def placed(ranks: Sequence[RankCores], node: Nodes) -> tuple[Placement, ...]:
    """A placement for each rank, all with data on these nodes."""
    return tuple(
        Placement(rank=rank, comp_cores=comp, comm_cores=comm, comp_node=node[0], comm_node=node[1])
        for rank, (comp, comm) in enumerate(ranks)
    )
