"""In which order points are measured where time is short: any beginning of them covers the axes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.experiments.plans import names as plan_names
from elbowroom.machine.topology import Machine
from elbowroom.plan.axes import expand, is_control
from elbowroom.plan.information import by_information, levels
from elbowroom.points.point import Point
from studies import HENRI, SMALL

POLLING = expand(load("polling"), HENRI).points


def ordered(name: str) -> list[Point]:
    """Of one kernel, in the order of measuring."""
    return list(by_information(expand(apply(load(name), Overrides(kernels=("triad",))), HENRI).points))


@pytest.mark.parametrize("machine", [HENRI, SMALL], ids=["henri", "small"])
@pytest.mark.parametrize("name", plan_names())
def test_every_point_is_there_once_and_the_control_comes_first(name: str, machine: Machine) -> None:
    points = expand(load(name), machine).points
    ordered_points = by_information(points)
    assert sorted(point.id for point in ordered_points) == sorted(point.id for point in points)
    assert is_control(ordered_points[0], points) or not any(is_control(point, points) for point in points)


@given(kept=st.sets(st.integers(0, 200), min_size=1))
def test_every_point_of_a_part_of_a_plan_is_there_once(kept: set[int]) -> None:
    """No point of the part may have the ends of all axes."""
    points = [point for number, point in enumerate(POLLING) if number in kept]
    assert sorted(point.id for point in by_information(points)) == sorted(point.id for point in points)


def test_the_ends_of_an_axis_come_before_its_middle_and_the_middle_before_the_quarters() -> None:
    found = [point for point in ordered("cores") if point.role == "point"]
    assert {(point.n, point.size) for point in found[:4]} == {
        (1, 4),
        (1, 64_000_000),
        (35, 4),
        (35, 64_000_000),
    }
    assert {point.n for point in found[4:6]} == {18}
    assert {point.n for point in found[6:10]} == {9, 26}


def test_every_placement_has_both_ends_before_any_has_its_middle() -> None:
    found = [point for point in ordered("placement") if point.role == "point"]
    places = {(point.comp_node, point.comm_node, point.comm_core, point.size) for point in found}
    ends = found[: 2 * len(places)]
    assert {point.n for point in ends} == {1, 35}
    assert {(point.comp_node, point.comm_node, point.comm_core, point.size) for point in ends} == places


def test_one_point_is_ordered_too() -> None:
    points = expand(load("quick"), SMALL).points
    assert by_information(points[:1]) == points[:1]


def test_a_beginning_of_the_quarters_is_spread_over_the_axis() -> None:
    sizes = [point.size for point in ordered("sizes") if point.role == "point"]
    ranks = sorted(set(sizes))
    begun = sorted({ranks.index(size) for size in sizes[:24]})
    assert max(high - low for low, high in pairwise(begun)) <= len(ranks) // 4


def test_the_levels_of_an_axis_halve_its_gaps() -> None:
    assert levels(1) == [0]
    assert levels(2) == [0, 0]
    assert levels(5) == [0, 2, 1, 2, 0]
    assert levels(9) == [0, 3, 2, 3, 1, 3, 2, 3, 0]
