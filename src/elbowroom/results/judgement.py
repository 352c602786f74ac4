"""What intervals say of a claim (docs/design/method.md, rule 12): confirmed where the whole interval agrees
with it, refuted where the whole interval contradicts it, else undecided.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from elbowroom.results.curves import TOLERANCE, affected
from elbowroom.results.result import Kept
from elbowroom.stats.interval import WithInterval, apart

Judgement = Literal["confirmed", "refuted", "undecided", "not tested"]


def above(value: WithInterval | None, limit: float = 0.0) -> Judgement:
    """Whether a value is above a limit; None was not measured."""
    if value is None:
        return "not tested"
    return "confirmed" if value.above(limit) else "refuted" if value.below(limit) else "undecided"


def larger(first: WithInterval | None, second: WithInterval | None) -> Judgement:
    """Whether the first of two values is larger than the second; undecided where their intervals overlap."""
    if first is None or second is None:
        return "not tested"
    return "confirmed" if apart(second, first) else "refuted" if apart(first, second) else "undecided"


def suffers(kept: Kept | None) -> Judgement:
    """Whether a side is affected: it loses more than 5 %. Refuted where even the lower end loses less."""
    if kept is None:
        return "not tested"
    if affected(kept):
        return "confirmed"
    return "refuted" if kept.low is not None and kept.low >= 1 - TOLERANCE else "undecided"


def unanimous(judgements: Collection[Judgement]) -> Judgement:
    """What all judgements agree on; undecided where they do not."""
    if not judgements:
        return "not tested"
    first, *others = set(judgements)
    return "undecided" if others else first
