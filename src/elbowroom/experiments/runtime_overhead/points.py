"""What StarPU-MPI adds to the latency of MPI, at all sizes and placements (Denis et al. 2021, sections 5.1 to
5.3, Figure 8; Swartvagher 2022, 5.4.1 and 5.4.2, Figure 5.12).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from elbowroom.errors import UsageError
from elbowroom.experiments.common.points import machine_notes, placed, point_of, with_notes
from elbowroom.machine.topology import Machine
from elbowroom.plan import placement
from elbowroom.plan.axes import comm_cores, metric_of, node_pairs, with_neighbours
from elbowroom.plan.axes import expand as multiply
from elbowroom.plan.file import Plan, Positive
from elbowroom.points.point import Expansion, Note, Phase, Point
from elbowroom.points.program import RuntimeProgram

PHASES: tuple[Phase, ...] = ("B", "AB", "AB", "B")
"""By MPI and through StarPU-MPI, in the same processes, threads and memory."""


class OverheadKeys(msgspec.Struct, frozen=True, kw_only=True):
    """`workers`: StarPU's are paused while messages are measured, or poll on all cores that are left, as they
    do by default. `backoffs`: the most nops between two of their polls (empty: StarPU's own, 32).
    `scheduler`: StarPU's (its own default when empty); the workers of `eager` share one list.
    """

    workers: Annotated[tuple[Literal["paused", "polling"], ...], Meta(min_length=1)] = ("paused",)
    backoffs: tuple[Positive, ...] = ()
    scheduler: str = ""

    @property
    def program(self) -> RuntimeProgram:
        """What runs where workers are paused."""
        return RuntimeProgram(task="overhead", scheduler=self.scheduler)


OWN_CORES = 2
"""Cores of a rank where there are enough: one for StarPU's communication thread, one for the thread that
waits for its messages (section 5.1).
"""


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Every size with the data on each node and the thread on each core; a register-only control."""
    _refuse(plan, machine)
    pairs, notes = node_pairs(plan, machine)
    cores, more = comm_cores(plan, machine)
    points: dict[str, Point] = {}
    for core, data in product(cores, dict.fromkeys(comp for comp, _ in pairs)):
        seats = _seats(plan, machine, core)
        for size in with_neighbours(plan.sizes, plan.around):
            point = _point(plan, machine, core, data, size, *seats)
            for item in _with_workers(point, plan, machine):
                points.setdefault(item.id, item)
    notes = [*machine_notes(machine), *notes, *more, *_no_workers(points.values(), plan)]
    if not points:
        raise UsageError(
            "no core is left for them", field="workers", value="polling", hint="workers=paused needs none"
        )
    if len(machine.nodes) < 2:
        reason = "this machine has one NUMA node"
        notes.append(Note(what="data away from the communication thread's node", reason=reason))
    control = _control(plan, machine) if plan.control else ()
    return with_notes(Expansion(points=(*points.values(), *control), notes=()), notes)


def _with_workers(point: Point, plan: Plan, machine: Machine) -> Iterator[Point]:
    """The point with paused workers, and with one that polls on each core without another thread."""
    if "paused" in plan.keys.workers:
        yield point
    busy = {*point.comm_cores, *(point.peer_cores if machine.hosts < 2 else ())}
    free = tuple(core.number for core in placement.usable(machine) if core.number not in busy)
    if "polling" not in plan.keys.workers or not free:
        return
    ends = ((free, point.comm_cores), ((), point.peer_cores))
    polling = msgspec.structs.replace(
        point,
        n=len(free),
        comp_cores=free,
        computing_ranks="all" if machine.hosts > 1 else "first",
        placements=() if machine.hosts > 1 else placed(ends, (point.comp_node, point.comm_node)),
    )
    for backoff in plan.keys.backoffs or (None,):
        program = msgspec.structs.replace(plan.keys.program, backoff=backoff)
        yield msgspec.structs.replace(polling, workload=program)


def _no_workers(points: Iterable[Point], plan: Plan) -> tuple[Note, ...]:
    if "polling" not in plan.keys.workers or any(point.n for point in points):
        return ()
    return (Note(what="polling workers", reason="every core has a thread that communicates"),)


def _refuse(plan: Plan, machine: Machine) -> None:
    if not set(plan.kernels) <= {"none", "triad"} or plan.sweeps:
        raise UsageError(
            "no kernel runs beside these messages, and there are no sweeps",
            field="sweeps" if plan.sweeps else "kernels",
            value=len(plan.sweeps) if plan.sweeps else ",".join(plan.kernels),
            hint="leave it out; a kernel beside messages: elbowroom run cores",
        )
    if machine.hosts < 2 and len(placement.usable(machine)) < 2:
        raise UsageError(
            "each of two ranks needs a core: StarPU's communication threads poll",
            field="cpuset",
            value=list(machine.allowed),
            hint="allow two cores, or take two hosts",
        )


def _point(
    plan: Plan,
    machine: Machine,
    core: int,
    data: int,
    size: int,
    comm_cores: tuple[int, ...],
    peer_cores: tuple[int, ...],
) -> Point:
    thread = next((cpu.node for cpu in machine.cores if cpu.number == core), data)
    return point_of(
        plan,
        (data, thread),
        n=0,
        size=size,
        comm_core=core,
        comm_cores=comm_cores,
        peer_cores=peer_cores,
        metric=metric_of(plan, size),
        sequence=PHASES,
        scheduling=plan.scheduling,
        workload=plan.keys.program,
    )


def _seats(plan: Plan, machine: Machine, core: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Cores of rank 0 and of the other rank of this host: communication thread first, then the thread that
    waits where there are cores enough; those of the communication thread's node before others.
    """
    all_cores = placement.usable(machine)
    node = next((cpu.node for cpu in all_cores if cpu.number == core), None)
    beside = sorted(all_cores, key=lambda cpu: (cpu.node != node, -cpu.logical))
    free = [cpu.number for cpu in beside if cpu.number not in (core, plan.peer_core)]
    each = OWN_CORES if len(all_cores) >= OWN_CORES * (2 if machine.hosts < 2 else 1) else 1
    own = (core, *free[: each - 1])
    if machine.hosts > 1:
        return own, own
    left = free[each - 1 :]
    peer = plan.peer_core if plan.peer_core is not None else left.pop(0)
    return own, (peer, *left[: each - 1])


def _control(plan: Plan, machine: Machine) -> tuple[Point, ...]:
    """Prime counting beside the largest message, by the probe: whether the machine was quiet."""
    size = max(with_neighbours(plan.sizes, plan.around))
    control = msgspec.structs.replace(
        plan, kernels=("prime",), n=("all",), sizes=(size,), around=0, control=False, metric="auto"
    )
    control = msgspec.structs.replace(control, comm_cores=("last",), comp_nodes=("near",), peer_core=None)
    return tuple(
        msgspec.structs.replace(point, role="control") for point in multiply(control, machine).points
    )
