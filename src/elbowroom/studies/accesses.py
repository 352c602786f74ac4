"""Extraneous memory accesses: what the runs of `ema` say of the statements of Tan and Jarvis (2012)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from elbowroom.draw.numbers import number
from elbowroom.experiments.common.sentences import size_text
from elbowroom.experiments.ema import sides
from elbowroom.experiments.ema.cases import AccessCase, cases
from elbowroom.experiments.ema.findings import nanoseconds, share
from elbowroom.results.judgement import Judgement, above
from elbowroom.stats.interval import Interval
from elbowroom.studies.evidence import Evidence
from elbowroom.studies.judgements import missing
from elbowroom.studies.study import Judge, Outcome

EMA, BEYOND, BYSTANDERS = "accesses", "beyond-the-last-cache", "bystanders"

UNDECIDED = "tau's interval includes 0, or the floor rises no more than without accesses"

FOLLOWS = 0.8
"""Correlation from which the latency follows the misses `very closely`."""


def case_of(evidence: Evidence, run: str, who: str) -> AccessCase | None:
    """The windows of one side's accesses."""
    if run not in evidence.runs:
        return None
    found = cases(evidence.points(run), evidence.runs[run].machine)
    return next((case for case in found if case.who == who), None)


def floor_rises(run: str, who: str) -> Judge:
    """The first observation, of the accesses of one side."""

    def judge(evidence: Evidence) -> Outcome:
        case = case_of(evidence, run, who)
        if case is None:
            return missing(evidence, run)
        seen = sides.first_observation(case.windows, case.regions)
        parts = []
        if seen.trend is not None:
            parts.append(f"Kendall's tau {seen.trend.value:.2f} ({seen.trend.text()})")
        if seen.rise is not None:
            parts.append(f"floor {share(seen.rise)}")
        why = UNDECIDED if seen.verdict == "undecided" else ""
        why = "the messages without accesses changed too" if seen.moved else why
        return Outcome(judgement=seen.verdict, ours="; ".join(parts), why=why)

    return judge


def never_below(run: str, who: str, limits: Sequence[float]) -> Judge:
    """Whether beyond some bytes the average never falls below each limit (us) again, though it did before.

    Undecided where the first size is already above it, and where sizes are too coarse to see the bytes.
    """

    def judge(evidence: Evidence) -> Outcome:
        case = case_of(evidence, run, who)
        if case is None:
            return missing(evidence, run)
        texts, results = [], []
        for limit in limits:
            beyond = sides.never_below(case.windows, limit)
            below = any(
                item.series is not None and min(item.series.after.mean) < limit for item in case.windows
            )
            if beyond is not None:
                texts.append(f"never below {limit:g} us beyond {size_text(beyond)}")
            elif below:
                texts.append(f"still below {limit:g} us at the most bytes")
            else:
                texts.append(f"never below {limit:g} us at any size")
            results.append(beyond is not None)
        if all(results):
            return Outcome(judgement="confirmed", ours="; ".join(texts))
        why = "the average is not on both sides of the limits here, so no limit shows"
        return Outcome(judgement="undecided", ours="; ".join(texts), why=why)

    return judge


def compared(run: str, what: str, *, wanted: bool = True) -> Judge:
    """Whether the receiver's accesses change `what` (a field of sides.Difference) by more than the sender's;
    with `wanted` false, by less.
    """

    def judge(evidence: Evidence) -> Outcome:
        sender, receiver = case_of(evidence, run, "sender"), case_of(evidence, run, "receiver")
        if sender is None or receiver is None:
            return missing(evidence, run)
        difference = sides.difference(sender.windows, receiver.windows, sender.levels)
        if difference is None:
            return missing(evidence, run)
        estimate: Interval | None = getattr(difference, what)
        if estimate is None:
            return Outcome(judgement="not tested", why="the sender's averages do not vary")
        judgement = above(estimate)
        if not wanted:
            judgement = _opposite(judgement)
        text = (
            f"{1 + estimate.value:.3g} times the sender's"
            if what == "variances"
            else f"the receiver's less the sender's: {nanoseconds(estimate)}"
        )
        why = "the interval includes 0" if judgement == "undecided" else ""
        return Outcome(judgement=judgement, ours=text, why=why)

    return judge


def _opposite(judgement: Judgement) -> Judgement:
    swapped: dict[Judgement, Judgement] = {"confirmed": "refuted", "refuted": "confirmed"}
    return swapped.get(judgement, judgement)


MODELLED = "no cache misses are counted here, and a model of the caches cannot confirm itself"


def misses_plateau(run: str) -> Judge:
    """Whether L1's misses reach nine tenths of their most at fewer bytes than L2's, and L2's than L3's, at
    the receiver after its own accesses; only of counted misses.
    """

    def judge(evidence: Evidence) -> Outcome:
        case = case_of(evidence, run, "receiver")
        if case is None:
            return missing(evidence, run)
        lines = sides.miss_lines(case.windows, "receiver")
        shown = [(line.level, line.plateau) for line in lines if line.plateau is not None]
        ours = ", ".join(f"{level} from {size_text(bytes_)}" for level, bytes_ in shown if bytes_)
        if not lines or any(line.source != "measured" for line in lines):
            return Outcome(judgement="not tested", ours=f"{ours} (modelled)" if ours else "", why=MODELLED)
        order = [bytes_ for _, bytes_ in shown if bytes_ is not None]
        if len(order) < 3:
            return Outcome(judgement="undecided", ours=ours, why="not all three levels are exceeded")
        rising = all(first < second for first, second in pairwise(order))
        return Outcome(judgement="confirmed" if rising else "refuted", ours=ours)

    return judge


def latency_follows_misses(run: str, who: str) -> Judge:
    """Whether the lower bound of the latency correlates with the misses of the last level; only of counted
    misses.
    """

    def judge(evidence: Evidence) -> Outcome:
        case = case_of(evidence, run, who)
        if case is None:
            return missing(evidence, run)
        rank = "receiver" if who == "receiver" else "sender"
        lines = [line for line in sides.miss_lines(case.windows, rank) if max(line.lower)]
        if not lines:
            return Outcome(judgement="not tested", why=MODELLED)
        correlation = sides.follows(case.windows, lines[-1])
        ours = "" if correlation is None else f"correlation with {lines[-1].level} {number(correlation, 2)}"
        if lines[-1].source != "measured":
            return Outcome(judgement="not tested", ours=f"{ours} (modelled)", why=MODELLED)
        if correlation is None:
            return Outcome(judgement="undecided", why="too few windows, or nothing varies")
        return Outcome(judgement="confirmed" if correlation >= FOLLOWS else "refuted", ours=ours)

    return judge


def bystanders_raise(evidence: Evidence) -> Outcome:
    """The paper's open question: whether accesses of processes beside the pair raise the floor."""
    case = case_of(evidence, BYSTANDERS, "bystanders")
    if case is None:
        return missing(evidence, BYSTANDERS)
    last = case.regions[-1].over
    if last is None:
        return missing(evidence, BYSTANDERS)
    judgement = above(last, sides.FLAT)
    why = "the interval includes a rise of 5 %" if judgement == "undecided" else ""
    return Outcome(judgement=judgement, ours=f"{case.n} bystanders: floor {share(last)}", why=why)
