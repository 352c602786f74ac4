"""Judges of statements: what the intervals of a run say of an effect, of no effect, of onsets and extents.

An absent effect is confirmed only where its cause is present: `unless` is the judge of that cause. Without it
a machine on which nothing happens would confirm that nothing is affected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from elbowroom.experiments.common.sentences import (
    SideName,
    cores_text,
    kept_of,
    kept_text,
    size_text,
)
from elbowroom.results.curves import TOLERANCE
from elbowroom.results.family import judge_sides, suffering
from elbowroom.results.judgement import Judgement, above, larger, suffers, unanimous
from elbowroom.results.result import Kept, PointResult
from elbowroom.stats.interval import Interval
from elbowroom.studies.evidence import EVERYWHERE, Evidence, Where
from elbowroom.studies.study import Judge, Outcome

End = Literal["first", "last", "worst", "all"]
X = Callable[[PointResult], float]
Only = Callable[[PointResult], bool]

CLAIM = re.compile(r":? the claim that ", re.IGNORECASE)
"""Where the sentence of a finding turns from numbers to the experiment's own verdict."""

SIDES: dict[SideName, str] = {"comm": "communication", "comp": "computation"}


def cores(item: PointResult) -> float:
    """Computing cores."""
    return float(item.n)


def size(item: PointResult) -> float:
    """Bytes of a message."""
    return float(item.size)


def at_text(item: PointResult) -> str:
    """`with 35 computing cores, 64 MB`."""
    return f"with {cores_text(item.n)}, {size_text(item.size)}"


class Curve:
    """One side of some points of a run, over one axis; `count`: those with the fewest or the most computing
    cores only, which must be different numbers.
    """

    def __init__(
        self,
        run: str,
        side: SideName,
        where: Where = EVERYWHERE,
        x: X = cores,
        only: Only | None = None,
        at: Callable[[float], str] = cores_text,
        count: Literal["", "fewest", "most"] = "",
    ) -> None:
        self.run, self.side, self.where, self.x, self.only, self.at = run, side, where, x, only, at
        self.count = count

    def points(self, evidence: Evidence) -> list[PointResult]:
        """Those where the side was measured alone and together, by rising x."""
        chosen = evidence.points(self.run, self.where, self.only)
        if self.count:
            counts = sorted({item.n for item in chosen if item.n})
            wanted = counts[:1] if self.count == "fewest" else counts[-1:]
            chosen = [item for item in chosen if len(counts) > 1 and item.n in wanted]
        return sorted((item for item in chosen if kept_of(item, self.side) is not None), key=self.x)

    def start(self, evidence: Evidence) -> Start:
        """From which x it suffers."""
        return start_of(self.points(evidence), self.side, self.x)

    def chosen(self, evidence: Evidence, end: End) -> list[PointResult]:
        """The points at that end of the axis, those where least is kept, or all."""
        points = self.points(evidence)
        if not points or end == "all":
            return points
        if end == "worst":
            return [min(points, key=lambda item: _kept(item, self.side).value)]
        edge = self.x(points[0] if end == "first" else points[-1])
        return [item for item in points if self.x(item) == edge]


def _kept(item: PointResult, side: SideName) -> Kept:
    kept = kept_of(item, side)
    assert kept is not None
    return kept


def missing(evidence: Evidence, run: str) -> Outcome:
    """The outcome where a run has none of the points."""
    return Outcome(judgement="not tested", why=evidence.reason(run))


def _texts(items: Sequence[PointResult], side: SideName, form: str = ".2f") -> str:
    parts = [
        f"{kept.value:{form}} ({kept.text(form)}) {at_text(item)}"
        for item in items[:3]
        if (kept := kept_of(item, side)) is not None
    ]
    more = f" and {len(items) - 3} more points" if len(items) > 3 else ""
    return f"{SIDES[side]} keeps {'; '.join(parts)}{more}"


def affected(curve: Curve, end: End = "worst") -> Judge:
    """Confirmed where the side suffers at that end, refuted where all of its points lose less than 5 %."""

    def judge(evidence: Evidence) -> Outcome:
        items = curve.chosen(evidence, end)
        if not items:
            return missing(evidence, curve.run)
        judgement = unanimous([suffers(_kept(item, curve.side)) for item in items])
        if end == "worst":
            every = curve.points(evidence)
            judgement = judge_sides(every, curve.side)[every.index(items[0])]
            if judgement == "refuted":
                judgement = unanimous([suffers(_kept(item, curve.side)) for item in every])
        why = "an interval includes 0.95" if judgement == "undecided" else ""
        return Outcome(judgement=judgement, ours=_texts(items, curve.side), why=why)

    return judge


def unaffected(curve: Curve, unless: Judge | None = None, cause: str = "") -> Judge:
    """Confirmed where every point loses less than 5 % with its whole interval, refuted where any suffers.
    Undecided where `unless`, the judge of the cause, does not confirm that the cause is there (`cause`).
    """

    def judge(evidence: Evidence) -> Outcome:
        points = curve.points(evidence)
        if not points:
            return missing(evidence, curve.run)
        worst = min(points, key=lambda item: _kept(item, curve.side).value)
        ours = f"at worst {_texts([worst], curve.side)}"
        judgements = set(judge_sides(points, curve.side))
        if "confirmed" in judgements:
            return Outcome(judgement="refuted", ours=ours)
        if judgements != {"refuted"}:
            return Outcome(judgement="undecided", ours=ours, why="an interval includes 0.95")
        if unless is not None and unless(evidence).judgement != "confirmed":
            return Outcome(judgement="undecided", ours=ours, why=cause)
        return Outcome(judgement="confirmed", ours=ours)

    return judge


def loss(curve: Curve, most: float, least: float = 0.0, end: End = "last") -> Judge:
    """Confirmed where the side suffers and keeps between `least` and `most` there, with its interval; refuted
    where the whole interval is outside.
    """

    def judge(evidence: Evidence) -> Outcome:
        items = curve.chosen(evidence, end)
        if not items:
            return missing(evidence, curve.run)
        ours = _texts(items, curve.side)
        judgement = unanimous([_within(_kept(item, curve.side), least, most) for item in items])
        if judgement == "confirmed":
            happened = unanimous([suffers(_kept(item, curve.side)) for item in items])
            if happened != "confirmed":
                return Outcome(judgement="undecided", ours=ours, why="nothing is lost here")
        why = "the interval reaches beyond the limits" if judgement == "undecided" else ""
        return Outcome(judgement=judgement, ours=ours, why=why)

    return judge


def _within(kept: Kept, least: float, most: float) -> Judgement:
    ends = kept.bounds
    if ends is None:
        return "undecided"
    if ends[1] < least or ends[0] > most:
        return "refuted"
    return "confirmed" if least <= ends[0] and ends[1] <= most else "undecided"


def gains(curve: Curve) -> Judge:
    """Confirmed where every point keeps more than 1, refuted where any suffers or all keep less than 1."""

    def judge(evidence: Evidence) -> Outcome:
        points = curve.points(evidence)
        if not points:
            return missing(evidence, curve.run)
        ours = _texts(points, curve.side, ".3f")
        if suffering(points, curve.side):
            return Outcome(judgement="refuted", ours=ours)
        judgement = unanimous([above(_kept(item, curve.side), 1.0) for item in points])
        why = "an interval includes 1" if judgement == "undecided" else ""
        return Outcome(judgement=judgement, ours=ours, why=why)

    return judge


class Start(msgspec.Struct, frozen=True, kw_only=True):
    """From which x a side may suffer, as the intervals say: `possible` is the first x where it is not
    excluded, `certain` the first where it is shown; None where there is none.
    """

    possible: float | None
    certain: float | None


def start_of(points: Sequence[PointResult], side: SideName, x: X) -> Start:
    """The start of the loss of one side over one axis; points by rising x."""
    judged = list(zip(map(x, points), judge_sides(points, side), strict=True))
    return Start(
        possible=next((at for at, judgement in judged if judgement != "refuted"), None),
        certain=next((at for at, judgement in judged if judgement == "confirmed"), None),
    )


def earlier(first: Start, second: Start, *, equal: bool = False) -> Judgement:
    """Whether the first side certainly suffers from a smaller x than the second one may (or never does);
    `equal`: or from the same.
    """

    def before(one: Start, other: Start, equal: bool) -> bool:
        if one.certain is None or other.possible is None:
            return one.certain is not None
        return one.certain <= other.possible if equal else one.certain < other.possible

    if before(first, second, equal):
        return "confirmed"
    return "refuted" if before(second, first, False) else "undecided"


def sooner(first: Curve, second: Curve) -> Judge:
    """Whether the first curve suffers from a smaller x than the second one does (or the second never)."""

    def judge(evidence: Evidence) -> Outcome:
        for curve in (first, second):
            if len({curve.x(item) for item in curve.points(evidence)}) < 2:
                return missing(evidence, curve.run) if not curve.points(evidence) else _one_value()
        one, other = first.start(evidence), second.start(evidence)
        ours = f"{_start_text(one, first)}; {_start_text(other, second)}"
        judgement = earlier(one, other)
        why = ""
        if judgement == "undecided":
            why = "neither suffers" if one.certain is None and other.certain is None else SAME_START
        return Outcome(judgement=judgement, ours=ours, why=why)

    return judge


SAME_START = "both suffer from the same value, or the intervals allow it"


def _one_value() -> Outcome:
    return Outcome(judgement="not tested", why="one value of the axis here, so there is no onset")


def _start_text(start: Start, curve: Curve) -> str:
    name = SIDES[curve.side]
    if start.certain is None:
        return f"{name} never {'suffers' if start.possible is None else 'suffers significantly'}"
    text = f"{name} suffers from {curve.at(start.certain)}"
    return text if start.possible == start.certain else f"{text}, or from {curve.at(start.possible or 0.0)}"


def late(curve: Curve, share: float) -> Judge:
    """Whether the side suffers only beyond a share of the axis' range; refuted where it does before."""

    def judge(evidence: Evidence) -> Outcome:
        points = curve.points(evidence)
        if not points:
            return missing(evidence, curve.run)
        if len({curve.x(item) for item in points}) < 3:
            return _one_value()
        start = curve.start(evidence)
        limit = share * curve.x(points[-1])
        ours = _start_text(start, curve)
        if start.certain is None or start.possible is None:
            return Outcome(judgement="undecided", ours=ours, why="it never suffers")
        if start.certain <= limit:
            return Outcome(judgement="refuted", ours=ours)
        if start.possible <= limit:
            return Outcome(judgement="undecided", ours=ours, why="an interval before it includes 0.95")
        return Outcome(judgement="confirmed", ours=ours)

    return judge


FEWEST_STEPS = 5
"""Values of an axis from which a steady loss is told from an abrupt one."""


def manner(curve: Curve, wanted: Literal["steadily", "abruptly"]) -> Judge:
    """Whether the loss grows so over the axis: abruptly where one step makes more than half of it."""

    def judge(evidence: Evidence) -> Outcome:
        points = curve.points(evidence)
        if not points:
            return missing(evidence, curve.run)
        start = curve.start(evidence)
        ours = _start_text(start, curve)
        if start.certain is None:
            return Outcome(judgement="undecided", ours=ours, why="it never suffers")
        if len({curve.x(item) for item in points}) < FEWEST_STEPS:
            why = f"fewer than {FEWEST_STEPS} values of the axis: one step always is a large part of the loss"
            return Outcome(judgement="not tested", ours=ours, why=why)
        worst = min(points, key=lambda item: _kept(item, curve.side).value)
        share = largest_step([_kept(item, curve.side) for item in points[: points.index(worst) + 1]])
        ours += f"; it keeps {_kept(worst, curve.side).value:.2f} at worst"
        if share is None:
            return Outcome(
                judgement="undecided", ours=ours, why="an interval is missing, or includes no loss"
            )
        ours += f", and the largest step is {share.value:.0%} ({share.text('.0%')}) of the loss"
        judgement = above(share, 0.5)
        if wanted == "steadily":
            judgement = opposite(judgement)
        why = "the interval includes half of the loss" if judgement == "undecided" else ""
        return Outcome(judgement=judgement, ours=ours, why=why)

    return judge


def largest_step(way: Sequence[Kept]) -> Interval | None:
    """The largest step between neighbours on the way from 1 (nothing computes, nothing is sent) to the worst,
    relative to the whole loss; the interval allows every value of those of the points. None where one of
    them has none, or the worst one is not surely a loss.
    """
    ends = [(1.0, 1.0)]
    for kept in way:
        if kept.bounds is None:
            return None
        ends.append(kept.bounds)
    values = [1.0, *(kept.value for kept in way)]
    if ends[-1][1] >= 1:
        return None
    value = max(one - other for one, other in pairwise(values)) / (1 - values[-1])
    low = max(one[0] - other[1] for one, other in pairwise(ends)) / (1 - ends[-1][0])
    high = max(one[1] - other[0] for one, other in pairwise(ends)) / (1 - ends[-1][1])
    return Interval(value=value, low=max(0.0, low), high=high)


def opposite(judgement: Judgement) -> Judgement:
    """Of the contrary statement."""
    swapped: dict[Judgement, Judgement] = {"confirmed": "refuted", "refuted": "confirmed"}
    return swapped.get(judgement, judgement)


def less_kept(first: Curve, second: Curve, end: End = "last", names: tuple[str, str] = ("", "")) -> Judge:
    """Whether the first keeps less than the second at that end."""

    def judge(evidence: Evidence) -> Outcome:
        items = [curve.chosen(evidence, end)[:1] for curve in (first, second)]
        for curve, chosen in zip((first, second), items, strict=True):
            if not chosen:
                return missing(evidence, curve.run)
        one, other = _kept(items[0][0], first.side), _kept(items[1][0], second.side)
        ours = f"{names[0]} keeps {kept_text(one)}, {names[1]} {kept_text(other)}"
        judgement = larger(other, one)
        why = "the intervals overlap" if judgement == "undecided" else ""
        return Outcome(judgement=judgement, ours=ours, why=why)

    return judge


def found(
    run: str, start: str | tuple[str, ...], value: str = "verdict", quote: str | tuple[str, ...] = ""
) -> Judge:
    """What the run's own experiment concludes in its findings with that key, under `value`; undecided where
    several disagree. The numbers are those of the same findings, or of those whose key starts with `quote`.
    """

    def judge(evidence: Evidence) -> Outcome:
        findings = [item for item in evidence.findings(run, start) if value in item.values]
        if not findings:
            return missing(evidence, run)
        judgement = unanimous([_verdict(str(item.values[value])) for item in findings])
        quoted = evidence.findings(run, quote) if quote else findings
        texts = [
            CLAIM.split(item.text)[0].strip() for item in quoted if "verdict" not in item.values or not quote
        ]
        return Outcome(judgement=judgement, ours=" ".join(filter(None, texts)))

    return judge


def _verdict(word: str) -> Judgement:
    known: tuple[Judgement, ...] = ("confirmed", "refuted", "undecided", "not tested")
    return next((judgement for judgement in known if judgement == word), "not tested")


def every(*judges: Judge) -> Judge:
    """Confirmed where all are, refuted where any is, not tested where none was; else undecided."""

    def judge(evidence: Evidence) -> Outcome:
        outcomes = [item(evidence) for item in judges]
        ours = "; ".join(dict.fromkeys(item.ours for item in outcomes if item.ours))
        words = {item.judgement for item in outcomes}
        why = next((item.why for item in outcomes if item.judgement in ("undecided", "not tested")), "")
        if "refuted" in words:
            return Outcome(judgement="refuted", ours=ours)
        if words == {"confirmed"} or words == {"not tested"}:
            return Outcome(judgement=words.pop(), ours=ours, why=why)
        return Outcome(judgement="undecided", ours=ours, why=why)

    return judge


def given(condition: Judge, *others: Judge) -> Judge:
    """As `every`; not tested where the condition was not."""

    def judge(evidence: Evidence) -> Outcome:
        first = condition(evidence)
        return first if first.judgement == "not tested" else every(condition, *others)(evidence)

    return judge


def fixed(judgement: Judgement, why: str, ours: str = "") -> Judge:
    """For statements that no run can judge."""

    def judge(evidence: Evidence) -> Outcome:  # noqa: ARG001
        return Outcome(judgement=judgement, why=why, ours=ours)

    return judge


LIMIT = 1 - TOLERANCE
"""Kept below this, with the interval below 1, is a loss."""
