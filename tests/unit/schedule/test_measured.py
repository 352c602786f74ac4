"""The matrix of measured co-location."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.errors import MachineError
from elbowroom.schedule.matrix import parse_half, parse_matrix
from elbowroom.schedule.measured import (
    Percent,
    PredictedCell,
    SharedTime,
    agreement,
    measured_matrix,
    with_prediction,
)

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


def pair(first: float, second: float, first_beside: float, second_beside: float) -> SharedTime:
    return SharedTime(
        repetition=0, mode="shared", application="A", companion="B", first=(first,), second=(second,),
        first_beside=(first_beside,), second_beside=(second_beside,), wall_s=1,
    )  # fmt: skip


def test_time_without_the_companion_counts_as_alone() -> None:
    others = [line for line in LINES if {line.application, line.companion} != {"A", "B"}]
    # A takes 9 s alone on half of the cores. Of 14 s, 10 are beside B: there it does 5 s of its work, and
    # takes twice as long. B takes 20 s, and is never without A.
    matrix = measured_matrix(["A", "B"], [*others, pair(14.0, 30.0, 10 / 14, 1.0)])
    assert matrix.percent("A", "B") == pytest.approx(100 * 18 / 10)
    assert matrix.percent("B", "A") == pytest.approx(100 * 30 / 20)


def test_an_application_that_was_mostly_without_its_companion_is_too_noisy() -> None:
    others = [line for line in LINES if {line.application, line.companion} != {"A", "B"}]
    (reason,) = measured_matrix(["A", "B"], [*others, pair(10.0, 25.0, 0.9, 0.3)]).noise
    assert reason == "B ran beside A for only 30 % of its time: give both more to do"


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


def test_an_application_alone_that_takes_another_time_each_time_is_too_noisy() -> None:
    changed = [
        SharedTime(repetition=line.repetition, mode="half", application="B",
                   first=(20.0 + 3 * line.repetition,), wall_s=1)
        if (line.mode, line.application) == ("half", "B") else line
        for line in LINES
    ]  # fmt: skip
    assert measured_matrix(["A", "B"], LINES).noise == ()
    (reason,) = measured_matrix(["A", "B"], changed).noise
    assert "B alone on half of the cores" in reason


def test_one_outlier_of_five_is_no_noise() -> None:
    changed = [
        SharedTime(repetition=4, mode="exclusive", application="A", first=(30.0,), wall_s=1)
        if (line.mode, line.application, line.repetition) == ("exclusive", "A", 4) else line
        for line in LINES
    ]  # fmt: skip
    assert measured_matrix(["A", "B"], changed).noise == ()


def test_few_repetitions_are_said() -> None:
    def notes(repetitions: int) -> tuple[str, ...]:
        return measured_matrix(["A", "B"], [line for line in LINES if line.repetition < repetitions]).notes

    assert "how much runs differ is not known" in notes(1)[0]
    assert "no intervals" in notes(4)[0]
    assert notes(5) == ()


def test_the_runs_on_half_of_the_cores_are_read_back() -> None:
    read = parse_half(measured_matrix(["A", "B"], LINES).half_csv(), "half.csv")
    assert read == {"A": pytest.approx(90.0), "B": pytest.approx(100.0)}


def test_a_forecast_is_compared_with_the_cells_that_it_has() -> None:
    def cell(application: str, companion: str, value: float) -> PredictedCell:
        percent = Percent(value=value, low=value - 1, high=value + 1)
        return PredictedCell(application=application, companion=companion, percent=percent)

    found = with_prediction(
        measured_matrix(["A", "B"], LINES), [cell("A", "A", 126.0), cell("B", "B", 200.0)]
    )
    assert found.prediction is not None
    assert found.prediction.agreement.cells == 2
    assert found.prediction.agreement.mean_error == pytest.approx(2.5)
    assert found.prediction.agreement.worst_error == pytest.approx(5.0)


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
