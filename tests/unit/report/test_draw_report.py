"""The page's parts without a browser: packed columns, words, machine, drift."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import msgspec

from elbowroom.draw.html import embed
from elbowroom.points.point import Placement, Point
from elbowroom.report import columns, machine, words
from elbowroom.report.columns import CoreUse, use_of
from elbowroom.report.page import render
from elbowroom.results.quiet import drifts
from elbowroom.results.result import Finding
from elbowroom.stats.summary import Samples

PAGES = runpy.run_path(str(Path(__file__).parents[2] / "report_pages.py"))


def embedded(html: str) -> dict[str, object]:
    outcome = re.search(r'<script type="application/json" id="data">(.*?)</script>', html, re.S)
    assert outcome
    return dict(json.loads(outcome.group(1)))


def test_embedded_data_cannot_end_its_script_element() -> None:
    evil = "</script><!-- & \u2028"
    text = embed({"a": evil})
    assert not set("<>&\u2028") & set(text)
    assert json.loads(text) == {"a": evil}


def test_packed_columns_give_back_every_point() -> None:
    page = PAGES["page"](120)
    data = columns.pack(page.results, page.uses)
    for row, result in enumerate(page.results):
        kernels = data["words"]["kernel"]
        assert kernels["labels"][kernels["at"][row]] == result.kernel
        assert data["numbers"]["n"][row] == result.n
        median = data["sides"]["comm"]["together"]["median"][row]
        if result.comm.together is None:
            assert median is None
        else:
            assert abs(median / result.comm.together.median - 1) < 1e-4
        assert data["uses"]["sets"][data["uses"]["at"][row]]["comm"] == "35"


def test_a_page_asks_nothing_of_the_network_and_forbids_it() -> None:
    html = render(PAGES["page"](70))
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?(?:https?:)?//", html)
    assert "@import" not in html
    assert "default-src 'none'" in html


def test_markup_in_any_name_stays_text() -> None:
    evil = '<img src=x onerror=alert(1)>"'
    page = PAGES["page"](24, PAGES["small"]())
    result = msgspec.structs.replace(page.results[0], kernel=evil, flags=(evil,), reason=evil)
    finding = Finding(key="k", level="note", text=evil, values={evil: evil})
    html = render(
        msgspec.structs.replace(
            page,
            title=evil,
            results=(result, *page.results[1:]),
            findings=(finding,),
            machine=msgspec.structs.replace(page.machine, name=evil, model=evil),
            state={evil: evil},
            method=((evil, evil),),
        )
    )
    assert "<img" not in html


def test_a_verdict_that_is_not_trusted_says_so_first_with_its_reasons() -> None:
    page = PAGES["page"](24, PAGES["small"](), trusted=False)
    html = render(page)
    assert html.index("Not trusted") < html.index(">Findings<")
    assert all(reason in html for reason in page.verdict.reasons)


def test_flags_with_a_count_or_a_side_are_explained_once() -> None:
    meanings = dict(words.flag_meanings(["void:3", "void:7", "drift:comp", "from-the-future"]))
    assert list(meanings) == ["drift", "from-the-future", "void"]
    assert meanings["from-the-future"] == words.NO_EXPLANATION


def test_what_the_state_does_not_know_is_listed_with_its_reason() -> None:
    known, unknown = words.known_and_unknown(
        {
            "load": 0.5,
            "turbo": {"unknown": "no cpufreq"},
            "nic": {"a": {"status": "n/a", "reason": "no sysfs"}},
            "smt": None,
        }
    )
    assert known == [("load", "0.5")]
    assert unknown == [("turbo", "no cpufreq"), ("nic: a", "no sysfs"), ("smt", "no reason recorded")]


def test_messages_inside_one_host_are_labelled_as_copies_by_the_cpu() -> None:
    inside = {"hello": {"mpi": {"transport": "shm"}}}
    assert "the CPU copies messages" in words.transport(inside, hosts=1)
    assert "between 2 hosts (verbs)" in words.transport({"mpi": {"transport": "verbs"}}, hosts=2)
    assert "unknown" in words.transport({}, hosts=2)


def test_a_finding_is_its_sentence_without_the_keys_of_its_values() -> None:
    page = PAGES["page"](24, PAGES["small"]())
    finding = Finding(key="k", level="note", text="A sentence.", values={"comp_worst_at": 4194304})
    html = render(msgspec.structs.replace(page, findings=(finding,)))
    assert "A sentence." in html
    assert "comp worst" not in html


def test_what_the_verdict_says_is_not_said_twice() -> None:
    page = PAGES["page"](24, PAGES["small"]())
    same = Finding(key="summary", level="interference", text=page.verdict.text)
    assert render(msgspec.structs.replace(page, findings=(same,))).count(page.verdict.text) == 1


def test_a_core_that_communicates_for_both_ranks_is_a_communication_core() -> None:
    used = machine.roles({"p": CoreUse(comp_cores=(1,), comm_cores=(0,), peer_cores=(0,))})
    assert used == {0: ("comm", "peer"), 1: ("comp",)}


def test_the_machine_shows_each_core_node_and_card_once() -> None:
    henri = PAGES["henri"]()
    drawn = "".join(machine.drawings(henri, {"p": CoreUse(comp_cores=(0, 1), comm_cores=(35,))}))
    assert sorted(int(n) for n in re.findall(r'data-core="(\d+)"', drawn)) == list(range(36))
    assert re.findall(r'data-node="(\d+)"', drawn) == ["0", "1", "2", "3"]
    assert drawn.count('data-nic="mlx5_0"') == 1
    assert re.search(r'class="core comp" [^>]*data-core="1"', drawn)
    assert re.search(r'class="core comm" [^>]*data-core="35"', drawn)


def test_a_card_whose_node_is_unknown_is_drawn_apart() -> None:
    henri = PAGES["henri"]()
    (nic,) = henri.nics
    lost = msgspec.structs.replace(henri, nics=(msgspec.structs.replace(nic, node=None),))
    assert "node unknown" in machine.drawings(lost, {})[-1]


def test_drift_compares_the_closing_baseline_with_that_of_the_run_and_skips_void_samples() -> None:
    result = next(r for r in PAGES["page"](10).results if r.comp.alone)
    samples = Samples(
        point=[0, 0, 0, 0],
        repetition=[0] * 4,
        closing=[True, True, True, False],
        phase=["A"] * 4,
        side=["comp"] * 4,
        value=[result.comp.alone.median * 0.5, result.comp.alone.median * 0.7, 1.0, 2.0],
        unit=["MB/s"] * 4,
        status=["ok", "ok", "void", "ok"],
    )
    (drift,) = drifts([result], samples)
    assert drift.side == "computation"
    assert abs(drift.relative + 0.4) < 1e-9
    assert drift.outside


def test_a_page_without_points_figures_or_cards_is_still_a_page() -> None:
    page = PAGES["page"](0, PAGES["small"]())
    assert embedded(render(page))["count"] == 0


def test_the_drawing_shows_the_cores_of_every_process_of_a_host() -> None:
    placements = (
        Placement(rank=0, comp_cores=(0, 1), comm_cores=(2,), comp_node=0, comm_node=0),
        Placement(rank=1, comp_cores=(9, 10), comm_cores=(11,), comp_node=0, comm_node=0),
    )
    point = Point(
        plan="ring",
        kernel="triad",
        n=4,
        size=4,
        comp_node=0,
        comm_node=0,
        comm_core=2,
        metric="bandwidth",
        placements=placements,
    )
    assert use_of(point, hosts=1) == CoreUse(comp_cores=(0, 1, 9, 10), comm_cores=(2, 11))
