"""FLOW for any load: cores of both sockets on any nodes, messages of any size and direction, copies.

The law of model/flow.py with more streams, and a few parameters more (EXTRAS, here in capitals too). For a
load that says no more than a `Situation` it is that law. Only + - * / min max and powers, so that another
language computes the same. Everything is for one set of parameters; D sets are D answers.

Cores. Of arithmetic intensity I (flop/B), where I0 is that of the calibrated kernel, a core asks for
C(I) = C (1 + max(0, (C I / PEAK)^ROOFLINE - (C I0 / PEAK)^ROOFLINE))^(-1 / ROOFLINE),
C = CORE_LOCAL or CORE_REMOTE: a roofline with a rounded corner. Its weight is (C(I) / C)^THRIFT times that of
a core of intensity 0.

Large messages. One stream, whatever the number k of threads, that alone reaches COMM' = COMM V G Y(k, G) with
G = THREAD_GAIN and V = 1, SEND or BOTH (receive, send, both), where
Y(k, A) = min(1, 2 k / (A + k - 1 + sqrt(max(0, (A + k - 1)^2 - 4 (k - 1) (A - QUEUEING)))))
is the part of the NIC in use if each of k threads alone used 1/A of it: they queue for it (QUEUEING = 1: mean
value analysis in Schweitzer's approximation; 0: nobody waits before the NIC is full). Floor, weight and cost:
min(1, FLOOR X) COMM', W COMM' / COMM, and Q X', with X, X' = 1, or SEND_FLOOR, SEND_COST, or BOTH_FLOOR,
BOTH_COST. Beside the load's cores and copies they get Z: the law of model/flow.py with C(I), COMM' and these
in the places of its parameters, or that of model/flow_network.py where cores of one socket are more than one
group, where their data is in several nodes, and for copies. K = Z / COMM' is what large messages keep.

Messages of s bytes. One takes T + M alone, M of it moves data. T = LATENCY_r (us), M = s U q / V with
U = (1 - LATENCY_e COMM / S) / (COMM SPEED_r); S is the calibrated size, r the regime of s (the library's
protocols: it counts the switches <= s), e that of S, SPEED_e = 1; q = 2 directions at once of both, else 1.
k threads reach alone: V / U G Y(k, A), A = G (1 + T / M).
Together: K' V / U G Y(k, A'), A' = G (1 + K' T' / M), T' = T (1 + LATENCY_LOAD (1 / K - 1)), and
K' = K + RELIEF (1 - K) (1 - min(1, Y(k, A) / Y(k, G))): a NIC that is idle at times loses less.
The NIC then moves data for the part B = min(1, Y(k, A') / Y(k, G)) of the time: cores and copies get B of
what they get beside large messages and 1 - B of what they get without any. Of large messages B = 1.

Sources: the parts of a message, the switches: Denis et al. 2021, 4.4; roofline: 4.5 there; waiting for the
NIC: Lazowska et al., Quantitative System Performance, 1984, chapter 6; the rest is of this project.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.model.curves import Shape
from elbowroom.model.flow import INDEX, NAMES, Array, Cases, Meaning, parts
from elbowroom.model.flow_network import Form, shared
from elbowroom.model.load import Computing, Copy, Load

EXTRAS = (
    Meaning("peak", "Mflop/s", "what a computing core computes at most"),
    Meaning("roofline", "1", "how sharp the corner between memory and arithmetic is"),
    Meaning("thrift", "1", "power of what a core asks for in its weight"),
    Meaning("latency_load", "1", "part of a message's latency that grows as large messages slow down"),
    Meaning("relief", "1", "what messages that leave the NIC idle lose less than large ones"),
    Meaning("thread_gain", "1", "bandwidth of many communication threads over that of one"),
    Meaning("queueing", "1", "how much communication threads wait for each other"),
    Meaning("send", "1", "bandwidth alone of sending over receiving"),
    Meaning("send_floor", "1", "floor of sending over that of receiving"),
    Meaning("send_cost", "1", "cost of a sent byte over a received one"),
    Meaning("both", "1", "bandwidth alone of both directions together over receiving"),
    Meaning("both_floor", "1", "floor of both directions over that of receiving"),
    Meaning("both_cost", "1", "cost of a byte of both directions over a received one"),
    Meaning("copy_floor", "1", "floor of a copy over that of receiving"),
    Meaning("copy_weight", "1", "weight of a copy's MB/s over that of receiving"),
    Meaning("copy_cost", "1", "cost of a copied byte over a received one"),
    Meaning("devices", "MB/s", "messages and copies together"),
)
"""Beside these, for each regime r of message sizes: `latency_r` (us) and `speed_r`."""

NEUTRAL = {
    "peak": 1e9,
    "roofline": 4.0,
    "thrift": 1.0,
    "latency_load": 1.0,
    "relief": 0.0,
    "thread_gain": 1.0,
    "queueing": 1.0,
    "send": 1.0,
    "send_floor": 1.0,
    "send_cost": 1.0,
    "both": 1.0,
    "both_floor": 1.0,
    "both_cost": 1.0,
    "copy_floor": 1.0,
    "copy_weight": 1.0,
    "copy_cost": 1.0,
    "devices": 1e9,
}
"""Where nothing was measured: sending and copying as receiving, threads as one, nothing limits devices."""

WAYS = {"receive": 0, "send": 1, "both": 2}
DIRECTIONS = (1.0, 1.0, 2.0)


def meaning(name: str, switches: Sequence[int]) -> Meaning:
    """Unit and text of a parameter, those of message sizes included."""
    found = {item.name: item for item in EXTRAS}
    if name in found:
        return found[name]
    word, _, regime = name.rpartition("_")
    ends = [0, *switches]
    sizes = f"from {ends[int(regime)]} B" + (
        f" to {switches[int(regime)] - 1} B" if int(regime) < len(switches) else " on"
    )
    if word == "latency":
        return Meaning(name, "us", f"what a message takes besides its data, {sizes}")
    return Meaning(name, "1", f"bandwidth of a message that is moving over the calibrated one's, {sizes}")


def regime_names(regimes: int) -> tuple[str, ...]:
    """Names of the parameters of message sizes."""
    return tuple(f"{name}_{r}" for r in range(regimes) for name in ("latency", "speed"))


class Extension(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters beyond FLOW's: `values` (D, E) in the order of `names`, those of EXTRAS that are missing
    are NEUTRAL; `size` the calibrated one (bytes), `switches` the first sizes of all regimes but the first,
    `intensity` (flop/B) that of the calibrated kernel.
    """

    size: int
    names: tuple[str, ...]
    values: Array
    switches: tuple[int, ...] = ()
    intensity: float = 0.0

    def get(self, name: str) -> Array:
        """One parameter, (D, 1); a speed that is missing is the calibrated size's."""
        if name in self.names:
            return self.values[:, [self.names.index(name)]]
        return np.full((len(self.values), 1), NEUTRAL.get(name, 1.0))


class LoadRates(msgspec.Struct, frozen=True, kw_only=True):
    """MB/s of L loads: `streams` (4, D, L) in the order of STREAMS, `groups` (G, D, L) and `copies` (C, D, L)
    together, in the order of each load's, 0 beyond them.
    """

    streams: Array
    groups: Array
    copies: Array


class _Reference(msgspec.Struct, frozen=True):
    """A load but for the size of its messages: what large ones would get. `way`: of WAYS."""

    computing: tuple[Computing, ...]
    node: int | None
    way: int
    threads: int
    copies: tuple[Copy, ...]


class _Answers(msgspec.Struct):
    """Of R references: `alone`, `without` messages and `together` with large ones, the groups (G, D, R); the
    copies without and together (C, D, R); what messages reach alone (COMM', 0 without messages) and keep (D,
    R).
    """

    alone: Array
    without: Array
    together: Array
    copies_without: Array
    copies: Array
    large: Array
    kept: Array


def evaluate(parameters: Array, extension: Extension, shape: Shape, loads: Sequence[Load]) -> LoadRates:
    """Rates for parameters (D, P) of FLOW in the order of NAMES and as many of the extension. Nothing is
    checked: not the machine's cores and nodes, nor that sizes have a regime.
    """
    positions: dict[_Reference, int] = {}
    where = np.array([positions.setdefault(_reference(load), len(positions)) for load in loads], dtype=int)
    found = _answers(parameters, extension, shape, list(positions))
    busy, comm_alone, comm = _messages(parameters, extension, shape, loads, where, found)
    groups = (1 - busy) * found.without[:, :, where] + busy * found.together[:, :, where]
    copies = (1 - busy) * found.copies_without[:, :, where] + busy * found.copies[:, :, where]
    return LoadRates(
        streams=np.stack([found.alone[:, :, where].sum(axis=0), comm_alone, groups.sum(axis=0), comm]),
        groups=groups,
        copies=copies,
    )


def _reference(load: Load) -> _Reference:
    messages = load.messages
    return _Reference(
        computing=load.computing,
        node=None if messages is None else messages.node,
        way=0 if messages is None else WAYS[messages.direction],
        threads=1 if messages is None else messages.threads,
        copies=load.copies,
    )


def part_of_nic(threads: Array, apart: Array, queueing: Array) -> Array:
    """Y(k, A): the part of the NIC that k threads use, each of which alone would use 1/A."""
    total = apart + threads - 1
    root = np.sqrt(np.maximum(total**2 - 4 * (threads - 1) * (apart - queueing), 0.0))
    found: Array = np.minimum(2 * threads / (total + root), 1.0)
    return found


def core_demand(core: Array, intensity: Array, extension: Extension) -> Array:
    """C(I), (D, S), of cores that ask for `core` (D, 1), at intensities (S,)."""
    power, peak = extension.get("roofline"), extension.get("peak")
    more = (core * intensity / peak) ** power - (core * extension.intensity / peak) ** power
    found: Array = core * (1 + np.maximum(more, 0.0)) ** (-1 / power)
    return found


def _answers(parameters: Array, extension: Extension, shape: Shape, asked: Sequence[_Reference]) -> _Answers:
    size = (len(parameters), len(asked))
    most_groups = max((len(item.computing) for item in asked), default=0)
    most_copies = max((len(item.copies) for item in asked), default=0)
    large = _large(parameters, extension, shape, asked)
    found = _Answers(
        alone=np.zeros((most_groups, *size)),
        without=np.zeros((most_groups, *size)),
        together=np.zeros((most_groups, *size)),
        copies_without=np.zeros((most_copies, *size)),
        copies=np.zeros((most_copies, *size)),
        large=large,
        kept=np.ones(size),
    )
    plain = np.array([_plain(shape, item) for item in asked], dtype=bool)
    _fill_plain(found, parameters, extension, shape, asked, np.flatnonzero(plain))
    forms: dict[Form, list[int]] = {}
    for index in np.flatnonzero(~plain).tolist():
        forms.setdefault(_form(asked[index]), []).append(index)
    for form, chosen in forms.items():
        _fill_form(found, parameters, extension, shape, asked, form, np.array(chosen))
    return found


def _large(parameters: Array, extension: Extension, shape: Shape, asked: Sequence[_Reference]) -> Array:
    """COMM' of every reference, (D, R); 0 without messages."""
    second = np.array([item.node is not None and not shape.local(item.node) for item in asked], dtype=bool)
    comm = np.where(second, parameters[:, [INDEX["comm_second"]]], parameters[:, [INDEX["comm_first"]]])
    there = np.array([item.node is not None for item in asked], dtype=bool)
    return np.where(there, comm * _gain(extension, asked), 0.0)


def _gain(extension: Extension, asked: Sequence[_Reference]) -> Array:
    """COMM' / COMM, (D, R)."""
    way = np.array([item.way for item in asked], dtype=int)
    threads = np.array([item.threads for item in asked], dtype=float)
    gain = extension.get("thread_gain")
    share = part_of_nic(threads, gain, extension.get("queueing"))
    return _by_way(extension, "{}", way) * gain * share


def _by_way(extension: Extension, name: str, way: NDArray[np.intp]) -> Array:
    """1 of receiving, else the parameter of sending or of both, (D, R)."""
    send, both = (extension.get(name.format(word)) for word in ("send", "both"))
    return np.where(way == WAYS["send"], send, np.where(way == WAYS["both"], both, 1.0))


def _plain(shape: Shape, item: _Reference) -> bool:
    """Whether it is a situation but for its parameters: one node, at most one group of either kind."""
    sides = [_socket(shape, group.node) == group.socket for group in item.computing]
    nodes = {group.node for group in item.computing}
    return not item.copies and len(nodes) <= 1 and len(set(sides)) == len(sides)


def _socket(shape: Shape, node: int) -> int:
    return node // shape.numa_per_socket


def _fill_plain(
    found: _Answers,
    parameters: Array,
    extension: Extension,
    shape: Shape,
    asked: Sequence[_Reference],
    chosen: NDArray[np.intp],
) -> None:
    """References that are situations, by the law of model/flow.py, once each of those that it tells apart."""
    if not len(chosen):
        return
    table = np.array([_row(shape, asked[index]) for index in chosen.tolist()])
    told, first, same = np.unique(table, axis=0, return_index=True, return_inverse=True)
    same = same.ravel()
    cases = Cases(
        local=told[:, 0], remote=told[:, 1], same=told[:, 2] > 0, beside=told[:, 3] > 0, second=told[:, 4] > 0
    )
    several = [asked[index] for index in chosen[first].tolist()]
    values, served = _effective(parameters, extension, told[:, 5], told[:, 6], several)
    quiet = np.array([item.node is None for item in several], dtype=bool)
    large = np.where(quiet, 1.0, found.large[:, chosen[first]])
    alone, together = (np.zeros((2, len(parameters), len(told))) for _ in range(2))
    kept = np.ones((len(parameters), len(told)))
    for here, by_itself, with_messages in parts(values, cases, served):
        for side in (0, 1):
            alone[side][:, here] = by_itself[side].mean(axis=-1)
            together[side][:, here] = with_messages[side].mean(axis=-1)
        kept[:, here] = with_messages[2].mean(axis=-1) / large[:, here]
    together[..., quiet], kept[:, quiet] = alone[..., quiet], 1.0
    found.kept[:, chosen] = kept[:, same]
    for place in range(len(found.alone)):
        there = [k for k, index in enumerate(chosen.tolist()) if len(asked[index].computing) > place]
        groups = [asked[chosen[k]].computing[place] for k in there]
        sides = np.array([_socket(shape, group.node) != group.socket for group in groups], dtype=int)
        for goal, rates in ((found.alone, alone), (found.without, alone), (found.together, together)):
            goal[place][:, chosen[there]] = rates[sides, :, same[there]].T


def _row(shape: Shape, item: _Reference) -> tuple[float, ...]:
    """What the law tells apart: counts, places, intensities of local and remote cores, messages."""
    counts, intensities = [0.0, 0.0], [0.0, 0.0]
    node = item.computing[0].node if item.computing else 0
    for group in item.computing:
        side = int(_socket(shape, group.node) != group.socket)
        counts[side], intensities[side] = group.count, group.intensity
    comm = node if item.node is None else item.node
    same = comm == node
    beside = shape.local(comm) == shape.local(node) and not same
    return (
        *counts, same, beside, not shape.local(comm), *intensities, item.way, item.threads, item.node is None
    )  # fmt: skip


def _effective(
    parameters: Array, extension: Extension, local: Array, remote: Array, asked: Sequence[_Reference]
) -> tuple[dict[str, Array], tuple[Array, Array]]:
    """FLOW's parameters for each reference, (D, R, 1), and what cores' weights are multiplied by."""
    values = {name: parameters[:, [INDEX[name]], None] for name in NAMES}
    served = []
    for name, intensity in (("core_local", local), ("core_remote", remote)):
        core = parameters[:, [INDEX[name]]]
        demand = core_demand(core, intensity, extension)
        values[name] = demand[:, :, None]
        served.append(((demand / core) ** extension.get("thrift"))[:, :, None])
    way = np.array([item.way for item in asked], dtype=int)
    gain = _gain(extension, asked)[:, :, None]
    for socket in ("first", "second"):
        floor = _by_way(extension, "{}_floor", way)[:, :, None]
        values[f"comm_{socket}"] = values[f"comm_{socket}"] * gain
        values[f"weight_{socket}"] = values[f"weight_{socket}"] * gain
        values[f"floor_{socket}"] = np.minimum(values[f"floor_{socket}"] * floor, 1.0)
        values[f"cost_{socket}"] = values[f"cost_{socket}"] * _by_way(extension, "{}_cost", way)[:, :, None]
    return values, (served[0], served[1])


def _form(item: _Reference) -> Form:
    return Form(
        groups=tuple((group.socket, group.node) for group in item.computing),
        messages=item.node,
        copies=tuple(copy.node for copy in item.copies),
    )


def _fill_form(
    found: _Answers,
    parameters: Array,
    extension: Extension,
    shape: Shape,
    asked: Sequence[_Reference],
    form: Form,
    chosen: NDArray[np.intp],
) -> None:
    """References of one form, by the law of model/flow_network.py."""
    items = [asked[index] for index in chosen.tolist()]
    zero = np.zeros(len(items))
    values, _ = _effective(parameters, extension, zero, zero, items)
    groups, counts = len(form.groups), np.array([[g.count for g in item.computing] for item in items]).T
    intensities = np.array([[group.intensity for group in item.computing] for item in items]).T
    demands, weights = [], []
    for place, (socket, node) in enumerate(form.groups):
        local = _socket(shape, node) == socket
        core = parameters[:, [INDEX["core_local" if local else "core_remote"]]]
        one = core_demand(core, intensities[place], extension)
        own = 1.0 if local else parameters[:, [INDEX["remote_weight"]]]
        demands.append(counts[place] * one)
        weights.append(counts[place] * own * (one / core) ** extension.get("thrift"))
    copies = [_copy(parameters, extension, shape, items, place) for place in range(len(form.copies))]
    devices = extension.get("devices")[:, :, None]
    empty = Form(groups=form.groups, messages=None, copies=())
    without = Form(groups=form.groups, messages=None, copies=form.copies)
    large = found.large[:, chosen]

    def rates(of: Form) -> Array:
        return shared(of, shape, values, demands, weights, large, copies, devices)

    alone, beside, together = rates(empty), rates(without), rates(form)
    found.alone[:groups, :, chosen] = alone[:groups]
    found.without[:groups, :, chosen] = beside[:groups]
    found.together[:groups, :, chosen] = together[:groups]
    count = len(form.copies)
    found.copies_without[:count, :, chosen] = beside[groups:]
    found.copies[:count, :, chosen] = together[groups : groups + count]
    if form.messages is not None:
        found.kept[:, chosen] = together[-1] / large


def _copy(
    parameters: Array, extension: Extension, shape: Shape, items: Sequence[_Reference], place: int
) -> tuple[Array, Array, Array, Array]:
    """Demand, floor (MB/s), weight and cost of the copy at that place, (D, R) each."""
    demand = np.array([item.copies[place].demand for item in items]) + np.zeros((len(parameters), 1))
    socket = "first" if shape.local(items[0].copies[place].node) else "second"
    of = {name: parameters[:, [INDEX[f"{name}_{socket}"]]] for name in ("comm", "floor", "weight", "cost")}
    floor = np.minimum(of["floor"] * extension.get("copy_floor"), 1.0)
    weight = of["weight"] * extension.get("copy_weight") * demand / of["comm"]
    cost = of["cost"] * extension.get("copy_cost") + np.zeros_like(demand)
    return demand, floor * demand, weight, cost


def _messages(
    parameters: Array,
    extension: Extension,
    shape: Shape,
    loads: Sequence[Load],
    where: NDArray[np.intp],
    found: _Answers,
) -> tuple[Array, Array, Array]:
    """B', and what messages reach alone and together, (D, L) each."""
    large, kept = found.large[:, where], found.kept[:, where]
    there = np.array([load.messages is not None for load in loads], dtype=bool)
    busy = np.where(there, np.ones_like(large), 0.0)
    alone, together = large.copy(), large * kept
    sized = [place for place, load in enumerate(loads) if load.messages is not None and load.messages.size]
    if sized:
        chosen = np.array(sized)
        of_size = _sized(parameters, extension, shape, [loads[place] for place in sized], kept[:, chosen])
        busy[:, chosen], alone[:, chosen], together[:, chosen] = of_size
    return busy, alone, together


def _sized(
    parameters: Array, extension: Extension, shape: Shape, loads: Sequence[Load], kept: Array
) -> tuple[Array, Array, Array]:
    messages = [load.messages for load in loads if load.messages is not None]
    size = np.array([item.size for item in messages], dtype=float)
    threads = np.array([item.threads for item in messages], dtype=float)
    way = np.array([WAYS[item.direction] for item in messages], dtype=int)
    second = np.array([not shape.local(item.node) for item in messages], dtype=bool)
    comm = np.where(second, parameters[:, [INDEX["comm_second"]]], parameters[:, [INDEX["comm_first"]]])
    gain, queueing = extension.get("thread_gain"), extension.get("queueing")
    speed = _by_way(extension, "{}", way)
    latency, unit = _regimes(extension, comm, size)
    moving = size * unit * np.array(DIRECTIONS)[way] / speed
    most = part_of_nic(threads, gain, queueing)
    apart = part_of_nic(threads, gain * (1 + latency / moving), queueing)
    idle = 1 - np.minimum(apart / most, 1.0)
    burst = kept + extension.get("relief") * idle * (1 - kept)
    slower = latency * (1 + extension.get("latency_load") * (1 / kept - 1))
    beside = part_of_nic(threads, gain * (1 + burst * slower / moving), queueing)
    nic = speed * gain / unit
    return np.minimum(beside / most, 1.0), nic * apart, nic * burst * beside


def _regimes(extension: Extension, comm: Array, size: Array) -> tuple[Array, Array]:
    """LATENCY (us) of each message and U (us/B), (D, L)."""
    latencies, speeds = (
        np.concatenate([extension.get(f"{name}_{r}") for r in range(len(extension.switches) + 1)], axis=1)
        for name in ("latency", "speed")
    )
    regime = np.searchsorted(extension.switches, size, side="right")
    calibrated = bisect.bisect_right(extension.switches, extension.size)
    rest = 1 - latencies[:, [calibrated]] * comm / extension.size
    return latencies[:, regime], rest / (comm * speeds[:, regime])
