"""Which run to measure next: the one that teaches most about all predictions.

A fitted FLOW carries draws from the joint distribution of its parameters; each draw predicts every situation.
How these predictions vary together says how much less uncertain all of them become once one situation has
been measured (the expected reduction of the summed variance of both streams together, for normal variables).

That alone would go on asking where the model cannot follow the machine, since there its variance stays. What
stands near a measured run, in the number of cores and in the kind of placement, is therefore worth less.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

import numpy as np

from elbowroom.models.curves import Shape, Situation
from elbowroom.models.flow.extras import Extension
from elbowroom.models.flow.law import Array
from elbowroom.models.flow.loads import evaluate, prepare
from elbowroom.models.flow.model import bands
from elbowroom.models.flow.part import FlowPart
from elbowroom.models.load import load_at

BEND = 0.4
"""Share of the cores at which the start looks for the bend of a curve."""
NEAR = 0.15
"""Distance in n over which runs of a placement say the same (a standard deviation; of a socket's cores)."""
ALIKE = 0.9
"""How far that holds between placements that differ by symmetry only, such as nodes 2 and 3."""
NARROW = 0.9
"""Share of the predictions whose interval must be narrow enough."""
_LEAST_ERROR = 0.003
"""Relative error of a measured value, at least: the draws' own sampling error must not pass for knowledge."""


def first(shape: Shape, candidates: Sequence[Situation], budget: int) -> tuple[Situation, ...]:
    """The runs to begin with, the most telling first, at most `budget`.

    Data of both on one node, local and remote: all cores, one core, and where the bend is likely. Every other
    kind of placement: all cores, where it shows whether anything is lost at all.
    """
    chosen: dict[Situation, None] = {}
    for comp_node, comm_node, share in _start(shape):
        there = [
            item
            for item in candidates
            if (item.comp_node, item.comm_node, item.n_other) == (comp_node, comm_node, 0)
        ]
        if there:
            wanted = max(1.0, share * shape.cores_first_socket)
            chosen[min(there, key=lambda item: (abs(item.n - wanted), item.n))] = None
    if not chosen and candidates:
        chosen[max(candidates, key=lambda item: item.n)] = None
    return tuple(chosen)[:budget]


def _start(shape: Shape) -> list[tuple[int, int, float]]:
    """comp_node, comm_node and the share of the first socket's cores of each run of the start."""
    far = shape.numa_per_socket
    same = [0, far] if far < shape.nodes else [0]
    start = [(node, node, share) for share in (1.0, 0.0, BEND) for node in same]
    others = [(0, far), (far, 0), (0, 1), (far, far + 1)]
    start += [(comp, comm, 1.0) for comp, comm in others if max(comp, comm) < shape.nodes]
    return list(dict.fromkeys(start))


def next_run(
    shape: Shape, fitted: FlowPart | None, candidates: Sequence[Situation], measured: Collection[Situation]
) -> Situation:
    """The candidate not yet measured that teaches most about all candidates; without a fit, the one farthest
    from all that was measured. ValueError when all were.
    """
    open_runs = [index for index, item in enumerate(candidates) if item not in measured]
    gains = news(shape, candidates, measured)
    if fitted is not None:
        gains *= teaches(_logs(shape, fitted, candidates), np.maximum(fitted.discrepancy, _LEAST_ERROR))
    return candidates[max(open_runs, key=lambda index: gains[index])]


def news(shape: Shape, candidates: Sequence[Situation], measured: Collection[Situation]) -> Array:
    """How far each candidate is from all measured runs: 0 where it is one of them, 1 far away, (S,)."""
    reach = max(NEAR * shape.cores_first_socket, 0.5)
    distance = np.ones(len(candidates))
    for index, item in enumerate(candidates):
        for other in measured:
            if _kind(shape, item) != _kind(shape, other):
                continue
            same = (item.comp_node, item.comm_node) == (other.comp_node, other.comm_node)
            apart = ((item.n - other.n) ** 2 + (item.n_other - other.n_other) ** 2) / reach**2
            distance[index] = min(distance[index], 1 - (1.0 if same else ALIKE) * np.exp(-apart / 2))
    return distance


def _kind(shape: Shape, at: Situation) -> tuple[bool, bool, bool]:
    """What of a placement matters to the model: local or remote, and whether both share a node."""
    return shape.local(at.comp_node), shape.local(at.comm_node), at.comp_node == at.comm_node


def _logs(shape: Shape, fitted: FlowPart, situations: Sequence[Situation]) -> Array:
    """What each draw predicts, logarithms: (draws, situations, 4)."""
    loads = prepare(shape, [load_at(item) for item in situations], plain=True)
    rates = evaluate(fitted.vectors[1:], Extension(), loads).streams
    return cast("Array", np.log(np.maximum(rates, 1e-9)).transpose(1, 2, 0))


def teaches(logs: Array, error: Array) -> Array:
    """By how much measuring each situation lowers the summed variance of both streams together: (S,).

    `logs`: draws of the predictions (D, S, 4), streams in the order of STREAMS; `error`: relative standard
    deviation of one measured value of each stream (4,).
    """
    draws, situations, streams = logs.shape
    apart = logs - logs.mean(axis=0)
    targets = apart[:, :, 2:].reshape(draws, -1)
    values = apart.reshape(draws, -1)
    between = (targets.T @ values / (draws - 1)).reshape(-1, situations, streams).transpose(1, 0, 2)
    own = np.einsum("dsk,dsl->skl", apart, apart) / (draws - 1) + np.diag(np.square(error))
    gains: Array = np.einsum("stk,skl,stl->s", between, np.linalg.inv(own), between)
    return gains


def half_widths(shape: Shape, fitted: FlowPart, situations: Sequence[Situation]) -> Array:
    """Relative half-widths of the 90 % intervals of both streams together: (situations, 2)."""
    value, low, high = (table[2:] for table in bands(fitted, shape, situations))
    return cast("Array", ((high - low) / (2 * np.maximum(value, 1e-9))).T)


def width(shape: Shape, fitted: FlowPart, situations: Sequence[Situation]) -> float:
    """The relative half-width that nine of ten predictions stay below."""
    return float(np.quantile(half_widths(shape, fitted, situations), NARROW))
