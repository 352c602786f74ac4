"""Where everything of a map lies: shades, lines, hatches, and names that cover neither each other nor points.

The same for the page and for files: places are in units of the plot, `width` x `height` from its upper left
corner, y downwards.

Isolines come from contourpy. A value is linear along the edges of the grid; in a cell with two opposite
corners above the level, the mean of its four corners decides which pair is joined.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from elbowroom.draw.figure import Field, Figure, Label, NamedRegion
from elbowroom.draw.scales import AxisScale

GAP = 9.0
"""From the point to its name."""
HEIGHT = 15.0

# Where a name may stand, in order of preference: beside its point, then a line of text farther away, or two.
BESIDE = ((0, -1), (0, 1), (1, 0), (-1, 0), (1, -1), (-1, -1), (1, 1), (-1, 1))
FARTHER = ((0, -1), (0, 1), (1, -1), (-1, -1), (1, 1), (-1, 1))
FAR_COST = 1.0
"""In units of the area covered: little, so that a name goes away rather than covers another."""


class NamePlace(msgspec.Struct, frozen=True, kw_only=True):
    """The middle of a name of a given width, in the units of the drawing, y downwards; `tip`: the place on
    its edge that is nearest to its point.
    """

    x: float
    y: float
    tip: tuple[float, float]


class Rectangle(msgspec.Struct, frozen=True):
    """What a text covers."""

    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: Rectangle) -> float:
        """The area that two rectangles share."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(across, 0.0) * max(down, 0.0)

    def outside(self, other: Rectangle) -> float:
        """The area of this rectangle that lies outside of `other`."""
        return (self.right - self.left) * (self.bottom - self.top) - self.overlap(other)


def spread(centres: Sequence[float], least: float) -> list[float]:
    """The centres, in their order, moved apart as little as needed to be `least` from each other."""
    order = sorted(range(len(centres)), key=lambda index: centres[index])
    groups: list[list[int]] = []
    middles: list[float] = []
    for index in order:
        groups.append([index])
        middles.append(centres[index])
        while len(groups) > 1 and _end(groups[-2], middles[-2], least) > _end(
            groups[-1], middles[-1], -least
        ):
            last, _ = groups.pop(), middles.pop()
            groups[-1] += last
            middles[-1] = sum(centres[member] for member in groups[-1]) / len(groups[-1])
    result = list(centres)
    for group, middle in zip(groups, middles, strict=True):
        for rank, index in enumerate(group):
            result[index] = middle + (rank - (len(group) - 1) / 2) * least
    return result


def _end(group: Sequence[int], middle: float, least: float) -> float:
    """The right end of a group of things that are `least` wide; with a negative `least`, the left end."""
    return middle + len(group) * least / 2


def places(
    spots: Sequence[tuple[float, float]],
    widths: Sequence[float],
    width: float,
    height: float,
    lines: Sequence[int] = (),
    taken: Sequence[Rectangle] = (),
) -> list[NamePlace]:
    """A place for each name, of `widths` and so many `lines` (one), beside its spot, in a plot of `width` x
    `height` from (0, 0); `taken`: what else should not be covered.

    Names are placed in order, each where it covers least of the earlier names and of all spots, and inside
    the plot where that is possible.
    """
    plot = Rectangle(0.0, 0.0, width, height)
    covered = [*taken, *(Rectangle(x - GAP / 2, y - GAP / 2, x + GAP / 2, y + GAP / 2) for x, y in spots)]
    result = []
    for (x, y), wide, count in zip(spots, widths, lines or [1] * len(spots), strict=True):
        high = HEIGHT * count
        tried = [
            ((x + across * (GAP + wide / 2), y + down * (GAP + away * (HEIGHT + 2.0) + high / 2)), away)
            for away, directions in enumerate((BESIDE, FARTHER, FARTHER))
            for across, down in directions
        ]
        candidates = [place for place, _ in tried]
        rectangles = [around(place, wide, high) for place in candidates]
        costs = [
            sum(r.overlap(other) for other in covered) + 4 * r.outside(plot) + FAR_COST * away
            for r, (_, away) in zip(rectangles, tried, strict=True)
        ]
        best = costs.index(min(costs))
        chosen = rectangles[best]
        covered.append(chosen)
        tip = (min(max(x, chosen.left), chosen.right), min(max(y, chosen.top), chosen.bottom))
        result.append(NamePlace(x=candidates[best][0], y=candidates[best][1], tip=tip))
    return result


def around(middle: tuple[float, float], wide: float, high: float = HEIGHT) -> Rectangle:
    """The rectangle with that middle."""
    x, y = middle
    return Rectangle(x - wide / 2, y - high / 2, x + wide / 2, y + high / 2)


LETTER = 7.2
"""Mean width of a letter of what stands on a map, which is half bold, in units of the drawing."""
SMALL_LETTER = 6.8
DOT = 8.0
"""What a point keeps free around it."""
HEAD = 9.0
"""Length of an arrow's head."""
SHADE = 0.2
"""Opacity of one shade; k of them, one over the other, have 1 - (1 - SHADE)^k."""


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """A text with its middle; `field`: that of the line it belongs to."""

    x: float
    y: float
    text: str
    field: int = -1


class Drawn(msgspec.Struct, frozen=True, kw_only=True):
    """A figure's named points with the places of their names, the texts of lines and regions, whiskers as
    pairs of ends, and arrows as pairs of ends.
    """

    points: tuple[tuple[Label, Spot, NamePlace], ...]
    levels: tuple[Written, ...]
    regions: tuple[Written, ...]
    whiskers: tuple[tuple[Spot, Spot], ...]
    arrows: tuple[tuple[Spot, Spot], ...]


class Plane:
    """The plot of a map: turns values on its axes into places."""

    def __init__(self, x: AxisScale, y: AxisScale, width: float, height: float) -> None:
        self._x, self._y, self.width, self.height = x, y, width, height

    def across(self, value: float) -> float:
        """The abscissa of a value."""
        return self._x.place(value) * self.width

    def down(self, value: float) -> float:
        """The ordinate of a value of the left axis."""
        return (1 - self._y.place(value)) * self.height

    def outlines(self, field: Field, level: float) -> list[list[Spot]]:
        """Closed outlines of where the field is above the level."""
        return outlines(*self._grid(field), field.values, level)

    def lines(self, field: Field, level: float) -> list[list[Spot]]:
        """The lines along which the field is at the level."""
        return lines(*self._grid(field), field.values, level)

    def _grid(self, field: Field) -> tuple[list[float], list[float]]:
        return [self.across(x) for x in field.x], [self.down(y) for y in field.y]

    def shows(self, value: float) -> bool:
        """Whether a value has a place on the x axis."""
        return self._x.shows(value)


def drawn(figure: Figure, plane: Plane, sides: dict[str, AxisScale], letter: float) -> Drawn:
    """Places of all that is written on the figure; `letter`: width of a letter of the points' names."""
    shown = [
        (label, (plane.across(label.x), (1 - y.place(label.y)) * plane.height))
        for label in figure.labels
        if plane.shows(label.x) and (y := sides.get(label.axis, sides["left"])).shows(label.y)
    ]
    whiskers = [ends for label, spot in shown for ends in _whiskers(label, spot, plane)]
    arrows = [
        ends
        for arrow in figure.arrows
        if (ends := _shortened((plane.across(arrow.start[0]), plane.down(arrow.start[1])),
                               (plane.across(arrow.end[0]), plane.down(arrow.end[1]))))
    ]  # fmt: skip
    lines = [label.text.split("\n") for label, _ in shown]
    strokes = [rectangle for start, end in (*whiskers, *arrows) for rectangle in _along(start, end)]
    names = places(
        [spot for _, spot in shown],
        [max(map(len, texts)) * letter for texts in lines],
        plane.width,
        plane.height,
        [len(texts) for texts in lines],
        strokes,
    )
    taken = [around(spot, 2 * DOT, 2 * DOT) for _, spot in shown] + strokes
    for texts, place in zip(lines, names, strict=True):
        wide = max(map(len, texts)) * letter
        taken.append(around((place.x, place.y), wide, HEIGHT * len(texts)))
    levels = _levels(figure, plane, taken)
    taken += [around((text.x, text.y), len(text.text) * SMALL_LETTER) for text in levels]
    return Drawn(
        points=tuple((label, spot, place) for (label, spot), place in zip(shown, names, strict=True)),
        levels=tuple(levels),
        regions=tuple(_regions(figure.regions, plane, taken)),
        whiskers=tuple(whiskers),
        arrows=tuple(arrows),
    )


def _whiskers(label: Label, spot: Spot, plane: Plane) -> Iterator[tuple[Spot, Spot]]:
    if label.across is not None:
        left, right = (plane.across(value) for value in label.across)
        yield (left, spot[1]), (right, spot[1])
    if label.up is not None:
        low, high = (plane.down(value) for value in label.up)
        yield (spot[0], low), (spot[0], high)


def _shortened(start: Spot, end: Spot) -> tuple[Spot, Spot] | None:
    """An arrow that leaves its points free; None where they are too near for one."""
    length = math.dist(start, end)
    if length < 2 * DOT + HEAD:
        return None
    across, down = ((b - a) / length * DOT for a, b in zip(start, end, strict=True))
    return (start[0] + across, start[1] + down), (end[0] - across, end[1] - down)


def _along(start: Spot, end: Spot) -> Iterator[Rectangle]:
    """Small rectangles that cover a straight line."""
    count = max(1, math.ceil(math.dist(start, end) / DOT))
    for step in range(count + 1):
        share = step / count
        middle = (start[0] + share * (end[0] - start[0]), start[1] + share * (end[1] - start[1]))
        yield around(middle, DOT / 2, DOT / 2)


def _levels(figure: Figure, plane: Plane, taken: Sequence[Rectangle]) -> list[Written]:
    """A text on the longest line of each level, near its middle, where it covers nothing."""
    texts: list[Written] = []
    covered = list(taken)
    plot = Rectangle(0.0, 0.0, plane.width, plane.height)
    for index, field in enumerate(figure.fields):
        for level, text in zip(field.levels, field.texts, strict=True) if field.drawn == "lines" else ():
            lines = plane.lines(field, level)
            if not lines:
                continue
            longest = max(lines, key=_length)
            middle = (len(longest) - 1) / 2
            order = sorted(range(len(longest)), key=lambda at: abs(at - middle))
            tried = [(around(longest[at], len(text) * SMALL_LETTER, HEIGHT), at) for at in order]
            costs = [sum(r.overlap(other) for other in covered) + r.outside(plot) for r, _ in tried]
            best, at = tried[costs.index(min(costs))]
            covered.append(best)
            texts.append(Written(x=longest[at][0], y=longest[at][1], text=text, field=index))
    return texts


def _length(line: Sequence[Spot]) -> float:
    return sum(math.dist(a, b) for a, b in pairwise(line))


def _regions(regions: Sequence[NamedRegion], plane: Plane, taken: Sequence[Rectangle]) -> Iterator[Written]:
    """The names that fit into their regions, each where it is farthest from the region's ends."""
    for region in regions:
        xs, ys = [plane.across(x) for x in region.x], [plane.down(y) for y in region.y]
        ends = [(xs[i], ys[j]) for i, j in _rim(region)]
        places = sorted(
            (-_room((x, y), ends, plane), x, y)
            for y, row in zip(ys, region.inside, strict=True)
            for x in _middles(xs, row)
        )
        wide = len(region.name) * LETTER
        for _, x, y in places:
            if _free(around((x, y), wide), plane, ends, taken):
                yield Written(x=x, y=y, text=region.name)
                break


def _middles(xs: Sequence[float], row: Sequence[bool]) -> Iterator[float]:
    """The nodes of a row inside a region, and halfway from one to the next."""
    for i, within in enumerate(row):
        if within:
            yield xs[i]
            if i + 1 < len(row) and row[i + 1]:
                yield (xs[i] + xs[i + 1]) / 2


def _rim(region: NamedRegion) -> list[tuple[int, int]]:
    """The nodes outside of the region beside one inside."""
    inside = region.inside
    rim = []
    for j, row in enumerate(inside):
        for i, within in enumerate(row):
            beside = [
                inside[m][k]
                for k, m in ((i - 1, j), (i + 1, j), (i, j - 1), (i, j + 1))
                if 0 <= m < len(inside) and 0 <= k < len(row)
            ]
            if not within and any(beside):
                rim.append((i, j))
    return rim


def _room(spot: Spot, ends: Sequence[Spot], plane: Plane) -> float:
    x, y = spot
    return min([x, plane.width - x, y, plane.height - y, *(math.dist(spot, end) for end in ends)])


def _free(box: Rectangle, plane: Plane, ends: Sequence[Spot], taken: Sequence[Rectangle]) -> bool:
    if box.left < 0 or box.top < 0 or box.right > plane.width or box.bottom > plane.height:
        return False
    if any(box.left <= x <= box.right and box.top <= y <= box.bottom for x, y in ends):
        return False
    return not any(box.overlap(other) for other in taken)


def opacity(shades: int) -> float:
    """That of so many shades, one over the other."""
    return 1 - (1 - SHADE) ** shades


Spot = tuple[float, float]
Grid = Sequence[Sequence[float]]


def lines(xs: Sequence[float], ys: Sequence[float], values: Grid, level: float) -> list[list[Spot]]:
    """The lines at `level`, with `values[j][i]` at (xs[i], ys[j]); closed lines end where they begin."""
    from contourpy import LineType

    return [_spots(line) for line in _generator(xs, ys, values, line_type=LineType.Separate).lines(level)]


def outlines(xs: Sequence[float], ys: Sequence[float], values: Grid, level: float) -> list[list[Spot]]:
    """Closed outlines of the area above `level`, also along the ends of the grid. Outlines of holes have the
    opposite direction.
    """
    from contourpy import FillType

    highest = max(map(max, values))
    if highest <= level:
        return []
    areas = _generator(xs, ys, values, fill_type=FillType.OuterOffset).filled(level, highest + 1.0)
    return [
        _spots(points[begin:end])
        for points, offsets in zip(*areas, strict=True)
        for begin, end in pairwise(offsets)
    ]


def _generator(xs: Sequence[float], ys: Sequence[float], values: Grid, **kind: Any) -> Any:
    """contourpy is imported here, since most commands draw no map."""
    from contourpy import contour_generator

    return contour_generator(list(xs), list(ys), [list(row) for row in values], name="serial", **kind)


def _spots(points: Any) -> list[Spot]:
    return [(x, y) for x, y in points.tolist()]
