"""Matrices of the program `kernels` (apps/kernels): how large, how much work, and which where a plan does not
say.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import msgspec

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.plan.placing import CACHES
from elbowroom.plan.point import Program

ELEMENT, COLUMN = 8, 4
"""Bytes of a number, and of a column's number in a sparse row."""

NEIGHBOURS = 27
"""Entries of a sparse row: a point of a grid and those around it."""

VECTORS = 6
"""Of conjugate gradients, whole in each process."""

SLOW_FLOPS = 4e9
"""Flop/s of a slow core, for the ETA only."""

SLOW_MEMORY = 5e9
"""B/s that a slow core reads, for the ETA only."""

SHARE = 4
"""Matrices that are chosen here take at most this part of the memory: a quarter."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What a task's matrices cost, as apps/kernels/problem.cpp counts it. Bytes: `square` times order squared
    and `linear` times order for all processes together, `each` times order and `panels` times order times
    block for each of them. Flops of an iteration: `flops_square` times order squared (of a product once more
    times order), `flops_linear` times order.

    `block`, `blocks` (on a side, at least) and `iterations` are chosen where the plan leaves them at 0;
    `cached` tells tasks whose matrices may stay in caches from those that must not (METHOD.md, rule 8).
    """

    square: float = 0.0
    linear: float = 0.0
    each: float = 0.0
    panels: float = 0.0
    flops_square: float = 0.0
    flops_linear: float = 0.0
    block: int
    blocks: int
    iterations: int
    cached: bool = False


SHAPES = {
    "cg": Shape(
        square=ELEMENT,
        each=VECTORS * ELEMENT,
        flops_square=2,
        flops_linear=10,
        block=512,
        blocks=16,
        iterations=100,
    ),
    "cg-sparse": Shape(
        linear=NEIGHBOURS * (ELEMENT + COLUMN) + ELEMENT,
        each=VECTORS * ELEMENT,
        flops_linear=2 * NEIGHBOURS + 10,
        block=16384,
        blocks=64,
        iterations=200,
    ),
    "gemm": Shape(
        square=3 * ELEMENT,
        panels=2 * ELEMENT,
        flops_square=2,
        block=512,
        blocks=6,
        iterations=1,
        cached=True,
    ),
}


def memory(program: Program) -> float:
    """Bytes of all processes' matrices and vectors together."""
    shape, order = SHAPES[program.task], program.order
    each = shape.each + shape.panels * program.block
    return shape.square * order**2 + (shape.linear + program.ranks * each) * order


def seconds(program: Program, cores: float) -> float:
    """How long one solution or product takes on so many slow cores of each process."""
    shape, order = SHAPES[program.task], program.order
    flops = shape.flops_square * order**2 + shape.flops_linear * order
    moved = memory(program) * program.iterations
    if program.task == "gemm":
        flops, moved = flops * order, 0.0
    each = cores * program.ranks
    return (flops * program.iterations / SLOW_FLOPS + moved / SLOW_MEMORY) / each


def completed(program: Program, cores: int, machine: Machine) -> Program:
    """The program with an order, blocks and iterations for up to `cores` computing cores of each process,
    where it says 0.

    A block's side divides the order. The matrix of a CG is at least four last-level caches of each host, but
    no matrix takes more than a quarter of the memory.
    """
    shape = SHAPES[program.task]
    order, block = program.order, program.block
    if not order:
        block = block or shape.block
        order = block * _blocks(shape, block, cores, program.ranks, machine)
    elif not block:
        block = max(
            size for size in divisors(order) if size <= max(1, min(shape.block, order // program.ranks))
        )
    iterations = program.iterations or shape.iterations
    return msgspec.structs.replace(program, order=order, block=block, iterations=iterations)


def _blocks(shape: Shape, block: int, cores: int, ranks: int, machine: Machine) -> int:
    """Blocks on a side: two for each core, out of the caches, not more than fit; as many for each process."""
    workers = cores * ranks
    by_work = math.sqrt(2 * workers) if shape.cached else 2 * workers
    out_of_cache = 0.0 if shape.cached else CACHES * machine.last_level_cache * machine.hosts
    wanted = max(shape.blocks, math.ceil(by_work), math.ceil(_order_of(shape, out_of_cache) / block))
    if machine.memory:
        wanted = min(wanted, int(_order_of(shape, machine.memory * machine.hosts / SHARE) / block))
    return max(1, wanted // ranks) * ranks


def _order_of(shape: Shape, size: float) -> float:
    """The order whose matrices, without vectors, are so many bytes."""
    return math.sqrt(size / shape.square) if shape.square else size / shape.linear


def divisors(number: int) -> tuple[int, ...]:
    """All of them, rising."""
    small = [size for size in range(1, math.isqrt(number) + 1) if number % size == 0]
    return tuple(sorted({*small, *(number // size for size in small)}))


def check(program: Program, machine: Machine) -> None:
    """Refuses matrices that cannot be cut into their blocks, or do not fit: UsageError."""
    order, block = program.order, program.block
    if order < program.ranks:
        mend = f"give at least {program.ranks}, one row for each process"
        raise UsageError("the matrix has fewer rows than processes", field="order", value=order, mend=mend)
    if block < 1 or order % block:
        near = nearest(block, divisors(order))
        mend = f"for instance {' or '.join(map(str, near))}; or leave it out"
        raise UsageError(f"does not divide the order {order}", field="block", value=block, mend=mend)
    if order // block < program.ranks:
        fitting = max(size for size in divisors(order) if order // size >= program.ranks)
        mend = f"at most {fitting}, so that each of {program.ranks} processes has rows"
        raise UsageError("leaves processes without rows", field="block", value=block, mend=mend)
    here = machine.memory * machine.hosts
    if here and memory(program) > here:
        shape = SHAPES[program.task]
        most = int(_order_of(shape, here / SHARE))
        mend = (
            f"{program.task} needs {memory(program) / 1e9:.3g} GB of {here / 1e9:.3g}; an order of {most} "
            "takes a quarter"
        )
        raise UsageError("the matrix is larger than memory", field="order", value=order, mend=mend)


def nearest(value: int, known: Iterable[int]) -> tuple[int, ...]:
    """The neighbours of a value among others: the next smaller and the next larger one, where there are."""
    known = sorted(known)
    below = [other for other in known if other < value][-1:]
    above = [other for other in known if other > value][:1]
    return (*below, *above)
