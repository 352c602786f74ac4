"""What is measured next where time is limited, decided without a probe and without a clock."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping

from elbowroom.measure.agenda import Agenda, Limits
from elbowroom.points.unit import Unit

POINTS = ("control", "a", "b", "c", "d")


def closing(*points: str) -> list[Unit]:
    return [Unit(point=point, repetition=0, closing=True) for point in points]


def agenda(
    limits: Limits | None = None,
    *,
    widths: Mapping[str, float] | Callable[[], Mapping[str, float]] | None = None,
    seconds: Mapping[str, float] | None = None,
    at_the_end: list[Unit] | None = None,
    first: int = 1,
    seed: int = 1,
    reverse: bool = False,
) -> Agenda:
    return Agenda(
        POINTS,
        limits or Limits(least=5, most=10),
        seconds=seconds or dict.fromkeys(POINTS, 1.0),
        widths=widths if callable(widths) else lambda: widths or {},
        first=first,
        closing=at_the_end or [],
        seed=seed,
        reverse=reverse,
    )


def measured(
    plan: Agenda,
    budget: float,
    takes: Callable[[Unit], float] = lambda unit: 1.0,
    sound: Callable[[Unit], bool] = lambda unit: True,
) -> tuple[list[Unit], float]:
    """The units in order, and the seconds that are left after them."""
    units = []
    while (unit := plan.next(budget)) is not None:
        units.append(unit)
        assert len(units) < 1000
        budget -= takes(unit)
        plan.record(unit, takes(unit), sound=sound(unit))
    return units, budget


def counts(units: list[Unit]) -> Counter[str]:
    return Counter(unit.point for unit in units if not unit.closing)


def test_with_time_for_all_every_point_gets_the_plans_repetitions() -> None:
    plan = agenda(at_the_end=closing("a", "b"))
    units, _ = measured(plan, 1000)
    assert counts(units) == dict.fromkeys(POINTS, 10)
    assert [unit.point for unit in units[-2:]] == ["a", "b"]
    assert len(set(units)) == len(units)
    assert plan.left_out() == ()


def test_a_round_measures_every_point_once_in_an_order_of_its_own() -> None:
    units, _ = measured(agenda(), 1000)
    rounds = [tuple(unit.point for unit in units[first : first + 5]) for first in range(0, 25, 5)]
    assert all(sorted(one) == sorted(POINTS) for one in rounds)
    assert len(set(rounds)) > 1


def test_the_same_seed_gives_the_same_order_and_reverse_turns_each_round() -> None:
    units, _ = measured(agenda(), 1000)
    assert measured(agenda(), 1000)[0] == units
    assert measured(agenda(seed=2), 1000)[0] != units
    turned, _ = measured(agenda(reverse=True), 1000)
    assert [unit.point for unit in turned[:5]] == [unit.point for unit in units[4::-1]]


def test_where_time_is_short_the_least_informative_points_are_left_out_whole() -> None:
    plan = agenda()
    units, left = measured(plan, 22)
    assert left >= 0
    assert set(counts(units)) == {"control", "a", "b", "c"}
    assert min(counts(units).values()) == 5
    assert plan.left_out() == ("d",)


def test_points_that_take_longer_than_expected_do_not_leave_all_points_half_measured() -> None:
    plan = agenda()
    units, left = measured(plan, 40, takes=lambda unit: 2.5)
    assert left >= 0
    whole = [point for point, count in counts(units).items() if count >= 5]
    assert "control" in whole
    assert len(whole) >= 2
    assert set(plan.left_out()) == set(POINTS) - set(whole)


def test_time_that_is_left_goes_where_intervals_are_widest() -> None:
    units, _ = measured(agenda(widths={"a": 3.0, "b": 0.5, "c": 0.4, "d": 0.3, "control": 0.2}), 29)
    assert counts(units)["a"] == 8
    assert counts(units)["b"] == 5


def test_narrow_intervals_end_the_measuring_early() -> None:
    units, left = measured(
        agenda(Limits(least=5, most=100, refine=True), widths=dict.fromkeys(POINTS, 0.9)), 1000
    )
    assert counts(units) == dict.fromkeys(POINTS, 5)
    assert left == 975


def test_a_point_without_an_interval_is_as_wide_as_can_be() -> None:
    widths = dict.fromkeys(("control", "b", "c", "d"), 2.0)
    units, _ = measured(agenda(Limits(least=5, most=8, refine=True), widths=widths), 29)
    assert counts(units)["a"] == 8


def test_widths_are_asked_for_anew_in_every_round() -> None:
    now = dict.fromkeys(POINTS, 8.0)

    def narrowing() -> dict[str, float]:
        for point in now:
            now[point] /= 2
        return dict(now)

    units, _ = measured(agenda(Limits(least=5, most=100, refine=True), widths=narrowing), 1000)
    assert counts(units) == dict.fromkeys(POINTS, 7)


def test_the_closing_baselines_of_measured_points_have_their_time_kept() -> None:
    plan = agenda(at_the_end=closing("a", "d"))
    units, left = measured(plan, 23)
    assert [unit.point for unit in units if unit.closing] == ["a"]
    assert left >= 0


def test_an_unsound_repetition_is_measured_again_while_time_allows() -> None:
    plan = agenda(Limits(least=5, most=5))
    units, _ = measured(plan, 1000, sound=lambda unit: unit != Unit(point="a", repetition=2))
    assert counts(units) == {**dict.fromkeys(POINTS, 5), "a": 6}
    assert plan.left_out() == ()


def test_a_point_that_is_never_sound_ends_too() -> None:
    plan = agenda(Limits(least=5, most=5))
    units, _ = measured(plan, 1000, sound=lambda unit: unit.point != "a")
    assert counts(units)["a"] == 10
    assert plan.left_out() == ()


def test_no_unit_is_begun_that_would_not_end_in_time() -> None:
    takes = {point: 0.5 * (number + 1) for number, point in enumerate(POINTS)}
    for budget in range(1, 60):
        _, left = measured(agenda(seconds=takes), budget, takes=lambda unit: takes[unit.point])
        assert left >= 0


def test_a_resumed_agenda_goes_on_where_the_run_was_stopped() -> None:
    before, _ = measured(agenda(), 20)
    plan = agenda()
    for unit in before:
        plan.record(unit, None, sound=True)
    units, _ = measured(plan, 1000)
    assert not set(units) & set(before)
    assert counts([*before, *units]) == dict.fromkeys(POINTS, 10)


def test_a_point_that_was_given_up_is_not_asked_for_again() -> None:
    plan = agenda()
    plan.give_up("b")
    units, _ = measured(plan, math.inf)
    assert counts(units)["b"] == 0
    assert plan.left_out() == ()


def test_on_a_host_slower_than_expected_the_points_of_the_answer_come_first() -> None:
    """All points seem to fit by what was expected of them, and a repetition takes three times as long."""
    plan = agenda(first=2)
    units, _ = measured(plan, 34, takes=lambda _: 3.0)
    assert {point for point, count in counts(units).items() if count >= 5} == {"control", "a"}
    assert plan.left_out() == ("b", "c", "d")


def test_where_time_is_too_short_for_the_controls_the_main_point_comes_first() -> None:
    units, _ = measured(agenda(first=2), 25, takes=lambda _: 3.0)
    assert counts(units) == {"control": 3, "a": 5}


def test_an_answer_that_is_too_wide_gets_more_repetitions_before_other_points() -> None:
    wide = agenda(Limits(least=5, most=40, refine=True), first=2, widths={"control": 0.5, "a": 3.0})
    units, _ = measured(wide, 22)
    assert [unit.point for unit in units if not unit.closing][:15].count("a") == 10
    narrow = agenda(Limits(least=5, most=40, refine=True), first=2, widths={"control": 0.5, "a": 0.8})
    assert [unit.point for unit in measured(narrow, 22)[0]][:10].count("a") == 5


def test_baselines_at_the_end_are_measured_again_only_of_points_with_an_interval() -> None:
    units, _ = measured(agenda(at_the_end=closing("a", "b"), first=2), 14)
    assert all(counts(units)[unit.point] >= 5 for unit in units if unit.closing)
