"""Traces as columns whose kernels take longer for other reasons than communication, and planted slowdowns.

Eight kinds of confounders, each at three strengths: what differs between covered and uncovered kernels by
itself. A truth has ranks, a few steps, layers of kernels, and collectives whose schedule jitters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from elbowroom.trace.overlap.categories import STEP
from elbowroom.trace.overlap.events import NONE, EventClass, Events, Floats, Lane

Kind = Literal["none", "ramp", "layers", "coincident", "straggler", "power", "drift", "tails", "shapes"]
KINDS: tuple[Kind, ...] = (
    "ramp", "layers", "coincident", "straggler", "power", "drift", "tails", "shapes"
)  # fmt: skip
STRENGTHS = (0.05, 0.15, 0.4)
KERNELS = (("gemm", 180.0), ("attention", 120.0), ("norm", 25.0), ("gelu", 40.0), ("cast", 8.0))
"""us that each takes alone."""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What to make. `confounder` at a `strength` (a part of a kernel's duration); `slowdown` of what
    communication covers; `jitter` of a collective's start, a part of its period (0: the same in all steps).
    """

    seed: int
    steps: int = 5
    ranks: int = 1
    layers: int = 12
    collectives: int = 6
    covered: float = 0.35
    slowdown: float = 1.0
    noise: float = 0.03
    jitter: float = 0.5
    confounder: Kind = "none"
    strength: float = 0.0


def make_events(truth: Truth) -> tuple[Events, float]:
    """The events, and what hiding costs in s of a rank's time (mean over ranks)."""
    program = np.random.default_rng([truth.seed, 1])
    layers = np.exp(program.normal(0, truth.strength if truth.confounder == "layers" else 0.02,
                                   (truth.layers, len(KERNELS))))  # fmt: skip
    names = ["step", *(name for name, _ in KERNELS), "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"]
    classes = [EventClass(name=name, category="kernel", detail="grid 8x1x1") for name in names]
    classes[0] = EventClass(name="ProfilerStep#1", category=STEP)
    rows: list[tuple[int, int, float, float]] = []
    lanes = []
    cost = 0.0
    for rank in range(truth.ranks):
        lanes += [
            Lane(rank=rank, name=name, device=name != "host", file=rank) for name in ("host", "7", "13")
        ]
        cost += _rank(truth, rank, layers, rows)
    kind, lane = (np.array([row[at] for row in rows], dtype=np.int32) for at in (0, 1))
    start, duration = (np.round([row[at] * 1000 for row in rows]).astype(np.int64) for at in (2, 3))
    return (
        Events(
            format="json",
            classes=tuple(classes),
            lanes=tuple(lanes),
            ranks=tuple(f"rank {rank}" for rank in range(truth.ranks)),
            kind=kind,
            lane=lane,
            start=start,
            duration=np.maximum(duration, 1),
            launched=np.full(len(rows), NONE, dtype=np.int32),
            issued=start,
        ),
        cost / truth.ranks / 1e6,
    )


def _rank(truth: Truth, rank: int, layers: Floats, rows: list[tuple[int, int, float, float]]) -> float:
    """Adds the events of a rank (class, lane, start, duration in us); returns what hiding costs, us."""
    random = np.random.default_rng([truth.seed, 2, rank])
    works = np.array([work for _, work in KERNELS]) * layers
    usual = float(works.sum())
    at, cost = 1000.0, 0.0
    for step in range(truth.steps):
        begin, lost = at, 0.0
        rows.append((0, 3 * rank, begin - 0.5, 0.0))
        mark = len(rows) - 1
        factor, schedule = _step(truth, step, works, usual, random)
        comm = [(begin + first, begin + last) for first, last in schedule]
        for number, work in enumerate((works * factor).ravel().tolist()):
            lasts, extra = _lasts(at, work, comm, truth.slowdown)
            rows.append((1 + number % len(KERNELS), 3 * rank + 1, at, lasts))
            at, lost = at + lasts + 1.0, lost + extra
        cost += lost
        rows += [(len(KERNELS) + 1, 3 * rank + 2, first, last - first) for first, last in comm if first < at]
        at = max([at, *(last for first, last in comm if first < at)]) + 20.0
        rows[mark] = (0, 3 * rank, begin - 0.5, at - begin)
    return cost


def _step(
    truth: Truth, step: int, works: Floats, usual: float, random: np.random.Generator
) -> tuple[Floats, list[tuple[float, float]]]:
    """The factor of each kernel in a step (shape: layers, kernels), and when collectives run in it, us."""
    kind, strength = truth.confounder, truth.strength
    noise = np.exp(random.normal(0, truth.noise, works.shape))
    noise[random.random(works.shape) < 0.01] *= 3
    period = usual / truth.collectives
    lasts = truth.covered * period
    late = float(random.uniform(0, 1)) if kind in ("straggler", "power", "drift", "shapes") else 0.0
    if kind == "drift":
        late = (step + 0.5) / truth.steps
    places = np.arange(truth.collectives) * period + 0.3 * period
    first = places + truth.jitter * period * random.uniform(-0.5, 0.5, truth.collectives)
    factor = np.ones(works.shape)
    time = (np.cumsum(works.ravel()) - works.ravel()).reshape(works.shape) / usual
    if kind == "ramp":
        # The clock falls over the step, by another amount in each; collectives come late in it.
        factor = 1 + strength * random.uniform(0, 2) * time
        first = usual * (1 - (1 - first / usual).clip(0, 1) ** 1.5)
    elif kind == "coincident":
        covered = [(time * usual >= at - 5) & (time * usual < at + lasts) for at in places]
        factor = np.where(np.any(covered, axis=0), 1 + strength, 1.0)
    elif kind == "straggler":
        # A slow step of this rank, in which collectives last longer.
        factor, lasts = factor * (1 + strength * late), lasts * (1 + late)
    elif kind == "power":
        # The clock is capped in a part of the step, in which collectives are more often.
        window = (time > 0.2 + 0.4 * late) & (time < 0.6 + 0.4 * late)
        factor = np.where(window, 1 + strength, 1.0)
        first = np.where(
            random.random(len(first)) < 0.5,
            usual * (0.2 + 0.4 * late + 0.4 * random.random(len(first))),
            first,
        )
    elif kind == "drift":
        factor, lasts = factor * (1 + strength * late), lasts * (0.5 + late)
    elif kind == "tails":
        # Some kernels take far longer: long ones meet more communication.
        factor = 1 + 10 * strength * (random.random(works.shape) < 0.08) * random.random(works.shape)
        first = first + random.uniform(0, 0.5 * period)
    elif kind == "shapes":
        # Longer sequences in some steps: attention grows more than the rest, and so do messages.
        growth = np.array([1.0, 2.0, 0.5, 0.5, 0.0])
        factor, lasts = factor * (1 + strength * late * growth), lasts * (1 + strength * late)
    begins = np.sort(first)
    ends = np.minimum(begins + lasts, np.append(begins[1:], np.inf) - 2.0)
    return factor * noise, [(one, last) for one, last in zip(begins, ends, strict=True) if last > one]


def _lasts(at: float, work: float, comm: list[tuple[float, float]], slowdown: float) -> tuple[float, float]:
    """How long a kernel takes, and what of it is lost to communication, us."""
    now, lost = at, 0.0
    for first, last in comm:
        if last <= now:
            continue
        free = max(first - now, 0.0)
        if work <= free:
            break
        now, work = now + free, work - free
        done = min(work, (last - now) / slowdown)
        now, work, lost = now + done * slowdown, work - done, lost + done * (slowdown - 1)
        if work <= 1e-9:
            break
    return now + max(work, 0.0) - at, lost
