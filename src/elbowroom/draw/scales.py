"""Scales and ticks of the axes, the same for the page and for files.

A scale turns a value into its place between 0 (low end) and 1 (high end). Nothing is clamped: values below
zero are shown (docs/design/method.md, rule 11), and only what a logarithm cannot show is left out of a log
axis.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import msgspec

from elbowroom.draw.figure import Axis, Figure, Scale
from elbowroom.quantities import format_size, number

MOST_STEPS = 7.5
MOST_TICKS = 9
STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
HEADROOM = 0.04
"""Share of the axis left free above the highest value, so that no curve runs along the frame."""
HEADROOM_OF_LABELS = 0.12
"""The same where points are named: a name stands above its point."""
FLAT = 1e-9
"""Values closer than this share of the largest are one value: their ticks would all have one label."""
SMALLEST = 1e-300
"""A span below this is no span: ticks inside it are lost in the rounding of denormal numbers."""


class Tick(msgspec.Struct, frozen=True, kw_only=True):
    """A tick at `value`; an empty label is a minor tick."""

    value: float
    label: str


class AxisScale(msgspec.Struct, frozen=True, kw_only=True):
    """An axis ready to draw: kind, ends in the axis' unit, ticks inside the ends."""

    kind: Scale
    low: float
    high: float
    ticks: tuple[Tick, ...]

    def shows(self, value: float) -> bool:
        """Whether `value` has a place on this axis."""
        return math.isfinite(value) and (self.kind == "linear" or value > 0)

    def place(self, value: float) -> float:
        """Where `value` lies: 0 at the low end, 1 at the high end; for values that the axis shows."""
        if self.kind == "linear":
            return (value - self.low) / (self.high - self.low)
        return math.log(value / self.low) / math.log(self.high / self.low)


def bases(figure: Figure) -> tuple[tuple[float, ...], ...]:
    """Per series what each of its values stands on: zero, and for an area the areas before it at that x."""
    heights: dict[tuple[str, float], float] = {}
    result = []
    for series in figure.series:
        if series.drawn != "area":
            result.append((0.0,) * len(series.x))
            continue
        result.append(tuple(heights.get((series.axis, x), 0.0) for x in series.x))
        for x, y in zip(series.x, series.y, strict=True):
            heights[series.axis, x] = heights.get((series.axis, x), 0.0) + y
    return tuple(result)


def horizontal(figure: Figure) -> AxisScale:
    """The x axis: from the first to the last x of any series, mark or label; of a map from end to end; of
    names one place each.
    """
    if figure.fields:
        return _from_end_to_end(figure.x, figure.fields[0].x)
    if figure.x.names:
        return _named(figure.x.names)
    values = [x for series in figure.series for x in series.x]
    values += [mark.x for mark in figure.marks] + [label.x for label in figure.labels]
    return axis_scale(figure.x, values, from_zero=False)


def vertical(figure: Figure, side: str) -> AxisScale:
    """The y axis `left` or `below`: from zero (linear) to the highest value or band of its series; of a map
    from end to end.
    """
    axis = figure.below if side == "below" and figure.below is not None else figure.left
    if figure.fields and axis is figure.left:
        return _from_end_to_end(axis, figure.fields[0].y)
    values = [value for value in (axis.reach, axis.reference) if value is not None]
    for series, base in zip(figure.series, bases(figure), strict=True):
        if series.axis != side:
            continue
        values += [y + below for y, below in zip(series.y, base, strict=True)]
        if series.drawn != "area":
            values += [*series.low, *series.high, *series.base]
    values += [label.y for label in figure.labels if label.axis == side]
    named = figure.labels or any(series.texts for series in figure.series)
    return axis_scale(axis, values, from_zero=True, headroom=HEADROOM_OF_LABELS if named else HEADROOM)


def axis_scale(
    axis: Axis, values: Iterable[float], *, from_zero: bool, headroom: float = HEADROOM
) -> AxisScale:
    """The scale that shows all `values`, except those that are not finite, or not positive on a log axis."""
    shown = [v for v in values if math.isfinite(v) and (axis.scale == "linear" or v > 0)]
    if not shown:
        shown = [0.0, 1.0] if axis.scale == "linear" else [1.0, 10.0]
    low, high = min(shown), max(shown)
    if axis.scale == "linear":
        return _linear(axis, low, high, from_zero, headroom)
    return _logarithmic(axis, low, high, padded=from_zero)


def _from_end_to_end(axis: Axis, grid: Sequence[float]) -> AxisScale:
    """The axis of a map: no room beyond its grid; names have one place each."""
    if axis.names:
        return _named(axis.names)
    scale = axis_scale(axis, grid, from_zero=False)
    low, high = grid[0], grid[-1]
    ticks = tuple(tick for tick in scale.ticks if low <= tick.value <= high)
    return msgspec.structs.replace(scale, low=low, high=high, ticks=ticks)


def _named(names: Sequence[str]) -> AxisScale:
    """A name at each whole number, with half a place of room at both ends."""
    ticks = tuple(Tick(value=float(place), label=name) for place, name in enumerate(names))
    return AxisScale(kind="linear", low=-0.5, high=len(names) - 0.5, ticks=ticks)


def runs(xs: Sequence[float], ys: Sequence[float], x: AxisScale, y: AxisScale) -> list[list[int]]:
    """The indices to draw, cut where a value is missing: a curve never bridges what was not measured."""
    result: list[list[int]] = []
    open_run = False
    for index, (a, b) in enumerate(zip(xs, ys, strict=True)):
        if not (x.shows(a) and y.shows(b)):
            open_run = False
            continue
        if not open_run:
            result.append([])
            open_run = True
        result[-1].append(index)
    return result


def _linear(axis: Axis, low: float, high: float, from_zero: bool, headroom: float) -> AxisScale:
    if from_zero:
        low, high = min(low, 0.0), max(high, 0.0)
    largest = max(abs(low), abs(high))
    if high - low <= max(largest * FLAT, SMALLEST):
        margin = largest * 0.05 if largest > SMALLEST else 1.0
        low, high = low - (0.0 if from_zero else margin), high + margin
    span = high - low
    if from_zero:
        high += span * headroom
        low -= span * HEADROOM if low < 0 else 0.0
    else:
        low, high = low - span * HEADROOM / 2, high + span * HEADROOM / 2
    step = _step(high - low)
    if axis.whole and not step.is_integer():
        step = float(math.ceil(step))
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    places = [index * step for index in range(first, last + 1)]
    return AxisScale(kind="linear", low=low, high=high, ticks=tuple(_tick(axis, v) for v in places))


def _step(span: float) -> float:
    """The smallest round step that `span` holds at most MOST_STEPS times."""
    rough = span / MOST_STEPS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step * power for step in STEPS if step * power >= rough * 0.999)


def _logarithmic(axis: Axis, low: float, high: float, *, padded: bool) -> AxisScale:
    base = 2.0 if axis.scale == "log2" else 10.0
    if low == high:
        low, high = low / base, high * base
    margin = (high / low) ** (HEADROOM if padded else HEADROOM / 2)
    low, high = low / margin, high * margin
    ticks = _power_ticks(axis, base, low, high)
    if sum(1 for tick in ticks if tick.label) < 2:
        step = _step(high - low)
        places = [i * step for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
        ticks = tuple(_tick(axis, value) for value in places if value > 0)
    return AxisScale(kind=axis.scale, low=low, high=high, ticks=ticks)


def _power_ticks(axis: Axis, base: float, low: float, high: float) -> tuple[Tick, ...]:
    """Ticks at powers of `base`, labelled so that at most MOST_TICKS labels stand side by side."""
    first = math.ceil(math.log(low, base) - 1e-9)
    last = math.floor(math.log(high, base) + 1e-9)
    strides = (1, 2, 4, 5, 10, 20, 50) if base == 2.0 else (1, 2, 3, 6, 12)
    stride = next((s for s in strides if (last - first) // s + 1 <= MOST_TICKS), strides[-1])
    ticks = []
    for power in range(first - 1, last + 1):
        value = base**power
        ticks.append(_tick(axis, value) if power % stride == 0 else Tick(value=value, label=""))
        if base == 10.0 and last - first <= 4:
            labelled = (2, 5) if last - first < 2 else ()
            for multiple in range(2, 10):
                between = multiple * value
                ticks.append(_tick(axis, between) if multiple in labelled else Tick(value=between, label=""))
    return tuple(tick for tick in ticks if low <= tick.value <= high)


def _tick(axis: Axis, value: float) -> Tick:
    if axis.bytes:
        return Tick(value=value, label=format_size(value))
    return Tick(value=value, label=number(value))
