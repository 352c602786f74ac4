"""How sure a run is that there is interference, how much it is, and which loss the run would have seen.

The grade rests on one point: the one whose loss is significant among all sides of the run (family.py), the
main point first, else the one that loses most; or the main point, where no loss is. A run tests dozens of
sides, and the one that seems to lose most of them loses by chance.
"""

from __future__ import annotations

import math
from collections.abc import Sequence, Set

import msgspec

from elbowroom.plan.kernels import kernel_name
from elbowroom.quantities import format_size, percent, plural, with_span
from elbowroom.results.curves import TOLERANCE, affected
from elbowroom.results.family import MAIN_SHARE, SIDES, SideName, chance_text, main_point, side_chances
from elbowroom.results.result import Grade, LostShare, PointResult, Verdict
from elbowroom.stats.interval import Kept
from elbowroom.stats.signed_ranks import CONFIDENCE

LIKELY = 0.2
"""The corrected probability up to which a loss is likely. The main point's sides then need 5 % each, as a
test of one side alone does.
"""
SMALL = 0.10
"""A run that would not have seen a loss of more than this does not say no: it only gives a bound."""
BOUND = 0.50
"""The largest bound that is worth saying."""
POWER = 0.80
"""How often a loss of the smallest visible size is assessment."""
NARROW = 0.02
"""Intervals narrower than this are written with a decimal."""
FEW = 3
"""Repetitions: of fewer there is no bound."""
ANSWER = "Yes, there is interference here"
"""How the answer of a run that can be trusted begins."""
NOT_TRUSTED = "The run is not trusted:"
"""What the first reason against a run follows in its verdict."""
NAMES: dict[SideName, str] = {"comp": "computation", "comm": "communication"}


class GradedPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The grade of a run and the point that it rests on; `losing` are its sides that lose. `doubtful`: of how
    many sides another one seems to lose, though no loss is likely; 0 if none does.
    """

    grade: Grade
    point: PointResult
    losing: tuple[SideName, ...] = ()
    visible: float | None = None
    doubtful: int = 0

    def loss(self, name: SideName) -> LostShare | None:
        """What a side of the point loses."""
        kept = _kept(self.point, name)
        return None if kept is None else loss_of(kept)

    @property
    def bound(self) -> float | None:
        """What neither side loses more than; None where a side has no interval."""
        highs = [loss.high for name in SIDES if (loss := self.loss(name)) is not None]
        known = [high for high in highs if high is not None]
        return max(known) if known and len(known) == len(highs) else None

    def doubted(self) -> GradedPoint:
        """The same of a run that is not trusted."""
        return msgspec.structs.replace(self, grade=doubted(self.grade))


def doubted(grade: Grade) -> Grade:
    """The grade of a run that is not trusted: nothing is certain."""
    weaker: dict[Grade, Grade] = {"yes": "likely", "no": "at most"}
    return weaker.get(grade, grade)


def loss_of(kept: Kept) -> LostShare:
    """1 - kept, with the interval of signed ranks, else with Student's of the logarithms."""
    ends = kept.bounds or _student(kept)
    low, high = (None, None) if ends is None else (1 - ends[1], 1 - ends[0])
    return LostShare(loss=1 - kept.value, low=low, high=high)


def has_bound(kept: Kept | None) -> bool:
    """Whether repetitions bound what is lost; nothing is lost of what was not measured."""
    return kept is None or loss_of(kept).bounds is not None


def _has_scatter(kept: Kept | None) -> bool:
    """Whether repetitions show how far a value varies."""
    if kept is None or kept.bounds is not None:
        return kept is not None
    return kept.log is not msgspec.UNSET and kept.log.error is not None


def _student(kept: Kept) -> tuple[float, float] | None:
    if kept.log is msgspec.UNSET or kept.log.error is None or kept.log.count < FEW:
        return None
    from scipy.special import stdtrit

    half = float(stdtrit(kept.log.count - 1, (1 + CONFIDENCE) / 2)) * kept.log.error
    return math.exp(kept.log.mean - half), math.exp(kept.log.mean + half)


def assess(points: Sequence[PointResult]) -> GradedPoint | None:
    """The grade of points as of a quiet machine; None if nothing was measured both alone and together."""
    planned = [item for item in points if item.role != "control" and item.status != "failed"]
    main = main_point(planned)
    if main is None:
        return None
    chances = side_chances(planned)
    known = {(item.id, side) for item in planned for side in SIDES if _has_scatter(_kept(item, side))}
    levels: dict[Grade, float] = {"yes": 1 - CONFIDENCE, "likely": LIKELY}
    for grade, level in levels.items():
        if losing := {key for key, p in chances.items() if p <= level and key in known}:
            shown = _shown(planned, main, losing)
            return GradedPoint(
                grade=grade,
                point=shown,
                losing=tuple(side for side in SIDES if (shown.id, side) in losing),
                visible=visible_loss(shown, len(chances), main=shown is main),
            )
    visible = visible_loss(main, len(chances), main=True)
    kepts = [kept for item in planned for name in SIDES if (kept := _kept(item, name))]
    doubtful = len(kepts) if any(map(affected, kepts)) else 0
    assessment = GradedPoint(grade="cannot say", point=main, visible=visible, doubtful=doubtful)
    return msgspec.structs.replace(assessment, grade=_bounded(assessment))


def _shown(
    points: Sequence[PointResult], main: PointResult, losing: Set[tuple[str, SideName]]
) -> PointResult:
    """The main point if it loses, else the point whose losing side loses most."""
    if any((main.id, side) in losing for side in SIDES):
        return main

    def least(item: PointResult) -> float:
        kepts = [_kept(item, side) for side in SIDES if (item.id, side) in losing]
        return min((kept.value for kept in kepts if kept is not None), default=math.inf)

    pairs = [
        (item, kept.value)
        for item in points
        for side in SIDES
        if (item.id, side) in losing and (kept := _kept(item, side))
    ]
    return min(pairs, key=lambda pair: pair[1])[0]


def _bounded(assessment: GradedPoint) -> Grade:
    """The grade where no loss is likely: `no` also needs every other side to look whole by itself."""
    bound, visible = assessment.bound, assessment.visible
    if bound is None or bound > BOUND:
        return "cannot say"
    certain = not assessment.doubtful and visible is not None and bound < visible <= SMALL
    return "no" if certain else "at most"


def visible_loss(point: PointResult, sides: int, *, main: bool) -> float | None:
    """The smallest loss that is `yes` in POWER of the cases with the scatter of this point's sides, which are
    among so many; None where a side's scatter is not known.
    """
    from scipy.special import stdtrit

    logs = [kept.log for name in SIDES if (kept := _kept(point, name)) is not None]
    others = sides - len(logs)
    share = (MAIN_SHARE if others else 1.0) / len(logs) if main else (1 - MAIN_SHARE) / others
    quantiles = 1 - (1 - CONFIDENCE) * share / 2, POWER
    losses = [TOLERANCE]
    for log in logs:
        if log is msgspec.UNSET or log.error is None or log.count < FEW:
            return None
        needed = sum(float(stdtrit(log.count - 1, quantile)) for quantile in quantiles)
        losses.append(-math.expm1(-needed * log.error))
    return max(losses)


def graded(verdict: Verdict, assessment: GradedPoint | None) -> Verdict:
    """The verdict with its grade. Findings that rest on something else than what a side loses count as they
    are: what they show is `yes`, and where nothing was measured both alone and together, quiet is `no`.
    """
    grade: Grade = "cannot say" if assessment is None else assessment.grade
    if verdict.interference and grade != "likely" and (assessment is None or assessment.bound is not None):
        grade = "yes"
    elif assessment is None and verdict.interference is False and verdict.trusted:
        grade = "no"
    if not verdict.trusted:
        grade = doubted(grade)
    if assessment is None:
        return msgspec.structs.replace(verdict, grade=grade)
    return msgspec.structs.replace(
        verdict,
        grade=grade,
        comp=assessment.loss("comp"),
        comm=assessment.loss("comm"),
        visible=assessment.visible,
        point=assessment.point.id,
    )


def sentence(assessment: GradedPoint) -> str:
    """The grade in one or two sentences, with what each side loses."""
    shown, visible = f"{_losses(assessment)}.", assessment.visible
    reach = "" if visible is None else f" This run would have seen a loss of {_percent(visible)} or more."
    doubt = f" {chance_text(assessment.doubtful)}" if assessment.doubtful else ""
    losing = [f"the {NAMES[side]} suffers" for side in assessment.losing]
    who = losing[0] if len(losing) == 1 else "both sides suffer"
    match assessment.grade:
        case "yes":
            return f"{ANSWER}, {who}: {shown}"
        case "likely":
            return f"Interference is likely here, {who}: {shown}{reach}"
        case "no":
            return f"No interference of {_percent(visible or 0)} or more was measured here: {shown}"
        case "at most":
            return (
                f"Neither side loses more than {_percent(assessment.bound or 0)} here: {shown}{reach}{doubt}"
            )
    few = f" Fewer than {FEW} repetitions give no bound either."
    return f"This run cannot say whether there is interference: {shown}{reach + doubt if reach else few}"


def _losses(assessment: GradedPoint) -> str:
    """What the point is, and what each of its sides loses."""
    point = assessment.point
    where = f" on {plural(point.n, 'computing core')}" if point.n else ""
    beside = f" beside {format_size(point.size)} messages" if point.size else ""
    head = f"{point.workload.title or kernel_name(point.kernel)}{where}{beside}"
    second = "communication"
    if " beside " in point.workload.title:
        head, second = point.workload.title, "other side"
    comp, comm = assessment.loss("comp"), assessment.loss("comm")
    if comp is None:
        return f"{head}: the {second} loses {loss_text(comm)}"
    other = "" if comm is None else f", the {second} {loss_text(comm)}"
    return f"{head} loses {loss_text(comp)}{other}"


def loss_text(loss: LostShare | None) -> str:
    """`31 % (24 to 38 %)`, with a decimal where the interval is narrow; a negative loss is a gain."""
    if loss is None:
        return "an unknown share"
    if loss.bounds is None:
        return f"{_percent(loss.loss)} (no interval)"
    low, high = loss.bounds
    digits = 0 if high - low >= NARROW else 1
    value, first, last = (percent(share, digits=digits) for share in (loss.loss, low, high))
    return with_span(value, first.removesuffix(" %"), last)


def _percent(share: float) -> str:
    return percent(share, digits=0)


def _kept(item: PointResult, name: SideName) -> Kept | None:
    return (item.comp if name == "comp" else item.comm).kept
