"""The matrix as a map."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from elbowroom.draw import svg
from elbowroom.draw.files import save
from elbowroom.draw.scales import horizontal, vertical
from elbowroom.schedule.matrix import Matrix
from elbowroom.schedule.pairing import DOT, MOST_WRITTEN, companions_figure, matrix_figure
from schedule_fixture import published_matrix


def test_both_axes_name_the_applications() -> None:
    figure = matrix_figure(published_matrix(), [("CG", "EP")])
    for axis in (horizontal(figure), vertical(figure, "left")):
        assert {tick.label for tick in axis.ticks} == set(published_matrix().names)
        assert (axis.low, axis.high) == (-0.5, 7.5)


def texts(svg: str) -> list[tuple[str, float, float]]:
    """The texts of a picture with their places, y downwards."""
    found = re.findall(r'<text[^>]* x="([0-9.]+)" y="([0-9.]+)"[^>]*>([^<]+)</text>', svg)
    return [(text, float(x), float(y)) for x, y, text in found]


def cells(svg: str, names: Sequence[str]) -> dict[tuple[str, str], str]:
    """What is written in each cell of a picture, by the names at the ends of its row and of its column."""
    placed = texts(svg)
    ticks = [item for item in placed if item[0] in names]
    bottom = max(y for _, _, y in ticks)
    columns = {name: x for name, x, y in ticks if y == bottom}
    rows = {name: y for name, _, y in ticks if y != bottom}
    assert set(columns) == set(rows) == set(names)

    def nearest(places: dict[str, float], at: float) -> str:
        return min(places, key=lambda name: abs(places[name] - at))

    left, top = min(columns.values()) - 20, min(rows.values()) - 20
    inside = [
        item
        for item in placed
        if re.fullmatch(r"(\u25cf )?[0-9.]+", item[0]) and item[1] > left and item[2] > top
    ]
    return {(nearest(rows, y), nearest(columns, x)): text for text, x, y in inside}


@pytest.mark.parametrize("where", ["page", "file"])
def test_each_cell_of_the_picture_has_its_own_value(where: str, tmp_path: Path) -> None:
    matrix = published_matrix()
    figure = matrix_figure(matrix, [("CG", "EP")])
    if where == "file":
        save(figure, tmp_path / "m.svg")
    picture = svg.svg(figure) if where == "page" else (tmp_path / "m.svg").read_text(encoding="utf-8")
    dots = {("CG", "EP"), ("EP", "CG")}
    assert cells(picture, matrix.names) == {
        (row, column): f"{DOT} {value:.1f}" if (row, column) in dots else f"{value:.1f}"
        for row, values in zip(matrix.names, matrix.percent, strict=True)
        for column, value in zip(matrix.names, values, strict=True)
    }


@pytest.mark.parametrize("where", ["page", "file"])
def test_rows_are_in_the_order_of_the_matrix(where: str, tmp_path: Path) -> None:
    matrix = published_matrix()
    figure = matrix_figure(matrix, [])
    if where == "file":
        save(figure, tmp_path / "m.svg")
    picture = svg.svg(figure) if where == "page" else (tmp_path / "m.svg").read_text(encoding="utf-8")
    ticks = [item for item in texts(picture) if item[0] in matrix.names]
    bottom = max(y for _, _, y in ticks)
    down = sorted((item for item in ticks if item[2] != bottom), key=lambda item: item[2])
    assert [name for name, _, _ in down] == list(matrix.names)


def test_the_darkest_shade_is_on_the_longest_runtime() -> None:
    figure = matrix_figure(published_matrix(), [])
    [field] = figure.fields
    top = field.values[-1]
    first = published_matrix().percent[0]
    assert top == tuple(value for value in first for _ in range(2))


def test_a_large_matrix_has_dots_in_place_of_values() -> None:
    names = tuple(f"a{number}" for number in range(MOST_WRITTEN + 1))
    large = Matrix(names=names, percent=((100.0,) * len(names),) * len(names))
    figure = matrix_figure(large, [("a0", "a1")])
    assert {(label.x, label.y, label.text) for label in figure.labels} == {(1.0, 12.0, ""), (0.0, 11.0, "")}


def test_values_of_a_large_matrix_are_left_out() -> None:
    names = tuple(f"a{number}" for number in range(MOST_WRITTEN + 1))
    large = Matrix(names=names, percent=((100.0,) * len(names),) * len(names))
    assert matrix_figure(large, []).regions == ()


def test_the_companions_of_each_application_rise_from_the_least_and_begin_with_half_of_the_cores() -> None:
    matrix = published_matrix()
    figure = companions_figure(matrix, {"CG": 75.2})
    assert tuple(series.name for series in figure.series) == matrix.names
    for series in figure.series:
        column = [row[matrix.names.index(series.name)] for row in matrix.percent]
        measured = series.y[1:] if series.name == "CG" else series.y
        assert list(measured) == sorted(column)
        labels = [figure.x.names[int(place)] for place in series.x]
        assert sorted(label for label in labels if label != "half") == sorted(matrix.names)
    cg = next(series for series in figure.series if series.name == "CG")
    assert cg.y[0] == 75.2
    assert figure.x.names[int(cg.x[0])] == "half"


def test_bars_of_two_applications_do_not_share_a_place() -> None:
    places = [place for series in companions_figure(published_matrix()).series for place in series.x]
    assert len(places) == len(set(places)) == 64
