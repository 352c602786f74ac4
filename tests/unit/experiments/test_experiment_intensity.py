"""`intensity` finds the paper's boundary of arithmetic intensity (Figure 7)."""

from __future__ import annotations

import msgspec
import pytest

from elbowroom import experiments
from elbowroom.experiments import intensity
from elbowroom.experiments.plans import load
from elbowroom.plan.kernels import arithmetic_intensity
from elbowroom.points.point import Point
from elbowroom.results.result import PointResult
from studies import HENRI, measured, sound, study


def roofline(point: Point) -> tuple[float, float, float, float]:
    """Section 4.5: memory-bound below 6 flop/B, where latency doubles and bandwidth loses 60 %."""
    flops = arithmetic_intensity(point.kernel, point.cursor)
    if flops is None:
        return 1.0, 1.0, 1.5, 1.5
    rate = 60_000 * min(1.0, 6 / flops)
    bound = flops <= 6
    if point.metric == "latency":
        return rate, rate, 1.5, 3.0 if bound else 1.5
    return rate, rate * (0.9 if bound else 1.0), 10_500.0, 10_500 * (0.4 if bound else 1.0)


def test_intensity_finds_the_papers_boundary_at_6_flop_per_byte() -> None:
    experiment, found = study("intensity", HENRI, roofline)
    findings = experiment.findings(found, HENRI)
    assert len(findings) == 2
    for finding in findings:
        assert finding.values["memory_bound_to"] == pytest.approx(6)
        assert finding.values["compute_bound_from"] == pytest.approx(8)
        assert finding.values["ridge"] == pytest.approx(6, rel=0.03)
        assert finding.values["comm_recovers_from"] == pytest.approx(8)
    figures = experiment.figures(found, HENRI)
    sound(figures, {item.id for item in found})
    right = next(series for series in figures[0].series if series.axis == "below")
    assert right.y[0] == pytest.approx(60_000 / 12, rel=0.02)


def test_the_boundary_is_the_same_from_flops_as_from_bytes() -> None:
    points = experiments.get("intensity").expand(load("intensity"), HENRI).points
    found = [item for item in measured(points, roofline) if item.metric == "latency"]

    def in_flops(item: PointResult) -> PointResult:
        alone = item.comp.alone
        if alone is None or item.arithmetic_intensity is None:
            return item
        scaled = msgspec.structs.replace(
            alone, median=alone.median * item.arithmetic_intensity, unit="Mflop/s"
        )
        return msgspec.structs.replace(item, comp=msgspec.structs.replace(item.comp, alone=scaled))

    one, other = intensity.boundary(found), intensity.boundary([in_flops(item) for item in found])
    assert (one.inside, one.outside) == (other.inside, other.outside)


def test_a_computation_that_never_leaves_the_memory_bound_says_so() -> None:
    def always(point: Point) -> tuple[float, float, float, float]:
        comm = 1.5 if point.metric == "latency" else 10_500.0
        return 60_000.0, 60_000.0, comm, comm

    experiment, found = study("intensity", HENRI, always)
    assert "stays memory-bound up to" in experiment.findings(found, HENRI)[0].text
