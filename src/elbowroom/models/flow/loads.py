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

import bisect
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from elbowroom.models.curves import Shape
from elbowroom.models.flow.extras import Extension
from elbowroom.models.flow.law import INDEX, JITTER, Array, Situations, parts
from elbowroom.models.flow.network import Form, shared
from elbowroom.models.load import Computing, Copy, Load, Messages

WAYS = {"receive": 0, "send": 1, "both": 2}
DIRECTIONS = (1.0, 1.0, 2.0)
"""q of each of WAYS."""

LEAST_MOVING = 0.01
"""Part of a calibrated message's time that moves data, at least."""

LEAST_KEPT = 1e-9


def part_of_nic(threads: Array, apart: Array, queueing: Array) -> Array:
    """Y(k, A): the part of the NIC that k threads use, each of which alone would use 1/A."""
    total = apart + threads - 1
    root = np.sqrt(np.maximum(total**2 - 4 * (threads - 1) * (apart - queueing), 0.0))
    part: Array = np.minimum(2 * threads / (total + root), 1.0)
    return part


def by_way(extension: Extension, suffix: str, way: NDArray[np.intp]) -> Array:
    """1 of receiving, else the parameter of sending or of both with that suffix, (D, R)."""
    send, both = (extension.get(word + suffix) for word in ("send", "both"))
    return np.where(way == WAYS["send"], send, np.where(way == WAYS["both"], both, 1.0))


def gain(extension: Extension, way: NDArray[np.intp], threads: Array) -> Array:
    """COMM' / COMM, (D, R), of large messages."""
    most = extension.get("thread_gain")
    of_threads = most * part_of_nic(threads, most, extension.get("queueing"))
    return by_way(extension, "", way) * np.where(threads > 1, of_threads, 1.0)


def of_size(
    parameters: Array, extension: Extension, shape: Shape, messages: Sequence[Messages], kept: Array
) -> tuple[Array, Array, Array]:
    """B, and what messages of their sizes reach alone and together (MB/s), (D, M) each, where large ones keep
    `kept`; for FLOW's parameters (D, P).
    """
    size = np.array([item.size for item in messages], dtype=float)
    threads = np.array([item.threads for item in messages], dtype=float)
    way = np.array([WAYS[item.direction] for item in messages], dtype=int)
    second = np.array([not shape.local(item.node) for item in messages], dtype=bool)
    comm = np.where(second, parameters[:, [INDEX["comm_second"]]], parameters[:, [INDEX["comm_first"]]])
    most_gain, queueing = extension.get("thread_gain"), extension.get("queueing")
    speed, large = by_way(extension, "", way), np.maximum(kept, LEAST_KEPT)
    latency, unit = _regimes(extension, comm, size)
    moving = size * unit * np.array(DIRECTIONS)[way] / speed
    most = part_of_nic(threads, most_gain, queueing)
    apart = part_of_nic(threads, most_gain * (1 + latency / moving), queueing)
    idle = 1 - np.minimum(apart / most, 1.0)
    moves = large + extension.get("relief") * idle * (1 - large)
    waits = latency * (1 + extension.get("latency_load") * (1 / large - 1))
    beside = part_of_nic(threads, most_gain * (1 + moves * waits / moving), queueing)
    nic = speed * most_gain / unit
    return np.minimum(beside / most, 1.0), nic * apart, nic * moves * beside


def _regimes(extension: Extension, comm: Array, size: Array) -> tuple[Array, Array]:
    """LATENCY (us) of each message and U (us/B), (D, M)."""
    latencies, speeds = (
        np.concatenate([extension.get(f"{name}_{r}") for r in range(len(extension.switches) + 1)], axis=1)
        for name in ("latency", "speed")
    )
    regime = np.searchsorted(extension.switches, size, side="right")
    calibrated = bisect.bisect_right(extension.switches, extension.size)
    rest = np.maximum(1 - latencies[:, [calibrated]] * comm / extension.size, LEAST_MOVING)
    return latencies[:, regime], rest / (comm * speeds[:, regime])


Positions = NDArray[np.intp]


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


class _PlainLoads(msgspec.Struct, frozen=True):
    """References that are situations but for their parameters. `chosen`: which, `first`: the first of each of
    those U that the law of two sockets tells apart, `same`: each of `chosen` among these; `intensities`
    (2, U) of local and remote cores, `quiet` (U,): without messages; `groups`: for each place in a load the
    references with a group there, whether these are remote, and where each is among the U.
    """

    chosen: Positions
    first: Positions
    same: Positions
    cases: Situations
    intensities: Array
    quiet: NDArray[np.bool_]
    groups: tuple[Positions, ...]


class PreparedLoads(msgspec.Struct, frozen=True):
    """L loads of a machine as the law takes them, which does not depend on parameters: R `references`, in
    which loads differ but for the size of messages, `where` (L,) each load is among them; of the references
    `node` has messages `there`, in the `second` socket or later, of `way` and with `threads` (R,). `sized`:
    the loads whose messages have a size, and these messages.
    """

    shape: Shape
    references: tuple[_Reference, ...]
    where: Positions
    there: NDArray[np.bool_]
    second: NDArray[np.bool_]
    way: Positions
    threads: Array
    plain: _PlainLoads | None
    forms: tuple[tuple[Form, Positions], ...]
    sized: tuple[list[int], list[Messages]]

    @property
    def situations(self) -> Situations:
        """The loads as the law of two sockets has them; all are situations."""
        assert self.plain is not None
        return self.plain.cases.part(self.plain.same[self.where])


class _Answers(msgspec.Struct):
    """Of R references, (D, R): all cores `alone`, `without` messages and `together` with large ones; these
    two of each group (G, D, R) and copy (C, D, R); what large messages reach alone (COMM', 0 without
    messages) and together, and K, what they keep.
    """

    alone: Array
    without: Array
    together: Array
    groups_without: Array
    groups: Array
    copies_without: Array
    copies: Array
    large: Array
    comm: Array
    kept: Array


def prepare(shape: Shape, loads: Sequence[Load], *, plain: bool = False) -> PreparedLoads:
    """The loads of that machine, for any number of calls of `evaluate`. `plain`: all are situations, which
    know local and remote nodes only: of more sockets all but the first are alike. Nothing is checked.
    """
    if plain:
        shape = msgspec.structs.replace(shape, sockets=min(shape.sockets, 2), layout=msgspec.UNSET)
    positions: dict[_Reference, int] = {}
    where = np.array([positions.setdefault(_reference(load), len(positions)) for load in loads], dtype=int)
    references = tuple(positions)
    nodes = [item.node for item in references]
    # Without a call where sockets are alike: predictions are asked for in loops.
    per_socket, last = shape.numa_per_socket, shape.sockets - 1
    regular = isinstance(shape.layout, msgspec.UnsetType)
    alike: dict[int, list[bool]] = {}
    forms: dict[Form, list[int]] = {}
    for index, item in enumerate(references):
        remote = [
            (min(group.node // per_socket, last) if regular else shape.socket(group.node)) != group.socket
            for group in item.computing
        ]
        one_node = len({group.node for group in item.computing}) <= 1
        if one_node and not item.copies and len(set(remote)) == len(remote):
            alike[index] = remote
        else:
            forms.setdefault(_form(item), []).append(index)
    sized = {place: load.messages for place, load in enumerate(loads) if load.messages and load.messages.size}
    return PreparedLoads(
        shape=shape,
        references=references,
        where=where,
        there=np.array([node is not None for node in nodes], dtype=bool),
        second=np.array([node is not None and node >= shape.numa_per_socket for node in nodes], dtype=bool),
        way=np.array([item.way for item in references], dtype=int),
        threads=np.array([item.threads for item in references], dtype=float),
        plain=_plain(shape, references, alike) if alike else None,
        forms=tuple((form, np.array(chosen)) for form, chosen in forms.items()),
        sized=(list(sized), list(sized.values())),
    )


def _reference(load: Load) -> _Reference:
    messages = load.messages
    if messages is None:
        return _Reference(load.computing, None, 0, 1, load.copies)
    return _Reference(load.computing, messages.node, WAYS[messages.direction], messages.threads, load.copies)


def _form(item: _Reference) -> Form:
    return Form(
        groups=tuple((group.socket, group.node) for group in item.computing),
        messages=item.node,
        copies=tuple(copy.node for copy in item.copies),
    )


def _plain(
    shape: Shape, references: Sequence[_Reference], alike: Mapping[int, Sequence[bool]]
) -> _PlainLoads:
    """`alike`: which of the references, and whether each of their groups is remote."""
    unlike: dict[tuple[float, ...], int] = {}
    first: list[int] = []
    same: list[int] = []
    groups: list[list[tuple[int, bool, int]]] = [[] for _ in range(max(map(len, alike.values())))]
    for index, sides in alike.items():
        item = references[index]
        counts, intensities = [0.0, 0.0], [0.0, 0.0]
        node = item.computing[0].node if item.computing else 0
        for group, remote in zip(item.computing, sides, strict=True):
            counts[remote], intensities[remote] = group.count, group.intensity
        comm = node if item.node is None else item.node
        second = comm >= shape.numa_per_socket
        beside = second == (node >= shape.numa_per_socket) and comm != node
        kind = (item.way, item.threads, item.node is None)
        row = (*counts, comm == node, beside, second, *intensities, *kind)
        among = unlike.setdefault(row, len(unlike))
        if among == len(first):
            first.append(index)
        same.append(among)
        for place, remote in enumerate(sides):
            groups[place].append((index, remote, among))
    rows = np.array(list(unlike), dtype=float)
    flags = rows > 0
    return _PlainLoads(
        chosen=np.array(list(alike)),
        first=np.array(first),
        same=np.array(same),
        cases=Situations(
            local=rows[:, 0], remote=rows[:, 1], same=flags[:, 2], beside=flags[:, 3], second=flags[:, 4]
        ),
        intensities=rows[:, 5:7].T,
        quiet=flags[:, 9],
        groups=tuple(np.array(table, dtype=int).T for table in groups),
    )


def evaluate(parameters: Array, extension: Extension, loads: PreparedLoads) -> LoadRates:
    """Rates for parameters (D, P) of FLOW in the order of its NAMES and as many of the extension. Nothing is
    checked: not the machine's cores and nodes, nor that sizes have a regime.
    """
    answers, where = _answers(parameters, extension, loads), loads.where
    alone, comm, kept = answers.large[:, where], answers.comm[:, where], answers.kept[:, where]
    together, groups, copies = (
        answers.together[:, where],
        answers.groups[:, :, where],
        answers.copies[:, :, where],
    )
    chosen, messages = loads.sized
    if chosen:
        busy, alone[:, chosen], comm[:, chosen] = of_size(
            parameters, extension, loads.shape, messages, kept[:, chosen]
        )
        at = where[chosen]
        for rates, without in (
            (together, answers.without),
            (groups, answers.groups_without),
            (copies, answers.copies_without),
        ):
            rates[..., chosen] = (1 - busy) * without[..., at] + busy * rates[..., chosen]
    return LoadRates(
        streams=np.stack([answers.alone[:, where], alone, together, comm]), groups=groups, copies=copies
    )


def core_demand(core: Array, intensity: Array, extension: Extension) -> Array:
    """C(I), (D, S), of cores that ask for `core` (D, 1), at intensities (S,)."""
    power, peak = extension.get("roofline"), extension.get("peak")
    more = (core * intensity / peak) ** power - (core * extension.intensity / peak) ** power
    demand: Array = core * (1 + np.maximum(more, 0.0)) ** (-1 / power)
    return demand


def _answers(parameters: Array, extension: Extension, loads: PreparedLoads) -> _Answers:
    size = (len(parameters), len(loads.references))
    groups = max((len(item.computing) for item in loads.references), default=0)
    copies = max((len(item.copies) for item in loads.references), default=0)
    comm = np.where(loads.second, parameters[:, [INDEX["comm_second"]]], parameters[:, [INDEX["comm_first"]]])
    large = np.where(loads.there, comm, 0.0)
    if loads.way.any() or (loads.threads > 1).any():
        large = large * gain(extension, loads.way, loads.threads)
    answers = _Answers(
        alone=np.zeros(size),
        without=np.zeros(size),
        together=np.zeros(size),
        groups_without=np.zeros((groups, *size)),
        groups=np.zeros((groups, *size)),
        copies_without=np.zeros((copies, *size)),
        copies=np.zeros((copies, *size)),
        large=large,
        comm=large.copy(),
        kept=np.ones(size),
    )
    if loads.plain is not None:
        _fill_plain(answers, parameters, extension, loads, loads.plain)
    for form, chosen in loads.forms:
        _fill_form(answers, parameters, extension, loads, form, chosen)
    return answers


def _fill_plain(
    answers: _Answers, parameters: Array, extension: Extension, loads: PreparedLoads, plain: _PlainLoads
) -> None:
    """References that are situations, by the law of flow/law.py, once each of those that it tells apart."""
    values, served = _effective(parameters, extension, plain.intensities, loads, plain.first)
    size = (len(parameters), len(plain.first))
    large = np.where(plain.quiet, 1.0, answers.large[:, plain.first])
    sides, totals, comm = np.zeros((2, 2, *size)), np.zeros((2, *size)), large.copy()
    for here, alone, together in parts(values, plain.cases, served):
        for state, rates in enumerate((alone, together)):
            totals[state][:, here] = np.add.reduce(rates[0] + rates[1], axis=-1) / len(JITTER)
            for side in (0, 1):
                sides[state, side][:, here] = np.add.reduce(rates[side], axis=-1) / len(JITTER)
        comm[:, here] = np.add.reduce(together[2], axis=-1) / len(JITTER)
    quiet, same, chosen = plain.quiet, plain.same, plain.chosen
    for table in (sides, totals):
        table[1][..., quiet] = table[0][..., quiet]
    comm[:, quiet] = 1.0
    answers.kept[:, chosen] = (comm / large)[:, same]
    answers.comm[:, chosen] = np.where(quiet, 0.0, comm)[:, same]
    answers.alone[:, chosen] = answers.without[:, chosen] = totals[0][:, same]
    answers.together[:, chosen] = totals[1][:, same]
    for place, (there, remote, among) in enumerate(plain.groups):
        answers.groups_without[place][:, there] = sides[0][remote, :, among].T
        answers.groups[place][:, there] = sides[1][remote, :, among].T


def _effective(
    parameters: Array, extension: Extension, intensities: Array, loads: PreparedLoads, chosen: Positions
) -> tuple[dict[str, Array], tuple[Array, Array] | None]:
    """FLOW's parameters for each of R chosen references, (D, 1 or R, 1), where local and remote cores have
    intensities (2, R), and what cores' weights are multiplied by, None: by 1.
    """
    values = {name: parameters[:, place, None, None] for name, place in INDEX.items()}
    served: list[Array] = []
    for name, intensity in zip(("core_local", "core_remote"), intensities, strict=True):
        if intensities.any():
            core = parameters[:, [INDEX[name]]]
            demand = core_demand(core, intensity, extension)
            values[name] = demand[:, :, None]
            served.append(((demand / core) ** extension.get("thrift"))[:, :, None])
    way, threads = loads.way[chosen], loads.threads[chosen]
    if way.any() or (threads > 1).any():
        more = gain(extension, way, threads)[:, :, None]
        values["room"] = by_way(extension, "_room", way)[:, :, None]
        for socket in ("first", "second"):
            floor, cost = (
                by_way(extension, f"_{word}_{socket}", way)[:, :, None] for word in ("floor", "cost")
            )
            values[f"comm_{socket}"] = values[f"comm_{socket}"] * more
            values[f"weight_{socket}"] = values[f"weight_{socket}"] * more
            values[f"floor_{socket}"] = np.minimum(values[f"floor_{socket}"] * floor, 1.0)
            values[f"cost_{socket}"] = values[f"cost_{socket}"] * cost
    return values, (served[0], served[1]) if served else None


def _fill_form(
    answers: _Answers,
    parameters: Array,
    extension: Extension,
    loads: PreparedLoads,
    form: Form,
    chosen: Positions,
) -> None:
    """References of one form, by the law of models/flow/network.py."""
    shape, items = loads.shape, [loads.references[index] for index in chosen.tolist()]
    values, _ = _effective(parameters, extension, np.zeros((2, len(items))), loads, chosen)
    groups, counts = len(form.groups), np.array([[g.count for g in item.computing] for item in items]).T
    intensities = np.array([[group.intensity for group in item.computing] for item in items]).T
    demands, weights = [], []
    for place, (socket, node) in enumerate(form.groups):
        local = shape.socket(node) == socket
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
    answers.alone[:, chosen] = alone[:groups].sum(axis=0)
    for total, each, of_copies, got in (
        (answers.without, answers.groups_without, answers.copies_without, beside),
        (answers.together, answers.groups, answers.copies, together),
    ):
        total[:, chosen] = got[:groups].sum(axis=0)
        each[:groups, :, chosen] = got[:groups]
        of_copies[: len(copies), :, chosen] = got[groups : groups + len(copies)]
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
