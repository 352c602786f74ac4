"""Frequencies and communication: section 3 of Denis et al. (2021), 5.2 of Swartvagher's thesis (2022)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from elbowroom.experiments.common.sentences import cores_text
from elbowroom.results.judgement import Judgement, larger, unanimous
from elbowroom.results.result import PointResult, Summary, mean_mhz
from elbowroom.studies import needs
from elbowroom.studies.drawings import constant_frequencies, durations, panels
from elbowroom.studies.evidence import Evidence, Where
from elbowroom.studies.judgements import LIMIT, Curve, gains, given, missing, unaffected
from elbowroom.studies.study import Exhibit, Judge, Measurement, Outcome, Statement

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

SMALL, LARGE = Where(metric="latency"), Where(metric="bandwidth")


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


def constant(key: str, where: Where, judged: Callable[[Summary, Summary], Judgement]) -> Judge:
    """Judges the network alone at the lowest and at the highest constant frequency of a kind."""

    def judge(evidence: Evidence) -> Outcome:
        points = evidence.points(CONSTANT, where)
        sizes = {item.size for item in points}
        edge = (min if where.metric == "latency" else max)(sizes, default=0)
        ends = _alone([item for item in points if item.size == edge], key)
        if ends is None:
            return missing(evidence, CONSTANT)
        low, high = ends
        ours = f"{low.median:.4g} {low.unit} at the lowest, {high.median:.4g} at the highest frequency"
        judgement = judged(low, high)
        return Outcome(
            judgement=judgement, ours=ours, why="the intervals overlap" if judgement == "undecided" else ""
        )

    return judge


def _smaller(low: Summary, high: Summary) -> Judgement:
    return larger(low, high)


def _greater(low: Summary, high: Summary) -> Judgement:
    return larger(high, low)


def _same(low: Summary, high: Summary) -> Judgement:
    """Confirmed where the whole intervals differ by less than 10 %, refuted where they are further apart."""
    if low.bounds is None or high.bounds is None:
        return "undecided"
    most = max(high.bounds[1] / low.bounds[0], low.bounds[1] / high.bounds[0]) - 1
    least = max(high.bounds[0] / low.bounds[1], low.bounds[0] / high.bounds[1]) - 1
    return "confirmed" if most < 0.1 else "refuted" if least > 0.1 else "undecided"


def _traced(evidence: Evidence, run: str) -> list[PointResult]:
    return [item for item in evidence.points(run) if item.traces and item.n]


def raised(run: str) -> Judge:
    """Whether the communication core has a higher frequency beside computation than alone."""
    return _compared(run, lambda alone, together: together > alone * (1 + MOVED))


def stable(run: str) -> Judge:
    """Whether the communication core keeps its frequency, while that of some computing cores differs from
    what it is when they sleep: where nothing changed, nothing is shown.
    """

    def judge(evidence: Evidence) -> Outcome:
        outcome = _compared(run, lambda alone, together: abs(together / alone - 1) <= MOVED)(evidence)
        if outcome.judgement != "confirmed":
            return outcome
        for item in _traced(evidence, run):
            computing, idle = mean_mhz([item], "AB", "computing"), mean_mhz([item], "S", "idle")
            if computing is not None and idle is not None and abs(computing / idle - 1) > MOVED:
                return outcome
        why = "no computing core changed its frequency, so nothing could change that of others"
        return Outcome(judgement="undecided", ours=outcome.ours, why=why)

    return judge


def _compared(run: str, holds: Callable[[float, float], bool]) -> Judge:
    def judge(evidence: Evidence) -> Outcome:
        texts, results = [], []
        for item in _traced(evidence, run):
            alone = mean_mhz([item], "B", "communication")
            together = mean_mhz([item], "AB", "communication")
            if alone and together:
                texts.append(f"{alone:.0f} and {together:.0f} MHz with {cores_text(item.n)}")
                results.append(holds(alone, together))
        if not results:
            why = READABLE if evidence.points(run) else evidence.reason(run)
            return Outcome(judgement="not tested", why=why)
        judgement = unanimous(["confirmed" if result else "refuted" for result in results])
        return Outcome(judgement=judgement, ours=f"communication core: {'; '.join(texts[:3])}")

    return judge


def slower_with_more(run: str) -> Judge:
    """Whether each core computes less the more of them compute (the paper: longer durations)."""

    def judge(evidence: Evidence) -> Outcome:
        points = sorted(
            (item for item in evidence.points(run) if item.n and item.comp.alone is not None),
            key=lambda item: item.n,
        )
        if len({item.n for item in points}) < 2:
            why = "one number of computing cores here" if points else evidence.reason(run)
            return Outcome(judgement="not tested", why=why)
        first, last = _each(points[0]), _each(points[-1])
        ours = f"{first.median:.4g} {first.unit} a core with {points[0].n} computing"
        ours += f", {last.median:.4g} with {points[-1].n}"
        judgement = larger(first, last)
        why = "the intervals overlap" if judgement == "undecided" else ""
        return Outcome(judgement=judgement, ours=ours, why=why)

    return judge


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


HIGHER = "confirmed if the intervals at the lowest and the highest frequency are apart in this direction"
EQUAL = "confirmed if the intervals differ by less than 10 % at most, refuted if by more at least"
READ = "confirmed if it holds at every number of cores whose frequencies can be read (2 % is a change)"
NOT_WORSE = "refuted if the communication suffers anywhere, confirmed if every interval is above 0.95"
BETTER = "confirmed if every interval is above 1, refuted if the communication suffers anywhere"
SLOWER = "confirmed if a core's rate with the most cores is below that with the fewest, intervals apart"

NETWORK, CORE, UNCORE = (
    (needs.network,),
    (needs.network, needs.core_frequencies),
    (
        needs.network,
        needs.uncore_frequencies,
    ),
)

CONSTANT_LATENCY = Exhibit(
    label="Fig. 1a",
    title="Impact of constant frequencies on network latency",
    runs=(CONSTANT,),
    draw=constant_frequencies(CONSTANT, "latency"),
    differs="the lowest and the highest frequency that this machine can hold, not the paper's",
    statements=(
        Statement(
            text="a higher core frequency lowers the latency",
            section="3.1",
            paper="3.1 us at 1000 MHz, 1.8 us at 2300 MHz",
            judge=constant("core_khz", SMALL, _smaller),
            criterion=HIGHER,
            needs=CORE,
        ),
        Statement(
            text="the uncore frequency has no effect on the latency",
            section="3.1",
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
    statements=(
        Statement(
            text="the core frequency has no effect on the bandwidth of large messages",
            section="3.1",
            paper="unchanged",
            judge=constant("core_khz", LARGE, _same),
            criterion=EQUAL,
            needs=CORE,
        ),
        Statement(
            text="a higher uncore frequency raises the bandwidth a little",
            section="3.1",
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
    absent=READABLE,
    differs="with all cores computing one computes less, which samples the frequencies",
    statements=(
        Statement(
            text="cores have a higher frequency while others compute than during communication alone",
            section="3.2",
            paper="all cores",
            judge=raised(PRIME),
            criterion=READ,
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
            judge=slower_with_more(PRIME),
            criterion=SLOWER,
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
    statements=(
        Statement(
            text="computation is faster with few computing cores",
            section="3.3",
            paper="135 ms with 4 cores, 210 ms with 20",
            judge=slower_with_more(AVX),
            criterion=SLOWER,
            needs=(needs.computing_cores(2),),
        ),
        Statement(
            text="the latency is slightly better beside AVX512 computation, at every number of cores",
            section="3.3",
            paper="1.33 against 1.49 us",
            judge=gains(Curve(AVX, "comm")),
            criterion=BETTER,
            needs=NETWORK,
        ),
        Statement(
            text="AVX512 computation on other cores does not raise the latency",
            section="3.3",
            paper="no number of cores raises it",
            judge=unaffected(Curve(AVX, "comm")),
            criterion=NOT_WORSE,
            needs=NETWORK,
        ),
    ),
)

AVX_TRACES = Exhibit(
    label="Fig. 3b, 3c",
    title="Frequencies beside AVX512 computation on few and on many cores",
    runs=(AVX,),
    draw=panels(AVX, names="trace-"),
    absent=READABLE,
    differs=TRACES.differs,
    statements=(
        Statement(
            text="the communication core keeps its frequency beside AVX512 computation",
            section="3.3",
            paper="2.5 GHz throughout, computing cores 3.0 to 2.3 GHz",
            judge=stable(AVX),
            criterion=f"{READ}; undecided if no computing core changes its frequency",
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
        ),
    ),
)

EXHIBITS = (CONSTANT_LATENCY, CONSTANT_BANDWIDTH, TRACES, BORA, AVX_DURATION, AVX_TRACES)
