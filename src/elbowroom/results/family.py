"""Which sides of many lose something, where the worst of them makes the answer.

Each side has a 95 % interval of its own, and of a dozen sides that lose nothing one has an interval below 1
in about one run of four. Holm's procedure (Holm, "A Simple Sequentially Rejective Multiple Test Procedure",
1979) keeps that chance at 5 % for all sides of a run together. The probability of a side comes from its
interval: ln(kept) over its standard error is taken as Student's t of the repetitions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar

from elbowroom.results.curves import affected
from elbowroom.results.result import Kept, PointResult
from elbowroom.stats.signed_ranks import CONFIDENCE

Key = TypeVar("Key")
SideName = Literal["comp", "comm"]
SIDES: tuple[SideName, ...] = ("comp", "comm")


def losing_sides(points: Sequence[PointResult]) -> frozenset[tuple[str, SideName]]:
    """The sides, by the point's id, that are affected beyond what chance makes of so many sides."""
    sides = {
        (item.id, name): (side.kept, side.alone.count)
        for item in points
        for name in SIDES
        if (side := item.comp if name == "comp" else item.comm).kept is not None and side.alone is not None
    }
    chances = {key: chance(kept, count) for key, (kept, count) in sides.items() if kept is not None}
    return frozenset(
        key for key in rejected(chances) if (kept := sides[key][0]) is not None and affected(kept)
    )


def chance(kept: Kept, repetitions: int) -> float:
    """The probability that a side which loses nothing seems to lose (or gain) that much. 0 of a value without
    an interval: it is taken as it is, and what rests on it is never trusted.
    """
    if kept.low is None or kept.high is None or kept.low <= 0:
        return 0.0
    from scipy.special import stdtr, stdtrit

    half = math.log(kept.high / kept.low) / 2
    if half <= 0:
        return 0.0 if kept.value != 1 else 1.0
    error = half / float(stdtrit(repetitions - 1, (1 + CONFIDENCE) / 2))
    return 2 * float(stdtr(repetitions - 1, -abs(math.log(kept.value)) / error))


def rejected(chances: Mapping[Key, float], level: float = 1 - CONFIDENCE) -> list[Key]:
    """The keys whose probabilities are too small for `level` in the family of all, the smallest first."""
    found: list[Key] = []
    for key in sorted(chances, key=lambda key: chances[key]):
        if chances[key] > level / (len(chances) - len(found)):
            break
        found.append(key)
    return found
