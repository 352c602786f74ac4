"""Where the ranks of a program are."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.points.point import Placement, Point

Seats = tuple[tuple[int, ...], tuple[int, ...]]
"""Computing cores and communication cores of a rank."""


def places(point: Point, seats: Sequence[Seats]) -> tuple[Placement, ...]:
    """A placement for each rank, with the point's nodes."""
    return tuple(
        Placement(
            rank=rank,
            comp_cores=computing,
            comm_cores=communicating,
            comp_node=point.comp_node,
            comm_node=point.comm_node,
        )
        for rank, (computing, communicating) in enumerate(seats)
    )
