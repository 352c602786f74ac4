"""Tan, Jarvis: Blurring the Computation-Communication Divide, ICCSW 2012."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from elbowroom.draw.figure import Figure
from elbowroom.machine.topology import Machine
from elbowroom.points import ExtraneousAccesses
from elbowroom.results.result import PointResult
from elbowroom.studies import needs
from elbowroom.studies.accesses import (
    BEYOND,
    BYSTANDERS,
    EMA,
    bystanders_raise,
    compared,
    floor_rises,
    latency_follows_misses,
    misses_plateau,
    never_below,
)
from elbowroom.studies.drawings import Draw, panels
from elbowroom.studies.evidence import Evidence
from elbowroom.studies.judgements import Only
from elbowroom.studies.study import Exhibit, Measurement, Statement, Study

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

SECTION = "3.1"


def accesses_of(side: str) -> Only:
    """The windows of one side's accesses."""

    def only(item: PointResult) -> bool:
        return isinstance(item.workload, ExtraneousAccesses) and item.workload.who == side

    return only


def both_ranges(names: str, side: str = "") -> Draw:
    """The figures of the paper's sizes, then of those beyond the last-level cache."""
    only = accesses_of(side) if side else None

    def draw(evidence: Evidence) -> Sequence[Figure]:
        return (
            *panels(EMA, only=only, names=names)(evidence),
            *panels(BEYOND, only=only, names=names)(evidence),
        )

    return draw


FIGURE_1 = tuple(
    Exhibit(
        label=f"Fig. 1{letter}",
        title=f"Average latencies of MPI_Recv, {side}-side accesses",
        runs=(EMA, BEYOND),
        draw=both_ranges(f"ema-scatter-{side}"),
        statements=statements,
    )
    for letter, side, statements in (
        (
            "a",
            "sender",
            (
                Statement(
                    text="the lower bound rises with the bytes that the sender accesses (first)",
                    section=SECTION,
                    paper="rises",
                    judge=floor_rises(EMA, "sender"),
                    criterion=TREND,
                ),
                Statement(
                    text="the same beyond the last-level cache",
                    section=SECTION,
                    paper="4 MB exceed the cache of 3 MB",
                    judge=floor_rises(BEYOND, "sender"),
                    criterion=TREND,
                ),
            ),
        ),
        (
            "b",
            "receiver",
            (
                Statement(
                    text="the lower bound rises with the bytes that the receiver accesses (first)",
                    section=SECTION,
                    paper="rises",
                    judge=floor_rises(EMA, "receiver"),
                    criterion=TREND,
                ),
                Statement(
                    text="the same beyond the last-level cache",
                    section=SECTION,
                    paper="4 MB exceed the cache of 3 MB",
                    judge=floor_rises(BEYOND, "receiver"),
                    criterion=TREND,
                ),
                Statement(
                    text="beyond some bytes the latency never falls below 1 us, beyond more below 2 us",
                    section=SECTION,
                    paper="238,400 B and 2,337,000 B",
                    judge=never_below(EMA, "receiver"),
                    criterion=LIMIT,
                ),
            ),
        ),
    )
)


FIGURE_2 = tuple(
    Exhibit(
        label=f"Fig. 2{letter}",
        title=f"Average cache misses of MPI_Recv, {side}-side accesses (lower bounds)",
        runs=(EMA,),
        draw=panels(EMA, only=accesses_of(side), names="ema-misses"),
        statements=statements,
    )
    for letter, side, statements in (
        (
            "a",
            "receiver",
            (
                Statement(
                    text="L1 misses level off first, then L2's; L3's rise last",
                    section="3.2",
                    paper="by counters",
                    judge=misses_plateau(EMA),
                    criterion=COUNTED,
                    observes="counters",
                ),
                Statement(
                    text="the latency follows the misses of the last-level cache (receiver)",
                    section="3.2",
                    paper="very closely",
                    judge=latency_follows_misses(EMA, "receiver"),
                    criterion=FOLLOWED,
                    observes="counters",
                ),
            ),
        ),
        (
            "b",
            "sender",
            (
                Statement(
                    text="the latency follows the misses of the last-level cache (sender)",
                    section="3.2",
                    paper="very closely",
                    judge=latency_follows_misses(EMA, "sender"),
                    criterion=FOLLOWED,
                    observes="counters",
                ),
            ),
        ),
    )
)

FIGURE_3 = (
    Exhibit(
        label="Fig. 3a",
        title="Lower bounds of the average latencies of both sides",
        runs=(EMA, BEYOND),
        draw=both_ranges("ema-lower"),
        statements=(
            Statement(
                text="the receiver's accesses have the lower lower bounds",
                section="3.3",
                paper="receiver below sender",
                judge=compared(EMA, "lower", wanted=False),
                criterion=SIGN,
            ),
        ),
    ),
    Exhibit(
        label="Fig. 3b",
        title="Upper bounds of the average latencies of both sides",
        runs=(EMA, BEYOND),
        draw=both_ranges("ema-upper"),
        statements=(
            Statement(
                text="the receiver's accesses have the higher upper bounds",
                section="3.3",
                paper="in many instances",
                judge=compared(EMA, "upper"),
                criterion=SIGN,
            ),
            Statement(
                text="the averages after the receiver's accesses vary more",
                section="3.3",
                paper="variance 2.95 against 0.6 us²",
                judge=compared(EMA, "variances"),
                criterion=SIGN,
            ),
            Statement(
                text="the average is higher after the sender's accesses",
                section="3.3",
                paper="3.43 against 2.92 us",
                judge=compared(EMA, "average", wanted=False),
                criterion=SIGN,
            ),
            Statement(
                text="the receiver's accesses are more harmful (second observation)",
                section="3.3",
                paper="concluded",
                judge=compared(EMA, "median"),
                criterion=SIGN,
            ),
            Statement(
                text="the same beyond the last-level cache",
                section="3.3",
                paper="4 MB exceed the cache of 3 MB",
                judge=compared(BEYOND, "median"),
                criterion=SIGN,
            ),
            Statement(
                text="the receiver's accesses make the latency less predictable",
                section="3.3",
                paper="concluded",
                judge=compared(EMA, "spread"),
                criterion=SIGN,
            ),
        ),
    ),
)

OPEN_QUESTION = Exhibit(
    label="4",
    title="Open question: accesses of processes that do not communicate",
    runs=(BYSTANDERS,),
    draw=panels(BYSTANDERS, names="ema-"),
    statements=(
        Statement(
            text="accesses of processes beside the pair may slow messages down",
            section="4",
            paper="not tested: two cores",
            judge=bystanders_raise,
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
