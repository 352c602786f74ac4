"""Clocks of nodes by the barriers of a job."""

from __future__ import annotations

import pytest

from elbowroom.accept.clocks import clock_notes, clocks_of
from elbowroom.accept.journal import SiteLine

NAMES = {f"10.0.0.{number}": f"n{number}" for number in range(5)}


def trains(rounds: int) -> list[SiteLine]:
    """A train each ten seconds; n3 is 0.4 s ahead, n4 gains 20 ppm."""
    lines = []
    for at in range(rounds):
        now = 1.7e9 + 10.0 * at
        own = {"10.0.0.3": 0.4, "10.0.0.4": 20e-6 * 10.0 * at}
        values: dict[str, tuple[float | None, ...]] = {
            node: (0.01, now + own.get(node, 0.0)) for node in NAMES
        }
        lines.append(SiteLine(number=at, stage="first", round=at, part="train", values=values))
    return lines


def test_a_clock_that_is_ahead_and_one_that_drifts_are_measured() -> None:
    clocks = {one.name: one for one in clocks_of(trains(9), NAMES)}
    assert clocks["n3"].offset == pytest.approx(0.4)
    assert clocks["n4"].drift == pytest.approx(20.0, abs=0.1)
    assert clocks["n0"].offset == 0.0
    assert clock_notes(list(clocks.values())) == [
        "The time of day of 1 node differs from the others' by up to 0.4 s: n3"
    ]


def test_a_clock_that_is_set_in_the_run_is_named_with_the_jump_and_has_no_drift() -> None:
    lines = trains(9)
    for line in lines[5:]:
        row = line.values["10.0.0.1"]
        line.values["10.0.0.1"] = (row[0], (row[1] or 0.0) - 5.0)
    clocks = {one.name: one for one in clocks_of(lines, NAMES)}
    assert clocks["n1"].jump == pytest.approx(-5.0)
    assert clocks["n1"].drift is None
    assert [name for name, one in clocks.items() if one.jump is not None] == ["n1"]
    assert "The time of day of 1 node jumped in the run by up to 5 s: n1" in clock_notes(
        list(clocks.values())
    )


def test_few_rounds_show_no_drift_and_no_round_shows_no_clock() -> None:
    assert {one.drift for one in clocks_of(trains(3), NAMES)} == {None}
    assert clocks_of([], NAMES) == ()


def test_barriers_that_end_late_beside_other_programs_are_no_clocks_that_are_apart() -> None:
    lines = trains(9)
    for line in lines[5:]:
        row = line.values["10.0.0.1"]
        line.values["10.0.0.1"] = (row[0], (row[1] or 0.0) + 0.1)
    clocks = clocks_of(lines, NAMES, disturbed=True)
    assert clock_notes(clocks, disturbed=True) == []
    assert len(clock_notes(clocks_of(lines, NAMES))) == 2
