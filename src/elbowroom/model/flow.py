"""FLOW: a machine as a network of capacities that computing cores and messages share.

The cores of up to two sockets write to one node, messages arrive in the same or another one. Everything is
said exactly, so that another language computes the same (lib/predict, the page): only + - * / min max.

Parameters (PARAMETERS; MB/s unless said otherwise) are written in capitals below; `local` and `remote` are
relative to the computing cores. Of a situation: near, far = number of computing cores of the socket of
comp_node, and of the other one; COMM = COMM_FIRST or COMM_SECOND by the socket of comm_node.

Jitter. A capacity takes nine equally likely values: times g_i = max(0, 1 + s z_i), z_i of JITTER (medians of
nine equally likely slices of a normal variable, scaled to variance 1), s = DIP where z_i < 0 and RISE
elsewhere. All capacities take their i-th value together; rates are computed for each i and averaged. That
bends the knees, and lets communication lose before the mean capacity is reached. g is that of DIP_LOCAL and
RISE_LOCAL, h that of DIP_REMOTE and RISE_REMOTE.

Demands. asked = near CORE_LOCAL + far CORE_REMOTE; a = min(near CORE_LOCAL, UPLINK g) of the near cores;
b = min(far CORE_REMOTE, LINK h) of the far cores. Messages have a floor F = FLOOR COMM, a weight W and a cost
Q: FLOOR_REMOTE, WEIGHT_REMOTE and COST_REMOTE if far > 0, else those of LOCAL.

Over-demand costs capacity, never what is guaranteed. With M = COMM if messages arrive in comp_node, else 0:
controller = max(CONTROLLER - EXCESS_LOCAL max(0, asked + Q M - CONTROLLER), Q F) g
port       = max(PORT - EXCESS_REMOTE max(0, far CORE_REMOTE + Q M - PORT), Q F) h
(both with F = 0 where messages do not come in).

Two streams in one resource (`pair`): x with demand a, weight u and cost 1; y with demand d, weight w, floor f
and cost q; capacity c. f' = min(f, d, c / q); y = min(d, max(f' + (c - q f') w / (u + q w), (c - a) / q));
x = min(a, max(c - q y, 0)). It is `filling.fill` for two streams; with w = 0 messages get what is left.

Rates. Computation alone: the far cores get b' = min(b, port), then near (demand a, weight near) and far
(demand b', weight far FAR_WEIGHT, floor 0, cost 1) are a pair in the controller. Communication alone: COMM.
Together, by where messages go:
- comp_node itself: near cores (a, weight near), far cores (b, weight far FAR_WEIGHT) and messages (COMM,
  weight W, floor F, cost Q) fill the controller; far cores and messages also the port, if far > 0. With cores
  of one socket that is a pair in the controller, or, if they are the far ones, in min(controller, port).
- another node: m = min(COMM, max(ROOT g - asked, FLOOR_LOCAL COMM)) for the messages: the cores' requests
  press on the root complex. If that node is of the same socket as comp_node and far > 0, far cores (b, weight
  far FAR_WEIGHT) and messages (m, weight W, floor F, cost Q) first are a pair in CROSSING h. Then computation
  as alone with that b.
No computing core at all: computation 0, communication COMM.

Sources: thresholds, floors and who loses first: Swartvagher 2022, sections 6.1 and 6.2; weighted max-min
filling: the fluid models of SimGrid and of networks; the rest is of this project.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.model.curves import Shape, Situation
from elbowroom.model.filling import fill

Array = NDArray[np.float64]

JITTER = (-1.711094, -1.038997, -0.633067, -0.303096, 0.0, 0.303096, 0.633067, 1.038997, 1.711094)
"""Each weighs 1/9; see the module's text."""


class Meaning(msgspec.Struct, frozen=True):
    """One parameter of FLOW: its unit and what it is."""

    name: str
    unit: str
    text: str


PARAMETERS = (
    Meaning("core_local", "MB/s", "what one computing core asks of a local node"),
    Meaning("core_remote", "MB/s", "what one computing core asks of a remote node"),
    Meaning("comm_first", "MB/s", "messages alone into a node of the first socket"),
    Meaning("comm_second", "MB/s", "messages alone into a node of the second socket"),
    Meaning("uplink", "MB/s", "all cores of a socket into a node of their own"),
    Meaning("link", "MB/s", "all cores of a socket into a node of the other socket"),
    Meaning("controller", "MB/s", "everything into one node"),
    Meaning("port", "MB/s", "what comes into a node from remote cores and from messages beside them"),
    Meaning("crossing", "MB/s", "remote cores into one node and messages into another of that socket"),
    Meaning("root", "MB/s", "messages and all the cores' requests together, in different nodes"),
    Meaning("floor_local", "1", "part of its bandwidth alone that communication keeps beside local cores"),
    Meaning("floor_remote", "1", "part of its bandwidth alone that communication keeps beside remote cores"),
    Meaning("weight_local", "cores", "above its floor, communication is served like that many local cores"),
    Meaning("weight_remote", "cores", "above its floor, communication is served like that many remote cores"),
    Meaning("cost_local", "1", "capacity that messages take beside local cores, per byte of the cores'"),
    Meaning("cost_remote", "1", "capacity that messages take beside remote cores, per byte of the cores'"),
    Meaning("far_weight", "cores", "a remote core is served like that many local ones"),
    Meaning("dip_local", "1", "relative standard deviation of local capacities downwards"),
    Meaning("dip_remote", "1", "relative standard deviation of remote capacities downwards"),
    Meaning("rise_local", "1", "relative standard deviation of local capacities upwards"),
    Meaning("rise_remote", "1", "relative standard deviation of remote capacities upwards"),
    Meaning("excess_local", "1", "capacity that a controller loses per demand above its capacity"),
    Meaning("excess_remote", "1", "capacity that a port loses per demand above its capacity"),
)
NAMES = tuple(meaning.name for meaning in PARAMETERS)
INDEX = {name: position for position, name in enumerate(NAMES)}


class Cases(msgspec.Struct, frozen=True, kw_only=True):
    """Situations as arrays of length S: computing cores beside the data and of the other socket; whether
    messages go to the same node, to another node of that socket, and to the second socket.
    """

    near: Array
    far: Array
    same: NDArray[np.bool_]
    beside: NDArray[np.bool_]
    second: NDArray[np.bool_]

    def part(self, chosen: NDArray[np.bool_]) -> Cases:
        """Only the chosen situations."""
        return Cases(
            near=self.near[chosen],
            far=self.far[chosen],
            same=self.same[chosen],
            beside=self.beside[chosen],
            second=self.second[chosen],
        )


def cases(shape: Shape, situations: Sequence[Situation]) -> Cases:
    """Arrays of the situations; nothing is checked."""
    counts = np.array([(item.n, item.n_other) for item in situations], dtype=float).reshape(-1, 2)
    nodes = np.array([(item.comp_node, item.comm_node) for item in situations], dtype=int).reshape(-1, 2)
    first = nodes < shape.numa_per_socket
    same = nodes[:, 0] == nodes[:, 1]
    return Cases(
        near=np.where(first[:, 0], counts[:, 0], counts[:, 1]),
        far=np.where(first[:, 0], counts[:, 1], counts[:, 0]),
        same=same,
        beside=(first[:, 0] == first[:, 1]) & ~same,
        second=~first[:, 1],
    )


def evaluate(parameters: Array, asked: Cases) -> Array:
    """Bandwidths (MB/s), shape (4, D, S) in the order of STREAMS, for parameters (D, P) in the order of NAMES
    and S situations. Nothing is checked.
    """
    count = (4, len(parameters), len(asked.near))
    found = np.zeros(count)
    busy = asked.near + asked.far > 0
    both = (asked.near > 0) & (asked.far > 0)
    found[1] = found[3] = np.where(
        asked.second, parameters[:, [INDEX["comm_second"]]], parameters[:, [INDEX["comm_first"]]]
    )
    for chosen, share in (
        (busy & asked.same & ~both, _same_one_socket),
        (busy & asked.same & both, _same_two_sockets),
        (busy & ~asked.same, _different),
    ):
        if chosen.any():
            system = _System(parameters, asked.part(chosen))
            comp, comm = share(system)
            found[0][:, chosen] = system.alone(system.far_demand).mean(axis=-1)
            found[2][:, chosen] = comp.mean(axis=-1)
            found[3][:, chosen] = comm.mean(axis=-1)
    return found


def pair(
    demand: Array,
    weight: Array,
    other: Array,
    other_weight: Array,
    floor: Array,
    cost: Array,
    capacity: Array,
) -> tuple[Array, Array]:
    """Rates of two streams in one resource, the second with a floor and a cost: `fill` in closed form."""
    kept = np.minimum(np.minimum(floor, other), capacity / cost)
    share = kept + (capacity - cost * kept) * (other_weight / (weight + cost * other_weight))
    second = np.minimum(other, np.maximum(share, (capacity - demand) / cost))
    return np.minimum(demand, np.maximum(capacity - cost * second, 0.0)), second


class _System:
    """Demands and capacities of parameters (D) in situations (S), with the jitter's values: (D, S, 9)."""

    def __init__(self, parameters: Array, asked: Cases) -> None:
        p: dict[str, Array] = {name: parameters[:, place, None, None] for name, place in INDEX.items()}
        self.p = p
        self.near, self.far = asked.near[:, None], asked.far[:, None]
        self.beside = asked.beside[:, None]
        z = np.array(JITTER)
        self.g: Array = np.maximum(1 + np.where(z < 0, p["dip_local"], p["rise_local"]) * z, 0.0)
        self.h: Array = np.maximum(1 + np.where(z < 0, p["dip_remote"], p["rise_remote"]) * z, 0.0)
        self.comm = np.where(asked.second[:, None], p["comm_second"], p["comm_first"])
        self.asked = self.near * p["core_local"] + self.far * p["core_remote"]
        self.near_demand = np.minimum(self.near * p["core_local"], p["uplink"] * self.g)
        self.far_demand = np.minimum(self.far * p["core_remote"], p["link"] * self.h)
        self.far_weight = self.far * p["far_weight"]
        remote = self.far > 0
        self.floor = np.where(remote, p["floor_remote"], p["floor_local"]) * self.comm
        self.cost = np.where(remote, p["cost_remote"], p["cost_local"])
        self.weight = np.where(remote, p["weight_remote"], p["weight_local"])

    def controller(self, messages: Array | float, guaranteed: Array | float) -> Array:
        """Capacity of comp_node's controller with that demand and floor of messages."""
        whole = self.p["controller"]
        lost = self.p["excess_local"] * np.maximum(self.asked + self.cost * messages - whole, 0.0)
        return np.maximum(whole - lost, self.cost * guaranteed) * self.g

    def port(self, messages: Array | float, guaranteed: Array | float) -> Array:
        """Capacity of comp_node's port for remote cores with that demand and floor of messages."""
        whole = self.p["port"]
        demand = self.far * self.p["core_remote"] + self.cost * messages
        lost = self.p["excess_remote"] * np.maximum(demand - whole, 0.0)
        return np.maximum(whole - lost, self.cost * guaranteed) * self.h

    def alone(self, far_demand: Array) -> Array:
        """Computation without messages in its node, the far cores with that demand."""
        far = np.minimum(far_demand, self.port(0.0, 0.0))
        none = np.zeros_like(far)
        rates = pair(
            self.near_demand, self.near, far, self.far_weight, none, none + 1, self.controller(0.0, 0.0)
        )
        return rates[0] + rates[1]


def _same_one_socket(system: _System) -> tuple[Array, Array]:
    s = system
    remote = s.far > 0
    controller = s.controller(s.comm, s.floor)
    capacity = np.where(remote, np.minimum(controller, s.port(s.comm, s.floor)), controller)
    demand = np.where(remote, s.far_demand, s.near_demand)
    return pair(demand, np.where(remote, s.far_weight, s.near), s.comm, s.weight, s.floor, s.cost, capacity)


def _same_two_sockets(system: _System) -> tuple[Array, Array]:
    s = system
    streams = (
        (s.near_demand, 0.0, s.near),
        (s.far_demand, 0.0, s.far_weight),
        (s.comm, s.floor, s.weight),
    )
    size = s.far_demand.shape
    demands, floors, weights = (
        np.stack([np.broadcast_to(stream[part], size).ravel() for stream in streams]) for part in range(3)
    )
    capacities = np.stack([s.controller(s.comm, s.floor).ravel(), s.port(s.comm, s.floor).ravel()])
    one = np.ones_like(weights[0])
    costs = np.broadcast_to(s.cost, size).ravel()
    shares = np.stack([np.stack([one, one, costs]), np.stack([0 * one, one, costs])])
    rates = fill(demands, floors, weights, capacities, shares).reshape(3, *size)
    return rates[0] + rates[1], rates[2]


def _different(system: _System) -> tuple[Array, Array]:
    s = system
    # ROOT: requests press whether they are served or not, so it is the demand that counts.
    root = np.maximum(s.p["root"] * s.g - s.asked, s.p["floor_local"] * s.comm)
    comm = np.minimum(s.comm, root)
    shared = s.beside & (s.far > 0)
    weight = np.where(shared, s.far_weight, 1.0)  # 1: of cores that do not share, never used
    far, crossed = pair(s.far_demand, weight, comm, s.weight, s.floor, s.cost, s.p["crossing"] * s.h)
    return s.alone(np.where(shared, far, s.far_demand)), np.where(shared, crossed, comm)
