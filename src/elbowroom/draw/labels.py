"""Where the names of a figure's points stand: they cover neither each other nor another named point."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

GAP = 9.0
"""From the point to its name."""
HEIGHT = 15.0

# Where a name may stand, in order of preference: steps from the point, and which end of it is there.
DIRECTIONS = ((0, -1), (0, 1), (1, 0), (-1, 0), (1, -1), (-1, -1), (1, 1), (-1, 1))


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """The middle of a name of a given width, in the units of the drawing, y downwards."""

    x: float
    y: float


class _Rectangle(msgspec.Struct, frozen=True):
    left: float
    top: float
    right: float
    bottom: float

    def overlap(self, other: _Rectangle) -> float:
        """The area that two rectangles share."""
        across = min(self.right, other.right) - max(self.left, other.left)
        down = min(self.bottom, other.bottom) - max(self.top, other.top)
        return max(across, 0.0) * max(down, 0.0)

    def outside(self, other: _Rectangle) -> float:
        """The area of this rectangle that lies outside of `other`."""
        return (self.right - self.left) * (self.bottom - self.top) - self.overlap(other)


def places(
    spots: Sequence[tuple[float, float]], widths: Sequence[float], width: float, height: float
) -> list[Place]:
    """A place for each name, of `widths`, beside its spot, in a plot of `width` x `height` from (0, 0).

    Names are placed in order, each where it covers least of the earlier names and of all spots, and inside
    the plot where that is possible.
    """
    plot = _Rectangle(0.0, 0.0, width, height)
    taken = [_Rectangle(x - GAP / 2, y - GAP / 2, x + GAP / 2, y + GAP / 2) for x, y in spots]
    result = []
    for (x, y), wide in zip(spots, widths, strict=True):
        candidates = [
            (x + across * (GAP + wide / 2), y + down * (GAP + HEIGHT / 2)) for across, down in DIRECTIONS
        ]
        rectangles = [_around(place, wide) for place in candidates]
        costs = [sum(r.overlap(other) for other in taken) + 4 * r.outside(plot) for r in rectangles]
        best = costs.index(min(costs))
        taken.append(rectangles[best])
        result.append(Place(x=candidates[best][0], y=candidates[best][1]))
    return result


def _around(middle: tuple[float, float], wide: float) -> _Rectangle:
    x, y = middle
    return _Rectangle(x - wide / 2, y - HEIGHT / 2, x + wide / 2, y + HEIGHT / 2)
