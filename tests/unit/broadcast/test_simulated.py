"""Simulated broadcasts: what can be asked, and what the trees give on a network that is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import elbowroom
from elbowroom import cli
from elbowroom.broadcast.factorizations import STEPS
from elbowroom.broadcast.simulated import (
    MOST_SEGMENTS,
    SEGMENT_OF_TWO,
    SimulatedBroadcast,
    check_tree,
    parse_latency,
    usual_segment,
)
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.launch import build
from elbowroom.quantities import parse_bandwidth

COPY_S = 439296 / 6e9 + 4e-6
"""Seconds that one copy of 429 KiB takes between two nodes: 6 GB/s, and two links of 2 us."""


@pytest.fixture(scope="module")
def simulator() -> None:
    try:
        build.broadcast_simulator()
    except ElbowroomError as error:
        pytest.skip(error.sentence())


def simulated(**options: Any) -> SimulatedBroadcast:
    return elbowroom.simulate_broadcast(
        **{"recipients": 38, "size": 439296, "bandwidth": 6e9, "latency": 2e-6} | options
    )


@given(st.integers(1, 10**6), st.sampled_from([("kB", 10**3), ("MB", 10**6), ("GiB", 2**30)]))
def test_a_rate_is_a_size_in_a_second(number: int, unit: tuple[str, int]) -> None:
    assert parse_bandwidth(f"{number}{unit[0]}/s", "bandwidth") == number * unit[1]


@pytest.mark.parametrize(
    ("text", "seconds"), [("2us", 2e-6), ("0.5 ms", 5e-4), ("700ns", 7e-7), ("3µs", 3e-6)]
)
def test_latencies_have_units(text: str, seconds: float) -> None:
    assert parse_latency(text, "latency") == pytest.approx(seconds)


@pytest.mark.parametrize(
    "tree", ["flat", "two", "4-ary", "8-nomial", "delegate-binary", "split3-two-level-chain"]
)
def test_kinds_of_trees_are_known(tree: str) -> None:
    check_tree(tree)


@pytest.mark.parametrize(
    "tree", ["", "oak", "0-ary", "1-nomial", "delegate-two", "binary-flat", "split0-flat"]
)
def test_other_kinds_of_trees_are_refused(tree: str) -> None:
    with pytest.raises(UsageError, match="is not a kind of tree"):
        check_tree(tree)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"recipients": 0}, "recipients"),
        ({"size": 2**50}, "size"),
        ({"size": 2**30, "segment": 1}, "segment"),
    ],
)
def test_more_than_can_be_simulated_is_refused(options: dict[str, Any], field: str) -> None:
    with pytest.raises(UsageError, match=field):
        simulated(**options)


@pytest.mark.usefixtures("simulator")
def test_a_flat_tree_takes_a_copy_for_each_recipient_and_a_binomial_tree_one_for_each_round() -> None:
    assert simulated(tree="flat").seconds == pytest.approx(38 * COPY_S, rel=0.02)
    assert simulated(tree="binomial").seconds == pytest.approx(6 * COPY_S, rel=0.03)


@pytest.mark.usefixtures("simulator")
def test_segments_make_a_binary_tree_take_little_more_than_two_copies() -> None:
    whole, segmented = simulated(tree="binary").seconds, simulated(tree="binary", segment=16384).seconds
    assert segmented < 4 * COPY_S < whole
    assert simulated(tree="two", segment=16384).seconds < segmented


@pytest.mark.usefixtures("simulator")
def test_no_rank_releases_the_data_before_it_has_them() -> None:
    outcome = simulated(tree="binary", segment=65536)
    assert len(outcome.received) == 38
    assert all(late >= early for early, late in zip(outcome.received, outcome.released[1:], strict=True))


@pytest.mark.usefixtures("simulator")
def test_the_command_prints_the_time_and_the_bandwidth(capfd: pytest.CaptureFixture[str]) -> None:
    words = ["broadcast", "simulate", "--recipients", "3", "--size", "60MB", "--tree", "flat"]
    assert cli.run([*words, "--json"]) == 0
    printed = json.loads(capfd.readouterr().out)
    assert set(printed) == set(elbowroom.schema("broadcast")["required"])
    assert printed["time_us"] == pytest.approx(30e3, rel=0.01)
    assert printed["bandwidth"] == pytest.approx(2000, rel=0.01)
    assert (printed["tree"], printed["segment"], printed["recipients"]) == ("flat", 0, 3)
    assert cli.run(words) == 0
    assert "nothing is measured" in " ".join(capfd.readouterr().out.split())


@pytest.mark.usefixtures("simulator")
def test_two_trees_without_a_segment_are_faster_than_a_binomial_tree() -> None:
    two = simulated(tree="two")
    assert two.segment == SEGMENT_OF_TWO
    assert two.seconds < simulated(tree="binomial").seconds


@given(st.integers(1, 2**40))
def test_the_usual_segment_makes_no_more_segments_than_can_be_simulated(size: int) -> None:
    assert usual_segment("binomial", size) == usual_segment("auto", size) == 0
    assert -(-size // usual_segment("two", size)) <= MOST_SEGMENTS


@pytest.fixture
def no_simgrid(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("elbowroom.launch.starpu.installed", lambda *_: "")
    for name in ("BROADCAST", "TASKFLOW"):
        monkeypatch.delenv(f"ELBOWROOM_{name}_SIMULATOR", raising=False)


WORDS = ["broadcast", "simulate", "--recipients", "38", "--tree", "two", "--overhead", "500ns", "--json"]


@pytest.mark.usefixtures("simulator")
def test_without_simgrid_the_cost_model_says_about_the_same(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(WORDS) == 0
    simulated = json.loads(capfd.readouterr().out)
    monkeypatch.setattr("elbowroom.launch.build.has_simgrid", lambda *_: False)
    assert cli.run(WORDS) == 0
    predicted = json.loads(capfd.readouterr().out)
    assert (simulated["simulated"], simulated["predicted"]) == (True, False)
    assert (predicted["simulated"], predicted["predicted"]) == (False, True)
    assert predicted["time_us"] == pytest.approx(simulated["time_us"], rel=0.05)
    assert (predicted["tree"], predicted["segment"]) == (simulated["tree"], simulated["segment"])


@pytest.mark.usefixtures("no_simgrid")
def test_a_prediction_says_that_simgrid_is_not_installed(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(WORDS[:-1]) == 0
    text = " ".join(capfd.readouterr().out.split())
    assert "predicted, nothing is measured" in text
    assert "apt-get install libsimgrid-dev" in text


@pytest.mark.usefixtures("no_simgrid")
@pytest.mark.parametrize(
    "words",
    [
        ["broadcast", "simulate", "--platform", "fat-tree"],
    ],
    ids=" ".join,
)
def test_what_only_simgrid_can_do_names_its_package_before_anything_is_built(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    words: list[str],
) -> None:
    times = {
        "schema": "elbowroom/step-times",
        "version": 1,
        "block": 8,
        "seconds": dict.fromkeys(STEPS, 1e-6),
    }
    (tmp_path / "times.json").write_text(json.dumps(times))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("elbowroom.launch.native.build", lambda *_words, **_options: pytest.fail("it builds"))
    assert cli.run(words) == 1
    err = capfd.readouterr().err
    assert "simgrid: is not installed" in err
    assert "apt-get install libsimgrid-dev" in err
