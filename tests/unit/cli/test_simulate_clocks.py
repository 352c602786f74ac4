"""`elbowroom trace simulate-clocks`: tables, JSON, figures and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elbowroom import api, cli
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.launch import build, simulator
from elbowroom.trace.ring_durations import MESSAGE_NS, ring_durations
from elbowroom.trace.simulated_clock_figures import simulated_clock_figures
from elbowroom.trace.simulated_clocks import SimulatedClocks

SMALL = ["--clocks", "4", "--seconds", "60"]


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    try:
        build.clock_simulator()
    except ElbowroomError as error:
        pytest.skip(f"the simulator of clocks cannot be built here: {error}")


@pytest.fixture(scope="module")
def found() -> SimulatedClocks:
    return api.simulate_clocks(4, seconds=300, bad=0.1, seed=3)


def run(*words: str) -> int:
    return cli.run(["trace", "simulate-clocks", *words])


def test_all_points_are_better_than_two_barriers_and_the_outcome_is_the_seeds(found: SimulatedClocks) -> None:
    assert found.methods[0].name == "two plain barriers"
    assert found.best.name == "all points"
    assert found.best.p95_ns < found.methods[0].p95_ns
    assert found.best.tachyons == 0
    assert (found.rounds, found.comparisons, found.points) == (2, 31, 93)
    assert found.told_wrong >= found.rejected > 0
    assert found == api.simulate_clocks(4, seconds=300, bad=0.1, seed=3)
    assert found != api.simulate_clocks(4, seconds=300, bad=0.1, seed=4)


def test_clocks_told_one_by_one_mark_the_points_that_were_left_out(found: SimulatedClocks) -> None:
    assert [clock.rank for clock in found.ranks] == [1, 2, 3]
    left_out = sum(not point.used for clock in found.ranks for point in clock.points)
    assert left_out == found.rejected
    for clock in found.ranks:
        assert ("rejected" in clock.flags) == any(not point.used for point in clock.points)
        assert len(clock.segments) == sum(point.used for point in clock.points) - 1


def test_figures_show_methods_errors_and_drift(found: SimulatedClocks) -> None:
    figures = {figure.name: figure for figure in simulated_clock_figures(found)}
    assert {"methods", "ring", "simulated-errors", "drifts", "errors"} <= set(figures)
    assert len(figures["simulated-errors"].series) == 3


def test_durations_in_a_ring_drift_with_one_comparison_and_stay_with_all() -> None:
    clocks = api.simulate_clocks(4, seconds=120, clock="affine").ranks
    at, (one, two, every) = ring_durations(clocks)
    late = at > 60e9
    assert abs(one[late] - MESSAGE_NS).max() > 100_000  # up to 100 ppm of a minute
    assert abs(two - MESSAGE_NS).max() < 1000
    assert abs(every - MESSAGE_NS).max() < 500
    assert at.shape == one.shape == (4 * len(clocks[0].errors),)


def test_the_command_prints_a_table_and_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*SMALL, "--bad", "5%", "-o", "clocks.html") == 0
    answer = capsys.readouterr().out
    assert "two plain barriers" in answer
    assert max(map(len, answer.splitlines())) <= 80
    assert "<svg" in (tmp_path / "clocks.html").read_text()


def test_json_holds_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*SMALL, "--clock", "steps", "--link", "heavy-tail", "--json") == 0
    messages: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert (messages["schema"], messages["version"], messages["virtual"]) == (
        "elbowroom/simulated-clocks",
        1,
        True,
    )
    assert (messages["clock"], messages["link"]) == ("steps", "heavy-tail")
    assert messages["ranks"][0]["segments"][0]["from"] == messages["ranks"][0]["points"][0]["local"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--clocks", "0"], "clocks 0: is not between 1 and 65536"),
        (["--clock", "atomic"], "one of affine, thermal, walk, steps, slewing, mixed"),
        (["--link", "string"], "one of symmetric, asymmetric, lossy, heavy-tail, busy"),
        (["--bad", "lots"], "bad 'lots': is not a share; for instance 5% or 0.05"),
        (["--bad", "60%"], "bad 0.6: is not between 0 and 50%"),
        (["--bad", "nan"], "is not between 0 and 50%"),
        (["--every", "0"], "every 0.0: is not between 1e-6 and 1e6 s"),
        (["--every", "0.001"], "2e6 are simulated at most; fewer clocks, or a longer time between points"),
    ],
)
def test_what_cannot_be_simulated_is_refused(
    words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*words) == 2
    assert sentence in capsys.readouterr().err


def test_the_simulator_itself_refuses_what_it_does_not_know() -> None:
    with pytest.raises(UsageError, match='clock "x": is none of affine'):
        simulator.simulate_clocks({"clock": "x"})
    with pytest.raises(UsageError, match=r"clocks 1\.5: is not between"):
        simulator.simulate_clocks({"clocks": 1.5})
