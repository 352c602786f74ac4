"""Figure 9 as `polling` draws it, and what it says, of results without noise: up to six workers, made up."""

from __future__ import annotations

from syrupy.assertion import SnapshotAssertion

from elbowroom.experiments.plans import load
from elbowroom.experiments.polling import EXPERIMENT as polling
from elbowroom.points.point import Point
from elbowroom.points.program import AppProgram
from elbowroom.results.points import results
from elbowroom.results.result import PointResult
from elbowroom.stats.summary import Samples
from studies import machine

EIGHT = machine(8)
COSTS = {2: 0.1, 32: 0.05}
"""us that each worker adds, by the most nops between two of its polls."""


def truth(point: Point) -> tuple[float, float]:
    """(latency beside the workers in us, million polls a second) of a point; alone it is 1.5 us."""
    nops = point.cursor if not isinstance(point.workload, AppProgram) else point.workload.backoff
    busy = point.kernel == "polling" or isinstance(point.workload, AppProgram)
    return 1.5 + COSTS.get(nops or 0, 0.0) * point.n * busy, 50.0 / point.cursor * point.n


def made() -> list[PointResult]:
    points = polling.expand(load("polling"), EIGHT).points
    rows = []
    for index, point in enumerate(points):
        beside, polls = truth(point)
        cells = [("B", "comm", 1.5, "us"), ("AB", "comm", beside, "us")]
        cells += [(phase, "comp", polls, "M/s") for phase in ("A", "AB") if point.kernel != "none"]
        rows += [(index, turn, False, *cell, "ok") for cell in cells for turn in range(5)]
    return results(points, Samples(*zip(*rows, strict=True)))


def test_figures_of_polling_workers(snapshot: SnapshotAssertion) -> None:
    drawn = [
        {
            "name": figure.name,
            "title": figure.title,
            "axes": [axis.label for axis in (figure.x, figure.left, figure.below) if axis is not None],
            "series": [(line.name, line.style, line.axis, line.x, line.y) for line in figure.series],
        }
        for figure in polling.figures(made(), EIGHT)
    ]
    assert drawn == snapshot


def test_words_about_polling_workers(snapshot: SnapshotAssertion) -> None:
    assert [finding.text for finding in polling.findings(made(), EIGHT)] == snapshot
