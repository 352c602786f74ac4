"""Points that several experiments share: the control, placements of ranks, notes on what a machine lacks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom.machine.topology import Machine
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


def control_of(plan: Plan, seats: Seats, node: tuple[int, int]) -> tuple[Point, ...]:
    """A register-only kernel on all computing cores beside the largest message."""
    return with_control((_messages(plan, seats, node),))[1:]


def _messages(plan: Plan, seats: Seats, node: tuple[int, int]) -> Point:
    return Point(
        plan=plan.name,
        kernel="triad",
        n=len(seats.comp_cores),
        size=max(plan.sizes),
        comp_node=node[0],
        comm_node=node[1],
        comm_core=seats.comm_cores[0],
        metric="bandwidth",
        comp_cores=seats.comp_cores,
        comm_cores=seats.comm_cores,
        peer_cores=seats.peer_cores,
        sequence=("A", "B", "AB", "AB", "B", "A"),
        window=plan.window,
    )


RankCores = tuple[tuple[int, ...], tuple[int, ...]]
"""Computing cores and communication cores of a rank."""


def places(point: Point, seats: Sequence[RankCores]) -> tuple[Placement, ...]:
    """A placement for each rank, with the point's nodes."""
    return tuple(
        Placement(
            rank=rank,
            comp_cores=computing,
            comm_cores=communicating,
            comp_node=point.comp_node,
            comm_node=point.comm_node,
        )
        for rank, (computing, communicating) in enumerate(seats)
    )
