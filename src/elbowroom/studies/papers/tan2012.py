"""Tan, Jarvis: Blurring the Computation-Communication Divide, ICCSW 2012: extraneous memory accesses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from elbowroom.draw.figure import Figure
from elbowroom.experiments.common.sentences import size_text
from elbowroom.experiments.ema import sides
from elbowroom.experiments.ema.cases import AccessCase, cases
from elbowroom.experiments.ema.results import LIMITS, TIMES, nanoseconds, share
from elbowroom.machine.topology import Machine
from elbowroom.points.accesses import ExtraneousAccesses
from elbowroom.quantities import number
from elbowroom.results.judgement import above, in_all
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Interval
from elbowroom.studies import needs
from elbowroom.studies.drawings import panels
from elbowroom.studies.evidence import Evidence, of_evidence
from elbowroom.studies.judgements import Only, Start, earlier, opposite, rule
from elbowroom.studies.study import Exhibit, Measurement, Outcome, Statement, Study, outcome

EMA, BEYOND, BYSTANDERS = "accesses", "beyond-the-last-cache", "bystanders"

QUICK = {"access_step": "20000", "window_sizes": "10", "exchanges": "3"}


def beyond_the_last_cache(machine: Machine) -> Mapping[str, str]:
    """Sizes up to four thirds of the last-level cache, as the paper's 4 MB over its 3 MB."""
    most = 4 * (machine.last_level_cache or 3 << 20) // 3
    return {"accesses": f"0,{most}", "access_step": str(max(400, most // 64))}


TIMING = "recv"
"""The duration of MPI_Recv after a barrier, as the paper times it (section 2)."""

MEASUREMENTS = (
    Measurement(
        name=EMA,
        plan="ema",
        # 17 exchanges in each of 6 repetitions are 102 messages of each size; the paper has 100.
        settings={"who": "sender,receiver", "timing": TIMING, "exchanges": "17"},
        quick=QUICK,
        needs=(needs.one_host,),
    ),
    Measurement(
        name=BEYOND,
        plan="ema",
        settings={"who": "sender,receiver", "timing": TIMING, "window_sizes": "7", "exchanges": "2"},
        scaled=beyond_the_last_cache,
        needs=(needs.one_host,),
    ),
    Measurement(
        name=BYSTANDERS,
        plan="ema",
        settings={"who": "bystanders", "bystanders": "processes", "timing": TIMING},
        quick=QUICK,
        needs=(needs.one_host, needs.bystanders),
    ),
)

UNDECIDED = "tau's interval includes 0, or the floor rises no more than without accesses"

FOLLOWS = 0.8
"""Correlation from which the latency follows the misses `very closely`."""

CLEARLY = TIMES[1:]
"""Multiples of the least average after the fewest bytes: limits below which the latency falls, or not."""

NOT_COUNTED = "no cache misses are counted here, and a model of the caches cannot confirm itself"


def case_of(evidence: Evidence, run: str, who: str) -> AccessCase:
    """The windows of one side's accesses; NotMeasuredError without any."""
    if run in evidence.runs:
        for case in cases(evidence.points(run), evidence.runs[run].machine):
            if case.who == who:
                return case
    raise evidence.missing(run)


@rule
def floor_rises(evidence: Evidence, run: str, who: str) -> Outcome:
    """The first observation, of the accesses of one side."""
    case = case_of(evidence, run, who)
    observation = sides.first_observation(case.windows, case.regions)
    parts = []
    if observation.trend is not None:
        parts.append(f"Kendall's tau {observation.trend.value:.2f} ({observation.trend.text()})")
    if observation.rise is not None:
        parts.append(f"floor {share(observation.rise)}")
    why = UNDECIDED if observation.verdict == "undecided" else ""
    why = "the messages without accesses changed too" if observation.moved else why
    return Outcome(judgement=observation.verdict, ours="; ".join(parts), why=why)


@rule
def never_below(evidence: Evidence, run: str, who: str) -> Outcome:
    """Whether there are bytes beyond which the average never falls below a limit again, though it does
    before, and more bytes for a higher limit. The limits are multiples of the least average after the fewest
    bytes: the paper's 1 and 2 us are of one machine, and are named as well.

    Confirmed where the least average after the most bytes is certainly above the higher limit, refuted where
    it certainly still is below the lower one.
    """
    case = case_of(evidence, run, who)
    first, last = sides.floor(case.windows[0]), sides.floor(case.windows[-1])
    if first is None or last is None:
        return Outcome(judgement="undecided", why="too few sizes in a window for an interval")
    limits = {f"{times:g} times the least average at first": times * first.value for times in CLEARLY}
    limits |= {f"{limit:g} us": limit for limit in LIMITS}
    ours = "; ".join(_limit_text(case, limit, name) for name, limit in limits.items())
    if last.low > CLEARLY[-1] * first.high:
        return Outcome(judgement="confirmed", ours=ours)
    if last.high < CLEARLY[0] * first.low:
        return Outcome(judgement="refuted", ours=ours)
    why = "the intervals after the fewest and after the most bytes allow both"
    return Outcome(judgement="undecided", ours=ours, why=why)


def _limit_text(case: AccessCase, limit: float, name: str) -> str:
    beyond = sides.never_below(case.windows, limit)
    if beyond is not None:
        return f"never below {name} beyond {size_text(beyond)}"
    below = any(min(series.after.mean) < limit for series in sides.all_series(case.windows))
    return f"still below {name} at the most bytes" if below else f"never below {name} at any size"


@rule
def compared(evidence: Evidence, run: str, what: str, *, wanted: bool = True) -> Outcome:
    """Whether the receiver's accesses change `what` (a field of sides.Difference) by more than the sender's;
    with `wanted` false, by less.
    """
    sender, receiver = case_of(evidence, run, "sender"), case_of(evidence, run, "receiver")
    difference = sides.difference(sender.windows, receiver.windows, sender.levels)
    if difference is None:
        raise evidence.missing(run)
    estimate: Interval | None = getattr(difference, what)
    if estimate is None:
        return Outcome(judgement="not tested", why="the sender's averages do not vary")
    text = f"the receiver's less the sender's: {nanoseconds(estimate)}"
    if what == "variances":
        text = f"{1 + estimate.value:.3g} times the sender's"
    judgement = above(estimate) if wanted else opposite(above(estimate))
    return outcome(judgement, text, "the interval includes 0")


@rule
def misses_plateau(evidence: Evidence, run: str) -> Outcome:
    """Whether L1's misses reach nine tenths of their most at fewer bytes than L2's, and L2's than L3's, at
    the receiver after its own accesses; only of counted misses.
    """
    case = case_of(evidence, run, "receiver")
    lines = sides.miss_lines(case.windows, "receiver")
    ours = ", ".join(f"{line.level} from {size_text(line.plateau)}" for line in lines if line.plateau)
    if not lines or any(line.source != "measured" for line in lines):
        return Outcome(judgement="not tested", ours=f"{ours} (modelled)" if ours else "", why=NOT_COUNTED)
    if len(lines) < 3:
        return Outcome(judgement="undecided", ours=ours, why="not all three levels are counted")
    judgement = in_all([earlier(first, second) for first, second in pairwise(map(_level_off, lines))])
    return outcome(judgement, ours, "a level does not stay at nine tenths of its most")


def _level_off(line: sides.MissLine) -> Start:
    """From where the misses of a level may have levelled off (they reach nine tenths of their most), and from
    where they certainly have: they do not fall below that again.
    """
    return Start(possible=line.plateau, certain=line.settled)


@rule
def latency_follows_misses(evidence: Evidence, run: str, who: str) -> Outcome:
    """Whether the lower bound of the latency correlates with the misses of the last level; only of counted
    misses.
    """
    case = case_of(evidence, run, who)
    rank = "receiver" if who == "receiver" else "sender"
    lines = [line for line in sides.miss_lines(case.windows, rank) if max(line.lower)]
    if not lines:
        return Outcome(judgement="not tested", why=NOT_COUNTED)
    correlation = sides.follows(case.windows, lines[-1])
    if lines[-1].source != "measured":
        ours = "" if correlation is None else f"correlation {number(correlation.value, 2)} (modelled)"
        return Outcome(judgement="not tested", ours=ours, why=NOT_COUNTED)
    if correlation is None:
        return Outcome(judgement="undecided", why="too few windows, or nothing varies")
    ours = f"correlation with {lines[-1].level} {number(correlation.value, 2)} ({correlation.text()})"
    return outcome(above(correlation, FOLLOWS), ours, f"the interval includes {FOLLOWS}")


@rule
def bystanders_raise(evidence: Evidence) -> Outcome:
    """The paper's open question: whether accesses of processes beside the pair raise the floor."""
    case = case_of(evidence, BYSTANDERS, "bystanders")
    last = case.regions[-1].over
    if last is None:
        raise evidence.missing(BYSTANDERS)
    ours = f"{case.n} bystanders: floor {share(last)}"
    return outcome(above(last, sides.FLAT), ours, "the interval includes a rise of 5 %")


TREND = (
    "confirmed if tau and the rise of the floor are above 0 with their intervals, refuted if the floor "
    "certainly rises less than 5 %"
)
SIGN = "confirmed if the interval of the difference is above 0 in this direction, refuted if below"
COUNTED = (
    "confirmed if each level levels off at fewer bytes than the next one, refuted if at more; only counted "
    "misses decide, modelled ones do not"
)
FOLLOWED = (
    "confirmed if the interval of the correlation is above 0.8, refuted if below; only counted misses decide"
)
LIMIT = (
    "confirmed if the least average after the most bytes is certainly above 1.25 times that after the "
    "fewest, refuted if certainly below 1.1 times"
)


def accesses_of(side: str) -> Only:
    """The windows of one side's accesses."""

    def only(item: PointResult) -> bool:
        return isinstance(item.workload, ExtraneousAccesses) and item.workload.who == side

    return only


@of_evidence
def both_ranges(evidence: Evidence, names: str, side: str = "") -> Sequence[Figure]:
    """The figures of the paper's sizes, then of those beyond the last-level cache."""
    only = accesses_of(side) if side else None
    return tuple(figure for run in (EMA, BEYOND) for figure in panels(run, only=only, names=names)(evidence))


def _rising_floor(side: str) -> tuple[Statement, ...]:
    """The first observation, of one side's accesses."""
    return (
        Statement(
            text=f"the lower bound rises with the bytes that the {side} accesses (first)",
            paper="rises",
            judge=floor_rises(EMA, side),
            criterion=TREND,
        ),
        Statement(
            text="the same beyond the last-level cache",
            paper="4 MB exceed the cache of 3 MB",
            judge=floor_rises(BEYOND, side),
            criterion=TREND,
        ),
    )


def _figure_1(letter: str, side: str, *others: Statement) -> Exhibit:
    return Exhibit(
        label=f"Fig. 1{letter}",
        title=f"Average latencies of MPI_Recv, {side}-side accesses",
        runs=(EMA, BEYOND),
        draw=both_ranges(f"ema-scatter-{side}"),
        section="3.1",
        statements=(*_rising_floor(side), *others),
    )


FIGURE_1 = (
    _figure_1("a", "sender"),
    _figure_1(
        "b",
        "receiver",
        Statement(
            text="beyond some bytes the latency never falls below 1 us, beyond more below 2 us",
            paper="238,400 B and 2,337,000 B",
            judge=never_below(EMA, "receiver"),
            criterion=LIMIT,
        ),
    ),
)


def _figure_2(letter: str, side: str, *others: Statement) -> Exhibit:
    follows = Statement(
        text=f"the latency follows the misses of the last-level cache ({side})",
        paper="very closely",
        judge=latency_follows_misses(EMA, side),
        criterion=FOLLOWED,
        observes="counters",
    )
    return Exhibit(
        label=f"Fig. 2{letter}",
        title=f"Average cache misses of MPI_Recv, {side}-side accesses (lower bounds)",
        runs=(EMA,),
        draw=panels(EMA, only=accesses_of(side), names="ema-misses"),
        section="3.2",
        statements=(*others, follows),
    )


FIGURE_2 = (
    _figure_2(
        "a",
        "receiver",
        Statement(
            text="L1 misses level off first, then L2's; L3's rise last",
            paper="by counters",
            judge=misses_plateau(EMA),
            criterion=COUNTED,
            observes="counters",
        ),
    ),
    _figure_2("b", "sender"),
)


def _difference(text: str, paper: str, what: str, run: str = EMA, *, wanted: bool = True) -> Statement:
    """A statement on the receiver's accesses less the sender's."""
    judge = compared(run, what, wanted=wanted)
    return Statement(text=text, paper=paper, judge=judge, criterion=SIGN)


FIGURE_3 = (
    Exhibit(
        label="Fig. 3a",
        title="Lower bounds of the average latencies of both sides",
        runs=(EMA, BEYOND),
        draw=both_ranges("ema-lower"),
        section="3.3",
        statements=(
            _difference(
                "the receiver's accesses have the lower lower bounds",
                "receiver below sender",
                "lower",
                wanted=False,
            ),
        ),
    ),
    Exhibit(
        label="Fig. 3b",
        title="Upper bounds of the average latencies of both sides",
        runs=(EMA, BEYOND),
        draw=both_ranges("ema-upper"),
        section="3.3",
        statements=(
            _difference("the receiver's accesses have the higher upper bounds", "in many instances", "upper"),
            _difference(
                "the averages after the receiver's accesses vary more",
                "variance 2.95 against 0.6 us²",
                "variances",
            ),
            _difference(
                "the average is higher after the sender's accesses",
                "3.43 against 2.92 us",
                "average",
                wanted=False,
            ),
            _difference(
                "the receiver's accesses are more harmful (second observation)", "concluded", "median"
            ),
            _difference(
                "the same beyond the last-level cache", "4 MB exceed the cache of 3 MB", "median", BEYOND
            ),
            _difference("the receiver's accesses make the latency less predictable", "concluded", "spread"),
        ),
    ),
)

OPEN_QUESTION = Exhibit(
    label="4",
    title="Open question: accesses of processes that do not communicate",
    runs=(BYSTANDERS,),
    draw=panels(BYSTANDERS, names="ema-"),
    section="4",
    statements=(
        Statement(
            text="accesses of processes beside the pair may slow messages down",
            paper="not tested: two cores",
            judge=bystanders_raise(),
            criterion="confirmed if the floor certainly rises by more than 5 %, refuted if by less",
        ),
    ),
)

STUDY = Study(
    name="tan2012",
    paper="Tan, Jarvis: Blurring the Computation-Communication Divide (ICCSW 2012)",
    page="docs/papers/paper-tan2012.md",
    measurements=MEASUREMENTS,
    exhibits=(*FIGURE_1, *FIGURE_2, *FIGURE_3, OPEN_QUESTION),
)
