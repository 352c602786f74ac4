"""What recording costs: sets, orders of runs and verdicts, from made-up runs."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from elbowroom.errors import UsageError
from elbowroom.trace import overhead
from elbowroom.trace.overhead import (
    ALL,
    NONE,
    OFF,
    Overhead,
    Set,
    TimedRun,
    analyse,
    order,
    overhead_figures,
    page,
    parse_sets,
    sets_of,
    sets_without,
)

EVENTS = {NONE: 0, OFF: 0, "mpi": 100, "task": 900, ALL: 1000}


def runs(
    costs: Mapping[str, float],
    *,
    noise: float = 0.002,
    repeat: int = 10,
    threads: int | None = None,
    lost: int = 0,
    events: Mapping[str, int] = EVENTS,
) -> list[TimedRun]:
    """Runs of 2 s that take `costs` more with each set, and drift together by 20 %."""
    rng = np.random.default_rng(3)
    result = []
    for repetition in range(repeat):
        for name, cost in costs.items():
            value = 2 * (1 + cost) * (1 + 0.2 * repetition / repeat) * math.exp(rng.normal(0, noise))
            recorded = events[name]
            result.append(
                TimedRun(
                    threads,
                    name,
                    repetition,
                    value,
                    value,
                    recorded,
                    lost if recorded else 0,
                    4096 if recorded else 0,
                )
            )
    return result


def told(costs: Mapping[str, float], **more: float) -> Overhead:
    sets = sets_of(("task", "mpi"))
    return analyse(runs(costs, **more), sets, command=("app",), buffer=4096)  # type: ignore[arg-type]


COSTS = {NONE: 0.0, OFF: 0.001, "task": 0.2, "mpi": 0.01, ALL: 0.21}


def test_each_category_is_a_set_between_nothing_and_everything() -> None:
    assert [one.name for one in sets_of(("task", "mpi"))] == [NONE, OFF, "task", "mpi", ALL]


def test_a_single_category_is_everything() -> None:
    assert [one.name for one in sets_of(("task",))] == [NONE, OFF, ALL]


def test_sets_are_written_with_commas_and_semicolons() -> None:
    assert parse_sets("mpi;mpi, task") == (
        Set(NONE, ()),
        Set(OFF, ("none",)),
        Set("mpi", ("mpi",)),
        Set("mpi,task", ("mpi", "task")),
        Set(ALL, None),
    )


def test_an_empty_name_in_a_set_is_refused() -> None:
    with pytest.raises(UsageError, match="empty name"):
        parse_sets("mpi;;task")


def test_every_repetition_has_every_case_once_in_an_order_of_its_own() -> None:
    sets = sets_of(("task", "mpi"))
    turns = list(order(sets, (1, 2), 6, seed=1))
    by_repetition = [[(count, one.name) for r, count, one in turns if r == number] for number in range(6)]
    assert {frozenset(turn) for turn in by_repetition} == {
        frozenset((count, one.name) for count in (1, 2) for one in sets)
    }
    assert len({tuple(turn) for turn in by_repetition}) > 1


def test_a_cheap_trace_is_trusted() -> None:
    result = told({**COSTS, "task": 0.01, ALL: 0.02})
    assert result.verdicts[0].state == "trusted"
    assert result.decided


def test_drift_that_all_runs_share_cancels() -> None:
    whole = next(case for case in told(COSTS).cases if case.set == ALL)
    assert whole.overhead is not None
    assert whole.overhead.low < 0.21 < whole.overhead.high
    assert whole.overhead.high - whole.overhead.low < 0.02


def test_of_a_costly_trace_the_set_that_fits_is_advised() -> None:
    verdict = told(COSTS).verdicts[0]
    assert verdict.state == "costly"
    assert verdict.categories == ("mpi",)
    assert verdict.advice[0].startswith("The category task costs most: 20.")


def test_where_no_set_fits_the_costliest_is_left_out() -> None:
    verdict = told({**COSTS, "mpi": 0.1}).verdicts[0]
    assert verdict.categories == ("mpi",)
    assert "not measured" in verdict.advice[1]


def test_costs_that_cannot_be_told_apart_are_told_by_events() -> None:
    verdict = told({**COSTS, "task": 0.1, "mpi": 0.1001}, noise=0.02).verdicts[0]
    assert verdict.advice[0].startswith("The category task costs most")


def test_a_recorder_that_costs_by_itself_is_not_mended_by_fewer_events() -> None:
    verdict = told({**COSTS, OFF: 0.19}).verdicts[0]
    assert verdict.categories is None
    assert "every category off" in verdict.advice[0]


def test_noise_is_undecided() -> None:
    result = told({**COSTS, ALL: 0.05}, noise=0.2)
    assert result.verdicts[0].state == "undecided"
    assert not result.decided


def test_lost_events_want_a_bigger_buffer() -> None:
    result = told({**COSTS, ALL: 0.01}, lost=5)
    assert result.verdicts[0].state == "lost"
    assert result.verdicts[0].advice == ("Use a larger ring for each thread: --buffer 4KiB.",)
    assert not result.decided


@pytest.mark.parametrize("odd", [math.nan, math.inf])
def test_a_metric_that_is_no_number_has_no_verdict(odd: float) -> None:
    void = [run._replace(value=odd) if run.set == ALL else run for run in runs(COSTS)]
    result = analyse(void, sets_of(("task", "mpi")), command=("app",), metric="speed")
    assert result.verdicts[0].text.startswith("n/a: The metric was not a finite number in 10 of 50 runs")
    assert result.verdicts[0].state == "undecided"
    assert not result.decided
    assert "nan" not in page(result)


def test_a_run_whose_metric_is_no_number_is_left_out_of_both_sides() -> None:
    void = [
        run._replace(value=math.nan) if run.set == ALL and run.repetition == 9 else run for run in runs(COSTS)
    ]
    result = analyse(void, sets_of(("task", "mpi")), command=("app",), metric="speed")
    whole = next(case for case in result.cases if case.set == ALL)
    assert whole.overhead is not None
    assert whole.overhead.value == pytest.approx(0.21, abs=0.01)
    assert result.verdicts[0].state == "costly"
    assert result.verdicts[0].advice[-1].startswith("The metric was not a finite number in 1 of 50 runs")


def test_of_a_rate_less_is_slower() -> None:
    slower = [run._replace(value=1 / run.value) for run in runs(COSTS)]
    result = analyse(slower, sets_of(("task", "mpi")), command=("app",), metric="flops", rate=True)
    whole = next(case for case in result.cases if case.set == ALL)
    assert whole.overhead is not None
    assert whole.overhead.value == pytest.approx(0.21, abs=0.01)


def test_each_number_of_threads_has_a_verdict() -> None:
    cheap = runs({**COSTS, "task": 0.01, ALL: 0.01}, threads=1)
    result = analyse([*runs(COSTS, threads=2), *cheap], sets_of(("task", "mpi")), command=("app",))
    assert [(verdict.threads, verdict.state) for verdict in result.verdicts] == [
        (1, "trusted"),
        (2, "costly"),
    ]


def test_there_is_a_figure_for_each_number_of_threads_and_one_over_them() -> None:
    result = analyse(
        [*runs(COSTS, threads=1), *runs(COSTS, threads=2)], sets_of(("task", "mpi")), command=("app",)
    )
    drawn = overhead_figures(result)
    assert [figure.name for figure in drawn] == ["overhead-1", "overhead-2", "overhead-threads"]
    assert drawn[0].x.names == (NONE, OFF, "task", "mpi", ALL)
    assert drawn[0].series[1].y == (0, 0, 900, 100, 1000)


def test_the_page_says_the_verdict_and_escapes_the_command() -> None:
    result = analyse(runs(COSTS), sets_of(("task", "mpi")), command=("app", "<b>"))
    assert "&lt;b&gt;" in page(result)
    assert "<b>" not in page(result)
    assert result.verdicts[0].text in page(result)


@settings(max_examples=20)
@given(st.floats(0.1, 10), st.floats(1e-3, 1e3))
def test_runs_that_all_take_a_factor_longer_cost_just_that(factor: float, seconds: float) -> None:
    bare = [TimedRun(None, NONE, r, seconds * (1 + 0.1 * r), 1.0) for r in range(5)]
    slow = [run._replace(set=ALL, value=run.value * factor) for run in bare]
    result = overhead.overhead(bare, slow, rate=False)
    assert result is not None
    for value in (result.value, result.low, result.high):
        assert value == pytest.approx(factor - 1, rel=1e-6, abs=1e-9)


TYPES = ("dependency", "submit", "ready", "push", "solve<int,2>", "pop")
"""Types of a program, the most frequent ones first; lists cannot name one with a comma."""


def test_the_four_most_frequent_types_are_left_out_one_by_one() -> None:
    sets = sets_without("frequent", TYPES)
    assert [one.name for one in sets[:3]] == [NONE, OFF, ALL]
    assert [one.without for one in sets[3:]] == [("dependency",), ("submit",), ("ready",), ("push",)]
    assert all(one.categories is None for one in sets[2:])
    rest = sets_without("frequent", TYPES[3:])
    assert [one.without for one in rest[3:]] == [("push",), ("pop",)]


def test_lists_of_types_are_left_out_together_and_twice_the_same_list_once() -> None:
    sets = sets_without("submit; ready,push;submit", TYPES)
    assert [one.without for one in sets[3:]] == [("submit",), ("ready", "push")]
    assert sets[-1].name == "all but ready, push"


def test_a_type_that_the_program_does_not_have_is_refused_with_the_nearest_one() -> None:
    with pytest.raises(UsageError) as error:
        sets_without("submitt", TYPES)
    assert (error.value.field, error.value.value) == ("without", "submitt")
    assert "submit" in error.value.hint


def test_the_costly_type_is_left_out_of_the_recommended_trace() -> None:
    sets = sets_without("task;mpi", ("task", "mpi"))
    events = {NONE: 0, OFF: 0, ALL: 1000, "all but task": 100, "all but mpi": 900}
    costs = {NONE: 0.0, OFF: 0.001, ALL: 0.21, "all but task": 0.01, "all but mpi": 0.2}
    result = analyse(runs(costs, events=events), sets, command=("app",), buffer=4096)
    (verdict,) = result.verdicts
    assert verdict.without == ("task",)
    assert any("--without task" in line for line in verdict.advice)
    (figure,) = overhead_figures(result)
    assert figure.x.names == tuple(costs)
