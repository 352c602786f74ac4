"""Which few runs to measure before anything is known: situations that tell FLOW's parameters apart.

Two thirds of the budget goes to the two placements of the thesis (computation and messages in the same node,
local and remote), the rest to messages elsewhere. n is 1, 2 and then evenly spread up to the whole socket.
"""

from __future__ import annotations

from elbowroom.errors import UsageError
from elbowroom.models.curves import Shape, Situation

LEAST = 4
"""Runs below which not even one placement shows its curve."""


def design(shape: Shape, budget: int = 24) -> tuple[Situation, ...]:
    """At most `budget` situations with cores of the first socket, sorted; fewer on small machines."""
    if budget < LEAST:
        raise UsageError("is too few for a curve", field="budget", value=budget, hint=f"at least {LEAST}")
    weights = _placements(shape)
    total = sum(weights.values())
    runs = [
        Situation(comp_node=comp, comm_node=comm, n=n)
        for (comp, comm), weight in weights.items()
        for n in _counts(shape.cores_first_socket, max(budget * weight // total, 1))
    ]
    return tuple(sorted(set(runs))[:budget])


def mixed(shape: Shape) -> tuple[Situation, ...]:
    """Three situations with both sockets computing, messages in the same node; none on one socket."""
    if shape.sockets < 2:
        return ()
    most = shape.cores_first_socket
    remote = shape.numa_per_socket
    half, quarter = max(most // 2, 1), max(round(most / 4), 1)
    return (
        Situation(comp_node=0, comm_node=0, n=half, n_other=half),
        Situation(comp_node=remote, comm_node=remote, n=most, n_other=quarter),
        Situation(comp_node=remote, comm_node=remote, n=most, n_other=most),
    )


def _placements(shape: Shape) -> dict[tuple[int, int], int]:
    """Pairs of comp_node and comm_node with their part of the budget, one for each symmetry class."""
    remote = shape.numa_per_socket
    if shape.sockets == 1:
        return {(0, 0): 8, (0, 1): 4} if remote > 1 else {(0, 0): 8}
    if remote == 1:
        return {(0, 0): 8, (remote, remote): 8, (0, remote): 4, (remote, 0): 4}
    same = {(0, 0): 7, (remote, remote): 7}
    return same | {(0, remote): 3, (remote, 0): 3, (remote, remote + 1): 4}


def _counts(most: int, runs: int) -> list[int]:
    """That many numbers of cores: 1 and 2 where there are six or more, the rest even up to all."""
    small = [1, 2] if runs >= 6 else [1]
    rest = runs - len(small)
    first = max(3.0, 0.2 * most)
    spread = (
        [first + (most - first) * k / max(rest - 1, 1) for k in range(rest)] if rest > 1 else [most] * rest
    )
    return sorted({min(n, most) for n in [*small, *(round(n) for n in spread)]})
