"""The loop of a campaign: one unit after the other, each on the disk before the next is asked for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import msgspec

from elbowroom.errors import MachineError
from elbowroom.launch.programs import started_alike
from elbowroom.launch.session import Conversation, SessionLost, error_of
from elbowroom.machine.frequencies import FrequencyRefused
from elbowroom.plan.ordering import is_kernels, phase_seconds, request, sequence, step_seconds
from elbowroom.plan.point import Point, Unit
from elbowroom.plan.reading import Steady
from elbowroom.store.journal import Entry, Journal, failed_entry

LOSSES_OF_A_POINT = 2
"""A point that took the probe down this often is not asked again in this run."""

LOSSES_IN_A_ROW = 5
"""So many lost probes one after the other are no longer the points' fault."""

Opener = Callable[[int, bool, bool], Conversation]
Starter = Callable[[Point], Conversation]
Holder = Callable[[int | None, int | None], AbstractContextManager[None]]
"""Holds core and uncore frequencies (kHz) constant during a block, see machine.frequencies."""


def as_they_are(_core_khz: int | None, _uncore_khz: int | None) -> AbstractContextManager[None]:
    """Nothing is set: a recording was measured at its frequencies."""
    return nullcontext()


class Group(msgspec.Struct, frozen=True, kw_only=True):
    """Units answered by one probe: same number of ranks, same way of waiting, same thread level of MPI. Of an
    application `started` is a point that has all its threads, of a program one that is started alike.
    """

    ranks: int
    share_core: bool
    units: tuple[Unit, ...]
    several_threads: bool = False
    started: Point | None = None


def shares_core(point: Point) -> bool:
    """Whether a communication thread of another rank may sit on the core of rank 0's."""
    return not point.peer_cores or bool(set(point.peer_cores) & set(point.comm_cores or (point.comm_core,)))


def several_threads(point: Point) -> bool:
    """Whether a rank communicates from more than one thread, which MPI must be told and is slower for."""
    return len(point.comm_cores) > 1 or any(len(place.comm_cores) > 1 for place in point.placements)


def groups(
    units: Sequence[Unit], points: dict[str, Point], ranks: Callable[[Point], int]
) -> tuple[Group, ...]:
    """Units by the probe that answers them, each group in the order of the plan.

    Groups follow one another instead of alternating, since the ranks of a second, idle probe would poll
    beside the measurement. Applications come last, by what they run and on how many nodes, then programs, by
    what they are started with.
    """
    found: dict[tuple[int, bool, bool], list[Unit]] = {}
    started: dict[tuple[str, int, int], list[Unit]] = {}
    programs: dict[tuple[object, ...], list[Unit]] = {}
    for unit in units:
        point = points[unit.point]
        if point.program is not None:
            programs.setdefault(started_alike(point), []).append(unit)
        elif point.application is not None:
            app = point.application
            started.setdefault((app.name, app.nodes, app.cells), []).append(unit)
        else:
            found.setdefault((ranks(point), shares_core(point), several_threads(point)), []).append(unit)
    probes = tuple(
        Group(ranks=count, share_core=share, several_threads=several, units=tuple(members))
        for (count, share, several), members in found.items()
    )
    return (
        *probes,
        *(_application_group(members, points) for _, members in sorted(started.items())),
        *(_program_group(members, points) for members in programs.values()),
    )


def _program_group(units: Sequence[Unit], points: dict[str, Point]) -> Group:
    first = points[units[0].point]
    assert first.program is not None
    return Group(ranks=first.program.ranks, share_core=shares_core(first), units=tuple(units), started=first)


def _application_group(units: Sequence[Unit], points: dict[str, Point]) -> Group:
    most = max((points[unit.point] for unit in units), key=lambda point: len(point.comm_cores))
    assert most.application is not None
    return Group(
        ranks=most.application.nodes,
        share_core=shares_core(most),
        units=tuple(units),
        several_threads=several_threads(most),
        started=most,
    )


def patience(point: Point, unit: Unit, steady: Steady) -> float:
    """Seconds without an answer after which the probe is taken to hang: far beyond the slowest sound
    answer.
    """
    if point.application is not None:
        steps = point.application.steps + point.application.warmup
        return 60.0 + 20.0 * steps * step_seconds(point.application)
    phases = len(sequence(point, unit.closing))
    if is_kernels(point.program) or point.extraneous is not None:
        return 60.0 + 20.0 * phases * phase_seconds(point)
    return 60.0 + 4.0 * phases * (point.window + steady.limit) + point.working_set * max(1, point.n) / 1e8


class Measuring:
    """Asks for units and journals the answers; a lost probe is started again for the next unit."""

    def __init__(
        self,
        journal: Journal,
        points: dict[str, Point],
        steady: Steady,
        *,
        open_probe: Opener,
        start: Starter | None = None,
        limit: float | None = None,
        constant: Holder = as_they_are,
    ) -> None:
        self._journal = journal
        self._points = points
        self._steady = steady
        self._open = open_probe
        self._start = start
        self._limit = limit
        self._constant = constant
        self._losses: Counter[str] = Counter()
        self._reasons: dict[str, str] = {}
        self._in_a_row = 0
        self.measured_s = 0.0
        self.asked = 0

    def run(self, group: Group, first: Conversation | None, tell: Callable[[Unit], object]) -> None:
        """Measures the units of a group that have no entry yet. `first` is a probe that is up already."""
        done = self._journal.done
        probe = first
        try:
            for unit in group.units:
                if unit in done:
                    continue
                if self._losses[unit.point] >= LOSSES_OF_A_POINT:
                    reason = f"not asked again, since earlier: {self._reasons[unit.point]}"
                    self._journal.append(failed_entry(unit, reason))
                else:
                    probe = probe or self._opened(group)
                    probe = self._at_frequency(unit, probe)
                tell(unit)
        finally:
            if probe is not None:
                probe.close()

    def _opened(self, group: Group) -> Conversation:
        if group.started is not None and self._start is not None:
            return self._start(group.started)
        return self._open(group.ranks, group.share_core, group.several_threads)

    def _at_frequency(self, unit: Unit, probe: Conversation) -> Conversation | None:
        """Measures at the point's constant frequencies; where they cannot be set, that is why it failed."""
        point = self._points[unit.point]
        try:
            with self._constant(point.core_khz, point.uncore_khz):
                return self._measure(unit, probe)
        except FrequencyRefused as refused:
            self._journal.append(failed_entry(unit, refused.sentence()))
            return probe

    def _measure(self, unit: Unit, probe: Conversation) -> Conversation | None:
        self.asked += 1
        point = self._points[unit.point]
        wait = patience(point, unit, self._steady) if self._limit is None else self._limit
        try:
            answer = probe.ask(unit, request(point, unit, self._steady), wait)
            self._journal.append(self._entry(unit, answer))
        except SessionLost as lost:
            probe.close()
            self._journal.append(failed_entry(unit, str(lost)))
            self._losses[unit.point] += 1
            self._reasons[unit.point] = str(lost)
            self._in_a_row += 1
            if self._in_a_row >= LOSSES_IN_A_ROW:
                raise MachineError(
                    f"the probe was lost {self._in_a_row} times in a row: {lost}",
                    field="probe",
                    mend="what was measured is kept: mend the machine, then --resume",
                ) from lost
            return None
        self._in_a_row = 0
        return probe

    def _entry(self, unit: Unit, answer: dict[str, Any]) -> Entry:
        if answer.get("record") == "error":
            return failed_entry(unit, error_of(answer).sentence())
        same = (answer.get("point"), answer.get("repetition")) == (unit.point, unit.repetition)
        if answer.get("record") != "repetition" or not same:
            raise SessionLost(f"the probe answered something else: {str(answer)[:200]}")
        self.measured_s += measured_seconds(answer)
        return Entry(point=unit.point, repetition=unit.repetition, closing=unit.closing, record=answer)


def measured_seconds(record: dict[str, Any]) -> float:
    """Seconds of a unit that were inside measured windows."""
    return sum(float(phase.get("measured_s") or 0.0) for phase in record.get("phases", ()))


def remaining(units: Iterable[Unit], done: set[Unit]) -> tuple[Unit, ...]:
    """The units without an entry, in order."""
    return tuple(unit for unit in units if unit not in done)
