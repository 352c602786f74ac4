"""Conjugate gradients and matrix products on two processes: what sends keep of their bandwidth while they
compute, and how long cores wait for memory (Denis et al. 2021, section 6, Fig. 10; Swartvagher 2022, 5.5).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Literal

import msgspec

from elbowroom.experiments.common.points import (
    control_of,
    elsewhere,
    machine_notes,
    placed,
    point_of,
    seats_of,
    with_notes,
)
from elbowroom.experiments.common.sentences import (
    cores_text,
)
from elbowroom.machine.topology import Machine
from elbowroom.plan.axes import core_counts, single_place
from elbowroom.plan.file import Natural, Plan
from elbowroom.plan.placement import Seats
from elbowroom.points import matrices
from elbowroom.points.matrices import Build, MatrixProgram
from elbowroom.points.point import Expansion, Note, Placement, Point

NAME = "kernels"


class KernelsKeys(msgspec.Struct, frozen=True, kw_only=True):
    """`tasks`, `builds`, `order` and `block` of the matrices (0: chosen), `iterations` at most."""

    tasks: tuple[Literal["cg", "cg-sparse", "gemm"], ...] = ("cg", "cg-sparse", "gemm")
    builds: tuple[Build, ...] = ("openmp", "starpu")
    order: Natural = 0
    block: Natural = 0
    iterations: Natural = 0


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Each task in each build on 1, 2 ... computing cores of each process, with the same matrix for all of
    them (strong scaling); and a register-only control.
    """
    core, node = single_place(plan, machine)
    seats = seats_of(plan, machine, core)
    counts, notes = core_counts(plan.n, most_of(seats, machine))
    points = [
        _point(plan, machine, seats, n, program, node)
        for program in _programs(plan, machine, most_of(seats, machine))
        for n in counts
    ]
    control = control_of(plan, seats, node) if plan.control else ()
    notes = [*machine_notes(machine), *_scaling_notes(seats, machine, counts), *notes]
    return with_notes(Expansion(points=(*control, *points), notes=()), notes)


def most_of(seats: Seats, machine: Machine) -> int:
    """Computing cores of each process: two processes of one host share them, or both use the only one."""
    count = len(seats.comp_cores)
    return count if machine.hosts > 1 else max(1, count // 2)


def _programs(plan: Plan, machine: Machine, most: int) -> Iterator[MatrixProgram]:
    """Every task in every build, the same matrices in all builds."""
    ranks = max(2, machine.hosts)
    keys: KernelsKeys = plan.keys
    for task, build in product(dict.fromkeys(keys.tasks), dict.fromkeys(keys.builds)):
        program = MatrixProgram(
            task=task,
            build=build,
            ranks=ranks,
            order=keys.order,
            block=keys.block,
            iterations=keys.iterations,
        )
        yield matrices.completed(program, most, machine)


def _point(
    plan: Plan, machine: Machine, seats: Seats, n: int, program: MatrixProgram, node: tuple[int, int]
) -> Point:
    places = () if machine.hosts > 1 else _processes(seats, n, node)
    cores = seats.comp_cores[:n]
    if places:
        cores = tuple(sorted({core for place in places for core in place.comp_cores}))
    return point_of(
        plan,
        node,
        n=n,
        n_other=0 if places else elsewhere(cores, machine),
        comm_core=seats.comm_cores[0],
        metric="bandwidth",
        comp_cores=cores,
        comm_cores=seats.comm_cores,
        peer_cores=seats.peer_cores,
        computing_ranks="all",
        placements=places,
        workload=program,
    )


def _processes(seats: Seats, n: int, node: tuple[int, int]) -> tuple[Placement, ...]:
    """Two processes of one host: `n` cores of its half for each, or both the only one.

    Where there is only one, both compute on it and both communicate on the other core: a communication thread
    beside a computing one would wait for time slices, and what it then sees is the scheduler.
    """
    cores = seats.comp_cores
    half = len(cores) // 2
    ranks = ((cores[:n], seats.comm_cores[:1]), (cores[half : half + n], seats.peer_cores[:1]))
    return placed(ranks, node)


def _scaling_notes(seats: Seats, machine: Machine, counts: Sequence[int]) -> list[Note]:
    notes = []
    if machine.hosts < 2 and len(seats.comp_cores) < 2:
        reason = (
            "two cores: both processes compute on one of them in turns (scheduling) and communicate on the "
            "other, so that no message waits for a time slice"
        )
        notes.append(Note(what="cores of its own for each process", reason=reason))
    if len(counts) < 2:
        reason = f"{cores_text(most_of(seats, machine))} for each process here: one point, no curve"
        notes.append(Note(what="strong scaling", reason=reason))
    return notes
