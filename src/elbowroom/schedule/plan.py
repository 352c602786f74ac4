"""The plan of jobs on a cluster's nodes: who shares, when and where, and what it takes beside other ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from itertools import combinations_with_replacement, pairwise

import msgspec

from elbowroom.documents import DocumentFormat
from elbowroom.schedule import baselines
from elbowroom.schedule.groups import Group, Problem
from elbowroom.schedule.jobs import Cluster, Jobs, Mode, width_of
from elbowroom.schedule.matrix import Matrix
from elbowroom.schedule.optimum import best_groups
from elbowroom.schedule.pairing import Pair
from elbowroom.schedule.placement import PlacedGroup, late, place

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
    problem = Problem(jobs, matrix, half, limit, apart)
    found = best_groups(problem, seconds, GAP)
    placed = place(problem, found.groups)
    alone = baselines.exclusive(problem)
    cost = baselines.node_hours(problem, (item.group for item in placed))
    behind = late(problem, placed)
    groups = tuple(_planned(problem, item, behind) for item in placed)
    return SchedulePlan(
        cluster=jobs.cluster,
        pairs=tuple(
            (job.name, name) for group in groups for job in group.jobs[:1] for name in job.companions
        ),
        node_hours=NodeHours(
            plan=cost,
            exclusive=baselines.node_hours(problem, alone),
            random=baselines.random_node_hours(problem),
            bound=min(cost, baselines.companion_bound(problem)),
            groups_bound=min(cost, found.bound),
        ),
        makespan=max(item.end for item in placed),
        exclusive_makespan=max(item.end for item in place(problem, alone)),
        late=tuple(problem.jobs[job].name for job in behind),
        apart=tuple(_apart(problem, matrix, limit, apart)),
        groups=groups,
    )


def _planned(problem: Problem, item: PlacedGroup, behind: tuple[int, ...]) -> PlannedGroup:
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


def _nodes_beside(problem: Problem, group: Group, nodes: tuple[int, ...]) -> dict[int, tuple[int, ...]]:
    """The nodes of the companions: each queue begins behind those of the queue before it."""
    found: dict[int, tuple[int, ...]] = {}
    first = 0
    for queue in group.beside:
        widths = {job: width_of(problem.jobs[job], "half") for job in queue}
        found |= {job: nodes[first : first + width] for job, width in widths.items()}
        first += max(widths.values())
    return found


def _apart(problem: Problem, matrix: Matrix, limit: float | None, apart: Collection[Pair]) -> Iterator[Pair]:
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
