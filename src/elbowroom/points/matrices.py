"""The program `kernels` (apps/kernels) solves or multiplies matrices: how large they are, how much work they
take, and which are chosen where a plan does not say.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import ClassVar, Literal

import msgspec

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.points.point import Point
from elbowroom.points.probe import CACHES
from elbowroom.points.program import SolverProgram, cores_each

Build = Literal["openmp", "starpu"]

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


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """What a task's matrices cost, as apps/kernels/problem.cpp counts it. Bytes: `square` times order squared
    and `linear` times order for all processes together, `each` times order and `whole` times order squared
    for each of them. Flops of an iteration: `flops_square` times order squared (of a product once more
    times order), `flops_linear` times order; conjugate gradients usually end after `usual` iterations.

    Where the plan leaves them at 0: the order is `least` or more, `blocks` have one of these sizes, and there
    are `iterations` at most. `cached` tells tasks whose matrices may stay in caches from those that must not
    (docs/design/method.md, rule 8).
    """

    square: float = 0.0
    linear: float = 0.0
    each: float = 0.0
    whole: float = 0.0
    flops_square: float = 0.0
    flops_linear: float = 0.0
    least: int
    blocks: tuple[int, ...]
    iterations: int = 1
    usual: int = 1
    cached: bool = False

    def order(self, size: float, ranks: int) -> float:
        """The order whose matrices, without vectors, are so many bytes."""
        square = self.square + ranks * self.whole
        return math.sqrt(size / square) if square else size / self.linear

    def rows(self, workers: int) -> int:
        """Rows of blocks that keep so many cores at work: a block of the result, or a row of blocks, is one
        core's at a time.
        """
        return math.ceil(math.sqrt(2 * workers)) if self.cached else workers


TASKS = {
    "cg": Costs(
        square=ELEMENT,
        each=VECTORS * ELEMENT,
        flops_square=2,
        flops_linear=10,
        least=8192,
        blocks=(1024, 512),
        iterations=100,
        usual=30,
    ),
    "cg-sparse": Costs(
        linear=NEIGHBOURS * (ELEMENT + COLUMN) + ELEMENT,
        each=VECTORS * ELEMENT,
        flops_linear=2 * NEIGHBOURS + 10,
        least=1 << 20,
        blocks=(65536, 16384, 4096),
        iterations=200,
        usual=40,
    ),
    "gemm": Costs(square=2 * ELEMENT, whole=ELEMENT, flops_square=2, least=3072, blocks=(512,), cached=True),
}


class MatrixProgram(SolverProgram, frozen=True, kw_only=True, tag_field="name", tag="kernels"):
    """Conjugate gradients (`cg`, `cg-sparse`) or a product (`gemm`) of matrices, a whole solution a phase."""

    name: ClassVar[str] = "kernels"
    virtual_refusal: ClassVar[str] = (
        f"{SolverProgram.virtual_refusal}; of bandwidth beside an arithmetic intensity it knows: "
        "elbowroom run intensity"
    )

    task: Literal["cg", "cg-sparse", "gemm"]
    build: Build

    @property
    def memory(self) -> float:
        """Bytes of all processes' matrices and vectors together."""
        costs = TASKS[self.task]
        linear = costs.linear + self.ranks * costs.each
        return (costs.square + self.ranks * costs.whole) * self.order**2 + linear * self.order

    def validate(self, point: Point, machine: Machine) -> None:
        """Refuses matrices that cannot be cut into their blocks, or do not fit."""
        check(self, machine)

    def phase_seconds(self, point: Point) -> float:
        """How long one solution or product usually takes on slow cores."""
        costs, cores = TASKS[self.task], cores_each(point)
        times = min(self.iterations, costs.usual) if costs.usual > 1 else self.iterations
        flops = costs.flops_square * self.order**2 + costs.flops_linear * self.order
        if self.task == "gemm":
            return flops * self.order * times / SLOW_FLOPS / (cores * self.ranks)
        return self.memory * times / SLOW_MEMORY / (cores * self.ranks)


def completed(program: MatrixProgram, cores: int, machine: Machine) -> MatrixProgram:
    """The program with an order, blocks and iterations for up to `cores` computing cores of each process,
    where it says 0.

    A block's side divides the order, and is as large as leaves every core a row of blocks. The matrix of a CG
    is at least four last-level caches of each host; no matrix takes more than a quarter of the memory.
    """
    costs = TASKS[program.task]
    order, block = program.order, program.block
    if not order:
        order, block = _chosen(costs, block, costs.rows(cores * program.ranks), program.ranks, machine)
    elif not block:
        most = max(1, min(costs.blocks[0], order // program.ranks))
        block = max(size for size in divisors(order) if size <= most)
    iterations = program.iterations or costs.iterations
    return msgspec.structs.replace(program, order=order, block=block, iterations=iterations)


def _chosen(costs: Costs, block: int, rows: int, ranks: int, machine: Machine) -> tuple[int, int]:
    """Order and block: at least so many rows of blocks, as many for each process."""
    out_of_cache = 0.0 if costs.cached else CACHES * machine.last_level_cache * machine.hosts
    wanted = max(float(costs.least), costs.order(out_of_cache, ranks))
    sizes = (block,) if block else costs.blocks
    size = next((size for size in sizes if size * rows <= wanted), sizes[-1])
    count = max(rows, math.ceil(wanted / size))
    if machine.memory:
        count = min(count, int(costs.order(machine.memory * machine.hosts / SHARE, ranks) / size))
    return max(1, -(-count // ranks)) * ranks * size, size


def divisors(number: int) -> tuple[int, ...]:
    """All of them, rising."""
    small = [size for size in range(1, math.isqrt(number) + 1) if number % size == 0]
    return tuple(sorted({*small, *(number // size for size in small)}))


def check(program: MatrixProgram, machine: Machine) -> None:
    """Refuses matrices that cannot be cut into their blocks, or do not fit: UsageError."""
    order, block = program.order, program.block
    if order < program.ranks:
        hint = f"give at least {program.ranks}, one row for each process"
        raise UsageError("the matrix has fewer rows than processes", field="order", value=order, hint=hint)
    if block < 1 or order % block:
        near = nearest(block, divisors(order))
        hint = f"for instance {' or '.join(map(str, near))}; or leave it out"
        raise UsageError(f"does not divide the order {order}", field="block", value=block, hint=hint)
    if order // block < program.ranks:
        fitting = max(size for size in divisors(order) if order // size >= program.ranks)
        hint = f"at most {fitting}, so that each of {program.ranks} processes has rows"
        raise UsageError("leaves processes without rows", field="block", value=block, hint=hint)
    here = machine.memory * machine.hosts
    if here and program.memory > here:
        costs = TASKS[program.task]
        most = int(costs.order(here / SHARE, program.ranks))
        hint = (
            f"{program.task} needs {program.memory / 1e9:.3g} GB of {here / 1e9:.3g}; an order of {most} "
            "takes a quarter"
        )
        raise UsageError("the matrix is larger than memory", field="order", value=order, hint=hint)


def nearest(value: int, known: Iterable[int]) -> tuple[int, ...]:
    """The neighbours of a value among others: the next smaller and the next larger one, where there are."""
    known = sorted(known)
    below = [other for other in known if other < value][-1:]
    above = [other for other in known if other > value][:1]
    return (*below, *above)
