"""Made-up windows of extraneous accesses: messages drawn around a floor that rises past the caches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np

from elbowroom.experiments.ema import EXPERIMENT as ema
from elbowroom.experiments.ema.points import PHASES
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.machine.topology import Cache, Machine
from elbowroom.plan.file import Plan
from elbowroom.points.accesses import ExtraneousAccesses, WindowTimes
from elbowroom.points.point import Point, running
from elbowroom.results.points import results
from elbowroom.results.result import PointResult
from elbowroom.stats.summary import Samples
from sampled import window_entries
from studies import machine

L1, L2, L3 = 48 * 2**10, 2 * 2**20, 32 * 2**20
FLOOR = 0.16  # us
Law = Callable[[str, int], float]
"""How far the floor lies over that without accesses, less 1, by who accesses and how much."""


def cached(cores: int = 2) -> Machine:
    """A machine of one node whose cores have two caches each and share a third."""
    here = machine(cores)
    own = [
        Cache(level=level, size=size, cores=(core,))
        for level, size in ((1, L1), (2, L2))
        for core in range(cores)
    ]
    shared = Cache(level=3, size=L3, cores=tuple(range(cores)))
    return msgspec.structs.replace(here, caches=(*own, shared))


def stairs(who: str, size: int) -> float:
    """A twentieth past L1, a half past L2, twice as much past L3; the receiver's half of the sender's."""
    risen = 0.05 * (size > L1) + 0.45 * (size > L2) + 0.5 * (size > L3)
    return risen * {"none": 0.0, "sender": 1.0, "receiver": 0.5, "both": 1.2, "bystanders": 0.1}[who]


def flat(who: str, size: int) -> float:
    """Accesses that do not matter."""
    return 0.0


def times(
    extraneous: ExtraneousAccesses,
    law: Law = stairs,
    *,
    noise: float = 0.02,
    wider: float = 1.0,
    drift: float = 0.0,
    repetitions: int = 3,
    seed: int = 0,
) -> WindowTimes:
    """Messages of a window, none below its floor. `wider`: noise after the receiver's accesses over that
    after the sender's; `drift`: standard deviation from repetition to repetition, of both phases alike.
    """
    rng = np.random.default_rng([seed, extraneous.first, len(extraneous.who)])
    floors = np.array([1 + law(extraneous.who, size) for size in extraneous.sizes])[:, None]
    found = WindowTimes()
    shape = (extraneous.count, extraneous.exchanges)
    for _ in range(repetitions):
        level = FLOOR * (1 + drift * rng.normal())
        found.without.append(level * (1 + noise * rng.exponential(1, shape)))
        width = noise * (wider if extraneous.who == "receiver" else 1.0)
        found.after.append(level * floors * (1 + width * rng.exponential(1, shape)))
    return found


def plan(**settings: str) -> Plan:
    """The plan `ema` with 501 sizes in 50 windows."""
    chosen = {"access_step": "8000", "window_sizes": "10", "control": "false", "who": "sender,receiver"}
    return apply(load("ema"), Overrides(settings=chosen | settings))


def measured(points: list[Point], law: Law = stairs, **more: Any) -> list[PointResult]:
    """Results of windows drawn as `times` says."""
    told = {
        point.id: window_entries(point.id, times(accesses, law, **more))
        for point, accesses in running(points, ExtraneousAccesses)
    }
    rows = []
    for index in range(len(points)):
        for repetition in range(more.get("repetitions", 3)):
            rows += [(index, repetition, False, phase, "comm", FLOOR, "us", "ok") for phase in PHASES]
    return results(points, Samples(*zip(*rows, strict=True)), entries=told)


def study(
    here: Machine, law: Law = stairs, settings: dict[str, str] | None = None, **more: Any
) -> list[PointResult]:
    """Results of the plan on a machine."""
    return measured(list(ema.expand(plan(**(settings or {})), here).points), law, **more)
