"""The verdict of an analysis in one sentence."""

from __future__ import annotations

import re

from elbowroom.quantities import short_time, span
from elbowroom.stats.interval import Interval
from elbowroom.trace.overlap.document import TraceOverlap

_NCCL = re.compile(r"^(void )?(nccl|rccl)\w*?Kernel_(?=.)")


def short_name(text: str, letters: int) -> str:
    """A name in so many letters, without the beginning that all kernels of NCCL have."""
    text = _NCCL.sub("", text)
    return text if len(text) <= letters else text[: letters - 1] + "…"


def duration(seconds: float) -> str:
    """Three digits in the unit that reads best: `3.1 ms`."""
    return short_time(seconds, smallest="ns")


def duration_interval(interval: Interval) -> str:
    """`1.2 ms (1 ms to 1.4 ms)`."""
    return f"{duration(interval.value)} ({span(duration(interval.low), duration(interval.high))})"


def verdict(overlap: TraceOverlap) -> str:
    """What hiding saves and costs, or what cannot be said."""
    per = overlap.steps or 1
    step = " a step" if overlap.steps else ""
    hidden = f"{duration(overlap.hidden_s / per)}{step}"
    if overlap.hidden_s == 0:
        exposed = "are exposed" if overlap.hidden_kind == "copies" else "is exposed"
        total = f"{duration(overlap.comm_s / per)}{step} of {overlap.hidden_kind}"
        return f"Nothing is hidden: all {total} {exposed}."
    if overlap.cost is None:
        most = duration(overlap.cost_at_most_s / per)
        return (
            f"Hiding saves at most {hidden}; what it costs cannot be said: {_why(overlap)}. "
            f"The cost is at most {most}{step} if, alone, computation takes as long as the fastest tenth of "
            "its class."
        )
    cost = Interval(value=overlap.cost.value / per, low=overlap.cost.low / per, high=overlap.cost.high / per)
    if not overlap.effect:
        most = f"no cost is found (at most {duration(max(cost.high, 0.0))})"
        return f"Hiding saves {hidden}, and {most}."
    if cost.high <= 0:
        faster = f"computation is faster beside {overlap.hidden_kind} ({duration(cost.value)})"
        return f"Hiding saves {hidden}, and {faster}."
    pays = "Hiding saves" if cost.value < overlap.hidden_s / per else "Hiding does not pay: it saves"
    return f"{pays} {hidden} and costs {duration_interval(cost)}."


def _why(overlap: TraceOverlap) -> str:
    """The reason of the class with most shared time that has no slowdown."""
    unknown = [one for one in overlap.classes if one.slowdown is None and one.overlapped]
    if not unknown:
        return "no class of computation is beside communication"
    return f"{unknown[0].label[:60]}: {unknown[0].reason}"
