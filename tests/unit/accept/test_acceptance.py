"""Virtual sites: planted faults are found and named, healthy nodes are not; what cannot be judged is said."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import msgspec
import numpy as np
import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from elbowroom.accept.acceptance import compare_site, examine, examine_logs, with_missing
from elbowroom.accept.causes import name_cause
from elbowroom.accept.document import AcceptanceDocument
from elbowroom.accept.formats import FORMATS
from elbowroom.accept.judgement import Suspicion, holm
from elbowroom.accept.quantities import QUANTITIES
from elbowroom.accept.readings import Readings, SiteReadings
from elbowroom.accept.virtual_site import PlantedFault, VirtualSite, parse_plant
from elbowroom.errors import UsageError


def examined(nodes: int, *plants: str, seed: int = 1, kinds: int = 1) -> AcceptanceDocument:
    site = VirtualSite(nodes, [parse_plant(text) for text in plants], seed=seed, kinds=kinds)
    return examine(site, name="virtual")


@pytest.mark.parametrize("nodes", [12, 150])
@pytest.mark.parametrize(
    "plant",
    ["memory-channel:7", "link:7", "link:7:5%", "governor:7", "governor:7:5%", "neighbour:7", "bios:7:5%"],
)
def test_a_fault_of_a_node_is_found_and_named(nodes: int, plant: str) -> None:
    document = examined(nodes, plant, seed=nodes)
    assert [(one.node, one.cause) for one in document.suspects] == [(7, plant.partition(":")[0])]
    assert document.exit_code == 4
    assert (
        document.drain
        == f'scontrol update NodeName=n7 State=DRAIN Reason="elbowroom: {document.suspects[0].cause}"'
    )


@pytest.mark.parametrize("nodes", [12, 100, 400])
def test_a_bad_cable_is_suspected_and_not_its_nodes(nodes: int) -> None:
    [one] = examined(nodes, "cable:2:8%").suspects
    assert one.node is None
    assert one.cause == "cable"
    assert one.between is not None
    assert 0 in one.between


def test_a_slow_half_is_flagged_and_a_second_kind_of_nodes_is_not() -> None:
    slow = examined(100, "half:80:6%", "governor:3")
    assert [one.node for one in slow.suspects if one.cause == "half"] == list(range(50, 100))
    assert [one.node for one in slow.suspects if one.cause == "governor"] == [3]
    assert slow.nodelist == "n[3,50-99]"
    kinds = examined(100, kinds=2)
    assert kinds.exit_code == 0
    assert kinds.suspects == ()
    assert any(one.quantity == "memory" and one.fact == "processor" for one in kinds.classes)
    # What both kinds have alike makes no class.
    assert not any(one.quantity == "core" for one in kinds.classes)


def test_a_slow_half_of_two_kinds_of_nodes_is_compared_with_its_own_kind() -> None:
    slow = examined(100, "half:80:6%", kinds=2)
    assert [one.node for one in slow.suspects] == list(range(50, 100))


def test_a_bad_cable_between_the_only_two_switches_of_a_kind_is_suspected() -> None:
    site = examined(100, "cable:2:8%", kinds=2, seed=11)
    [one] = site.suspects
    assert (one.cause, one.between) == ("cable", (0, 2))


class SlowMessages:
    """A site whose second kind of nodes halves the bandwidth of all messages from and to it."""

    def __init__(self, site: VirtualSite) -> None:
        self._site = site

    def measure(self) -> SiteReadings:
        return self._slower(self._site.measure())

    def measure_again(self, suspicion: Suspicion) -> SiteReadings:
        return self._slower(self._site.measure_again(suspicion))

    def _slower(self, site: SiteReadings) -> SiteReadings:
        second = self._site.switches % 2 == 1
        readings = [
            msgspec.structs.replace(
                one, values=np.where(second[one.nodes] | second[one.partners], 0.5, 1.0) * one.values
            )
            if one.partners is not None and one.quantity.more_is_better
            else one
            for one in site.readings
        ]
        return msgspec.structs.replace(site, readings=tuple(readings))


@pytest.mark.parametrize("nodes", [16, 100, 200])
def test_a_second_kind_with_slow_messages_is_no_bad_cable(nodes: int) -> None:
    for seed in range(3):
        site = SlowMessages(VirtualSite(nodes, seed=seed, kinds=2))
        assert examine(site, name="two kinds").suspects == ()


def test_a_fault_of_the_second_kind_is_found_by_its_own_kind() -> None:
    document = examined(100, "link:30", "memory-channel:31", kinds=2)
    assert document.nodelist == "n[30-31]"


@pytest.mark.parametrize("nodes", [3, 10, 101, 500])
def test_nobody_is_suspected_on_a_healthy_site(nodes: int) -> None:
    for seed in range(5):
        assert examined(nodes, seed=seed).exit_code == 0


def test_what_is_suspected_is_measured_again_with_partners_that_are_not() -> None:
    site = VirtualSite(40, [PlantedFault("link", 3)], seed=1)
    fresh = site.measure_again(Suspicion(nodes=(3, 4), paths=((0, 2),)))
    for one in fresh.readings:
        if one.partners is None:
            assert set(one.nodes) == {3, 4}
        else:
            assert not ({*zip(one.nodes.tolist(), one.partners.tolist(), strict=True)} & {(3, 4), (4, 3)})


class Broken:
    """A site whose values are changed before they are judged."""

    def __init__(self, **changes: object) -> None:
        self._site, self._changes = VirtualSite(12, seed=1), changes

    def measure(self) -> SiteReadings:
        return msgspec.structs.replace(self._site.measure(), **self._changes)

    def measure_again(self, suspicion: Suspicion) -> SiteReadings:
        return msgspec.structs.replace(self._site.measure_again(suspicion), **self._changes)


def test_two_nodes_with_one_name_are_refused() -> None:
    names = ("n0", "n0", *(f"n{at}" for at in range(2, 12)))
    with pytest.raises(UsageError, match="site 'n0': names two nodes"):
        examine(Broken(nodes=names), name="x")


@pytest.mark.parametrize("nodes", [1, 2])
def test_a_site_that_is_too_small_is_refused(nodes: int) -> None:
    with pytest.raises(UsageError, match="a node is judged by others"):
        examined(nodes)


def test_a_clock_that_jumped_is_a_value_that_cannot_be() -> None:
    one = VirtualSite(12, seed=1).measure().readings[0]
    values = one.values.copy()
    values[4] = -1.0
    with pytest.raises(UsageError, match=r"memory of node n4 is not a positive number.*a clock jumped"):
        examine(Broken(readings=(msgspec.structs.replace(one, values=values),)), name="x")


def test_a_node_of_another_architecture_is_not_judged_and_named() -> None:
    document = examine(Broken(facts={"architecture": ("arm64", *["x86_64"] * 11)}), name="x")
    assert document.exit_code == 0
    assert any(note.startswith("Not judged: memory,") and " of n0: " in note for note in document.notes)


def test_a_site_of_noise_is_not_accepted() -> None:
    random = np.random.default_rng(1)
    nodes = np.tile(np.arange(20), 10)
    one = Readings(quantity=QUANTITIES["memory"], nodes=nodes, values=np.exp(random.normal(10, 0.2, 200)))
    document = examine_logs(
        SiteReadings(nodes=tuple(f"n{at}" for at in range(20)), readings=(one,)), name="x"
    )
    assert document.exit_code == 3
    assert "too noisy" in document.verdict


def test_drift_of_the_whole_site_is_seen_against_its_baseline() -> None:
    before, same, slower = examined(50), examined(50, seed=2), examined(50, "site:0:6%", seed=3)
    assert compare_site(same, before, "b").changes == ()
    drift = compare_site(slower, before, "b")
    assert {one.quantity for one in drift.changes} == {"memory", "memory-beside"}
    assert drift.exit_code == 4
    assert drift.verdict.startswith("The whole site loses ")
    assert drift.suspects == ()


def test_nodes_that_the_baseline_or_the_site_lacks_are_named() -> None:
    notes = compare_site(examined(20), examined(24), "site.json").notes
    assert "In the baseline only: n[20-23]" in notes
    notes = compare_site(examined(24), examined(20), "site.json").notes
    assert "Not in the baseline: n[20-23]" in notes


def test_a_baseline_of_another_site_is_refused() -> None:
    other = msgspec.structs.replace(examined(12), names=tuple(f"m{at}" for at in range(12)))
    with pytest.raises(UsageError, match="is of another site: 0 of its 12 nodes"):
        compare_site(examined(12), other, "b")


@pytest.mark.parametrize(
    ("losses", "shown", "facts", "cause"),
    [
        ({"memory": 0.165, "core": 0.0}, ["memory"], {}, "memory-channel"),
        ({"memory": 0.05, "core": 0.0}, ["memory"], {}, "memory"),
        ({"core": 0.3, "memory": 0.05}, ["core", "memory"], {}, "governor"),
        ({"core": 0.04, "memory-latency": 0.08}, ["memory-latency", "core"], {}, "bios"),
        (
            {"slow-moments": 0.1, "memory": 0.04},
            ["memory", "slow-moments"],
            {"bios": ("1", "2")},
            "neighbour",
        ),
        ({"bandwidth": 0.5}, ["bandwidth"], {}, "link"),
        ({"message-rate": 0.1}, ["message-rate"], {"kernel": ("5", "6")}, "kernel"),
        ({"cache": 0.1}, ["cache"], {}, "unknown"),
    ],
)
def test_a_cause_is_named_by_contrast(
    losses: dict[str, float], shown: list[str], facts: dict[str, tuple[str, str]], cause: str
) -> None:
    assert name_cause(losses, shown, facts).cause == cause


def test_holm_corrects_the_smallest_for_all_tests() -> None:
    assert holm([0.01, 0.001, 0.04], 10) == pytest.approx([0.09, 0.01, 0.32])


def test_every_format_holds_the_nodes_that_were_lost() -> None:
    document = with_missing(examined(40, "link:5"), {"n7": "it started no program"}, ["a note"])
    texts = {one.name: one.text(document) for one in FORMATS.all()}
    assert json.loads(texts["json"])["missing"] == [{"name": "n7", "why": "it started no program"}]
    assert len(texts["jsonl"].splitlines()) == 2
    suite = ElementTree.fromstring(texts["junit"])[0]
    assert (suite.get("errors"), suite.get("failures")) == ("1", "1")
    families = {one.name: one for one in text_string_to_metric_families(texts["openmetrics"].decode())}
    assert families["elbowroom_lost"].samples[0].value == 1
    assert texts["html"].decode().count('class="missing"') == 1


def test_every_switch_begins_a_line_of_the_map() -> None:
    document = examined(40)
    page = next(one for one in FORMATS.all() if one.name == "html").text(document).decode()
    lines = set(re.findall(r'class="healthy" x="0" y="(\d+)"', page))
    assert len(lines) == len(set(document.switches)) == 4


def test_every_format_holds_the_suspects() -> None:
    document = examined(40, "link:5", "cable:20")
    texts = {one.name: one.text(document) for one in FORMATS.all()}
    assert json.loads(texts["json"])["suspects"][0]["score"] > 2
    assert len(texts["jsonl"].splitlines()) == len(document.suspects) == 2
    suite = ElementTree.fromstring(texts["junit"])[0]
    assert (suite.get("tests"), suite.get("failures")) == ("42", "2")
    families = {one.name: one for one in text_string_to_metric_families(texts["openmetrics"].decode())}
    assert families["elbowroom_suspects"].samples[0].value == 2
    page = texts["html"].decode()
    assert page.count('class="suspect"') == 1
    assert page.count('class="healthy"') == 39
    assert "State=DRAIN" in page


def test_each_cause_has_a_command_and_one_of_too_many_nodes_has_none() -> None:
    document = examined(40, "link:5", "governor:9")
    assert document.drain.splitlines() == [
        'scontrol update NodeName=n9 State=DRAIN Reason="elbowroom: governor"',
        'scontrol update NodeName=n5 State=DRAIN Reason="elbowroom: link"',
    ]
    half = examined(100, "half:80:6%", "governor:3")
    assert half.drain == 'scontrol update NodeName=n3 State=DRAIN Reason="elbowroom: governor"'
    assert any(note.startswith("No command drains the 50 nodes of the cause 'half'") for note in half.notes)


def test_lost_nodes_beyond_a_quarter_of_a_site_are_not_drained() -> None:
    lost = {f"n{number}": "it started no program" for number in range(20)}
    document = with_missing(examined(40, "link:35"), lost, [])
    assert document.drain == 'scontrol update NodeName=n35 State=DRAIN Reason="elbowroom: link"'
    assert any("20 nodes of the cause 'not reachable'" in note for note in document.notes)


def test_no_line_of_the_page_begins_with_a_percent_sign() -> None:
    page = next(one for one in FORMATS.all() if one.name == "html").text(examined(40, "link:5")).decode()
    body = page[page.index("<body") : page.index("<svg")] + page[page.index("</svg>") :]
    assert "\u00a0%" in body
    assert not re.search(r"\d\s*[ \n]%", body)
