"""A computing kernel of the probe beside its messages: what most points run."""

from __future__ import annotations

from collections.abc import Hashable
from typing import ClassVar

import msgspec

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.points.point import Facts, Phase, Point, register
from elbowroom.points.probe import ProbeWorkload, message_id, role_id
from elbowroom.quantities import format_size

CLOSING: tuple[Phase, ...] = ("A", "B", "B", "A")
"""Phases of a baseline that is measured again at the end."""


@register
class KernelBesideMessages(ProbeWorkload, msgspec.Struct, frozen=True):
    """A kernel of the probe (none: messages only), alone and beside messages."""

    facts: ClassVar[Facts] = Facts(beside_messages=True)

    def id(self, point: Point) -> str:
        return "-".join(message_id(point) + role_id(point))

    def sequence(self, point: Point, closing: bool = False, repetition: int = 0) -> tuple[Phase, ...]:
        """The phases of one unit; without a kernel there is no A, and AB becomes B. Every second repetition
        goes through the phases backwards, so that what drifts meets them in both orders.
        """
        phases = CLOSING if closing else point.sequence
        if repetition % 2:
            phases = phases[::-1]
        if point.kernel != "none":
            return phases
        return tuple(phase for phase in phases if phase in ("B", "S")) or ("B",)

    def validate(self, point: Point, machine: Machine) -> None:
        """Refuses messages and working sets that do not fit in memory."""
        check_memory(point, machine)

    def baseline(self, point: Point) -> frozenset[Hashable]:
        """Every (kernel, cursor, n, node) and every (size, pattern, node, cores), at its frequencies."""
        frequency = tuple(sorted(point.settings.items()))
        comp = (point.kernel, point.cursor, point.n, point.comp_node, point.processes, frequency)
        comm = (point.size, point.pattern, point.comm_node, point.comm_cores, point.processes, frequency)
        return frozenset((("comp", comp), ("comm", comm)))


def check_memory(point: Point, machine: Machine) -> None:
    """UsageError where messages or working sets do not fit in the memory of their node."""
    if point.size < 1:
        raise UsageError("a size is at least 1 B", field="sizes", value=point.size, hint="write 4 or 64MiB")
    memory = _memory(machine, point.comm_node)
    ranks_here = 2 if machine.hosts < 2 else 1
    needed = 2 * point.size * ranks_here * max(1, len(point.comm_cores))
    if memory and needed > memory:
        hint = f"{ranks_here} rank(s) with two buffers each must fit in {format_size(memory)}"
        raise UsageError("larger than memory", field="sizes", value=format_size(point.size), hint=hint)
    memory = _memory(machine, point.comp_node)
    if memory and point.working_set * max(1, point.n) > memory:
        hint = (
            f"{point.n} cores' working sets must fit in {format_size(memory)}; leave it out to "
            "let it be chosen"
        )
        raise UsageError(
            "larger than memory", field="working_set", value=format_size(point.working_set), hint=hint
        )


def _memory(machine: Machine, number: int) -> int | None:
    """Bytes of a NUMA node, of the machine where those are unknown; 0 or None where both are."""
    return next((node.memory for node in machine.nodes if node.number == number), 0) or machine.memory
