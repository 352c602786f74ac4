"""Points of a factorization: each tree in each build, on matrices of each number of tiles."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import lcm

import msgspec

from elbowroom.broadcast.simulated import check_tree
from elbowroom.errors import UsageError
from elbowroom.experiments.common.factorizations.results import NONE
from elbowroom.experiments.common.points import (
    control_of,
    machine_notes,
    no_core_left,
    point_of,
    with_notes,
)
from elbowroom.machine.topology import Machine
from elbowroom.plan import placement
from elbowroom.plan.axes import core_counts, single_place
from elbowroom.plan.file import Natural, Plan, Positive, SizeOrNone
from elbowroom.points.factorizations import MOST_RANKS, Build, FactorizationProgram, Task, parse_grid
from elbowroom.points.point import Expansion, Note, Placement, Point


class FactorizationKeys(msgspec.Struct, frozen=True, kw_only=True):
    """`tiles` in a row of the matrix, `block` rows of each; `order`: instead, rows of a matrix that all sizes
    of tiles divide (0: as many as `tiles` says); `grid`, rows x columns of processes; `trees`, of
    which `none` is a message for each recipient, in segments of `segment` bytes (0: whole); `builds`;
    `early`: readers start before the data are forwarded; `priorities`: of Cholesky's tasks; `hold`: StarPU's
    ready data wait for further readers, which those of the thesis do not; `ahead`: tasks that a process
    submits ahead (0: all).
    """

    tiles: tuple[Positive, ...] = (32,)
    block: tuple[Positive, ...] = (128,)
    order: Natural = 0
    grid: tuple[str | int, ...] = ("2x2",)
    trees: tuple[str, ...] = ("none", "binomial", "binary", "two")
    builds: tuple[Build, ...] = ("inline", "starpu")
    segment: SizeOrNone = 0
    early: tuple[bool, ...] = (True,)
    priorities: tuple[bool, ...] = (True,)
    hold: tuple[bool, ...] = (True,)
    ahead: Natural = 0


class QrKeys(FactorizationKeys, frozen=True, kw_only=True):
    """Those of Cholesky's, and `columns` of tiles, or where that is 0 `columns_per_row`, which makes matrices
    of several sizes alike.
    """

    columns: Natural = 0
    columns_per_row: Positive = 1


class _ProcessSeats(msgspec.Struct, frozen=True):
    """Cores of the processes of one host, one to communicate and `each` to compute, and the nodes of the data
    of each.
    """

    comm_cores: tuple[int, ...]
    comp_cores: tuple[tuple[int, ...], ...]
    nodes: tuple[tuple[int, int], ...]

    @property
    def each(self) -> int:
        return min(map(len, self.comp_cores))

    @property
    def shared(self) -> bool:
        """Whether a core computes for several processes."""
        return len({core for own in self.comp_cores for core in own}) < sum(map(len, self.comp_cores))


def expand(plan: Plan, machine: Machine, task: Task) -> Expansion:
    """Each tree in each build on matrices of each size, and a register-only control."""
    if plan.peer_core is not None:
        raise UsageError(
            "the processes of a host share one communication core, or have one each",
            field="peer_core",
            value=plan.peer_core,
            hint="leave it out; comm_cores and comp_cores name cores",
        )
    keys: FactorizationKeys = plan.keys
    points, notes, shared = [], list[Note](), list[Note]()
    for grid in dict.fromkeys(keys.grid):
        rows, columns = parse_grid(grid)
        if rows * columns > MOST_RANKS:
            hint = f"at most {MOST_RANKS}"
            raise UsageError(f"has {rows * columns} processes", field="grid", value=grid, hint=hint)
        seats = _seats(plan, machine, rows * columns)
        counts, fewer = core_counts(plan.n, seats.each)
        points += [
            _point(plan, seats, 1 if program.build == "inline" else n, program)
            for program in _programs(keys, task, rows, columns)
            for n in (counts if program.build == "starpu" else counts[:1])
        ]
        notes += fewer
        shared += _notes(seats, machine)
    notes = list(dict.fromkeys((*machine_notes(machine), *shared, *notes)))
    control = _control(plan, machine) if plan.control else ()
    return with_notes(Expansion(points=(*control, *points), notes=()), notes)


def _programs(keys: FactorizationKeys, task: Task, rows: int, columns: int) -> Iterator[FactorizationProgram]:
    for tree in keys.trees:
        if tree != NONE:
            check_tree(tree)
    wide, per_row = (keys.columns, keys.columns_per_row) if isinstance(keys, QrKeys) else (0, 1)
    trees = keys.trees if rows * columns > 1 else keys.trees[:1]
    matrices = _matrices(keys)
    variants = product(*map(dict.fromkeys, (_priorities(keys, task), keys.early, keys.hold)))
    ways = product(dict.fromkeys(keys.builds), dict.fromkeys(trees))
    for (tiles, block), (priorities, early, hold), (build, tree) in product(matrices, variants, ways):
        if build == "inline" and hold != keys.hold[0]:
            continue  # all its tasks are submitted before the first one runs
        yield FactorizationProgram(
            task=task,
            build=build,
            ranks=rows * columns,
            tiles=tiles,
            columns=wide or per_row * tiles,
            block=block,
            grid_rows=rows,
            grid_columns=columns,
            tree="flat" if tree == NONE else tree,
            segment=keys.segment,
            window=keys.ahead,
            broadcasts=tree != NONE,
            early=early,
            priorities=priorities,
            hold=hold,
        )


def _matrices(keys: FactorizationKeys) -> Iterator[tuple[int, int]]:
    """Tiles in a row, and rows of each."""
    if not keys.order:
        yield from product(*map(dict.fromkeys, (keys.tiles, keys.block)))
        return
    for block in dict.fromkeys(keys.block):
        if keys.order % block:
            hint = f"give a multiple of {lcm(*keys.block)}, or 0"
            raise UsageError(f"is not a multiple of {block} rows", field="order", value=keys.order, hint=hint)
        yield keys.order // block, block


def _priorities(keys: FactorizationKeys, task: Task) -> tuple[bool, ...]:
    """QR's tasks have none."""
    return keys.priorities if task == "cholesky" else keys.priorities[:1]


def _seats(plan: Plan, machine: Machine, ranks: int) -> _ProcessSeats:
    """Where there are two cores for each process of a host, each has its own, and NUMA nodes of its own where
    these can be shared out; else they communicate on one core, and compute on the others in turns.
    """
    core, node = single_place(plan, machine)
    there = placement.seats(machine, core, comp_cores=plan.comp_cores, peer_core=core)
    if there is None:
        raise no_core_left(machine)
    pool = there.comp_cores
    local = -(-ranks // machine.hosts)
    if _leaves_places_open(plan) and (own := _node_seats(machine, local)) is not None:
        return own
    comm = (core,) * local
    if not plan.comp_cores and len(pool) + 1 >= 2 * local:
        rest = len(pool) + 1 - local
        comm, pool = (core, *pool[rest:]), pool[:rest]
    if len(pool) < local:
        return _ProcessSeats(comm, tuple((pool[rank % len(pool)],) for rank in range(local)), (node,) * local)
    each = len(pool) // local
    return _ProcessSeats(
        comm, tuple(pool[rank * each : (rank + 1) * each] for rank in range(local)), (node,) * local
    )


def _leaves_places_open(plan: Plan) -> bool:
    usual = Plan(name=plan.name, experiment=plan.experiment)
    places = ("comp_nodes", "comm_nodes", "comm_cores", "comp_cores")
    return all(getattr(plan, name) == getattr(usual, name) for name in places)


def _node_seats(machine: Machine, local: int) -> _ProcessSeats | None:
    """As many NUMA nodes for each process of a host, and all their cores: the thread that fills the tiles is
    there. None for a single process, and where nodes or cores do not suffice.
    """
    cores = placement.usable(machine)
    nodes = [
        node.number for node in machine.ordinary_nodes if any(core.node == node.number for core in cores)
    ]
    if local < 2 or len(nodes) % local:
        return None
    share = len(nodes) // local
    groups = [nodes[rank * share : (rank + 1) * share] for rank in range(local)]
    own = [[core.number for core in cores if core.node in group] for group in groups]
    if min(map(len, own)) < 2:
        return None
    return _ProcessSeats(
        tuple(numbers[-1] for numbers in own),
        tuple(tuple(numbers[:-1]) for numbers in own),
        tuple((group[0], group[0]) for group in groups),
    )


def _point(plan: Plan, seats: _ProcessSeats, n: int, program: FactorizationProgram) -> Point:
    local = len(seats.comm_cores)
    ranks = [
        Placement(
            rank=rank,
            comp_cores=seats.comp_cores[rank % local][:n],
            comm_cores=(seats.comm_cores[rank % local],),
            comp_node=seats.nodes[rank % local][0],
            comm_node=seats.nodes[rank % local][1],
        )
        for rank in range(program.ranks)
    ]
    return point_of(
        plan,
        seats.nodes[0],
        n=n,
        comm_core=seats.comm_cores[0],
        metric="latency",
        comp_cores=tuple(sorted({core for own in ranks for core in own.comp_cores})),
        comm_cores=seats.comm_cores[:1],
        peer_cores=tuple(dict.fromkeys(seats.comm_cores[1:] or seats.comm_cores)),
        computing_ranks="all",
        placements=tuple(ranks) if local > 1 else (),
        workload=program,
    )


def _control(plan: Plan, machine: Machine) -> tuple[Point, ...]:
    core, node = single_place(plan, machine)
    seats = placement.seats(machine, core, comp_cores=plan.comp_cores)
    return () if seats is None else control_of(plan, seats, node)


def _notes(seats: _ProcessSeats, machine: Machine) -> list[Note]:
    if not seats.shared:
        return []
    cores = len(placement.usable(machine))
    reason = (
        f"{len(seats.comp_cores)} processes share {cores} cores of a host: they compute in turns "
        "(scheduling), and times compare trees only where no process waits for its turn"
    )
    return [Note(what="cores of its own for each process", reason=reason)]
