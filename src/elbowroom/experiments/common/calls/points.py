"""Points of calls beside a computation: every call, form, policy, size, kernel, cores and number of ranks;
where ranks are that communicate from a core on which they compute, and their progress threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Annotated

import msgspec
from msgspec import Meta

from elbowroom.errors import UsageError
from elbowroom.experiments.common.points import control_of, machine_notes, placed, point_of, with_notes
from elbowroom.machine.topology import Machine
from elbowroom.plan import placement
from elbowroom.plan.axes import core_counts, node_pairs, with_neighbours
from elbowroom.plan.file import Natural, Plan
from elbowroom.plan.kernels import find
from elbowroom.points.calls import (
    COLLECTIVES,
    NEIGHBOURS,
    CallBesideComputation,
    Collective,
    Form,
    Late,
    Messages,
    Operation,
    Progress,
)
from elbowroom.points.point import Expansion, Note, Point
from elbowroom.quantities import format_cores


class RankCores(msgspec.Struct, frozen=True, kw_only=True):
    """The cores of each rank, the first one communicating; `per_host` ranks on each host, in order of rank.
    `shared`: ranks of a host take turns on a core.
    """

    of_rank: tuple[tuple[int, ...], ...]
    per_host: int
    shared: bool = False

    @property
    def ranks(self) -> int:
        return len(self.of_rank)

    @property
    def used(self) -> frozenset[int]:
        """All cores of a host that ranks use."""
        return frozenset(core for own in self.of_rank[: self.per_host] for core in own)


def rank_cores(machine: Machine, ranks: int, n: int, named: tuple[int, ...], scheduling: bool) -> RankCores:
    """`n` cores (at least one) for each rank, in logical order, or of those that are `named`.

    UsageError for more ranks than cores, unless `scheduling`: then ranks take turns.
    """
    cores = named or tuple(core.number for core in placement.usable(machine))
    per_host = -(-ranks // machine.hosts)
    each = max(1, n)
    shared = per_host * each > len(cores)
    if not cores or (shared and not scheduling):
        raise UsageError(
            f"{per_host} ranks on a host need {per_host * each} cores, and there are {len(cores)}: "
            "ranks without a core of their own take turns",
            field="ranks",
            value=ranks,
            hint="give fewer ranks, or --set scheduling=true to measure the scheduler on purpose",
        )
    local = [tuple(cores[(rank * each + i) % len(cores)] for i in range(each)) for rank in range(per_host)]
    return RankCores(
        of_rank=tuple(local[rank % per_host] for rank in range(ranks)), per_host=per_host, shared=shared
    )


def progress_cores(machine: Machine, cores: RankCores, named: tuple[int, ...]) -> tuple[int, ...] | Note:
    """A core for the progress thread of each rank; ranks of a host share them if there are fewer. A note
    where none is left. UsageError for a named core that computes or does not exist.
    """
    usable = [core.number for core in placement.usable(machine)]
    for core in named:
        if core not in usable:
            hint = f"cores here: {format_cores(sorted(usable))}"
            raise UsageError(
                f"core {core} does not exist on this machine", field="progress_cores", value=core, hint=hint
            )
        if core in cores.used:
            raise UsageError(
                f"progress core {core} is among the computing cores",
                field="progress_cores",
                value=core,
                hint="name a core that nothing computes on, or leave computing cores free: --comp-cores",
            )
    free = named or tuple(core for core in usable if core not in cores.used)
    if not free:
        ranks = (
            f"{cores.per_host} ranks compute on {'both' if len(usable) == 2 else f'all {len(usable)}'} cores"
        )
        return Note(what="progress thread", reason=f"{ranks}, so no core is left for it")
    return tuple(free[rank % cores.per_host % len(free)] for rank in range(cores.ranks))


Duration = Annotated[float, Meta(gt=0, le=60)]
Neighbours = Annotated[int, Meta(ge=NEIGHBOURS[0], le=NEIGHBOURS[1])]


class CallKeys(msgspec.Struct, frozen=True, kw_only=True):
    """`forms` of a call, policies of `progress`, `ranks` (0: one a host, two at least), seconds of `periods`
    between two calls of MPI_Test, `progress_cores` of a host's progress threads (empty: chosen), `ratio` of
    the computation alone over the call alone, `iterations` in a repetition (0: as the window has room), and
    `late_rank`, which starts each call `late` seconds after the others (0: none is late).
    """

    forms: tuple[Form, ...] = ("blocking", "nonblocking", "persistent")
    progress: tuple[Progress, ...] = ("none", "test", "thread", "library")
    ranks: tuple[Natural, ...] = (0,)
    periods: tuple[Duration, ...] = (20e-6,)
    progress_cores: tuple[Natural, ...] = ()
    ratio: Annotated[float, Meta(gt=0, le=1000)] = 1.0
    iterations: Natural = 0
    late_rank: Natural = 0
    late: Annotated[float, Meta(ge=0, le=10)] = 0.0


class CollectiveKeys(CallKeys, frozen=True, kw_only=True):
    """`operations`: the collectives; and the keys of all calls."""

    operations: tuple[Collective, ...] = COLLECTIVES


class MessageKeys(CallKeys, frozen=True, kw_only=True):
    """`operations`: ping-pong of pairs of ranks, exchange with `neighbours`; and the keys of all calls."""

    operations: tuple[Messages, ...] = ("pingpong", "exchange")
    neighbours: tuple[Neighbours, ...] = (2, 6)


class Axes(msgspec.Struct, frozen=True, kw_only=True):
    """One combination of what all calls have: where the ranks are, kernel, cursor and size."""

    cores: RankCores
    kernel: str
    cursor: int
    size: int
    node: tuple[int, int]


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Every call that the plan names; notes for policies that this machine has no core for; and a
    register-only control.
    """
    _refuse(plan)
    notes: dict[str, Note] = {}
    points: dict[str, Point] = {}
    pairs, node_notes = node_pairs(plan, machine)
    for ranks in dict.fromkeys(count or max(2, machine.hosts) for count in plan.keys.ranks):
        most = _most_cores(plan, machine, ranks)
        counts, count_notes = core_counts(plan.n, most)
        notes |= {note.what: note for note in (*node_notes, *count_notes)}
        for kernel, cursor, node in product(plan.kernels, plan.cursors, pairs):
            fact = find(kernel)
            if cursor != 1 and (fact is None or not fact.uses_cursor):
                continue
            for n in counts if fact is not None else (0,):
                cores = rank_cores(machine, ranks, n, plan.comp_cores, plan.scheduling)
                for size in with_neighbours(plan.sizes, plan.around):
                    axes = Axes(cores=cores, kernel=kernel, cursor=cursor, size=size, node=node)
                    for item in _calls(plan, machine, axes):
                        if isinstance(item, Note):
                            notes.setdefault(item.what, item)
                        else:
                            points.setdefault(item.id, item)
    expansion = Expansion(points=(*_control(plan, machine, pairs[0]), *points.values()), notes=())
    return with_notes(expansion, (*machine_notes(machine), *notes.values()))


def _control(plan: Plan, machine: Machine, node: tuple[int, int]) -> tuple[Point, ...]:
    core = placement.default_comm_core(machine, plan.comp_cores)
    seats = placement.seats(machine, core) if plan.control else None
    return () if seats is None else control_of(plan, seats, node)


def _refuse(plan: Plan) -> None:
    """UsageError for keys that place communication threads: here a rank communicates where it computes."""
    for field, value, default in (
        ("comm_cores", plan.comm_cores, ("last",)),
        ("peer_core", plan.peer_core, None),
        ("sweeps", plan.sweeps, ()),
        ("comm_threads", plan.comm_threads, (1,)),
    ):
        if value != default:
            raise UsageError(
                "is not a key of this plan: each rank communicates from its first computing core",
                field=field,
                value=",".join(map(str, value)) if isinstance(value, tuple) else value,
                hint="leave it out; --comp-cores names the cores of all ranks",
            )
    keys: CallKeys = plan.keys
    for ranks in keys.ranks:
        if keys.late and keys.late_rank >= (ranks or 2):
            raise UsageError(
                f"is not a rank: the number of ranks is {ranks or 2}",
                field="late_rank",
                value=keys.late_rank,
                hint=f"give 0 to {(ranks or 2) - 1}",
            )
        if ranks == 1:
            raise UsageError(
                "one rank has no other to communicate with", field="ranks", value=ranks, hint="give 2 or more"
            )


def _most_cores(plan: Plan, machine: Machine, ranks: int) -> int:
    """Computing cores that each rank can have."""
    cores = len(plan.comp_cores or placement.usable(machine))
    return max(1, cores // -(-ranks // machine.hosts))


def _calls(plan: Plan, machine: Machine, axes: Axes) -> Iterator[Point | Note]:
    keys: CallKeys = plan.keys
    forms = dict.fromkeys(keys.forms)
    for operation, neighbours, form in ((*op, form) for op in _operations(keys) for form in forms):
        if operation == "barrier" and axes.size != min(plan.sizes):
            continue
        policies: tuple[Progress, ...] = ("none",) if form == "blocking" else keys.progress
        for progress in dict.fromkeys(policies):
            cores: tuple[int, ...] = ()
            if progress == "thread":
                chosen = progress_cores(machine, axes.cores, keys.progress_cores)
                if isinstance(chosen, Note):
                    yield chosen
                    continue
                cores = chosen
            for period in dict.fromkeys(keys.periods if progress == "test" else keys.periods[:1]):
                workload = CallBesideComputation(
                    operation=operation,
                    form=form,
                    progress=progress,
                    ranks=axes.cores.ranks,
                    neighbours=neighbours,
                    period=period,
                    progress_cores=cores,
                    ratio=keys.ratio,
                    iterations=keys.iterations,
                    late=Late(rank=keys.late_rank, seconds=keys.late) if keys.late else None,
                    shared=axes.cores.shared,
                )
                yield _point(plan, machine, axes, workload)


def _operations(keys: CallKeys) -> Iterator[tuple[Operation, int]]:
    """Each operation with its numbers of neighbours, 2 where it has none."""
    assert isinstance(keys, CollectiveKeys | MessageKeys)
    operations: tuple[Operation, ...] = keys.operations
    for operation in dict.fromkeys(operations):
        several: tuple[int, ...] = (2,)
        if operation == "exchange" and isinstance(keys, MessageKeys):
            several = keys.neighbours
        for neighbours in dict.fromkeys(several):
            yield operation, neighbours


def _point(plan: Plan, machine: Machine, axes: Axes, workload: CallBesideComputation) -> Point:
    fact, first = find(axes.kernel), axes.cores.of_rank[0]
    n = 0 if fact is None else len(first)
    ranks = axes.cores.of_rank if machine.hosts < 2 or axes.cores.per_host > 1 else ()
    return point_of(
        plan,
        axes.node,
        kernel=axes.kernel,
        n=n,
        size=0 if workload.operation == "barrier" else axes.size,
        comm_core=first[0],
        metric="latency",
        comp_cores=first[:n],
        comm_cores=first[:1],
        peer_cores=axes.cores.of_rank[1][:1],
        cursor=axes.cursor,
        working_set=_working_set(plan, axes, machine),
        computing_ranks="all",
        placements=placed([(own[:n], own[:1]) for own in ranks], axes.node),
        sequence=("B",) if fact is None else ("B", "A", "AB"),
        scheduling=plan.scheduling,
        workload=workload,
    )


def _working_set(plan: Plan, axes: Axes, machine: Machine) -> int:
    """Bytes per computing core, so that those of all ranks of a host fit in memory."""
    threads = axes.cores.per_host * max(1, len(axes.cores.of_rank[0]))
    return plan.working_set or placement.working_set(find(axes.kernel), threads, axes.node[0], machine)
