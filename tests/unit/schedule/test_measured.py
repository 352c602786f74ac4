"""The matrix of measured co-location."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.errors import MachineError
from elbowroom.schedule.matrix import parse_matrix
from elbowroom.schedule.measured import SharedTime, agreement, measured_matrix

LINES = [
    line
    for repetition in range(5)
    for line in (
        SharedTime(repetition=repetition, mode="exclusive", application="A", first=(10.0,), wall_s=1),
        SharedTime(repetition=repetition, mode="exclusive", application="B", first=(20.0,), wall_s=1),
        SharedTime(repetition=repetition, mode="half", application="A", first=(9.0,), wall_s=1),
        SharedTime(repetition=repetition, mode="half", application="B", first=(20.0,), wall_s=1),
        SharedTime(
            repetition=repetition, mode="shared", application="A", companion="A", first=(11.0,),
            second=(13.0,), wall_s=1,
        ),
        SharedTime(
            repetition=repetition, mode="shared", application="A", companion="B", first=(10.0, 16.0),
            second=(25.0,), wall_s=1,
        ),
        SharedTime(
            repetition=repetition, mode="shared", application="B", companion="B", first=(40.0,),
            second=(40.0,), wall_s=1,
        ),
    )
]  # fmt: skip


def test_runtimes_are_in_percent_of_the_exclusive_one() -> None:
    matrix = measured_matrix(["A", "B"], LINES)
    assert matrix.exclusive_s == (10.0, 20.0)
    assert [percent.value for percent in matrix.half] == pytest.approx([90.0, 100.0])
    assert matrix.percent("A", "A") == pytest.approx(120.0)
    assert matrix.percent("A", "B") == pytest.approx(130.0)
    assert matrix.percent("B", "A") == pytest.approx(125.0)
    assert matrix.percent("B", "B") == pytest.approx(200.0)


def test_columns_of_the_file_are_measured_applications() -> None:
    read = parse_matrix(measured_matrix(["A", "B"], LINES).csv(), "m.csv")
    assert read.slowdown("A", companion="B") == pytest.approx(1.3)
    assert read.slowdown("B", companion="A") == pytest.approx(1.25)


def test_five_repetitions_have_an_interval_and_four_have_none() -> None:
    whole = measured_matrix(["A", "B"], LINES).cells[0].percent
    few = measured_matrix(["A", "B"], [line for line in LINES if line.repetition < 4]).cells[0].percent
    assert whole.low is not None
    assert whole.high is not None
    assert whole.low <= whole.value <= whole.high
    assert (few.low, few.high) == (None, None)


def test_a_pair_that_is_missing_is_named() -> None:
    with pytest.raises(MachineError, match="B beside B"):
        measured_matrix(["A", "B"], [line for line in LINES if line.application != "B" or not line.companion])


def test_agreement_has_the_mean_error_and_the_correlation_of_ranks() -> None:
    found = agreement([1.0, 2.0, 3.0], [1.0, 2.5, 2.6])
    assert found.mean_error == pytest.approx(100 * (0 + 0.2 + 0.4 / 2.6) / 3)
    assert found.rank_correlation == pytest.approx(1.0)
    assert agreement([1.0, 1.0], [1.0, 2.0]).rank_correlation is None


@given(st.lists(st.floats(1, 100), min_size=3, max_size=20, unique=True))
def test_any_rising_change_keeps_the_order(values: list[float]) -> None:
    assert agreement([value**2 for value in values], values).rank_correlation == pytest.approx(1.0)
