"""The table of an analysis: classes of computation beside kinds of communication, and the reverse."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elbowroom.quantities import plural
from elbowroom.stats.interval import Interval
from elbowroom.stats.signed_ranks import FEWEST
from elbowroom.trace.overlap.document import CommunicationKind, ComputationClass, Matched
from elbowroom.trace.overlap.events import NONE, Events, Flags, Ints, Small
from elbowroom.trace.overlap.exposure import Exposure
from elbowroom.trace.overlap.matching import (
    NOTHING,
    Comparisons,
    Instances,
    compare,
    compare_short,
    fewest,
)
from elbowroom.trace.overlap.places import Places

NS = 1e9
ANY = -2
"""Any kind of the other side."""
NO_STEPS = "the trace names no steps, and only instances at the same place of a step can be compared"
NO_PLACE = (
    "at each place of the step, it is either always or never beside the other side, or shares too little"
)
LEAST_SHARE = 0.01
"""Classes with less than this part of the shared time of all are counted, but not compared."""


@dataclass(frozen=True, kw_only=True)
class ClassRow:
    """A class beside a kind of the other side (`other`; NONE: beside none): `all` of its instances, those
    `alone`, those `overlapped` by this kind, what was compared, or why nothing was, and the slowdown.
    """

    name: str
    detail: str = ""
    other: int
    all: Ints
    alone: Ints
    overlapped: Ints
    comparisons: Comparisons = NOTHING
    slowdown: Interval | None = None
    reason: str = ""


def with_slowdowns(rows: Sequence[ClassRow], confidence: float) -> list[ClassRow]:
    """The rows with the slowdown of what was compared."""
    return [dataclasses.replace(row, slowdown=row.comparisons.slowdown(confidence)) for row in rows]


def computation_rows(events: Events, exposure: Exposure, places: Places) -> list[ClassRow]:
    """A row for each class and each kind of communication beside it; one of NONE for a class beside none."""
    rows = []
    least = LEAST_SHARE * float(exposure.shared.sum())
    for number, members in _groups(events.kind[exposure.event]):
        kind = events.classes[number]
        alone = members[exposure.shared[members] == 0]
        beside = sorted(set(exposure.main[members].tolist()) - {NONE}) or [NONE]
        for other in beside:
            overlapped = members[(exposure.main[members] == other) & (exposure.shared[members] > 0)]
            compared, reason = _compared(events, exposure, places, members, other, least)
            rows.append(
                ClassRow(
                    name=kind.name,
                    detail=kind.detail,
                    other=other,
                    all=members,
                    alone=alone,
                    overlapped=overlapped,
                    comparisons=compared,
                    reason=reason if len(overlapped) else "no communication is active beside it",
                )
            )
    return rows


def communication_rows(events: Events, exposure: Exposure, places: Places) -> list[ClassRow]:
    """A row for each name of a communication, beside any computation."""
    rows = []
    names: dict[str, int] = {}
    of_class = np.array([names.setdefault(kind.name, len(names)) for kind in events.classes], dtype=np.int64)
    texts = list(names)
    least = LEAST_SHARE * float(exposure.shared.sum())
    for number, members in _groups(of_class[events.kind[exposure.event]]):
        shared = exposure.shared[members]
        compared, reason = _compared(events, exposure, places, members, ANY, least)
        rows.append(
            ClassRow(
                name=texts[number],
                other=0,
                all=members,
                alone=members[shared == 0],
                overlapped=members[shared > 0],
                comparisons=compared,
                reason=reason,
            )
        )
    return rows


def _groups(label: Small | Ints) -> list[tuple[int, Ints]]:
    """Each label with its members, which keep their order."""
    order = np.argsort(label, kind="stable")
    ordered = label[order]
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    return [(int(label[part[0]]), part) for part in np.split(order, cuts) if len(part)]


def _compared(
    events: Events, exposure: Exposure, places: Places, members: Ints, other: int, least: float
) -> tuple[Comparisons, str]:
    """The comparisons of a class beside a kind of the other side, or why there are none."""
    state, main = exposure.at_start[members], exposure.main[members]
    shared = float(exposure.shared[members[_is(main, other)]].sum())
    if other == NONE or shared == 0:
        return NOTHING, "it is never beside the other side"
    if shared < least:
        return NOTHING, f"it has less than {LEAST_SHARE:.0%} of the shared time"
    beside = _is(state, other)
    if not (state == NONE).any():
        return NOTHING, "it never begins alone"
    placed = places.place[members] != NONE
    if not placed.any():
        return NOTHING, NO_STEPS if not places.steps else "it has no fixed places in the steps"
    chosen = (beside | (state == NONE)) & placed
    compared = compare(_instances(events, exposure, places, members[chosen], beside[chosen]))
    if len(compared) < FEWEST:
        chosen = (_is(main, other) | (exposure.shared[members] == 0)) & placed
        short = compare_short(_instances(events, exposure, places, members[chosen], beside[chosen]))
        compared = short if len(short) > len(compared) else compared
    if not len(compared):
        return NOTHING, NO_PLACE
    return compared, ""


def _is(kind: Small, other: int) -> Flags:
    matches: Flags = kind != NONE if other == ANY else kind == other
    return matches


def _instances(events: Events, exposure: Exposure, places: Places, chosen: Ints, beside: Flags) -> Instances:
    return Instances(
        place=places.place[chosen],
        cell=places.cell[chosen],
        lane=events.lane[exposure.event[chosen]],
        own=exposure.own[chosen].astype(float),
        shared=exposure.shared[chosen].astype(float),
        beside=beside,
    )


def _matched(exposure: Exposure, row: ClassRow, confidence: float) -> dict[str, object]:
    slowdown = row.slowdown
    count = len(row.comparisons)
    reason = row.reason
    if slowdown is None and not reason:
        reason = f"{plural(count, 'comparison')}, but an interval needs {fewest(confidence)}"
    return {
        "alone": len(row.alone),
        "overlapped": len(row.overlapped),
        "shared_s": float(exposure.shared[row.overlapped].sum()) / NS,
        "comparisons": count,
        "slowdown": slowdown,
        "reason": "" if slowdown is not None else reason,
    }


def computation_class(exposure: Exposure, row: ClassRow, confidence: float) -> ComputationClass:
    """A row of computation as it is shown."""
    base = Matched(**_matched(exposure, row, confidence))  # type: ignore[arg-type]
    return ComputationClass(
        **{name: getattr(base, name) for name in Matched.__struct_fields__},
        name=row.name,
        detail=row.detail,
        communication=None if row.other == NONE else exposure.kinds[row.other],
        median_s=float(np.median(exposure.own[row.alone])) / NS if len(row.alone) else None,
    )


def communication_kind(exposure: Exposure, row: ClassRow, confidence: float, ranks: int) -> CommunicationKind:
    """A row of communication as it is shown."""
    base = Matched(**_matched(exposure, row, confidence))  # type: ignore[arg-type]
    return CommunicationKind(
        **{name: getattr(base, name) for name in Matched.__struct_fields__},
        name=row.name,
        total_s=float(exposure.own[row.all].sum()) / NS / ranks,
        hidden_s=float(exposure.shared[row.all].sum()) / NS / ranks,
    )
