"""Two traces of a program beside each other: what hiding saves and costs in each."""

from __future__ import annotations

import math

from elbowroom.errors import UsageError
from elbowroom.stats.interval import Interval
from elbowroom.trace.overlap.document import OverlapComparison, SlowdownChange, TraceOverlap
from elbowroom.trace.overlap.verdict import duration, duration_interval


def compare_overlaps(first: TraceOverlap, second: TraceOverlap) -> OverlapComparison:
    """The classes that both traces have a slowdown of, and a verdict. UsageError where they have no class in
    common: they are not of the same program.
    """
    if not {one.name for one in first.classes} & {one.name for one in second.classes}:
        raise UsageError(
            f"has no class of computation of {', '.join(first.files)}",
            field="trace",
            value=", ".join(second.files),
            hint="compare two traces of one program",
        )
    before = {(one.name, one.detail, one.communication): one.slowdown for one in first.classes}
    changes = []
    for one in second.classes:
        earlier = before.get((one.name, one.detail, one.communication))
        if earlier is not None and one.slowdown is not None and one.communication is not None:
            changes.append(
                SlowdownChange(
                    name=one.name,
                    detail=one.detail,
                    communication=one.communication,
                    first=earlier,
                    second=one.slowdown,
                    ratio=_ratio(earlier, one.slowdown),
                )
            )
    per_step = bool(first.steps and second.steps)
    return OverlapComparison(
        per="step" if per_step else "trace",
        first=first,
        second=second,
        classes=tuple(changes),
        cost_change=_cost_change(first, second, per_step=per_step),
        verdict=_verdict(first, second, per_step=per_step),
    )


def _ratio(first: Interval, second: Interval) -> Interval:
    """second / first; the widths of both logarithms are added in squares."""
    value = second.value / first.value
    below = math.hypot(math.log(second.value / second.low), math.log(first.high / first.value))
    above = math.hypot(math.log(second.high / second.value), math.log(first.value / first.low))
    return Interval(value=value, low=value * math.exp(-below), high=value * math.exp(above))


def _cost_change(first: TraceOverlap, second: TraceOverlap, *, per_step: bool) -> Interval | None:
    """The second cost minus the first one, of a step or of the trace; None where one is not known."""
    if first.cost is None or second.cost is None:
        return None
    counts = (first.steps or 1, second.steps or 1) if per_step else (1, 1)
    return _difference(first.cost, counts[0], second.cost, counts[1])


def _verdict(first: TraceOverlap, second: TraceOverlap, *, per_step: bool) -> str:
    counts = (first.steps or 1, second.steps or 1) if per_step else (1, 1)
    step = " a step" if per_step else ""
    hidden = [one.hidden_s / count for one, count in zip((first, second), counts, strict=True)]
    text = f"Hiding saves {duration(hidden[1])}{step} instead of {duration(hidden[0])}"
    difference = _cost_change(first, second, per_step=per_step)
    if difference is None:
        which = "first" if first.cost is None else "second"
        return f"{text}; what it costs cannot be compared: the cost in the {which} trace is not known."
    if difference.low <= 0 <= difference.high:
        return f"{text}; its cost does not change significantly ({duration_interval(difference)})."
    word = "more" if difference.value > 0 else "less"
    ends = sorted((abs(difference.low), abs(difference.high)))
    size = Interval(value=abs(difference.value), low=ends[0], high=ends[1])
    return f"{text}, and costs {duration_interval(size)}{step} {word}."


def _difference(first: Interval, of_first: int, second: Interval, of_second: int) -> Interval:
    """second - first, each divided by its number of steps."""
    value = second.value / of_second - first.value / of_first
    below = math.hypot((second.value - second.low) / of_second, (first.high - first.value) / of_first)
    above = math.hypot((second.high - second.value) / of_second, (first.value - first.low) / of_first)
    return Interval(value=value, low=value - below, high=value + above)
