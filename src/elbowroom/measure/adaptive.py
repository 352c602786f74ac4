"""A run that chooses its points while it measures: few runs first, then the one that teaches most.

Its folder is a run like any other; the points of the manifest grow with each choice, before it is measured.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import decode
from elbowroom.heartbeat import Wait
from elbowroom.measure.budgets import BudgetClock, UntilEnd
from elbowroom.measure.campaign import (
    Loop,
    default_out,
    finish,
    new_run,
    source_to_resume,
)
from elbowroom.measure.manifest import Tell, locked, note_resumed, restore_frequencies
from elbowroom.measure.prepare import drop_unmeasurable, groups, load_plan, prepare, schedule
from elbowroom.measure.prepared import Prepared, Request
from elbowroom.measure.results import Results, point_results
from elbowroom.measure.source import Source, Where, choose
from elbowroom.models import next_run as choosing
from elbowroom.models.curves import Curves, Situation
from elbowroom.models.document import Document
from elbowroom.models.flow import fit as flow_fit
from elbowroom.models.flow.part import FlowPart
from elbowroom.models.run_data import Layout, collect, layout_of, situation
from elbowroom.plan.order import blocks, estimate, order_units
from elbowroom.points.point import Point
from elbowroom.progress import Progress
from elbowroom.quantities import percent
from elbowroom.signals import stopped_by_signals
from elbowroom.store.folder import RunFolder, refuse_existing

NAME = "calibrate"

Reason = Literal["narrow", "budget", "complete", "nothing"]
"""Why it ended: intervals narrow enough, budget used, every run measured, or nothing usable measured."""


class Goal(msgspec.Struct, frozen=True, kw_only=True):
    """When to stop: after `budget` runs, or as soon as nine of ten predictions have a 90 % interval of at
    most that relative half-width, and had before the last run, or when no further run fits into `seconds`
    (0: no limit).
    """

    budget: int = 24
    half_width: float = 0.03
    seconds: float = 0.0


class AdaptiveStep(msgspec.Struct, frozen=True, kw_only=True):
    """A run that was measured. `width`: the relative half-width that nine of ten predictions stay below,
    known before this run; None for those of the start.
    """

    situation: Situation
    width: float | None = None


class AdaptiveResult(msgspec.Struct, frozen=True, kw_only=True):
    """How it went. `runs` of the `full_runs` of a full sweep were measured; `seconds` and `full_seconds` are
    what both take on a real machine, about; `width` as in AdaptiveStep, at the end (None without a model).
    """

    goal: Goal
    reason: Reason
    steps: tuple[AdaptiveStep, ...]
    width: float | None
    runs: int
    full_runs: int
    seconds: float
    full_seconds: float


def start(
    request: Request, goal: Goal, tell: Tell, source: Source | None = None
) -> tuple[RunFolder, Results, AdaptiveResult]:
    """Calibrates into a new run folder; nothing is written when the request cannot be met."""
    _check(goal)
    out = Path(request.out) if request.out else default_out(NAME)
    refuse_existing(out)
    plan, request = load_plan(request, tell)
    source = source or choose(request.where)
    restore_frequencies(source, tell)
    whole = prepare(request, plan, source)
    whole = msgspec.structs.replace(whole, plan=msgspec.structs.replace(plan, name=NAME))
    candidates = _candidates(whole, layout_of(whole.machine))
    chosen = [
        candidates[at]
        for at in choosing.first(layout_of(whole.machine).shape, tuple(candidates), goal.budget)
    ]
    with new_run(out, request, whole, source, tell, chosen) as loop:
        return _AdaptiveRounds(loop, goal).run(tell)


def resume(
    path: Path,
    goal: Goal,
    tell: Tell,
    *,
    where: Where | None = None,
    patience: float | None = None,
    source: Source | None = None,
) -> tuple[RunFolder, Results, AdaptiveResult]:
    """Goes on with a calibration that was stopped, or with one whose intervals shall be narrower."""
    _check(goal)
    with locked(path) as (folder, journal):
        manifest, plan = folder.manifest, decode(folder.manifest.plan)
        if plan.name != NAME:
            raise UsageError(
                f"is a run of the plan {plan.name}, not a calibration",
                field="resume",
                value=str(path),
                hint=f"fit it as it is: elbowroom fit {path}",
            )
        source = source_to_resume(folder, where, source, tell)
        expansion = drop_unmeasurable(experiments.expand(plan, manifest.machine), plan, source)
        whole = schedule(plan, manifest.machine, expansion, source, manifest.reverse)
        with contextlib.closing(Loop(folder, journal, source, whole, patience)) as loop:
            note_resumed(folder, loop.program_for(whole.groups[0]).hello)
            return _AdaptiveRounds(loop, goal).run(tell)


def _check(goal: Goal) -> None:
    if goal.budget < 1:
        raise UsageError("is not a number of points", field="points", value=goal.budget, hint="at least 1")
    if not 0 < goal.half_width < 1:
        raise UsageError(
            "is not a relative half-width", field="half_width", value=goal.half_width, hint="0.03 is 3 %"
        )


def _candidates(whole: Prepared, places: Layout) -> dict[Situation, Point]:
    """The points that may be chosen, by where they stand for models; one benchmark at a time."""
    candidates: dict[Situation, Point] = {}
    for point in whole.expansion.points:
        if point.role != "point":
            continue
        if point.metric != "bandwidth" or point.kernel == "none":
            raise UsageError(
                "has points without bandwidths of both sides",
                field="plan",
                value=point.id,
                hint="use plan model",
            )
        at = situation(point, point.comp_cores, places)
        if at in candidates:
            raise UsageError(
                f"has several points for one placement and count: {candidates[at].id} and {point.id}",
                field="plan",
                value=whole.plan.name,
                hint="calibrate one kernel and one message size at a time",
            )
        candidates[at] = point
    return candidates


@dataclass
class _AdaptiveRounds:
    """Rounds: measure, fit, look how wide the intervals are, choose. One program stays up in all of them:
    starting MPI takes longer than measuring a repetition.
    """

    loop: Loop
    goal: Goal

    def __post_init__(self) -> None:
        self.folder, self.whole = self.loop.folder, self.loop.prepared
        self._layout = layout_of(self.whole.machine)
        self._candidates = _candidates(self.whole, self._layout)
        self._points = {point.id: point for point in self.whole.expansion.points}
        self._widths: dict[str, float | None] = {}
        self._clock = BudgetClock()
        self._clock.limit(self.goal.seconds)

    def run(self, tell: Tell) -> tuple[RunFolder, Results, AdaptiveResult]:
        """Measures until the goal is reached, then controls and closing baselines; seals and judges."""
        with stopped_by_signals(self.folder.path, "elbowroom calibrate --resume"):
            with self.loop.part(), self._progress(tell) as bar:
                reason, width = self._choose_and_measure(bar)
                self._measure(bar, self._controls(), closing=True)
            results = finish(self.folder)
        return self.folder, results, self._summary(reason, width)

    def _progress(self, tell: Tell) -> Progress:
        """Of at most as many repetitions as the budget allows, closing baselines included."""
        plan, machine = self.whole.plan, self.whole.machine
        most = list(self._candidates.values())[: self.goal.budget]
        units = (plan.repetitions + 1) * (len(most) + len(self._controls()))
        seconds = 0.0 if machine.virtual else estimate(most, order_units(most, plan.repetitions, plan.seed))
        doing = "answering at most" if machine.virtual else "measuring at most"
        return Progress(units, seconds or None, doing=doing, tell=tell, known=self._known)

    def _known(self) -> str:
        """How precise the model is so far."""
        known = [width for width in self._widths.values() if width is not None]
        if not known:
            return ""
        wanted = percent(self.goal.half_width, digits=0)
        return f"predictions within {percent(known[-1], digits=0)} so far, wanted {wanted}"

    def _controls(self) -> list[Point]:
        return [point for point in self.whole.expansion.points if point.role != "point"]

    def _choose_and_measure(self, bar: Progress) -> tuple[Reason, float | None]:
        """Rounds of measuring and choosing; why they ended, and how wide the intervals are then.

        Narrow enough counts when it was so before the last run too: ending at the first look that says so
        would end at the looks that are wrong.
        """
        is_narrow = False
        chosen = [point for point in self.folder.manifest.points if point.role == "point"]
        while True:
            self._measure(bar, chosen)
            measured = self._chosen()
            curves = self._curves()
            fitted = self._fitted(curves)
            width = (
                None
                if fitted is None
                else choosing.width(self._layout.shape, fitted, tuple(self._candidates))
            )
            if len(measured) == len(self._candidates):
                return "complete", width
            if len(measured) >= self.goal.budget or self._is_late(self._clock.spent(), len(measured)):
                return "budget", width
            if curves is None:
                return "nothing", None
            was_narrow, is_narrow = is_narrow, width is not None and width <= self.goal.half_width
            if was_narrow and is_narrow:
                return "narrow", width
            at = choosing.next_run(curves.shape, fitted, tuple(self._candidates), measured)
            chosen = [self._candidates[at]]
            self._widths[chosen[0].id] = width

    def _is_late(self, spent: float, runs: int) -> bool:
        """Whether another run, and the closing baselines and controls, would exceed the time limit."""
        return 0 < self.goal.seconds < spent * (runs + 1 + len(self._controls())) / runs

    def _measure(self, bar: Progress, points: Sequence[Point], *, closing: bool = False) -> None:
        """Measures what these points still lack; with `closing` also what comes at the end of all of them."""
        plan = self.whole.plan
        known = self.folder.manifest.points
        added = tuple(point for point in points if point not in known)
        if added:
            self.folder.update(points=(*known, *added))
        chosen = self.folder.manifest.points if closing else tuple(points)
        units = order_units(chosen, plan.repetitions, plan.seed, self.folder.manifest.reverse)
        units = tuple(unit for unit in units if closing or not unit.closing)
        for block in blocks(self.loop.remaining(units), plan.repetitions, plan.starts):
            if plan.starts > 1:
                self.loop.close()
            for group in groups(block, self._points, self.whole.machine):
                self.loop.run(group, UntilEnd(group.units, self._clock), bar)

    def _chosen(self) -> list[Situation]:
        points = {point.id for point in self.folder.manifest.points}
        return [at for at, point in self._candidates.items() if point.id in points]

    def _fitted(self, curves: Curves | None) -> FlowPart | None:
        """FLOW on what was measured so far; None where that is too little for it."""
        if curves is None:
            return None
        try:
            with Wait("choosing the next point"):
                return flow_fit.fit(curves, seed=self.folder.manifest.seed)
        except UsageError:
            return None

    def _curves(self) -> Curves | None:
        """What was measured so far; None where nothing usable was."""
        results, _ = point_results(self.folder.manifest, self.folder.entries())
        cores = {point.id: point.comp_cores for point in self.folder.manifest.points}
        try:
            return collect(results, cores, self.whole.machine, origin=str(self.folder.path)).curves
        except UsageError:
            return None

    def _summary(self, reason: Reason, width: float | None) -> AdaptiveResult:
        plan = self.whole.plan
        by_id = {point.id: at for at, point in self._candidates.items()}
        measured = self.folder.manifest.points
        whole = self.whole.expansion.points
        steps = [
            AdaptiveStep(situation=by_id[point.id], width=self._widths.get(point.id))
            for point in measured
            if point.id in by_id
        ]
        return AdaptiveResult(
            goal=self.goal,
            reason=reason,
            steps=tuple(steps),
            width=width,
            runs=len(steps),
            full_runs=len(self._candidates),
            seconds=estimate(measured, order_units(measured, plan.repetitions, plan.seed)),
            full_seconds=estimate(whole, order_units(whole, plan.repetitions, plan.seed)),
        )


class CalibrationDocument(AdaptiveResult, frozen=True, kw_only=True):
    """What `calibrate --json` prints: how it went, the files, and the model in `file`."""

    schema: str = "elbowroom/calibrate"
    version: int = 1
    run: str
    file: str | None
    saved: str
    unknown: tuple[str, ...]
    trusted: bool
    virtual: bool
    model: Document | None
