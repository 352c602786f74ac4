"""A virtual GPU's answers to the requests of `gpu-streams` (docs/reference/gpu-bench.md); no time passes.

What a virtual GPU gives everything that runs at once: products, triad, launches, copies by engines and by
SMs, and on the host computing cores and messages. Rates are in the unit of the program's answer.

In this order:

1. **SMs** that are held, and what a product then takes (below).
2. **Link**: copies in one direction share it evenly; both directions together get at most `both`.
3. **Stores to the host**: those of SMs that store faster than the link carries wait in the device,
   `posted_bytes` for each SM. All other requests of SMs wait behind them: posted bytes / the link's rate.
4. **Memory of the device**: triad, copies and products are streams of a closed network of credits
   (virtual/network.py) with one resource. A copy inside the device reads and writes, so it counts twice.
5. **Memory of the host**: computing cores, messages and copies are streams of the machine's network of
   credits (virtual/loads.py), where each copy demands what the link gives it.

What the host takes from a copy does not come back to the device's memory.

SMs of a virtual GPU: which of them are held, how many clusters of blocks fit on the others, and in how
many waves the tiles of a matrix product run.

- **Holding**: each block that holds an SM goes to the GPC with the most free SMs, of these to the one that
  has the fewest held; in pairs it takes both SMs of a TPC.
- **Clusters**: the blocks of a product run in clusters whose SMs are all in one GPC. What is left of a GPC is
  not used. The library plans for a number of SMs: the largest cluster of 8, 4 or 2 blocks that divides this
  number and of which as many fit on the empty device.
- **Waves**: a product has a block for each tile; clusters start as others end. All tiles take equally long,
  so that T tiles on S SMs take ceil(T / S) times.

With pairs, the GPCs that are taken are those of the SM numbers which the source of the published figures has
recorded (docs/reference/virtual-gpu.md). The rule for clusters is an assumption.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import Any

import msgspec

from elbowroom.errors import UsageError
from elbowroom.models.load import Computing, Copy
from elbowroom.plan.kernels import find
from elbowroom.points.unit import Unit
from elbowroom.virtual.credits import Credits
from elbowroom.virtual.definition import Definition
from elbowroom.virtual.gpu import LETTERS, SMS_OF_UNIT, WAYS, Gpu, GpuSide, held, sides_of
from elbowroom.virtual.laws import unit_of
from elbowroom.virtual.loads import rates as host_rates
from elbowroom.virtual.network import Resource, Stream, solve
from elbowroom.virtual.truth import FLAG, MessageFlow, repetition_record

CLUSTERS = (8, 4, 2)


class Grid(msgspec.Struct, frozen=True, kw_only=True):
    """How a product is planned: `clusters` of `size` blocks that may run at once."""

    size: int
    clusters: int


def free_sms(gpu: Gpu, held: int, *, pairs: bool = False) -> tuple[int, ...]:
    """SMs of each GPC that are free while so many are held, at most all of them, one by one or in pairs."""
    sizes = [SMS_OF_UNIT * count for count in gpu.gpcs]
    free = list(sizes)
    left = held
    while left > 0:
        gpc = min(range(len(free)), key=lambda gpc: (-free[gpc], sizes[gpc]))
        taken = min(left, SMS_OF_UNIT if pairs else 1)
        free[gpc] -= taken
        left -= taken
    return tuple(free)


def slots(free: Sequence[int], size: int) -> int:
    """Clusters of that size that fit at once."""
    return sum(count // size for count in free)


def grid(gpu: Gpu, target: int) -> Grid:
    """The plan of a product for so many SMs of an empty device."""
    empty = free_sms(gpu, 0)
    for size in CLUSTERS:
        if target % size == 0 and slots(empty, size) >= target // size:
            return Grid(size=size, clusters=target // size)
    return Grid(size=1, clusters=target)


def waves(gpu: Gpu, tiles: int, target: int, free: Sequence[int]) -> int:
    """Times a tile's that so many tiles take, planned for `target` SMs while `free` of each GPC are free; 0:
    none of its clusters fits.
    """
    plan = grid(gpu, target)
    at_once = plan.size * min(plan.clusters, slots(free, plan.size))
    return -(-tiles // at_once) if at_once else 0


def tiles(gpu: Gpu, m: int, n: int) -> int:
    """Of a product of m rows and n columns."""
    return -(-m // gpu.tile[0]) * -(-n // gpu.tile[1])


ELEMENT = 2
"""Bytes of a BF16 number."""

ACCESSES_OF_LAUNCH = 2
"""A small kernel reads and writes once."""

AHEAD = 2.0
"""Credits over what a product, or an engine that copies over the link, needs of an idle memory."""


class AnswerValue(msgspec.Struct, frozen=True):
    """A rate, or the time of a launch."""

    value: float
    unit: str


class HostMachine(msgspec.Struct, frozen=True, kw_only=True):
    """The rest of the machine: its definition and network, the socket of a core, the index of a NUMA node,
    and the index of the node that a core is near.
    """

    definition: Definition
    network: Credits
    socket: Callable[[int], int]
    node: Callable[[int], int]
    near: Callable[[int], int]


def gpu_rates(gpu: Gpu, host: HostMachine, sides: Sequence[GpuSide]) -> tuple[AnswerValue | None, ...]:
    """What each of the sides gets while all run; None for those without a rate. UsageError for a device or
    host of which no law can say it.
    """
    linked = _link_rates(gpu, sides)
    device = _device_rates(gpu, sides, linked)
    on_host = _host_rates(host, sides, linked)
    return tuple(_value(gpu, host, sides, k, {**device, **on_host}.get(k)) for k in range(len(sides)))


# SMs


def _free(gpu: Gpu, sides: Sequence[GpuSide]) -> tuple[int, ...]:
    return free_sms(gpu, held(sides), pairs=any(side.pairs for side in sides))


def product_target(gpu: Gpu, side: GpuSide, sides: Sequence[GpuSide]) -> int:
    """SMs that a product is planned for."""
    return (side.sm_target or gpu.sms) - sum(other.left_free for other in sides)


def product_fits(gpu: Gpu, side: GpuSide, sides: Sequence[GpuSide]) -> bool:
    """Whether a product has room for a cluster beside what is held."""
    return waves(gpu, 1, product_target(gpu, side, sides), _free(gpu, sides)) > 0


def product_us(gpu: Gpu, side: GpuSide, sides: Sequence[GpuSide]) -> float:
    """What a product takes with all its data there in time."""
    count = waves(gpu, tiles(gpu, side.m, side.n), product_target(gpu, side, sides), _free(gpu, sides))
    return count * _tile_us(gpu, side)


def _tile_us(gpu: Gpu, side: GpuSide) -> float:
    return gpu.tile_us + 2.0 * gpu.tile[0] * gpu.tile[1] * side.k / (1e6 * gpu.sm_tflops)


def stored_wait(gpu: Gpu, sides: Sequence[GpuSide]) -> float:
    """How much longer each request of an SM takes behind stores to the host, us."""
    waiting = [side for side in sides if side.stores and side.pace(gpu.stores) >= gpu.stores]
    return sum(side.sms for side in waiting) * gpu.posted_bytes / gpu.stores


# Link


def _link_rates(gpu: Gpu, sides: Sequence[GpuSide]) -> dict[int, float]:
    """MB/s over the link of each side that uses it, both directions of one that copies both together."""
    uses = [(k, way) for k, side in enumerate(sides) for way in side.ways]
    many = {way: sum(other == way for _, other in uses) for way in WAYS}
    most = {"h2d": gpu.h2d, "d2h": gpu.d2h}
    share = min(1.0, gpu.both / (gpu.h2d + gpu.d2h)) if all(many.values()) else 1.0
    rates: dict[int, float] = {}
    for k, way in uses:
        own = sides[k].pace(gpu.stores) if sides[k].stores else most[way]
        rates[k] = rates.get(k, 0.0) + min(own, most[way] * share / many[way])
    return rates


# Memory of the device


def _device_rates(gpu: Gpu, sides: Sequence[GpuSide], linked: Mapping[int, float]) -> dict[int, float]:
    """MB/s of each side that uses the device's memory, as it counts its bytes. UsageError where the network
    of credits has no solution in double precision.
    """
    streams = {
        k: stream for k, side in enumerate(sides) if (stream := _stream(gpu, side, sides, linked.get(k)))
    }
    memory = {"hbm": Resource(capacity=gpu.hbm, delay=gpu.hbm_delay_us)}
    try:
        solved = solve(list(streams.values()), memory) if streams else ()
    except ArithmeticError:
        raise UsageError(
            "requests far exceed what the memory of this GPU carries",
            field="gpu.hbm",
            value=gpu.hbm,
            hint="give a higher rate, or less outstanding (sm_bytes)",
        ) from None
    return {k: rate / sides[k].passes for k, rate in zip(streams, solved, strict=True)}


def _stream(gpu: Gpu, side: GpuSide, sides: Sequence[GpuSide], linked: float | None) -> Stream | None:
    """A side on the device's memory; `linked` is its rate over the link."""
    kind, latency = side.kind, gpu.hbm_latency_us
    if linked is not None:
        return _of_memory(AHEAD * linked * gpu.engine_latency_us, gpu.engine_latency_us, linked)
    if kind == "triad":
        free = sum(_free(gpu, sides))
        return _of_memory(free * gpu.sm_bytes, latency + stored_wait(gpu, sides))
    if kind == "gemm":
        demand = _product_bytes(side) / product_us(gpu, side, sides)
        return _of_memory(AHEAD * demand * latency, latency, demand)
    if kind == "sm_copy":
        credits = float(side.sms * gpu.sm_bytes)
        return _of_memory(credits, latency + stored_wait(gpu, sides), 2 * side.pace(credits / latency))
    if kind == "copy":
        demand = 2 * gpu.engine
        return _of_memory(demand * gpu.engine_latency_us, gpu.engine_latency_us, demand)
    return None


def _of_memory(credits: float, latency: float, most: float | None = None) -> Stream:
    limit = credits / latency if most is None else most
    return Stream(credits=credits, latency=latency, most=limit, route={"hbm": 1.0})


def _product_bytes(side: GpuSide) -> float:
    return float(ELEMENT * (side.m * side.k + side.k * side.n + side.m * side.n))


# Memory of the host


def _host_rates(host: HostMachine, sides: Sequence[GpuSide], linked: Mapping[int, float]) -> dict[int, float]:
    """MB/s of cores (on the bus), of copies, and of messages."""
    groups = [(k, group) for k, side in enumerate(sides) for group in _groups(host, side)]
    copies = [(k, _copy(host, sides[k], rate)) for k, rate in linked.items()]
    messages = [k for k, side in enumerate(sides) if side.kind == "messages"]
    # A ping-pong receives and sends in turns: means over the time of both.
    turns = (False, True) if messages else (False,)
    elapsed = 0.0
    moved = {k: 0.0 for k, _ in (*groups, *copies)}
    for sending in turns:
        flows = [_flow(host, sides[k], sending) for k in messages]
        got = host_rates(host.network, [one for _, one in groups], flows, [one for _, one in copies])
        time = 1 / got.flows[0] if messages else 1.0
        elapsed += time
        for (k, _), rate in zip((*groups, *copies), (*got.groups, *got.copies), strict=True):
            moved[k] += time * rate
    return {k: work / elapsed for k, work in moved.items()} | {k: len(turns) / elapsed for k in messages}


def _groups(host: HostMachine, side: GpuSide) -> list[Computing]:
    kernel = find(side.kernel) if side.kind == "cores" else None
    if kernel is None or not kernel.moves_memory:
        return []
    cursor = side.cursor if kernel.uses_cursor else 1
    sockets = [host.socket(core) for core in side.cores]
    return [
        Computing(
            socket=socket,
            node=host.node(side.node),
            count=sockets.count(socket),
            intensity=kernel.flops * cursor / kernel.bus_bytes,
        )
        for socket in sorted(set(sockets))
    ]


def _copy(host: HostMachine, side: GpuSide, rate: float) -> Copy:
    node = host.definition.nic_node if side.node < 0 else host.node(side.node)
    return Copy(node=node, demand=rate)


def _flow(host: HostMachine, side: GpuSide, sending: bool) -> MessageFlow:
    definition = host.definition
    far = host.socket(side.core) != definition.shape.socket(definition.nic_node)
    latency = definition.far_latency_us if far else definition.near_latency_us
    return MessageFlow(node=host.near(side.core), sending=sending, size=side.bytes, latency=latency, far=far)


# Answers


def _value(
    gpu: Gpu, host: HostMachine, sides: Sequence[GpuSide], k: int, rate: float | None
) -> AnswerValue | None:
    """The answer of a side, whose bytes move at `rate` MB/s; None for what moves none."""
    side = sides[k]
    kind = side.kind
    if kind == "cores":
        return _cores(host.definition, side, rate)
    if kind == "chain":
        return AnswerValue(gpu.launch_us + ACCESSES_OF_LAUNCH * stored_wait(gpu, sides), "us")
    if rate is None:
        return None
    if kind == "gemm":
        return _product(gpu, sides, k, rate)
    if kind == "messages" and side.latency:
        return AnswerValue(side.bytes / rate, "us")
    return AnswerValue(_copied(gpu, side, rate) if kind == "copy" else rate, "MB/s")


def _cores(definition: Definition, side: GpuSide, rate: float | None) -> AnswerValue | None:
    """Of computing cores in the unit of their kernel."""
    kernel = find(side.kernel)
    if kernel is None:
        return None
    moved = float(len(side.cores)) if rate is None else rate
    return AnswerValue(moved * unit_of(definition, kernel), kernel.rate_unit)


def _product(gpu: Gpu, sides: Sequence[GpuSide], k: int, rate: float) -> AnswerValue:
    """Longer than its waves where data come later than the product asks for them, or memory gives less."""
    side = sides[k]
    time = product_us(gpu, side, sides)
    demand = ELEMENT * (gpu.tile[0] + gpu.tile[1]) * side.k / _tile_us(gpu, side)  # bytes/us of an SM
    late = (gpu.cache_latency_us + stored_wait(gpu, sides)) * demand / gpu.product_bytes
    starved = _product_bytes(side) / time / rate
    flops = 2.0 * side.m * side.n * side.k
    return AnswerValue(flops / (time * max(1.0, late, starved)), "Mflop/s")


def _copied(gpu: Gpu, side: GpuSide, rate: float) -> float:
    """With what each copy takes beside its bytes: the copies of each direction follow one another."""
    ways = len(side.ways)
    extra = gpu.host_copy_us if ways else gpu.copy_us
    each = rate / max(1, ways)
    return max(1, ways) * side.bytes / (extra + side.bytes / each)


STREAM_NAMES = {"cores": "cores", "copy": "copies", "messages": "messages"}
"""How results call the streams of a case of three."""

Factors = Callable[[int, int], Sequence[Sequence[float]]]
"""Factors of noise by phase and side, for so many of each."""


def refuse_case(gpu: Gpu, host: HostMachine, case: Mapping[str, Any]) -> str:
    """Why a case cannot be answered; empty where it can."""
    try:
        sides = list(sides_of(case).values())
        if held(sides) >= gpu.sms:
            return f"{held(sides)} SMs would be held, but {gpu.name} has {gpu.sms}"
        for side in sides:
            if side.kind == "gemm" and not product_fits(gpu, side, sides):
                return "no SMs are left that a product fits on; hold fewer SMs"
        for count in range(1, len(sides) + 1):
            for phase in combinations(sides, count):
                gpu_rates(gpu, host, phase)
    except UsageError as error:
        return error.sentence()
    return ""


def answer_case(
    gpu: Gpu, host: HostMachine, unit: Unit, fields: Mapping[str, Any], factors: Factors
) -> dict[str, Any]:
    """The record of one repetition, each phase with its own noise."""
    sides = sides_of(fields["case"])
    sequence: Sequence[str] = fields["sequence"]
    drawn = factors(len(sequence), len(sides))
    phases = [
        _phase(gpu, host, sides, phase, drawn[index]) | {"phase": phase, "index": index}
        for index, phase in enumerate(sequence)
    ]
    return repetition_record(unit, phases, {"sms": gpu.sms})


def _phase(
    gpu: Gpu, host: HostMachine, case: Mapping[str, GpuSide], phase: str, factors: Sequence[float]
) -> dict[str, Any]:
    """The sides of a phase: those of a case of two are `comp` and `comm`, those of three are streams, too."""
    letters = phase.lower()
    values = gpu_rates(gpu, host, [case[letter] for letter in letters])
    record: dict[str, Any] = {
        "start_ns": 0,
        "end_ns": 0,
        "measured_s": 0.0,
        "status": "ok",
        "flags": [FLAG],
    }
    streams: dict[str, Any] = {}
    for letter, value in zip(letters, values, strict=True):
        if value is None:
            continue
        noisy = AnswerValue(value.value * factors[LETTERS.index(letter)], value.unit)
        if LETTERS[-1] in case:
            streams[STREAM_NAMES[case[letter].kind]] = {"value": noisy.value, "unit": noisy.unit}
        if letter != LETTERS[-1] and LETTERS[-1] not in letters:
            record |= _side(letter, noisy)
    return record | ({"streams": streams} if streams else {})


def _side(letter: str, value: AnswerValue) -> dict[str, Any]:
    name, key = ("comp", "rate") if letter == LETTERS[0] else ("comm", "value")
    return {name: {key: value.value, "unit": value.unit, "batches": [value.value]}}
