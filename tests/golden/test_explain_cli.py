"""What `explain` prints and draws, compared with kept texts: of made-up results, which no law changes."""

from __future__ import annotations

import pytest
from syrupy.assertion import SnapshotAssertion

from elbowroom import experiments
from elbowroom.draw.svg import svg
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.explain.explainer import ObservedRun, explain
from elbowroom.explain.explanation import Explanation
from elbowroom.explain.figures import figures
from elbowroom.points.point import Point
from elbowroom.verbs.explain import print_explanation
from studies import machine, measured
from texts import widest

TWO = machine(16, 2, 2, nic=0, hosts=2)
KEPT = {"prime": (1.0, 1.0), "fma": (1.0, 1.05), "triad_llc": (0.95, 0.9), "triad": (0.7, 0.6)}


def truth(point: Point) -> tuple[float, float, float, float]:
    comp, comm = (0.6, 0.45) if point.comp_node else KEPT[point.kernel]
    return 9000.0, 9000.0 * comp, 10_000.0, 10_000.0 * comm


@pytest.fixture(scope="module")
def explanation() -> Explanation:
    plan = apply(load("contrast"), Overrides(sizes=(64_000_000,), settings={"n": "all"}))
    points = [point for point in experiments.get("contrast").expand(plan, TWO).points if point.kernel in KEPT]
    results = measured(points, truth, noise=0.002)
    unread = "cannot be read here: n/a, no cpufreq"
    return explain([ObservedRun(run="r", results=results, frequency=unread)], TWO)


def test_explain_prints_a_sentence_for_each_source_and_the_table(
    capsys: pytest.CaptureFixture[str], snapshot: SnapshotAssertion, explanation: Explanation
) -> None:
    print_explanation(explanation)
    out = capsys.readouterr().out
    assert widest(out) <= 80
    assert "\n".join(line.rstrip() for line in out.splitlines()) == snapshot


def test_a_waterfall_is_drawn_as_before(snapshot: SnapshotAssertion, explanation: Explanation) -> None:
    drawn = figures(explanation.shown, explanation.cases)
    far = next(figure for figure in drawn if "node 1" in figure.title and figure.title.startswith("Comm"))
    assert svg(far).replace("><", ">\n<") == snapshot
