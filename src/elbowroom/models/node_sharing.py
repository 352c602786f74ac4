"""How much longer two jobs compute on one node because both use its memory and its last-level cache.

1. Cache. Of what a job reads again and again, a part stays in the cache alone, and less of it beside the
   other job (models/node_sharing.py). The rest becomes memory traffic.
2. Pace. Alone a job's pace is 1. With d its memory traffic alone, m what the cache no longer serves and c
   what its cores reach at most, its time is (A^p + ((d + m) / c)^p)^(1/p), with A such that it is 1 for m =
   0, and p FLOW's ROOFLINE: the rounded corner between arithmetic and memory of models/flow/loads.py.
3. Memory. Both jobs are streams of FLOW that ask for (d + m) / time (models/node_sharing.py). One that gets
   less is slower by that ratio, relative to FLOW's answer without the other job.

Slower jobs leave more of the cache to the other one, so that 1 to 3 are repeated until nothing changes. Which
lines leave a cache is not known: the value is the middle of least recently used and random ones, and the
interval holds both.

FLOW for cores whose demand is known in MB/s, by counters or because somebody states it, and not by an
arithmetic intensity: what they get beside each other. The law is that of models/flow/network.py.

How much of what two jobs keep in one last-level cache stays there.

A job passes over its working set again and again, so that all of it, and what others bring in meanwhile, lies
between two uses of a line: its reuse distance (Mattson et al., Evaluation techniques for storage hierarchies,
1970). Streams use no line twice, but bring in lines. Two jobs share a cache as their footprints add up (Xiang
et al., HOTL, ASPLOS 2013). A line with D bytes in between is still there if fewer than `ways` lines of its
set came in: with sets chosen at random P(Poisson(ways D / size) < ways) (Smith, A comparative study of set
associative memory mapping algorithms, 1978), where least recently used lines leave first.

Where random lines leave (Gelenbe, A unified approach to the evaluation of a class of replacement algorithms,
1973), each miss takes a line with the probability 1 / number of lines: with N bytes of misses of both jobs
between two uses, exp(-N / size) is still there. Passes over more than the cache then hit, too. Real caches
are between both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from scipy.special import gammaincc

from elbowroom.errors import UsageError
from elbowroom.models.document import Document
from elbowroom.models.flow.law import INDEX, Array
from elbowroom.models.flow.model import discrepancies, extension_of
from elbowroom.models.flow.network import Form, shared
from elbowroom.models.load import NORMAL_90
from elbowroom.plan import kernels
from elbowroom.quantities import plural
from elbowroom.stats.interval import Interval


class SharedCache(msgspec.Struct, frozen=True, kw_only=True):
    """The last-level cache that both jobs use: bytes, ways, and whether random lines leave it."""

    size: int
    ways: int = 16
    random: bool = False


class CacheUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a job does to the cache on one node, alone: `reuse` B/s are on `working_set` bytes that it passes
    over again and again, `stream` B/s come from memory and go there.
    """

    working_set: float
    reuse: float
    stream: float


CACHE_ROUNDS = 200
"""Until shares that depend on each other change by less than 0.001, mostly."""


def hits(cache: SharedCache, distance: float) -> float:
    """Share of the lines that are still there with `distance` bytes between two uses, where the least
    recently used ones leave.
    """
    if distance <= 0:
        return 1.0
    # P(Poisson(x) < ways) = Q(ways, x), the upper regularised incomplete gamma function.
    return float(gammaincc(cache.ways, cache.ways * distance / cache.size))


def hits_alone(cache: SharedCache, job: CacheUse) -> float:
    """Share of `reuse` that the cache serves when nobody else uses it."""
    if cache.random:
        return _random(cache, [job], [1.0])[0]
    return hits(cache, _distance(job, None, 1.0, 1.0))


def hits_beside(
    cache: SharedCache, job: CacheUse, other: CacheUse, pace: float = 1.0, others: float = 1.0
) -> float:
    """Share of `reuse` that the cache serves beside another job; `pace`, `others`: how fast both are, 1 as
    alone.
    """
    if cache.random:
        return _random(cache, [job, other], [pace, others])[0]
    return hits(cache, _distance(job, other, pace, others))


def _random(cache: SharedCache, jobs: Sequence[CacheUse], paces: Sequence[float]) -> list[float]:
    """The shares of all jobs, from an empty cache on: misses take lines, and so cause misses."""
    served = [0.0 for _ in jobs]
    for _ in range(CACHE_ROUNDS):
        missed = sum(
            pace * (one.stream + (1 - hit) * one.reuse)
            for one, hit, pace in zip(jobs, served, paces, strict=True)
        )
        served = [
            math.exp(-missed * one.working_set / (one.reuse * pace) / cache.size)
            if one.reuse > 0 and one.working_set > 0
            else 1.0
            for one, pace in zip(jobs, paces, strict=True)
        ]
    return served


def _distance(job: CacheUse, other: CacheUse | None, pace: float, others: float) -> float:
    if job.reuse <= 0 or job.working_set <= 0:
        return 0.0
    period = job.working_set / (job.reuse * pace)
    distance = job.working_set + job.stream * pace * period
    if other is not None:
        kept = min(other.working_set, other.reuse * others * period) if other.reuse > 0 else 0.0
        distance += kept + other.stream * others * period
    return distance if math.isfinite(distance) else math.inf


class CoreDemand(msgspec.Struct, frozen=True, kw_only=True):
    """`cores` (a fraction where several nodes share them) that ask for `demand` MB/s together; inf: for all
    that cores of the model's kernel ask for.
    """

    cores: float
    demand: float


def rates(document: Document, loads: Sequence[tuple[CoreDemand, CoreDemand]]) -> Array:
    """MB/s that each of two groups of cores gets, (2, 1 + D, L): row 0 the best fit, then the draws.

    Both groups are spread evenly over all NUMA nodes and have their data in the nodes of their cores; without
    messages. Nothing is checked.
    """
    part, shape = document.models.flow, document.machine
    assert part is not None
    vectors = part.vectors
    nodes = range(shape.numa_per_socket)
    form = Form(groups=tuple((0, node) for node in nodes for _ in (0, 1)), messages=None, copies=())
    core = vectors[:, [INDEX["core_local"]]]
    power = extension_of(document).get("thrift")
    demands, weights = [], []
    for group in (0, 1):
        cores = np.array([load[group].cores for load in loads]) / shape.nodes
        whole = cores * core
        demand = np.minimum(np.array([load[group].demand for load in loads]) / shape.nodes, whole)
        share = np.divide(demand, whole, out=np.zeros_like(demand), where=whole > 0)
        demands.append(demand)
        weights.append(cores * share**power)
    values = {name: vectors[:, place, None, None] for name, place in INDEX.items()}
    shares = shared(
        form,
        shape,
        values,
        demands * len(nodes),
        weights * len(nodes),
        np.zeros((len(vectors), len(loads))),
        (),
        np.full((len(vectors), 1, 1), np.inf),
    )
    # Every socket is like the first one.
    return np.stack([shares[group::2].sum(axis=0) for group in (0, 1)]) * shape.sockets


ROUNDS = 12
DAMPING = 0.5
ABSURD = 1.5
"""Times what the model says that the cores reach: more than kernels of other mixes of reads and writes do."""
MEGA = 1e6


class NodeUse(msgspec.Struct, frozen=True, kw_only=True):
    """What a job does on each of its nodes while it computes, alone: `cores` compute, `memory` B/s go to and
    from memory; `reuse` B/s are on `working_set` bytes that it passes over again and again, None where this
    is not known.
    """

    cores: int
    memory: float
    working_set: float | None = None
    reuse: float | None = None


class Sharing(msgspec.Struct, frozen=True, kw_only=True):
    """How much longer each of two jobs computes beside the other one, with 90 % intervals; 1: as alone.
    `cache`: of each what the last-level cache serves of its reuse, alone and together, in the middle; None
    where it is left out.
    """

    slower: tuple[Interval, Interval]
    cache: tuple[tuple[float, float], tuple[float, float]] | None


def check_flow(document: Document) -> None:
    """UsageError for a document without FLOW."""
    if document.models.flow is None:
        raise UsageError(
            "has no FLOW part, which needs more runs",
            field="model",
            value=document.machine.name,
            hint="elbowroom colocate fit RUN -o M.json",
        )


def check_use(document: Document, use: NodeUse, *, field: str, name: str) -> None:
    """UsageError for more cores than the machine has, and for traffic that they cannot have."""
    shape = document.machine
    cores = shape.cores
    if use.cores > cores:
        raise UsageError(
            f"{name} has {use.cores} ranks on a node, and {shape.name} has {cores} cores",
            field="model",
            value=shape.name,
            hint="give the model of the machine that the jobs share",
        )
    most = float(_reached(document, use.cores)[0])
    if use.memory > ABSURD * most:
        raise UsageError(
            f"is more than {plural(use.cores, 'core')} of {shape.name} reach ({most / 1e9:.3g} GB/s)",
            field=field,
            value=f"{name}={use.memory / 1e9:.4g}GB/s",
            hint="give the traffic of all ranks on one node",
        )


def share_node(document: Document, a: NodeUse, b: NodeUse, cache: SharedCache | None = None) -> Sharing:
    """Both jobs on one node of that machine. Without `cache`, or without a working set of one job, caches are
    left out.
    """
    if cache is None or any(use.reuse is None for use in (a, b)):
        return _share(document, a, b, None)
    ends = [_share(document, a, b, msgspec.structs.replace(cache, random=random)) for random in (False, True)]
    served = np.array([one.cache for one in ends]).mean(axis=0).tolist()
    return Sharing(
        slower=(_middle([one.slower[0] for one in ends]), _middle([one.slower[1] for one in ends])),
        cache=((served[0][0], served[0][1]), (served[1][0], served[1][1])),
    )


def _middle(ends: Sequence[Interval]) -> Interval:
    lows, highs = [one.bounds[0] for one in ends if one.bounds], [one.bounds[1] for one in ends if one.bounds]
    return Interval(value=math.sqrt(ends[0].value * ends[1].value), low=min(lows), high=max(highs))


def _share(document: Document, a: NodeUse, b: NodeUse, cache: SharedCache | None) -> Sharing:
    """With the cache that is given, or with none."""
    pair = (a, b)
    alone = tuple(hits_alone(cache, _cached(use)) if cache is not None else 1.0 for use in pair)
    beside, slower = alone, np.ones((2, 1))
    for _ in range(1 if cache is None else ROUNDS):
        if cache is not None:
            pace = 1 / slower[:, 0]
            beside = tuple(
                hits_beside(cache, _cached(pair[job]), _cached(pair[1 - job]), pace[job], pace[1 - job])
                for job in (0, 1)
            )
        new = _slower(document, pair, alone, beside)
        slower = new if len(slower[0]) == 1 else slower + (new - slower) * DAMPING
    return Sharing(
        slower=(_interval(document, a, slower[0]), _interval(document, b, slower[1])),
        cache=((alone[0], beside[0]), (alone[1], beside[1])) if cache is not None else None,
    )


def _slower(
    document: Document,
    pair: tuple[NodeUse, NodeUse],
    alone: tuple[float, ...],
    beside: tuple[float, ...],
) -> Array:
    """Times of both jobs, (2, 1 + D), with what the cache serves of each alone and beside the other one."""
    unit = _unit(document)
    own = [_missing(document, use, hit, hit) for use, hit in zip(pair, alone, strict=True)]
    more = [_missing(document, pair[job], alone[job], beside[job]) for job in (0, 1)]
    streams = [
        [
            CoreDemand(cores=use.cores, demand=demand / unit)
            for use, (_, demand) in zip(pair, parts, strict=True)
        ]
        for parts in (own, more)
    ]
    none = CoreDemand(cores=0, demand=0)
    loads = [
        (streams[0][0], none),
        (none, streams[0][1]),
        (streams[1][0], none),
        (none, streams[1][1]),
        (streams[1][0], streams[1][1]),
    ]
    got = rates(document, loads)
    times = []
    for job in (0, 1):
        wanted, served = got[job][:, 2 + job], got[job][:, 4]
        contended = np.divide(wanted, served, out=np.ones_like(wanted), where=served > 0)
        times.append(contended * more[job][0] / own[job][0])
    return np.array(times)


def _missing(document: Document, use: NodeUse, alone: float, hit: float) -> tuple[Array, float]:
    """Time by time alone, (1 + D), where the cache serves the share `hit` of the reuse and memory the rest;
    and the memory traffic (B/s) that it then asks for, by the best fit.
    """
    power = extension_of(document).get("roofline")[:, 0]
    most = _reached(document, use.cores)
    before = np.minimum(use.memory / most, 1.0)
    more = (use.reuse or 0.0) * max(alone - hit, 0.0)
    after = (use.memory + more) / np.maximum(most, use.memory)
    arithmetic = np.maximum(1 - before**power, 0.0)
    time: Array = (arithmetic + after**power) ** (1 / power)
    time = np.broadcast_to(time, most.shape)
    return time, (use.memory + more) / float(time[0])


def _reached(document: Document, cores: int) -> Array:
    """B/s that so many cores of the model's kernel move on one node, (1 + D)."""
    reached = rates(document, [(CoreDemand(cores=cores, demand=math.inf), CoreDemand(cores=0, demand=0))])
    moved: Array = reached[0][:, 0] * _unit(document)
    return moved


def _unit(document: Document) -> float:
    """B/s of memory traffic in a MB/s of the model: its kernel's stores may read their lines first."""
    kernel = kernels.find(document.calibration.kernel)
    if kernel is None or not kernel.moves_memory:
        return MEGA
    return kernel.traffic(MEGA, document.calibration.counted_store_factor)


def _cached(use: NodeUse) -> CacheUse:
    return CacheUse(working_set=use.working_set or 0.0, reuse=use.reuse or 0.0, stream=use.memory)


def _interval(document: Document, use: NodeUse, times: Array) -> Interval:
    """90 %: the draws' variance, and what the model cannot follow for the part of the time that memory
    takes.
    """
    part = document.models.flow
    assert part is not None
    value = float(times[0])
    most = float(_reached(document, use.cores)[0])
    share = min(1.0, max(use.memory / most if most > 0 else 0.0, abs(value - 1)))
    # Of computing cores alone and beside others; the last column is that of other loads than situations.
    unlike = float(discrepancies(part)[[0, 2], -1].max())
    variance = float(np.log(times[1:]).var()) if len(times) > 1 else 0.0
    wide = math.exp(NORMAL_90 * math.hypot(math.sqrt(variance), share * unlike))
    return Interval(value=value, low=value / wide, high=value * wide)
