"""Why, in one sentence with numbers."""

from __future__ import annotations

from collections.abc import Sequence

from elbowroom.advise.advice import Choice
from elbowroom.advise.gains import Predicted, sure
from elbowroom.draw.numbers import number
from elbowroom.model.prediction import Interval
from elbowroom.plan.sizes import format_size

FULL = 0.97
"""From the count of cores on that reaches this share of the most, more cores bring hardly more."""

ALIKE = 0.005
"""Kept shares and times that differ by less are told as equal."""


def headline(present: Predicted, advised: Predicted, whole: Interval, choices: Sequence[Choice]) -> str:
    """What it comes to."""
    if present.setup == advised.setup:
        might = [choice.back for choice in choices if choice.back is not None]
        best = max(might, key=lambda item: item.high, default=None)
        said = ""
        if best is not None and best.high > 0:
            said = f"; the most that one change might gain is {percent(best.high)}"
        return f"No advice: nothing surely gains over {seconds(present.total)} a step{said}."
    names = [choice.axis for choice in choices if choice.now != choice.advised]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return (
        f"Change {listed}: {seconds(advised.total)} instead of {seconds(present.total)} a step, "
        f"{percent(whole.value)} less ({percent(whole.low)} to {percent(whole.high)})."
    )


def reason(axis: str, back: Predicted, advised: Predicted, counted: Sequence[float]) -> str:
    """Why the advised value is better than the one it replaces, the rest being as advised."""
    return f"{instead(axis, advised, back)}: {_because(axis, back, advised, counted)}"


def remark(axis: str, advised: Predicted, other: Predicted, might: Interval) -> str:
    """Why an axis stays."""
    what = instead(axis, other, advised)
    between = f"{percent(might.low)} to {percent(might.high)}"
    if might.high <= 0:
        return f"stays: {what} would cost {percent(-might.value)} ({_differences(other, advised)})"
    if sure(might):
        return f"{what} would gain {percent(might.value)} ({between})"
    return (
        f"no advice: the intervals overlap; {what} would change the step's time by "
        f"{percent(-might.value, sign=True)}, and might gain up to {percent(might.high)}"
    )


def instead(axis: str, mine: Predicted, its: Predicted) -> str:
    """`8 instead of 17 computing cores`, and the like for every axis."""
    a, b = _said(axis, mine), _said(axis, its)
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
}
_WHERE = {
    "comp_node": "data of computations on node",
    "comp_node_other": "data of the second socket's computations on node",
    "comm_node": "data of communications on node",
    "comm_socket": "communication threads on socket",
    "size": "messages of",
}


def _said(axis: str, found: Predicted) -> str:
    setup, value = found.setup, getattr(found.setup, axis)
    if axis == "overlap":
        return "overlapping" if value else "one after the other"
    if axis == "w":
        return f"{found.w:.3f} of the work on the accelerators"
    if axis == "size":
        return "the model's size" if value is None else format_size(value)
    if axis == "comm_socket" and value is None:
        return "the last one"
    return str(setup.comp_node if value is None else value)


def _because(axis: str, back: Predicted, advised: Predicted, counted: Sequence[float]) -> str:
    if axis == "overlap":
        return _pace(back, advised)
    if axis == "w":
        return (
            f"the accelerators take {seconds(advised.t_acc)} and the cores with the communication "
            f"{seconds(advised.total - advised.separator)}, where it was {seconds(back.t_acc)} and "
            f"{seconds(back.total - back.separator)}"
        )
    parts = []
    if counted:
        fewer = getattr(advised.setup, axis) < getattr(back.setup, axis)
        if fewer and advised.setup.overlap and advised.t_comm > advised.t_comp:
            alone = f"{seconds(advised.t_comm)} against {seconds(advised.t_comp)} alone"
            parts.append(f"communication lasts longer ({alone})")
        parts.append(_full(counted, getattr(advised.setup, axis)))
    parts.append(_differences(advised, back))
    return "; ".join(part for part in parts if part)


def _full(counted: Sequence[float], advised: int) -> str:
    """From which count of cores on the computation alone gets hardly more."""
    most = max(counted)
    enough = next(n for n, value in enumerate(counted, 1) if value >= FULL * most)
    if enough == len(counted):
        if advised == len(counted):
            return f"every core adds to the computation, up to {rate(most)}"
        return ""
    cores = f"{enough} core{'s' if enough > 1 else ''}"
    return f"the computation alone has {rate(counted[enough - 1])} of at most {rate(most)} with {cores}"


def _differences(advised: Predicted, other: Predicted) -> str:
    """What differs: what communication and computation keep together, or what they get alone."""
    parts = []
    if advised.setup.overlap and other.setup.overlap:
        for side, mine, its in (
            ("communication", advised.l_comm, other.l_comm),
            ("computation", advised.l_comp, other.l_comp),
        ):
            if abs(1 / mine - 1 / its) > ALIKE:
                parts.append(f"{side} keeps {1 / mine:.2f} instead of {1 / its:.2f}")
    for side, k in (("computation", 0), ("communication", 1)):
        mine, its = advised.streams[k], other.streams[k]
        if abs(mine / its - 1) > ALIKE:
            parts.append(f"{side} alone gets {rate(mine)} instead of {rate(its)}")
    if not parts:
        parts = [f"the step takes {seconds(advised.total)} instead of {seconds(other.total)}"]
    return ", ".join(parts)


def _pace(back: Predicted, advised: Predicted) -> str:
    """Whether both together do more than in turn, and what the step takes."""
    both = advised if advised.setup.overlap else back
    pace = 1 / both.l_comp + 1 / both.l_comm
    together = f"together both do {pace:.2f} times the work that they do in turn (1/L_M + 1/L_N)"
    freed = (
        both is back
        and advised.setup.cores + advised.setup.cores_other - back.setup.cores - back.setup.cores_other
    )
    but = "but" if pace > 1 else "and"
    more = f", {but} in turn {freed} more core{'s' if freed > 1 else ''} can compute" if freed > 0 else ""
    return f"{together}{more}; the step takes {seconds(advised.total)} instead of {seconds(back.total)}"


def percent(value: float, *, sign: bool = False) -> str:
    """A share as `12.3 %`."""
    text = f"{100 * value:{'+' if sign else ''}.1f}"
    return f"{'0.0' if float(text) == 0 else text} %"


def seconds(value: float) -> str:
    """A time in the unit that suits it."""
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "us")):
        if value * factor >= 1 or unit == "us":
            return f"{number(value * factor, 3)} {unit}"
    raise AssertionError


def rate(value: float) -> str:
    """MB/s as GB/s from a thousand on."""
    return f"{number(value / 1e3, 3)} GB/s" if value >= 1e3 else f"{number(value, 3)} MB/s"
