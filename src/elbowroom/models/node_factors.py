"""NUMA nodes of a socket that are not alike (Swartvagher 2022, 6.3.3: machines with more than four nodes, and
network bandwidth by placement).

The models know two kinds of nodes, local and remote to the cores of the first socket. Where the nodes of a
socket reach other bandwidths alone, each gets a factor from the data: messages into it, and computations on
it with the same cores, over those of the first node of its socket. Models are fitted to curves without these
factors, and what they predict is times them, alone and together: what a side keeps depends on the kind of
node. A node that was not measured is as the first one of its socket.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeVar

import msgspec
import numpy as np

from elbowroom.models.curves import Curves, MeasuredStreams, Row, Shape, Streams
from elbowroom.models.load import Load, LoadRow

Measured = TypeVar("Measured", bound=MeasuredStreams)

STEADY = 0.05
"""Nodes whose bandwidths alone differ by less are alike."""


class NodeFactors(msgspec.Struct, frozen=True, kw_only=True):
    """By node: messages into it (`comm`) and computations on it (`comp`) over those of the first node of its
    socket.
    """

    comm: tuple[float, ...]
    comp: tuple[float, ...]

    def streams(self, load: Load) -> Streams:
        """What the bandwidths of a load are times, in the order of STREAMS."""
        counts = [group.count for group in load.computing]
        groups = [self.comp[group.node] for group in load.computing]
        comp = float(np.average(groups, weights=counts)) if sum(counts) else 1.0
        comm = 1.0 if load.messages is None else self.comm[load.messages.node]
        return comp, comm, comp, comm


def node_factors(curves: Curves) -> NodeFactors | None:
    """The factors of curves; None where all nodes of each socket are alike, or one of each was measured."""
    shape = curves.shape
    comm: dict[int, list[float]] = {}
    comp: dict[tuple[int, int], dict[int, list[float]]] = {}
    for row in curves.rows:
        at = row.situation
        if row.comm_alone:
            comm.setdefault(at.comm_node, []).append(row.comm_alone)
        if row.comp_alone and at.n + at.n_other:
            comp.setdefault((at.n, at.n_other), {}).setdefault(at.comp_node, []).append(row.comp_alone)
    factors = NodeFactors(comm=_factors(shape, [comm]), comp=_factors(shape, list(comp.values())))
    differ = any(abs(factor - 1) > STEADY for factor in (*factors.comm, *factors.comp))
    return factors if differ else None


def _factors(shape: Shape, cases: Sequence[Mapping[int, Sequence[float]]]) -> tuple[float, ...]:
    """For each node the median over cases of its median over that of the first node of its socket."""
    firsts: dict[int, int] = {}
    ratios = []
    for node in range(shape.nodes):
        first = firsts.setdefault(shape.socket(node), node)
        both = [case for case in cases if node in case and first in case]
        ratios.append(
            float(np.median([np.median(case[node]) / np.median(case[first]) for case in both]))
            if both and node != first
            else 1.0
        )
    return tuple(ratios)


def alike(curves: Curves, factors: NodeFactors) -> Curves:
    """The curves as if all nodes of a socket were as its first one."""
    return msgspec.structs.replace(curves, rows=tuple(_plain(row, factors) for row in curves.rows))


def alike_loads(rows: Sequence[LoadRow], factors: NodeFactors) -> tuple[LoadRow, ...]:
    """The same of runs of loads."""
    return tuple(_divided(row, factors.streams(row.load)) for row in rows)


def _plain(row: Row, factors: NodeFactors) -> Row:
    comp, comm = factors.comp[row.situation.comp_node], factors.comm[row.situation.comm_node]
    return _divided(row, (comp, comm, comp, comm))


def _divided(row: Measured, by: Streams) -> Measured:
    comp_alone, comm_alone, comp, comm = (
        None if value is None else value / factor for value, factor in zip(row.streams, by, strict=True)
    )
    return msgspec.structs.replace(
        row, comp_alone=comp_alone, comm_alone=comm_alone, comp_together=comp, comm_together=comm
    )
