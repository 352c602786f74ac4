"""From events to what overlap hides and what hiding costs (docs/guide/trace-overlap.md)."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import msgspec
import numpy as np

from elbowroom.errors import UsageError
from elbowroom.stats.interval import Interval
from elbowroom.stats.overlapped_times import OverlappedTimes
from elbowroom.trace.overlap.costs import Cost, cost_of, most_of
from elbowroom.trace.overlap.counted import count, sentence
from elbowroom.trace.overlap.document import (
    CommunicationKind,
    CommunicationOperation,
    ComputationClass,
    Counted,
    Estimate,
    LeftOut,
    TraceOverlap,
)
from elbowroom.trace.overlap.estimate import SlowdownEffect, estimate
from elbowroom.trace.overlap.events import NONE, Events, Flags, Ints
from elbowroom.trace.overlap.exposure import Exposure, SideSlices, exposure, hidden_times, of_side
from elbowroom.trace.overlap.gaps import with_gaps
from elbowroom.trace.overlap.instances import Instances, distinct, instances_of
from elbowroom.trace.overlap.median_step import median_step_of
from elbowroom.trace.overlap.names import communicates
from elbowroom.trace.overlap.operations import operations_of
from elbowroom.trace.overlap.places import Places, find_places, find_steps
from elbowroom.trace.overlap.recognition import (
    COMMUNICATION,
    COMPUTATION,
    WAITING,
    Patterns,
    Recognised,
    recognise,
    steps_of,
)
from elbowroom.trace.overlap.repetition import repeated_steps
from elbowroom.trace.overlap.rows import Slowdowns, communication_kinds, computation_classes
from elbowroom.trace.overlap.settings import channels_of, settings_of
from elbowroom.trace.overlap.skew import skew_of
from elbowroom.trace.overlap.slices import slices
from elbowroom.trace.overlap.spans import Spans, union
from elbowroom.trace.overlap.verdict import verdict

NS = 1e9
REPEATED = "the trace names no steps: {} repetitions of the same computations count as steps"
TOO_WIDE = "the interval of its slowdown, {:.2f} to {:.2f}, is too wide to be of use"
WIDEST = 1.35
"""The upper end of an interval that holds 1 over its lower end, at most."""
COPIES = "{} steps have exactly the durations of others: they are copies, and count once"
WINDOW = 8
"""Steps that are compared with each other where communication covers whole steps or none of a step."""
NO_STEPS = (
    "the trace names no steps and repeats none, and only instances at the same place of a step can be "
    "compared"
)
ALWAYS = "it never begins alone"
NO_PLACE = (
    "at each place of the step, it is either always or never beside the other side, or shares too little"
)
CONFOUNDED = {
    "near": "what runs near communication, but not beside it, takes longer as well",
    "faster": "computation would be faster beside communication than alone",
    "placebo": "communication that is moved elsewhere in the step seems to have an effect as well",
}
ELSEWHERE = "it does not occur in the part of the trace that was compared"
TOO_FEW = "its comparisons are too few for an interval"


def analyse(
    events: Events,
    files: Sequence[str],
    patterns: Patterns | None = None,
    *,
    between_calls: bool = False,
) -> TraceOverlap:
    """The overlap of a trace. `between_calls`: time between two communications of a thread is computation.

    UsageError where the trace has no communication or no computation.
    """
    return sides_of(events, files, patterns, between_calls=between_calls).document(files, compared=True)


@dataclass(frozen=True, kw_only=True)
class Sides:
    """What computes and what communicates in a trace, or in a part of a long one, and when both do. `steps`:
    the events that are steps.
    """

    events: Events
    recognised: Recognised
    steps: Flags
    counts: _Counts
    computing: SideSlices
    communicating: SideSlices
    comp: Exposure
    comm: Exposure
    times: _SideTimes

    @property
    def comparable(self) -> bool:
        """Whether some rank both computes and communicates."""
        return not self.computing.parts.keys().isdisjoint(self.communicating.parts)

    def document(self, files: Sequence[str], *, compared: bool) -> TraceOverlap:
        """The answer; not `compared`: times and the bound only, also of a part that has one side only.
        UsageError where what is to be compared lacks a side.
        """
        events, comp, comm, times = self.events, self.comp, self.comm, self.times
        computing, communicating = self.computing.active, self.communicating.active
        if compared and not self.comparable:
            _refuse(events, self.recognised, self.counts, self.computing, self.communicating, files)
        steps = find_steps(events, self.steps)
        if not steps.count and compared:
            steps = repeated_steps(events, comp)
            if steps.count:
                events = dataclasses.replace(events, notes=(*events.notes, REPEATED.format(steps.count)))
        places, comm_places = (find_places(events, one, steps) for one in (comp, comm))
        own = np.arange(len(events.classes))
        effect_of = _compared if compared else _not_compared
        operations = operations_of(comp.kinds, channels_of(events, comm))
        comp_effect, cost = _measured(
            events, comp, own, times, computing,
            effect_of(events, comp, places, own, communicating, steps.count, operations),
        )  # fmt: skip
        if comp_effect.copies:
            events = dataclasses.replace(events, notes=(*events.notes, COPIES.format(comp_effect.copies)))
        most = most_of(events, comp, places.place, computing, times.ranks)
        names = _numbers_of_names(events)
        any_kind = dataclasses.replace(comm, main=np.where(comm.main == NONE, NONE, 0))
        comm_effect, comm_cost = _measured(
            events, any_kind, names, times, communicating,
            effect_of(events, any_kind, comm_places, names, computing, steps.count),
        )  # fmt: skip
        known = _HidingCosts(
            comp=cost,
            comm=None if comm_cost is None else comm_cost.cost,
            most=most,
            skew=skew_of(events, self.recognised, comm, comm_places),
        )
        classes = computation_classes(events, comp, comp_effect, operations)
        kinds = communication_kinds(events, comm, names, comm_effect, len(times.ranks))
        answer = _answer(events, comp_effect, known, times, operations)
        counted = steps.count or None
        document = _document(events, files, self.counts, times, known, answer, classes, kinds, counted)
        return msgspec.structs.replace(
            document,
            settings=settings_of(events, comm, answer),
            median_step=median_step_of(events, comp, places, computing, communicating),
        )


def sides_of(
    events: Events, files: Sequence[str], patterns: Patterns | None = None, *, between_calls: bool = False
) -> Sides:
    """The sides of a trace. UsageError where it has no events with a duration."""
    if not len(events):
        why = f" ({events.doubts[0]})" if events.doubts else ""
        raise UsageError(
            f"has no events with a duration{why}",
            field="trace",
            value=", ".join(files),
            hint="record it again",
        )
    recognised = recognise(events, patterns)
    if between_calls:
        events = with_gaps(events, np.isin(recognised.side, (COMMUNICATION, WAITING)))
        recognised = recognise(events, patterns)
    cut = slices(events)
    computing, communicating, waiting = (
        of_side(events, recognised.side, cut, side) for side in (COMPUTATION, COMMUNICATION, WAITING)
    )
    hidden = hidden_times(computing, communicating)
    return Sides(
        events=events,
        recognised=recognised,
        steps=steps_of(events, patterns) & events.counts,
        counts=_Counts(*count(events, recognised, cut)),
        computing=computing,
        communicating=communicating,
        comp=exposure(events, computing, communicating, hidden),
        comm=exposure(events, communicating, computing, hidden),
        times=_times(computing, communicating, waiting, hidden),
    )


def _numbers_of_names(events: Events) -> Ints:
    """Of each class of events: the first class with its name."""
    first: dict[str, int] = {}
    return np.array([first.setdefault(one.name, at) for at, one in enumerate(events.classes)], dtype=np.int64)


def _compared(
    events: Events,
    exposure: Exposure,
    places: Places,
    kernel: Ints,
    active: Mapping[int, Spans],
    steps: int,
    operations: Sequence[CommunicationOperation] = (),
) -> Slowdowns:
    """The slowdowns of a side beside the other one (`active`), or the reason why there are none.
    `operations`: of each kind of the other side; kinds of one operation are one group.
    """
    groups = np.array([operations.index(one) for one in operations], dtype=np.int64) if operations else None
    table, copies = distinct(instances_of(events, exposure, places, kernel))
    tick = float(np.gcd.reduce(exposure.own)) if len(exposure.own) else 1.0
    effect = estimate(table, active, tick=tick, groups=groups)
    if (effect is None or not effect.bounded) and steps >= 2 * WINDOW:
        wide = dataclasses.replace(table, step=np.where(table.step == NONE, NONE, table.step // WINDOW))
        effect = estimate(wide, active, tick=tick, groups=groups)
    if effect is None or not effect.bounded:
        effect = _impossible(table, active, tick)
    if effect is not None and effect.confounder:
        names = ", ".join(events.classes[one].name[:40] for one in effect.worst)
        reason = f"{CONFOUNDED[effect.confounder]} (most of all {names})"
        return Slowdowns(effect=effect, reason=reason, copies=copies)
    if effect is not None and effect.bounded:
        return Slowdowns(effect=effect, reason="", copies=copies)
    return Slowdowns(effect=None, reason=_reason(table, steps - copies if steps else 0), copies=copies)


def _measured(
    events: Events,
    exposure: Exposure,
    kernel: Ints,
    times: _SideTimes,
    active: Mapping[int, Spans],
    slowdowns: Slowdowns,
) -> tuple[Slowdowns, Cost | None]:
    """The slowdowns with what they cost; without any where the interval is of no use: it neither shows that
    hiding costs or gains anything, nor do its ends differ by less than WIDEST.
    """
    if slowdowns.reason or slowdowns.effect is None:
        return slowdowns, None
    cost = cost_of(events, exposure, kernel, slowdowns.effect, active, times.ranks)
    low, high = cost.slowdown.low, cost.slowdown.high
    if not low <= 1 <= high or high / low <= WIDEST:
        return slowdowns, cost
    return dataclasses.replace(slowdowns, effect=None, reason=TOO_WIDE.format(low, high)), None


def _not_compared(*_: object) -> Slowdowns:
    return Slowdowns(effect=None, reason=ELSEWHERE)


def _impossible(table: Instances, active: Mapping[int, Spans], tick: float) -> SlowdownEffect | None:
    """The effect with all places of a class as one, where it says that communication makes computation
    faster: then places differ by themselves. Otherwise None: that they are alike would be an assumption.
    """
    step = np.maximum(table.step, 0)
    effect = estimate(dataclasses.replace(table, step=step, place=table.kernel), active, tick=tick)
    return effect if effect is not None and effect.confounder == "faster" else None


def _reason(table: Instances, steps: int) -> str:
    """Why nothing can be compared."""
    covered = np.unique(table.kernel[table.shared > 0])
    if not len(covered):
        return "it is never beside the other side"
    if not (~table.at_begin[np.isin(table.kernel, covered)]).any():
        return ALWAYS
    if not steps:
        return NO_STEPS
    both = table.only(table.place != NONE)
    count, at_begin = np.bincount(both.place), np.bincount(both.place, both.at_begin)
    return TOO_FEW if ((at_begin > 0) & (at_begin < count)).any() else NO_PLACE


def _answer(
    events: Events,
    slowdowns: Slowdowns,
    costs: _HidingCosts,
    times: _SideTimes,
    operations: Sequence[CommunicationOperation],
) -> Estimate:
    """The grade, and what is measured or bounded."""
    if not times.hidden:
        return Estimate(grade="nothing hidden", at_most_s=0.0)
    effect = slowdowns.effect
    if costs.comp is None or effect is None:
        confounded = effect is not None
        return Estimate(
            grade="confounded" if confounded else "bounded",
            at_most_s=costs.most,
            reason=slowdowns.reason,
            confounded_by=tuple(events.classes[one].name for one in effect.worst) if effect else (),
        )
    return Estimate(
        grade="measured",
        slowdown=costs.comp.slowdown,
        cost=costs.comp.cost,
        at_most_s=costs.most,
        instrument=effect.instrument,
        beside=slowdowns.beside(operations),
    )


@dataclass(frozen=True)
class _Counts:
    """What counts as a side, and what does not."""

    counted: tuple[Counted, ...]
    left: tuple[LeftOut, ...]


def _refuse(
    events: Events,
    recognised: Recognised,
    counts: _Counts,
    computing: SideSlices,
    communicating: SideSlices,
    files: Sequence[str],
) -> NoReturn:
    """UsageError for sides that do not compare: nothing is recognised as one of them, or no rank has both."""
    for side, word in ((communicating, "communication"), (computing, "computation")):
        if not len(side.cut.owner):
            calls = ", or count the time between calls: --between-calls" if side is computing else ""
            what = f"has no {word} that is recognised ({len(events)} events{_instead(counts)})"
            if side is communicating and (launched := _launched(events, recognised)):
                what = f"has no {word} that is recognised: {launched}"
            hint = f"name it with --{word} PATTERN{calls}"
            if side is computing and all(lane.device for lane in events.lanes):
                hint = "give the trace of a profiler of kernels, of the same run"
            raise UsageError(what, field="trace", value=", ".join(files), hint=hint)
    raise UsageError(
        "has no rank that both computes and communicates",
        field="trace",
        value=", ".join(files),
        hint="name all files of a rank, or record both",
    )


def _instead(counts: _Counts) -> str:
    """What the events are that were recognised as something else."""
    parts = [f"{one.operations} of kind {one.kind}" for one in counts.counted]
    parts += [f"{one.operations} of kind {one.kind}, such as {_some(one.names)}" for one in counts.left]
    return "".join(f"; {part}" for part in parts)


def _launched(events: Events, recognised: Recognised) -> str:
    """Where the host launches communication, but no device was recorded."""
    named = np.array([communicates(one.name) for one in events.classes], dtype=bool)[events.kind]
    there = named & (recognised.of_kind("launch") | recognised.of_kind("annotation"))
    if not there.any():
        return ""
    names = [events.classes[number].name for number in np.unique(events.kind[there]).tolist()]
    return (
        f"the host launches it ({int(there.sum())} events: {_some(names)}), but the device that carries it "
        "out was not recorded"
    )


def _some(names: Sequence[str]) -> str:
    return ", ".join(repr(name[:40]) for name in list(dict.fromkeys(names))[:3])


@dataclass(frozen=True, kw_only=True)
class _SideTimes:
    """Means over ranks, ns, and the ranks."""

    ranks: tuple[int, ...]
    span: float
    comp: float
    comm: float
    hidden: float


def _times(
    computing: SideSlices, communicating: SideSlices, waiting: SideSlices, hidden_of: Mapping[int, int]
) -> _SideTimes:
    """Waits for messages communicate where the rank does not compute. `hidden_of`: each rank that has both
    sides, ns.
    """
    comp, comm, waits = computing.active, communicating.active, waiting.active
    ranks = tuple(sorted(set(comp) | set(comm)))
    hidden = span = either = 0
    for rank in ranks:
        sides = [side[rank] for side in (comp, comm, waits) if rank in side]
        both = hidden_of.get(rank, 0)
        hidden += both
        span += int(max(one.end[-1] for one in sides) - min(one.start[0] for one in sides))
        either += sum(one.total for one in sides) - both if rank not in waits else _total(sides)
    count = max(len(ranks), 1)
    total = sum(spans.total for spans in comp.values())
    return _SideTimes(
        ranks=ranks,
        span=span / count,
        comp=total / count,
        comm=(either - total + hidden) / count,
        hidden=hidden / count,
    )


def _total(sides: Sequence[Spans]) -> int:
    """How long any is active, ns."""
    return union(
        np.concatenate([one.start for one in sides]), np.concatenate([one.end for one in sides])
    ).total


@dataclass(frozen=True, kw_only=True)
class _HidingCosts:
    """How much longer each side took beside the other; None: not measured. `most`: computations at most, s;
    `skew`: how long a rank waits in collectives for the last one, s.
    """

    comp: Cost | None
    comm: Interval | None
    most: float
    skew: float | None


def _document(
    events: Events,
    files: Sequence[str],
    counts: _Counts,
    times: _SideTimes,
    costs: _HidingCosts,
    answer: Estimate,
    classes: tuple[ComputationClass, ...],
    kinds: tuple[CommunicationKind, ...],
    steps: int | None,
) -> TraceOverlap:
    comp, comm, hidden = times.comp / NS, times.comm / NS, times.hidden / NS
    cost = None if costs.comp is None else costs.comp.cost
    known = None if cost is None else shares(comp, comm, hidden, cost, costs.comm)
    document = TraceOverlap(
        files=tuple(files),
        format=events.format,
        events=len(events),
        ranks=len(times.ranks),
        steps=steps,
        counts=sentence(counts.counted, counts.left),
        counted=counts.counted,
        left_out=counts.left,
        span_s=times.span / NS,
        comp_s=comp,
        comm_s=comm,
        together_s=comp + comm - hidden,
        hidden_s=hidden,
        hidden_share=hidden / comm if comm else 0.0,
        exposed_s=comm - hidden,
        estimate=answer,
        cost_s=None if answer.cost is None else answer.cost.value,
        cost=answer.cost,
        cost_share=0.0 if costs.comp is None else costs.comp.share,
        cost_at_most_s=costs.most,
        skew_s=costs.skew,
        comm_cost=costs.comm,
        overlap=None if known is None else known.overlap,
        osu_overlap=None if known is None else known.osu_overlap,
        fraction_of_ideal=None if known is None else known.fraction_of_ideal,
        verdict="",
        classes=classes,
        communications=kinds,
        partial=bool(events.doubts),
        notes=_notes(events, costs),
        doubts=events.doubts,
    )
    return msgspec.structs.replace(document, verdict=verdict(document))


def shares(
    comp: float, comm: float, hidden: float, cost: Interval, comm_cost: Interval | None
) -> OverlappedTimes:
    """The times of both sides alone and of both together, s."""
    return OverlappedTimes(
        comp=comp - cost.value,
        comm=comm - (comm_cost.value if comm_cost is not None else 0.0),
        together=comp + comm - hidden,
    )


def _notes(events: Events, costs: _HidingCosts) -> tuple[str, ...]:
    notes = list(events.notes)
    if costs.comp is not None and costs.comp.share < 1 - 1e-9:
        notes.append(
            f"classes with {costs.comp.share:.0%} of the hidden time were compared themselves; the others "
            "count with the slowdown of all"
        )
    if costs.comm is None:
        notes.append("what communication itself loses beside computation is not known, and counts as 0")
    return tuple(notes)
