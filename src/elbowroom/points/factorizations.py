"""The program `factorizations` (apps/factorizations): Cholesky or QR of a tiled matrix as a task graph, whose
data travel in broadcasts, or in a message for each recipient.
"""

from __future__ import annotations

import re
from typing import ClassVar, Literal

import msgspec

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.points.point import AnyPhase, Facts, Point
from elbowroom.points.program import START_UP, SolverProgram, cores_each
from elbowroom.points.unit import Startup

Build = Literal["inline", "starpu"]
Task = Literal["cholesky", "qr"]

MOST_TILES = 1000
"""On a side, as in apps/factorizations. More take hours to simulate."""

_GRID = re.compile(r"([1-9][0-9]{0,3})x([1-9][0-9]{0,3})")

ELEMENT = 8
"""Bytes of a number."""

COPIES = 3
"""Of the matrix in all processes at most: the own tiles, copies of others', and tiles without messages."""

MOST_BLOCK = 8192
"""As in apps/factorizations."""

MOST_RANKS = 4096
"""What a launcher starts in some time."""

SLOW_FLOPS = 5e9
"""Flop/s of a slow core on small tiles, for the ETA only."""

SLOW_TASK = 2e-4
"""Seconds that a task waits for its messages on a host whose ranks share cores, for the ETA only."""


class FactorizationProgram(
    SolverProgram, frozen=True, kw_only=True, tag_field="name", tag="factorizations", omit_defaults=True
):
    """Tiles of `block` rows and columns, `tiles` x `columns` of them, on `grid_rows` x `grid_columns` ranks.

    `broadcasts` false: a message for each recipient. `early`: readers start before the data are forwarded.
    `priorities`: of Cholesky's tasks. `hold`: with StarPU, ready data wait for further readers.
    `segment`: bytes that ranks forward one by one, 0 for all; `window`: tasks of a rank that are submitted
    ahead, 0 for all.
    """

    name: ClassVar[str] = "factorizations"
    virtual_refusal: ClassVar[str] = (
        f"{SolverProgram.virtual_refusal}; a simulated cluster broadcasts: elbowroom broadcast simulate"
    )
    facts: ClassVar[Facts] = msgspec.structs.replace(
        SolverProgram.facts, explainable=False, without_model="factorizations"
    )

    task: Task
    build: Build
    ranks: int
    tiles: int
    columns: int
    block: int
    grid_rows: int
    grid_columns: int
    tree: str
    segment: int
    window: int
    broadcasts: bool
    early: bool
    priorities: bool = True
    hold: bool = True

    def id(self, point: Point) -> str:
        tiles = f"{self.tiles}" if self.task == "cholesky" else f"{self.tiles}x{self.columns}"
        parts = [self.task, self.build, self.grid, f"tiles{tiles}", f"block{self.block}", self.way]
        parts += [f"segment{self.segment}"] if self.segment else []
        parts += [f"window{self.window}"] if self.window else []
        parts += self.variants
        return "-".join([*parts, f"n{point.n}", f"comp{point.comp_node}", f"core{point.comm_core}"])

    @property
    def variants(self) -> list[str]:
        """What differs from the usual: `late`, `unordered`, `unheld`."""
        usual = {"late": self.early, "unordered": self.priorities, "unheld": self.hold}
        return [name for name, kept in usual.items() if not kept]

    @property
    def grid(self) -> str:
        """`2x2`."""
        return f"{self.grid_rows}x{self.grid_columns}"

    @property
    def way(self) -> str:
        """How data reach several recipients: a kind of tree, or `none`."""
        return self.tree if self.broadcasts else "none"

    @property
    def title(self) -> str:
        """`cholesky binomial (inline)`."""
        return f"{self.task} {self.way} ({self.build})"

    @property
    def rows(self) -> int:
        return self.tiles * self.block

    @property
    def flops(self) -> float:
        """Operations of the whole factorization."""
        return count_flops(self.task, self.rows, self.columns * self.block)

    @property
    def memory(self) -> float:
        """Bytes of all processes' tiles together."""
        tiles = self.tiles * self.columns
        if self.task == "cholesky":
            tiles = self.tiles * (self.tiles + 1) // 2
        return float((1 if self.ranks == 1 else COPIES) * ELEMENT * self.block**2 * tiles)

    def sequence(self, point: Point, closing: bool = False, repetition: int = 0) -> tuple[AnyPhase, ...]:
        """A single rank has no messages."""
        phases = super().sequence(point, closing, repetition)
        return phases if self.ranks > 1 else tuple(phase for phase in phases if phase != "B")

    def validate(self, point: Point, machine: Machine) -> None:
        """Refuses grids without a rank each, and tiles that do not fit."""
        check(self, machine)

    def startup(self, point: Point) -> Startup:
        """The program runs each phase once before it answers."""
        longer = START_UP + 20.0 * 3 * self.phase_seconds(point)
        return msgspec.structs.replace(super().startup(point), patience=longer)

    def phase_seconds(self, point: Point) -> float:
        """How long a factorization usually takes on slow cores."""
        steps = min(self.tiles, self.columns)
        tasks = self.tiles * self.columns * steps / (6 if self.task == "cholesky" else 1)
        work = self.flops / SLOW_FLOPS / (cores_each(point) * self.ranks)
        return max(point.window, work + SLOW_TASK * tasks / self.ranks)


def check(program: FactorizationProgram, machine: Machine) -> None:
    """Refuses what cannot be distributed or does not fit: UsageError."""
    if program.grid_rows * program.grid_columns != program.ranks:
        raise UsageError(
            f"has {program.grid_rows * program.grid_columns} processes, and there are {program.ranks} ranks",
            field="grid",
            value=program.grid,
            hint="give rows x columns whose product is the number of ranks",
        )
    for field, value, most in (
        ("block", program.block, MOST_BLOCK),
        ("tiles", program.tiles, MOST_TILES),
        ("columns", program.columns, MOST_TILES),
    ):
        if not 1 <= value <= most:
            raise UsageError("is too small or too large", field=field, value=value, hint=f"use 1 to {most}")
    here = machine.memory * machine.hosts
    if here and program.memory > here:
        raise UsageError(
            f"the tiles do not fit: {program.memory / 1e9:.3g} GB of {here / 1e9:.3g}",
            field="block",
            value=program.block,
            hint="give smaller or fewer tiles",
        )


def parse_grid(grid: str | int) -> tuple[int, int]:
    """Rows and columns of processes of `14x14`; UsageError for anything else."""
    match = _GRID.fullmatch(str(grid))
    if match is None:
        raise UsageError("is not rows x columns", field="grid", value=grid, hint="for instance 2x2")
    return int(match[1]), int(match[2])


def count_flops(task: Task, rows: int, columns: int) -> float:
    """Operations to factorize a matrix of `rows` x `columns` elements to the leading orders, as LAPACK
    counts them (Working Note 41, Appendix C); those of tiled QR are more.
    """
    if task == "cholesky":
        return rows**3 / 3
    small, large = min(rows, columns), max(rows, columns)
    return 2 * small**2 * (large - small / 3)
