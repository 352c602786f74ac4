"""Simulated clocks: tables, JSON, figures and refusals."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import benchmark_modules
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.launch import build

clocks_of = benchmark_modules.load("simulated_clocks")

SMALL = ["--clocks", "4", "--seconds", "60"]


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    try:
        build.clock_simulator()
    except ElbowroomError as error:
        pytest.skip(f"the simulator of clocks cannot be built here: {error}")


@pytest.fixture(scope="module")
def found() -> Any:
    return clocks_of.simulate(4, seconds=300, bad=0.1, seed=3)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def call(*words: str) -> None:
        monkeypatch.setattr(sys, "argv", ["simulated_clocks.py", *words])
        clocks_of.main()

    return call


def test_all_points_are_better_than_two_barriers_and_the_outcome_is_the_seeds(found: Any) -> None:
    assert found.methods[0].name == "two plain barriers"
    assert found.best.name == "all points"
    assert found.best.p95_ns < found.methods[0].p95_ns
    assert found.best.tachyons == 0
    assert (found.rounds, found.comparisons, found.points) == (2, 31, 93)
    assert found.corrupted >= found.rejected > 0
    assert found == clocks_of.simulate(4, seconds=300, bad=0.1, seed=3)
    assert found != clocks_of.simulate(4, seconds=300, bad=0.1, seed=4)


def test_clocks_told_one_by_one_mark_the_points_that_were_left_out(found: Any) -> None:
    assert [clock.rank for clock in found.ranks] == [1, 2, 3]
    left_out = sum(not point.used for clock in found.ranks for point in clock.points)
    assert left_out == found.rejected
    for clock in found.ranks:
        assert ("rejected" in clock.flags) == any(not point.used for point in clock.points)
        assert len(clock.segments) == sum(point.used for point in clock.points) - 1


def test_figures_show_methods_errors_and_drift(found: Any) -> None:
    figures = {figure.name: figure for figure in clocks_of.simulated_clock_figures(found)}
    assert {"methods", "ring", "simulated-errors", "drifts", "errors"} <= set(figures)
    assert len(figures["simulated-errors"].series) == 3


def test_durations_in_a_ring_drift_with_one_comparison_and_stay_with_all() -> None:
    clocks = clocks_of.simulate(4, seconds=120, clock="affine").ranks
    at, (one, two, every) = clocks_of.ring_durations(clocks)
    late = at > 60e9
    assert abs(one[late] - clocks_of.MESSAGE_NS).max() > 100_000  # up to 100 ppm of a minute
    assert abs(two - clocks_of.MESSAGE_NS).max() < 1000
    assert abs(every - clocks_of.MESSAGE_NS).max() < 500
    assert at.shape == one.shape == (4 * len(clocks[0].errors),)


def test_the_command_prints_a_table_and_draws(
    tmp_path: Path, run: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    run(*SMALL, "--bad", "5%", "-o", str(tmp_path / "clocks.html"))
    answer = capsys.readouterr().out
    assert "two plain barriers" in answer
    assert "<svg" in (tmp_path / "clocks.html").read_text()


def test_json_holds_the_same(run: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    run(*SMALL, "--clock", "steps", "--link", "heavy-tail", "--json")
    messages: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (messages["clock"], messages["link"]) == ("steps", "heavy-tail")
    assert messages["ranks"][0]["segments"][0]["from"] == messages["ranks"][0]["points"][0]["local"]


@pytest.mark.parametrize(
    ("request_of", "sentence"),
    [
        ({"clocks": 0}, "clocks 0: is not between 1 and 65536"),
        ({"clock": "atomic"}, "one of affine, thermal, walk, steps, slewing, mixed"),
        ({"link": "string"}, "one of symmetric, asymmetric, lossy, heavy-tail, busy"),
        ({"bad": 0.6}, "bad 0.6: is not between 0 and 50%"),
        ({"bad": float("nan")}, "is not between 0 and 50%"),
        ({"every": 0.0}, "every 0.0: is not between 1e-6 and 1e6 s"),
        ({"every": 0.001}, "2e6 are simulated at most; fewer clocks, or a longer time between points"),
    ],
)
def test_what_cannot_be_simulated_is_refused(request_of: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError) as refusal:
        clocks_of.simulate(**request_of)
    assert sentence in str(refusal.value)


def test_a_share_is_a_number_or_percent() -> None:
    assert (clocks_of.share("5%"), clocks_of.share("0.05")) == (0.05, 0.05)
    with pytest.raises(argparse.ArgumentTypeError, match="for instance 5% or"):
        clocks_of.share("5%x")
    with pytest.raises(ValueError, match="lots"):
        clocks_of.share("lots")


def test_the_simulator_itself_refuses_what_it_does_not_know() -> None:
    with pytest.raises(UsageError, match='clock "x": is none of affine'):
        clocks_of.answer({"clock": "x"})
    with pytest.raises(UsageError, match=r"clocks 1\.5: is not between"):
        clocks_of.answer({"clocks": 1.5})
