"""Which sides of many lose something: the same answer for the findings of a run and for a study.

Each side has a 95 % interval of its own, and of a dozen sides that lose nothing one has an interval below 1
in about one run of four. Holm's procedure (Holm, "A Simple Sequentially Rejective Multiple Test Procedure",
1979) keeps that chance at 5 % for all sides of a run together. In a run it has weights: the sides of the main
point get half of the 5 %, all others share the rest, so that a plan of many points does not take the power
from the one that it is about. The probability of a side is that of Student's t test of ln(kept), one value
for each repetition. It does not need many of them: 3 are enough, and noise that is symmetric but has heavy
tails makes it smaller, not larger (benchmarks/quick_grades.py --simulate). `compare` asks another question,
which of many values changed, and holds the share of false discoveries instead (`comparison`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar

import msgspec

from elbowroom.plan.information import most_informative
from elbowroom.results.curves import affected
from elbowroom.results.judgement import Judgement, suffers
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Kept, Side
from elbowroom.stats.signed_ranks import CONFIDENCE

Key = TypeVar("Key")
SMALLEST_ERROR = 1e-12
"""Standard errors of logarithms below this are rounding: all repetitions agree."""
SideName = Literal["comp", "comm"]
SIDES: tuple[SideName, ...] = ("comp", "comm")

BY_CHANCE = "may look so by chance: more repetitions decide."
"""How the sentence ends that takes an effect back."""


MAIN_SHARE = 0.5
"""Part of the tests' level that the sides of the main point get."""


def losing_sides(points: Sequence[PointResult]) -> frozenset[tuple[str, SideName]]:
    """The sides, by the point's id, that are affected beyond what chance makes of so many sides."""
    return frozenset(key for key, p in side_chances(points).items() if p <= 1 - CONFIDENCE)


def main_point(points: Sequence[PointResult]) -> PointResult | None:
    """What a plan is about first: the most cores beside the largest message; a control only where there is
    nothing else. Chosen by the plan, not by what was measured; None if no side of any point was.
    """
    measured = [item for item in points if any(_measured(item, name) for name in SIDES)]
    return most_informative(measured) if measured else None


def side_chances(points: Sequence[PointResult]) -> dict[tuple[str, SideName], float]:
    """By point id and side: how probably a side that loses nothing seems to lose that much, corrected for the
    number of sides; 1 of sides that are not affected.
    """
    sides = {(item.id, name): side for item in points for name in SIDES if (side := _measured(item, name))}
    main = main_point(points)
    mains = {key for key in sides if main is not None and key[0] == main.id}
    others = len(sides) - len(mains)
    weights = {
        key: (MAIN_SHARE / len(mains) if others else 1.0) if key in mains else (1 - MAIN_SHARE) / others
        for key in sides
    }
    corrected = adjusted({key: chance(*side) for key, side in sides.items()}, weights)
    return {key: p if affected(sides[key][0]) else 1.0 for key, p in corrected.items()}


def judge_sides(points: Sequence[PointResult], name: SideName) -> list[Judgement]:
    """Whether that side of each point suffers, as one of so many: undecided where chance may make it seem
    so.
    """
    losing = _losing({number: _measured(item, name) for number, item in enumerate(points)})
    judgements = [suffers(_side(item, name).kept) for item in points]
    return [
        "undecided" if judgement == "confirmed" and number not in losing else judgement
        for number, judgement in enumerate(judgements)
    ]


def suffering(points: Sequence[PointResult], name: SideName) -> list[PointResult]:
    """The points of which that side suffers, by `judge_sides`."""
    judgements = judge_sides(points, name)
    return [item for item, judgement in zip(points, judgements, strict=True) if judgement == "confirmed"]


def without_chance(findings: Sequence[Finding], points: Sequence[PointResult]) -> tuple[Finding, ...]:
    """The findings of a run; those that show interference where every affected side may be so by chance, as
    one of all sides of the run, are notes that say so. A finding whose points have no affected side rests on
    something else, and stays.
    """
    planned = [item for item in points if item.role != "control"]
    kepts = {(item.id, name): kept for item in planned for name in SIDES if (kept := _side(item, name).kept)}
    hit = {key for key, kept in kepts.items() if affected(kept)}
    chance_only = {point for point, _ in hit} - {point for point, _ in losing_sides(planned)}
    sure = {point for point, _ in hit} - chance_only
    return tuple(
        msgspec.structs.replace(finding, level="note", text=f"{finding.text} {chance_text(len(kepts))}")
        if finding.level == "interference"
        and not chance_only.isdisjoint(finding.points)
        and sure.isdisjoint(finding.points)
        else finding
        for finding in findings
    )


def chance_text(sides: int) -> str:
    """The sentence that follows an effect which many sides may show by chance."""
    return f"Of {sides} sides that lose nothing, one {BY_CHANCE}"


def is_uncertain(finding: Finding) -> bool:
    """Whether the finding says that what it shows may be chance."""
    return finding.level == "note" and finding.text.endswith(BY_CHANCE)


def _side(item: PointResult, name: SideName) -> Side:
    return item.comp if name == "comp" else item.comm


def _measured(item: PointResult, name: SideName) -> tuple[Kept, int] | None:
    """What a side kept, and in how many repetitions it was measured alone."""
    side = _side(item, name)
    return None if side.kept is None or side.alone is None else (side.kept, side.alone.count)


def _losing(sides: Mapping[Key, tuple[Kept, int] | None]) -> frozenset[Key]:
    known = {key: side for key, side in sides.items() if side is not None}
    chances = {key: chance(kept, count) for key, (kept, count) in known.items()}
    return frozenset(key for key in rejected(chances) if affected(known[key][0]))


def chance(kept: Kept, repetitions: int) -> float:
    """The probability that a side which loses nothing seems to lose (or gain) that much. Of a value that was
    not measured in repetitions it comes from the interval, as if that were of so many `repetitions`. It is 0
    where the scatter is not known: the value is taken as it is, and what rests on it is never trusted.
    """
    from scipy.special import stdtr, stdtrit

    if kept.log is not msgspec.UNSET:
        mean, error, count = kept.log.mean, kept.log.error, kept.log.count
        if error is None:
            return 0.0
    elif kept.low is None or kept.high is None or kept.low <= 0:
        return 0.0
    else:
        mean, count = math.log(kept.value), repetitions
        half = math.log(kept.high / kept.low) / 2
        error = half / float(stdtrit(count - 1, (1 + CONFIDENCE) / 2))
    if error <= SMALLEST_ERROR:
        return 0.0 if abs(mean) > SMALLEST_ERROR else 1.0
    return 2 * float(stdtr(count - 1, -abs(mean) / error))


def adjusted(chances: Mapping[Key, float], weights: Mapping[Key, float] | None = None) -> dict[Key, float]:
    """The probabilities after Holm's correction, the smallest first: a test is passed at a level if its
    corrected probability is at most that. With `weights`, which sum to anything, a test gets that part of
    the level (Holm 1979, section 4).
    """
    weight = dict.fromkeys(chances, 1.0) if weights is None else weights
    order = sorted(chances, key=lambda key: chances[key] / weight[key])
    left = math.fsum(weight[key] for key in order)
    largest, corrected = 0.0, {}
    for key in order:
        largest = max(largest, min(1.0, chances[key] * left / weight[key]))
        corrected[key] = largest
        left -= weight[key]
    return corrected


def rejected(chances: Mapping[Key, float], level: float = 1 - CONFIDENCE) -> list[Key]:
    """The keys whose probabilities are too small for `level` in the family of all, the smallest first."""
    return [key for key, p in adjusted(chances).items() if p <= level]
