"""Frequencies and communication: section 3 of Denis et al. (2021), 5.2 of Swartvagher's thesis (2022)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from statistics import fmean

import msgspec
import numpy as np

from elbowroom.experiments.common.sentences import cores_text
from elbowroom.quantities import number, plural
from elbowroom.results.judgement import Judgement, above, change, larger, near, unanimous
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Interval, Summary, WithInterval
from elbowroom.studies import needs
from elbowroom.studies.drawings import constant_frequencies, durations, panels
from elbowroom.studies.evidence import Evidence, PointSelection
from elbowroom.studies.judgements import LIMIT, Curve, affected, every, gains, given, rule, unaffected
from elbowroom.studies.study import Exhibit, Measurement, Outcome, Statement, outcome

CONSTANT, PRIME, AVX = "constant-frequencies", "prime-counting", "avx512"

MOVED = 0.02
"""A change of frequency (docs/design/method.md, rule 14)."""

SIZES = "4,64,1KiB,16KiB,256KiB,4MiB,64MB"

MEASUREMENTS = (
    Measurement(
        name=CONSTANT,
        plan="frequency",
        settings={"kernels": "none", "sizes": SIZES},
        quick={"sizes": "4,64MB"},
        needs=(needs.some_frequencies,),
    ),
    Measurement(
        name=PRIME,
        plan="frequency",
        settings={"kernels": "prime", "n": "every", "sizes": "4,64MB"},
        quick={"n": "few,half,all"},
    ),
    Measurement(
        name=AVX,
        plan="frequency",
        settings={"kernels": "fma", "n": "every", "sizes": "4"},
        quick={"n": "few,half,all"},
    ),
)

READABLE = "no frequency of these cores can be read here"

SMALL, LARGE = PointSelection(metric="latency"), PointSelection(metric="bandwidth")


def _alone(points: Sequence[PointResult], key: str) -> tuple[Summary, Summary] | None:
    """The network alone at the lowest and at the highest constant frequency of a kind, with the other kind as
    high as it was held.
    """
    other = "uncore_khz" if key == "core_khz" else "core_khz"
    chosen = [item for item in points if getattr(item, key) and item.comm.alone is not None]
    if not chosen:
        return None
    highest = max(getattr(item, other) or 0 for item in chosen)
    chosen = [item for item in chosen if (getattr(item, other) or 0) == highest]
    low = min(chosen, key=lambda item: getattr(item, key)).comm.alone
    high = max(chosen, key=lambda item: getattr(item, key)).comm.alone
    return None if low is high or low is None or high is None else (low, high)


@rule
def constant(
    evidence: Evidence, key: str, where: PointSelection, judged: Callable[[Summary, Summary], Judgement]
) -> Outcome:
    """Judges the network alone at the lowest and at the highest constant frequency of a kind."""
    points = evidence.points(CONSTANT, where)
    sizes = {item.size for item in points}
    edge = (min if where.metric == "latency" else max)(sizes, default=0)
    ends = _alone([item for item in points if item.size == edge], key)
    if ends is None:
        raise evidence.missing(CONSTANT)
    low, high = ends
    ours = f"{low.median:.4g} {low.unit} at the lowest, {high.median:.4g} at the highest frequency"
    return outcome(judged(low, high), ours, "the intervals overlap")


def _greater(low: Summary, high: Summary) -> Judgement:
    return larger(high, low)


def _same(low: Summary, high: Summary) -> Judgement:
    """Confirmed where the whole intervals differ by less than 10 %, refuted where they are further apart."""
    return near(change(high, low), 0.1)


BATCHES = 8
"""Parts of a trace whose means are taken as independent samples: neighbouring samples are not."""


class Frequency(WithInterval, msgspec.Struct, frozen=True, kw_only=True):
    """Mean frequency of some cores during a phase, MHz; no interval of fewer than BATCHES samples."""

    mhz: float
    low: float | None = None
    high: float | None = None


def frequency(item: PointResult, phase: str, *roles: str) -> Frequency | None:
    """That of the cores with these roles (all cores without any) in a phase; None where none was readable."""
    traces = [
        trace.khz
        for trace in item.payload.traces
        if trace.phase == phase
        and trace.khz
        and trace.role != "uncore"
        and (not roles or trace.role in roles)
    ]
    if not traces:
        return None
    middle = fmean(fmean(khz) for khz in traces) / 1e3
    if min(map(len, traces)) < BATCHES:
        return Frequency(mhz=middle)
    batches = [np.array([part.mean() for part in np.array_split(np.asarray(khz), BATCHES)]) for khz in traces]
    means = np.mean(batches, axis=0) / 1e3
    half = STUDENT_95 * float(means.std(ddof=1)) / math.sqrt(BATCHES)
    return Frequency(mhz=middle, low=middle - half, high=middle + half)


CORES = ("communication", "computing", "idle")

STUDENT_95 = 2.365
"""Quantile of Student's t for a 95 % interval of BATCHES samples (7 degrees of freedom)."""


def _ratio(new: Frequency | None, old: Frequency | None) -> Interval | None:
    """new / old - 1; None where one has no interval."""
    if new is None or old is None or new.bounds is None or old.bounds is None or not old.above(0.0):
        return None
    low, high = new.bounds[0] / old.bounds[1] - 1, new.bounds[1] / old.bounds[0] - 1
    return Interval(value=new.mhz / old.mhz - 1, low=low, high=high)


@rule
def raised(evidence: Evidence, run: str) -> Outcome:
    """Whether the cores of a node have a higher frequency, on average, while others compute than during
    communication alone. (The frequency of the communication core is the same in the paper.)
    """
    return _compared(evidence, run, "all cores", (), lambda moved: above(moved, MOVED))


@rule
def stable(evidence: Evidence, run: str) -> Outcome:
    """Whether the communication core keeps its frequency, while that of some computing cores differs from
    what it is when they sleep: where nothing changed, nothing is shown.
    """
    roles = ("communication",)
    kept = _compared(evidence, run, "communication core", roles, lambda moved: near(moved, MOVED))
    if kept.judgement != "confirmed":
        return kept
    for item in _traced(evidence, run):
        moved = _ratio(frequency(item, "AB", "computing"), frequency(item, "S", "idle"))
        if near(moved, MOVED) == "refuted":
            return kept
    why = "no computing core changed its frequency, so nothing could change that of others"
    return Outcome(judgement="undecided", ours=kept.ours, why=why)


def _traced(evidence: Evidence, run: str) -> list[PointResult]:
    return [item for item in evidence.points(run) if item.payload.traces and item.n]


def _compared(
    evidence: Evidence, run: str, who: str, roles: tuple[str, ...], judged: Callable[[Interval], Judgement]
) -> Outcome:
    """Judges how the frequency of some cores beside computation differs from that during communication alone,
    at every number of computing cores.
    """
    texts, results = [], list[Judgement]()
    for item in _traced(evidence, run):
        alone, together = frequency(item, "B", *roles), frequency(item, "AB", *roles)
        if alone is not None and together is not None:
            texts.append(f"{alone.mhz:.0f} and {together.mhz:.0f} MHz with {cores_text(item.n)}")
            moved = _ratio(together, alone)
            results.append("undecided" if moved is None else judged(moved))
    if not results:
        return _not_tested(evidence, run, READABLE)
    why = "an interval includes a change of 2 %, or it depends on the cores"
    return outcome(unanimous(results), f"{who}: {'; '.join(texts[:3])}", why)


def _not_tested(evidence: Evidence, run: str, why: str) -> Outcome:
    """For this reason where the run has points, else for that of the run."""
    return Outcome(judgement="not tested", why=why if evidence.points(run) else evidence.reason(run))


@rule
def slower_with_more(evidence: Evidence, run: str) -> Outcome:
    """Whether each core computes less alone the more of them compute (the paper: longer durations)."""
    points = [item for item in evidence.points(run) if item.n and item.comp.alone is not None]
    if not points:
        raise evidence.missing(run)
    few, many = min(points, key=lambda item: item.n), max(reversed(points), key=lambda item: item.n)
    if few.n == many.n:
        return Outcome(judgement="not tested", why="one number of computing cores here")
    first, last = _each(few), _each(many)
    ours = f"{number(first.median)} {first.unit} per core with {plural(few.n, 'computing core')}"
    ours += f", {number(last.median)} with {many.n}"
    return outcome(larger(first, last), ours, "the intervals overlap")


def _each(item: PointResult) -> Summary:
    summary = item.comp.alone
    assert summary is not None
    low, high = summary.ends(summary.median)
    return Summary(
        median=summary.median / item.n,
        d1=summary.d1 / item.n,
        d9=summary.d9 / item.n,
        low=low / item.n,
        high=high / item.n,
        count=summary.count,
        unit=summary.unit,
    )


@rule
def slows_on_the_communicating_socket(evidence: Evidence, run: str) -> Outcome:
    """Whether computation suffers beside large messages once its cores include some of the communicating
    socket, and neither without them nor beside small messages. It is compared with the same computation
    alone: more cores are slower without any message, too, where turbo depends on their number.
    """
    sockets = {core.number: core.package for core in evidence.machine.cores}

    def shares(item: PointResult) -> bool:
        return sockets.get(item.comm_core) in {sockets.get(core) for core in item.comp_cores}

    inside = Curve(run, "comp", LARGE, only=shares)
    outside = Curve(run, "comp", LARGE, only=lambda item: not shares(item))
    if not outside.select(evidence):
        return _not_tested(evidence, run, "no computation avoids the communicating socket")
    small = Curve(run, "comp", SMALL)
    return every(affected(inside, "last"), unaffected(outside), unaffected(small))(evidence)


HIGHER = (
    "confirmed if the intervals at the lowest and highest frequency do not overlap and differ in this "
    "direction"
)
EQUAL = "confirmed if the values differ by less than 10 %, with the whole interval; refuted if by more"
READ = (
    "confirmed if it holds, with its interval, at every number of cores whose frequencies can be read (2 % "
    "is a change), refuted if it holds at none"
)
NOT_WORSE = "refuted if the communication suffers anywhere, confirmed if every interval is above 0.95"
BETTER = "confirmed if every interval is above 1, refuted if the communication suffers anywhere"
SLOWED = (
    "confirmed if it keeps less than 0.95 beside 64 MB with most cores, 0.95 or more without cores of the "
    "communicating socket, and beside 4 B; refuted if not; turbo is in both of what is compared"
)
SLOWER = "confirmed if a core's rate with the most cores is below that with the fewest, intervals apart"

NETWORK = (needs.network,)
CORE, UNCORE = (*NETWORK, needs.core_frequencies), (*NETWORK, needs.uncore_frequencies)

CONSTANT_LATENCY = Exhibit(
    label="Fig. 1a",
    title="Impact of constant frequencies on network latency",
    runs=(CONSTANT,),
    draw=constant_frequencies(CONSTANT, "latency"),
    differs="the lowest and the highest frequency that this machine can hold, not the paper's",
    section="3.1",
    statements=(
        Statement(
            text="a higher core frequency lowers the latency",
            paper="3.1 us at 1000 MHz, 1.8 us at 2300 MHz",
            judge=constant("core_khz", SMALL, larger),
            criterion=HIGHER,
            needs=CORE,
        ),
        Statement(
            text="the uncore frequency has no effect on the latency",
            paper="+5 %, beside +72 % for the core frequency",
            judge=constant("uncore_khz", SMALL, _same),
            criterion=EQUAL,
            needs=UNCORE,
        ),
    ),
)

CONSTANT_BANDWIDTH = Exhibit(
    label="Fig. 1b",
    title="Impact of constant frequencies on network bandwidth",
    runs=(CONSTANT,),
    draw=constant_frequencies(CONSTANT, "bandwidth"),
    differs=CONSTANT_LATENCY.differs,
    section="3.1",
    statements=(
        Statement(
            text="the core frequency has no effect on the bandwidth of large messages",
            paper="unchanged",
            judge=constant("core_khz", LARGE, _same),
            criterion=EQUAL,
            needs=CORE,
        ),
        Statement(
            text="a higher uncore frequency raises the bandwidth a little",
            paper="10.1 GB/s at 1200 MHz, 10.5 GB/s at 2400 MHz",
            judge=constant("uncore_khz", LARGE, _greater),
            criterion=HIGHER,
            needs=UNCORE,
        ),
    ),
)

TRACES = Exhibit(
    label="Fig. 2",
    title="Frequencies during communication, sleep, and both together (prime counting)",
    runs=(PRIME,),
    draw=panels(PRIME, names="trace-"),
    observes="frequency",
    absent=READABLE,
    differs="with all cores computing one computes less, which samples the frequencies",
    statements=(
        Statement(
            text="cores have a higher frequency while others compute than during communication alone",
            section="3.2",
            paper="all cores on average; the communication core alike",
            judge=raised(PRIME),
            criterion=READ,
            observes="frequency",
        ),
        Statement(
            text="the bandwidth is very slightly better beside CPU-bound computation",
            section="3.2",
            paper="9097 against 9063 MB/s, 20 cores",
            judge=gains(Curve(PRIME, "comm", LARGE)),
            criterion=BETTER,
            needs=NETWORK,
        ),
        Statement(
            text="the latency is better beside CPU-bound computation",
            section="3.2",
            paper="1.52 against 1.70 us, 20 cores",
            judge=gains(Curve(PRIME, "comm", SMALL)),
            criterion=BETTER,
            needs=NETWORK,
        ),
        Statement(
            text="CPU-bound computation does not slow communication down",
            section="3.2, 4.5",
            paper="no effect at any number of cores",
            judge=unaffected(Curve(PRIME, "comm")),
            criterion=NOT_WORSE,
            needs=NETWORK,
        ),
    ),
)

BORA = Exhibit(
    label="3.2, bora",
    title="CPU-bound computation and bandwidth on bora",
    runs=(PRIME,),
    draw=durations(PRIME, LARGE),
    statements=(
        Statement(
            text="computation slows down beside large messages once it uses the communicating socket",
            section="3.2",
            paper="183 ms to 236 ms, above 15 cores, on bora only",
            judge=slows_on_the_communicating_socket(PRIME),
            criterion=SLOWED,
            needs=(needs.network, needs.omni_path),
        ),
    ),
)

AVX_DURATION = Exhibit(
    label="Fig. 3a",
    title="AVX512 computation and network latency over the computing cores",
    runs=(AVX,),
    draw=durations(AVX),
    differs="FMA with the widest vectors of this processor, which is AVX512 where it has that",
    section="3.3",
    judged_with=NETWORK,
    statements=(
        Statement(
            text="computation is faster with few computing cores",
            paper="135 ms with 4 cores, 210 ms with 20",
            judge=slower_with_more(AVX),
            criterion=SLOWER,
            needs=(needs.computing_cores(2),),
        ),
        Statement(
            text="the latency is slightly better beside AVX512 computation, at every number of cores",
            paper="1.33 against 1.49 us",
            judge=gains(Curve(AVX, "comm")),
            criterion=BETTER,
        ),
        Statement(
            text="AVX512 computation on other cores does not raise the latency",
            paper="no number of cores raises it",
            judge=unaffected(Curve(AVX, "comm")),
            criterion=NOT_WORSE,
        ),
    ),
)

AVX_TRACES = Exhibit(
    label="Fig. 3b, 3c",
    title="Frequencies beside AVX512 computation on few and on many cores",
    runs=(AVX,),
    draw=panels(AVX, names="trace-"),
    observes="frequency",
    absent=READABLE,
    differs=TRACES.differs,
    statements=(
        Statement(
            text="the communication core keeps its frequency beside AVX512 computation",
            section="3.3",
            paper="2.5 GHz throughout, computing cores 3.0 to 2.3 GHz",
            judge=stable(AVX),
            criterion=f"{READ}; undecided if no computing core changes its frequency",
            observes="frequency",
        ),
        Statement(
            text="computation does not affect communication through frequencies",
            section="3.4",
            paper="concluded",
            judge=given(stable(AVX), unaffected(Curve(AVX, "comm")), unaffected(Curve(PRIME, "comm"))),
            criterion=(
                "confirmed if frequencies of computing cores change, that of the communication core does not "
                f"and communication keeps {LIMIT:.2f} or more"
            ),
            needs=NETWORK,
            observes="frequency",
        ),
    ),
)

EXHIBITS = (CONSTANT_LATENCY, CONSTANT_BANDWIDTH, TRACES, BORA, AVX_DURATION, AVX_TRACES)
