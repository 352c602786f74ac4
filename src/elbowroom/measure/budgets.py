"""A run with a budget of time: what there is time for, how uncertain it is, and what is left out."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.launch.native import building_seconds
from elbowroom.measure.agenda import SAFETY, Agenda, Limits
from elbowroom.measure.prepared import Prepared, UnitGroup
from elbowroom.measure.results import point_results
from elbowroom.plan.axes import is_control
from elbowroom.plan.information import by_information
from elbowroom.plan.order import estimate
from elbowroom.points.point import Point, Steady
from elbowroom.points.unit import Entry, Unit
from elbowroom.results.result import PointResult
from elbowroom.stats.signed_ranks import FEWEST
from elbowroom.store.folder import Budget, RunFolder

START = 1.0
"""Seconds from the command until a clock runs: the interpreter and its imports."""
LATE = 0.65
"""Share of a budget after which only what the answer rests on is made more precise."""
REPORT, REPORT_POINT = 2.0, 0.02
"""Seconds to seal, judge and report a run, and more for each point."""
REPORT_RESULTS = 6.0
"""All of that takes at most so many times as long as computing the results, which is measured during the run:
more time is kept on a slow or busy host.
"""


SHORTEST_LIMIT = 0.02
"""Seconds: a phase may always wait so long for its steady state."""
SHORTEST_PATIENCE = 1.0


class InOrder:
    """Which unit a run measures next, and how long it may wait for it: all units, one after the other."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self._units = iter(units)

    def next(self) -> Unit | None:
        """The unit to measure now; None: nothing more."""
        return next(self._units, None)

    def limits(self, point: Point, patience: float, steady: Steady) -> tuple[float, Steady]:
        """How long to wait for an answer, and for a steady state, if these would be usual."""
        return patience, steady

    def record(self, entry: Entry, seconds: float) -> None:
        """The unit has this entry, after so many seconds."""

    def give_up(self, point: str) -> None:
        """The point took the probe down too often: each of its units gets an entry that says why."""

    def over(self) -> bool:
        """Whether there is no time left."""
        return False


class BudgetClock:
    """What is left of a budget. Building the programs does not count: it happens once on a machine."""

    def __init__(self, start: float | None = None) -> None:
        """`start`: time.monotonic() of the beginning, default now."""
        self.seconds = math.inf
        self._start = time.monotonic() if start is None else start
        self._built = building_seconds()

    def limit(self, seconds: float) -> None:
        """So many seconds are given, from the beginning on; 0: no limit."""
        self.seconds = seconds or math.inf

    def building(self) -> float:
        """Seconds since the beginning in which programs were built."""
        return building_seconds() - self._built

    def spent(self) -> float:
        """Seconds since the beginning, without building."""
        return time.monotonic() - self._start - self.building()

    def left(self) -> float:
        """Seconds left, below 0 where more was taken."""
        return self.seconds - self.spent()


class UntilEnd(InOrder):
    """All units, one after the other, until only `reserve()` seconds of a budget are left."""

    def __init__(
        self, units: Iterable[Unit], clock: BudgetClock, reserve: Callable[[], float] = lambda: 0.0
    ) -> None:
        super().__init__(units)
        self._clock = clock
        self._reserve = reserve

    def _left(self) -> float:
        return self._clock.left() - self._reserve()

    def next(self) -> Unit | None:
        """The unit to measure now; None: nothing more, or no time."""
        return None if self.over() else super().next()

    def limits(self, point: Point, patience: float, steady: Steady) -> tuple[float, Steady]:
        """A phase that never settles must not take the time of all others: what the unit does not need is
        divided among its phases, of which one with both sides may wait twice.
        """
        left = self._left()
        phases = len(point.sequence)
        spare = (left - phases * point.workload.times(point).phase) / (2 * phases)
        limit = min(steady.limit, max(SHORTEST_LIMIT, spare))
        return min(patience, max(SHORTEST_PATIENCE, left)), msgspec.structs.replace(steady, limit=limit)

    def over(self) -> bool:
        """Whether only the reserve is left."""
        return self._left() <= 0


class WithinBudget(UntilEnd):
    """The units that an agenda chooses, until only `reserve()` seconds of a budget are left."""

    def __init__(self, agenda: Agenda, clock: BudgetClock, reserve: Callable[[], float]) -> None:
        super().__init__((), clock, reserve)
        self.agenda = agenda

    def next(self) -> Unit | None:
        """What the agenda chooses."""
        return self.agenda.next(self._left())

    def record(self, entry: Entry, seconds: float) -> None:
        """A first repetition also touches memory, which its phases do not wait for."""
        expected = phases_seconds(entry) if entry.repetition == 0 else None
        sound = entry.record.get("status") != "failed"
        self.agenda.record(entry.unit, seconds if expected is None else expected, sound=sound)

    def give_up(self, point: str) -> None:
        """Not asked for again."""
        self.agenda.give_up(point)


def phases_seconds(entry: Entry) -> float | None:
    """Seconds from the beginning of a unit's first phase to the end of its last; None without phases."""
    times = [
        phase[name]
        for phase in entry.record.get("phases", ())
        for name in ("start_ns", "end_ns")
        if name in phase
    ]
    return (max(times) - min(times)) * 1e-9 if times else None


class BudgetSchedule:
    """The courses of a run's groups within one budget."""

    def __init__(self, folder: RunFolder, prepared: Prepared, clock: BudgetClock) -> None:
        self._folder, self._prepared, self._clock = folder, prepared, clock
        self._before_s = spent_before(folder)
        self._least = least(prepared)
        self._points = by_information(prepared.expansion.points)
        self._agendas: list[Agenda] = []
        self._answer = {point.id for point in answer_points(prepared.expansion.points)}
        self._weights = [self._seconds(group, self._points) for group in prepared.groups]
        first = self._points[: len(self._answer)]
        self._first_weights = [self._seconds(group, first) for group in prepared.groups]
        self._results_s = 0.0

    def course(self, number: int) -> WithinBudget:
        """The course of group `number`. Groups share the time by what their points take, after what the
        points of the answer take in each.
        """
        later, first = self._weights[number + 1 :], self._first_weights[number:]
        left = max(0.0, self._clock.left() - self._closing())
        others = max(0.0, left - sum(first))
        for_later = (left - others) * sum(first[1:]) / max(sum(first), 1e-9)
        for_later += others * sum(later) / max(sum(self._weights[number:]), 1e-9)
        agenda = self._agenda(self._prepared.groups[number])
        for entry in self._folder.entries():
            if entry.point in agenda.points:
                agenda.record(entry.unit, phases_seconds(entry), sound=entry.record.get("status") != "failed")
        self._agendas.append(agenda)
        return WithinBudget(agenda, self._clock, lambda: for_later + self._closing())

    def _closing(self) -> float:
        """Seconds that are kept for the end of the run."""
        return max(closing_seconds(self._prepared), REPORT_RESULTS * self._results_s)

    def close(self) -> None:
        """Writes into the manifest what the budget was, what was spent of it, and what was left out."""
        out = {point for agenda in self._agendas for point in agenda.left_out()}
        self._folder.update(
            budget=Budget(
                seconds=self._before_s + self._clock.seconds,
                spent_s=self._before_s + self._clock.spent(),
                least=self._least,
                left_out=tuple(point.id for point in self._prepared.expansion.points if point.id in out),
            )
        )

    def _agenda(self, group: UnitGroup) -> Agenda:
        plan = self._prepared.plan
        ids = {unit.point for unit in group.units}
        points = [point for point in self._points if point.id in ids]
        return Agenda(
            [point.id for point in points],
            Limits(least=self._least, most=plan.repetitions, refine=plan.precision > 0),
            seconds={point.id: point.workload.times(point).unit for point in points},
            widths=self._widths,
            first=len(ids & self._answer),
            closing=[unit for unit in group.units if unit.closing],
            seed=plan.seed,
            reverse=self._folder.manifest.reverse,
        )

    def _widths(self) -> Mapping[str, float]:
        """By point; late in a run only the points that the answer rests on are still too wide."""
        plan = self._prepared.plan
        start = time.monotonic()
        results = point_results(self._folder.manifest, self._folder.entries())[0]
        # Imports make the first one slower.
        spent = time.monotonic() - start
        self._results_s = min(spent, self._results_s) if self._results_s else spent
        by_point = widths(results, plan.precision or 1.0)
        crucial = experiments.get(plan.experiment).crucial
        if crucial is None or not plan.precision or self._clock.spent() < LATE * self._clock.seconds:
            return by_point
        wanted = crucial(results)
        return {result.id: by_point.get(result.id, math.inf) for result in results if result.id in wanted} | {
            result.id: 0.0 for result in results if result.id not in wanted
        }

    def _seconds(self, group: UnitGroup, points: Sequence[Point]) -> float:
        """What the fewest repetitions of those points take that are of a group."""
        ids = {unit.point for unit in group.units}
        points = [point for point in points if point.id in ids]
        return estimate(points, _fewest_units(points, self._least))


def least(prepared: Prepared) -> int:
    """Repetitions that a point gets before any gets more: those that an interval needs."""
    return min(FEWEST, prepared.plan.repetitions)


def closing_seconds(prepared: Prepared) -> float:
    """Seconds that sealing, judging and reporting take."""
    return REPORT + REPORT_POINT * len(prepared.expansion.points)


def answer_points(points: Sequence[Point]) -> tuple[Point, ...]:
    """What an answer needs at least: the controls and the most informative other point."""
    controls = sum(is_control(point, points) for point in points)
    return by_information(points)[: controls + 1]


def smallest_budget(prepared: Prepared) -> int:
    """Seconds in which the most informative point and the controls can be measured and reported."""
    first = answer_points(prepared.expansion.points)
    measuring = SAFETY * estimate(first, _fewest_units(first, least(prepared)))
    return math.ceil(START + closing_seconds(prepared) + measuring)


def check_budget(prepared: Prepared) -> None:
    """UsageError where there is not even time for the most informative point and the controls."""
    needed = smallest_budget(prepared)
    if prepared.plan.budget < needed:
        count = len(answer_points(prepared.expansion.points))
        raise UsageError(
            f"is too short for an answer, which needs {least(prepared)} repetitions of {count} points",
            field="budget",
            value=f"{prepared.plan.budget:g} s",
            hint=f"give at least {needed}s",
        )


def _fewest_units(points: Sequence[Point], repetitions: int) -> list[Unit]:
    return [
        Unit(point=point.id, repetition=repetition) for point in points for repetition in range(repetitions)
    ]


def spent_before(folder: RunFolder) -> float:
    """Seconds that earlier parts of a run took; of a part that was killed those that its units took."""
    if folder.manifest.budget is not None:
        return folder.manifest.budget.spent_s
    return sum(phases_seconds(entry) or 0.0 for entry in folder.entries())


def allowance(folder: RunFolder, prepared: Prepared, seconds: float | None) -> tuple[float | None, str]:
    """The time limit of one more part of a run, in seconds, and a sentence about it.

    It is `seconds` if given, else what is left of the run's budget (0: spent). None: the run has no limit.
    """
    if seconds is not None:
        return seconds, f"measuring for another {seconds:g} s"
    if not prepared.budget:
        return None, ""
    left = prepared.budget - spent_before(folder)
    if folder.manifest.finished or left <= closing_seconds(prepared):
        return (
            0.0,
            f"the budget of {prepared.budget:g} s is spent; more time: --resume {folder.path} --budget 60s",
        )
    return left, f"{left:.0f} s of the budget of {prepared.budget:g} s are left"


def widths(results: Sequence[PointResult], precision: float) -> Mapping[str, float]:
    """By point, the half width of the wider of its two intervals of ln(kept) over `precision`; without kept,
    that of its values. Points without an interval are missing.
    """
    by_point = {}
    for result in results:
        halves = [_half_width(ends) for ends in _ends(result)]
        if halves and None not in halves:
            by_point[result.id] = max(half for half in halves if half is not None) / precision
    return by_point


def _ends(result: PointResult) -> list[tuple[float | None, float | None]]:
    """The ends of what the point was measured for."""
    ends: list[tuple[float | None, float | None]] = []
    for side in (result.comp, result.comm):
        value = side.kept or side.together or side.alone
        if value is not None:
            ends.append((value.low, value.high))
    if not ends and result.payload.steps is not None:
        ends.append((result.payload.steps.total.low, result.payload.steps.total.high))
    return ends


def _half_width(ends: tuple[float | None, float | None]) -> float | None:
    low, high = ends
    return math.log(high / low) / 2 if low is not None and high is not None and 0 < low <= high else None
