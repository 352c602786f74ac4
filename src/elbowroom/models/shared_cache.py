"""How much of what two jobs keep in one last-level cache stays there.

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
from scipy.special import gammaincc


class Cache(msgspec.Struct, frozen=True, kw_only=True):
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


ROUNDS = 200
"""Until shares that depend on each other change by less than 0.001, mostly."""


def hits(cache: Cache, distance: float) -> float:
    """Share of the lines that are still there with `distance` bytes between two uses, where the least
    recently used ones leave.
    """
    if distance <= 0:
        return 1.0
    # P(Poisson(x) < ways) = Q(ways, x), the upper regularised incomplete gamma function.
    return float(gammaincc(cache.ways, cache.ways * distance / cache.size))


def hits_alone(cache: Cache, job: CacheUse) -> float:
    """Share of `reuse` that the cache serves when nobody else uses it."""
    if cache.random:
        return _random(cache, [job], [1.0])[0]
    return hits(cache, _distance(job, None, 1.0, 1.0))


def hits_beside(
    cache: Cache, job: CacheUse, other: CacheUse, pace: float = 1.0, others: float = 1.0
) -> float:
    """Share of `reuse` that the cache serves beside another job; `pace`, `others`: how fast both are, 1 as
    alone.
    """
    if cache.random:
        return _random(cache, [job, other], [pace, others])[0]
    return hits(cache, _distance(job, other, pace, others))


def _random(cache: Cache, jobs: Sequence[CacheUse], paces: Sequence[float]) -> list[float]:
    """The shares of all jobs, from an empty cache on: misses take lines, and so cause misses."""
    found = [0.0 for _ in jobs]
    for _ in range(ROUNDS):
        missed = sum(
            pace * (one.stream + (1 - hit) * one.reuse)
            for one, hit, pace in zip(jobs, found, paces, strict=True)
        )
        found = [
            math.exp(-missed * one.working_set / (one.reuse * pace) / cache.size)
            if one.reuse > 0 and one.working_set > 0
            else 1.0
            for one, pace in zip(jobs, paces, strict=True)
        ]
    return found


def _distance(job: CacheUse, other: CacheUse | None, pace: float, others: float) -> float:
    if job.reuse <= 0 or job.working_set <= 0:
        return 0.0
    period = job.working_set / (job.reuse * pace)
    distance = job.working_set + job.stream * pace * period
    if other is not None:
        kept = min(other.working_set, other.reuse * others * period) if other.reuse > 0 else 0.0
        distance += kept + other.stream * others * period
    return distance if math.isfinite(distance) else math.inf
