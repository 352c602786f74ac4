"""The figures of the overlap model: plane of times, performance over time, and strong scaling (Langguth 2018,
Figs 4 to 7).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

import msgspec

from elbowroom.draw.figure import Axis, Figure, Label, Mark, Series, Side
from elbowroom.models.overlap.fluid import Activity, Timeline, constant_losses, simulate
from elbowroom.models.overlap.law import OverlappedStep, check
from elbowroom.quantities import number

Style = Literal["alone", "together", "line"]
Path = tuple[tuple[float, ...], tuple[float, ...]]

ROOM = 1.1
"""The plane reaches this far beyond its latest time, so that the constant ends of the curves are seen."""


def plane(steps: Sequence[tuple[str, OverlappedStep]], unit: str = "") -> Figure:
    """Both axes are times (Figs 6 and 7): across how long communication takes, given how long is computed; up
    how long the computation takes, given how long is communicated.

    The two curves of a step cross at (time of the communication, time of the computation), and the longer of
    the two is the step's total. `steps`: name (may be empty) and step.
    """
    reach = ROOM * max(max(step.comp_contended, step.comm_contended) for _, step in steps)
    # Each kind of curve is drawn once, with a gap from step to step: names stand where the curves cross.
    kinds: tuple[tuple[str, Side | None, Style, Callable[[OverlappedStep], Path]], ...] = (
        ("communication", "communication", "alone", lambda step: _comm_alone(step, reach)),
        ("communication", "communication", "together", lambda step: _comm_together(step, reach)),
        ("computation", "computation", "alone", lambda step: _comm_alone(_turned(step), reach)[::-1]),
        ("computation", "computation", "together", lambda step: _comm_together(_turned(step), reach)[::-1]),
        ("the same total", None, "line", lambda step: _corner(step.total)),
    )
    series = [
        _curve(name, side, style, *_joined(map(path, _distinct(steps)))) for name, side, style, path in kinds
    ]
    series.append(_curve("both equally long", None, "line", (0.0, reach), (0.0, reach)))
    return Figure(
        name="overlap-plane",
        title="Overlapped step: how long each side takes, given the other",
        x=Axis(label=f"Time of the communication{_in(unit)}"),
        left=Axis(label=f"Time of the computation{_in(unit)}", reach=reach),
        series=tuple(series),
        labels=tuple(_crossing(name, step) for name, step in steps),
        caption=(
            "Where the two curves of a step cross, the longer of the two times is its total; all points of a "
            "corner take the same total. Plain alone, dashed together."
        ),
    )


def over_time(step: OverlappedStep, unit: str = "") -> Figure:
    """Performance over time as a share of that alone (Fig. 5): the areas are the work, the same alone and
    together.
    """
    flow = timeline(step)
    series = []
    marks = []
    sides: tuple[tuple[Side, float], ...] = (("communication", step.t_comm), ("computation", step.t_comp))
    for side, alone in sides:
        if alone > 0.0:
            series.append(_curve(side, side, "alone", (0.0, alone, alone), (1.0, 1.0, 0.0)))
            series.append(_curve(side, side, "together", *_stairs(flow, side)))
            end = number(flow.ends[side])
            marks.append(Mark(x=flow.ends[side], text=f"{side} ends after {end} {unit}".rstrip()))
    return Figure(
        name="overlap-time",
        title="Overlapped step: performance over time",
        x=Axis(label=f"Time{_in(unit)}"),
        left=Axis(label="Performance (1 = alone)"),
        series=tuple(series),
        marks=tuple(sorted(marks, key=lambda mark: mark.x)),
        caption="The area below a curve is its work: the same alone (plain) and together (dashed).",
    )


FEW = 4.0
"""Few subdomains are a quarter of the optimal ones, many are four times as many."""


def scaling(step: OverlappedStep, unit: str = "") -> Figure:
    """Both sides' times as bars with few, optimal and many subdomains (Fig. 4): with more of them a side
    computes less and communicates as long. The optimum is where both take equally long beside each other
    (T_M^C = T_N^C); without contention it would be where both alone do (T_M = T_N). UsageError where a side
    takes no time.
    """
    for field in ("t_comp", "t_comm"):
        check(
            field,
            getattr(step, field),
            low=0.0,
            above=True,
            what="the time of a side that scales",
            hint="give it",
        )
    optimum, expected = step.comp_contended / step.comm_contended, step.t_comp / step.t_comm
    factors = {"few": optimum / FEW, "optimal": optimum, "many": optimum * FEW}
    steps = {name: msgspec.structs.replace(step, t_comp=step.t_comp / more) for name, more in factors.items()}
    sides: tuple[tuple[Side, str, str], ...] = (
        ("computation", "t_comp", "comp_contended"),
        ("communication", "t_comm", "comm_contended"),
    )
    series = []
    for place, (side, alone, contended) in enumerate(sides):
        x = tuple(float(len(sides) * at + place) for at in range(len(steps)))
        first = tuple(getattr(one, alone) for one in steps.values())
        last = tuple(getattr(one, contended) for one in steps.values())
        texts = tuple(map(number, last))
        series += [
            Series(name=f"{side} alone", side=side, style="alone", drawn="bars", x=x, y=first, value="alone"),
            Series(
                name=f"{side}, lost by contention", side=side, style="together", drawn="bars",
                x=x, base=first, y=last, texts=texts, value="beside the other",
            ),
        ]  # fmt: skip
    return Figure(
        name="overlap-scaling",
        title="Overlapped step with few, optimal and many subdomains",
        x=Axis(label="", names=tuple(f"{name}: {side}" for name in steps for side, _, _ in sides)),
        left=Axis(label=f"Time{_in(unit)}"),
        series=tuple(series),
        caption=(
            f"Communication takes as long with any number of subdomains. With {number(optimum)} times as "
            f"many as given, both sides take equally long beside each other; without contention that would "
            f"be at {number(expected)} times. Few and many: a quarter and four times the optimum."
        ),
    )


def timeline(step: OverlappedStep) -> Timeline:
    """The step as a flow at two rates; activities `computation` and `communication`."""
    losses = {"computation": step.l_comp, "communication": step.l_comm}
    works = (("computation", step.t_comp), ("communication", step.t_comm))
    return simulate((Activity(name=name, work=work) for name, work in works), constant_losses(losses))


def _stairs(flow: Timeline, name: str) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The rate of one activity over time, as the corners of a staircase that ends at 0."""
    x: list[float] = []
    y: list[float] = []
    for span in flow.spans:
        if name in span.rates:
            x += [span.start, span.end]
            y += [span.rates[name]] * 2
    return (*x, x[-1]), (*y, 0.0)


def _comm_alone(step: OverlappedStep, reach: float) -> Path:
    """T_N, however long is computed."""
    return (step.t_comm, step.t_comm), (0.0, reach)


def _comm_together(step: OverlappedStep, reach: float) -> Path:
    """From (T_N, 0) to (T_N^C, T_N^C), and straight up."""
    end = step.comm_contended
    return (step.t_comm, end, end), (0.0, end, reach)


def _corner(total: float) -> Path:
    return (0.0, total, total), (total, total, 0.0)


def _turned(step: OverlappedStep) -> OverlappedStep:
    """The step with computation and communication exchanged: its curves are those of the other side."""
    return OverlappedStep(t_comp=step.t_comm, t_comm=step.t_comp, l_comp=step.l_comm, l_comm=step.l_comp)


def _distinct(steps: Sequence[tuple[str, OverlappedStep]]) -> list[OverlappedStep]:
    return list(dict.fromkeys(step for _, step in steps))


def _joined(paths: Iterable[Path]) -> Path:
    """One path with gaps; the same path twice is drawn once (Fig. 7: four computations, one exchange)."""
    x: list[float] = []
    y: list[float] = []
    for across, up in dict.fromkeys(paths):
        if x:
            x.append(math.nan)
            y.append(math.nan)
        x += across
        y += up
    return tuple(x), tuple(y)


def _crossing(name: str, step: OverlappedStep) -> Label:
    flow = timeline(step)
    text = f"{name}: {number(step.total)}" if name else f"total {number(step.total)}"
    return Label(x=flow.ends["communication"], y=flow.ends["computation"], text=text)


def _curve(name: str, side: Side | None, style: Style, x: tuple[float, ...], y: tuple[float, ...]) -> Series:
    return Series(name=name, side=side, style=style, x=x, y=y, drawn="smooth", value="model")


def _in(unit: str) -> str:
    return f" ({unit})" if unit else ""
