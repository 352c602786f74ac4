"""Overlaps with a known truth: a simulation of ranks that start an operation, compute, and wait.

Independent of the analysis: for each iteration, the times of each computation and of the message are
drawn first; then both flow at the rates that the planted truth sets. What can be planted: a library that
proceeds only inside MPI, a late rank, a link with a token bucket, and contention.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from elbowroom.stats.overlap.samples import OverlapSamples, samples_of

Numbers = npt.NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Bucket:
    """A link that carries a `burst` of message seconds at once, and afterwards 1/`slower` of its rate."""

    slower: float
    burst: float


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """What to simulate; times in s. `noise`: of each rank's computation and of each message, as shares.

    `starting`: share of the message that the starting call carries out. `kept_comp`, `kept_comm`: rates
    while both are active. `late`: by how much the last rank arrives later. `tests`: share of the message
    that calls of MPI_Test carry out.
    """

    seed: int = 1
    ranks: int = 2
    repetitions: int = 1
    iterations: int = 40
    comp: float = 1e-3
    comm: float = 1e-3
    noise: float = 0.02
    stalls: float = 0.01
    arrivals: float = 2e-6
    starting: float = 0.01
    progresses: bool = True
    tests: float = 0.0
    late: float = 0.0
    kept_comp: float = 1.0
    kept_comm: float = 1.0
    bucket: Bucket | None = None
    clock_offsets: Mapping[int, float] = field(default_factory=dict)


def simulate(wanted: Overlap) -> OverlapSamples:
    """The samples of one point."""
    return samples_of(answers(wanted))


def answers(wanted: Overlap) -> list[dict[str, Any]]:
    """The same as the probe answers it, a document for each repetition."""
    draws = np.random.default_rng(wanted.seed)
    return [_repetition(wanted, draws) for _ in range(wanted.repetitions)]


def _repetition(wanted: Overlap, draws: np.random.Generator) -> dict[str, Any]:
    shape = (wanted.iterations, wanted.ranks)
    enters = [_arrivals(wanted, draws) for _ in range(3)]
    works = [wanted.comp * _noise(wanted, draws, shape) for _ in range(2)]
    bare = [wanted.comm * _noise(wanted, draws, (wanted.iterations, 1)) for _ in range(2)]
    alone, beside = _through(wanted.bucket, bare[0][:, 0], bare[1][:, 0], wanted.comp)
    jitter = [0.002 * wanted.comm * np.abs(draws.standard_normal(shape)) for _ in range(2)]
    together = _together(wanted, enters[2], works[1], beside[:, None])
    together["leave"] = together["leave"] + jitter[1]
    offsets = np.array([wanted.clock_offsets.get(rank, 0.0) for rank in range(wanted.ranks)])
    tables = {
        "message": {
            "enter": enters[0],
            "leave": enters[0].max(axis=1, keepdims=True) + alone[:, None] + jitter[0],
        },
        "computation": {"enter": enters[1], "leave": enters[1] + works[0]},
        "together": together,
    }
    kinds: dict[str, Any] = {
        kind: {
            name: (table if name == "tests_s" else table + offsets).tolist()
            for name, table in columns.items()
        }
        for kind, columns in tables.items()
    }
    return {**kinds, "clock_bound": 2e-7}


def _arrivals(wanted: Overlap, draws: np.random.Generator) -> Numbers:
    """When each rank enters; only the arrivals of one iteration are comparable."""
    enter = wanted.arrivals * np.abs(draws.standard_normal((wanted.iterations, wanted.ranks)))
    enter[:, -1] += wanted.late
    return enter


def _noise(wanted: Overlap, draws: np.random.Generator, shape: tuple[int, ...]) -> Numbers:
    """Factors around 1; a few are stalls of the operating system."""
    factors = np.exp(wanted.noise * draws.standard_normal(shape))
    stalled = draws.random(shape) < wanted.stalls
    longer: Numbers = np.where(stalled, factors * (1 + draws.exponential(1.0, shape)), factors)
    return longer


def _through(bucket: Bucket | None, alone: Numbers, beside: Numbers, pause: float) -> tuple[Numbers, Numbers]:
    """How long the messages take on the link; it refills while nothing is sent."""
    if bucket is None:
        return alone, beside
    tokens = bucket.burst
    times = []
    for seconds in np.ravel(np.column_stack([alone, beside])):
        at_once = min(seconds, tokens)
        time = at_once + (seconds - at_once) * bucket.slower
        tokens = min(bucket.burst, tokens - at_once + pause / bucket.slower)
        times.append(time)
    both = np.reshape(times, (-1, 2))
    return both[:, 0], both[:, 1]


def _together(wanted: Overlap, enter: Numbers, work: Numbers, message: Numbers) -> dict[str, Numbers]:
    """When the ranks have posted, computed and left, if both proceed at the planted rates."""
    posted = enter + wanted.starting * message
    begun = posted.max(axis=1, keepdims=True)
    tests = wanted.tests * message + np.zeros_like(work)
    left = (1 - wanted.starting - wanted.tests) * message
    if not wanted.progresses:
        computed = posted + work + tests
        leave = computed.max(axis=1, keepdims=True) + left + np.zeros_like(work)
        return _table(enter, posted, computed, leave, tests)
    # Both are active until the first ends: the message, or the last rank's computation.
    before = np.minimum(begun - posted, work)
    slowed = posted + before + (work - before) / wanted.kept_comp + tests
    last = slowed.max(axis=1, keepdims=True)
    carried = wanted.kept_comm * (last - begun)
    complete = np.where(carried >= left, begun + left / wanted.kept_comm, last + left - carried)
    # After the message a computation proceeds at its full rate.
    computed = np.where(slowed <= complete, slowed, complete + (slowed - complete) * wanted.kept_comp)
    return _table(enter, posted, computed, np.maximum(computed, complete), tests)


def _table(
    enter: Numbers, posted: Numbers, computed: Numbers, leave: Numbers, tests: Numbers
) -> dict[str, Numbers]:
    return {"enter": enter, "posted": posted, "computed": computed, "leave": leave, "tests_s": tests}
