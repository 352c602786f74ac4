"""Which unit a run measures next and how long it may wait for it: in the plan's order, or as a budget of
time allows.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable
from typing import Protocol

import msgspec

from elbowroom.launch.native import building_seconds
from elbowroom.measure.agenda import Agenda
from elbowroom.plan.file import Steady
from elbowroom.plan.point import Point, Unit
from elbowroom.store.journal import Entry

SHORTEST_LIMIT = 0.02
"""Seconds: a phase may always wait so long for its steady state."""
SHORTEST_PATIENCE = 1.0


class Course(Protocol):
    """What the loop of a run asks."""

    def next(self) -> Unit | None:
        """The unit to measure now; None: nothing more."""

    def limits(self, point: Point, patience: float, steady: Steady) -> tuple[float, Steady]:
        """How long to wait for an answer, and for a steady state, where these would be usual."""

    def record(self, entry: Entry, seconds: float) -> None:
        """The unit has this entry, after so many seconds."""

    def give_up(self, point: str) -> None:
        """The point took the probe down too often."""

    def over(self) -> bool:
        """Whether there is no time left."""


class InOrder:
    """All units, one after the other."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self._units = iter(units)

    def next(self) -> Unit | None:
        """The next one of the plan's order."""
        return next(self._units, None)

    def limits(self, point: Point, patience: float, steady: Steady) -> tuple[float, Steady]:
        """The usual ones."""
        return patience, steady

    def record(self, entry: Entry, seconds: float) -> None:
        """The order is fixed."""

    def give_up(self, point: str) -> None:
        """Each of its units gets an entry that says why."""

    def over(self) -> bool:
        """Time is not limited."""
        return False


class BudgetClock:
    """What is left of a budget. Building the programs does not count: it happens once on a machine."""

    def __init__(self, begun: float | None = None) -> None:
        """`begun`: time.monotonic() of the beginning, default now."""
        self.seconds = math.inf
        self._begun = time.monotonic() if begun is None else begun
        self._built = building_seconds()

    def limit(self, seconds: float) -> None:
        """So many seconds are given, from the beginning on; 0: no limit."""
        self.seconds = seconds or math.inf

    def spent(self) -> float:
        """Seconds since the beginning."""
        return time.monotonic() - self._begun - (building_seconds() - self._built)

    def left(self) -> float:
        """Seconds left, below 0 where more was taken."""
        return self.seconds - self.spent()


class WithinBudget:
    """The units that an agenda chooses, until only `reserve` seconds of a budget are left."""

    def __init__(self, agenda: Agenda, clock: BudgetClock, reserve: float) -> None:
        self.agenda = agenda
        self._clock = clock
        self._reserve = reserve

    def _left(self) -> float:
        return self._clock.left() - self._reserve

    def next(self) -> Unit | None:
        """What the agenda chooses."""
        return self.agenda.next(self._left())

    def limits(self, point: Point, patience: float, steady: Steady) -> tuple[float, Steady]:
        """A phase that never settles must not take the time of all others: what the unit does not need is
        divided among its phases, of which one with both sides may wait twice.
        """
        left = self._left()
        phases = len(point.sequence)
        spare = (left - phases * point.workload.phase_seconds(point)) / (2 * phases)
        limit = min(steady.limit, max(SHORTEST_LIMIT, spare))
        return min(patience, max(SHORTEST_PATIENCE, left)), msgspec.structs.replace(steady, limit=limit)

    def record(self, entry: Entry, seconds: float) -> None:
        """A first repetition also touches memory, which its phases do not wait for."""
        expected = phases_seconds(entry) if entry.repetition == 0 else None
        sound = entry.record.get("status") != "failed"
        self.agenda.record(entry.unit, seconds if expected is None else expected, sound=sound)

    def give_up(self, point: str) -> None:
        """Not asked for again."""
        self.agenda.give_up(point)

    def over(self) -> bool:
        """Whether only the reserve is left."""
        return self._left() <= 0


def phases_seconds(entry: Entry) -> float | None:
    """Seconds from the beginning of a unit's first phase to the end of its last; None without phases."""
    times = [
        phase[name]
        for phase in entry.record.get("phases", ())
        for name in ("start_ns", "end_ns")
        if name in phase
    ]
    return (max(times) - min(times)) * 1e-9 if times else None
