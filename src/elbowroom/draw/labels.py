"""Where the names of a figure's points stand: they cover neither each other nor another named point."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

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
