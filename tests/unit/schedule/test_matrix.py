"""Matrices of slowdowns, read from CSV."""

from __future__ import annotations

import pytest

from elbowroom.errors import UsageError
from elbowroom.schedule.matrix import MOST_APPLICATIONS, parse_half, parse_matrix
from schedule_fixture import published_half, published_matrix

GOOD = "companion,A,B\nA,101,99.5\nB,80%,120.\n"


def test_columns_are_the_measured_applications() -> None:
    matrix = published_matrix()
    assert matrix.slowdown("CG", companion="EP") == pytest.approx(0.752)
    assert matrix.slowdown("EP", companion="CG") == pytest.approx(1.005)


def test_every_cell_of_the_published_matrix_is_read() -> None:
    matrix = published_matrix()
    assert matrix.names == ("BT", "CG", "EP", "FT", "IS", "LU", "MG", "SP")
    assert matrix.array().shape == (8, 8)
    assert matrix.array().sum() == pytest.approx(6023.3)


def test_the_published_runtimes_give_the_published_ratios() -> None:
    """Slide 20 divides the same runtimes; it contradicts itself for EP (machines/colocation/)."""
    ratios, printed = published_half("koop_all_vs_half.csv"), published_half()
    for name, ratio in ratios.items():
        assert ratio == pytest.approx(printed[name], abs=3.0 if name == "EP" else 0.3)


def test_percent_signs_and_comments_are_accepted() -> None:
    matrix = parse_matrix(f"# measured\n\n{GOOD}", "m.csv")
    assert matrix.percent == ((101.0, 99.5), (80.0, 120.0))


def test_rows_may_come_in_another_order_than_columns() -> None:
    assert parse_matrix("x,A,B\nB,80,120\nA,101,99.5\n", "m.csv") == parse_matrix(GOOD, "m.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x,A,B\nA,1%2.4,99\nB,80,120\n", "has '1%2.4' in row 'A', column 'A' (line 2)"),
        ("x,A,B\nA,101,99\nB,80,-1\n", "has '-1' in row 'B', column 'B' (line 3)"),
        ("x,A,B\nA,101,nan\nB,80,120\n", "has 'nan' in row 'A', column 'B'"),
        ("x,A,B\nA,101,\nB,80,120\n", "has no value in row 'A', column 'B'"),
        ("x,A,B\nA,101\nB,80,120\n", "has no value in row 'A', column 'B'"),
        ("x,A,B\nA,101,99,7\nB,80,120\n", "has 3 values in row 'A' (line 2), and 2 columns"),
        ("x,A,B\nA,101,99\n", "has a column 'B' and no row of it"),
        ("x,A\nA,101\nB,80\n", "has a row 'B' and no column of it"),
        ("x,A,A\nA,101,99\nB,80,120\n", "has two columns 'A'"),
        ("x,A,B\nA,101,99\nA,80,120\n", "has two rows 'A'"),
        ("x,A,\nA,101,99\nB,80,120\n", "has no name in column 2"),
        ("x\nA\n", "has no columns"),
        ("", "has no values"),
        ("# nothing\n", "has no values"),
        ("x,A,B\nA,1.01,0.99\nB,0.8,1.2\n", "holds ratios, not percent"),
        ('x,A,B\nA,"101,99\nB,80,120\n', "is damaged in line 2"),
    ],
)
def test_a_damaged_matrix_is_refused_by_row_column_and_value(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_matrix(text, "m.csv")
    assert message in caught.value.sentence()
    assert caught.value.hint


def test_a_matrix_of_too_many_applications_is_refused() -> None:
    names = ",".join(f"a{number}" for number in range(MOST_APPLICATIONS + 1))
    with pytest.raises(UsageError, match="more than"):
        parse_matrix(f"x,{names}\na0,100\n", "m.csv")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A,B\n99\n", "has no value in row 'half', column 'B'"),
        ("A,B\n99,x\n", "has 'x' in row 'half', column 'B'"),
        ("A,B\n99,98\n97,96\n", "has 2 lines of values"),
        ("bench,all_s,half_s\nA,10,\n", "has no value in row 'A', column 'half_s'"),
        ("bench,all_s,half_s\nA,10,9\nA,10,9\n", "has two rows 'A'"),
    ],
)
def test_damaged_runtimes_of_half_of_the_cores_are_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_half(text, "h.csv")
    assert message in caught.value.sentence()
