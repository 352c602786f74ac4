"""The control of experiments whose points are programs of their own: a kernel of the probe."""

from __future__ import annotations

from elbowroom.plan.axes import with_control
from elbowroom.plan.file import Plan
from elbowroom.plan.placement import Seats
from elbowroom.points.point import Point


def control_of(plan: Plan, seats: Seats, node: tuple[int, int]) -> tuple[Point, ...]:
    """A register-only kernel on all computing cores beside the largest message."""
    return with_control((_messages(plan, seats, node),))[1:]


def _messages(plan: Plan, seats: Seats, node: tuple[int, int]) -> Point:
    return Point(
        plan=plan.name,
        kernel="triad",
        n=len(seats.comp_cores),
        size=max(plan.sizes),
        comp_node=node[0],
        comm_node=node[1],
        comm_core=seats.comm_cores[0],
        metric="bandwidth",
        comp_cores=seats.comp_cores,
        comm_cores=seats.comm_cores,
        peer_cores=seats.peer_cores,
        sequence=("A", "B", "AB", "AB", "B", "A"),
        window=plan.window,
    )
