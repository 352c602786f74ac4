"""Extraneous memory accesses: what the runs of `ema` say of the statements of Tan and Jarvis (2012)."""

from __future__ import annotations

from itertools import pairwise

from elbowroom.experiments.common.sentences import size_text
from elbowroom.experiments.ema import sides
from elbowroom.experiments.ema.cases import AccessCase, cases
from elbowroom.experiments.ema.results import LIMITS, TIMES, nanoseconds, share
from elbowroom.quantities import number
from elbowroom.results.judgement import above, in_all
from elbowroom.stats.interval import Interval
from elbowroom.studies.evidence import Evidence
from elbowroom.studies.judgements import Start, earlier, missing, opposite
from elbowroom.studies.study import Judge, Outcome

EMA, BEYOND, BYSTANDERS = "accesses", "beyond-the-last-cache", "bystanders"

UNDECIDED = "tau's interval includes 0, or the floor rises no more than without accesses"

FOLLOWS = 0.8
"""Correlation from which the latency follows the misses `very closely`."""

CLEARLY = TIMES[1:]
"""Multiples of the least average after the fewest bytes: limits below which the latency falls, or not."""


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


def never_below(run: str, who: str) -> Judge:
    """Whether there are bytes beyond which the average never falls below a limit again, though it does
    before, and more bytes for a higher limit. The limits are multiples of the least average after the fewest
    bytes: the paper's 1 and 2 us are of one machine, and are named as well.

    Confirmed where the least average after the most bytes is certainly above the higher limit, refuted where
    it certainly still is below the lower one.
    """

    def judge(evidence: Evidence) -> Outcome:
        case = case_of(evidence, run, who)
        if case is None:
            return missing(evidence, run)
        first, last = sides.floor(case.windows[0]), sides.floor(case.windows[-1])
        if first is None or last is None:
            return Outcome(judgement="undecided", why="too few sizes in a window for an interval")
        limits = {f"{times:g} times the least average at first": times * first.value for times in CLEARLY}
        ours = "; ".join(
            _limit_text(case, limit, name)
            for name, limit in (limits | {f"{limit:g} us": limit for limit in LIMITS}).items()
        )
        if last.low > CLEARLY[-1] * first.high:
            return Outcome(judgement="confirmed", ours=ours)
        if last.high < CLEARLY[0] * first.low:
            return Outcome(judgement="refuted", ours=ours)
        why = "the intervals after the fewest and after the most bytes allow both"
        return Outcome(judgement="undecided", ours=ours, why=why)

    return judge


def _limit_text(case: AccessCase, limit: float, name: str) -> str:
    beyond = sides.never_below(case.windows, limit)
    if beyond is not None:
        return f"never below {name} beyond {size_text(beyond)}"
    below = any(item.series is not None and min(item.series.after.mean) < limit for item in case.windows)
    return f"still below {name} at the most bytes" if below else f"never below {name} at any size"


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
            judgement = opposite(judgement)
        text = (
            f"{1 + estimate.value:.3g} times the sender's"
            if what == "variances"
            else f"the receiver's less the sender's: {nanoseconds(estimate)}"
        )
        why = "the interval includes 0" if judgement == "undecided" else ""
        return Outcome(judgement=judgement, ours=text, why=why)

    return judge


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
        ours = ", ".join(f"{line.level} from {size_text(line.plateau)}" for line in lines if line.plateau)
        if not lines or any(line.source != "measured" for line in lines):
            return Outcome(judgement="not tested", ours=f"{ours} (modelled)" if ours else "", why=MODELLED)
        if len(lines) < 3:
            return Outcome(judgement="undecided", ours=ours, why="not all three levels are counted")
        judgement = in_all([earlier(first, second) for first, second in pairwise(map(_level_off, lines))])
        why = "a level does not stay at nine tenths of its most" if judgement == "undecided" else ""
        return Outcome(judgement=judgement, ours=ours, why=why)

    return judge


def _level_off(line: sides.MissLine) -> Start:
    """From where the misses of a level may have levelled off (they reach nine tenths of their most), and from
    where they certainly have: they do not fall below that again.
    """
    return Start(possible=line.plateau, certain=line.settled)


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
        if lines[-1].source != "measured":
            ours = "" if correlation is None else f"correlation {number(correlation.value, 2)} (modelled)"
            return Outcome(judgement="not tested", ours=ours, why=MODELLED)
        if correlation is None:
            return Outcome(judgement="undecided", why="too few windows, or nothing varies")
        ours = f"correlation with {lines[-1].level} {number(correlation.value, 2)} ({correlation.text()})"
        judgement = above(correlation, FOLLOWS)
        why = f"the interval includes {FOLLOWS}" if judgement == "undecided" else ""
        return Outcome(judgement=judgement, ours=ours, why=why)

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
