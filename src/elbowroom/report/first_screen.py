"""The first screen of a run's report: the answer, one number for each side, one plot, the reason, and what to
type next.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.quantities import format_size, percent, plural
from elbowroom.results.family import SideName, main_point
from elbowroom.results.grades import loss_of, loss_text
from elbowroom.results.result import LostShare, PointResult, Verdict
from elbowroom.stats.interval import Kept

NAMES: dict[SideName, str] = {"comm": "Communication", "comp": "Computation"}
ALIKE = (
    "kernel", "role", "comp_node", "comm_node", "comm_core", "pattern", "cursor", "processes", "reuse",
    "core_khz", "uncore_khz", "turbo", "governor", "workload",
)  # fmt: skip
"""What the points of one curve share, besides the axis that they are drawn over."""


def kept_of(result: PointResult, name: SideName) -> Kept | None:
    """What a side of the point kept."""
    return (result.comm if name == "comm" else result.comp).kept


def shown_point(results: Sequence[PointResult], verdict: Verdict) -> PointResult | None:
    """The point that the grade rests on, or else what the plan is about first; None if no point has both
    states.
    """
    graded = next((item for item in results if item.id == verdict.point), None)
    if graded is not None:
        return graded
    return main_point([item for item in results if item.role != "control"]) or main_point(results)


def numbers(point: PointResult) -> list[dict[str, str]]:
    """For each side that was measured: its name, what it loses, and the interval."""
    shown = []
    for name, title in NAMES.items():
        kept = kept_of(point, name)
        if kept is not None:
            loss = loss_of(kept)
            shown.append({"side": name, "name": title, "loss": _change(loss), "span": _span(loss)})
    return shown


def headline(verdict: Verdict) -> str:
    """The answer in one line, from the grade; empty where the grade rests on no side's loss."""
    losses = {name: loss for name in NAMES if (loss := getattr(verdict, name)) is not None}
    if not losses:
        return ""
    if verdict.grade in ("yes", "likely"):
        certain = {name: loss for name, loss in losses.items() if loss.excludes_zero and loss.loss > 0}
        if not certain:
            return ""
        parts = [
            f"{NAMES[name].lower()} loses {percent(loss.loss, digits=0)}" for name, loss in certain.items()
        ]
        return f"{verdict.grade.capitalize()}: {', '.join(parts)}."
    highs = [loss.high for loss in losses.values()]
    bound = None if None in highs else percent(max([0.0, *filter(None, highs)]), digits=0)
    if verdict.grade == "no" and bound is not None:
        return f"No: neither side loses more than {bound}."
    if verdict.grade == "at most" and bound is not None:
        return f"Neither side loses more than {bound}."
    if verdict.visible is None:
        return "Cannot say: too little was measured."
    return f"Cannot say: a loss of {percent(verdict.visible, digits=0)} or more would have been seen."


def _change(loss: LostShare) -> str:
    """`loses 31 %`, `gains 3 %`."""
    text = loss_text(loss).partition(" (")[0]
    return f"gains {text.lstrip('-−')}" if text.startswith(("-", "−")) else f"loses {text}"


def _span(loss: LostShare) -> str:
    """The interval, `24 to 38 %`, and whether it allows no loss at all."""
    span = loss_text(loss).partition(" (")[2].removesuffix(")")
    if loss.bounds is None:
        return span
    if not loss.excludes_zero:
        return f"not certain: {span}"
    return span if loss.loss > 0 else f"as a loss: {span}"


def where(point: PointResult) -> str:
    """What ran together, in a few words."""
    words = [point.workload.title or f"{point.kernel} on {plural(point.n, 'core')}"]
    if point.size:
        words.append(f"messages of {format_size(point.size)}")
    return ", ".join(words)


def loss_figure(results: Sequence[PointResult], point: PointResult) -> Figure:
    """What both sides lose over the number of cores or the message size, whichever was varied more around the
    point; two bars where neither was.
    """
    known = [item for item in results if _is_known(item)]
    sweeps: tuple[tuple[Axis, str, Callable[[PointResult], float]], ...] = (
        (Axis(label="Computing cores", whole=True), "size", lambda item: float(item.n)),
        (Axis(label="Message size", scale="log2", bytes=True), "n", lambda item: float(item.size)),
    )
    best: tuple[Axis, list[PointResult], Callable[[PointResult], float]] | None = None
    for axis, fixed, x in sweeps:
        group = [item for item in known if _alike(item, point, fixed) and x(item) > 0]
        # One point for each place on the axis: repeated ones are another axis of the plan.
        group = [*{x(item): item for item in reversed(group)}.values()]
        if len(group) > max(1, len(best[1]) if best else 1):
            best = axis, sorted(group, key=x), x
    if best is None:
        return _bars(point)
    axis, group, x = best
    return Figure(
        name="first",
        title=f"What each side loses: {_fixed(point, axis)}",
        x=axis,
        left=Axis(label="Loss (%)", reference=0.0),
        series=tuple(series for name in NAMES if (series := _curve(group, name, x)) is not None),
    )


def _fixed(point: PointResult, axis: Axis) -> str:
    """What the points of a curve have in common."""
    if axis.bytes:
        return f"{point.kernel} on {plural(point.n, 'core')}"
    return f"{point.kernel}, messages of {format_size(point.size)}" if point.size else point.kernel


def _curve(group: Sequence[PointResult], name: SideName, x: Callable[[PointResult], float]) -> Series | None:
    rows = [(x(item), loss_of(kept), item.id) for item in group if (kept := kept_of(item, name)) is not None]
    if not rows:
        return None
    banded = all(loss.low is not None for _, loss, _ in rows)
    return Series(
        name=NAMES[name].lower(),
        side="communication" if name == "comm" else "computation",
        style="line",
        x=tuple(at for at, _, _ in rows),
        y=tuple(100 * loss.loss for _, loss, _ in rows),
        low=tuple(100 * (loss.low or 0.0) for _, loss, _ in rows) if banded else (),
        high=tuple(100 * (loss.high or 0.0) for _, loss, _ in rows) if banded else (),
        points=tuple(identity for _, _, identity in rows),
        value="loss",
        band="95 % interval",
    )


def _bars(point: PointResult) -> Figure:
    series: list[Series] = []
    names: list[str] = []
    for name, title in NAMES.items():
        kept = kept_of(point, name)
        if kept is None:
            continue
        loss = loss_of(kept)
        series.append(
            Series(
                name=title.lower(),
                side="communication" if name == "comm" else "computation",
                style="line",
                drawn="bars",
                x=(float(len(names)),),
                y=(100 * loss.loss,),
                low=() if loss.low is None else (100 * loss.low,),
                high=() if loss.high is None else (100 * loss.high,),
                value="loss",
                band="95 % interval",
            )
        )
        names.append(title)
    return Figure(
        name="first",
        title=f"What each side loses: {where(point)}",
        x=Axis(label="", names=tuple(names)),
        left=Axis(label="Loss (%)", reference=0.0),
        series=tuple(series),
    )


def _is_known(item: PointResult) -> bool:
    return item.comp.kept is not None or item.comm.kept is not None


def _alike(item: PointResult, point: PointResult, fixed: str) -> bool:
    return all(getattr(item, name) == getattr(point, name) for name in (*ALIKE, fixed))
