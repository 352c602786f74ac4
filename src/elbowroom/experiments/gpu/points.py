"""The points of `gpu`: copies between host and device beside computing cores, beside messages, and both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from elbowroom.experiments.common.accelerators import (
    DeviceSeats,
    control,
    device_point,
    device_seats,
    no_messages,
)
from elbowroom.experiments.common.points import no_core_left, with_notes
from elbowroom.machine.topology import Machine
from elbowroom.plan.axes import core_counts, node_pairs
from elbowroom.plan.file import Plan, Size
from elbowroom.plan.kernels import NONE, find
from elbowroom.points.gpu import GpuCase
from elbowroom.points.point import Expansion, Note, Point

HostCopy = Literal["h2d", "d2h", "both"]


class GpuKeys(msgspec.Struct, frozen=True, kw_only=True):
    """`directions` and `copy_sizes` of copies; `beside_messages`: kernels that run with copies and messages
    at once, `none` for copies beside messages only; empty: no messages.
    """

    directions: Annotated[tuple[HostCopy, ...], Meta(min_length=1)] = ("h2d", "d2h", "both")
    copy_sizes: Annotated[tuple[Size, ...], Meta(min_length=1)] = (64 << 20,)
    beside_messages: tuple[str, ...] = ("none", "triad")


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Copies in each direction and size, from pinned buffers on each of `comm_nodes`, beside each kernel on n
    cores; beside messages; and all three. `sizes` are those of messages.
    """
    keys: GpuKeys = plan.keys
    for kernel in keys.beside_messages:
        find(kernel)
    seats = device_seats(plan, machine, bool(keys.beside_messages))
    if not seats.computing:
        raise no_core_left(machine)
    counts, notes = core_counts(plan.n, len(seats.computing))
    nodes, more = node_pairs(plan, machine)
    points = list(_beside_cores(plan, machine, seats, counts, nodes))
    if keys.beside_messages and seats.can_send:
        points += _beside_messages(plan, machine, seats, counts, nodes)
    elif keys.beside_messages:
        notes.append(no_messages(machine))
    if len(machine.nodes) < 2:
        notes.append(Note(what="pinned buffers by NUMA node", reason="this machine has one NUMA node"))
    largest = max(keys.copy_sizes)
    ends = control(plan, machine, seats, nodes[0][0], largest)
    return with_notes(Expansion(points=(*points, *ends), notes=()), [*notes, *more])


def _cursors(plan: Plan, kernel: str) -> Sequence[int]:
    fact = find(kernel)
    return plan.cursors if fact is not None and fact.uses_cursor else (1,)


def _copies(plan: Plan, seats: DeviceSeats, node: int, kernel: str) -> Iterator[GpuCase]:
    """The cores beside copies in each direction and size."""
    for direction, size in product(plan.keys.directions, plan.keys.copy_sizes):
        yield GpuCase(
            victim="cores",
            mover="copy",
            kernel=kernel,
            direction=direction,
            bytes=size,
            node=node,
            submit_core=seats.submit,
        )


def _beside_cores(
    plan: Plan, machine: Machine, seats: DeviceSeats, counts: Sequence[int], nodes: Sequence[tuple[int, int]]
) -> Iterator[Point]:
    for kernel, n, (comp_node, node) in product(plan.kernels, counts, nodes):
        if kernel == NONE:
            continue
        for cursor, case in product(_cursors(plan, kernel), _copies(plan, seats, node, kernel)):
            yield device_point(
                plan,
                machine,
                case,
                seats,
                kernel=kernel,
                cursor=cursor,
                n=n,
                comp_node=comp_node,
                size=case.bytes,
            )


def _beside_messages(
    plan: Plan, machine: Machine, seats: DeviceSeats, counts: Sequence[int], nodes: Sequence[tuple[int, int]]
) -> Iterator[Point]:
    """Copies of the largest size beside messages, and with a kernel on n cores as the third stream."""
    largest = max(plan.keys.copy_sizes)
    for kernel, size, (comp_node, node) in product(plan.keys.beside_messages, plan.sizes, nodes):
        cases = [case for case in _copies(plan, seats, node, kernel) if case.bytes == largest]
        if kernel == NONE:
            for case in cases:
                beside = msgspec.structs.replace(case, victim="copy", mover="messages", kernel="")
                yield device_point(plan, machine, beside, seats, comp_node=comp_node, size=size)
            continue
        for n, cursor, case in product(counts, _cursors(plan, kernel), cases):
            three = msgspec.structs.replace(case, messages=True)
            yield device_point(
                plan, machine, three, seats, kernel=kernel, cursor=cursor, n=n, comp_node=comp_node, size=size
            )
