"""The points of a ring: one process per node, per socket, or per computing core."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Annotated

import msgspec
from msgspec import Meta

from elbowroom.experiments.common.points import machine_notes, with_notes
from elbowroom.machine.topology import Core, Machine
from elbowroom.plan import placement
from elbowroom.plan.axes import core_counts, metric_of, with_control
from elbowroom.plan.axes import expand as multiply
from elbowroom.plan.file import Plan
from elbowroom.plan.kernels import find
from elbowroom.points.point import Expansion, Note, Placement, Point, Processes

Seat = tuple[Sequence[Core], Sequence[Core]]
"""Computing and communication cores of a process."""


class RingKeys(msgspec.Struct, frozen=True, kw_only=True):
    """`processes`: one per node, one per socket, one per computing core, or each in turn."""

    processes: Annotated[tuple[Processes, ...], Meta(min_length=1)] = ("node",)


def expand(plan: Plan, machine: Machine) -> Expansion:
    """One process per node, then per socket, then per computing core, each with 1..k communication threads.

    On one host two of its processes form the ring, and only the first computes; a note says so.
    """
    expansion = multiply(msgspec.structs.replace(plan, control=False), machine)
    points: list[Point] = []
    notes = list(machine_notes(machine))
    if "node" in plan.keys.processes:
        everyone = machine.hosts >= 2
        points += [
            msgspec.structs.replace(point, computing_ranks="all" if everyone else "first")
            for point in expansion.points
        ]
        if not everyone:
            reason = "one host: two processes of it make the ring, and only the first computes"
            notes.append(Note(what="one process per node", reason=reason))
    notes += expansion.notes
    for kind, several in (("socket", _per_socket), ("core", _per_core)):
        for item in several(plan, machine) if kind in plan.keys.processes else ():
            if isinstance(item, Point):
                points.append(item)
            elif item not in notes:
                notes.append(item)
    chosen = tuple(points)
    return with_notes(Expansion(points=with_control(chosen) if plan.control else chosen, notes=()), notes)


def _sockets(machine: Machine) -> list[list[Core]]:
    cores = placement.usable(machine)
    return [
        [core for core in cores if core.package == package]
        for package in sorted({core.package for core in cores})
    ]


def _per_socket(plan: Plan, machine: Machine) -> Iterator[Point | Note]:
    """Communication threads on each socket's last cores; as many computing cores on each socket."""
    sockets = _sockets(machine)
    if len(sockets) < 2:
        yield Note(what="one process per socket", reason="this machine has one socket")
        return
    for threads in plan.comm_threads:
        most = min(len(socket) for socket in sockets) - threads
        if most < 1:
            what = f"one process per socket with {threads} communication threads"
            yield Note(what=what, reason=f"sockets of {min(map(len, sockets))} usable cores")
            continue
        counts, _ = core_counts(plan.n, most)
        for each in counts:
            seats = [(socket[:each], socket[: -threads - 1 : -1]) for socket in sockets]
            yield from _points(plan, machine, "socket", seats)


def _per_core(plan: Plan, machine: Machine) -> Iterator[Point | Note]:
    """Each process computes on one core and communicates from another of its socket, since two threads on one
    core would measure the scheduler; the first socket is filled first.
    """
    pairs = [
        ([socket[at]], [socket[-1 - at]]) for socket in _sockets(machine) for at in range(len(socket) // 2)
    ]
    if len(pairs) * machine.hosts < 2:
        reason = "a process takes one core to compute and one to communicate, and a ring two processes"
        yield Note(what="one process per core", reason=reason)
        return
    for threads in plan.comm_threads:
        if threads > 1:
            what = f"one process per core with {threads} communication threads"
            yield Note(what=what, reason="a process per core communicates from one thread")
    counts, _ = core_counts(plan.n, len(pairs))
    for count in counts:
        if count * machine.hosts >= 2:
            yield from _points(plan, machine, "core", pairs[:count])


def _points(plan: Plan, machine: Machine, kind: Processes, seats: Sequence[Seat]) -> Iterator[Point]:
    """Points of processes with these cores on each host."""
    places = tuple(
        Placement(
            rank=rank,
            comp_cores=tuple(core.number for core in computing),
            comm_cores=tuple(core.number for core in communicating),
            comp_node=computing[0].node,
            comm_node=communicating[0].node,
        )
        for rank, (computing, communicating) in enumerate([*seats] * machine.hosts)
    )
    first, each = places[0], len(places[0].comp_cores)
    for kernel, size in product(plan.kernels, plan.sizes):
        yield Point(
            plan=plan.name,
            kernel=kernel,
            n=each * len(seats),
            size=size,
            comp_node=first.comp_node,
            comm_node=first.comm_node,
            comm_core=first.comm_cores[0],
            metric=metric_of(plan, size),
            comp_cores=first.comp_cores,
            comm_cores=first.comm_cores,
            peer_cores=first.comm_cores,
            pattern=plan.pattern,
            working_set=plan.working_set
            or placement.working_set(
                find(kernel), _on_node(places, first.comp_node, machine), first.comp_node, machine
            ),
            reuse=plan.reuse,
            computing_ranks="all",
            processes=kind,
            placements=places,
            sequence=plan.sequence,
            window=plan.window,
            observe=plan.observe,
            scheduling=plan.scheduling,
        )


def _on_node(places: Sequence[Placement], node: int, machine: Machine) -> int:
    """Computing cores of one host whose data is on a NUMA node."""
    return sum(
        len(place.comp_cores) for place in places[: len(places) // machine.hosts] if place.comp_node == node
    )
