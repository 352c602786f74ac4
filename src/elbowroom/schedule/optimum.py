"""The groups of least node-hours: set partitioning of few jobs, matching with priced pairs of many.

Other ways to schedule the same jobs, to compare with: exclusive, at random, and by one number.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from elbowroom.schedule.groups import Group, GroupingProblem
from elbowroom.schedule.matrix import Array
from elbowroom.schedule.pairing import SECONDS, partition, relax, whole

FEW = 24
"""Up to so many jobs, groups of three are searched too."""

_DIRECT = 90
"""Up to so many jobs of one width, all of their pairs are given to the solver."""

_NEAR = 12
"""Pairs of each job that the first relaxation has; the prices add the others that count."""
_ROUNDS = 40

_TRIED = 40
"""Ways to move a single job that are computed in full."""
_TOLERANCE = 1e-7


class Grouped(NamedTuple):
    """Groups, what they cost in node-hours, and the cost that no choice of the searched groups is below."""

    groups: tuple[Group, ...]
    cost: float
    bound: float


def best_groups(problem: GroupingProblem, seconds: float = SECONDS, gap: float = 0.0) -> Grouped:
    """Every job in one group, with the least node-hours found in `seconds`."""
    end = time.monotonic() + seconds
    if len(problem.jobs) <= FEW:
        return _of_few(problem, seconds, gap)
    groups: list[Group] = []
    bound = 0.0
    for width in np.unique(problem.nodes):
        part = np.flatnonzero(problem.nodes == width)
        parts = _of_one_width(problem, part, end, gap)
        groups += parts.groups
        bound += parts.bound
    groups = _filled(problem, groups, end)
    cost = sum(problem.cost(group) for group in groups)
    return Grouped(tuple(groups), cost, min(bound, cost))


def pair_costs(problem: GroupingProblem, part: NDArray[np.intp]) -> Array:
    """Node-hours of each pair of jobs of one width; infinite for those that cannot share nodes."""
    slow, half = problem.slow[np.ix_(part, part)], problem.half[part]
    alone = problem.hours[part]
    beside = alone[:, None] * slow
    first, second = beside, beside.T
    # Whoever is left when the other ends goes on with half of the cores and no companion.
    rest = np.where(first < second, (1 - first / second) * (half * alone)[None, :], 0.0)
    rest += np.where(second < first, (1 - second / first) * (half * alone)[:, None], 0.0)
    end_first = np.where(first > second, second + rest, first)
    end_second = np.where(second > first, first + rest, second)
    costs: Array = 2 * problem.nodes[part][:, None] * (np.minimum(first, second) + rest)
    limit = problem.deadline[part] * (1 + 1e-12)
    late = (end_first > limit[:, None]) | (end_second > limit[None, :])
    costs[late | (problem.allowed[np.ix_(part, part)] == 0)] = np.inf
    np.fill_diagonal(costs, np.inf)
    return costs


def _of_few(problem: GroupingProblem, seconds: float, gap: float) -> Grouped:
    """All groups of up to three jobs, each where it saves node-hours."""
    single = [problem.single(index) for index in range(len(problem.jobs))]
    alone = [problem.cost(group) for group in single]
    in_time = [problem.in_time(group) for group in single]
    groups = list(single)
    costs = list(alone)
    for group in _shared(problem):
        if not problem.possible(group):
            continue
        cost = problem.cost(group)
        # A group of jobs of which one cannot meet its deadline alone is kept whatever it costs.
        if cost < sum(alone[job] for job in group.members) or not all(in_time[j] for j in group.members):
            groups.append(group)
            costs.append(cost)
    priced = [
        cost if len(group.members) > 1 or in_time[group.host] else 1e3 * sum(alone)
        for group, cost in zip(groups, costs, strict=True)
    ]
    best = partition([group.members for group in groups], priced, len(problem.jobs), seconds=seconds, gap=gap)
    if best is None:
        return Grouped(tuple(single), sum(alone), 0.0)
    cost = sum(costs[index] for index in best.chosen)
    return Grouped(tuple(groups[index] for index in best.chosen), cost, min(best.bound, cost))


def _shared(problem: GroupingProblem) -> Iterator[Group]:
    """A host with one or two companions, which run one after the other or side by side."""
    count = range(len(problem.jobs))
    partners = {host: [job for job in count if problem.allowed[host, job]] for host in count}
    for host, jobs in partners.items():
        # Of two jobs of equal width either may be called the host.
        others = [job for job in jobs if host < job or problem.nodes[host] != problem.nodes[job]]
        yield from (Group(host, "half", ((job,),)) for job in others)
        yield from (Group(host, "half", (pair,)) for pair in permutations(jobs, 2))
        yield from (Group(host, "half", ((a,), (b,))) for a, b in combinations(jobs, 2))


def _of_one_width(problem: GroupingProblem, part: NDArray[np.intp], end: float, gap: float) -> Grouped:
    """Pairs and single jobs among jobs of one width."""
    single = [problem.single(int(index)) for index in part]
    alone = np.array([problem.cost(group) for group in single])
    alone_priced = np.array(
        [
            cost if problem.in_time(group) else 1e3 * alone.sum()
            for cost, group in zip(alone, single, strict=True)
        ]
    )
    costs = pair_costs(problem, part)
    left = np.arange(len(part))
    pairs: list[tuple[int, int]] = []
    bound = 0.0
    if len(part) > _DIRECT:
        pairs, left, bound = _relaxed(costs, alone_priced)
    rest = costs[np.ix_(left, left)]
    candidates = [(int(i), int(j)) for i, j in np.argwhere(np.triu(np.isfinite(rest), 1))]
    candidates = _cheapest(candidates, rest, alone_priced[left])
    members: list[tuple[int, ...]] = [*((index,) for index in range(len(left))), *candidates]
    priced = [*alone_priced[left].tolist(), *(float(rest[pair]) for pair in candidates)]
    best = partition(members, priced, len(left), seconds=max(0.1, end - time.monotonic()), gap=gap)
    chosen = range(len(left)) if best is None else best.chosen
    groups = [Group(int(part[i]), "half", ((int(part[j]),),)) for i, j in pairs]
    for index in chosen:
        jobs = [int(left[job]) for job in members[index]]
        if len(jobs) == 1:
            groups.append(single[jobs[0]])
        else:
            groups.append(Group(int(part[jobs[0]]), "half", ((int(part[jobs[1]]),),)))
    cost = sum(problem.cost(group) for group in groups)
    if len(part) <= _DIRECT:
        bound = 0.0 if best is None else best.bound
    return Grouped(tuple(groups), cost, min(bound, cost))


def _cheapest(
    pairs: Sequence[tuple[int, int]], costs: Array, alone: Array, most: int = _DIRECT * _DIRECT // 2
) -> list[tuple[int, int]]:
    """The pairs that save node-hours, the best ones where there are many."""
    saving = {pair: float(alone[pair[0]] + alone[pair[1]] - costs[pair]) for pair in pairs}
    return sorted((pair for pair in pairs if saving[pair] > 0), key=lambda pair: -saving[pair])[:most]


def _relaxed(costs: Array, alone: Array) -> tuple[list[tuple[int, int]], NDArray[np.intp], float]:
    """The pairs of the fractional optimum that are whole, the jobs that are left, and the bound.

    Columns are generated: a pair enters where it costs less than the prices of its two jobs.
    """
    count = len(alone)
    saving = alone[:, None] + alone[None, :] - costs
    chosen = set(_nearest(-saving, _NEAR))
    best = None
    for _ in range(_ROUNDS):
        pairs = sorted(chosen)
        members: list[tuple[int, ...]] = [*((index,) for index in range(count)), *pairs]
        best = relax(members, [*alone.tolist(), *(float(costs[pair]) for pair in pairs)], count)
        reduced = costs - best.prices[:, None] - best.prices[None, :]
        scale = float(np.abs(best.prices).mean())
        new = {pair for pair in _nearest(reduced, 4) if reduced[pair] < -_TOLERANCE * scale} - chosen
        if not new:
            break
        chosen |= new
    assert best is not None
    violated = np.maximum(0.0, -reduced.min(axis=1)) / 2
    single_violated = np.maximum(0.0, best.prices - alone)
    bound = float((best.prices - np.maximum(violated, single_violated)).sum())
    taken = [int(index) for index in whole(best.shares)]
    whole_pairs = [pairs[index - count] for index in taken if index >= count]
    done = {job for pair in whole_pairs for job in pair}
    return whole_pairs, np.array([job for job in range(count) if job not in done], dtype=np.intp), bound


def _nearest(values: Array, each: int) -> Iterable[tuple[int, int]]:
    """For each job the pairs of least value, with the lower index first."""
    each = min(each, len(values) - 1)
    order = np.argpartition(values, each - 1, axis=1)[:, :each]
    for i, row in enumerate(order.tolist()):
        for j in row:
            if np.isfinite(values[i, j]):
                yield (i, j) if i < j else (j, i)


def _filled(problem: GroupingProblem, groups: list[Group], end: float) -> list[Group]:
    """Local improvement: single jobs move into the idle half of a pair, or beside a host of more nodes."""
    cost = {group: problem.cost(group) for group in groups}
    for lonely in sorted((group for group in groups if not group.beside), key=cost.__getitem__, reverse=True):
        if time.monotonic() > end:
            break
        if lonely not in cost:
            continue
        # The least that a way can take is quick to compute, and leaves few of them.
        ways = [
            (cost[other] + cost[lonely] - _least(problem, way), way, other)
            for other in cost
            if other is not lonely and len(other.members) < 3
            for way in _merged(problem, other, lonely.host)
        ]
        ways = sorted((way for way in ways if way[0] > 0), key=lambda way: -way[0])[:_TRIED]
        saving = {
            way: cost[other] + cost[lonely] - problem.cost(way)
            for _, way, other in ways
            if problem.possible(way)
        }
        best = max(saving, key=saving.__getitem__, default=None)
        if best is not None and saving[best] > 0:
            other = next(other for _, way, other in ways if way == best)
            del cost[lonely], cost[other]
            cost[best] = problem.cost(best)
    return list(cost)


def _merged(problem: GroupingProblem, group: Group, job: int) -> Iterator[Group]:
    """The group with one more companion, behind another one or beside it."""
    hosts = [Group(group.host, "half", group.beside)]
    if group.beside and problem.nodes[group.host] == problem.nodes[group.beside[0][0]]:
        hosts.append(Group(group.beside[0][0], "half", ((group.host,),)))
    for host in hosts:
        if problem.allowed[host.host, job]:
            yield Group(host.host, "half", (*host.beside, (job,)))
            if host.beside:
                yield Group(host.host, "half", (*host.beside[:-1], (*host.beside[-1], job)))


def _least(problem: GroupingProblem, group: Group) -> float:
    """Node-hours of the group if its jobs did not slow each other down."""
    queues = ((group.host,), *group.beside)
    hours = max(sum(float(problem.half[job] * problem.hours[job]) for job in queue) for queue in queues)
    return problem.width(group) * hours


def exclusive(problem: GroupingProblem) -> list[Group]:
    """Every job without a companion."""
    return [problem.single(index) for index in range(len(problem.jobs))]


def random_node_hours(problem: GroupingProblem) -> float:
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


def companion_bound(problem: GroupingProblem) -> float:
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


def node_hours(problem: GroupingProblem, groups: Iterable[Group]) -> float:
    """Node-hours of all groups."""
    return sum(problem.cost(group) for group in groups)
