"""The loop of a run: one unit after the other, each on the disk before the next is asked for."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import msgspec

from elbowroom.errors import MachineError
from elbowroom.launch.session import Conversation, SessionLost, error_of
from elbowroom.machine import keeper
from elbowroom.machine.topology import Machine
from elbowroom.measure.agenda import Course, InOrder
from elbowroom.points.point import Point, Steady
from elbowroom.points.probe import ProbeStart, several_threads, shares_core
from elbowroom.points.unit import Entry, Unit
from elbowroom.store.journal import Journal, failed_entry

LOSSES_OF_A_POINT = 2
"""A point that took the probe down this often is not asked again in this run."""

LOSSES_IN_A_ROW = 5
"""So many lost probes one after the other are no longer the points' fault."""

Opener = Callable[[ProbeStart], Conversation]
Starter = Callable[[Point], Conversation]


class UnitGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Units that one start of the probe, or of a program, answers.

    For a program, `started` is the point of the group with most communication threads.
    """

    probe: ProbeStart
    units: tuple[Unit, ...]
    started: Point | None = None


def groups(units: Sequence[Unit], points: dict[str, Point], machine: Machine) -> tuple[UnitGroup, ...]:
    """Units by what answers them, each group in the order of the plan.

    Groups follow one another instead of alternating, since the ranks of a second, idle probe would poll
    beside the measurement. The probe's groups come first.
    """
    members: dict[tuple[Any, ...], list[Unit]] = {}
    for unit in units:
        point = points[unit.point]
        workload = point.workload
        order, key = workload.facts.order, workload.group(point, workload.rank_count(point, machine))
        members.setdefault((order != "planned", key if order == "last, sorted" else (), key), []).append(unit)
    ordered = sorted(members, key=lambda member: member[:2])
    return tuple(_group(members[member], points, machine) for member in ordered)


def _group(units: Sequence[Unit], points: dict[str, Point], machine: Machine) -> UnitGroup:
    most = max((points[unit.point] for unit in units), key=lambda point: len(point.comm_cores))
    return UnitGroup(
        probe=ProbeStart(
            ranks=most.workload.rank_count(most, machine),
            share_core=shares_core(most),
            several_threads=several_threads(most),
            library_progress=most.workload.needs.library_progress,
        ),
        units=tuple(units),
        started=most if most.workload.program else None,
    )


@dataclass
class Loop:
    """Asks for units and journals the answers; a lost probe is started again for the next unit."""

    journal: Journal
    points: dict[str, Point]
    steady: Steady
    _: KW_ONLY
    open_probe: Opener
    start: Starter | None = None
    limit: float | None = None

    def __post_init__(self) -> None:
        self._losses: Counter[str] = Counter()
        self._reasons: dict[str, str] = {}
        self._course: Course = InOrder(())
        self._unit_start = 0.0
        self._in_a_row = 0
        self._start = max((int(entry.record.get("start", 0)) for entry in self.journal.read()), default=-1)
        self._counted: Conversation | None = None
        self.measured_s = 0.0
        self.units_measured = 0

    def run(
        self,
        group: UnitGroup,
        first: Conversation | None,
        tell: Callable[[Unit], object],
        course: Course | None = None,
    ) -> None:
        """Measures the units of a group that have no entry yet, or those that `course` chooses. `first` is a
        probe that is up already.
        """
        self._course = course or InOrder(remaining(group.units, self.journal.done))
        probe = first
        try:
            while (unit := self._course.next()) is not None:
                self._unit_start = time.monotonic()
                if self._losses[unit.point] >= LOSSES_OF_A_POINT:
                    reason = f"not measured again after: {self._reasons[unit.point]}"
                    self._keep(failed_entry(unit, reason))
                    self._course.give_up(unit.point)
                else:
                    probe = probe or self._opened(group)
                    probe = self._measure(unit, probe)
                tell(unit)
        finally:
            if probe is not None:
                probe.close()

    def _keep(self, entry: Entry) -> None:
        self.journal.append(entry)
        self._course.record(entry, time.monotonic() - self._unit_start)

    def _opened(self, group: UnitGroup) -> Conversation:
        if group.started is not None and self.start is not None:
            return self.start(group.started)
        return self.open_probe(group.probe)

    def _measure(self, unit: Unit, probe: Conversation) -> Conversation | None:
        self.units_measured += 1
        self._count(probe)
        point = self.points[unit.point]
        usual = self.limit
        if usual is None:
            usual = point.workload.times(point, unit.closing, self.steady).patience
        wait, steady = self._course.limits(point, usual, self.steady)
        try:
            answer = probe.ask(unit, self._request(point, unit, steady), wait)
            self._keep(self._entry(unit, answer))
            check_restored(answer)
        except SessionLost as lost:
            probe.close()
            if self._course.over():
                # Cut off by the end of the time, which says nothing about the point.
                return None
            self._keep(failed_entry(unit, str(lost)))
            self._losses[unit.point] += 1
            self._reasons[unit.point] = str(lost)
            self._in_a_row += 1
            if self._in_a_row >= LOSSES_IN_A_ROW:
                raise MachineError(
                    f"the probe was lost {self._in_a_row} times in a row: {lost}",
                    field="probe",
                    hint="what was measured is kept: fix the machine, then --resume",
                ) from lost
            return None
        self._in_a_row = 0
        return probe

    def _count(self, probe: Conversation) -> None:
        """Another program than the one before is another start."""
        if probe is not self._counted:
            self._counted = probe
            self._start += 1

    def _request(self, point: Point, unit: Unit, steady: Steady) -> dict[str, object]:
        """The unit's request; the probe holds the point's settings by a keeper on each host."""
        message = point.workload.request(point, unit, steady)
        if point.settings:
            message["settings"] = {**point.settings, "keeper": keeper.command()}
        return message

    def _entry(self, unit: Unit, answer: dict[str, Any]) -> Entry:
        if answer.get("record") == "error":
            return failed_entry(unit, error_of(answer).sentence())
        same = (answer.get("point"), answer.get("repetition")) == (unit.point, unit.repetition)
        if answer.get("record") != "repetition" or not same:
            raise SessionLost(f"the probe sent an unexpected answer: {str(answer)[:200]}")
        self.measured_s += measured_seconds(answer)
        # A recorded answer says which start it was from.
        record = {**answer, "start": answer.get("start", self._start)}
        return Entry(point=unit.point, repetition=unit.repetition, closing=unit.closing, record=record)


def check_restored(answer: dict[str, Any]) -> None:
    """Raises MachineError where a host could not set back what it had held for the point."""
    left = answer.get("not_restored")
    if left:
        raise MachineError(
            f"cannot be set back: {'; '.join(left)}",
            field="settings",
            hint="as root on that host: elbowroom doctor, which tries again",
        )


def measured_seconds(record: dict[str, Any]) -> float:
    """Seconds of a unit that were inside measured windows."""
    return sum(float(phase.get("measured_s") or 0.0) for phase in record.get("phases", ()))


def remaining(units: Iterable[Unit], done: set[Unit]) -> tuple[Unit, ...]:
    """The units without an entry, in order."""
    return tuple(unit for unit in units if unit not in done)
