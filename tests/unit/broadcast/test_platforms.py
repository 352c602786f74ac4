"""Broadcasts on clusters of racks and on platforms of a file, and their areas over the rank."""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import elbowroom
from elbowroom import cli
from elbowroom.broadcast.simulated import SimulatedBroadcast, parse_priorities
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.launch import build

CLUSTER = """<?xml version='1.0'?>
<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">
<platform version="4.1">
  <cluster id="cluster" prefix="node-" suffix="" radical="0-{last}" speed="1Gf" bw="6GBps" lat="2us"
           sharing_policy="SPLITDUPLEX"/>
</platform>
"""


@pytest.fixture(scope="module", autouse=True)
def _simulator() -> None:
    try:
        build.broadcast_simulator()
    except ElbowroomError as error:
        pytest.skip(error.sentence())


def simulated(**options: Any) -> SimulatedBroadcast:
    return elbowroom.simulate_broadcast(
        **{"recipients": 38, "size": 439296, "bandwidth": 6e9, "latency": 2e-6} | options
    )


def test_a_platform_of_a_file_gives_the_times_of_the_same_cluster_built_in(tmp_path: Path) -> None:
    file = tmp_path / "cluster.xml"
    file.write_text(CLUSTER.format(last=38))
    assert simulated(platform=str(file)).received == pytest.approx(simulated().received)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "cannot be read"),
        ("no platform", "is not XML"),
        ("<a/>", "has the root <a>, not <platform>"),
        ("<?xml version='1.0'?><platform version='4.1'><zone id='a'/></platform>", "cannot be used"),
        (CLUSTER.format(last=37), "has 38 hosts, and 39 are needed"),
    ],
)
def test_a_platform_that_cannot_be_used_is_one_sentence(
    tmp_path: Path, text: str | None, reason: str, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "platform.xml"
    if text is not None:
        file.write_text(text)
    assert cli.run(["broadcast", "simulate", "--platform", str(file), "--nodes", "39"]) == 2
    told = capfd.readouterr().err
    assert told.count("\n") == 1
    assert reason in told


def test_two_trees_take_less_where_the_library_knows_the_racks() -> None:
    times = {
        order: simulated(platform="fat-tree", order=order, tree="two", segment=32768).seconds
        for order in ("shuffled", "rack")
    }
    assert times["rack"] < 0.8 * times["shuffled"]


def test_links_between_racks_that_are_full_delay_a_broadcast() -> None:
    star = simulated().seconds
    assert simulated(platform="fat-tree", uplink=1e9).seconds > 2 * star
    assert simulated(platform="fat-tree", uplink=1e12).seconds == pytest.approx(star, rel=0.1)


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"order": "oldest", "platform": "fat-tree"}, "order"),
        ({"order": "rack"}, "order"),
        ({"platform": "fat-tree", "racks": 1}, "racks"),
        ({"platform": "fat-tree", "racks": 40}, "racks"),
        ({"priorities": (1, 2)}, "priorities"),
    ],
)
def test_what_contradicts_the_platform_is_refused(options: dict[str, Any], field: str) -> None:
    with pytest.raises(UsageError, match=field):
        simulated(**options)


def test_the_tree_that_is_chosen_is_no_slower_than_flat_binary_and_binomial_trees() -> None:
    draw = random.Random(1)
    for _ in range(8):
        case = {
            "recipients": int(2 ** draw.uniform(1, 6.5)),
            "size": int(2 ** draw.uniform(2, 22)),
            "bandwidth": 10 ** draw.uniform(8.5, 10.5),
            "latency": 10 ** draw.uniform(-6.5, -5),
        }
        best = min(simulated(**case, tree=tree).seconds for tree in ("flat", "binary", "binomial"))
        assert simulated(**case, tree="auto").seconds <= 1.05 * best


def test_the_command_tells_the_tree_and_segment_that_were_chosen(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["broadcast", "simulate", "--tree", "auto", "--json"]) == 0
    printed = json.loads(capfd.readouterr().out)
    assert printed["tree"] == "two"
    assert printed["segment"] > 0
    words = ["broadcast", "simulate", "--tree", "auto", "--segment", "100kB", "--nodes", "39", "--json"]
    assert cli.run(words) == 0
    printed = json.loads(capfd.readouterr().out)
    assert printed["segment"] == 100_000
    assert printed["recipients"] == 38


def test_what_a_message_costs_its_ranks_delays_a_flat_tree_most() -> None:
    free, paid = (simulated(size=4, tree="flat", overhead=overhead).seconds for overhead in (0.0, 1e-6))
    assert paid - free == pytest.approx(39e-6, rel=0.01)


def test_recipients_of_higher_priority_have_the_data_first() -> None:
    rising = parse_priorities("rising", 38)
    for tree in ("flat", "binomial", "chain"):
        received = simulated(tree=tree, priorities=rising).received
        assert all(late <= early + 1e-6 for early, late in pairwise(received))


def test_leaves_release_the_data_at_once_and_ranks_that_forward_later() -> None:
    rising = parse_priorities("rising", 38)
    binary = simulated(tree="binary", priorities=rising)
    waits = [late - early for early, late in zip(binary.received, binary.released[1:], strict=True)]
    assert sum(wait > 50e-6 for wait in waits) == 18
    assert waits[:20] == pytest.approx([0.0] * 20)


def test_priorities_are_a_word_or_numbers() -> None:
    assert parse_priorities("rising", 3) == (1, 2, 3)
    assert parse_priorities("equal", 3) == ()
    assert parse_priorities("3,0,1", 3) == (3, 0, 1)
    with pytest.raises(UsageError, match="are not valid priorities"):
        parse_priorities("3,-1", 2)
