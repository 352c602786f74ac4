"""What experiments with an accelerator share: who sits where, their points, and the control."""

from __future__ import annotations

from typing import Any, NamedTuple

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.plan import placement
from elbowroom.plan.axes import comm_cores, metric_of
from elbowroom.plan.file import Plan
from elbowroom.plan.kernels import find
from elbowroom.points import GpuCase
from elbowroom.points.point import Note, Point


class DeviceSeats(NamedTuple):
    """Cores: of the thread that submits work to the device, of both ends of messages (-1: none is left for
    them), and those left to compute.
    """

    submit: int
    message: int
    peer: int
    computing: tuple[int, ...]

    @property
    def can_send(self) -> bool:
        """Whether messages have cores."""
        return self.message >= 0


def device_seats(plan: Plan, machine: Machine, messages: bool) -> DeviceSeats:
    """The thread that submits is on the plan's communication core, messages on those before it, all of them
    on that one with `scheduling`. Without a core for each, messages have none.
    """
    cores = placement.usable(machine)
    if not cores:
        raise UsageError("no core is usable", field="cpuset", hint="allow at least two")
    core = comm_cores(plan, machine)[0][0]
    free = [other for other in placement.downwards(cores, core)[1:] if other not in plan.comp_cores]
    if plan.scheduling:
        chosen = core, core, core
    else:
        wanted = 1 if machine.hosts > 1 else 2
        left = len(free) + len(plan.comp_cores) - wanted
        ends = free[:wanted] if messages and len(free) >= wanted and left > 0 else [-1]
        chosen = core, ends[0], ends[-1]
    pool = plan.comp_cores or tuple(item.number for item in cores if item.number not in chosen)
    return DeviceSeats(*chosen, pool)


def no_messages(machine: Machine) -> Note:
    """Why copies are not measured beside messages."""
    count = len(placement.usable(machine))
    return Note(
        what="copies beside messages",
        reason=(
            f"{count} usable cores: the thread that submits copies and both ends of messages need a core "
            "each, and computing at least one; `scheduling = true` lets the first three share one"
        ),
    )


def device_point(
    plan: Plan,
    machine: Machine,
    workload: GpuCase,
    seats: DeviceSeats,
    *,
    kernel: str = "none",
    cursor: int = 1,
    n: int = 0,
    comp_node: int = 0,
    size: int = 0,
    **others: Any,
) -> Point:
    """A point of a case; `size`: of messages where it has any, else of its copies."""
    fact = find(kernel)
    return Point(
        plan=plan.name,
        kernel=kernel,
        cursor=cursor,
        n=n,
        size=size,
        comp_node=comp_node,
        comm_node=workload.node if workload.node >= 0 else comp_node,
        comm_core=seats.message if workload.sends else seats.submit,
        metric=metric_of(plan, size) if workload.mover == "messages" else "bandwidth",
        comp_cores=seats.computing[:n],
        peer_cores=(seats.peer,) if workload.sends else (),
        working_set=plan.working_set or placement.working_set(fact, n, comp_node, machine),
        sequence=plan.sequence,
        window=plan.window,
        observe=plan.observe,
        scheduling=plan.scheduling,
        workload=workload,
        **others,
    )


def control(plan: Plan, machine: Machine, seats: DeviceSeats, comp_node: int, size: int) -> tuple[Point, ...]:
    """Prime counting on all computing cores beside copies to the host; none without a computing core, or
    where the plan wants none.
    """
    if not (plan.control and seats.computing):
        return ()
    case = GpuCase(
        victim="cores", mover="copy", kernel="prime", direction="d2h", bytes=size, submit_core=seats.submit
    )
    n = len(seats.computing)
    return (
        device_point(
            plan, machine, case, seats, kernel="prime", n=n, comp_node=comp_node, size=size, role="control"
        ),
    )
