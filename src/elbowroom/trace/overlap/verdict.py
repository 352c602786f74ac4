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
    """Three sentences: what hiding saves and costs, why that is known or not, and what to do next."""
    return " ".join((_cost(overlap), *_why(overlap)))


def _cost(overlap: TraceOverlap) -> str:
    per = overlap.steps or 1
    step = " a step" if overlap.steps else ""
    hidden = f"{duration(overlap.hidden_s / per)}{step}"
    if overlap.estimate.grade == "nothing hidden":
        exposed = "are exposed" if overlap.hidden_kind == "copies" else "is exposed"
        total = f"{duration(overlap.comm_s / per)}{step} of {overlap.hidden_kind}"
        return f"Nothing is hidden: all {total} {exposed}."
    if overlap.cost is None:
        confounded = "the comparison is confounded, since " * (overlap.estimate.grade == "confounded")
        return (
            f"Hiding saves at most {hidden}; what it costs cannot be said: {confounded}{_unknown(overlap)}."
        )
    cost = Interval(value=overlap.cost.value / per, low=overlap.cost.low / per, high=overlap.cost.high / per)
    if not overlap.effect:
        return f"Hiding saves {hidden}, and no cost is found (at most {duration(max(cost.high, 0.0))})."
    pays = "Hiding saves" if cost.value < overlap.hidden_s / per else "Hiding does not pay: it saves"
    return f"{pays} {hidden} and costs {duration_interval(cost)}."


def _why(overlap: TraceOverlap) -> tuple[str, ...]:
    """The reason, and the next step."""
    answer = overlap.estimate
    if answer.grade == "nothing hidden":
        return ()
    if answer.slowdown is not None:
        beside = "copies" if overlap.hidden_kind == "copies" else "communication"
        slowdown = answer.slowdown
        ends = span(f"{slowdown.low:.3g}", f"{slowdown.high:.3g}")
        kind = _kind(overlap)
        return (
            f"At the same places of the steps, computation takes {slowdown.value:.3g} times as long beside "
            f"{beside} as alone ({ends}).",
            *((f"Look first at {kind}.",) if overlap.effect else ("More steps make the interval narrower.",)),
        )
    per = overlap.steps or 1
    most = f"{duration(overlap.cost_at_most_s / per)}{' a step' if overlap.steps else ''}"
    bound = (
        f"The cost is at most {most} if, alone, computation takes as long as the fastest tenth of its class."
    )
    if answer.grade == "confounded":
        return bound, "Compare with a profile in which communication does not overlap, or is delayed."
    return bound, "Profile three steps or more, or give the files of all ranks."


def _unknown(overlap: TraceOverlap) -> str:
    """The reason, and the class with most shared time where it is that of a class."""
    covered = [one for one in overlap.classes if one.overlapped]
    if overlap.estimate.grade == "confounded" or not covered:
        return overlap.estimate.reason
    return f"{covered[0].label[:60]}: {overlap.estimate.reason}"


def _kind(overlap: TraceOverlap) -> str:
    """The class that loses most."""
    lost = [
        (one.shared_s * (1 - 1 / one.slowdown.value), one)
        for one in overlap.classes
        if one.slowdown is not None and one.communication is not None
    ]
    one = max(lost, key=lambda pair: pair[0])[1]
    return f"{short_name(one.name, 60)} beside {short_name(one.communication or '', 40)}, which loses most"
