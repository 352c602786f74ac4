"""FLOW for any load: cores of both sockets on any nodes, messages of any size and direction, copies.

The law of models/flow/law.py with more streams, and a few parameters more (EXTRAS of flow/extras.py, here in
capitals too). For a load that says no more than a `Situation` it is that law. Only + - * / min max and
powers, so that another language computes the same. Everything is for one set of parameters; D sets are D
answers.

Cores. Of arithmetic intensity I (flop/B), where I0 is that of the calibrated kernel, a core asks for

    C(I) = C (1 + max(0, (C I / PEAK)^ROOFLINE - (C I0 / PEAK)^ROOFLINE))^(-1 / ROOFLINE),

C = CORE_LOCAL or CORE_REMOTE: a roofline with a rounded corner. Its weight is (C(I) / C)^THRIFT times that of
a core of intensity 0.

Large messages are one stream, whatever the number k of threads, that alone reaches COMM' = COMM V G Y(k, G)
with G = THREAD_GAIN and V = 1, SEND or BOTH (receive, send, both), where

    Y(k, A) = min(1, 2 k / (A + k - 1 + sqrt(max(0, (A + k - 1)^2 - 4 (k - 1) (A - QUEUEING)))))

is the part of the NIC in use if each of k threads alone used 1/A of it: they queue for it (QUEUEING = 1: mean
value analysis in Schweitzer's approximation; 0: nobody waits before the NIC is full). Their floor is min(1,
FLOOR X) COMM', their weight W COMM' / COMM, their cost Q X'; of receiving X = X' = 1, else X is SEND_FLOOR or
BOTH_FLOOR and X' SEND_COST or BOTH_COST, those of FIRST or SECOND by the socket of comm_node. Together, where
cores have data in comm_node, its controller has CONTROLLER R, R = 1, SEND_ROOM or BOTH_ROOM: to turn from
writing to reading costs memory time. Beside the load's cores and copies large messages get Z: by the law of
models/flow/law.py with C(I), COMM', CONTROLLER R (not for computation alone) and these in the places of its
parameters; by that of models/flow/network.py where cores of one socket are more than one group, where their
data is in several nodes, and for copies. K = max(1e-9, Z / COMM') is what large messages keep.

Messages of s bytes. One takes T + M alone, M of it moves data:

    T = LATENCY_r (us), M = s U q / V, U = max(0.01, 1 - LATENCY_e COMM / S) / (COMM SPEED_r),

S the calibrated size, r the regime of s (the library's protocols: it counts the switches <= s), e that of S,
SPEED_e = 1, q = 2 directions at once of both, else 1. k threads reach

    alone    V / U G Y(k, A),     A = G (1 + T / M);
    together K' V / U G Y(k, A'), A' = G (1 + K' T' / M), T' = T (1 + LATENCY_LOAD (1 / K - 1)),
             K' = K + RELIEF (1 - K) (1 - min(1, Y(k, A) / Y(k, G))): a NIC that is idle at times loses less.

The NIC then moves data for the part B = min(1, Y(k, A') / Y(k, G)) of the time: cores and copies get B of
what they get beside large messages and 1 - B of what they get without any. Of large messages B = 1.

Copies. One of demand d has the floor min(1, FLOOR COPY_FLOOR) d, the weight W COPY_WEIGHT d / COMM, the cost
Q COPY_COST, with FLOOR, W, COMM and Q of the socket of its node.

Sources: the parts of a message, the switches: Denis et al. 2021, 4.4; roofline: 4.5 there; waiting for the
NIC: Lazowska et al., Quantitative System Performance, 1984, chapter 6; the rest is of this project.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.models.curves import Shape
from elbowroom.models.flow.extras import Extension
from elbowroom.models.flow.law import INDEX, NAMES, Array, Cases, parts
from elbowroom.models.flow.messages import WAYS, by_way, gain, of_size
from elbowroom.models.flow.network import Form, shared
from elbowroom.models.load import Computing, Copy, Load


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
    copies without and together (C, D, R); what large messages reach alone (COMM', 0 without messages) and
    together, and K, what they keep (D, R).
    """

    alone: Array
    without: Array
    together: Array
    copies_without: Array
    copies: Array
    large: Array
    comm: Array
    kept: Array


def evaluate(parameters: Array, extension: Extension, shape: Shape, loads: Sequence[Load]) -> LoadRates:
    """Rates for parameters (D, P) of FLOW in the order of NAMES and as many of the extension. Nothing is
    checked: not the machine's cores and nodes, nor that sizes have a regime.
    """
    positions: dict[_Reference, int] = {}
    where = np.array([positions.setdefault(_reference(load), len(positions)) for load in loads], dtype=int)
    answers = _answers(parameters, extension, shape, list(positions))
    busy, alone, together = _messages(parameters, extension, shape, loads, answers, where)
    groups = (1 - busy) * answers.without[:, :, where] + busy * answers.together[:, :, where]
    copies = (1 - busy) * answers.copies_without[:, :, where] + busy * answers.copies[:, :, where]
    return LoadRates(
        streams=np.stack([answers.alone[:, :, where].sum(axis=0), alone, groups.sum(axis=0), together]),
        groups=groups,
        copies=copies,
    )


def _messages(
    parameters: Array,
    extension: Extension,
    shape: Shape,
    loads: Sequence[Load],
    answers: _Answers,
    where: NDArray[np.intp],
) -> tuple[Array, Array, Array]:
    """B, and what messages reach alone and together, (D, L) each; `where`: each load among the references."""
    alone, together, kept = answers.large[:, where], answers.comm[:, where], answers.kept[:, where]
    busy = np.ones_like(alone)
    sized = {place: load.messages for place, load in enumerate(loads) if load.messages and load.messages.size}
    if sized:
        chosen = list(sized)
        rates = of_size(parameters, extension, shape, list(sized.values()), kept[:, chosen])
        busy[:, chosen], alone[:, chosen], together[:, chosen] = rates
    return busy, alone, together


def _reference(load: Load) -> _Reference:
    messages = load.messages
    return _Reference(
        computing=load.computing,
        node=None if messages is None else messages.node,
        way=0 if messages is None else WAYS[messages.direction],
        threads=1 if messages is None else messages.threads,
        copies=load.copies,
    )


def core_demand(core: Array, intensity: Array, extension: Extension) -> Array:
    """C(I), (D, S), of cores that ask for `core` (D, 1), at intensities (S,)."""
    power, peak = extension.get("roofline"), extension.get("peak")
    more = (core * intensity / peak) ** power - (core * extension.intensity / peak) ** power
    demand: Array = core * (1 + np.maximum(more, 0.0)) ** (-1 / power)
    return demand


def _answers(
    parameters: Array, extension: Extension, shape: Shape, references: Sequence[_Reference]
) -> _Answers:
    size = (len(parameters), len(references))
    most_groups = max((len(item.computing) for item in references), default=0)
    most_copies = max((len(item.copies) for item in references), default=0)
    large = _large(parameters, extension, shape, references)
    answers = _Answers(
        alone=np.zeros((most_groups, *size)),
        without=np.zeros((most_groups, *size)),
        together=np.zeros((most_groups, *size)),
        copies_without=np.zeros((most_copies, *size)),
        copies=np.zeros((most_copies, *size)),
        large=large,
        comm=large.copy(),
        kept=np.ones(size),
    )
    plain = np.array([_plain(shape, item) for item in references], dtype=bool)
    _fill_plain(answers, parameters, extension, shape, references, np.flatnonzero(plain))
    forms: dict[Form, list[int]] = {}
    for index in np.flatnonzero(~plain).tolist():
        forms.setdefault(_form(references[index]), []).append(index)
    for form, chosen in forms.items():
        _fill_form(answers, parameters, extension, shape, references, form, np.array(chosen))
    return answers


def _large(parameters: Array, extension: Extension, shape: Shape, references: Sequence[_Reference]) -> Array:
    """COMM' of every reference, (D, R); 0 without messages."""
    second = np.array(
        [item.node is not None and not shape.local(item.node) for item in references], dtype=bool
    )
    comm = np.where(second, parameters[:, [INDEX["comm_second"]]], parameters[:, [INDEX["comm_first"]]])
    there = np.array([item.node is not None for item in references], dtype=bool)
    way = np.array([item.way for item in references], dtype=int)
    threads = np.array([item.threads for item in references], dtype=float)
    return np.where(there, comm * gain(extension, way, threads), 0.0)


def _plain(shape: Shape, item: _Reference) -> bool:
    """Whether it is a situation but for its parameters: one node, at most one group of either kind."""
    sides = [_socket(shape, group.node) == group.socket for group in item.computing]
    nodes = {group.node for group in item.computing}
    return not item.copies and len(nodes) <= 1 and len(set(sides)) == len(sides)


def _socket(shape: Shape, node: int) -> int:
    return node // shape.numa_per_socket


def _fill_plain(
    answers: _Answers,
    parameters: Array,
    extension: Extension,
    shape: Shape,
    references: Sequence[_Reference],
    chosen: NDArray[np.intp],
) -> None:
    """References that are situations, by the law of flow/law.py, once each of those that it tells apart."""
    if not len(chosen):
        return
    table = np.array([_row(shape, references[index]) for index in chosen.tolist()])
    rows, first, same = np.unique(table, axis=0, return_index=True, return_inverse=True)
    same = same.ravel()
    cases = Cases(
        local=rows[:, 0], remote=rows[:, 1], same=rows[:, 2] > 0, beside=rows[:, 3] > 0, second=rows[:, 4] > 0
    )
    several = [references[index] for index in chosen[first].tolist()]
    values, served = _effective(parameters, extension, rows[:, 5], rows[:, 6], several)
    quiet = np.array([item.node is None for item in several], dtype=bool)
    large = np.where(quiet, 1.0, answers.large[:, chosen[first]])
    alone, together = (np.zeros((2, len(parameters), len(rows))) for _ in range(2))
    comm = large.copy()
    for here, by_itself, with_messages in parts(values, cases, served):
        for side in (0, 1):
            alone[side][:, here] = by_itself[side].mean(axis=-1)
            together[side][:, here] = with_messages[side].mean(axis=-1)
        comm[:, here] = with_messages[2].mean(axis=-1)
    together[..., quiet], comm[:, quiet] = alone[..., quiet], 1.0
    answers.kept[:, chosen] = (comm / large)[:, same]
    answers.comm[:, chosen] = np.where(quiet, 0.0, comm)[:, same]
    for place in range(len(answers.alone)):
        there = [k for k, index in enumerate(chosen.tolist()) if len(references[index].computing) > place]
        groups = [references[chosen[k]].computing[place] for k in there]
        sides = np.array([_socket(shape, group.node) != group.socket for group in groups], dtype=int)
        for goal, rates in ((answers.alone, alone), (answers.without, alone), (answers.together, together)):
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
    parameters: Array, extension: Extension, local: Array, remote: Array, references: Sequence[_Reference]
) -> tuple[dict[str, Array], tuple[Array, Array]]:
    """FLOW's parameters for each reference, (D, R, 1), and what cores' weights are multiplied by."""
    values = {name: parameters[:, [INDEX[name]], None] for name in NAMES}
    served = []
    for name, intensity in (("core_local", local), ("core_remote", remote)):
        core = parameters[:, [INDEX[name]]]
        demand = core_demand(core, intensity, extension)
        values[name] = demand[:, :, None]
        served.append(((demand / core) ** extension.get("thrift"))[:, :, None])
    way = np.array([item.way for item in references], dtype=int)
    values["room"] = by_way(extension, "_room", way)[:, :, None]
    more = gain(extension, way, np.array([item.threads for item in references], dtype=float))[:, :, None]
    for socket in ("first", "second"):
        floor = by_way(extension, f"_floor_{socket}", way)[:, :, None]
        values[f"comm_{socket}"] = values[f"comm_{socket}"] * more
        values[f"weight_{socket}"] = values[f"weight_{socket}"] * more
        values[f"floor_{socket}"] = np.minimum(values[f"floor_{socket}"] * floor, 1.0)
        values[f"cost_{socket}"] = (
            values[f"cost_{socket}"] * by_way(extension, f"_cost_{socket}", way)[:, :, None]
        )
    return values, (served[0], served[1])


def _form(item: _Reference) -> Form:
    return Form(
        groups=tuple((group.socket, group.node) for group in item.computing),
        messages=item.node,
        copies=tuple(copy.node for copy in item.copies),
    )


def _fill_form(
    answers: _Answers,
    parameters: Array,
    extension: Extension,
    shape: Shape,
    references: Sequence[_Reference],
    form: Form,
    chosen: NDArray[np.intp],
) -> None:
    """References of one form, by the law of models/flow/network.py."""
    items = [references[index] for index in chosen.tolist()]
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
    large = answers.large[:, chosen]

    def rates(of: Form) -> Array:
        return shared(of, shape, values, demands, weights, large, copies, devices)

    alone, beside, together = rates(empty), rates(without), rates(form)
    answers.alone[:groups, :, chosen] = alone[:groups]
    answers.without[:groups, :, chosen] = beside[:groups]
    answers.together[:groups, :, chosen] = together[:groups]
    count = len(form.copies)
    answers.copies_without[:count, :, chosen] = beside[groups:]
    answers.copies[:count, :, chosen] = together[groups : groups + count]
    if form.messages is not None:
        answers.kept[:, chosen] = together[-1] / large
        answers.comm[:, chosen] = together[-1]


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
