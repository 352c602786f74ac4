"""Rounds of an allocation, on nodes whose values are known (measured_nodes.py)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from elbowroom.accept.acceptance import examine, with_missing
from elbowroom.accept.allocated_site import AllocatedSite, SitePlan
from elbowroom.accept.journal import SiteJournal
from elbowroom.accept.judgement import Suspicion
from elbowroom.accept.virtual_site import AGAIN, ROUNDS
from elbowroom.errors import MachineError, UsageError
from measured_nodes import AnsweringNodes, measured

LINK = {"bandwidth": 0.3, "bandwidth-beside": 0.3, "bandwidth-both": 0.3}


def names(count: int) -> tuple[str, ...]:
    return tuple(f"n{number}" for number in range(count))


def test_a_slow_link_and_a_slow_node_are_found_among_sixteen(tmp_path: Path) -> None:
    nodes = AnsweringNodes({"n3": LINK, "n9": {"memory": 0.125, "memory-beside": 0.125}})
    site, _ = measured(tmp_path, nodes, SitePlan(nodes=names(16)))
    document = examine(site, name="sixteen")
    assert {(one.name, one.cause) for one in document.suspects} == {("n3", "link"), ("n9", "memory-channel")}
    assert document.exit_code == 4


def test_healthy_nodes_are_measured_in_the_first_rounds_only(tmp_path: Path) -> None:
    nodes = AnsweringNodes()
    site, _ = measured(tmp_path, nodes, SitePlan(nodes=names(16)))
    document = examine(site, name="sixteen")
    assert document.suspects == ()
    # Three parts of each round, and all pairs at once.
    assert len(nodes.requests) == 3 * ROUNDS + 1


def test_the_rounds_do_not_depend_on_the_number_of_nodes(tmp_path: Path) -> None:
    requests = []
    for count in (8, 64):
        nodes = AnsweringNodes()
        site, _ = measured(tmp_path / str(count), nodes, SitePlan(nodes=names(count)))
        site.measure()
        requests.append(len(nodes.requests))
    assert requests[0] == requests[1]


def test_a_run_that_is_resumed_asks_for_nothing_that_the_journal_has(tmp_path: Path) -> None:
    plan = SitePlan(nodes=names(9))
    site, journal = measured(tmp_path, AnsweringNodes(), plan)
    first = site.measure()
    journal.close()
    nodes = AnsweringNodes()
    again, _ = measured(tmp_path, nodes, plan)
    resumed = again.measure()
    # Of nine nodes one is left out in each round, and nothing else is open: no job is started, either.
    assert (nodes.requests, nodes.names) == ([], {})
    for one, other in zip(first.readings, resumed.readings, strict=True):
        assert np.array_equal(one.values, other.values)


def test_a_baseline_of_another_site_is_refused_before_the_rounds(tmp_path: Path) -> None:
    def refuse(known: Sequence[str]) -> None:
        raise UsageError("is of another site", field="baseline", value=",".join(known))

    nodes = AnsweringNodes()
    _, journal = measured(tmp_path, nodes, SitePlan(nodes=names(6)))
    site = AllocatedSite(SitePlan(nodes=names(6)), nodes, journal, str, refuse)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="is of another site") as error:
        site.measure()
    assert error.value.value == "n0,n1,n2,n3,n4,n5"
    assert len(nodes.requests) == 1


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"part":"pairs","values":{"n0":[', '"part":"pairs","values":{"n0":[1.0,', "n0 has 7 values of part"),
        ('"part":"pairs"', '"part":"couples"', "of part 'couples', which has 0"),
        ('"values":{"n0"', '"values":{"m0"', "m0 is none of the nodes of the first line"),
        ('"number":3', '"number":300', "line 300 of another journal, or one is missing"),
        ('"nodes":["n0",', '"nodes":[', "n0 is none of the nodes"),
    ],
)
def test_a_journal_that_no_run_wrote_is_refused_with_its_line(
    old: str, new: str, message: str, tmp_path: Path
) -> None:
    site, journal = measured(tmp_path, AnsweringNodes(), SitePlan(nodes=names(6)))
    site.measure()
    journal.close()
    file = tmp_path / "journal.jsonl"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError, match=r"line \d+ is damaged") as error:
        SiteJournal(tmp_path, create=False)
    assert message in str(error.value)


def test_a_node_that_was_lost_and_returns_is_measured_when_the_run_is_resumed(tmp_path: Path) -> None:
    plan = SitePlan(nodes=names(8))
    site, journal = measured(tmp_path, AnsweringNodes(dying={"n5": 3}), plan)
    site.measure()
    assert site.lost == {"n5": "it started no program"}
    journal.close()
    nodes = AnsweringNodes()
    again, _ = measured(tmp_path, nodes, plan)
    again.measure()
    asked = [request["ranks"] for _, request in nodes.requests if request["op"] == "alone"]
    assert asked == [[5]] * (ROUNDS - 1)


def test_partners_of_a_lost_node_are_paired_anew_and_the_others_are_judged(tmp_path: Path) -> None:
    nodes = AnsweringNodes({"n1": LINK}, dying={"n4": 4, "n7": 4})
    site, _ = measured(tmp_path, nodes, SitePlan(nodes=names(12)))
    document = with_missing(examine(site, name="twelve"), site.lost, site.notes)
    assert [one.name for one in document.suspects] == ["n1"]
    assert [one.name for one in document.missing] == ["n4", "n7"]
    assert document.nodelist == "n[1,4,7]"
    last = [request for _, request in nodes.requests if request["op"] == "pairs"][-2]
    assert len(last["pairs"]) == 5


def test_lost_nodes_leave_no_site_that_can_be_accepted(tmp_path: Path) -> None:
    site, _ = measured(tmp_path, AnsweringNodes(dying={"n2": 4}), SitePlan(nodes=names(8)))
    document = with_missing(examine(site, name="eight"), site.lost, site.notes)
    assert document.exit_code == 4
    assert document.drain.endswith('Reason="elbowroom: not reachable"')


def test_too_few_nodes_that_can_be_reached_are_an_error_that_names_the_others(tmp_path: Path) -> None:
    site, _ = measured(tmp_path, AnsweringNodes(dying={"n0": 2, "n1": 2}), SitePlan(nodes=names(4)))
    with pytest.raises(MachineError, match=r"2 nodes of 4 can be reached.*n0: it started no program"):
        site.measure()


def test_two_nodes_that_call_themselves_the_same_are_refused(tmp_path: Path) -> None:
    nodes = AnsweringNodes()
    site, _ = measured(tmp_path, nodes, SitePlan(nodes=names(4)))
    ask = nodes.ask

    def asked(*words: object) -> object:
        answered = ask(*words)  # type: ignore[arg-type]
        nodes.names["n2"] = "n1"
        return answered

    nodes.ask = asked  # type: ignore[method-assign,assignment]
    with pytest.raises(UsageError, match="names two nodes"):
        site.measure()


def test_each_node_has_one_partner_in_a_round_and_both_are_in_one_job(tmp_path: Path) -> None:
    nodes = AnsweringNodes()
    plan = SitePlan(nodes=names(40), shard=16)
    site, _ = measured(tmp_path, nodes, plan)
    site.measure()
    jobs = [(job, request) for job, request in nodes.requests if request["op"] == "pairs"]
    assert all(4 <= len(job) <= 16 for job, _ in jobs)
    met: dict[str, set[str]] = {}
    for job, request in jobs:
        used = [rank for pair in request["pairs"] for rank in pair]
        assert len(set(used)) == len(used) == len(job)
        for one, two in request["pairs"]:
            met.setdefault(job[one], set()).add(job[two])
            met.setdefault(job[two], set()).add(job[one])
    # Jobs are drawn anew, so that nodes of different jobs meet.
    assert min(map(len, met.values())) > 5


def test_suspects_meet_nodes_that_are_not_and_only_their_values_count(tmp_path: Path) -> None:
    nodes = AnsweringNodes()
    site, _ = measured(tmp_path, nodes, SitePlan(nodes=names(10)))
    site.measure()
    before = len(nodes.requests)
    fresh = site.measure_again(Suspicion(nodes=(2, 7), paths=()))
    for one in fresh.readings:
        assert set(one.nodes.tolist()) == {2, 7}
        assert one.values.size == 2 * AGAIN
        if one.partners is not None:
            assert not {2, 7} & set(one.partners.tolist())
    # All nodes take part, so that the network is used as in the first rounds.
    asked = [request for _, request in nodes.requests[before:] if request["op"] == "pairs"]
    assert all(len(request["pairs"]) == 5 for request in asked)


def test_a_machine_that_is_slower_in_later_rounds_makes_no_suspect_slow(tmp_path: Path) -> None:
    nodes = AnsweringNodes()
    site, _ = measured(tmp_path, nodes, SitePlan(nodes=names(10)))
    first = site.measure()
    nodes._slow = {name: {"memory": 0.4} for name in names(10)}
    fresh = site.measure_again(Suspicion(nodes=(2,), paths=()))
    usual = {one.quantity.name: float(np.median(one.values)) for one in first.readings}
    memory = next(one for one in fresh.readings if one.quantity.name == "memory")
    assert float(np.median(memory.values)) == pytest.approx(usual["memory"], rel=0.02)


def test_a_budget_that_is_used_up_ends_the_rounds_and_says_so(tmp_path: Path) -> None:
    nodes = AnsweringNodes({"n3": LINK})
    site, _ = measured(tmp_path, nodes, SitePlan(nodes=names(8), budget=1e-9))
    document = examine(site, name="eight")
    assert [one.name for one in document.suspects] == ["n3"]
    assert site.notes[0].startswith("The budget of 1e-09 s ended the first rounds after 5")


def test_a_value_that_a_jumping_clock_made_is_left_out(tmp_path: Path) -> None:
    nodes = AnsweringNodes()
    site, _ = measured(tmp_path, nodes, SitePlan(nodes=names(6)))
    values = nodes._values
    nodes._values = lambda node, op: [0.0 if node == "n2" else one for one in values(node, op)]  # type: ignore[method-assign]
    readings = site.measure().readings
    memory = next(one for one in readings if one.quantity.name == "memory")
    assert set(memory.nodes.tolist()) == {0, 1, 3, 4, 5}


def test_switches_that_are_known_are_visited_and_features_are_kinds_of_their_own(tmp_path: Path) -> None:
    slow = {f"n{number}": {"memory": 0.4} for number in (1, 3, 5, 7)}
    features = tuple("rome" if number % 2 else "icelake" for number in range(12))
    slow |= {f"n{number}": {"memory": 0.4} for number in (9, 11)}
    plan = SitePlan(nodes=names(12), features=features, switches=tuple(number // 4 for number in range(12)))
    site, _ = measured(tmp_path, AnsweringNodes(slow), plan)
    document = examine(site, name="twelve")
    assert document.suspects == ()


def test_nodes_whose_cores_others_use_are_not_judged_by_their_cores(tmp_path: Path) -> None:
    busy = {f"n{number}": {"waiting": 0.3 + 0.05 * number} for number in range(8)}
    slow = {f"n{number}": {"memory": 0.4, "core": 0.3, "late": 0.3} for number in range(5)}
    nodes = AnsweringNodes({name: {**busy[name], **slow.get(name, {})} for name in busy})
    site, _ = measured(tmp_path, nodes, SitePlan(nodes=names(8)))
    document = examine(site, name="eight")
    assert (document.suspects, document.drain, document.exit_code) == ((), "", 3)
    assert document.disturbed == pytest.approx(0.476, abs=0.001)
    assert any(note.startswith("Other programs use the cores") for note in document.notes)


def test_a_slow_link_is_found_beside_other_programs_on_all_cores(tmp_path: Path) -> None:
    busy = {f"n{number}": {"waiting": 0.8, "memory": 0.1 * number} for number in range(8)}
    site, _ = measured(
        tmp_path, AnsweringNodes({**busy, "n5": {**busy["n5"], **LINK}}), SitePlan(nodes=names(8))
    )
    document = examine(site, name="eight")
    assert [(one.name, one.cause) for one in document.suspects] == [("n5", "link")]


def test_a_node_that_its_limit_stops_is_found_beside_other_programs(tmp_path: Path) -> None:
    busy = {f"n{number}": {"waiting": 0.8} for number in range(8)}
    site, _ = measured(tmp_path, AnsweringNodes({**busy, "n2": {"throttled": 0.9}}), SitePlan(nodes=names(8)))
    [one] = examine(site, name="eight").suspects
    assert (one.name, one.quantity, one.cause) == ("n2", "throttled", "limit")


def test_other_programs_on_one_node_are_the_cause_of_all_that_is_slow_there(tmp_path: Path) -> None:
    nodes = AnsweringNodes({"n4": {"waiting": 0.5, "memory": 0.5, "core": 0.5, **LINK}})
    site, _ = measured(tmp_path, nodes, SitePlan(nodes=names(12)))
    [one] = examine(site, name="twelve").suspects
    assert (one.name, one.quantity, one.cause) == ("n4", "waiting", "neighbour")


def test_nodes_that_a_launcher_joins_to_no_job_are_judged_by_what_each_shows_alone(tmp_path: Path) -> None:
    nodes = AnsweringNodes({"n3": {"memory": 0.25}})
    site, _ = measured(tmp_path, nodes, SitePlan(nodes=names(8), shard=1))
    document = examine(site, name="eight")
    assert [(one.name, one.cause) for one in document.suspects] == [("n3", "memory-channel")]
    assert {len(job) for job, _ in nodes.requests} == {1}
    assert all(request["op"] != "pairs" for _, request in nodes.requests)
    assert "n/a: messages between nodes: the launcher starts no MPI job of several nodes" in site.notes
