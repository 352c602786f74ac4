"""The figures of a model as data: what henri's published parameters look like (thesis, Figs 6.1 and 6.2)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from syrupy.assertion import SnapshotAssertion

from elbowroom.draw.figure import Figure
from elbowroom.models import figures, published
from elbowroom.models.curves import Row, Situation, Streams
from elbowroom.models.load import Prediction
from elbowroom.models.threshold.law import curve
from elbowroom.stats.interval import Interval

HENRI = published.load("henri")
CORES = HENRI.shape.cores_first_socket


def streams(comp_node: int, comm_node: int, ns: range = range(1, CORES + 1)) -> list[tuple[int, Streams]]:
    rows = curve(HENRI.model, comp_node, comm_node, tuple(ns)).tolist()
    return [(n, tuple(row)) for n, row in zip(ns, rows, strict=True)]


def prediction(comp_node: int, comm_node: int, n: int, values: Streams, flags: tuple[str, ...]) -> Prediction:
    names = ("comp_alone", "comm_alone", "comp_together", "comm_together")
    intervals = {
        name: Interval(value=value, low=value * 0.98, high=value * 1.02)
        for name, value in zip(names, values, strict=True)
    }
    situation = Situation(comp_node=comp_node, comm_node=comm_node, n=n)
    return Prediction(situation=situation, flags=flags, **intervals)


def predictions(*, extrapolated_from: int = 99) -> list[Prediction]:
    return [
        prediction(comp, comm, n, values, ("extrapolated",) if n >= extrapolated_from else ())
        for comp in range(2)
        for comm in range(2)
        for n, values in streams(comp, comm)
    ]


def rows(comp_node: int, comm_node: int, spread: float | None = 0.01) -> list[Row]:
    return [
        Row(
            situation=Situation(comp_node=comp_node, comm_node=comm_node, n=n),
            comp_alone=values[0],
            comm_alone=None if n == 3 else values[1],
            comp_together=values[2],
            comm_together=values[3],
            spread=(spread,) * 4,
            source=f"p{n}",
        )
        for n, values in streams(comp_node, comm_node)
    ]


def short(figure: Figure) -> Any:
    """The figure as plain data, its numbers as a page prints them."""

    def rounded(data: Any) -> Any:
        if isinstance(data, dict):
            return {name: rounded(value) for name, value in data.items()}
        if isinstance(data, list | tuple):
            return (
                " ".join(f"{v:.6g}" for v in data)
                if data and isinstance(data[0], float)
                else [rounded(v) for v in data]
            )
        return f"{data:.6g}" if isinstance(data, float) else data

    return rounded(msgspec.to_builtins(figure))


def test_a_panel_per_placement_with_points_and_lines(snapshot: SnapshotAssertion) -> None:
    drawn = figures.panels(
        HENRI.shape, predictions(), rows(0, 0) + rows(1, 0, None), calibrated=((0, 0), (1, 1))
    )
    assert [(figure.title, figure.highlight, len(figure.series)) for figure in drawn] == [
        ("computations on node 0, communications on node 0", "calibrated here", 8),
        ("computations on node 1, communications on node 0", "", 8),
        ("computations on node 0, communications on node 1", "", 4),
        ("computations on node 1, communications on node 1", "calibrated here", 4),
    ]
    assert short(drawn[0]) == snapshot


def test_the_stacked_figure_names_its_points(snapshot: SnapshotAssertion) -> None:
    drawn = figures.stacked(HENRI.shape, 0, HENRI.used("local"), streams(0, 0), source="model")
    assert short(drawn) == snapshot


def test_points_without_a_known_spread_have_no_whiskers() -> None:
    drawn = figures.panels(HENRI.shape, predictions(), rows(0, 0, None))
    points = [series for series in drawn[0].series if series.drawn == "points"]
    assert len(points) == 4
    assert all(series.low == () for series in points)
    assert len(points[0].x) == CORES - 1


def test_all_panels_have_the_same_scales() -> None:
    drawn = figures.panels(HENRI.shape, predictions(), rows(0, 0))
    assert len({(figure.left.reach, figure.below.reach) for figure in drawn if figure.below}) == 1
    highest = max(p.comp_alone.high for p in predictions())
    assert drawn[0].below is not None
    assert drawn[0].below.reach == pytest.approx(highest)


def test_a_mark_says_where_the_model_leaves_what_was_measured() -> None:
    (mark,) = figures.panels(HENRI.shape, predictions(extrapolated_from=12))[0].marks
    assert mark.x == 11
    (mark,) = figures.panels(HENRI.shape, predictions(extrapolated_from=1))[0].marks
    assert "nothing like this placement" in mark.text


def test_the_figures_of_a_virtual_machine_say_so() -> None:
    shape = msgspec.structs.replace(HENRI.shape, virtual=True)
    drawn = figures.panels(shape, predictions())
    stacked = figures.stacked(shape, 0, HENRI.used("local"), streams(0, 0), source="model")
    assert all("virtual" in figure.caption for figure in (*drawn, stacked))


def test_two_peaks_at_one_count_are_one_named_point() -> None:
    one = msgspec.structs.replace(HENRI.used("local"), n_par_max=HENRI.local.n_seq_max)
    drawn = figures.stacked(HENRI.shape, 0, one, streams(0, 0), source="model")
    assert [label.text for label in drawn.labels] == ["B_comp_seq", "T_par_max = T_par_max2", "T_seq_max"]
