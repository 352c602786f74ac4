"""Traces with more events than are analysed at once: they stay on disk, and are analysed part by part.

Times, operations and the bound are those of all parts. Slowdowns, which need instances beside each other, are
those of one part of many whole steps; their cost counts for the hidden time of all parts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import IO, TypeVar

import msgspec

from elbowroom.stats.interval import Interval
from elbowroom.trace.overlap.analysis import ELSEWHERE, Sides, shares, sides_of
from elbowroom.trace.overlap.counted import sentence
from elbowroom.trace.overlap.document import (
    CommunicationKind,
    ComputationClass,
    Counted,
    LeftOut,
    TraceOverlap,
)
from elbowroom.trace.overlap.formats import joined
from elbowroom.trace.overlap.raw_events import CutEvents, RawFile, borders, timetable
from elbowroom.trace.overlap.recognition import Patterns
from elbowroom.trace.overlap.settings import gain
from elbowroom.trace.overlap.tables import STEPS
from elbowroom.trace.overlap.verdict import verdict

_C = TypeVar("_C", bound=Counted)

MOST = 9 << 17
"""Events that are analysed at once, of all files: below 300 MB of memory (benchmarks/trace_reading.py)."""


FEWER, STEPS_OF_PART = MOST // 6, 256
"""Events of a part, if it has so many steps: more make its intervals hardly narrower, but take longer."""


def is_long(files: Sequence[RawFile]) -> bool:
    """Whether the files have more events than are analysed at once."""
    return sum(len(one.raw) for one in files) > MOST


def analyse_long(
    files: Sequence[RawFile],
    titles: Sequence[str],
    store: Callable[[], IO[bytes]],
    patterns: Patterns,
    *,
    between_calls: bool = False,
) -> TraceOverlap:
    """The overlap of a long trace, whose files have these titles. `store` opens a file for events on disk,
    one for each file of the trace.

    UsageError as `analyse`.
    """
    steps = [*patterns.compiled()["step"], STEPS]
    are_steps = [one.are_steps(steps) for one in files]
    tables = [timetable(one.raw, chosen) for one, chosen in zip(files, are_steps, strict=True)]
    total = sum(len(one.raw) for one in files)
    enough = min(-(-total // FEWER), min(len(one.steps) for one in tables) // STEPS_OF_PART)
    count = max(-(-total // MOST), enough)
    cut = [CutEvents(one.raw, at, store()) for one, at in zip(files, borders(tables, count), strict=True)]

    def sides(part: int) -> Sides:
        events = [
            one.events(events.part(part), chosen)
            for one, events, chosen in zip(files, cut, are_steps, strict=True)
        ]
        return sides_of(joined(events, titles), titles, patterns, between_calls=between_calls)

    documents: dict[int, TraceOverlap] = {}
    # The part to compare hides communication, or else has both sides; it is the nearest to the middle.
    compared: tuple[TraceOverlap, int] | None = None
    worth = 0
    middle = (count - 1) / 2
    for part in sorted(range(count), key=lambda at: abs(at - middle)):
        known = sides(part)
        documents[part] = known.document(titles, compared=False)
        if worth < (worth_here := known.comparable + bool(documents[part].hidden_s)):
            compared, worth = (known.document(titles, compared=True), part), worth_here
        del known  # before the next part takes as much memory
    if compared is None:  # which is an error
        compared = sides(int(middle)).document(titles, compared=True), int(middle)
    return combined([documents[part] for part in range(count)], *compared)


def combined(documents: Sequence[TraceOverlap], compared: TraceOverlap, chosen: int) -> TraceOverlap:
    """The whole trace of its parts; `compared` is the part `chosen` with its slowdowns."""
    ranks = max(one.ranks for one in documents)

    def mean(field: str) -> float:
        return sum(float(getattr(one, field)) * one.ranks for one in documents) / ranks

    comp, comm, hidden = mean("comp_s"), mean("comm_s"), mean("hidden_s")
    scale = hidden / compared.hidden_s if compared.hidden_s else 1.0  # of the means over ranks
    cost = _times(compared.cost, scale)
    comm_cost = _times(compared.comm_cost, scale)
    known = None if cost is None else shares(comp, comm, hidden, cost, comm_cost)
    most = mean("cost_at_most_s")
    counted, left = _counted(one.counted for one in documents), _left_out(documents)
    steps = sum(one.steps or 0 for one in documents) or None
    events = sum(one.events for one in documents)
    of_steps = f" ({compared.steps:,} of {steps:,} steps)" if compared.steps and steps else ""
    note = (
        f"the {events:,} events were analysed in {len(documents)} parts; slowdowns and their cost are those "
        f"of part {chosen + 1}{of_steps}, and count for the hidden time of all"
    )
    answer = msgspec.structs.replace(compared.estimate, cost=cost, at_most_s=most)
    document = msgspec.structs.replace(
        compared,
        events=events,
        ranks=ranks,
        steps=steps,
        counts=sentence(counted, left),
        counted=counted,
        left_out=left,
        span_s=mean("span_s"),
        comp_s=comp,
        comm_s=comm,
        together_s=comp + comm - hidden,
        hidden_s=hidden,
        hidden_share=hidden / comm if comm else 0.0,
        exposed_s=comm - hidden,
        estimate=answer,
        settings=tuple(
            msgspec.structs.replace(one, why=one.why.replace(gain(compared.estimate), gain(answer)))
            for one in compared.settings
        ),
        cost_s=None if cost is None else cost.value,
        cost=cost,
        cost_at_most_s=most,
        skew_s=None if compared.skew_s is None else compared.skew_s * comm / compared.comm_s,
        comm_cost=comm_cost,
        overlap=None if known is None else known.overlap,
        osu_overlap=None if known is None else known.osu_overlap,
        fraction_of_ideal=None if known is None else known.fraction_of_ideal,
        classes=_classes(documents, compared),
        communications=_communications(documents, compared, ranks),
        partial=any(one.partial for one in documents),
        notes=tuple(dict.fromkeys((note, *(text for one in (compared, *documents) for text in one.notes)))),
        doubts=tuple(dict.fromkeys(text for one in documents for text in one.doubts)),
    )
    return msgspec.structs.replace(document, verdict=verdict(document))


def _times(interval: Interval | None, scale: float) -> Interval | None:
    if interval is None:
        return None
    return Interval(value=interval.value * scale, low=interval.low * scale, high=interval.high * scale)


def _counted(parts: Iterable[Sequence[Counted]]) -> tuple[Counted, ...]:
    sums: dict[str, Counted] = {}
    for one in (one for part in parts for one in part):
        before = sums.get(one.kind)
        sums[one.kind] = one if before is None else _both(before, one)
    return tuple(sums.values())


def _left_out(documents: Sequence[TraceOverlap]) -> tuple[LeftOut, ...]:
    """The names are those of the part with most time of the kind."""
    sums: dict[str, LeftOut] = {}
    most: dict[str, float] = {}
    for one in (one for document in documents for one in document.left_out):
        before = sums.get(one.kind)
        names = one.names if one.seconds >= most.get(one.kind, 0.0) or before is None else before.names
        most[one.kind] = max(one.seconds, most.get(one.kind, 0.0))
        both = one if before is None else _both(before, one)
        sums[one.kind] = msgspec.structs.replace(both, names=names)
    return tuple(sums.values())


def _both(first: _C, second: _C) -> _C:
    return msgspec.structs.replace(
        first, operations=first.operations + second.operations, seconds=first.seconds + second.seconds
    )


def _classes(documents: Sequence[TraceOverlap], compared: TraceOverlap) -> tuple[ComputationClass, ...]:
    """All rows, with the instances of all parts and the slowdowns of the one that was compared."""
    alone: dict[tuple[str, str], int] = {}
    rows: dict[tuple[str, str, str | None], ComputationClass] = {}
    for document in documents:
        for (name, detail), count in {(one.name, one.detail): one.alone for one in document.classes}.items():
            alone[name, detail] = alone.get((name, detail), 0) + count
        for one in document.classes:
            key = one.name, one.detail, one.communication
            before = rows.get(key)
            rows[key] = one if before is None else msgspec.structs.replace(
                before, overlapped=before.overlapped + one.overlapped, shared_s=before.shared_s + one.shared_s
            )  # fmt: skip
    known = {(one.name, one.detail, one.communication): one for one in compared.classes}
    beside = {key[:2] for key in rows if key[2] is not None}
    result = []
    for key, row in rows.items():
        if key[2] is None and key[:2] in beside:
            continue
        other = known.get(key)
        result.append(
            msgspec.structs.replace(
                row,
                alone=alone[key[:2]],
                comparisons=0 if other is None else other.comparisons,
                slowdown=None if other is None else other.slowdown,
                reason=ELSEWHERE if other is None else other.reason,
                median_s=row.median_s if other is None else other.median_s,
            )
        )
    return tuple(sorted(result, key=lambda one: -one.shared_s))


def _communications(
    documents: Sequence[TraceOverlap], compared: TraceOverlap, ranks: int
) -> tuple[CommunicationKind, ...]:
    """All kinds, with the instances and times of all parts."""
    known = {one.name: one for one in compared.communications}
    rows: dict[str, CommunicationKind] = {}
    for document in documents:
        share = document.ranks / ranks
        for one in document.communications:
            before = rows.get(one.name)
            add = {"alone": one.alone, "overlapped": one.overlapped, "shared_s": one.shared_s,
                   "total_s": one.total_s * share, "hidden_s": one.hidden_s * share}  # fmt: skip
            if before is not None:
                add = {name: value + getattr(before, name) for name, value in add.items()}
            other = known.get(one.name)
            rows[one.name] = msgspec.structs.replace(
                one,
                **add,
                comparisons=0 if other is None else other.comparisons,
                slowdown=None if other is None else other.slowdown,
                reason=ELSEWHERE if other is None else other.reason,
            )
    return tuple(sorted(rows.values(), key=lambda one: -one.total_s))
