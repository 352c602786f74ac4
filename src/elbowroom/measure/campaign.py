"""A run from a plan to a report: prepare, measure one unit after the other, seal, judge."""

from __future__ import annotations

import contextlib
import datetime
import itertools
import os
import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.errors import ElbowroomError, MachineError
from elbowroom.experiments.plans import decode
from elbowroom.heartbeat import Wait
from elbowroom.launch import launchers
from elbowroom.launch.session import Conversation, SessionLost, error_of
from elbowroom.machine import keeper
from elbowroom.measure.budgets import BudgetClock, BudgetSchedule, InOrder, allowance
from elbowroom.measure.manifest import (
    CpuTimes,
    Tell,
    locked,
    look,
    manifest_of,
    note_resumed,
    now,
    others_busy,
    restore_frequencies,
    same_machine,
    state_of,
)
from elbowroom.measure.prepare import estimated_seconds, load_plan, prepare, schedule, with_mesh
from elbowroom.measure.prepared import Prepared, Request, UnitGroup
from elbowroom.measure.results import Results, evaluate
from elbowroom.measure.so_far import largest_loss
from elbowroom.measure.source import RecordedSource, Source, Where, choose
from elbowroom.plan.validation import validate
from elbowroom.points.point import Expansion, Point
from elbowroom.points.unit import Entry, Unit
from elbowroom.progress import Progress, TimedProgress
from elbowroom.signals import stopped_by_signals
from elbowroom.store.folder import Manifest, RunFolder, refuse_existing
from elbowroom.store.journal import Journal, failed_entry
from elbowroom.store.sealed import seal

LOSSES_OF_A_POINT = 2
"""A point that took the probe down this often is not asked again in this run."""

LOSSES_IN_A_ROW = 5
"""So many lost probes one after the other are no longer the points' fault."""


def start(
    request: Request, tell: Tell, source: Source | None = None, prepared: Prepared | None = None
) -> tuple[RunFolder, Results]:
    """Measures a plan, or what was prepared of one, into a new run folder. Nothing is written when the
    request cannot be met.
    """
    clock = BudgetClock(request.start)
    out = Path(request.out) if request.out else default_out(request.plan)
    refuse_existing(out)
    if prepared is None:
        plan, request = load_plan(request, tell)
    source = source or choose(request.where)
    if request.trace:
        refuse_existing(traces_of(out))
        source.record(traces_of(out))
    restore_frequencies(source, tell)
    if prepared is None:
        prepared = prepare(request, plan, source)
    clock.limit(prepared.budget)
    with new_run(out, request, prepared, source, tell) as loop:
        if prepared.budget and clock.building() >= 1:
            tell(
                f"building the programs took {clock.building():.0f} s, which the budget of "
                f"{prepared.budget:g} s does not include"
            )
        return loop.folder, _measure(loop, clock, tell)


def resume(
    path: Path,
    tell: Tell,
    *,
    where: Where | None = None,
    patience: float | None = None,
    retry_failed: bool = False,
    source: Source | None = None,
    budget: float | None = None,
) -> tuple[RunFolder, Results]:
    """Measures what a run folder still lacks, with the launcher, MPI and hosts it was started with.

    `budget`: seconds from now; without it, what is left of the run's own.
    """
    clock = BudgetClock()
    with locked(path) as (folder, journal):
        manifest, plan = folder.manifest, decode(folder.manifest.plan)
        source = source_to_resume(folder, where, source, tell)
        expansion = Expansion(points=manifest.points, notes=manifest.notes)
        if source.live:
            expansion = with_mesh(expansion, plan, manifest.machine)
        validate(expansion.points, manifest.machine, hosts=plan.hosts, scheduling=plan.scheduling)
        prepared = schedule(plan, manifest.machine, expansion, source, manifest.reverse)
        if retry_failed:
            journal.drop_failed()
        limit, sentence = allowance(folder, prepared, budget)
        if limit is not None:
            clock.limit(limit)
            prepared = msgspec.structs.replace(
                prepared, budget=limit, groups=prepared.groups if limit else ()
            )
            tell(sentence)
        with contextlib.closing(Loop(folder, journal, source, prepared, patience)) as loop:
            left = [group for group in prepared.groups if loop.remaining(group.units)]
            if left:
                note_resumed(folder, loop.program_for(left[0]).hello)
            return folder, _measure(loop, clock, tell)


def _measure(loop: Loop, clock: BudgetClock, tell: Tell) -> Results:
    """Goes through the groups, then seals, judges and reports."""
    folder, prepared = loop.folder, loop.prepared
    schedule = BudgetSchedule(folder, prepared, clock) if prepared.budget else None
    with stopped_by_signals(folder.path):
        with loop.part(), _progress(loop, clock, tell) as bar:
            for number, group in enumerate(prepared.groups):
                if left := loop.remaining(group.units):
                    loop.run(group, schedule.course(number) if schedule else InOrder(left), bar)
                    loop.close()
        if schedule:
            schedule.close()
        elif isinstance(loop.source, RecordedSource) and loop.source.budget:
            folder.update(budget=loop.source.budget)
        return finish(folder)


@contextlib.contextmanager
def new_run(
    out: Path,
    request: Request,
    prepared: Prepared,
    source: Source,
    tell: Tell,
    points: Sequence[Point] | None = None,
) -> Iterator[Loop]:
    """The loop of a new run, whose first program is up; the folder is made only then. `points`: those that
    the run begins with, if these are not all.
    """
    state = {"before": state_of(source, tell)}
    probe = source.open(prepared.groups[0].probe)
    with contextlib.ExitStack() as opened:
        opened.callback(probe.close)
        manifest = manifest_of(request, prepared, source, state, probe.hello)
        if points is not None:
            manifest = msgspec.structs.replace(manifest, points=tuple(points))
        folder = RunFolder.create(out, manifest, source.topology())
        journal = opened.enter_context(contextlib.closing(folder.journal()))
        loop = Loop(folder, journal, source, prepared, request.patience, probe)
        opened.pop_all()
    with contextlib.closing(journal), contextlib.closing(loop):
        yield loop


def source_to_resume(folder: RunFolder, where: Where | None, source: Source | None, tell: Tell) -> Source:
    """What a run goes on with: `source`, else `where` if that says anything, else what the run began with.
    UsageError if that is another machine than the run's.
    """
    manifest = folder.manifest
    if where is None or where == Where():
        where = Where.stored(manifest.where, folder.manifest_path)
    source = source or choose(where)
    restore_frequencies(source, tell)
    same_machine(folder.path, source, manifest)
    return source


@dataclass
class Loop:
    """Asks the program that is up for one unit after the other; each answer is on the disk before the next is
    asked for. A lost program is started again for the next unit.
    """

    folder: RunFolder
    journal: Journal
    source: Source
    prepared: Prepared
    patience: float | None
    probe: Conversation | None = None

    def __post_init__(self) -> None:
        self._points = {point.id: point for point in self.prepared.expansion.points}
        self._started = self.prepared.groups[0].probe if self.probe is not None else None
        self.seconds: dict[Unit, float] = {}
        """What units are estimated to take."""
        self._losses: Counter[str] = Counter()
        self._reasons: dict[str, str] = {}
        self._in_a_row = 0
        starts = (int(entry.record.get("start", 0)) for entry in self.journal.read())
        self._start = max(starts, default=-1) + (self.probe is not None)
        self._measured_s = 0.0
        self._units = 0

    def remaining(self, units: Iterable[Unit]) -> tuple[Unit, ...]:
        """The units without an entry, in order."""
        return tuple(unit for unit in units if unit not in self.journal.done)

    def run(self, group: UnitGroup, course: InOrder, bar: Progress) -> None:
        """Measures the units of a group that `course` chooses. Its program stays up until `close`, or until
        another group needs another one.
        """
        while (unit := course.next()) is not None:
            start = time.monotonic()
            if self._losses[unit.point] >= LOSSES_OF_A_POINT:
                reason = f"not measured again after: {self._reasons[unit.point]}"
                entry: Entry | None = failed_entry(unit, reason)
                course.give_up(unit.point)
            else:
                entry = self._answer(unit, group, course)
            if entry is not None:
                self.journal.append(entry)
                course.record(entry, time.monotonic() - start)
                check_restored(entry.record)
            if self._in_a_row >= LOSSES_IN_A_ROW:
                raise MachineError(
                    f"the probe was lost {self._in_a_row} times in a row: {self._reasons[unit.point]}",
                    field="probe",
                    hint="what was measured is kept: fix the machine, then --resume",
                )
            bar.step(self.seconds.get(unit))

    def program_for(self, group: UnitGroup) -> Conversation:
        """The program that answers a group, started if it is not up; a second, idle one would poll beside
        it.
        """
        if self.probe is None or self._started != group.probe:
            self.close()
            self.probe, self._started = self.source.open(group.probe), group.probe
            self._start += 1
        return self.probe

    def close(self) -> None:
        """Ends the program that is up."""
        probe, self.probe = self.probe, None
        if probe is not None:
            probe.close()

    def _answer(self, unit: Unit, group: UnitGroup, course: InOrder) -> Entry | None:
        """The entry of a unit; None if it was cut off by the end of the time, which says nothing about its
        point.
        """
        probe, point, steady = self.program_for(group), self._points[unit.point], self.prepared.plan.steady
        self._units += 1
        usual = self.patience
        if usual is None:
            usual = point.workload.times(point, unit.closing, steady).patience
        wait, steady = course.limits(point, usual, steady)
        message = point.workload.request(point, unit, steady)
        if point.settings:
            message["settings"] = {**point.settings, "keeper": keeper.command()}
        try:
            entry = self._entry(unit, probe.ask(unit, message, wait))
        except SessionLost as lost:
            self.close()
            if course.over():
                return None
            self._losses[unit.point] += 1
            self._reasons[unit.point] = str(lost)
            self._in_a_row += 1
            return failed_entry(unit, str(lost))
        self._in_a_row = 0
        return entry

    def _entry(self, unit: Unit, answer: dict[str, Any]) -> Entry:
        if answer.get("record") == "error":
            return failed_entry(unit, error_of(answer).sentence())
        same = (answer.get("point"), answer.get("repetition")) == (unit.point, unit.repetition)
        if answer.get("record") != "repetition" or not same:
            raise SessionLost(f"the probe sent an unexpected answer: {str(answer)[:200]}")
        self._measured_s += measured_seconds(answer)
        # A recorded answer says which start it was from.
        record = {**answer, "start": answer.get("start", self._start)}
        return Entry(point=unit.point, repetition=unit.repetition, closing=unit.closing, record=record)

    @contextlib.contextmanager
    def part(self) -> Iterator[None]:
        """One part of a run: what it took and the machine's state after it are written at its end, if
        anything was measured. An error in the block is the one that is shown.
        """
        manifest, start, clocks = self.folder.manifest, time.monotonic(), look()
        try:
            yield
        except BaseException:
            self.close()
            with contextlib.suppress(ElbowroomError, OSError):
                self._close_part(manifest, start, clocks)
            raise
        self.close()
        self._close_part(manifest, start, clocks)

    def _close_part(self, manifest: Manifest, start: float, clocks: CpuTimes) -> None:
        if not self._units:
            return
        source, during = self.source, dict[str, Any]()
        if source.live and not launchers.get(source.name).program:
            # The ranks are children of ours: what the host was busy with besides them is other people's work.
            during["others_busy"] = others_busy(clocks, look())
        wall = manifest.wall_s + time.monotonic() - start
        spent = manifest.measured_s + self._measured_s
        self.folder.update(
            state={
                **manifest.state,
                "during": during,
                "after": state_of(source, lambda _: None) if source.live else {},
            },
            wall_s=wall,
            measured_s=spent,
            measured_share=spent / wall if wall > 0 and source.live else None,
        )


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


def _progress(loop: Loop, clock: BudgetClock, tell: Tell) -> Progress:
    """By time where that is limited, else by units."""
    prepared = loop.prepared

    def known() -> str:
        return largest_loss(loop.folder)

    if prepared.budget:
        points = len(prepared.expansion.points)
        return TimedProgress(clock.spent, prepared.budget, points, tell=tell, known=known)
    left = loop.remaining(unit for group in prepared.groups for unit in group.units)
    seconds = estimated_seconds(prepared.expansion.points, left, prepared.machine, prepared.plan.starts)
    loop.seconds = dict(zip(left, seconds, strict=True))
    doing = "answering" if prepared.machine.virtual else "measuring"
    return Progress(len(left), sum(seconds), doing=doing, tell=tell, known=known)


def finish(folder: RunFolder) -> Results:
    """Seals the samples to Parquet and computes the results; the journal is kept."""
    with Wait("computing the results"):
        seal(folder.parquet_path, folder.entries(), folder.manifest.points, own=True)
        folder.update(finished=now())
        return evaluate(folder)


def traces_of(run: Path) -> Path:
    """Where what was recorded during a run lies: a folder for each start of the probe, from 1."""
    return Path(f"{run}.trace")


def default_out(plan: str) -> Path:
    """runs/PLAN-DATE-TIME below the current folder, with -2, -3, ... behind it where an earlier run began in
    the same second.
    """
    stem = re.sub(r"[^\w.-]+", "-", Path(plan).stem) or "run"
    first = Path("runs") / f"{stem}-{datetime.datetime.now():%Y%m%d-%H%M%S}"
    numbered = (first.with_name(f"{first.name}-{number}") for number in itertools.count(2))
    return next(path for path in itertools.chain([first], numbered) if not os.path.lexists(path))
