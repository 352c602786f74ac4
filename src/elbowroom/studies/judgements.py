"""Judges of statements: what the intervals of a run say of an effect, of no effect, of onsets and extents.

An absent effect is confirmed only where its cause is present: `unless` is the judge of that cause. Without it
a machine on which nothing happens would confirm that nothing is affected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Concatenate, Literal, ParamSpec

import msgspec

from elbowroom.experiments.common.panels import X, cores_of
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
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Interval, Kept
from elbowroom.studies.evidence import EVERYWHERE, Evidence, NotMeasuredError, PointSelection
from elbowroom.studies.study import Judge, Outcome, outcome

End = Literal["first", "last", "worst", "all"]
P = ParamSpec("P")
Only = Callable[[PointResult], bool]

CLAIM = re.compile(r":? the claim that ", re.IGNORECASE)
"""Where the sentence of a finding turns from numbers to the experiment's own verdict."""

SIDES: dict[SideName, str] = {"comm": "communication", "comp": "computation"}


def rule(judge: Callable[Concatenate[Evidence, P], Outcome]) -> Callable[P, Judge]:
    """Rules are functions of the evidence and of what a statement says: called with the latter, one gives the
    judge of that statement. Where a run has none of the points, the statement is not tested.
    """

    def judge_of(*args: P.args, **kwargs: P.kwargs) -> Judge:
        def decide(evidence: Evidence) -> Outcome:
            try:
                return judge(evidence, *args, **kwargs)
            except NotMeasuredError as error:
                return Outcome(judgement="not tested", why=str(error))

        return decide

    return judge_of


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
        where: PointSelection = EVERYWHERE,
        x: X = cores_of,
        only: Only | None = None,
        at: Callable[[float], str] = cores_text,
        count: Literal["", "fewest", "most"] = "",
    ) -> None:
        self.run, self.side, self.where, self.x, self.only, self.at = run, side, where, x, only, at
        self.count = count

    def points(self, evidence: Evidence) -> list[PointResult]:
        """Those where the side was measured alone and together, by rising x; NotMeasuredError without any."""
        if points := self.select(evidence):
            return points
        raise evidence.missing(self.run)

    def select(self, evidence: Evidence) -> list[PointResult]:
        """The same; empty without any."""
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
        if end == "all":
            return points
        if end == "worst":
            return [min(points, key=lambda item: _kept(item, self.side).value)]
        edge = self.x(points[0] if end == "first" else points[-1])
        return [item for item in points if self.x(item) == edge]


def _kept(item: PointResult, side: SideName) -> Kept:
    kept = kept_of(item, side)
    assert kept is not None
    return kept


def _texts(items: Sequence[PointResult], side: SideName, form: str = ".2f") -> str:
    parts = [
        f"{kept.value:{form}} ({kept.text(form)}) {at_text(item)}"
        for item in items[:3]
        if (kept := kept_of(item, side)) is not None
    ]
    more = f" and {len(items) - 3} more points" if len(items) > 3 else ""
    return f"{SIDES[side]} keeps {'; '.join(parts)}{more}"


@rule
def affected(evidence: Evidence, curve: Curve, end: End = "worst") -> Outcome:
    """Confirmed where the side suffers at that end, refuted where all of its points lose less than 5 %."""
    items = curve.chosen(evidence, end)
    judgement = unanimous([suffers(_kept(item, curve.side)) for item in items])
    if end == "worst":
        points = curve.points(evidence)
        judgement = judge_sides(points, curve.side)[points.index(items[0])]
        if judgement == "refuted":
            judgement = unanimous([suffers(_kept(item, curve.side)) for item in points])
    return outcome(judgement, _texts(items, curve.side), "an interval includes 0.95")


@rule
def unaffected(evidence: Evidence, curve: Curve, unless: Judge | None = None, cause: str = "") -> Outcome:
    """Confirmed where every point loses less than 5 % with its whole interval, refuted where any suffers.
    Undecided where `unless`, the judge of the cause, does not confirm that the cause is there (`cause`).
    """
    points = curve.points(evidence)
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


@rule
def loss(evidence: Evidence, curve: Curve, most: float, least: float = 0.0, end: End = "last") -> Outcome:
    """Confirmed where the side suffers and keeps between `least` and `most` there, with its interval; refuted
    where the whole interval is outside.
    """
    items = curve.chosen(evidence, end)
    ours = _texts(items, curve.side)
    judgement = unanimous([_within(_kept(item, curve.side), least, most) for item in items])
    if judgement == "confirmed":
        happened = unanimous([suffers(_kept(item, curve.side)) for item in items])
        if happened != "confirmed":
            return Outcome(judgement="undecided", ours=ours, why="nothing is lost here")
    return outcome(judgement, ours, "the interval reaches beyond the limits")


def _within(kept: Kept, least: float, most: float) -> Judgement:
    ends = kept.bounds
    if ends is None:
        return "undecided"
    if ends[1] < least or ends[0] > most:
        return "refuted"
    return "confirmed" if least <= ends[0] and ends[1] <= most else "undecided"


@rule
def gains(evidence: Evidence, curve: Curve) -> Outcome:
    """Confirmed where every point keeps more than 1, refuted where any suffers or all keep less than 1."""
    points = curve.points(evidence)
    ours = _texts(points, curve.side, ".3f")
    if suffering(points, curve.side):
        return Outcome(judgement="refuted", ours=ours)
    judgement = unanimous([above(_kept(item, curve.side), 1.0) for item in points])
    return outcome(judgement, ours, "an interval includes 1")


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


@rule
def sooner(evidence: Evidence, first: Curve, second: Curve) -> Outcome:
    """Whether the first curve suffers from a smaller x than the second one does (or the second never)."""
    for curve in (first, second):
        if len({curve.x(item) for item in curve.points(evidence)}) < 2:
            return ONE_VALUE
    one, other = first.start(evidence), second.start(evidence)
    ours = f"{_start_text(one, first)}; {_start_text(other, second)}"
    neither = one.certain is None and other.certain is None
    return outcome(earlier(one, other), ours, "neither suffers" if neither else SAME_START)


SAME_START = "both suffer from the same value, or the intervals allow it"
ONE_VALUE = Outcome(judgement="not tested", why="one value of the axis here, so there is no onset")


def _start_text(start: Start, curve: Curve) -> str:
    name = SIDES[curve.side]
    if start.certain is None:
        return f"{name} never {'suffers' if start.possible is None else 'suffers significantly'}"
    text = f"{name} suffers from {curve.at(start.certain)}"
    return text if start.possible == start.certain else f"{text}, or from {curve.at(start.possible or 0.0)}"


@rule
def late(evidence: Evidence, curve: Curve, share: float) -> Outcome:
    """Whether the side suffers only beyond a share of the axis' range; refuted where it does before."""
    points = curve.points(evidence)
    if len({curve.x(item) for item in points}) < 3:
        return ONE_VALUE
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


FEWEST_STEPS = 5
"""Values of an axis from which a steady loss is told from an abrupt one."""


@rule
def manner(evidence: Evidence, curve: Curve, wanted: Literal["steadily", "abruptly"]) -> Outcome:
    """Whether the loss grows so over the axis: abruptly where one step makes more than half of it."""
    points = curve.points(evidence)
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
        return Outcome(judgement="undecided", ours=ours, why="an interval is missing, or includes no loss")
    ours += f", and the largest step is {share.value:.0%} ({share.text('.0%')}) of the loss"
    judgement = above(share, 0.5)
    if wanted == "steadily":
        judgement = opposite(judgement)
    return outcome(judgement, ours, "the interval includes half of the loss")


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


@rule
def less_kept(
    evidence: Evidence, first: Curve, second: Curve, end: End = "last", names: tuple[str, str] = ("", "")
) -> Outcome:
    """Whether the first keeps less than the second at that end."""
    one, other = (_kept(curve.chosen(evidence, end)[0], curve.side) for curve in (first, second))
    ours = f"{names[0]} keeps {kept_text(one)}, {names[1]} {kept_text(other)}"
    return outcome(larger(other, one), ours, "the intervals overlap")


@rule
def verdict_of_findings(
    evidence: Evidence,
    run: str,
    start: str | tuple[str, ...],
    value: str = "verdict",
    quote: str | tuple[str, ...] = "",
) -> Outcome:
    """What the run's own experiment concludes in its findings with that key, under `value`; undecided where
    several disagree. The numbers are those of the same findings, or of those whose key starts with `quote`.
    """
    findings = [item for item in evidence.findings(run, start) if value in item.values]
    if not findings:
        raise evidence.missing(run)
    judgement = unanimous([_verdict(str(item.values[value])) for item in findings])
    quoted = evidence.findings(run, quote) if quote else findings
    texts = [
        CLAIM.split(item.text)[0].strip() for item in quoted if "verdict" not in item.values or not quote
    ]
    return Outcome(judgement=judgement, ours=" ".join(filter(None, texts)))


def _verdict(word: str) -> Judgement:
    known: tuple[Judgement, ...] = ("confirmed", "refuted", "undecided", "not tested")
    return next((judgement for judgement in known if judgement == word), "not tested")


@rule
def every(evidence: Evidence, *judges: Judge) -> Outcome:
    """Confirmed where all are, refuted where any is, not tested where none was; else undecided."""
    outcomes = [judge(evidence) for judge in judges]
    ours = "; ".join(dict.fromkeys(item.ours for item in outcomes if item.ours))
    words = {item.judgement for item in outcomes}
    why = next((item.why for item in outcomes if item.judgement in ("undecided", "not tested")), "")
    if "refuted" in words:
        return Outcome(judgement="refuted", ours=ours)
    if words == {"confirmed"} or words == {"not tested"}:
        return Outcome(judgement=words.pop(), ours=ours, why=why)
    return Outcome(judgement="undecided", ours=ours, why=why)


@rule
def given(evidence: Evidence, condition: Judge, *others: Judge) -> Outcome:
    """As `every`; not tested where the condition was not."""
    first = condition(evidence)
    return first if first.judgement == "not tested" else every(condition, *others)(evidence)


LIMIT = 1 - TOLERANCE
"""Kept below this, with the interval below 1, is a loss."""
