"""FLOW with any number of groups of cores, messages and copies: the law of flow/law.py for all of them.

A group has a demand and a weight, and is local or remote to its data's node. Messages and copies are devices:
each has a demand d, a floor f <= d, a weight w and a cost q; in a port it costs q' = q / REMOTE_COST.
Capitals, g and h (the jitter, value by value) are those of models/flow/law.py. In this order:

1. Root. Requests of cores press on a device whose data is in a node where theirs is not: with p the largest,
   over the sockets, of the demands of such groups of that socket, d = min(d, max(ROOT g - p, FLOOR_FIRST d)).
   Without such groups d stays.
2. Devices. Several of them `fill` (flow/law.py) the capacity DEVICES at a cost of 1; what they get is
   their demand from here on.
3. Crossing, socket by socket: its devices (data in one of its nodes) and the remote groups with data in a
   node of it, a device only beside such a group in another node and the other way round. They fill CROSSING h
   (cost 1) and, groups only, LINK h of the socket they come from; what they get is their demand from here on.
4. Nodes. Everything fills: the UPLINK g of each socket that computes (cost 1, of remote groups min(1, UPLINK
   g / (LINK h))); the LINK h from each socket to each other one (remote groups, cost 1); the port of each
   node with remote groups (these at cost 1, devices at q'); the controller of each node with groups, or with
   several devices (local groups at cost 1, remote ones at REMOTE_COST, devices at q). Over-demand costs
   controllers and ports capacity as in models/flow/law.py, by the demands before step 1, and never what is
   guaranteed, the sum of q f; the controller of the messages' node has CONTROLLER ROOM. A controller follows
   g and EXCESS_LOCAL, unless remote groups are its only ones: then h and EXCESS_REMOTE.

Floors are never above what is left of the demand. Rates are means over the jitter's values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from elbowroom.models.curves import Shape
from elbowroom.models.flow.law import Array, fill, jitter

Device = tuple[Array, Array, Array, Array]
"""Demand, floor (MB/s), weight, cost."""

AT_ONCE = 1 << 17
"""Networks that are filled at once: more of them no longer fit the caches."""


class Form(msgspec.Struct, frozen=True):
    """What loads must share to be computed together: socket and node of each group, the messages' node, None
    without messages, and the copies' nodes.
    """

    groups: tuple[tuple[int, int], ...]
    messages: int | None
    copies: tuple[int, ...]


def shared(
    form: Form,
    shape: Shape,
    values: Mapping[str, Array],
    demands: Sequence[Array],
    weights: Sequence[Array],
    large: Array,
    copies: Sequence[Device],
    devices: Array,
) -> Array:
    """Rates of the groups, the copies and the messages, in this order: (K, D, S).

    values: FLOW's parameters and `room`, (D, S or 1, 1), those of messages as they are here; demands,
    weights: of each group, (D, S); large: the messages' demand (D, S); copies: of each of the form's;
    devices: DEVICES, (D, 1, 1).
    """
    count = len(form.groups) + len(form.copies) + (form.messages is not None)
    draws, loads = large.shape
    rates = np.zeros((count, draws, loads))
    if not count:
        return rates
    step = max(AT_ONCE // (9 * draws), 1)
    for begin in range(0, loads, step):
        here = slice(begin, begin + step)
        part = {name: value if value.shape[1] == 1 else value[:, here] for name, value in values.items()}
        network = _SharedNetwork(form, shape, part, devices)
        for demand, weight in zip(demands, weights, strict=True):
            network.add_group(demand[:, here, None], weight[:, here, None])
        for copy in copies[: len(form.copies)]:
            network.add_device(*(item[:, here, None] for item in copy))
        if form.messages is not None:
            socket = "first" if shape.local(form.messages) else "second"
            floor, weight, cost = (part[f"{name}_{socket}"] for name in ("floor", "weight", "cost"))
            demand = large[:, here, None]
            network.add_device(demand, floor * demand, weight, cost)
        rates[:, :, here] = network.rates().mean(axis=-1)
    return rates


class _SharedNetwork:
    """Arrays are (D, S, 9), or broadcast to that; streams are groups first, then devices."""

    def __init__(self, form: Form, shape: Shape, p: Mapping[str, Array], devices: Array) -> None:
        self.p, self.shape, self.devices_capacity = p, shape, devices
        self.groups, self.with_messages = form.groups, form.messages is not None
        self.devices = (*form.copies, *(() if form.messages is None else (form.messages,)))
        self.g, self.h = jitter(p)
        self.demand: list[Array] = []
        self.floor: list[Array] = []
        self.weight: list[Array] = []
        self.cost: list[Array] = []

    def add_group(self, demand: Array, weight: Array) -> None:
        """The next of the form's groups."""
        self._add(demand, np.zeros_like(demand), weight, np.ones_like(demand))

    def add_device(self, demand: Array, floor: Array, weight: Array, cost: Array) -> None:
        """The next of the form's devices."""
        self._add(demand, floor, weight, cost)

    def _add(self, demand: Array, floor: Array, weight: Array, cost: Array) -> None:
        self.demand.append(demand)
        self.floor.append(floor)
        self.weight.append(weight)
        self.cost.append(cost)

    def _remote(self, group: int) -> bool:
        socket, node = self.groups[group]
        return self.shape.socket(node) != socket

    def rates(self) -> Array:
        """All four steps, (K, D, S, 9)."""
        first = len(self.groups)
        demands = [*self.demand]
        for device, node in enumerate(self.devices):
            demands[first + device] = self._root(node, demands[first + device])
        if len(self.devices) > 1:
            several = list(range(first, len(demands)))
            costs = dict.fromkeys(several, 1.0)
            self._share(demands, several, [(self.devices_capacity, costs)])
        for socket in range(self.shape.sockets):
            self._crossing(demands, socket)
        self._nodes(demands)
        size = np.broadcast_shapes(*(item.shape for item in demands), self.g.shape)
        return np.stack([np.broadcast_to(item, size) for item in demands])

    def _root(self, node: int, demand: Array) -> Array:
        elsewhere = [place for place, (_, other) in enumerate(self.groups) if other != node]
        if not elsewhere:
            return demand
        pressing: Array | float = 0.0
        for socket in {self.groups[place][0] for place in elsewhere}:
            total = sum(self.demand[place] for place in elsewhere if self.groups[place][0] == socket)
            pressing = np.maximum(pressing, total)
        left = np.maximum(self.p["root"] * self.g - pressing, self.p["floor_first"] * demand)
        return np.minimum(demand, left)

    def _crossing(self, demands: list[Array], socket: int) -> None:
        first = len(self.groups)
        devices = [
            (first + d, node) for d, node in enumerate(self.devices) if self.shape.socket(node) == socket
        ]
        remote = [
            (k, node)
            for k, (_, node) in enumerate(self.groups)
            if self._remote(k) and self.shape.socket(node) == socket
        ]
        chosen = [k for k, node in remote if any(other != node for _, other in devices)]
        chosen += [d for d, node in devices if any(other != node for _, other in remote)]
        if not chosen:
            return
        resources = [(self.p["crossing"] * self.h, dict.fromkeys(chosen, 1.0))]
        for source in {self.groups[k][0] for k in chosen if k < first}:
            mine = {k: 1.0 for k in chosen if k < first and self.groups[k][0] == source}
            resources.append((self.p["link"] * self.h, mine))
        self._share(demands, chosen, resources)

    def _nodes(self, demands: list[Array]) -> None:
        p, first = self.p, len(self.groups)
        uplink, link = p["uplink"] * self.g, p["link"] * self.h
        resources: list[tuple[Array, Mapping[int, Array | float]]] = []
        across = np.minimum(1.0, uplink / link)
        for socket in {socket for socket, _ in self.groups}:
            mine = [k for k, (source, _) in enumerate(self.groups) if source == socket]
            resources.append((uplink, {k: across if self._remote(k) else 1.0 for k in mine}))
            for target in {self.shape.socket(self.groups[k][1]) for k in mine} - {socket}:
                to = {k: 1.0 for k in mine if self.shape.socket(self.groups[k][1]) == target}
                resources.append((link, to))
        for node in {node for _, node in self.groups} | set(self.devices):
            groups = [k for k, (_, other) in enumerate(self.groups) if other == node]
            devices = [first + d for d, other in enumerate(self.devices) if other == node]
            if any(self._remote(k) for k in groups):
                resources.append(self._port(groups, devices))
            if groups or len(devices) > 1:
                resources.append(self._controller(groups, devices))
        if resources:
            self._share(demands, list(range(len(demands))), resources)

    def _port(
        self, groups: Sequence[int], devices: Sequence[int]
    ) -> tuple[Array, Mapping[int, Array | float]]:
        p = self.p
        remote = [k for k in groups if self._remote(k)]
        costs: dict[int, Array | float] = dict.fromkeys(remote, 1.0)
        costs |= {d: self.cost[d] / p["remote_cost"] for d in devices}
        load = sum(cost * self.demand[stream] for stream, cost in costs.items())
        sure = sum(costs[d] * self.floor[d] for d in devices)
        left = p["port"] - p["excess_remote"] * np.maximum(load - p["port"], 0.0)
        return np.maximum(left, sure) * self.h, costs

    def _controller(
        self, groups: Sequence[int], devices: Sequence[int]
    ) -> tuple[Array, Mapping[int, Array | float]]:
        p = self.p
        costs: dict[int, Array | float] = {k: p["remote_cost"] if self._remote(k) else 1.0 for k in groups}
        costs |= {d: self.cost[d] for d in devices}
        load = sum(cost * self.demand[stream] for stream, cost in costs.items())
        sure = sum(costs[d] * self.floor[d] for d in devices)
        only_remote = bool(groups) and all(self._remote(k) for k in groups)
        excess = p["excess_remote" if only_remote else "excess_local"]
        messages = len(self.demand) - 1 if self.with_messages else None
        whole = p["controller"] * p.get("room", 1.0) if messages in devices else p["controller"]
        left = whole - excess * np.maximum(load - whole, 0.0)
        return np.maximum(left, sure) * (self.h if only_remote else self.g), costs

    def _share(
        self,
        left: list[Array],
        streams: Sequence[int],
        resources: Sequence[tuple[Array, Mapping[int, Array | float]]],
    ) -> None:
        """Fills, and puts what the streams get in the places of their demands."""
        size = np.broadcast_shapes(self.g.shape, *(left[stream].shape for stream in streams))

        def table(rows: Sequence[Array | float]) -> Array:
            return np.stack([np.broadcast_to(row, size).ravel() for row in rows])

        demands = table([left[stream] for stream in streams])
        rates = fill(
            demands=demands,
            floors=np.minimum(table([self.floor[stream] for stream in streams]), demands),
            weights=table([self.weight[stream] for stream in streams]),
            capacities=table([capacity for capacity, _ in resources]),
            costs=np.stack([table([costs.get(stream, 0.0) for stream in streams]) for _, costs in resources]),
        ).reshape(len(streams), *size)
        for place, stream in enumerate(streams):
            left[stream] = rates[place]
