"""Which sides of many lose something: the same answer for the findings of a run and for a study.

Each side has a 95 % interval of its own, and of a dozen sides that lose nothing one has an interval below 1
in about one run of four. Holm's procedure (Holm, "A Simple Sequentially Rejective Multiple Test Procedure",
1979) keeps that chance at 5 % for all sides of a run together. The probability of a side comes from its
interval: ln(kept) over its standard error is taken as Student's t of the repetitions. `compare` asks another
question, which of many values changed, and holds the share of false discoveries instead (`comparison`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar

import msgspec

from elbowroom.results.curves import affected
from elbowroom.results.judgement import Judgement, suffers
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.interval import Kept, Side
from elbowroom.stats.signed_ranks import CONFIDENCE

Key = TypeVar("Key")
SideName = Literal["comp", "comm"]
SIDES: tuple[SideName, ...] = ("comp", "comm")

BY_CHANCE = "may look so by chance: more repetitions decide."
"""How the sentence ends that takes an effect back."""


def losing_sides(points: Sequence[PointResult]) -> frozenset[tuple[str, SideName]]:
    """The sides, by the point's id, that are affected beyond what chance makes of so many sides."""
    return _losing({(item.id, name): _measured(item, name) for item in points for name in SIDES})


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
    significant: list[Key] = []
    for key in sorted(chances, key=lambda key: chances[key]):
        if chances[key] > level / (len(chances) - len(significant)):
            break
        significant.append(key)
    return significant
