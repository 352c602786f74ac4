"""An explanation drawn: for each side bars from what it keeps alone down to what it keeps together, and the
blue and red points.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from elbowroom.draw.figure import Axis, Figure, Mark, Series
from elbowroom.explain import words
from elbowroom.explain.explanation import SIDE_NAMES, SIDES, ChainStep, ExplainedPoint, SideLoss, SideName
from elbowroom.results.curves import SATURATED

KEPT = Axis(label="Kept (1 = as alone)", reference=1.0)
BAND = "95 % interval"
STEPS = (
    "Each bar: the loss that a source adds, with its share of the total loss (its factor, if the total is "
    "not significant). Whiskers: 95 % intervals. Hollow bars: undecided."
)
POINTS = "Whiskers: 95 % intervals. Red: both sides lose. Blue: only the computation, left of the line."


def figures(shown: Sequence[ExplainedPoint], cases: Sequence[ExplainedPoint]) -> tuple[Figure, ...]:
    """The steps of each case that is shown, a figure for each side; then all points by how much they move."""
    steps = tuple(_waterfall(case, split) for case in shown for split in case.splits)
    scattered = _regimes(cases)
    return steps if scattered is None else (*steps, scattered)


def _waterfall(case: ExplainedPoint, split: SideLoss) -> Figure:
    """Alone, a bar for each step, together."""
    side, count = SIDE_NAMES[split.side], len(split.steps)
    levels = list(accumulate(split.steps, lambda level, step: level * step.kept.value, initial=1.0))
    sure = [place for place in range(count) if split.steps[place].decided != "undecided"]
    unsure = [place for place in range(count) if place not in sure]
    ends = Series(
        name="alone and together",
        side=side,
        hue="black",
        style="line",
        drawn="bars",
        x=(0.0, count + 1.0),
        y=(1.0, split.kept.value),
        low=(1.0, split.kept.ends(split.kept.value)[0]),
        high=(1.0, split.kept.ends(split.kept.value)[1]),
        texts=("1", f"{split.kept.value:.2f}"),
        points=(case.point, case.point),
        value="kept",
        band=BAND,
    )
    names = [words.sources_text(step.sources) for step in split.steps]
    drawn = [_bars(split, levels, places) for places in (sure, unsure) if places]
    return Figure(
        name=f"explain-{split.side}-{case.point}",
        title=f"{words.upper(side)}: {words.title(case)}",
        x=Axis(label="", names=("alone", *names, "together")),
        left=KEPT,
        series=(*drawn, ends),
        caption=STEPS,
    )


def _bars(split: SideLoss, levels: Sequence[float], places: Sequence[int]) -> Series:
    """The steps at these places of the chain; all of them sure, or none."""
    steps = [split.steps[place] for place in places]
    ends = [step.kept.ends(step.kept.value) for step in steps]
    return Series(
        name=SIDE_NAMES[split.side],
        side=SIDE_NAMES[split.side],
        style="undecided" if steps[0].decided == "undecided" else "line",
        drawn="bars",
        x=tuple(place + 1.0 for place in places),
        base=tuple(levels[place] for place in places),
        y=tuple(levels[place + 1] for place in places),
        low=tuple(levels[place] * low for place, (low, _) in zip(places, ends, strict=True)),
        high=tuple(levels[place] * high for place, (_, high) in zip(places, ends, strict=True)),
        texts=tuple(_text(step) for step in steps),
        points=tuple(step.after for step in steps),
        value="kept",
        band=BAND,
    )


def _text(step: ChainStep) -> str:
    if step.decided == "undecided":
        return "?"
    return f"× {step.kept.value:.2f}" if step.share is None else f"{100 * step.share.value:.0f} %"


def _regimes(cases: Sequence[ExplainedPoint]) -> Figure | None:
    """What each side keeps, over how much both move; None where that is not known."""
    known = [case for case in cases if case.traffic is not None and case.highest]
    series = [
        drawn for side in SIDES for colour in ("red", "blue", "") if (drawn := _spots(known, side, colour))
    ]
    if not series:
        return None
    line = Mark(x=SATURATED, text=f"the bandwidth counts as saturated from here on ({SATURATED:g}).")
    return Figure(
        name="explain-regimes",
        title="Blue and red points over the memory traffic of both sides",
        x=Axis(label="Traffic together / highest traffic measured on the node"),
        left=KEPT,
        series=tuple(series),
        marks=(line,),
        caption=POINTS,
    )


def _spots(known: Sequence[ExplainedPoint], side: SideName, colour: str) -> Series | None:
    """One side of the red, the blue or the other points."""
    of = [
        (case, split)
        for case in known
        if (split := case.split(side)) is not None
        and (case.regime == colour if colour else case.regime not in ("red", "blue"))
    ]
    if not of:
        return None
    name = f"{SIDE_NAMES[side]} at {colour or 'other'} points"
    return Series(
        name=name,
        side=SIDE_NAMES[side],
        style="line",
        drawn="points",
        x=tuple((case.traffic or 0.0) / (case.highest or 1.0) for case, _ in of),
        y=tuple(split.kept.value for _, split in of),
        low=tuple(split.kept.ends(split.kept.value)[0] for _, split in of),
        high=tuple(split.kept.ends(split.kept.value)[1] for _, split in of),
        points=tuple(case.point for case, _ in of),
        value="kept",
        band=BAND,
    )
