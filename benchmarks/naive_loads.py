"""What one would say of loads without a model of contention: the naive lines of benchmarks/extended.py."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from elbowroom.models.curves import Shape
from elbowroom.models.flow.law import fill
from elbowroom.models.load import Computing, Load, LoadRow, Messages
from elbowroom.models.message_size import MessageBandwidth, MessageSize
from elbowroom.models.message_size import fit as fit_sizes

Answer = tuple[float, float, float, float]
Predictor = Callable[[Sequence[Load]], list[Answer]]

LARGEST = 64_000_000
"""Bytes of a message whose size is not said."""


def roofline(shape: Shape, rows: Sequence[LoadRow]) -> Predictor:
    """No contention at all, from the same runs."""
    plain = [row for row in rows if _only(row.load)]
    core, all_cores = {}, {}
    for local in (True, False):
        here = [row for row in plain if shape.local(row.load.computing[0].node) is local]
        each = {row.load.computing[0].count: alone(row)[0] for row in here if len(row.load.computing) == 1}
        core[local] = each[min(each)] / min(each)
        all_cores[local] = max(each.values())
    peak = max(
        alone(row)[0] * group.intensity / group.count
        for row in rows
        if len(row.load.computing) == 1 and (group := row.load.computing[0]).intensity
    )
    law, large = message_law(shape, rows)

    def group_rate(group: Computing) -> float:
        local = group.node // shape.numa_per_socket == group.socket
        one = min(core[local], peak / group.intensity) if group.intensity else core[local]
        return min(group.count * one, all_cores[local])

    def messages_rate(messages: Messages | None) -> float:
        if messages is None:
            return 0.0
        most = large[shape.local(messages.node), messages.direction]
        if messages.size is None:
            return most
        return min(messages.threads * law.bandwidth(messages.size, known=most, at=LARGEST), most)

    def answer(load: Load) -> Answer:
        comp, comm = sum(map(group_rate, load.computing)), messages_rate(load.messages)
        return comp, comm, comp, comm

    return lambda loads: [answer(load) for load in loads]


def message_law(shape: Shape, rows: Sequence[LoadRow]) -> tuple[MessageSize, dict[tuple[bool, str], float]]:
    """t0 + s/B of one thread's messages, and B by whether the node is local and by direction."""
    one = [row for row in rows if row.load.messages is not None and row.load.messages.threads == 1]
    found: dict[tuple[bool, str], list[float]] = {}
    observations = []
    for row in one:
        messages = row.load.messages
        assert messages is not None
        if messages.size is None:
            found.setdefault((shape.local(messages.node), messages.direction), []).append(alone(row)[1])
        if messages.direction == "receive":
            size = LARGEST if messages.size is None else messages.size
            observations.append(MessageBandwidth(node=messages.node, size=size, bandwidth=alone(row)[1]))
    return fit_sizes(observations), {key: float(np.mean(values)) for key, values in found.items()}


def _only(load: Load) -> bool:
    """Large receptions by one thread beside cores of no intensity, and no copies."""
    messages = load.messages
    plain = messages is not None and messages.size is None and messages.direction == "receive"
    return (
        plain
        and not load.copies
        and bool(load.computing)
        and not any(group.intensity for group in load.computing)
    )


def told_alone(rows: Sequence[LoadRow]) -> list[Answer]:
    return [(*alone(row), *alone(row)) for row in rows]


def alone(row: LoadRow) -> tuple[float, float]:
    """What both sides got alone, MB/s; 0 of a side that is not there."""
    return row.comp_alone or 0.0, row.comm_alone or 0.0


def max_min(shape: Shape, known: Sequence[LoadRow], rows: Sequence[LoadRow]) -> list[Answer]:
    """Every core, thread and copy a stream of weight 1 that asks for its part of what its side gets alone;
    the capacity of a node is the most that both sides reached together on one of that socket.
    """
    capacity = {True: 0.0, False: 0.0}
    for row in known:
        load = row.load
        nodes = {group.node for group in load.computing}
        if _only(load) and load.messages is not None and nodes == {load.messages.node}:
            local = shape.local(load.messages.node)
            together = (row.comp_together or 0.0) + (row.comm_together or 0.0)
            capacity[local] = max(capacity[local], together)
    return [_fair(shape, capacity, row) for row in rows]


def _fair(shape: Shape, capacity: dict[bool, float], row: LoadRow) -> Answer:
    load, (comp, comm) = row.load, alone(row)
    cores = sum(group.count for group in load.computing)
    streams = [(group.node, comp * group.count / max(cores, 1), group.count) for group in load.computing]
    if load.messages is not None:
        streams.append((load.messages.node, comm, load.messages.threads))
    streams += [(copy.node, copy.demand, 1) for copy in load.copies]
    demands, weights = (np.array([[item[k]] for item in streams], dtype=float) for k in (1, 2))
    costs = np.array([[[float(node == item[0])] for item in streams] for node in range(shape.nodes)])
    capacities = np.array([[capacity[shape.local(node)]] for node in range(shape.nodes)])
    rates = fill(demands, np.zeros_like(demands), weights, capacities, costs)[:, 0].tolist()
    groups = len(load.computing)
    together = sum(rates[:groups])
    return comp, comm, together, rates[groups] if load.messages is not None else 0.0
