"""A real program: an explicit finite-volume solver whose interior overlaps its exchange (Langguth et al.
2018, sections IV and V), and what the overlap model says of its steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from elbowroom.errors import UsageError
from elbowroom.experiments.common.points import machine_notes, placed, point_of, with_notes
from elbowroom.machine.topology import Machine
from elbowroom.plan import placement
from elbowroom.plan.axes import metric_of, single_place, with_control
from elbowroom.plan.file import Natural, Plan, Positive
from elbowroom.plan.kernels import find
from elbowroom.plan.placement import Seats
from elbowroom.points.point import Expansion, Note, Placement, Point, Variant
from elbowroom.points.steps import ApplicationSteps
from elbowroom.quantities import plural

NAME = "diffusion"


class DiffusionKeys(msgspec.Struct, frozen=True, kw_only=True):
    """`cells` of the mesh (0: as many as this experiment chooses), `nodes` of a simulated cluster, `steps`
    timed in a repetition after `warmup` others, `partitioner` of the mesh, and `model`, a file whose loss
    ratios are used in place of measured ones. `mesh`: a file in place of a box, which `cavities` may have;
    `processes_per_node`: each with its share of a node's cores.
    """

    cells: Natural = 0
    nodes: tuple[Positive, ...] = ()
    steps: Positive = 20
    warmup: Natural = 3
    partitioner: Literal["metis", "scotch", "slabs"] = "metis"
    model: str = ""
    mesh: str = ""
    cavities: bool = False
    processes_per_node: Positive = 1


CELLS_EACH = 1_500_000
"""Cells of a process on a real machine, where the plan names none: some 100 MB that every step reads."""

PAPER_CELLS = 115_000_000
PAPER_NODES = (4, 8, 16, 32, 64, 128, 256)
"""The paper's mesh and nodes (section V), which a simulated cluster has where the plan names none."""


def expand(plan: Plan, machine: Machine) -> Expansion:
    """The contention benchmark (a ring beside TRIAD) on the application's cores, unless a model gives the
    loss ratios; then the variants of the application, for each number of nodes and communication threads.
    """
    if plan.keys.mesh and plan.keys.cells:
        raise UsageError(
            "cannot be given with a mesh, which has its own",
            field="cells",
            value=plan.keys.cells,
            hint="leave it out",
        )
    if machine.virtual and plan.keys.partitioner != "metis":
        raise UsageError(
            "the meshes of a simulated cluster were cut by METIS",
            field="partitioner",
            value=plan.keys.partitioner,
            hint="leave it out, or measure on a real machine",
        )
    core, node = single_place(plan, machine, ("sizes", plan.sizes))
    threads, notes, seats = _threads(plan, machine, core)
    seats = _even(seats, machine)
    benchmark = tuple(_ring(plan, machine, seats, k, node) for k in threads)
    control = with_control(benchmark)[len(benchmark) :] if plan.control else ()
    steps = tuple(
        _steps(plan, machine, seats, count, variant, k, node)
        for count in _nodes(plan, machine)
        for variant, k in _variants(threads)
    )
    measured = () if plan.keys.model else benchmark
    return with_notes(
        Expansion(points=(*measured, *control, *steps), notes=()), [*machine_notes(machine), *notes]
    )


def _threads(plan: Plan, machine: Machine, core: int) -> tuple[tuple[int, ...], list[Note], Seats]:
    """The numbers of communication threads that fit, notes for the others, and the seats beside the most: all
    variants compute on the same cores.
    """
    fitting: dict[int, Seats] = {}
    notes = []
    for count in sorted(set(plan.comm_threads)):
        seats = placement.seats(
            machine,
            core,
            count,
            comp_cores=plan.comp_cores,
            peer_core=plan.peer_core,
            socket_only=plan.pool == "socket",
        )
        if seats is None:
            reason = f"only {len(placement.usable(machine))} usable cores here, none left to compute"
            plural = "s" if count > 1 else ""
            notes.append(Note(what=f"{count} communication thread{plural}", reason=reason))
        else:
            fitting[count] = seats
    if not fitting:
        raise UsageError(
            "leaves no core to compute", field="comm_threads", value=plan.comm_threads[0], hint="give fewer"
        )
    return tuple(fitting), notes, fitting[max(fitting)]


def _even(seats: Seats, machine: Machine) -> Seats:
    """As many computing cores for each of two processes of one host; a single one is shared by both."""
    count = len(seats.comp_cores)
    if machine.hosts > 1 or count < 2:
        return seats
    return msgspec.structs.replace(seats, comp_cores=seats.comp_cores[: count // 2 * 2])


def _nodes(plan: Plan, machine: Machine) -> tuple[int, ...]:
    """How many processes share the mesh: one per host, two where there is one; any on a simulated one."""
    nodes: tuple[int, ...] = plan.keys.nodes
    if machine.virtual:
        return nodes or PAPER_NODES
    here = machine.hosts if machine.hosts > 1 or plan.keys.processes_per_node > 1 else 2
    if nodes not in ((), (here,)):
        raise UsageError(
            f"a run measures the {plural(machine.hosts, 'host')} it has",
            field="nodes",
            value=",".join(map(str, nodes)),
            hint="leave it out, or let a cluster be simulated: --machine henri",
        )
    return (here,)


def _variants(threads: Sequence[int]) -> list[tuple[Variant, int]]:
    variants: list[tuple[Variant, int]] = [("none", 1), ("apart", 1)]
    for count in threads:
        variants += [("communication", count), ("overlap", count)]
    return variants


def _ring(plan: Plan, machine: Machine, seats: Seats, threads: int, node: tuple[int, int]) -> Point:
    kernel, n = plan.kernels[0], len(seats.comp_cores)
    return point_of(
        plan,
        node,
        kernel=kernel,
        n=n,
        size=plan.sizes[0],
        comm_core=seats.comm_cores[0],
        metric=metric_of(plan, plan.sizes[0]),
        comp_cores=seats.comp_cores,
        comm_cores=seats.comm_cores[:threads],
        peer_cores=seats.peer_cores[:threads],
        pattern="ring",
        working_set=plan.working_set or placement.working_set(find(kernel), n, node[0], machine),
        computing_ranks="all" if machine.hosts > 1 else "first",
    )


def _steps(
    plan: Plan,
    machine: Machine,
    seats: Seats,
    count: int,
    variant: Variant,
    threads: int,
    node: tuple[int, int],
) -> Point:
    packages = {core.number: core.package for core in machine.cores}
    first = min(packages.values())
    keys: DiffusionKeys = plan.keys
    return Point(
        plan=plan.name,
        kernel="none",
        n=len(seats.comp_cores),
        n_other=sum(packages.get(core, first) != first for core in seats.comp_cores),
        size=0,
        comp_node=node[0],
        comm_node=node[1],
        comm_core=seats.comm_cores[0],
        metric="latency",
        comp_cores=seats.comp_cores,
        comm_cores=seats.comm_cores[:threads],
        peer_cores=seats.peer_cores[:threads],
        placements=_placements(plan, machine, seats, threads, node),
        computing_ranks="all",
        scheduling=False,
        workload=ApplicationSteps(
            name=NAME,
            variant=variant,
            cells=keys.cells
            or (PAPER_CELLS if machine.virtual else CELLS_EACH * count * keys.processes_per_node),
            nodes=count,
            steps=keys.steps,
            warmup=keys.warmup,
            partitioner=keys.partitioner,
            per_node=keys.processes_per_node,
        ),
    )


def _placements(
    plan: Plan, machine: Machine, seats: Seats, threads: int, node: tuple[int, int]
) -> tuple[Placement, ...]:
    """Where processes are that share a node; empty where each has its own."""
    each = plan.keys.processes_per_node
    if each == 1:
        return () if machine.hosts > 1 else _processes(seats, threads, node)
    if machine.virtual:
        raise UsageError(
            "a simulated cluster has one process on each node",
            field="processes_per_node",
            value=each,
            hint="measure on a real machine, or leave it out",
        )
    # The cores of a node in equal pieces, in logical order: the last of each communicate.
    cores = placement.usable(machine)
    share = len(cores) // each
    if share < threads + 1:
        raise UsageError(
            f"leaves {share} cores to a process, and it needs {threads + 1}",
            field="processes_per_node",
            value=each,
            hint=f"give at most {len(cores) // (threads + 1)}",
        )
    most = max(len(seats.comm_cores), threads)
    pieces = [cores[at * share : (at + 1) * share] for at in range(each)]
    return tuple(
        Placement(
            rank=rank,
            comp_cores=tuple(core.number for core in piece[: max(1, share - most)]),
            comm_cores=tuple(core.number for core in piece[: -threads - 1 : -1]),
            comp_node=piece[0].node,
            comm_node=piece[-1].node,
        )
        for rank, piece in enumerate(pieces * machine.hosts)
    )


def _processes(seats: Seats, threads: int, node: tuple[int, int]) -> tuple[Placement, ...]:
    """Two processes of one host: each its half of the computing cores, or both the only one."""
    cores = seats.comp_cores
    half = len(cores) // 2 or 1
    ranks = ((cores[:half], seats.comm_cores[:threads]), (cores[-half:], seats.peer_cores[:threads]))
    return placed(ranks, node)
