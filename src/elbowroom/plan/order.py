"""In which order units are measured, and how long all will take."""

from __future__ import annotations

import random
from collections.abc import Hashable, Iterator, Sequence

from elbowroom.points.point import Point, Times
from elbowroom.points.probe import FIRST_TOUCH, START
from elbowroom.points.unit import Unit


def order_units(
    points: Sequence[Point], repetitions: int, seed: int, reverse: bool = False
) -> tuple[Unit, ...]:
    """Every point once per repetition, each repetition in a fresh random order, then the closing baselines.

    Repetition by repetition, so that a slow drift of the machine hits all points alike. `reverse` turns the
    order inside each repetition round (a check that order does not matter). The closing units measure alone
    baselines again: one per distinct computation and one per distinct communication (method.md, protocol).
    """
    units = []
    for repetition in range(repetitions):
        shuffled = list(points)
        random.Random(f"{seed}/{repetition}").shuffle(shuffled)
        if reverse:
            shuffled.reverse()
        units += [Unit(point=point.id, repetition=repetition) for point in shuffled]
    closing = list(closing_points(points))
    random.Random(f"{seed}/closing").shuffle(closing)
    if reverse:
        closing.reverse()
    return (*units, *(Unit(point=point.id, repetition=0, closing=True) for point in closing))


def start_of(repetition: int, repetitions: int, starts: int) -> int:
    """Which start of the program measures a repetition, from 0: each a block of repetitions, equally many as
    far as they divide.
    """
    return min(starts - 1, repetition * starts // repetitions)


def blocks(units: Sequence[Unit], repetitions: int, starts: int) -> tuple[tuple[Unit, ...], ...]:
    """The units of each start, in order; closing baselines belong to the last."""
    members: list[list[Unit]] = [[] for _ in range(starts)]
    for unit in units:
        at = starts - 1 if unit.closing else start_of(unit.repetition, repetitions, starts)
        members[at].append(unit)
    return tuple(tuple(block) for block in members if block)


def closing_points(points: Sequence[Point]) -> tuple[Point, ...]:
    """The fewest points, in order, that hold every baseline alone of the run."""
    held: set[Hashable] = set()
    chosen = []
    for point in points:
        baselines = point.workload.baseline(point)
        if not baselines <= held:
            chosen.append(point)
        held |= baselines
    return tuple(chosen)


def estimate(points: Sequence[Point], units: Sequence[Unit], starts: int = 1) -> float:
    """Seconds that the units will take from the start of the probe, somewhat on the safe side; each of
    `starts` prepares what the points need anew.
    """
    return sum(unit_seconds(points, units, starts))


def unit_seconds(points: Sequence[Point], units: Sequence[Unit], starts: int = 1) -> list[float]:
    """What each unit takes of that: the first one with the first start of the probe and what it prepares, all
    with their part of the later starts.
    """
    if not units:
        return []
    prepared: dict[Hashable, float] = {}
    for point in points:
        prepared |= point.workload.times(point).preparation
    start = START + max(point.working_set for point in points) / FIRST_TOUCH + sum(prepared.values())
    later = start * (starts - 1) / len(units)
    seconds = [times.unit + later for times in _times(points, units)]
    return [seconds[0] + start, *seconds[1:]]


def measured(points: Sequence[Point], units: Sequence[Unit]) -> float:
    """Seconds inside measured windows, of those that `estimate` gives."""
    return sum(times.phases * times.phase for times in _times(points, units))


def _times(points: Sequence[Point], units: Sequence[Unit]) -> Iterator[Times]:
    """Those of each unit."""
    by_id = {point.id: point for point in points}
    known: dict[tuple[str, bool], Times] = {}
    for unit in units:
        key = unit.point, unit.closing
        if key not in known:
            point = by_id[unit.point]
            known[key] = point.workload.times(point, unit.closing)
        yield known[key]
