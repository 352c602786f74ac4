"""Two runs against each other: per point and metric, how much changed, for the better or not, and whether
surely.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from elbowroom.stats.result import Kept, PointResult, Summary


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One value of one point in runs a and b; `step` is a whole step, solution or product.

    `change` is b/a - 1 with its 95 % interval; `better`: which run has more of a rate or less of a duration,
    `same` where the interval holds 0; `metric`: what was measured, with its unit.
    """

    point: str
    metric: str
    side: Literal["comp", "comm", "step"]
    phase: Literal["alone", "together", "kept"]
    a: float
    b: float
    change: float
    low: float
    high: float
    better: Literal["a", "b", "same"]
    significant: bool
    higher_is_better: bool = True


def compare(a: Sequence[PointResult], b: Sequence[PointResult]) -> list[Change]:
    """Changes of all points that both runs have, in a's order. Points of one run only are left out.

    The interval of a ratio comes from the two intervals, taken as independent and normal in the logarithm.
    """
    others = {result.id: result for result in b}
    return [change for result in a if result.id in others for change in _changes(result, others[result.id])]


def agreement(changes: Sequence[Change]) -> float | None:
    """Share of the changes that are not significant: how well a repeated run agrees; None without changes."""
    return sum(not change.significant for change in changes) / len(changes) if changes else None


def _changes(a: PointResult, b: PointResult) -> Iterator[Change]:
    for side, left, right in (("comp", a.comp, b.comp), ("comm", a.comm, b.comm)):
        for phase in ("alone", "together"):
            first, second = getattr(left, phase), getattr(right, phase)
            if first is not None and second is not None and first.unit == second.unit:
                yield from _change(
                    a.id, side, phase, _metric(a, side, first.unit), first, second, first.unit != "us"
                )
        if left.kept is not None and right.kept is not None:
            yield from _change(a.id, side, "kept", "kept", left.kept, right.kept, True)
    if a.application is not None and a.steps is not None and b.steps is not None:
        phase = "together" if a.application.variant == "overlap" else "alone"
        yield from _change(a.id, "step", phase, "step (us)", a.steps.total, b.steps.total, False)
    if a.program is not None and a.steps is not None and b.steps is not None:
        yield from _change(a.id, "step", "together", "time (us)", a.steps.total, b.steps.total, False)


def _metric(result: PointResult, side: str, unit: str) -> str:
    name = result.metric if side == "comm" else ("memory bandwidth" if unit == "MB/s" else "rate")
    return f"{name} ({unit})"


def _change(
    point: str, side: str, phase: str, metric: str, a: Summary | Kept, b: Summary | Kept, higher: bool
) -> Iterator[Change]:
    first, second = _middle(a), _middle(b)
    if min(first, second, a.low, b.low) <= 0:
        return
    ratio = math.log(second / first)
    below = math.hypot(math.log(second / b.low), math.log(a.high / first))
    above = math.hypot(math.log(b.high / second), math.log(first / a.low))
    low, high = math.expm1(ratio - below), math.expm1(ratio + above)
    significant = low > 0 or high < 0
    better = "same" if not significant else ("b" if (ratio > 0) == higher else "a")
    yield Change(
        point=point,
        metric=metric,
        side=side,  # type: ignore[arg-type]
        phase=phase,  # type: ignore[arg-type]
        a=first,
        b=second,
        change=math.expm1(ratio),
        low=low,
        high=high,
        better=better,  # type: ignore[arg-type]
        significant=significant,
        higher_is_better=higher,
    )


def _middle(value: Summary | Kept) -> float:
    return value.value if isinstance(value, Kept) else value.median
