"""Points of `forwarding`: every kernel, tree, number of computing cores and size; where the ranks are."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Literal

import msgspec

from elbowroom.broadcast.simulated import check_tree
from elbowroom.errors import UsageError
from elbowroom.experiments.common.points import (
    Nodes,
    control_of,
    elsewhere,
    machine_notes,
    placed,
    point_of,
    seats_of,
    with_notes,
)
from elbowroom.machine.topology import Machine
from elbowroom.plan import placement
from elbowroom.plan.axes import core_counts, single_place, with_neighbours
from elbowroom.plan.file import Natural, Plan, SizeOrNone
from elbowroom.plan.kernels import find
from elbowroom.plan.placement import Seats
from elbowroom.points.broadcasts import INNER, LEAST_RANKS, Forwarding
from elbowroom.points.point import Expansion, Note, Point

NAME = "forwarding"

RANKS = 16
"""On one host: the fewest ranks with which the first recipient forwards more copies in a binomial tree (3)
than in a binary one (2).
"""

TREES = ("flat", "binary", "binomial", "chain")

Computation = Literal["triad", "gemm"]


class ForwardingKeys(msgspec.Struct, frozen=True, kw_only=True):
    """`trees`, `computations` of the forwarding rank, `ranks` (0: one a host; 16 on fewer than three hosts),
    `segment` of a broadcast, and `model`, a file whose prediction is compared with what is measured.
    """

    trees: tuple[str, ...] = TREES
    computations: tuple[Computation, ...] = ("triad", "gemm")
    ranks: Natural = 0
    segment: SizeOrNone = 0
    model: str = ""


class Ranks(msgspec.Struct, frozen=True, kw_only=True):
    """Where ranks are: the forwarding one's cores, and the communication core of each other rank."""

    comm: int
    pool: tuple[int, ...]
    others: tuple[int, ...]

    @property
    def shared(self) -> bool:
        """Whether communication threads of two ranks share a core."""
        return len({self.comm, *self.others}) <= len(self.others)


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Every computation with each tree, number of computing cores and size; and a register-only control."""
    _refuse(plan)
    core, node = single_place(plan, machine)
    seats = seats_of(plan, machine, core)
    keys: ForwardingKeys = plan.keys
    ranks = _ranks(plan, machine)
    seated = _seated(seats, ranks, machine)
    counts, notes = core_counts(plan.n, len(seated.pool))
    sizes = with_neighbours(plan.sizes, plan.around)
    axes = product(dict.fromkeys(keys.computations), dict.fromkeys(keys.trees), counts, sizes)
    points = tuple(
        _point(plan, machine, seated, n, size, node, kernel, tree) for kernel, tree, n, size in axes
    )
    control = control_of(plan, seats, node, max(sizes)) if plan.control else ()
    notes = [*machine_notes(machine), *_shared_notes(seated, machine, ranks), *notes]
    return with_notes(Expansion(points=(*control, *points), notes=()), notes)


def _refuse(plan: Plan) -> None:
    if plan.kernels != ("triad",) or plan.sweeps:
        raise UsageError(
            "is not an axis of this plan, which has `computations`",
            field="sweeps" if plan.sweeps else "kernels",
            value=len(plan.sweeps) if plan.sweeps else ",".join(plan.kernels),
            hint="leave it out, and set `computations`: triad, gemm",
        )
    if plan.metric == "latency":
        hint = "leave it out"
        raise UsageError(
            "broadcasts are measured by their bandwidth", field="metric", value=plan.metric, hint=hint
        )
    for tree in plan.keys.trees:
        check_tree(tree)


def _ranks(plan: Plan, machine: Machine) -> int:
    """As the plan says, else one a host, and on fewer than three hosts several on each."""
    ranks: int = plan.keys.ranks or (machine.hosts if machine.hosts >= LEAST_RANKS else RANKS)
    if ranks < LEAST_RANKS:
        hint = f"give {LEAST_RANKS} or more: a root, a rank that forwards, a leaf"
        raise UsageError("no rank would forward", field="ranks", value=ranks, hint=hint)
    return ranks


def _seated(seats: Seats, ranks: int, machine: Machine) -> Ranks:
    """With one rank a host, all on the same cores of theirs. Of several on a host, those that only pass
    broadcasts on have cores of their own where half of the cores are left to compute; else they share one.
    """
    comm, pool = seats.comm_cores[0], seats.comp_cores
    if ranks <= machine.hosts:
        return Ranks(comm=comm, pool=pool, others=(comm,) * (ranks - 1))
    shared = seats.peer_cores[0]
    more = ranks - 1 - (shared != comm)
    if shared != comm and len(pool) - more >= len(placement.usable(machine)) / 2:
        return Ranks(comm=comm, pool=pool[:-more], others=(shared, *pool[-more:]))
    return Ranks(comm=comm, pool=pool, others=(shared,) * (ranks - 1))


def _point(
    plan: Plan,
    machine: Machine,
    seated: Ranks,
    n: int,
    size: int,
    node: Nodes,
    kernel: Computation,
    tree: str,
) -> Point:
    cores = seated.pool[:n]
    comm = [*seated.others[:INNER], seated.comm, *seated.others[INNER:]]
    keys: ForwardingKeys = plan.keys
    return point_of(
        plan,
        node,
        n=n,
        n_other=elsewhere(cores, machine),
        size=size,
        comm_core=seated.comm,
        metric="bandwidth",
        comp_cores=cores,
        comm_cores=(seated.comm,),
        peer_cores=() if seated.shared else seated.others,
        working_set=plan.working_set or placement.working_set(find("triad"), n, node[0], machine),
        # The forwarding rank computes; no other one does.
        placements=placed(
            [(cores if rank == INNER else (), (core,)) for rank, core in enumerate(comm)], node
        ),
        scheduling=plan.scheduling,
        workload=Forwarding(kernel=kernel, tree=tree, ranks=len(comm), segment=keys.segment),
    )


def _shared_notes(seated: Ranks, machine: Machine, ranks: int) -> list[Note]:
    notes = []
    if machine.hosts < 2:
        reason = (
            f"one host: the copies of all {ranks} ranks go through its memory, not those of one rank only"
        )
        notes.append(Note(what="memory of its own for the forwarding rank", reason=reason))
        users = Counter((seated.comm, *seated.others))
        if seated.shared:
            reason = (
                f"too few cores: the communication threads of {max(users.values())} ranks take turns on one, "
                "so a broadcast takes longer than on as many nodes"
            )
            notes.append(Note(what="a core of its own for each rank", reason=reason))
    return notes
