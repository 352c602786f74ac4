"""Notes on what a machine lacks."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from elbowroom.machine.topology import Machine
from elbowroom.plan.placement import near_node, nic_node
from elbowroom.points.point import Expansion, Note


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
