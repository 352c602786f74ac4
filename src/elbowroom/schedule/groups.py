"""Jobs that share nodes, and how long they take together.

A group is a job alone on its nodes, or a host on half of the cores of twice the nodes with queues of
companions on the other half: `((1,),)` is a companion on as many nodes, `((1, 2),)` are two that run one
after the other, `((1,), (2,))` two side by side on different nodes of the host. A group holds all of its
nodes until its last job ends, as an allocation does.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import numpy as np

from elbowroom.errors import UsageError
from elbowroom.schedule.jobs import (
    Cluster,
    Jobs,
    Mode,
    ScheduledJob,
    ancestors,
    fits_memory,
    memory_of,
    modes,
    order_by_dependencies,
    width_of,
)
from elbowroom.schedule.matrix import Array, Matrix, check_known
from elbowroom.schedule.pairing import Pair, apart_indices


class Group(NamedTuple):
    """A host and its queues of companions, as indices of jobs; `mode`: what of the cores the host uses."""

    host: int
    mode: Mode = "all"
    beside: tuple[tuple[int, ...], ...] = ()

    @property
    def members(self) -> tuple[int, ...]:
        """All jobs of the group."""
        return (self.host, *(job for queue in self.beside for job in queue))


class GroupingProblem:
    """Jobs with the slowdowns of their applications.

    `slow[a, b]`: runtime of job a beside job b over its exclusive one; `half[a]`: with half of the cores and
    no companion. Where that is unknown it is taken from the companion that suits the application best.
    `allowed[a, b]`: 1 where b may be a companion of host a.
    """

    def __init__(
        self,
        jobs: Jobs,
        matrix: Matrix,
        half: Mapping[str, float] | None = None,
        limit: float | None = None,
        apart: Collection[Pair] = (),
    ) -> None:
        self.jobs: tuple[ScheduledJob, ...] = jobs.jobs
        self.cluster: Cluster = jobs.cluster
        for job in self.jobs:
            check_known(job.application, matrix.names, field="jobs.application")
        at = np.array([matrix.names.index(job.application) for job in self.jobs])
        percent = matrix.array()
        self.slow: Array = percent.T[np.ix_(at, at)] / 100
        best = dict(zip(matrix.names, percent.min(axis=0).tolist(), strict=True)) | dict(half or {})
        self.half: Array = np.array([job.half or best[job.application] for job in self.jobs]) / 100
        self.hours: Array = np.array([job.hours for job in self.jobs])
        self.nodes: Array = np.array([job.nodes for job in self.jobs])
        self.deadline: Array = np.array([job.deadline or math.inf for job in self.jobs])
        self.ancestors = ancestors(self.jobs)
        self.allowed = self._allowed(limit)
        for i, j in apart_indices(matrix, apart):
            both = np.outer(at == i, at == j)
            self.allowed[both | both.T] = 0
        self._check_deadlines()

    def singles(self, index: int) -> Iterator[Group]:
        """How the job can run without a companion."""
        job = self.jobs[index]
        for mode in modes(job):
            if width_of(job, mode) <= self.cluster.nodes and fits_memory(job, self.cluster, mode):
                yield Group(index, mode)

    def single(self, index: int) -> Group:
        """The way without a companion that takes the least node-hours, within the deadline if it can."""
        ways = tuple(self.singles(index))
        return min(ways, key=lambda group: (not self.in_time(group), self.cost(group)))

    def width(self, group: Group) -> int:
        """Nodes of the group."""
        return width_of(self.jobs[group.host], group.mode)

    def cost(self, group: Group) -> float:
        """Node-hours of the group."""
        return self.width(group) * max(self.ends(group).values())

    def in_time(self, group: Group) -> bool:
        """Whether every job of a group that starts at once meets its deadline."""
        return all(end <= self.deadline[job] * (1 + 1e-12) for job, end in self.ends(group).items())

    def possible(self, group: Group) -> bool:
        """Whether memory, widths, permissions and deadlines admit the group."""
        if not group.beside:
            return group in tuple(self.singles(group.host)) and self.in_time(group)
        widths = sum(max(int(self.nodes[job]) for job in queue) for queue in group.beside)
        return bool(
            self.width(group) <= self.cluster.nodes
            and widths <= self.nodes[group.host]
            and all(self.allowed[group.host, job] for job in group.members[1:])
            and not self._dependent(group)
            and self.in_time(group)
        )

    def ends(self, group: Group) -> dict[int, float]:
        """Hours from the group's start to the end of each of its jobs."""
        if not group.beside:
            share = self.half[group.host] if group.mode == "half" else 1.0
            return {group.host: float(self.hours[group.host] * share)}
        left = dict.fromkeys(group.members, 1.0)
        ends: dict[int, float] = {}
        now = 0.0
        while left:
            rates = self._rates(group, left)
            step, first = min((left[job] / rate, job) for job, rate in rates.items())
            now += step
            for job, rate in rates.items():
                left[job] -= rate * step
            del left[first]
            ends[first] = now
        return ends

    def _rates(self, group: Group, left: Mapping[int, float]) -> dict[int, float]:
        """The share of each running job that is done in an hour; the slowest of its nodes holds a job up."""
        running = [next((job for job in queue if job in left), None) for queue in group.beside]
        beside = [job for job in running if job is not None]
        host = group.host
        rates = {}
        for job in beside:
            slow = self.slow[job, host] if host in left else self.half[job]
            rates[job] = float(1 / (self.hours[job] * slow))
        if host in left:
            slow = max((self.slow[host, job] for job in beside), default=self.half[host])
            rates[host] = float(1 / (self.hours[host] * slow))
        return rates

    def _allowed(self, limit: float | None) -> Array:
        """1 for jobs that may share nodes, in the order (host, companion)."""
        count = len(self.jobs)
        allowed = np.ones((count, count))
        np.fill_diagonal(allowed, 0)
        for index, job in enumerate(self.jobs):
            if job.cores == "all" or job.share is False:
                allowed[index, :] = allowed[:, index] = 0
            elif job.share is not True:
                accepted = np.array([job.may_share_with(other) for other in self.jobs], dtype=float)
                allowed[index, :] *= accepted
                allowed[:, index] *= accepted
        if self.cluster.memory is not None:
            need = np.array([memory_of(job, "half") for job in self.jobs])
            allowed *= need[:, None] + need[None, :] <= self.cluster.memory
        if limit is not None:
            beyond = self.slow > limit / 100
            allowed[beyond | beyond.T] = 0
        allowed[2 * self.nodes > self.cluster.nodes, :] = 0
        allowed *= self.nodes[None, :] <= self.nodes[:, None]
        for index, names in enumerate(self.ancestors):
            for other in names:
                allowed[index, other] = allowed[other, index] = 0
        return allowed

    def _dependent(self, group: Group) -> bool:
        """Whether one of the group's jobs must end before another one starts; queues have an order too."""
        members = group.members
        return any(a in self.ancestors[b] for a in members for b in members)

    def _check_deadlines(self) -> None:
        """UsageError for a deadline that the fastest way to run the job, and what it waits for, misses."""
        at = {job.name: index for index, job in enumerate(self.jobs)}
        earliest: dict[str, float] = {}
        for job in order_by_dependencies(self.jobs):
            start = max((earliest[name] for name in job.after), default=0.0)
            end = earliest[job.name] = start + self._fastest(at[job.name])
            if job.deadline is not None and end > job.deadline * (1 + 1e-12):
                raise UsageError(
                    f"has a deadline of {job.deadline:g} h and cannot end before {end:.3g} h",
                    field="jobs.deadline",
                    value=job.name,
                    hint="give it more time or more nodes",
                )

    def _fastest(self, index: int) -> float:
        """Hours of the job on all cores, on half of them, or beside the companion that suits it best."""
        beside = (self.allowed[index, :] + self.allowed[:, index]) > 0
        paired = self.slow[index, beside].min(initial=math.inf) * self.hours[index]
        return min(float(paired), *(max(self.ends(group).values()) for group in self.singles(index)))
