"""At which place of which step each instance is: the k-th of its class, on its lane, in the step.

Only instances at the same place are the same work: layers and shapes differ between places, and what a
schedule hides is mostly hidden at the same places. Steps are what the trace names so, or the user.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from elbowroom.trace.overlap.events import NONE, Events, Flags, Ints
from elbowroom.trace.overlap.exposure import Exposure
from elbowroom.trace.overlap.tables import Numbering


@dataclass(frozen=True, kw_only=True)
class StepBeginnings:
    """When the steps of each rank begin, ns in order; of a rank that names none those of another rank in the
    same file. `count`: of a rank, at most.
    """

    begins: dict[int, Ints]
    count: int


@dataclass(frozen=True, kw_only=True)
class Places:
    """The `place` of each instance, the same number for the same place of all steps and ranks, and its
    `cell`, a number for each step of each rank. Both are NONE outside of steps, and in steps that have
    another number of instances of the class on the lane than most have. `steps`: of a rank, at most.
    """

    place: Ints
    cell: Ints
    steps: int


def find_steps(events: Events, chosen: Flags) -> StepBeginnings:
    """The steps among the `chosen` events: of each rank those of the lane with most, without nested ones."""
    of_lanes: dict[int, Ints] = {}
    where = events.in_order(np.flatnonzero(chosen))
    for part in np.split(where, np.flatnonzero(np.diff(events.lane[where])) + 1):
        if len(part):
            reach = np.maximum.accumulate(events.end[part])
            outer = np.concatenate([[True], events.end[part][1:] > reach[:-1]])
            of_lanes[int(events.lane[part[0]])] = events.start[part[outer]]
    begins: dict[int, Ints] = {}
    of_files: dict[int, Ints] = {}
    for number, lanes in of_lanes.items():
        lane = events.lanes[number]
        for known, key in ((begins, lane.rank), (of_files, lane.file)):
            if len(lanes) > len(known.get(key, ())):
                known[key] = lanes
    for lane in events.lanes:
        if lane.rank not in begins and lane.file in of_files:
            begins[lane.rank] = of_files[lane.file]
    return StepBeginnings(begins=begins, count=max(map(len, begins.values()), default=0))


def find_places(events: Events, exposure: Exposure, steps: StepBeginnings) -> Places:
    """The place and the cell of each instance."""
    count = len(exposure.event)
    if not steps.begins:
        outside = np.full(count, NONE, dtype=np.int64)
        return Places(place=outside, cell=outside, steps=0)
    kind, lane = events.kind[exposure.event].astype(np.int64), events.lane[exposure.event].astype(np.int64)
    step = np.full(count, NONE, dtype=np.int64)
    rank = events.rank[exposure.event]
    issued = events.issued[exposure.event]
    for number, begins in steps.begins.items():
        mine = rank == number
        step[mine] = np.searchsorted(begins, issued[mine], side="right") - 1
    cell = np.where(step == NONE, NONE, rank * np.int64(max(steps.count, 1)) + step)
    # Instances are in order of lane and time; groups are those of one class, lane and step.
    order = _sorted(lane, kind, step)
    _, index, size = _groups(np.stack([lane[order], kind[order], step[order]]))
    usual = _usual(lane[order], kind[order], size, (step[order] != NONE) & (index == 0))
    place_in_rank = _within_ranks(events)[lane]
    there = (step[order] != NONE) & (size == usual)
    place = np.full(count, NONE, dtype=np.int64)
    code = (kind[order] * (int(place_in_rank.max(initial=0)) + 1) + place_in_rank[order]) * (
        int(size.max(initial=0)) + 1
    ) + index
    place[order[there]] = np.unique(code[there], return_inverse=True)[1]
    return Places(place=place, cell=np.where(place == NONE, NONE, cell), steps=steps.count)


def _sorted(lane: Ints, kind: Ints, step: Ints) -> Ints:
    """The order by lane, class and step, of equals as they are; by one number where it is small enough."""
    ends = [int(one.max(initial=0)) + 2 for one in (lane, kind, step)]
    if math.prod(ends) < 1 << 62:
        return np.argsort((lane * ends[1] + kind) * ends[2] + step + 1, kind="stable")
    return np.lexsort((step, kind, lane))


def _groups(keys: Ints) -> tuple[Ints, Ints, Ints]:
    """Of sorted columns: the number of each one's group, its index there, and the size of the group."""
    if not keys.shape[1]:
        none = np.zeros(0, dtype=np.int64)
        return none, none, none
    first = np.concatenate([[True], (np.diff(keys, axis=1) != 0).any(axis=0)])
    number = np.cumsum(first) - 1
    begin = np.flatnonzero(first)
    size = np.diff(np.append(begin, keys.shape[1]))
    return number, np.arange(keys.shape[1]) - begin[number], size[number]


def _usual(lane: Ints, kind: Ints, size: Ints, first: Flags) -> Ints:
    """How many instances of its class most steps have on its lane. `first`: the first of each step."""
    number, _, _ = _groups(np.stack([lane, kind]))
    if not first.any():
        return np.zeros(len(lane), dtype=np.int64)
    most = int(size.max()) + 1
    pairs, counts = np.unique(number[first] * most + size[first], return_counts=True)
    best = pairs[np.lexsort((pairs, counts))]
    usual = np.zeros(int(number[-1]) + 1, dtype=np.int64)
    usual[best // most] = best % most
    return usual[number]


def _within_ranks(events: Events) -> Ints:
    """The number of each lane: the same for one stream of all ranks, and for the n-th thread of all ranks."""
    numbers = Numbering()
    threads: dict[int, int] = {}
    places = []
    for lane in events.lanes:
        if lane.device:
            places.append(numbers[lane.name])
        else:
            threads[lane.rank] = threads.get(lane.rank, 0) + 1
            places.append(numbers[threads[lane.rank]])
    return np.array(places, dtype=np.int64)
