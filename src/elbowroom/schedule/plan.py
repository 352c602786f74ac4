"""The plan of jobs on a cluster's nodes: who shares, when and where, and what it takes beside other ways.

When and on which nodes groups start: the most urgent first, others where they do not delay it.
"""

from __future__ import annotations

import bisect
import heapq
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations_with_replacement, pairwise
from typing import NamedTuple

import msgspec

from elbowroom.documents import DocumentFormat
from elbowroom.schedule import optimum
from elbowroom.schedule.groups import Group, GroupingProblem
from elbowroom.schedule.jobs import Cluster, Jobs, Mode, width_of
from elbowroom.schedule.matrix import Matrix
from elbowroom.schedule.optimum import best_groups
from elbowroom.schedule.pairing import Pair

_ROUNDS = 6
"""How often groups whose jobs are late are tried again, with more urgency and then as single jobs."""


class PlacedGroup(NamedTuple):
    """A group, the hours at which it starts and ends, and its nodes."""

    group: Group
    start: float
    end: float
    nodes: tuple[int, ...]


class _Waiting(NamedTuple):
    urgency: tuple[float, float]
    group: Group
    width: int
    hours: float
    needs: frozenset[int]


def place(problem: GroupingProblem, groups: Sequence[Group]) -> tuple[PlacedGroup, ...]:
    """A start and nodes for each group. Groups that wait for each other in a circle, and those whose jobs are
    late, are taken apart; jobs that are late even so stay late (`late`).
    """
    apart: list[Group] = list(groups)
    first: set[int] = set()
    placed = _placed(problem, apart, first)
    for _ in range(_ROUNDS):
        missing = set(apart) - {item.group for item in placed}
        behind = {item.group for item in placed if _late(problem, item)}
        if not missing and not behind:
            break
        urgent = {job for group in behind for job in group.members}
        split = missing | ({group for group in behind if group.beside} if urgent <= first else set())
        if not split and urgent <= first:
            break
        first |= urgent
        apart = [
            part for group in apart for part in (_singles(problem, group) if group in split else (group,))
        ]
        placed = _placed(problem, apart, first)
    return tuple(sorted(placed, key=lambda item: (item.start, item.nodes)))


def late(problem: GroupingProblem, placed: Sequence[PlacedGroup]) -> tuple[int, ...]:
    """The jobs that end behind their deadlines."""
    return tuple(sorted(job for item in placed for job in _late(problem, item)))


def _late(problem: GroupingProblem, item: PlacedGroup) -> list[int]:
    ends = problem.ends(item.group)
    return [job for job, end in ends.items() if item.start + end > problem.deadline[job] * (1 + 1e-9)]


def _singles(problem: GroupingProblem, group: Group) -> list[Group]:
    """Each job of the group without a companion, as fast as it can where it has a deadline."""
    return [
        problem.single(job)
        if math.isinf(problem.deadline[job])
        else min(problem.singles(job), key=lambda way: max(problem.ends(way).values()))
        for job in group.members
    ]


def _placed(problem: GroupingProblem, groups: Sequence[Group], first: set[int]) -> list[PlacedGroup]:
    """Starts groups in the order of urgency; a later one starts earlier where it does not delay the first
    that waits (backfilling). Groups that wait for each other are left out.
    """
    waiting = sorted(_waiting(problem, group, first) for group in groups)
    free = list(range(problem.cluster.nodes))
    running: list[tuple[float, int]] = []
    placed: list[PlacedGroup] = []
    ended: dict[int, float] = {}
    now = 0.0
    while waiting:
        done = {job for job, end in ended.items() if end <= now * (1 + 1e-12)}
        held: tuple[float, int] | None = None
        for item in list(waiting):
            if not item.needs <= done:
                continue
            if held is None and item.width > len(free):
                held = _reservation(item.width, free, running, placed)
                continue
            if item.width > len(free) or (held is not None and not _behind(item, now, held)):
                continue
            if held is not None and now + item.hours > held[0]:
                held = (held[0], held[1] - item.width)
            nodes, free = tuple(free[: item.width]), free[item.width :]
            placed.append(PlacedGroup(item.group, now, now + item.hours, nodes))
            heapq.heappush(running, (now + item.hours, len(placed) - 1))
            ended |= {job: now + end for job, end in problem.ends(item.group).items()}
            waiting.remove(item)
        if not running:
            break
        now = running[0][0]
        while running and running[0][0] <= now * (1 + 1e-12):
            for node in placed[heapq.heappop(running)[1]].nodes:
                bisect.insort(free, node)
    return placed


def _waiting(problem: GroupingProblem, group: Group, first: set[int]) -> _Waiting:
    ends = problem.ends(group)
    hours = max(ends.values())
    start = min(float(problem.deadline[job]) - end for job, end in ends.items())
    width = problem.width(group)
    after = frozenset(other for job in group.members for other in problem.ancestors[job])
    promoted = -1.0 if first & set(group.members) else start
    return _Waiting((promoted, -width * hours), group, width, hours, after)


def _reservation(
    width: int, free: Sequence[int], running: Sequence[tuple[float, int]], placed: Sequence[PlacedGroup]
) -> tuple[float, int]:
    """When `width` nodes are free, and how many are left then."""
    count = len(free)
    for end, index in sorted(running):
        count += len(placed[index].nodes)
        if count >= width:
            return end, count - width
    return math.inf, 0


def _behind(item: _Waiting, now: float, held: tuple[float, int]) -> bool:
    """Whether the group ends before the reservation, or fits beside it."""
    return now + item.hours <= held[0] or item.width <= held[1]


SECONDS = 10.0
"""Time limit of the search."""

GAP = 5e-4
"""The search for many jobs ends where no choice of groups takes this share less."""


class PlannedJob(msgspec.Struct, frozen=True, kw_only=True):
    """A job of the plan: hours from the plan's start, nodes by number, cores of each of them, and the jobs
    that run on the same nodes.
    """

    name: str
    application: str
    start: float
    end: float
    nodes: tuple[int, ...]
    cores: Mode
    companions: tuple[str, ...] = ()
    late: bool = False


class PlannedGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Jobs of one allocation of nodes, the host first; `queues`: its companions, as names."""

    start: float
    end: float
    nodes: tuple[int, ...]
    jobs: tuple[PlannedJob, ...]
    queues: tuple[tuple[str, ...], ...] = ()


class NodeHours(msgspec.Struct, frozen=True, kw_only=True):
    """Node-hours of the plan; of the same jobs exclusively, and with pairs at random (expected).

    `bound`: with the best companion of each job and no idle node, which no plan is below. `groups_bound`: no
    choice of the groups that were searched takes less.
    """

    plan: float
    exclusive: float
    random: float
    bound: float
    groups_bound: float


class SchedulePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What `colocate schedule -o` writes. `pairs`: jobs that share nodes; `makespan`: hours until all have
    ended; `late`: jobs behind their deadlines; `apart`: pairs of applications that must not share.
    """

    schema: str = "elbowroom/schedule"
    version: int = 1
    cluster: Cluster
    pairs: tuple[Pair, ...]
    node_hours: NodeHours
    makespan: float
    exclusive_makespan: float
    late: tuple[str, ...]
    apart: tuple[Pair, ...]
    groups: tuple[PlannedGroup, ...]


PLAN_FORMAT = DocumentFormat(
    kind=SchedulePlan,
    schema="elbowroom/schedule",
    version=1,
    name="schedule",
    hint="elbowroom colocate schedule -o plan.json writes one",
)


def schedule(
    jobs: Jobs,
    matrix: Matrix,
    *,
    half: Mapping[str, float] | None = None,
    limit: float | None = None,
    apart: Collection[Pair] = (),
    seconds: float = SECONDS,
) -> SchedulePlan:
    """The plan of least node-hours that is found in `seconds`.

    `half`: percents of runtimes with half of the cores; `limit`: applications with more percent beside each
    other do not share; `apart`: pairs of applications that must not. UsageError for what no plan can meet.
    """
    problem = GroupingProblem(jobs, matrix, half, limit, apart)
    chosen = best_groups(problem, seconds, GAP)
    placed = place(problem, chosen.groups)
    alone = optimum.exclusive(problem)
    cost = optimum.node_hours(problem, (item.group for item in placed))
    behind = late(problem, placed)
    groups = tuple(_planned(problem, item, behind) for item in placed)
    return SchedulePlan(
        cluster=jobs.cluster,
        pairs=tuple(
            (job.name, name) for group in groups for job in group.jobs[:1] for name in job.companions
        ),
        node_hours=NodeHours(
            plan=cost,
            exclusive=optimum.node_hours(problem, alone),
            random=optimum.random_node_hours(problem),
            bound=min(cost, optimum.companion_bound(problem)),
            groups_bound=min(cost, chosen.bound),
        ),
        makespan=max(item.end for item in placed),
        exclusive_makespan=max(item.end for item in place(problem, alone)),
        late=tuple(problem.jobs[job].name for job in behind),
        apart=tuple(_apart(problem, matrix, limit, apart)),
        groups=groups,
    )


def _planned(problem: GroupingProblem, item: PlacedGroup, behind: tuple[int, ...]) -> PlannedGroup:
    group = item.group
    ends = problem.ends(group)
    names = {job: problem.jobs[job].name for job in group.members}
    nodes = {group.host: item.nodes, **_nodes_beside(problem, group, item.nodes)}
    starts = dict.fromkeys(group.members, 0.0)
    for queue in group.beside:
        starts |= {job: ends[before] for before, job in pairwise(queue)}
    planned = tuple(
        PlannedJob(
            name=names[job],
            application=problem.jobs[job].application,
            start=item.start + starts[job],
            end=item.start + ends[job],
            nodes=nodes[job],
            cores=group.mode,
            companions=tuple(
                names[other] for other in group.members if other != job and group.host in (job, other)
            ),
            late=job in behind,
        )
        for job in group.members
    )
    queues = tuple(tuple(names[job] for job in queue) for queue in group.beside)
    return PlannedGroup(start=item.start, end=item.end, nodes=item.nodes, jobs=planned, queues=queues)


def _nodes_beside(
    problem: GroupingProblem, group: Group, nodes: tuple[int, ...]
) -> dict[int, tuple[int, ...]]:
    """The nodes of the companions: each queue begins behind those of the queue before it."""
    beside: dict[int, tuple[int, ...]] = {}
    first = 0
    for queue in group.beside:
        widths = {job: width_of(problem.jobs[job], "half") for job in queue}
        beside |= {job: nodes[first : first + width] for job, width in widths.items()}
        first += max(widths.values())
    return beside


def _apart(
    problem: GroupingProblem, matrix: Matrix, limit: float | None, apart: Collection[Pair]
) -> Iterator[Pair]:
    """Pairs of the jobs' applications that must not share, take more than the limit, or longer than alone."""
    given = {frozenset(pair) for pair in apart}
    jobs = Counter(job.application for job in problem.jobs)
    present = [name for name in matrix.names if name in jobs]
    for a, b in combinations_with_replacement(present, 2):
        if a == b and jobs[a] == 1:
            continue
        values = 100 * matrix.slowdown(a, companion=b), 100 * matrix.slowdown(b, companion=a)
        beyond = limit is not None and max(values) > limit
        if sum(values) > 200 or beyond or frozenset((a, b)) in given:
            yield a, b
