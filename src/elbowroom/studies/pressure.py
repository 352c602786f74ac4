"""Memory contention by message size and arithmetic intensity: sections 4.4 and 4.5 of Denis et al. (2021),
5.3.4 and 5.3.5 of Swartvagher's thesis (2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from elbowroom.draw.figure import Axis, Figure
from elbowroom.experiments.common.panels import size_of
from elbowroom.experiments.common.sentences import SideName, intensity_text, kept_of, size_text
from elbowroom.experiments.intensity import boundary
from elbowroom.points.point import Metric
from elbowroom.results.curves import recovery
from elbowroom.results.family import judge_sides
from elbowroom.results.result import PointResult
from elbowroom.studies.drawings import durations, panels
from elbowroom.studies.evidence import Evidence, PointSelection
from elbowroom.studies.judgements import Curve, affected, loss, rule, sooner, unaffected
from elbowroom.studies.memory import ABSENT, CURVE, DOUBLED, DOUBLES, HALF, NETWORK, ORDER, SUFFERS
from elbowroom.studies.study import Exhibit, Measurement, Outcome, Statement

MESSAGE_SIZES, INTENSITY = "message-sizes", "intensity"

MEASUREMENTS = (
    Measurement(
        name=MESSAGE_SIZES,
        plan="sizes",
        settings={"n": "few,all", "comm_cores": "far"},
        quick={"sizes": "4,64,128,1KiB,4KiB,16KiB,64KiB,256KiB,1MiB,16MiB,64MB", "around": "0"},
    ),
    Measurement(
        name=INTENSITY,
        plan="intensity",
        settings={"comm_cores": "far"},
        quick={"cursors": "1,8,24,48,72,96,128,256,1024"},
    ),
)

Count = Literal["fewest", "most"]


def _sized(side: SideName, count: Count) -> Curve:
    """A curve over the message size, with the fewest or the most computing cores."""
    return Curve(MESSAGE_SIZES, side, x=size_of, at=lambda x: size_text(x), count=count)


def _figure_6(letter: str, count: Count, *statements: Statement) -> Exhibit:
    def draw(evidence: Evidence) -> Sequence[Figure]:
        chosen = {item.id for item in _sized("comm", count).select(evidence)}
        return panels(MESSAGE_SIZES, only=lambda item: item.id in chosen, names="sizes")(evidence)

    return Exhibit(
        label=f"Fig. 6{letter}",
        title=f"Impact of the size of communicated data, {5 if count == 'fewest' else 35} computing cores",
        runs=(MESSAGE_SIZES,),
        draw=draw,
        section="4.4",
        judged_with=CURVE,
        statements=statements,
    )


FIGURE_6 = (
    _figure_6(
        "a",
        "fewest",
        Statement(
            text="with few computing cores communication suffers beside STREAM from some size on",
            paper="from 64 KB with 5 cores",
            judge=affected(_sized("comm", "fewest")),
            criterion=SUFFERS,
        ),
        Statement(
            text="with few computing cores STREAM suffers from smaller messages than communication does",
            paper="STREAM from 4 KB, communication from 64 KB",
            judge=sooner(_sized("comp", "fewest"), _sized("comm", "fewest")),
            criterion=ORDER,
        ),
    ),
    _figure_6(
        "b",
        "most",
        Statement(
            text="with all cores communication suffers from smaller messages than with few cores",
            paper="from 128 B, with 5 cores from 64 KB",
            judge=sooner(_sized("comm", "most"), _sized("comm", "fewest")),
            criterion=ORDER,
        ),
        Statement(
            text="with all cores STREAM suffers from larger messages than communication does",
            paper="STREAM from 4 KB, communication from 128 B",
            judge=sooner(_sized("comm", "most"), _sized("comp", "most")),
            criterion=ORDER,
            needs=NETWORK,
        ),
    ),
)


def intensity_of(item: PointResult) -> float:
    """flop/B."""
    return item.arithmetic_intensity or 0.0


def _intense(side: SideName, metric: Metric) -> Curve:
    return Curve(
        INTENSITY,
        side,
        PointSelection(metric=metric),
        x=intensity_of,
        only=lambda item: bool(item.arithmetic_intensity),
        at=intensity_text,
    )


@rule
def recovers(evidence: Evidence, curve: Curve) -> Outcome:
    """Whether a side that suffers at low intensity is undisturbed at the highest ones."""
    points = curve.points(evidence)
    judgements = judge_sides(points, curve.side)
    if "confirmed" not in judgements:
        return Outcome(judgement="undecided", why="it suffers at no intensity: nothing to recover from")
    back = recovery([curve.x(item) for item in points], [kept_of(item, curve.side) for item in points])
    edge = boundary(points)
    outside = "n/a" if edge.outside is None else intensity_text(edge.outside)
    highest = intensity_text(curve.x(points[-1]))
    if back is None:
        return Outcome(judgement="refuted", ours=f"it does not recover up to {highest}")
    if judgements[-1] != "refuted":
        return Outcome(judgement="undecided", why=f"the interval at {highest} includes 0.95")
    ours = f"undisturbed from {intensity_text(back)}; computation leaves the memory bound at {outside}"
    return Outcome(judgement="confirmed", ours=ours)


def _figure_7(letter: str, metric: Metric, *statements: Statement) -> Exhibit:
    axis = Axis(label="Arithmetic intensity (flop/B)", scale="log2")
    return Exhibit(
        label=f"Fig. 7{letter}",
        title=f"Impact of memory pressure on network {metric}",
        runs=(INTENSITY,),
        draw=durations(
            INTENSITY,
            PointSelection(metric=metric),
            lambda item: bool(item.arithmetic_intensity),
            intensity_of,
            axis,
        ),
        section="4.5",
        judged_with=NETWORK,
        statements=statements,
    )


RECOVERS = "confirmed if it suffers at low intensity and not at the highest; refuted if it suffers there"
LOW = "at the lowest intensity"

FIGURE_7 = (
    _figure_7(
        "a",
        "latency",
        Statement(
            text="at low arithmetic intensity the latency doubles",
            paper="twice, below 6 flop/B",
            judge=loss(_intense("comm", "latency"), DOUBLED, end="first"),
            criterion=f"{DOUBLES}, {LOW}",
        ),
        Statement(
            text="small messages do not affect the computation at any intensity",
            paper="constant duration",
            judge=unaffected(
                _intense("comp", "latency"),
                affected(_intense("comp", "bandwidth")),
                "it does not suffer beside 64 MB either",
            ),
            criterion=ABSENT,
        ),
        Statement(
            text="at high arithmetic intensity the latency recovers",
            paper="above 6 flop/B (billy: 20)",
            judge=recovers(_intense("comm", "latency")),
            criterion=RECOVERS,
        ),
    ),
    _figure_7(
        "b",
        "bandwidth",
        Statement(
            text="at low arithmetic intensity the bandwidth falls by 60 %",
            paper="by 60 %",
            judge=loss(_intense("comm", "bandwidth"), 0.5, end="first"),
            criterion=f"{HALF}, {LOW}",
        ),
        Statement(
            text="at low arithmetic intensity large messages slow the computation down",
            paper="by 10 %",
            judge=affected(_intense("comp", "bandwidth"), "first"),
            criterion=f"{SUFFERS}, {LOW}",
        ),
        Statement(
            text="at high arithmetic intensity the bandwidth recovers",
            paper="above 6 flop/B (billy: 70)",
            judge=recovers(_intense("comm", "bandwidth")),
            criterion=RECOVERS,
        ),
    ),
)

EXHIBITS = (*FIGURE_6, *FIGURE_7)
