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

SLOW_FLOPS = 1e10
"""Flop/s of a slow core, for the ETA only."""

SLOW_MEMORY = 1e10
"""B/s that a slow core reads, for the ETA only."""

SHARE = 4
"""Matrices that are chosen here take at most this part of the memory: a quarter."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """What a task's matrices cost, as apps/kernels/problem.cpp counts it. Bytes: `square` times order squared
    and `linear` times order for all processes together, `each` times order and `panels` times order times
    block for each of them. Flops of an iteration: `flops_square` times order squared (of a product once more
    times order), `flops_linear` times order; conjugate gradients usually end after `usual` iterations.

    Where the plan leaves them at 0: the order is `least` or more, `blocks` have one of these sizes, and there
    are `iterations` at most. `cached` tells tasks whose matrices may stay in caches from those that must not
    (METHOD.md, rule 8).
    """

    square: float = 0.0
    linear: float = 0.0
    each: float = 0.0
    panels: float = 0.0
    flops_square: float = 0.0
    flops_linear: float = 0.0
    least: int
    blocks: tuple[int, ...]
    iterations: int = 1
    usual: int = 1
    cached: bool = False

    def order(self, size: float) -> float:
        """The order whose matrices, without vectors, are so many bytes."""
        return math.sqrt(size / self.square) if self.square else size / self.linear

    def rows(self, workers: int) -> int:
        """Rows of blocks that keep so many cores at work: a block of the result, or a row of blocks, is one
        core's at a time.
        """
        return math.ceil(math.sqrt(2 * workers)) if self.cached else workers


SHAPES = {
    "cg": Shape(
        square=ELEMENT,
        each=VECTORS * ELEMENT,
        flops_square=2,
        flops_linear=10,
        least=8192,
        blocks=(1024, 512),
        iterations=100,
        usual=30,
    ),
    "cg-sparse": Shape(
        linear=NEIGHBOURS * (ELEMENT + COLUMN) + ELEMENT,
        each=VECTORS * ELEMENT,
        flops_linear=2 * NEIGHBOURS + 10,
        least=1 << 20,
        blocks=(65536, 16384, 4096),
        iterations=200,
        usual=40,
    ),
    "gemm": Shape(
        square=3 * ELEMENT, panels=2 * ELEMENT, flops_square=2, least=3072, blocks=(512,), cached=True
    ),
}


def memory(program: Program) -> float:
    """Bytes of all processes' matrices and vectors together."""
    shape, order = SHAPES[program.task], program.order
    each = shape.each + shape.panels * program.block
    return shape.square * order**2 + (shape.linear + program.ranks * each) * order


def seconds(program: Program, cores: float) -> float:
    """How long one solution or product usually takes on so many slow cores of each process."""
    shape, order = SHAPES[program.task], program.order
    times = min(program.iterations, shape.usual) if shape.usual > 1 else program.iterations
    flops = shape.flops_square * order**2 + shape.flops_linear * order
    if program.task == "gemm":
        return flops * order * times / SLOW_FLOPS / (cores * program.ranks)
    return memory(program) * times / SLOW_MEMORY / (cores * program.ranks)


def completed(program: Program, cores: int, machine: Machine) -> Program:
    """The program with an order, blocks and iterations for up to `cores` computing cores of each process,
    where it says 0.

    A block's side divides the order, and is as large as leaves every core a row of blocks. The matrix of a CG
    is at least four last-level caches of each host; no matrix takes more than a quarter of the memory.
    """
    shape = SHAPES[program.task]
    order, block = program.order, program.block
    if not order:
        order, block = _chosen(shape, block, shape.rows(cores * program.ranks), program.ranks, machine)
    elif not block:
        most = max(1, min(shape.blocks[0], order // program.ranks))
        block = max(size for size in divisors(order) if size <= most)
    iterations = program.iterations or shape.iterations
    return msgspec.structs.replace(program, order=order, block=block, iterations=iterations)


def _chosen(shape: Shape, block: int, rows: int, ranks: int, machine: Machine) -> tuple[int, int]:
    """Order and block: at least so many rows of blocks, as many for each process."""
    out_of_cache = 0.0 if shape.cached else CACHES * machine.last_level_cache * machine.hosts
    wanted = max(float(shape.least), shape.order(out_of_cache))
    sizes = (block,) if block else shape.blocks
    size = next((size for size in sizes if size * rows <= wanted), sizes[-1])
    count = max(rows, math.ceil(wanted / size))
    if machine.memory:
        count = min(count, int(shape.order(machine.memory * machine.hosts / SHARE) / size))
    return max(1, -(-count // ranks)) * ranks * size, size


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
        most = int(shape.order(here / SHARE))
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
