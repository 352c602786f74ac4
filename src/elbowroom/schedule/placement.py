"""When and on which nodes groups start: the most urgent first, others where they do not delay it."""

from __future__ import annotations

import bisect
import heapq
import math
from collections.abc import Sequence
from typing import NamedTuple

from elbowroom.schedule.groups import Group, Problem

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


def place(problem: Problem, groups: Sequence[Group]) -> tuple[PlacedGroup, ...]:
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


def late(problem: Problem, placed: Sequence[PlacedGroup]) -> tuple[int, ...]:
    """The jobs that end behind their deadlines."""
    return tuple(sorted(job for item in placed for job in _late(problem, item)))


def _late(problem: Problem, item: PlacedGroup) -> list[int]:
    ends = problem.ends(item.group)
    return [job for job, end in ends.items() if item.start + end > problem.deadline[job] * (1 + 1e-9)]


def _singles(problem: Problem, group: Group) -> list[Group]:
    """Each job of the group without a companion, as fast as it can where it has a deadline."""
    return [
        problem.single(job)
        if math.isinf(problem.deadline[job])
        else min(problem.singles(job), key=lambda way: max(problem.ends(way).values()))
        for job in group.members
    ]


def _placed(problem: Problem, groups: Sequence[Group], first: set[int]) -> list[PlacedGroup]:
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


def _waiting(problem: Problem, group: Group, first: set[int]) -> _Waiting:
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
