"""Whether the machine was quiet enough to trust a run (docs/design/method.md, rule 15), and its verdict.

Drift: baselines measured again at the end of the run differ from those of the run.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import msgspec

from elbowroom.plan.kernels import NONE
from elbowroom.results.family import is_uncertain
from elbowroom.results.grades import NOT_TRUSTED, assess, graded, sentence
from elbowroom.results.result import Finding, PointResult, Verdict
from elbowroom.stats.interval import Side, Summary
from elbowroom.stats.signed_ranks import FEWEST

if TYPE_CHECKING:
    from elbowroom.stats.summary import Samples


QUIET_KEPT = 0.97  # what the register-only kernel must keep beside the communication
WIDE = 0.06  # an interval wider than this around less than QUIET_KEPT does not show quietness
REPEATABLE = 0.10  # (d9 - d1) / median of the register-only kernel alone
STEAL = 0.02  # share of CPU time taken by the hypervisor
OTHERS = 0.25  # cores kept busy by other processes
COMMUNICATION_ONLY = (
    "Nothing computed, so this says nothing about interference; without a control only the load of other "
    "processes shows whether the machine was quiet."
)
NARROW = 0.05  # half an interval of `kept`; so narrow, repetitions agree although windows were unsteady
STAND_IN = "stand_in"
"""Flag of points that a stand-in for a driver answered."""
UNSURE = 0.25  # share of points not stable, failed or drifting


class Observations(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of the rest of the machine; None is unknown and is never held against the run.

    `others_*`: cores kept busy by other processes before, while and after measuring; `steal_share`: CPU time
    the hypervisor took, as a share of the measured time of all cores.
    """

    others_before: float | None = None
    others_during: float | None = None
    others_after: float | None = None
    steal_share: float | None = None


def controls(results: Sequence[PointResult]) -> list[PointResult]:
    """Points with the register-only kernel beside the largest message at the largest n."""
    marked = [result for result in results if result.role == "control"]
    primes = [result for result in results if result.kernel == "prime"]
    if not primes:
        return marked
    most = max(result.n for result in results)
    largest = max(result.size for result in results)
    return [
        result
        for result in primes
        if result.role == "control" or (result.n == most and result.size == largest)
    ]


def judge(
    results: Sequence[PointResult], observations: Observations | None = None
) -> tuple[bool, tuple[str, ...]]:
    """(trusted, reasons): every reason is one plain sentence; no reason means trusted."""
    reasons = [
        *_stand_in_reasons(results),
        *_control_reasons(results),
        *_load_reasons(observations or Observations()),
        *_sample_reasons(results),
    ]
    return not reasons, tuple(reasons)


def _stand_in_reasons(results: Sequence[PointResult]) -> list[str]:
    if not any(STAND_IN in result.flags for result in results):
        return []
    return ["A stand-in for the GPU's driver answered: its rates are planted, and nothing was measured."]


def _control_reasons(results: Sequence[PointResult]) -> list[str]:
    measured = [result for result in controls(results) if result.comp.kept is not None]
    if not measured and _communication_only(results):
        return []
    if not measured:
        return ["No register-only control kernel was measured, so nothing shows that the machine was quiet."]
    reasons = []
    for result in measured:
        kept, alone = result.comp.kept, result.comp.alone
        if kept is None or alone is None:
            continue
        text = f"kept {kept.value:.2f} ({kept.text()})"
        if kept.below(QUIET_KEPT):
            reasons.append(
                f"Prime counting, which uses no memory, {text} beside the communication; a "
                "quiet machine keeps "
                f"{QUIET_KEPT} or more."
            )
        elif kept.value < QUIET_KEPT and (kept.width is None or kept.width > WIDE):
            reasons.append(
                f"Prime counting {text} beside the communication: too uncertain to call the machine quiet."
            )
        spread = (alone.d9 - alone.d1) / alone.median if alone.median else 0.0
        if spread > REPEATABLE:
            reasons.append(
                f"Prime counting alone varied by {spread:.0%} between its first and last "
                "decile; a quiet machine stays "
                f"within {REPEATABLE:.0%}."
            )
    return list(dict.fromkeys(reasons))


def _load_reasons(observations: Observations) -> list[str]:
    reasons = []
    for when, busy in (
        ("before", observations.others_before),
        ("during", observations.others_during),
        ("after", observations.others_after),
    ):
        if busy is not None and busy > OTHERS:
            reasons.append(f"Other processes kept {busy:.1f} cores busy {when} the run.")
    if observations.steal_share is not None and observations.steal_share > STEAL:
        reasons.append(f"The hypervisor took {observations.steal_share:.1%} of the CPU time (steal).")
    return reasons


def _sample_reasons(results: Sequence[PointResult]) -> list[str]:
    if not results:
        return ["No point was measured."]
    reasons = []
    without = sum(any(_lacks_interval(side) for side in (item.comp, item.comm)) for item in results)
    if without:
        reasons.append(
            f"{without} of {len(results)} points rest on fewer than {FEWEST} repetitions, which is too few "
            f"for an interval (--repeat {FEWEST})."
        )
    planned = [result for result in results if result.role != "control"]
    failed = [result for result in planned if result.status == "failed"]
    if len(failed) > UNSURE * len(planned):
        reasons.append(f"{len(failed)} of {len(planned)} points failed; the first one: {failed[0].reason}.")
    for what, number in (
        (
            f"found no steady state, and what they kept is uncertain by more than {NARROW:.2f}",
            sum(result.status == "not_stable" and _wide(result) for result in results),
        ),
        ("drifted between the run and its end", sum(_drifted(result) for result in results)),
    ):
        if number > max(1, UNSURE * len(results)) or number == len(results):
            reasons.append(f"{number} of {len(results)} points {what}.")
    return reasons


def _wide(result: PointResult) -> bool:
    """Whether what a side kept is too uncertain to make up for windows that found no steady state."""
    widths = [side.kept.width for side in (result.comp, result.comm) if side.kept is not None]
    return not widths or any(width is None or width > 2 * NARROW for width in widths)


def _lacks_interval(side: Side) -> bool:
    """Whether the side was measured in too few repetitions for intervals."""
    values = [value for value in (side.alone, side.together, side.kept) if value is not None]
    return any(value.bounds is None for value in values)


def _drifted(result: PointResult) -> bool:
    return any(flag.startswith("drift") for flag in result.flags)


def imported(findings: Sequence[Finding], results: Sequence[PointResult]) -> Verdict:
    """What imported values say: whether their machine was quiet is unknown, which is no trust."""
    text, interference = _summary(findings)
    reason = (
        "The values were imported: one for each bandwidth, without repetitions, a control, or the state of "
        "the machine."
    )
    judged = Verdict(
        trusted=False,
        text=f"Imported values; whether the machine was quiet is unknown. What they show: {text}",
        reasons=(reason,),
        interference=interference,
        findings=tuple(findings),
    )
    return graded(judged, assess(results))


def verdict(
    findings: Sequence[Finding],
    results: Sequence[PointResult],
    observations: Observations | None = None,
    shortage: str = "",
) -> Verdict:
    """What the run says: its grade in a sentence, and why it is not trusted if it is not. Where nothing was
    measured alone and together, or a finding shows interference that no side's loss does, the text is that
    finding's. A control is never the answer.

    `interference`: True where a finding shows it, False where findings show quiet, None where neither shows;
    tentative too where the run is not trusted. `shortage`: why points are missing, if they are.
    """
    controls_only = {result.id for result in results if result.role == "control"}
    trusted, reasons = judge(results, observations)
    if (results or shortage) and not _measured(results):
        failed = [reason for reason in reasons if "points failed" in reason]
        if shortage and not failed:
            text = f"No verdict: {shortage}"
            return Verdict(trusted=False, text=text, reasons=(shortage,), findings=tuple(findings))
        lost = failed or ["the plan has only controls."]
        text = f"Nothing was measured: {lost[0]}"
        return Verdict(trusted=False, text=text, reasons=reasons or (text,), findings=tuple(findings))
    assessment = assess(results)
    sure = assessment is not None and assessment.grade == "yes"
    if assessment is not None:
        answer = sentence(assessment)
        assessment = assessment if trusted else assessment.doubted()
        # The finding of the answer words the grade.
        findings = [
            msgspec.structs.replace(item, text=sentence(assessment)) if item.text == answer else item
            for item in findings
        ]
    answers = [item for item in findings if not item.points or not controls_only.issuperset(item.points)]
    text, interference = _summary(answers, results)
    if assessment is not None and assessment.grade in ("yes", "likely", "cannot say"):
        interference = sure or interference or None
    if assessment is not None and (
        assessment.grade in ("yes", "likely") or assessment.bound is None or interference is not True
    ):
        text = sentence(assessment)
        if not trusted:
            text += f" {NOT_TRUSTED} {reasons[0]}"
    elif not trusted:
        text = f"{text} {NOT_TRUSTED} {reasons[0]}"
    judged = Verdict(
        trusted=trusted, text=text, reasons=reasons, interference=interference, findings=tuple(findings)
    )
    return graded(judged, assessment)


def _measured(results: Sequence[PointResult]) -> bool:
    """Whether anything stands of what was asked for; controls are not."""
    return any(result.role != "control" and result.status != "failed" for result in results)


def _communication_only(results: Sequence[PointResult]) -> bool:
    """Whether nothing computed anywhere, so that no control could be measured."""
    return bool(results) and all(result.kernel == NONE for result in results)


def _summary(findings: Sequence[Finding], results: Sequence[PointResult] = ()) -> tuple[str, bool | None]:
    """The sentence of the first finding that says something, and whether any shows interference."""
    if _communication_only(results):
        alone = next((finding.text for finding in findings if finding.level == "note"), "")
        return f"{alone} {COMMUNICATION_ONLY}".strip(), None
    levels = {finding.level for finding in findings}
    quiet = "quiet" in levels and not any(map(is_uncertain, findings))
    interference = True if "interference" in levels else (False if quiet else None)
    says = (item for item in findings if item.level in ("interference", "quiet") or is_uncertain(item))
    text = next((item.text for item in says), "")
    return text or "These points allow no statement about interference.", interference


Name = Literal["computation", "communication"]


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """One side alone: during the run (`alone`), and the median of the repetition at its end (`closing`)."""

    point: str
    side: Name
    alone: Summary
    closing: float

    @property
    def relative(self) -> float:
        """closing/alone of the medians, minus 1; infinite where alone is zero."""
        return self.closing / self.alone.median - 1 if self.alone.median else float("inf")

    @property
    def outside(self) -> bool:
        """Whether the end of the run lies outside d1 to d9 of the run."""
        return not self.alone.d1 <= self.closing <= self.alone.d9


def drifts(results: Sequence[PointResult], samples: Samples) -> tuple[Drift, ...]:
    """One drift per side that was measured again, in the order of `results`; void samples are left out.

    `samples.point` holds indices into `results`.
    """
    again: dict[tuple[int, str], list[float]] = {}
    rows = zip(samples.closing, samples.status, samples.point, samples.side, samples.value, strict=True)
    for closing, status, point, side, value in rows:
        if closing and status != "void" and math.isfinite(value):
            again.setdefault((int(point), side), []).append(float(value))
    result_drifts = []
    names: tuple[Name, Name] = ("computation", "communication")
    for index, result in enumerate(results):
        for name in names:
            key, alone = ("comp", result.comp.alone) if name == "computation" else ("comm", result.comm.alone)
            values = again.get((index, key))
            if alone is not None and values:
                result_drifts.append(
                    Drift(point=result.id, side=name, alone=alone, closing=statistics.median(values))
                )
    return tuple(result_drifts)
