"""Memory contention by cores and placement: sections 4.2 and 4.3 of Denis et al. (2021), 5.3.2 and 5.3.3 of
Swartvagher's thesis (2022).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from elbowroom.draw.figure import TextTable
from elbowroom.experiments import placement
from elbowroom.experiments.common.sentences import SideName
from elbowroom.points.point import Metric
from elbowroom.results.judgement import larger
from elbowroom.stats.interval import Summary
from elbowroom.studies import needs
from elbowroom.studies.drawings import panels
from elbowroom.studies.evidence import Evidence, Place, PointSelection
from elbowroom.studies.judgements import (
    Curve,
    affected,
    every,
    late,
    less_kept,
    loss,
    manner,
    rule,
    sooner,
    unaffected,
)
from elbowroom.studies.study import Exhibit, Judge, Measurement, Outcome, Statement

PLACEMENT = "placement"
KERNELS = ("copy", "triad")

MEASUREMENTS = (
    Measurement(
        name=PLACEMENT,
        plan="placement",
        settings={
            "kernels": ",".join(KERNELS),
            "n": "every",
            "sizes": "4,64MB",
            "comp_nodes": "near,far",
            "comm_nodes": "same",
            "comm_cores": "near,far",
        },
        quick={"kernels": "triad", "n": "1,3,6,12,18,25,30,all"},
    ),
)

NETWORK = (needs.network,)
PLACED = (needs.network, needs.two_nodes)
CURVE = (needs.network, needs.computing_cores(3))
PLACED_CURVE = (*PLACED, needs.computing_cores(3))

SUFFERS = (
    "confirmed if a side keeps less than 0.95 with its interval below 1, refuted if every interval is above"
)
ORDER = "confirmed if the first value of the axis that suffers is smaller, refuted if it is larger"
DOUBLES = "confirmed if 1/kept is 1.7 or more with its interval, refuted if below"
HALF = "confirmed if it keeps at most half with its interval, refuted if more"
ABRUPT = "abruptly: one step between neighbours makes more than half of the loss; else steadily"
ABSENT = (
    "refuted if the computation suffers anywhere; confirmed if every interval is above 0.95 and it suffers "
    "beside 64 MB, undecided if it does not: then nothing happened"
)


def _curve(side: SideName, data: Place, thread: Place, metric: Metric, kernel: str) -> Curve:
    return Curve(PLACEMENT, side, PointSelection(kernels=(kernel,), data=data, thread=thread, metric=metric))


@rule
def _both(evidence: Evidence, judge_of: Callable[[str], Judge]) -> Outcome:
    """A judge of COPY and TRIAD alike; where one was not measured (a quick study), of the other."""
    measured = {item.kernel for item in evidence.points(PLACEMENT)}
    kernels = [kernel for kernel in KERNELS if kernel in measured] or ["triad"]
    return every(*map(judge_of, kernels))(evidence)


def large_loss(data: Place = "", thread: Place = "") -> Judge:
    """Whether the computation suffers beside large messages: the cause of what it does not beside small."""
    return affected(Curve(PLACEMENT, "comp", PointSelection(data=data, thread=thread, metric="bandwidth")))


def only_beside_large(data: Place, thread: Place) -> Judge:
    """Whether the computation suffers beside large messages and not beside small ones."""
    small = Curve(PLACEMENT, "comp", PointSelection(data=data, thread=thread, metric="latency"))
    quiet = unaffected(small, large_loss(data, thread), "it does not suffer beside 64 MB either")
    return every(large_loss(data, thread), quiet)


DOUBLED = 1 / placement.HIGHLY
EARLY = 1 / 3
"""Of the computing cores: the paper's 6 of 35 is earlier, its 22 and 25 are later."""


def slightly(data: Place) -> Judge:
    """Table 1's `increases slightly, starting from 6 computing cores`."""

    def of(kernel: str) -> Judge:
        curve = _curve("comm", data, "near", "latency", kernel)
        return every(
            loss(curve, 0.95, DOUBLED, "worst"), sooner(curve, _curve("comm", data, "far", "latency", kernel))
        )

    return _both(of)


def highly(data: Place) -> Judge:
    """Table 1's `increases highly, starting from 25 computing cores`."""

    def of(kernel: str) -> Judge:
        curve = _curve("comm", data, "far", "latency", kernel)
        return every(loss(curve, DOUBLED, end="worst"), late(curve, EARLY))

    return _both(of)


def decreases(data: Place, thread: Place) -> Judge:
    """Table 1's `decreases steadily` near the NIC and `abruptly` far from it."""

    def of(kernel: str) -> Judge:
        curve = _curve("comm", data, thread, "bandwidth", kernel)
        return manner(curve, "steadily" if data == "near" else "abruptly")

    return _both(of)


NEAR_FAR: tuple[Place, Place] = ("near", "far")


def _latency_alone(evidence: Evidence, where: PointSelection) -> Summary | None:
    points = evidence.points(PLACEMENT, where)
    return next((item.comm.alone for item in points if item.comm.alone is not None), None)


@rule
def nearer_is_faster(evidence: Evidence) -> Outcome:
    """Whether the latency alone is lower with the communication thread near the NIC (section 4.3)."""
    near, far = (
        _latency_alone(evidence, PointSelection(metric="latency", data="near", thread=thread))
        for thread in NEAR_FAR
    )
    if near is None or far is None:
        raise evidence.missing(PLACEMENT)
    return Outcome(judgement=larger(far, near), ours=f"{near.median:.3g} us near, {far.median:.3g} us far")


def table_1(evidence: Evidence) -> Sequence[TextTable]:
    """Table 1 as found in the data: a row for each kernel and placement."""
    mine = evidence.runs.get(PLACEMENT)
    if mine is None:
        return ()
    rows = tuple((finding.text,) for finding in placement.findings(evidence.points(PLACEMENT), mine.machine))
    return (TextTable(title="Table 1, from these runs", columns=("placement",), rows=rows),)


def _cell(data: Place, thread: Place, column: Literal["latency", "bandwidth", "computation"]) -> Statement:
    """A cell of Table 1."""
    where = f"data {data}, communication thread {thread}"
    if column == "latency":
        words = (
            "slightly, starting from 6 computing cores" if thread == "near" else "highly, starting from 25"
        )
        extent = (
            "confirmed if 1/kept is below 1.7 at worst, and the latency suffers from fewer cores than with "
            "the thread far from the NIC"
            if thread == "near"
            else "confirmed if 1/kept is 1.7 or more at worst, and only beyond a third of the cores"
        )
        return Statement(
            text=f"{where}: the latency increases {words.partition(',')[0]}",
            section="Table 1",
            paper=f"increases {words}",
            judge=slightly(data) if thread == "near" else highly(data),
            criterion=f"{extent}; refuted if the intervals say otherwise",
            needs=PLACED_CURVE,
        )
    if column == "bandwidth":
        word = "steadily" if data == "near" else "abruptly"
        return Statement(
            text=f"{where}: the bandwidth decreases {word}",
            section="Table 1",
            paper=f"decreases {word}",
            judge=decreases(data, thread),
            criterion=ABRUPT,
            needs=PLACED_CURVE,
        )
    return Statement(
        text=f"{where}: STREAM is affected only by much transmitted data",
        section="Table 1",
        paper="impacted only with high quantity of data",
        judge=only_beside_large(data, thread),
        criterion=f"{SUFFERS} beside 64 MB; {ABSENT}",
        needs=PLACED,
    )


PLACES: tuple[tuple[Place, Place], ...] = (("near", "near"), ("near", "far"), ("far", "near"), ("far", "far"))

FIGURE_4A = Exhibit(
    label="Fig. 4a",
    title="Network latency beside STREAM, data near the NIC, communication thread far",
    runs=(PLACEMENT,),
    draw=panels(PLACEMENT, PointSelection(metric="latency", data="near", thread="far")),
    section="4.2",
    judged_with=NETWORK,
    statements=(
        Statement(
            text="the latency suffers only from many computing cores on",
            paper="from 22 of 35 cores",
            judge=_both(lambda kernel: late(_curve("comm", "near", "far", "latency", kernel), EARLY)),
            criterion="confirmed if it suffers only beyond a third of the computing cores; refuted if before",
            needs=CURVE,
        ),
        Statement(
            text="the latency doubles when all cores compute",
            paper="twice",
            judge=_both(lambda kernel: loss(_curve("comm", "near", "far", "latency", kernel), DOUBLED)),
            criterion=DOUBLES,
        ),
        Statement(
            text="STREAM is not affected by a ping-pong of 4 B",
            paper="not impacted",
            judge=unaffected(
                Curve(PLACEMENT, "comp", PointSelection(metric="latency", data="near", thread="far")),
                large_loss("near", "far"),
                "it does not suffer beside 64 MB either",
            ),
            criterion=ABSENT,
        ),
    ),
)

FIGURE_4B = Exhibit(
    label="Fig. 4b",
    title="Network bandwidth beside STREAM, data near the NIC, communication thread far",
    runs=(PLACEMENT,),
    draw=panels(PLACEMENT, PointSelection(metric="bandwidth", data="near", thread="far")),
    judged_with=NETWORK,
    statements=(
        Statement(
            text="the bandwidth suffers from fewer computing cores than the latency",
            section="4.2",
            paper="from 3 cores, the latency from 22",
            judge=_both(
                lambda kernel: sooner(
                    _curve("comm", "near", "far", "bandwidth", kernel),
                    _curve("comm", "near", "far", "latency", kernel),
                )
            ),
            criterion=ORDER,
            needs=CURVE,
        ),
        Statement(
            text="the bandwidth loses almost two thirds when all cores compute",
            section="4.2",
            paper="by almost two thirds",
            judge=_both(lambda kernel: loss(_curve("comm", "near", "far", "bandwidth", kernel), 0.5)),
            criterion=HALF,
        ),
        Statement(
            text="STREAM loses more beside 64 MB than beside 4 B",
            section="4.2",
            paper="lower memory bandwidth",
            judge=_both(
                lambda kernel: less_kept(
                    _curve("comp", "near", "far", "bandwidth", kernel),
                    _curve("comp", "near", "far", "latency", kernel),
                    "worst",
                    ("beside 64 MB it", "beside 4 B"),
                )
            ),
            criterion="confirmed if the worst points' intervals do not overlap and differ in this direction",
        ),
        Statement(
            text="STREAM loses at most 25 %",
            section="4.3",
            paper="at most 25 %, with 5 computing cores",
            judge=loss(Curve(PLACEMENT, "comp", PointSelection(metric="bandwidth")), 1.0, 0.70, "worst"),
            criterion="confirmed if it suffers and keeps at least 0.70 with its interval; refuted if less",
        ),
    ),
)


def _figure_5(letter: str, metric: Metric, data: Place, thread: Place) -> Exhibit:
    where = PointSelection(metric=metric, data=data, thread=thread)
    return Exhibit(
        label=f"Fig. 5{letter}",
        title=f"Network {metric}, data {data}, communication thread {thread} (from the NIC)",
        runs=(PLACEMENT,),
        draw=panels(PLACEMENT, where),
        needs=() if (data, thread) == PLACES[0] else (needs.two_nodes,),
    )


FIGURE_5 = (
    _figure_5("a", "latency", "near", "near"),
    _figure_5("b", "latency", "far", "near"),
    _figure_5("c", "latency", "far", "far"),
    _figure_5("d", "bandwidth", "near", "near"),
    _figure_5("e", "bandwidth", "far", "near"),
    _figure_5("f", "bandwidth", "far", "far"),
)

TABLE_1 = Exhibit(
    label="Table 1",
    title="Impact of data and communication thread placement related to NIC location",
    runs=(PLACEMENT,),
    tables=table_1,
    section="4.3",
    judged_with=PLACED,
    statements=(
        *(
            cell
            for data, thread in PLACES
            for cell in (
                _cell(data, thread, "latency"),
                _cell(data, thread, "bandwidth"),
                _cell(data, thread, "computation"),
            )
        ),
        Statement(
            text="without computation the latency is lower with the communication thread near the NIC",
            paper="1.39 us near, 1.67 us far",
            judge=nearer_is_faster(),
            criterion="confirmed if the intervals do not overlap and differ in this direction",
        ),
        Statement(
            text="the bandwidth loses more with data far from the NIC",
            paper="more impact of contention",
            judge=_both(
                lambda kernel: less_kept(
                    _curve("comm", "far", "near", "bandwidth", kernel),
                    _curve("comm", "near", "near", "bandwidth", kernel),
                    "worst",
                    ("far data", "near data"),
                )
            ),
            criterion="confirmed if the worst points' intervals do not overlap and differ in this direction",
        ),
    ),
)


EXHIBITS = (FIGURE_4A, FIGURE_4B, *FIGURE_5, TABLE_1)
