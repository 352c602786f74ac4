"""What intervals say of a claim (docs/design/method.md, rule 12): confirmed where the whole interval agrees
with it, refuted where the whole interval contradicts it, else undecided.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from elbowroom.results.curves import TOLERANCE, affected
from elbowroom.stats.interval import Interval, Kept, Summary, WithInterval, apart

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


def near(value: WithInterval | None, limit: float) -> Judgement:
    """Whether a relative change is smaller than a limit in either direction."""
    if value is None or value.bounds is None:
        return "undecided"
    low, high = value.bounds
    if low > limit or high < -limit:
        return "refuted"
    return "confirmed" if -limit < low and high < limit else "undecided"


def change(new: Summary, old: Summary) -> Interval | None:
    """new / old - 1, with the widest interval of both; None where one of them has none."""
    ends, others = new.bounds, old.bounds
    if ends is None or others is None or min(ends[0], others[0]) <= 0:
        return None
    return Interval(
        value=new.median / old.median - 1, low=ends[0] / others[1] - 1, high=ends[1] / others[0] - 1
    )


def in_all(judgements: Collection[Judgement]) -> Judgement:
    """Of a statement about every case: refuted where one is, confirmed where all are, else undecided."""
    if not judgements:
        return "not tested"
    if "refuted" in judgements:
        return "refuted"
    return "confirmed" if set(judgements) == {"confirmed"} else "undecided"


def in_some(judgements: Collection[Judgement]) -> Judgement:
    """Of a statement about at least one case: confirmed where one is, refuted where all are."""
    if not judgements:
        return "not tested"
    if "confirmed" in judgements:
        return "confirmed"
    return "refuted" if set(judgements) == {"refuted"} else "undecided"


def unanimous(judgements: Collection[Judgement]) -> Judgement:
    """What all judgements agree on; undecided where they do not."""
    if not judgements:
        return "not tested"
    first, *others = set(judgements)
    return "undecided" if others else first
