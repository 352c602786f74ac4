"""Red points, where both sides slow, are told from blue ones: only the computation does, below saturation."""

from __future__ import annotations

import msgspec
import pytest

from elbowroom.points.point import Point
from elbowroom.results.curves import colour, highest, regime, traffic
from elbowroom.stats.interval import Kept
from studies import HENRI, SMALL, by_key, study

PEAK = 60_000.0  # bus MB/s of a node


def bus(point: Point) -> tuple[float, float, float, float]:
    """TRIAD asks 6 GB/s of the bus per core up to 60: it alone loses with 2 and 3 cores, both from 8."""
    if point.kernel == "prime":
        return 1.0, 1.0, 1.5, 1.5
    alone = min(6000.0 * point.n, PEAK) * 24 / 32
    comm = 1.5 if point.metric == "latency" else 10_000.0
    if point.n in (2, 3):
        return alone, alone * 0.8, comm, comm
    if point.n >= 8:
        return alone, alone * 0.8, comm, comm * (1.5 if point.metric == "latency" else 0.6)
    return alone, alone, comm, comm


def test_traffic_counts_write_allocates_and_each_byte_of_a_message_once() -> None:
    _, outcome = study("cores", HENRI, bus, kernels=("triad",))
    item = next(item for item in outcome if item.n == 5 and item.metric == "bandwidth")
    assert traffic(item, "alone") == pytest.approx(30_000, rel=0.02)
    assert traffic(item, "together") == pytest.approx(40_000, rel=0.02)
    latency = next(item for item in outcome if item.n == 5 and item.metric == "latency")
    assert traffic(latency, "together") == pytest.approx(30_000 + 4 / 1.5, rel=0.02)
    control = next(item for item in outcome if item.kernel == "prime")
    assert traffic(control, "alone") is None


def test_the_highest_traffic_is_that_of_the_node_of_the_data() -> None:
    _, outcome = study("cores", HENRI, bus, kernels=("triad",))
    assert highest(outcome) == {HENRI.nodes[0].number: pytest.approx(PEAK, rel=0.02)}


def test_cores_tells_where_points_are_red_and_where_blue() -> None:
    experiment, outcome = study("cores", HENRI, bus, kernels=("triad",))
    finding = next(
        item for item in experiment.findings(outcome, HENRI) if item.values["metric"] == "bandwidth"
    )
    assert finding.values["blue"] == "2,3"
    assert finding.values["red"] == ",".join(str(n) for n in range(8, 36))
    assert "At 2 of 35 points (2 to 3 computing cores) only the computation" in finding.text
    assert "far from saturated (blue)" in finding.text
    assert "as they do where the memory saturates (red)" in finding.text


def test_a_computation_that_slows_where_the_memory_is_saturated_is_not_blue() -> None:
    def saturated(point: Point) -> tuple[float, float, float, float]:
        comp, _, comm, _ = bus(point)
        return comp, comp * (0.9 if point.n >= 10 else 1.0), comm, comm

    _, outcome = study("cores", HENRI, saturated, kernels=("triad",))
    peaks = highest(outcome)
    assert {regime(item, peaks) for item in outcome} == {None}


def test_model_tells_regimes_too() -> None:
    def shared(point: Point) -> tuple[float, float, float, float]:
        alone = min(6000.0 * point.n, PEAK)
        if point.kernel == "prime" or point.n < 10:
            return alone, alone, 10_000.0, 10_000.0
        return alone, alone * 0.9, 10_000.0, 6000.0

    experiment, outcome = study("model", HENRI, shared, comp_node=0, comm_node=0)
    (finding,) = experiment.findings(outcome, HENRI)
    assert finding.values["red"] == ",".join(str(n) for n in range(10, 19))
    assert "blue" not in finding.values


def test_quick_says_how_much_of_the_bandwidth_seen_is_moved() -> None:
    def blue(point: Point) -> tuple[float, float, float, float]:
        comm = 0.2 if point.metric == "latency" else 4000.0
        if point.kernel == "prime":
            return 6.6, 6.6, comm, comm
        if point.kernel == "memset_nt":
            return 40_000.0, 40_000.0, comm, comm
        return 12_000.0, 12_000.0 * (0.7 if point.size > 4 else 1.0), comm, comm

    experiment, outcome = study("quick", SMALL, blue)
    findings = experiment.findings(outcome, SMALL)
    pair = by_key(findings, "triad-n1-67108864")
    assert pair.values["regime"] == "blue"
    assert "Blue: only the computation slows down" in pair.text
    assert by_key(findings, "triad-n1-4").values["regime"] is None
    assert by_key(findings, "memset_nt").values["regime"] is None


@pytest.mark.parametrize(
    ("n", "comp", "comm", "expected"),
    [
        (10, 0.8, 0.6, "red"),
        (3, 0.8, 1.0, "blue"),
        (10, 0.8, 1.0, "computation only"),
        (10, 1.0, 0.6, "communication only"),
        (10, 1.0, 0.99, "neither"),
    ],
)
def test_every_point_has_a_colour_or_a_name(n: int, comp: float, comm: float, expected: str) -> None:
    def truth(point: Point) -> tuple[float, float, float, float]:
        alone = 6000.0 * point.n * 24 / 32
        # The others are undisturbed, and ten of them move most.
        kept = (comp, comm) if point.n == n else (1.0, 1.0)
        rate = 1.5 if point.metric == "latency" else 100.0
        return alone, alone * kept[0], rate, rate * kept[1]

    _, outcome = study("cores", HENRI, truth, kernels=("triad",), settings={"n": "3,10"}, sizes=(64_000_000,))
    peaks = {0: 70_000.0 if expected != "computation only" else 50_000.0}
    (item,) = [item for item in outcome if item.n == n and item.kernel == "triad"]
    assert colour(item, peaks) == expected


def test_a_median_below_whose_interval_reaches_one_is_undecided() -> None:
    _, outcome = study("cores", SMALL, lambda _: (9000.0, 9000.0, 1.0, 1.0))
    item = next(item for item in outcome if item.kernel == "triad")
    wide = msgspec.structs.replace(
        item, comp=msgspec.structs.replace(item.comp, kept=Kept(value=0.9, low=0.8, high=1.01))
    )
    assert colour(wide, highest(outcome)) == "undecided"
    control = next(item for item in outcome if item.kernel == "prime")
    assert colour(control, highest(outcome)) is None
