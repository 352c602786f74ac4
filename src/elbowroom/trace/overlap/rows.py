"""The table of an analysis: classes of computation beside kinds of communication, and the reverse."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from elbowroom.stats.interval import Interval
from elbowroom.trace.overlap.document import (
    BesideOperation,
    CommunicationKind,
    CommunicationOperation,
    ComputationClass,
    Matched,
)
from elbowroom.trace.overlap.estimate import SlowdownEffect
from elbowroom.trace.overlap.events import NONE, Events, Ints
from elbowroom.trace.overlap.exposure import Exposure
from elbowroom.trace.overlap.pooling import RowEffect

NS = 1e9
FAMILY = 0.025
"""All intervals of a table hold together but for this probability, since any of them may claim an effect."""


@dataclass(frozen=True, kw_only=True)
class Slowdowns:
    """The slowdown of each class beside each kind, or the `reason` why there is none. `copies`: steps that
    are copies of others, and were not counted.
    """

    effect: SlowdownEffect | None
    reason: str
    copies: int = 0

    @cached_property
    def rows(self) -> dict[tuple[int, int], RowEffect]:
        """The rows by class and kind."""
        return {} if self.effect is None else {(one.kernel, one.other): one for one in self.effect.rows}

    @cached_property
    def errors(self) -> float:
        """Standard errors on either side of an interval, since all of them are to hold together."""
        tests = sum(one.contrasts > 0 for one in self.rows.values())
        return float(ndtri(1 - FAMILY / 2 / max(tests, 1)))

    def matched(
        self, exposure: Exposure, members: Ints, alone: Ints, overlapped: Ints, key: tuple[int, int]
    ) -> Matched:
        """What is known of one row."""
        row = self.rows.get(key)
        slowdown = (
            None
            if self.reason or row is None or self.effect is None
            else self._interval(row, self.effect.value)
        )
        reason = self.reason or "no instance has its place in another step or on another rank"
        return Matched(
            alone=len(alone),
            overlapped=len(overlapped),
            shared_s=float(exposure.shared[overlapped].sum()) / NS,
            comparisons=0 if row is None else int(row.contrasts),
            slowdown=slowdown,
            reason="" if slowdown is not None else reason,
        )

    def beside(self, operations: Sequence[CommunicationOperation]) -> tuple[BesideOperation, ...]:
        """The slowdown beside each operation that was compared. `operations`: by number of a group."""
        groups = () if self.effect is None else self.effect.groups
        return tuple(
            BesideOperation(
                operation=operations[one.other].name,
                channels=operations[one.other].channels,
                comparisons=int(one.contrasts),
                slowdown=self._interval(one, 0.0),
            )
            for one in groups
            if one.contrasts > 0
        )

    def _interval(self, row: RowEffect, more: float) -> Interval:
        """With its part of the error of all; the logarithm larger by `more`."""
        far = self.errors * row.error
        log = row.log + more
        value, low, high = (math.exp(min(log + part, 100.0)) for part in (0, -far, far))
        return Interval(value=value, low=low, high=high)


def computation_classes(
    events: Events, exposure: Exposure, slowdowns: Slowdowns, operations: Sequence[CommunicationOperation]
) -> tuple[ComputationClass, ...]:
    """A row for each class and each kind of communication beside it; one without a kind for a class beside
    none. Most shared time first. `operations`: of each kind.
    """
    rows = []
    for number, members in _groups(events.kind[exposure.event].astype(np.int64)):
        kind = events.classes[number]
        alone = members[exposure.shared[members] == 0]
        for other in sorted(set(exposure.main[members].tolist()) - {NONE}) or [NONE]:
            overlapped = members[(exposure.main[members] == other) & (exposure.shared[members] > 0)]
            base = slowdowns.matched(exposure, members, alone, overlapped, (number, other))
            if not len(overlapped):
                base = Matched(
                    alone=len(alone),
                    overlapped=0,
                    shared_s=0.0,
                    reason="no communication is active beside it",
                )
            rows.append(
                ComputationClass(
                    **{name: getattr(base, name) for name in Matched.__struct_fields__},
                    name=kind.name,
                    detail=kind.detail,
                    communication=None if other == NONE else exposure.kinds[other],
                    operation=None if other == NONE else operations[other].name,
                    channels=None if other == NONE else operations[other].channels,
                    median_s=float(np.median(exposure.own[alone])) / NS if len(alone) else None,
                )
            )
    return tuple(sorted(rows, key=lambda one: -one.shared_s))


def communication_kinds(
    events: Events, exposure: Exposure, names: Ints, slowdowns: Slowdowns, ranks: int
) -> tuple[CommunicationKind, ...]:
    """A row for each name of a communication, beside any computation; most time first. `names`: the number of
    each class's name.
    """
    rows = []
    for number, members in _groups(names[events.kind[exposure.event]]):
        shared = exposure.shared[members]
        base = slowdowns.matched(exposure, members, members[shared == 0], members[shared > 0], (number, 0))
        rows.append(
            CommunicationKind(
                **{name: getattr(base, name) for name in Matched.__struct_fields__},
                name=events.classes[int(events.kind[exposure.event[members[0]]])].name,
                total_s=float(exposure.own[members].sum()) / NS / ranks,
                hidden_s=float(shared.sum()) / NS / ranks,
            )
        )
    return tuple(sorted(rows, key=lambda one: -one.total_s))


def _groups(label: Ints) -> list[tuple[int, Ints]]:
    """Each label with its members, which keep their order."""
    order = np.argsort(label, kind="stable")
    ordered = label[order]
    cuts = np.flatnonzero(ordered[1:] != ordered[:-1]) + 1
    return [(int(label[part[0]]), part) for part in np.split(order, cuts) if len(part)]
