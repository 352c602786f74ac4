"""The matrix as a map."""

from __future__ import annotations

from elbowroom.draw.scales import horizontal, vertical
from elbowroom.schedule.figures import MOST_WRITTEN, matrix_figure
from elbowroom.schedule.matrix import Matrix
from schedule_fixture import published_matrix


def test_both_axes_name_the_applications() -> None:
    figure = matrix_figure(published_matrix(), [("CG", "EP")])
    for axis in (horizontal(figure), vertical(figure, "left")):
        assert [tick.label for tick in axis.ticks] == list(published_matrix().names)
        assert (axis.low, axis.high) == (-0.5, 7.5)


def test_a_pair_has_a_dot_for_each_of_its_applications() -> None:
    figure = matrix_figure(published_matrix(), [("CG", "EP")])
    assert {(label.x, label.y, label.text) for label in figure.labels} == {
        (1.0, 2.0, "75.2"),
        (2.0, 1.0, "100.5"),
    }
    assert len(figure.regions) == 64 - 2


def test_a_pair_of_one_application_has_one_dot() -> None:
    assert len(matrix_figure(published_matrix(), [("FT", "FT")]).labels) == 1


def test_values_of_a_large_matrix_are_left_out() -> None:
    names = tuple(f"a{number}" for number in range(MOST_WRITTEN + 1))
    large = Matrix(names=names, percent=((100.0,) * len(names),) * len(names))
    assert matrix_figure(large, []).regions == ()
