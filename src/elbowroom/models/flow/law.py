"""FLOW: a machine as a network of capacities that computing cores and messages share.

The cores of up to two sockets write to one node, messages arrive in the same or another one. Everything is
said exactly, so that another language computes the same (lib/predict, the page): only + - * / min max.

Parameters (PARAMETERS; MB/s unless said otherwise) are written in capitals. Of a situation: n, r = number of
computing cores to which comp_node is local, remote; COMM = COMM_FIRST or COMM_SECOND by the socket of
comm_node. A remote core has the weight REMOTE_WEIGHT and takes REMOTE_COST of a controller for each byte.

Jitter. A capacity takes nine equally likely values: times g_i = max(0, 1 + s z_i), z_i of JITTER (medians of
nine equally likely slices of a normal variable, scaled to variance 1), s = DIP where z_i < 0 and RISE
elsewhere. All capacities take their i-th value together; rates are computed for each i and averaged. That
bends the knees, and lets communication lose before the mean capacity is reached. g is that of DIP_LOCAL and
RISE_LOCAL, h that of DIP_REMOTE and RISE_REMOTE.

Demands. a = min(n CORE_LOCAL, UPLINK g) of the local cores, weight n; b = min(r CORE_REMOTE, LINK h) of the
remote cores, weight r REMOTE_WEIGHT. Messages have a floor F = FLOOR COMM, a weight W and a cost Q in a
controller: those of FIRST or SECOND by the socket of comm_node; in a port they cost Q' = Q / REMOTE_COST.

Capacities; over-demand costs capacity, but never what is guaranteed. With M = COMM and F if messages arrive
in comp_node, else both 0; with n = 0, h and EXCESS_REMOTE stand in place of g and EXCESS_LOCAL:
load       = n CORE_LOCAL + REMOTE_COST r CORE_REMOTE + Q M
controller = max(CONTROLLER - EXCESS_LOCAL max(0, load - CONTROLLER), Q F) g
load'      = r CORE_REMOTE + Q' M
port       = max(PORT - EXCESS_REMOTE max(0, load' - PORT), Q' F) h

Two streams in one resource (`pair`): x with demand a, weight u and cost 1; y with demand d, weight w, floor f
and cost q; capacity c. f' = min(f, d, c / q); y = min(d, max(f' + (c - q f') w / (u + q w), (c - a) / q));
x = min(a, max(c - q y, 0)). It is `filling.fill` for two streams; with w = 0 messages get what is left.

Rates. Computation alone: the remote cores get b' = min(b, port), then local (a) and remote cores (b', floor
0, cost REMOTE_COST) are a pair in the controller. Communication alone: COMM. Together, by where messages go:
- comp_node itself. r = 0: local cores (a) and messages (COMM, W, F, Q) are a pair in the controller. n = 0:
  remote cores (b) and messages (COMM, W, F, Q') are a pair in min(port, controller / REMOTE_COST). Else all
  three `fill` the controller (costs 1, REMOTE_COST, Q) and the port (costs 0, 1, Q').
- another node. m = min(COMM, max(ROOT g - max(n CORE_LOCAL, r CORE_REMOTE), FLOOR_FIRST COMM)) for messages:
  the requests of the busier socket press on the root complex. If that node is of the same socket as
  comp_node and r > 0, remote cores (b) and messages (m, W, F, cost 1) first are a pair in CROSSING h. Then
  computation as alone, with that b.
No computing core at all: computation 0, communication COMM.

Sources: thresholds, floors and who loses first: Swartvagher 2022, sections 6.1 and 6.2; weighted max-min
filling: the fluid models of SimGrid and of networks; the rest is of this project.

Sharing capacities: streams with a demand, a guaranteed floor and a weight fill the resources they pass.

The law, step by step, so that another implementation gives the same to the last digits. K streams with
demand d_k, floor f_k <= d_k and weight w_k >= 0 (all rates in one unit); R resources with capacity c_r >= 0;
a_rk is what a unit of stream k takes of resource r, 0 where it does not pass. Only + - * /, min and max.

1. Floors. F_r = sum of a_rk f_k. A stream's rate: f_k times the least of 1 and c_r / F_r of its resources.
2. Filling. Active: the streams with w_k > 0. At most K rounds of: free_r = c_r - sum of a_rk rate_k, not
   below 0; a stream with d_k - rate <= 1e-12 d_k, or with a resource whose free_r <= 1e-12 c_r, is no longer
   active; every active rate grows by w_k x, x being the least of (d_k - rate) / w_k of the active streams and
   free_r / (sum of a_rk w_k of the active streams) of the resources with an active stream.
3. What is left. The same as step 2 with the streams of weight 0, each with weight 1.

Each round ends with one stream more at its demand or at a full resource, so K rounds are enough.
Sources: progressive filling of max-min fairness; floors and the weight 0 are the hypotheses of Swartvagher
2022, section 6.1.1 (messages lose first, a minimum is always theirs).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

EXHAUSTED = 1e-12
"""Relative to the demand or the capacity: what is less than this from being full is full."""


def fill(demands: Array, floors: Array, weights: Array, capacities: Array, costs: Array) -> Array:
    """Rates, shape (K, B), of K streams in B independent networks.

    demands, floors, weights: (K, B); capacities: (R, B), infinite for a resource that never limits; costs:
    (R, K, B), what a unit of the stream takes of the resource, 0 where it does not pass.
    """
    rates = _guaranteed(floors, capacities, costs) + np.zeros_like(demands)
    eager = weights > 0
    rates = _grow(rates, np.where(eager, weights, 0.0), demands, capacities, costs)
    if not eager.all():
        rates = _grow(rates, np.where(eager, 0.0, 1.0), demands, capacities, costs)
    return rates


def _guaranteed(floors: Array, capacities: Array, costs: Array) -> Array:
    wanted = (costs * floors).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        kept = np.where(wanted > capacities, capacities / wanted, 1.0)
    least: Array = np.where(costs > 0, kept[:, None], 1.0).min(axis=0)
    return floors * least


def _grow(rates: Array, weights: Array, demands: Array, capacities: Array, costs: Array) -> Array:
    """Lets the streams of positive weight grow together until each has met its demand or a full resource."""
    for _ in range(len(demands)):
        free = np.maximum(capacities - (costs * rates).sum(axis=1), 0.0)
        full = free <= EXHAUSTED * np.where(np.isfinite(capacities), capacities, 0.0)
        stopped = ((costs > 0) & full[:, None]).any(axis=0) | (demands - rates <= EXHAUSTED * demands)
        active = np.where(stopped, 0.0, weights)
        if not active.any():
            break
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            own = np.where(active > 0, (demands - rates) / active, np.inf).min(axis=0)
            load = (costs * active).sum(axis=1)
            common = np.where(load > 0, free / load, np.inf).min(axis=0)
        step = np.minimum(own, common)
        rates = rates + active * np.where(np.isfinite(step), step, 0.0)
    return rates


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
    Meaning(
        "floor_first", "1", "share of their bandwidth alone that messages keep in any case, first socket"
    ),
    Meaning(
        "floor_second", "1", "share of their bandwidth alone that messages keep in any case, second socket"
    ),
    Meaning("weight_first", "cores", "above their floor, messages are served like so many, first socket"),
    Meaning("weight_second", "cores", "above their floor, messages are served like so many, second socket"),
    Meaning("cost_first", "1", "what a byte of messages into the first socket takes of a controller"),
    Meaning("cost_second", "1", "what a byte of messages into the second socket takes of a controller"),
    Meaning("remote_weight", "cores", "a remote core is served like that many local ones"),
    Meaning("remote_cost", "1", "what a byte of a remote core takes of a controller"),
    Meaning("dip_local", "1", "relative standard deviation of local capacities downwards"),
    Meaning("dip_remote", "1", "relative standard deviation of remote capacities downwards"),
    Meaning("rise_local", "1", "relative standard deviation of local capacities upwards"),
    Meaning("rise_remote", "1", "relative standard deviation of remote capacities upwards"),
    Meaning("excess_local", "1", "capacity that a controller loses per demand above its capacity"),
    Meaning("excess_remote", "1", "capacity that a port loses per demand above its capacity"),
)
NAMES = tuple(meaning.name for meaning in PARAMETERS)
INDEX = {name: position for position, name in enumerate(NAMES)}


class Situations(msgspec.Struct, frozen=True, kw_only=True):
    """Situations as arrays of length S: computing cores beside the data and of the other socket; whether
    messages go to the same node, to another node of that socket, and to the second socket.
    """

    local: Array
    remote: Array
    same: NDArray[np.bool_]
    beside: NDArray[np.bool_]
    second: NDArray[np.bool_]

    def part(self, chosen: NDArray[np.bool_] | NDArray[np.intp]) -> Situations:
        """Only the chosen situations, by a mask or by their positions."""
        return Situations(
            local=self.local[chosen],
            remote=self.remote[chosen],
            same=self.same[chosen],
            beside=self.beside[chosen],
            second=self.second[chosen],
        )


def parts(
    values: Mapping[str, Array], situations: Situations, served: tuple[Array, Array] | None = None
) -> Iterator[tuple[NDArray[np.bool_], tuple[Array, Array], tuple[Array, Array, Array]]]:
    """Rates by the jitter's values, (D, chosen, 9), of the situations where cores compute, some at a time:
    which they are, local and remote cores alone, local and remote cores and messages together.

    values: each parameter as (D or 1, S or 1, 1), so that it may differ from one situation to another, and
    `room`, where CONTROLLER is another beside messages: its factor (models/flow/loads.py);
    served: (D or 1, S, 1) each, what the weights of local and of remote cores are times one.
    """
    local, remote = situations.local > 0, situations.remote > 0
    for chosen, share in (
        (situations.same & local & ~remote, _same_local),
        (situations.same & remote & ~local, _same_remote),
        (situations.same & local & remote, _same_both),
        (~situations.same & (local | remote), _different),
    ):
        if chosen.any():
            here = {
                name: value if value.shape[1] == 1 else value[:, chosen] for name, value in values.items()
            }
            weights = None if served is None else (served[0][:, chosen], served[1][:, chosen])
            system = System(here, situations.part(chosen), weights)
            yield chosen, system.alone(system.remote_demand), share(system)


def pair(
    demand: Array,
    weight: Array,
    other: Array,
    other_weight: Array,
    floor: Array,
    cost: Array | float,
    capacity: Array,
) -> tuple[Array, Array]:
    """Rates of two streams in one resource, the second with a floor and a cost: `fill` in closed form."""
    kept = np.minimum(np.minimum(floor, other), capacity / cost)
    share = kept + (capacity - cost * kept) * (other_weight / (weight + cost * other_weight))
    second = np.minimum(other, np.maximum(share, (capacity - demand) / cost))
    return np.minimum(demand, np.maximum(capacity - cost * second, 0.0)), second


def jitter(p: Mapping[str, Array]) -> tuple[Array, Array]:
    """g and h, (D, S or 1, 9), of parameters as `parts` takes them."""
    z = np.array(JITTER)
    local: Array = np.maximum(1 + np.where(z < 0, p["dip_local"], p["rise_local"]) * z, 0.0)
    remote: Array = np.maximum(1 + np.where(z < 0, p["dip_remote"], p["rise_remote"]) * z, 0.0)
    return local, remote


class System:
    """Demands and capacities of parameters (D) in situations (S), with the jitter's values: (D, S, 9)."""

    def __init__(
        self, p: dict[str, Array], situations: Situations, served: tuple[Array, Array] | None = None
    ) -> None:
        self.p = p
        self.local, self.remote = situations.local[:, None], situations.remote[:, None]
        self.beside = situations.beside[:, None]
        self.g, self.h = jitter(p)
        self.comm = np.where(situations.second[:, None], p["comm_second"], p["comm_first"])
        self.local_demand = np.minimum(self.local * p["core_local"], p["uplink"] * self.g)
        self.remote_demand = np.minimum(self.remote * p["core_remote"], p["link"] * self.h)
        self.local_weight = self.local if served is None else self.local * served[0]
        self.remote_weight = (self.remote if served is None else self.remote * served[1]) * p["remote_weight"]
        second = situations.second[:, None]
        self.floor = np.where(second, p["floor_second"], p["floor_first"]) * self.comm
        self.weight = np.where(second, p["weight_second"], p["weight_first"])
        self.cost: Array = np.where(second, p["cost_second"], p["cost_first"])
        self.port_cost: Array = self.cost / p["remote_cost"]
        # Beside messages that leave a controller less room than receptions (models/flow/loads.py).
        self.beside_messages: Array = p["controller"] * p.get("room", 1.0)

    def controller(
        self, messages: Array | float, guaranteed: Array | float, whole: Array | None = None
    ) -> Array:
        """Capacity of comp_node's controller with that demand and floor of messages; `whole` in the place of
        CONTROLLER.
        """
        p, only_remote = self.p, self.local == 0
        whole = p["controller"] if whole is None else whole
        cores = self.local * p["core_local"] + p["remote_cost"] * self.remote * p["core_remote"]
        over: Array = np.maximum(cores + self.cost * messages - whole, 0.0)
        excess = np.where(only_remote, p["excess_remote"], p["excess_local"])
        left: Array = np.maximum(whole - excess * over, self.cost * guaranteed)
        return left * np.where(only_remote, self.h, self.g)

    def port(self, messages: Array | float, guaranteed: Array | float) -> Array:
        """Capacity of comp_node's port for remote cores with that demand and floor of messages."""
        p = self.p
        load = self.remote * p["core_remote"] + self.port_cost * messages
        left = p["port"] - p["excess_remote"] * np.maximum(load - p["port"], 0.0)
        return np.maximum(left, self.port_cost * guaranteed) * self.h

    def alone(self, remote_demand: Array) -> tuple[Array, Array]:
        """Computation without messages in its node, the remote cores with that demand."""
        remote = np.minimum(remote_demand, self.port(0.0, 0.0))
        floor, controller = np.zeros_like(remote), self.controller(0.0, 0.0)
        cost = self.p["remote_cost"]
        return pair(self.local_demand, self.local_weight, remote, self.remote_weight, floor, cost, controller)


def _same_local(system: System) -> tuple[Array, Array, Array]:
    s = system
    controller = s.controller(s.comm, s.floor, s.beside_messages)
    cores, messages = pair(s.local_demand, s.local_weight, s.comm, s.weight, s.floor, s.cost, controller)
    return cores, np.zeros_like(cores), messages


def _same_remote(system: System) -> tuple[Array, Array, Array]:
    s = system
    capacity = np.minimum(
        s.port(s.comm, s.floor), s.controller(s.comm, s.floor, s.beside_messages) / s.p["remote_cost"]
    )
    cores, messages = pair(s.remote_demand, s.remote_weight, s.comm, s.weight, s.floor, s.port_cost, capacity)
    return np.zeros_like(cores), cores, messages


def _same_both(system: System) -> tuple[Array, Array, Array]:
    s = system
    size = s.remote_demand.shape

    def table(*rows: Array | float) -> Array:
        return np.stack([np.broadcast_to(row, size).ravel() for row in rows])

    rates = fill(
        demands=table(s.local_demand, s.remote_demand, s.comm),
        floors=table(0.0, 0.0, s.floor),
        weights=table(s.local_weight, s.remote_weight, s.weight),
        capacities=table(s.controller(s.comm, s.floor, s.beside_messages), s.port(s.comm, s.floor)),
        costs=np.stack([table(1.0, s.p["remote_cost"], s.cost), table(0.0, 1.0, s.port_cost)]),
    ).reshape(3, *size)
    return rates[0], rates[1], rates[2]


def _different(system: System) -> tuple[Array, Array, Array]:
    s = system
    # ROOT: requests press whether they are served or not, so it is the demand that counts.
    pressing = np.maximum(s.local * s.p["core_local"], s.remote * s.p["core_remote"])
    root = np.maximum(s.p["root"] * s.g - pressing, s.p["floor_first"] * s.comm)
    comm = np.minimum(s.comm, root)
    shared = s.beside & (s.remote > 0)
    weight = np.where(shared, s.remote_weight, 1.0)  # 1: of cores that do not share, never used
    crossing = s.p["crossing"] * s.h
    remote, crossed = pair(s.remote_demand, weight, comm, s.weight, s.floor, 1.0, crossing)
    return *s.alone(np.where(shared, remote, s.remote_demand)), np.where(shared, crossed, comm)
