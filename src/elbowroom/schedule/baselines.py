"""Other ways to schedule the same jobs, to compare with: exclusive, at random, and by one number."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from elbowroom.schedule.groups import Group, Problem
from elbowroom.schedule.optimum import pair_costs

SPREADS = 0.9
"""A job whose runtime on half of the cores is below this is spread over twice the nodes."""


def exclusive(problem: Problem) -> list[Group]:
    """Every job without a companion."""
    return [problem.single(index) for index in range(len(problem.jobs))]


def random_sharing(problem: Problem, generator: random.Random) -> list[Group]:
    """Pairs at random among jobs of equal width that may share nodes; the others without a companion."""
    order = list(range(len(problem.jobs)))
    generator.shuffle(order)
    return list(_in_turn(problem, order))


def spread_and_share(problem: Problem) -> list[Group]:
    """Like Spread-n-Share, by one number for each job: those that gain most from half of the cores are
    spread, each beside the job that gains least among those of its width. Nothing about pairs is used.
    """
    groups: list[Group] = []
    for width in np.unique(problem.nodes):
        part = sorted(np.flatnonzero(problem.nodes == width).tolist(), key=lambda job: problem.half[job])
        while part:
            job = part.pop(0)
            beside = [other for other in reversed(part) if problem.possible(Group(job, "half", ((other,),)))]
            if problem.half[job] > SPREADS or not beside:
                groups.append(problem.single(job))
                continue
            part.remove(beside[0])
            groups.append(Group(job, "half", ((beside[0],),)))
    return groups


def random_node_hours(problem: Problem) -> float:
    """Expected node-hours of pairs at random among jobs of equal width; jobs that cannot share a node take
    their exclusive node-hours.
    """
    total = 0.0
    for width in np.unique(problem.nodes):
        part = np.flatnonzero(problem.nodes == width)
        alone = np.array([problem.cost(problem.single(int(job))) for job in part])
        count = len(part)
        if count == 1:
            total += float(alone[0])
            continue
        costs = pair_costs(problem, part)
        costs = np.where(np.isfinite(costs), costs, alone[:, None] + alone[None, :])
        mean = (float(costs.sum()) - float(np.trace(costs))) / (count * (count - 1))
        total += count // 2 * mean + (float(alone.mean()) if count % 2 else 0.0)
    return total


def companion_bound(problem: Problem) -> float:
    """Node-hours if every job shared with the job that suits it best and no node were idle. No plan takes
    less.
    """
    total = 0.0
    for index, job in enumerate(problem.jobs):
        beside = (problem.allowed[index, :] + problem.allowed[:, index]) > 0
        best = float(problem.slow[index, beside].min(initial=np.inf)) * job.node_hours
        # While its companion does not run, a host may be as fast as with half of the cores alone.
        faster = float(problem.half[index]) * job.node_hours if beside.any() else np.inf
        total += min(best, faster, *(problem.cost(way) for way in problem.singles(index)))
    return total


def node_hours(problem: Problem, groups: Iterable[Group]) -> float:
    """Node-hours of all groups."""
    return sum(problem.cost(group) for group in groups)


def _in_turn(problem: Problem, order: Sequence[int]) -> Iterator[Group]:
    """Each job beside the next one of its width that it may share with."""
    left = list(order)
    while left:
        job = left.pop(0)
        for other in left:
            group = Group(job, "half", ((other,),))
            if problem.nodes[other] == problem.nodes[job] and problem.possible(group):
                left.remove(other)
                yield group
                break
        else:
            yield problem.single(job)
