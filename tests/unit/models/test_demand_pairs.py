"""Pairs of programs on a virtual node whose memory and cache follow laws that the demand does not know."""

from __future__ import annotations

import functools
import random

import numpy as np
import pytest

from elbowroom.measure.demand import ProgramRun, measure_demand
from elbowroom.models.demand import (
    REPORTERS,
    Axis,
    Demand,
    LoadBesideLoad,
    LoadFacts,
    LoadLevel,
    predicted_slowdown,
)
from elbowroom.models.node_sharing import NodeUse, SharedCache, share_node
from elbowroom.schedule.measured import agreement
from elbowroom.schedule.pairing import match, mean_of, random_mean
from made_node_model import node_model

CORES = 2
FULL = 20e9
CACHE = SharedCache(size=32 << 20)
NODE = node_model(cores=2 * CORES, controller=25_000.0)
"""Two cores get 20 GB/s, all four 25."""
IN_CACHE = 40e9
"""B/s that two cores read in the last-level cache."""


def use(memory: float = 0.0, cache: float = 0.0, reuse: float = IN_CACHE) -> NodeUse:
    """Shares of the traffic that the cores reach, and of the cache."""
    if not cache:
        return NodeUse(cores=CORES, memory=memory * FULL, working_set=0.0, reuse=0.0)
    return NodeUse(cores=CORES, memory=memory * FULL, working_set=cache * CACHE.size, reuse=reuse)


def load(level: LoadLevel) -> NodeUse:
    return use(memory=level.share) if level.axis == "memory" else use(cache=level.share)


@functools.cache
def slower(a: NodeUse, b: NodeUse) -> tuple[float, float]:
    both = share_node(NODE, a, b, CACHE).slower
    return both[0].value, both[1].value


class Bench:
    """A program of the virtual node; times and rates vary by 1 %."""

    def __init__(self, program: NodeUse, seed: int) -> None:
        self.program, self.random = program, random.Random(seed)

    def noisy(self, value: float) -> float:
        return value * self.random.lognormvariate(0.0, 0.01)

    @property
    def facts(self) -> LoadFacts:
        return LoadFacts(
            command=("./app",),
            ranks=CORES,
            host="virtual",
            cores=(0, 1),
            load_cores=(2, 3),
            cache=CACHE.size,
            full_rate=FULL,
        )

    def run(self, level: LoadLevel | None) -> ProgramRun:
        if level is None:
            return ProgramRun(self.noisy(1.0))
        own, others = slower(self.program, load(level))
        return ProgramRun(self.noisy(own), self.noisy(FULL / others), self.noisy(FULL))

    def load_beside_load(self, axis: Axis, share: float) -> LoadBesideLoad:
        loss = slower(load(LoadLevel(axis, REPORTERS[axis])), load(LoadLevel(axis, share)))[0]
        return LoadBesideLoad(
            axis=axis, share=share, rate=self.noisy(FULL / loss), rate_alone=self.noisy(FULL)
        )


PROGRAMS = {
    "registers": use(),
    "some traffic": use(memory=0.4),
    "much traffic": use(memory=0.7),
    "stream": use(memory=1.0),
    "half of the cache": use(cache=0.5),
    "most of the cache": use(cache=0.8),
    "traffic and cache": use(memory=0.3, cache=0.4, reuse=0.5 * IN_CACHE),
    "traffic and little cache": use(memory=0.6, cache=0.2, reuse=0.3 * IN_CACHE),
}


@pytest.fixture(scope="module")
def tables() -> tuple[np.ndarray, np.ndarray]:
    """Percent of each program (column) beside each (row): predicted and true."""
    demands: list[Demand] = [
        measure_demand(Bench(program, seed), repetitions=5) for seed, program in enumerate(PROGRAMS.values())
    ]
    uses = list(PROGRAMS.values())
    predicted = [[100 * predicted_slowdown(a, b).value for a in demands] for b in demands]
    true = [[100 * slower(a, b)[0] for a in uses] for b in uses]
    return np.array(predicted), np.array(true)


def test_pairs_are_predicted_within_five_percent_in_the_mean(tables: tuple[np.ndarray, np.ndarray]) -> None:
    predicted, true = tables
    assert true.max() > 140
    assert agreement(predicted.ravel().tolist(), true.ravel().tolist()).mean_error <= 5.0


def test_pairs_that_lose_are_ranked_as_they_do(tables: tuple[np.ndarray, np.ndarray]) -> None:
    predicted, true = tables
    lose = true > 102
    ranks = agreement(predicted[lose].tolist(), true[lose].tolist()).rank_correlation
    assert ranks is not None
    assert ranks >= 0.9


def test_the_pairs_that_the_demands_choose_are_near_the_best(tables: tuple[np.ndarray, np.ndarray]) -> None:
    predicted, true = tables
    best = mean_of(true, match(true))
    assert mean_of(true, match(predicted)) - best <= (random_mean(true) - best) / 3
