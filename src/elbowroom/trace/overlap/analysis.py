"""From events to what overlap hides and what hiding costs (docs/guide/trace-overlap.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from elbowroom.errors import UsageError
from elbowroom.stats.interval import Interval
from elbowroom.stats.overlapped_times import OverlappedTimes
from elbowroom.stats.signed_ranks import CONFIDENCE
from elbowroom.trace.overlap.costs import cost_of, most_of
from elbowroom.trace.overlap.counted import count, sentence
from elbowroom.trace.overlap.document import (
    CommunicationKind,
    ComputationClass,
    Counted,
    LeftOut,
    TraceOverlap,
)
from elbowroom.trace.overlap.events import Events
from elbowroom.trace.overlap.exposure import SideSlices, by_rank, exposure, of_side
from elbowroom.trace.overlap.gaps import with_gaps
from elbowroom.trace.overlap.matching import fewest
from elbowroom.trace.overlap.names import communicates
from elbowroom.trace.overlap.places import find_places, find_steps
from elbowroom.trace.overlap.recognition import (
    COMMUNICATION,
    COMPUTATION,
    WAITING,
    Patterns,
    Recognised,
    recognise,
    steps_of,
)
from elbowroom.trace.overlap.rows import (
    communication_kind,
    communication_rows,
    computation_class,
    computation_rows,
    with_slowdowns,
)
from elbowroom.trace.overlap.slices import slices
from elbowroom.trace.overlap.spans import union
from elbowroom.trace.overlap.verdict import verdict

NS = 1e9
FAMILY = (1 - CONFIDENCE) / 2
"""All intervals of a trace hold together with this probability of an error at most, since any of them may
claim an effect. Half of the usual 5 %, since noise is not quite symmetric (benchmarks/autopsy.py counts).
"""
KNOWN = 0.5
"""A cost that was measured for less than this part of the shared time is not that of hiding."""


def analyse(
    events: Events, files: Sequence[str], patterns: Patterns | None = None, *, between_calls: bool = False
) -> TraceOverlap:
    """The overlap of a trace. `between_calls`: time between two communications of a thread is computation.

    UsageError where the trace has no communication or no computation.
    """
    if not len(events):
        raise UsageError(
            "has no events with a duration", field="trace", value=", ".join(files), hint="record it again"
        )
    recognised = recognise(events, patterns)
    if between_calls:
        events = with_gaps(events, np.isin(recognised.side, (COMMUNICATION, WAITING)))
        recognised = recognise(events, patterns)
    cut = slices(events)
    computing, communicating, waiting = (
        of_side(events, recognised.side, cut, side) for side in (COMPUTATION, COMMUNICATION, WAITING)
    )
    counts = _Counts(*count(events, recognised, cut))
    _check_sides(events, recognised, counts, computing, communicating, files)
    comp = exposure(events, computing, communicating)
    comm = exposure(events, communicating, computing)
    steps = find_steps(events, steps_of(events, patterns))
    comp_rows = computation_rows(events, comp, find_places(events, comp, steps))
    comm_rows = communication_rows(events, comm, find_places(events, comm, steps))
    tested = sum(len(row.comparisons) >= fewest(CONFIDENCE) for row in (*comp_rows, *comm_rows))
    confidence = 1 - FAMILY / max(tested, 1)
    comp_rows, comm_rows = (with_slowdowns(rows, confidence) for rows in (comp_rows, comm_rows))
    times = _times(computing, communicating, waiting)
    cost, share = cost_of(events, comp, comp_rows, by_rank(computing), times.ranks)
    comm_cost, _ = cost_of(events, comm, comm_rows, by_rank(communicating), times.ranks)
    most = most_of(events, comp, by_rank(computing), times.ranks)
    known = _HidingCosts(comp=cost if share >= KNOWN else None, comm=comm_cost, share=share, most=most)
    classes = tuple(computation_class(comp, row, confidence) for row in comp_rows)
    kinds = tuple(communication_kind(comm, row, confidence, len(times.ranks)) for row in comm_rows)
    return _document(events, files, counts, times, known, classes, kinds, steps.count or None)


@dataclass(frozen=True)
class _Counts:
    """What counts as a side, and what does not."""

    counted: tuple[Counted, ...]
    left: tuple[LeftOut, ...]


def _check_sides(
    events: Events,
    recognised: Recognised,
    counts: _Counts,
    computing: SideSlices,
    communicating: SideSlices,
    files: Sequence[str],
) -> None:
    """UsageError where nothing is recognised as one of the sides, or no rank has both."""
    for side, word in ((communicating, "communication"), (computing, "computation")):
        if not len(side.cut.owner):
            calls = ", or count the time between calls: --between-calls" if side is computing else ""
            what = f"has no {word} that is recognised ({len(events)} events{_instead(counts)})"
            if side is communicating and (launched := _launched(events, recognised)):
                what = f"has no {word} that is recognised: {launched}"
            hint = f"name it with --{word} PATTERN{calls}"
            raise UsageError(what, field="trace", value=", ".join(files), hint=hint)
    if not set(computing.rank.tolist()) & set(communicating.rank.tolist()):
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


def _times(computing: SideSlices, communicating: SideSlices, waiting: SideSlices) -> _SideTimes:
    """Waits for messages communicate where the rank does not compute."""
    comp, comm, waits = by_rank(computing), by_rank(communicating), by_rank(waiting)
    ranks = tuple(sorted(set(comp) | set(comm)))
    none = np.zeros(0, dtype=np.int64)
    hidden = span = either = 0
    for rank in ranks:
        sides = [side[rank] for side in (comp, comm, waits) if rank in side]
        every = union(
            np.concatenate([one.start for one in sides]), np.concatenate([one.end for one in sides])
        )
        alone = comp.get(rank, union(none, none))
        hidden += int(alone.covered(comm[rank].start, comm[rank].end).sum()) if rank in comm else 0
        span += int(every.end[-1] - every.start[0])
        either += every.total
    count = len(ranks)
    total = sum(spans.total for spans in comp.values())
    return _SideTimes(
        ranks=ranks,
        span=span / count,
        comp=total / count,
        comm=(either - total + hidden) / count,
        hidden=hidden / count,
    )


@dataclass(frozen=True, kw_only=True)
class _HidingCosts:
    """How much longer each side took beside the other, s; None: not measured. `share`: the part of the shared
    time of computations for which it was; `most`: of computations at most.
    """

    comp: Interval | None
    comm: Interval | None
    share: float
    most: float


def _document(
    events: Events,
    files: Sequence[str],
    counts: _Counts,
    times: _SideTimes,
    costs: _HidingCosts,
    classes: tuple[ComputationClass, ...],
    kinds: tuple[CommunicationKind, ...],
    steps: int | None,
) -> TraceOverlap:
    comp, comm, hidden = times.comp / NS, times.comm / NS, times.hidden / NS
    shares = _shares(comp, comm, hidden, costs)
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
        hidden_share=hidden / comm,
        exposed_s=comm - hidden,
        cost_s=None if costs.comp is None else costs.comp.value,
        cost=costs.comp,
        cost_share=costs.share,
        cost_at_most_s=costs.most,
        comm_cost=costs.comm,
        overlap=None if shares is None else shares.overlap,
        osu_overlap=None if shares is None else shares.osu_overlap,
        fraction_of_ideal=None if shares is None else shares.fraction_of_ideal,
        verdict="",
        classes=tuple(sorted(classes, key=lambda one: -one.shared_s)),
        communications=tuple(sorted(kinds, key=lambda one: -one.total_s)),
        partial=bool(events.doubts),
        notes=_notes(events, costs),
        doubts=events.doubts,
    )
    return msgspec.structs.replace(document, verdict=verdict(document))


def _shares(comp: float, comm: float, hidden: float, costs: _HidingCosts) -> OverlappedTimes | None:
    """The times of both sides alone and of both together; None without a cost."""
    if costs.comp is None:
        return None
    return OverlappedTimes(
        comp=comp - costs.comp.value,
        comm=comm - (costs.comm.value if costs.comm is not None else 0.0),
        together=comp + comm - hidden,
    )


def _notes(events: Events, costs: _HidingCosts) -> tuple[str, ...]:
    notes = list(events.notes)
    if costs.comp is not None and costs.share < 1 - 1e-9:
        notes.append(
            f"the cost is that of {costs.share:.0%} of the hidden time; other classes have no known slowdown"
        )
    if costs.comm is None:
        notes.append("what communication itself loses beside computation is not known, and counts as 0")
    return tuple(notes)
