"""Nodes on which jobs share the NIC and the memory bandwidth, simulated from event to event.

A job is a list of phases on each of its nodes: computation, which also moves memory, or a burst of messages.
A phase ends when the slowest node has finished it: ranks that exchange messages wait for each other. Jobs
that need one resource of a node at the same time share it equally, and no job gets more than it can use.
Nothing here uses slowdowns or pairs: they follow.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import msgspec

_DONE = 1e-9
"""Work below this share of a phase is rounding."""


class JobClass(msgspec.Struct, frozen=True, kw_only=True):
    """What a kind of job does in one step on all cores of a node: `compute` s of computation, which needs the
    share `memory` of the node's bandwidth, then a burst that fills the NIC for `network` s.

    `inside`: messages between cores of a node that leave it with half of the cores, relative to those that
    leave it with all. `bursts`: parts of equal length that a step is cut into. `jitter`: relative spread of
    each phase's length.
    """

    name: str
    compute: float
    network: float
    memory: float = 0.2
    inside: float = 0.1
    bursts: int = 1
    jitter: float = 0.1


CLASSES = (
    JobClass(name="parallel", compute=1.0, network=0.01, memory=0.1),
    JobClass(name="transpose", compute=0.7, network=0.45, memory=0.4, inside=0.05),
    JobClass(name="sort", compute=0.25, network=0.4, memory=0.5, inside=0.05),
    JobClass(name="gradients", compute=0.35, network=0.55, memory=0.6, inside=0.7, bursts=8, jitter=0.3),
    JobClass(name="wavefront", compute=1.0, network=0.08, memory=0.35, inside=0.9, bursts=6),
    JobClass(name="levels", compute=0.9, network=0.18, memory=0.85, inside=0.5, bursts=4),
    JobClass(name="faces", compute=1.1, network=0.2, memory=0.55, inside=0.8, bursts=3),
    JobClass(name="stream", compute=1.0, network=0.05, memory=1.3, inside=0.2),
    JobClass(name="stencil", compute=0.8, network=0.3, memory=0.7, inside=0.9, bursts=2),
    JobClass(name="particles", compute=1.4, network=0.35, memory=0.3, inside=0.6, bursts=4),
)
"""Ten kinds of jobs, between one that sends nothing and one that waits for the network most of the time."""

SHARED = {"memory": 0.95, "network": 0.9}
"""What a resource still gives in all while several jobs use it."""


class Phase(NamedTuple):
    """Seconds on an idle node with all cores; `memory`: share of its bandwidth, `network`: a burst."""

    seconds: float
    memory: float
    network: bool


class SimulatedJob(NamedTuple):
    """A job of `steps` steps; `half`: on half of the cores of twice the nodes; it runs behind job `after`."""

    kind: JobClass
    steps: int
    seed: int
    nodes: tuple[int, ...]
    half: bool = False
    start: float = 0.0
    after: int | None = None


def exclusive_seconds(kind: JobClass, steps: int, seed: int) -> float:
    """How long a job takes with all cores and no companion."""
    return simulate([SimulatedJob(kind, steps, seed, (0,))])[0]


def simulate(jobs: Sequence[SimulatedJob]) -> list[float]:
    """When each job ends, in s."""
    run = _Run(jobs)
    return run.ends()


class _Running:
    """A job in its current phase: the work that is left on each of its nodes, in s without companions."""

    def __init__(self, job: SimulatedJob, places: tuple[int, ...]) -> None:
        self.half = job.half
        self._inside = job.kind.inside
        self.places = places
        self._phases = _phases(job)
        self.phase = next(self._phases)
        self.left = self._length()

    def advance(self) -> bool:
        """The next phase; False where there is none."""
        phase = next(self._phases, None)
        if phase is None:
            return False
        self.phase = phase
        self.left = self._length()
        return True

    def _length(self) -> dict[int, float]:
        # Half of the cores compute half as much per node in the same time; the NIC sends half as much.
        share = 0.5 * (1 + self._inside) if self.half and self.phase.network else 1.0
        return dict.fromkeys(self.places, share * self.phase.seconds)

    def demand(self, place: int) -> tuple[str, float]:
        """What the phase asks of the node: the resource, and the share of it without companions."""
        if self.left[place] <= 0:
            return "", 0.0
        if self.phase.network:
            return "network", 1.0
        return "memory", self.phase.memory * (0.5 if self.half else 1.0)


class _Run:
    """The state of all nodes; nodes with the same jobs are simulated once."""

    def __init__(self, jobs: Sequence[SimulatedJob]) -> None:
        self._jobs = jobs
        self._places = _places(jobs)
        self._end: dict[int, float] = {}
        self._running: dict[int, _Running] = {}
        self._at: dict[int, set[int]] = {}
        self._since: dict[int, float] = {}
        self._rates: dict[tuple[int, int], float] = {}
        self._events: list[tuple[float, int, int, int]] = []
        self._version: dict[int, int] = {}
        for number, job in enumerate(jobs):
            if job.after is None:
                heapq.heappush(self._events, (job.start, -1, number, 0))

    def ends(self) -> list[float]:
        """Runs all events; when each job ended."""
        while self._events:
            now, place, number, version = heapq.heappop(self._events)
            if place < 0:
                self._start(number, now)
            elif self._version[place] == version:
                self._finish(place, now)
        return [self._end[number] for number in range(len(self._jobs))]

    def _start(self, number: int, now: float) -> None:
        places = self._places[number]
        self._running[number] = _Running(self._jobs[number], places)
        for place in places:
            self._settle(place, now)
            self._at.setdefault(place, set()).add(number)
            self._share(place, now)

    def _finish(self, place: int, now: float) -> None:
        """Moves on the jobs that have finished their phase on all of their nodes."""
        self._settle(place, now)
        over = [
            number
            for number in sorted(self._at[place])
            if not any(left > 0 for left in self._running[number].left.values())
        ]
        touched = {place}
        for number in over:
            job = self._running[number]
            for other in job.places:
                self._settle(other, now)
            touched |= set(job.places)
            if not job.advance():
                self._leave(number, now)
        for other in sorted(touched):
            self._share(other, now)

    def _leave(self, number: int, now: float) -> None:
        self._end[number] = now
        for place in self._running.pop(number).places:
            self._at[place].discard(number)
        for other, job in enumerate(self._jobs):
            if job.after == number:
                heapq.heappush(self._events, (now, -1, other, 0))

    def _settle(self, place: int, now: float) -> None:
        """Takes off what was done on the node since its rates were last set."""
        passed = now - self._since.get(place, now)
        self._since[place] = now
        for number in self._at.get(place, ()):
            job = self._running[number]
            left = job.left[place] - passed * self._rates.get((number, place), 0.0)
            job.left[place] = left if left > _DONE * job.phase.seconds else 0.0

    def _share(self, place: int, now: float) -> None:
        """Sets the node's rates, and when its next phase ends."""
        demands = {number: self._running[number].demand(place) for number in sorted(self._at[place])}
        soonest = None
        for resource in ("memory", "network"):
            wanted = {number: share for number, (kind, share) in demands.items() if kind == resource}
            granted = fair_shares(wanted, SHARED[resource] if len(wanted) > 1 else 1.0)
            for number, share in wanted.items():
                rate = granted[number] / share if share > 0 else 1.0
                self._rates[number, place] = rate
                end = now + self._running[number].left[place] / rate
                soonest = end if soonest is None else min(soonest, end)
        for number, (kind, _) in demands.items():
            if not kind:
                self._rates[number, place] = 0.0
        self._version[place] = self._version.get(place, 0) + 1
        if soonest is not None:
            heapq.heappush(self._events, (soonest, place, 0, self._version[place]))


def fair_shares(wanted: dict[int, float], capacity: float = 1.0) -> dict[int, float]:
    """Max-min fair shares of a resource: none gets more than it wants, the rest is shared equally."""
    left, granted = capacity, {}
    order = sorted(wanted, key=lambda number: wanted[number])
    for place, number in enumerate(order):
        granted[number] = min(wanted[number], left / (len(order) - place))
        left -= granted[number]
    return granted


def _phases(job: SimulatedJob) -> Iterator[Phase]:
    """The phases of all steps; the first computation has any length, so that jobs do not begin in step."""
    generator = random.Random(job.seed)
    kind = job.kind
    for step in range(job.steps):
        for burst in range(kind.bursts):
            first = generator.random() if step == 0 and burst == 0 else 1.0
            for seconds, network in ((first * kind.compute, False), (kind.network, True)):
                spread = 1 + kind.jitter * generator.uniform(-1, 1)
                if seconds > 0:
                    yield Phase(seconds * spread / kind.bursts, kind.memory, network)


def _places(jobs: Sequence[SimulatedJob]) -> list[tuple[int, ...]]:
    """For each job the nodes that stand for all of its nodes: one for each set of jobs that share a node."""
    users: dict[int, list[int]] = {}
    for number, job in enumerate(jobs):
        for node in job.nodes:
            users.setdefault(node, []).append(number)
    first: dict[tuple[int, ...], int] = {}
    for node, numbers in sorted(users.items()):
        first.setdefault(tuple(numbers), node)
    found: list[list[int]] = [[] for _ in jobs]
    for sharing, node in first.items():
        for number in dict.fromkeys(sharing):
            found[number].append(node)
    return [tuple(nodes) for nodes in found]
