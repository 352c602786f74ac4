"""A plan's axes multiplied out for a machine: the points, and notes for what this machine cannot answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import msgspec

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.plan import placement
from elbowroom.plan.file import Plan, PlanSweep
from elbowroom.plan.kernels import Kernel, find
from elbowroom.points.point import Expansion, Metric, Note, Point
from elbowroom.quantities import plural

LATENCY_BELOW = 64 * 1024  # with `metric = "auto"`: latency below, bandwidth from there
AROUND_FROM = 64
LINE = 64  # bytes: parts of a split array begin with one


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Points in the plan's order, each once, with a register-only control (method.md, rule 15); notes once
    each.
    """
    if not placement.usable(machine):
        raise UsageError(
            "no core is usable", field="cpuset", value=list(machine.allowed), hint="allow at least two"
        )
    if plan.computing_ranks == "all" and machine.hosts < 2:
        raise UsageError(
            "needs two hosts: on one host the ranks would compute on the same cores",
            field="computing_ranks",
            value="all",
            hint="name two hosts: --hosts a,b",
        )
    points: dict[str, Point] = {}
    notes: dict[str, Note] = {}
    for sweep in plan.sweeps or (PlanSweep(),):
        for item in _sweep(plan, sweep, machine):
            if isinstance(item, Note):
                notes.setdefault(item.what, item)
            else:
                points.setdefault(item.id, item)
    chosen = tuple(points.values())
    return Expansion(points=with_control(chosen) if plan.control else chosen, notes=tuple(notes.values()))


def is_control(point: Point, points: Sequence[Point]) -> bool:
    """Whether a point can tell if the machine was quiet: prime counting at the largest n and size of the
    run.
    """
    if point.role == "control":
        return True
    # The kernel first: of most points nothing is then looked at, and plans can have thousands.
    return (
        point.kernel == "prime"
        and point.n == max(item.n for item in points)
        and point.size == max(item.size for item in points)
    )


def with_control(points: tuple[Point, ...]) -> tuple[Point, ...]:
    """The points, and behind them a register-only control at the largest n and size where none of them is
    one. Where nothing computes (`--kernels none`) there is no control: it would have no core.
    """
    if not any(point.n for point in points) or any(is_control(point, points) for point in points):
        return points
    model = max(points, key=lambda point: (point.n, point.size, -point.cursor))
    control = msgspec.structs.replace(
        model, kernel="prime", cursor=1, working_set=0, role="control", core_khz=None, uncore_khz=None
    )
    return (*points, control)


def _sweep(plan: Plan, sweep: PlanSweep, machine: Machine) -> Iterator[Point | Note]:
    kernels = sweep.kernels or plan.kernels
    cursors = sweep.cursors or plan.cursors
    sizes = with_neighbours(sweep.sizes or plan.sizes, plan.around)
    nodes, notes = node_pairs(plan, machine)
    yield from notes
    cores, notes = comm_cores(plan, machine)
    yield from notes
    for core, threads in product(cores, sweep.comm_threads or plan.comm_threads):
        seats = placement.seats(
            machine,
            core,
            threads,
            comp_cores=plan.comp_cores,
            peer_core=plan.peer_core,
            socket_only=plan.pool == "socket",
        )
        if seats is None:
            what = plural(threads, "communication thread")
            yield Note(
                what=what,
                reason=f"only {len(placement.usable(machine))} usable cores here, none left to compute",
            )
            continue
        counts, notes = core_counts(sweep.n or plan.n, len(seats.comp_cores))
        yield from notes
        for kernel, cursor, n, size, (comp_node, comm_node) in product(
            kernels, cursors, counts, sizes, nodes
        ):
            fact = find(kernel)
            if cursor != 1 and (fact is None or not fact.uses_cursor):
                continue
            yield Point(
                plan=plan.name,
                kernel=kernel,
                n=0 if fact is None else n,
                size=size,
                comp_node=comp_node,
                comm_node=comm_node,
                comm_core=core,
                metric=metric_of(plan, size),
                comp_cores=() if fact is None else seats.comp_cores[:n],
                comm_cores=seats.comm_cores,
                peer_cores=seats.peer_cores,
                pattern=plan.pattern,
                cursor=cursor,
                working_set=_working_set(plan, fact, n, comp_node, machine),
                reuse=plan.reuse,
                computing_ranks=plan.computing_ranks,
                sequence=plan.sequence,
                window=plan.window,
                observe=plan.observe,
                scheduling=plan.scheduling,
            )


def _working_set(plan: Plan, kernel: Kernel | None, n: int, node: int, machine: Machine) -> int:
    """Bytes per computing core; of arrays split among the cores (`strong`) its part of those of one core."""
    if plan.scaling == "weak" or kernel is None or kernel.arrays == 0:
        return plan.working_set or placement.working_set(kernel, n, node, machine)
    whole = plan.working_set or placement.working_set(kernel, 1, node, machine)
    return max(LINE, whole // max(n, 1) // LINE * LINE)


def metric_of(plan: Plan, size: int) -> Metric:
    """The plan's metric; `auto` is latency of round trips below 64 KiB, and bandwidth from there and of
    patterns without round trips.
    """
    if plan.metric != "auto":
        return plan.metric
    return "latency" if plan.pattern == "pingpong" and size < LATENCY_BELOW else "bandwidth"


def with_neighbours(sizes: tuple[int, ...], around: int) -> tuple[int, ...]:
    """The sizes and, for powers of two from 64 B, those a few bytes less and more, sorted
    (docs/design/method.md, rule 13).
    """
    chosen = set(sizes)
    if around:
        for size in sizes:
            if size >= AROUND_FROM and size & (size - 1) == 0:
                chosen |= {size - around, size + around}
    return tuple(sorted(chosen))


def single_place(
    plan: Plan, machine: Machine, *more: tuple[str, Sequence[object]]
) -> tuple[int, tuple[int, int]]:
    """The communication thread's core and the nodes of both sides' data; UsageError unless the plan names
    one of each, and of `more`, keys with their values.
    """
    if not placement.usable(machine):
        raise UsageError("no core is usable", field="cpuset", hint="allow at least two")
    cores, _ = comm_cores(plan, machine)
    pairs, _ = node_pairs(plan, machine)
    for field, choices in (("comm_cores", cores), ("comp_nodes", pairs), *more):
        if len(choices) != 1:
            raise UsageError(
                "must be a single value in this plan",
                field=field,
                value=list(choices),
                hint="name one; run once for each of the others",
            )
    return cores[0], pairs[0]


def core_counts(wanted: tuple[int | str, ...], most: int) -> tuple[tuple[int, ...], list[Note]]:
    """Numbers of computing cores from 1 to `most`, rising; a note for each that is more than there are."""
    words = {
        "every": range(1, most + 1),
        "few": (max(1, round(most / 7)),),
        "half": (max(1, most // 2),),
        "all": (most,),
    }
    counts: set[int] = set()
    notes = []
    for item in wanted:
        if isinstance(item, str):
            counts.update(words[item])
        elif item <= most:
            counts.add(item)
        else:
            plural = "core is" if most == 1 else "cores are"
            notes.append(Note(what=f"n = {item}", reason=f"only {most} computing {plural} free here"))
    return tuple(sorted(counts)), notes


def node_pairs(plan: Plan, machine: Machine) -> tuple[list[tuple[int, int]], list[Note]]:
    """(comp_node, comm_node) pairs, each once, and notes for words that mean nothing here."""
    notes: list[Note] = []
    pairs: dict[tuple[int, int], None] = {}
    for comp in _nodes(plan.comp_nodes, machine, notes):
        for comm in _nodes(plan.comm_nodes, machine, notes, same=comp):
            pairs[(comp, comm)] = None
    return list(pairs), notes


def _nodes(
    wanted: tuple[int | str, ...], machine: Machine, notes: list[Note], same: int | None = None
) -> tuple[int, ...]:
    numbers: dict[int, None] = {}
    for item in wanted:
        if isinstance(item, int):
            numbers[item] = None
        elif item == "same" and same is not None:
            numbers[same] = None
        elif item == "every":
            numbers.update(dict.fromkeys(node.number for node in machine.nodes))
        elif item == "near":
            numbers[placement.near_node(machine)] = None
        elif (far := placement.far_node(machine)) is not None:
            numbers[far] = None
        else:
            notes.append(Note(what="data far from the NIC", reason="this machine has one NUMA node"))
    return tuple(numbers)


def comm_cores(plan: Plan, machine: Machine) -> tuple[tuple[int, ...], list[Note]]:
    """Cores of rank 0's first communication thread, each once, and notes for words that mean nothing here."""
    cores: dict[int, None] = {}
    notes: list[Note] = []
    for item in plan.comm_cores:
        if isinstance(item, int):
            cores[item] = None
        elif item == "last" or placement.shares_core(machine):
            cores[placement.default_comm_core(machine, plan.comp_cores)] = None
        else:
            node = placement.near_node(machine) if item == "near" else placement.far_node(machine)
            core = None if node is None else placement.last_core_of(machine, node)
            if core is not None:
                cores[core] = None
            else:
                what = f"communication thread {item} {'from' if item == 'far' else 'to'} the NIC"
                reason = (
                    "this machine has one NUMA node" if node is None else f"no usable core on node {node}"
                )
                notes.append(Note(what=what, reason=reason))
    if not cores:
        # A plan that wants only what this machine lacks is measured from the default core.
        core = placement.default_comm_core(machine, plan.comp_cores)
        cores[core] = None
        notes = [
            msgspec.structs.replace(note, reason=f"{note.reason}; core {core} communicates") for note in notes
        ]
    return tuple(cores), notes


MOST_MESSAGES = 250_000
"""Messages of one phase, each of which is kept; the probe has the same limit."""


def due_messages(expansion: Expansion, period: float) -> Expansion:
    """The points with messages that are due every `period` seconds, and their latency as the metric.

    UsageError where a point has no round trips, or too many messages.
    """
    return msgspec.structs.replace(expansion, points=tuple(_due(point, period) for point in expansion.points))


def _due(point: Point, period: float) -> Point:
    if point.pattern != "pingpong" or not point.workload.facts.beside_messages:
        raise UsageError(
            f"is only valid for ping-pongs beside a kernel, and {point.id} is not one",
            field="message_period",
            value=period,
            hint="leave it out, or: elbowroom run sizes",
        )
    if point.window / period > MOST_MESSAGES:
        raise UsageError(
            f"gives more than {MOST_MESSAGES} messages in a window of {point.window:g} s, and each is kept",
            field="message_period",
            value=period,
            hint="give a longer period, or a shorter window and more repetitions",
        )
    return msgspec.structs.replace(point, metric="latency", message_period=period)
