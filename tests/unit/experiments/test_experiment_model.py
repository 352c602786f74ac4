"""`model` finds where the shared bandwidths peak, and from how many cores each side suffers."""

from __future__ import annotations

import pytest

from elbowroom import experiments
from elbowroom.experiments.plans import load
from elbowroom.points.point import Point
from studies import HENRI, sound, study


def shared(point: Point) -> tuple[float, float, float, float]:
    """The bus carries 60 GB/s; memset asks 6 GB/s per core, reception 10; what is asked above is lost by
    both.
    """
    asked = 6000.0 * point.n
    alone = min(asked, 60_000.0)
    share = min(1.0, 60_000 / (alone + 10_000)) if point.kernel != "prime" else 1.0
    return alone, alone * share, 10_000.0, 10_000 * share


def test_model_covers_the_first_socket_and_every_placement() -> None:
    plan = load("model")
    points = experiments.get("model").expand(plan, HENRI).points
    asked = [point for point in points if point.role == "point"]
    assert {point.n for point in asked} == set(range(1, 19))
    assert {(point.comp_node, point.comm_node) for point in asked} == {
        (a, b) for a in range(4) for b in range(4)
    }
    assert {(point.kernel, point.pattern, point.size) for point in asked} == {
        ("memset_nt", "receive", 64_000_000)
    }
    assert all(core < 18 for point in asked for core in point.comp_cores)


def test_model_finds_peaks_and_onsets() -> None:
    experiment, found = study("model", HENRI, shared, comp_node=0, comm_node=0)
    (finding,) = experiment.findings(found, HENRI)
    assert finding.values["peak_alone"] == pytest.approx(60_000, rel=0.02)
    assert finding.values["comm_from"] in (9, 10)
    sound(experiment.figures(found, HENRI), {item.id for item in found})
