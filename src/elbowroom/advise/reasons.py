"""The reasons of an advice, as sentences with numbers."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.advise.advice import Choice
from elbowroom.advise.collectives import FORMS, POLICIES, WAY
from elbowroom.advise.steps import Predicted
from elbowroom.quantities import format_size, number, percent, plural, short_time
from elbowroom.stats.interval import Interval

FULL = 0.97
"""Above this share of the highest bandwidth, more cores hardly help."""

ALIKE = 0.005
"""Ratios that differ by less are called equal."""


def headline(present: Predicted, advised: Predicted, whole: Interval, choices: Sequence[Choice]) -> str:
    """The advice in one sentence."""
    if present.setup == advised.setup:
        might = [choice.back for choice in choices if choice.back is not None]
        best = max(might, key=lambda item: item.high, default=None)
        more = ""
        if best is not None and best.high > 0:
            more = f"; a single change could gain at most {percent(best.high)}"
        return f"No advice: no change gains significantly over {short_time(present.total)} per step{more}."
    names = [choice.axis for choice in choices if choice.now != choice.advised]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return (
        f"Change {listed}: {short_time(advised.total)} instead of {short_time(present.total)} per step, "
        f"{percent(whole.value)} less ({percent(whole.low)} to {percent(whole.high)})."
    )


def reason(axis: str, back: Predicted, advised: Predicted, counted: Sequence[float]) -> str:
    """Why the advised value is better than the present one, with everything else as advised."""
    return f"{instead(axis, advised, back)}: {_because(axis, back, advised, counted)}"


def remark(axis: str, advised: Predicted, other: Predicted, might: Interval) -> str:
    """Why an axis stays."""
    what = instead(axis, other, advised)
    between = f"{percent(might.low)} to {percent(might.high)}"
    if might.high <= 0:
        return f"stays: {what} would cost {percent(-might.value)} ({_differences(other, advised)})"
    if might.excludes_zero:
        return f"{what} would gain {percent(might.value)} ({between})"
    return (
        f"no advice: the intervals overlap; {what} would change the time of a step by "
        f"{percent(-might.value, sign=True)}, and could gain up to {percent(might.high)}"
    )


def instead(axis: str, mine: Predicted, its: Predicted) -> str:
    """`8 instead of 17 computing cores`, and the like for every axis."""
    a, b = _value_text(axis, mine), _value_text(axis, its)
    if axis in _COUNTED:
        one, several = _COUNTED[axis]
        return f"{a} instead of {b} {one if getattr(its.setup, axis) == 1 else several}"
    if axis in _WHERE:
        return f"{_WHERE[axis]} {a} instead of {b}"
    return f"{a} instead of {b}"


_COUNTED = {
    "cores": ("computing core", "computing cores"),
    "cores_other": ("computing core of the second socket", "computing cores of the second socket"),
    "comm_threads": ("communication thread", "communication threads"),
    "processes": ("process a node", "processes a node"),
    "nodes": ("node", "nodes"),
}
_WHERE = {
    "comp_node": "data of computations on node",
    "comp_node_other": "data of the second socket's computations on node",
    "comm_node": "data of communications on node",
    "comm_socket": "communication threads on socket",
    "size": "messages of",
}


def _value_text(axis: str, predicted: Predicted) -> str:
    setup, value = predicted.setup, getattr(predicted.setup, axis)
    if axis == "overlap":
        return "overlap" if value else "no overlap"
    if axis == "form":
        return FORMS[value]
    if axis == "progress":
        return POLICIES[value]
    if axis == "w":
        return f"{predicted.w:.3f} of the work on the accelerators"
    if axis == "size":
        return "the model's message size" if value is None else format_size(value)
    if axis == "comm_socket" and value is None:
        return "the last"
    return str(setup.comp_node if value is None else value)


def _because(axis: str, back: Predicted, advised: Predicted, counted: Sequence[float]) -> str:
    if axis == "overlap":
        return _pace(back, advised)
    if axis == "nodes":
        return _scaled(back, advised)
    if axis in WAY:
        return (
            f"{short_time(advised.collective)} of the collective are exposed in a step instead of "
            f"{short_time(back.collective)}"
        )
    if axis == "w":
        return (
            f"the accelerators take {short_time(advised.t_acc)}, and the cores and the communication "
            f"{short_time(advised.total - advised.separator)}, instead of {short_time(back.t_acc)} and "
            f"{short_time(back.total - back.separator)}"
        )
    parts = []
    if counted:
        fewer = getattr(advised.setup, axis) < getattr(back.setup, axis)
        if fewer and advised.setup.overlap and advised.t_comm > advised.t_comp:
            alone = f"{short_time(advised.t_comm)} and {short_time(advised.t_comp)}, each alone"
            parts.append(f"communication takes longer than computation ({alone})")
        parts.append(_full(counted, getattr(advised.setup, axis)))
    parts.append(_differences(advised, back))
    return "; ".join(part for part in parts if part)


def _scaled(back: Predicted, advised: Predicted) -> str:
    """What each side of a node takes, and the share of the ideal speedup."""
    ideal = advised.setup.nodes / back.setup.nodes
    share = back.total / advised.total / ideal
    return (
        f"a node computes {short_time(advised.t_comp)} instead of {short_time(back.t_comp)} and communicates "
        f"{short_time(advised.t_comm)} instead of {short_time(back.t_comm)}, each alone; {share:.0%} of the "
        "ideal speedup"
    )


def _full(counted: Sequence[float], advised: int) -> str:
    """The number of cores above which computation alone gets hardly faster."""
    most = max(counted)
    enough = next(n for n, value in enumerate(counted, 1) if value >= FULL * most)
    if enough == len(counted):
        if advised == len(counted):
            return f"computation alone gains from every core, up to {rate(most)}"
        return ""
    cores = plural(enough, "core")
    return f"computation alone reaches {rate(counted[enough - 1])} of at most {rate(most)} with {cores}"


def _differences(advised: Predicted, other: Predicted) -> str:
    """The differences: what communication and computation lose together, or their bandwidths alone."""
    parts = []
    if advised.setup.overlap and other.setup.overlap:
        for side, mine, its in (
            ("communication", advised.l_comm, other.l_comm),
            ("computation", advised.l_comp, other.l_comp),
        ):
            if abs(1 / mine - 1 / its) > ALIKE:
                here, there = (percent(1 - 1 / factor, digits=0) for factor in (mine, its))
                parts.append(f"{side} loses {here} instead of {there}")
    for side, k in (("computation", 0), ("communication", 1)):
        mine, its = advised.streams[k], other.streams[k]
        if abs(mine / its - 1) > ALIKE:
            parts.append(f"{side} alone reaches {rate(mine)} instead of {rate(its)}")
    if not parts:
        parts = [f"a step takes {short_time(advised.total)} instead of {short_time(other.total)}"]
    return ", ".join(parts)


def _pace(back: Predicted, advised: Predicted) -> str:
    """Whether both sides together do more than one after the other, and the time of a step."""
    both = advised if advised.setup.overlap else back
    pace = 1 / both.l_comp + 1 / both.l_comm
    together = f"with overlap, both sides do {pace:.2f} times the work that they do without (1/L_M + 1/L_N)"
    freed = (
        both is back
        and advised.setup.cores + advised.setup.cores_other - back.setup.cores - back.setup.cores_other
    )
    but = "but" if pace > 1 else "and"
    more = f", {but} without overlap {plural(freed, 'more core')} can compute" if freed > 0 else ""
    return f"{together}{more}; a step takes {short_time(advised.total)} instead of {short_time(back.total)}"


def rate(value: float) -> str:
    """A bandwidth in MB/s as text; in GB/s from 1000 MB/s on."""
    return f"{number(value / 1e3, 3)} GB/s" if value >= 1e3 else f"{number(value, 3)} MB/s"
