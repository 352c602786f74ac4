"""Curves of simulated factorizations: the thesis' figures, what each point asks, and their pictures."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from elbowroom.broadcast.curves import FIGURES, CurvesDocument, curves_figure, draw_curves
from elbowroom.broadcast.factorizations import (
    STEPS,
    FactorizationRequest,
    KernelTimes,
    SimulatedFactorization,
)

Seconds = Callable[[FactorizationRequest], float]


def drawn(name: str, seconds: Seconds) -> CurvesDocument:
    def simulate(request: FactorizationRequest) -> SimulatedFactorization:
        return SimulatedFactorization(
            seconds=seconds(request), busy=0.5, tasks=1, data=1, broadcasts=1, complete=1, messages=1,
            most_recipients=2,
        )  # fmt: skip

    blocks = {case.block for case in FIGURES[name].cases}
    times = {block: KernelTimes(block=block, seconds=dict.fromkeys(STEPS, 1e-3)) for block in blocks}
    return draw_curves(name, FIGURES[name].cases, times, simulate, lambda _: None)


@pytest.mark.parametrize("name", FIGURES)
def test_each_figure_has_a_point_of_each_line_at_each_place_and_a_picture(name: str) -> None:
    document, curves = drawn(name, lambda _: 1.0), FIGURES[name]
    assert len(document.points) == len(curves.lines) * len(curves.cases)
    figure = curves_figure(document)
    assert [len(series.x) for series in figure.series] == [len(curves.cases)] * len(curves.lines)
    assert len({series.name for series in figure.series}) == len(curves.lines)


def test_the_largest_gain_of_a_line_stands_beside_the_thesis() -> None:
    slow = {"none": 7.0, "binomial": 2.0, "binary": 1.0}
    document = drawn("4.14", lambda request: slow[request.tree] * (1 if request.rows == 40 else 2))
    assert {gain.line: (gain.gain, gain.thesis) for gain in document.gains} == {
        "binomial": (3.5, 5.0),
        "binary": (7.0, 7.0),
    }
    assert document.gains[0].difference == pytest.approx(-0.3)


def test_two_processes_of_a_node_share_its_link_in_figure_4_10b_only() -> None:
    shared: dict[str, list[int]] = {}
    for name in FIGURES:
        asked = shared.setdefault(name, [])

        def seconds(request: FactorizationRequest, asked: list[int] = asked) -> float:
            asked.append(request.sharing)
            return 1.0

        drawn(name, seconds)
    assert {name for name, asked in shared.items() if set(asked) != {1}} == {"4.10b"}


def test_kernels_are_as_much_faster_as_the_clusters_cores_with_tiles_of_320() -> None:
    products: dict[int, float] = {}

    def seconds(request: FactorizationRequest) -> float:
        products[request.times.block] = request.times.seconds["gemm"]
        return 1.0

    drawn("4.15", seconds)
    assert 2 * 320**3 / products[320] == pytest.approx(43e9)
    assert set(products.values()) == {products[320]}
