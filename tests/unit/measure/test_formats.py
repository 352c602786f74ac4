"""Formats of other programs, read back by these programs' own readers where they are installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import msgspec
import pytest

from elbowroom import api
from elbowroom.errors import UsageError
from elbowroom.measure import results as evaluation
from elbowroom.measure.export import export
from elbowroom.measure.formats import FORMATS, bmf, hwloc, junit, openmetrics, osu
from elbowroom.measure.results import Results
from elbowroom.stats.interval import Kept, Side
from elbowroom.store.folder import RunFolder

QUICK = Path(__file__).parents[2] / "data" / "quick"


@cache
def quick() -> Results:
    return evaluation.evaluate(RunFolder.open(QUICK))


def changed(first: dict[str, Any], **whole: Any) -> Results:
    """The run with another first point."""
    points = (msgspec.structs.replace(quick().points[0], **first), *quick().points[1:])
    return msgspec.structs.replace(quick(), points=points, **whole)


FAILED = {"status": "failed", "reason": "a rank died", "comp": Side(), "comm": Side()}


# OSU: as ReFrame's and other scripts read it


def test_osu_tables_have_the_head_and_the_rows_that_scripts_look_for() -> None:
    text = osu.text(quick())
    assert re.search("OSU MPI Latency Test", text)
    assert re.search("OSU MPI Bandwidth Test", text)
    row = re.search(r"^67108864\s+(\S+)", text, re.MULTILINE)
    assert row is not None
    assert float(row[1]) == pytest.approx(5988.59)
    for line in text.splitlines():
        assert not line or line.startswith("#") or re.fullmatch(r"\d+ +\d+\.\d\d", line)


def test_values_that_osu_tables_lack_are_comments() -> None:
    points = [point for point in quick().points if point.kernel == "triad" and point.metric == "bandwidth"]
    failed = msgspec.structs.replace(points[0], **FAILED)
    text = osu.text(msgspec.structs.replace(quick(), points=(failed, *points[1:])))
    assert text.count("# 65536: n/a, a rank died") == 2
    assert not re.search(r"^65536", text, re.MULTILINE)


# Bencher: https://bencher.dev/bmf.json (version of draft-07), and the lengths of its reference


class BencherMetric(msgspec.Struct, forbid_unknown_fields=True):
    value: float
    lower_value: float | msgspec.UnsetType = msgspec.UNSET
    upper_value: float | msgspec.UnsetType = msgspec.UNSET


def test_bmf_follows_benchers_schema() -> None:
    found = msgspec.json.decode(bmf.text(quick()), type=dict[str, dict[str, BencherMetric]])
    assert len(found) == len(quick().points)
    for benchmark, measures in found.items():
        assert 0 < len(benchmark) <= 1024
        assert measures
        for slug in measures:
            assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", slug)
            assert len(slug) <= 64
    first = found[quick().points[0].id]
    assert first["comm-alone-us"].value == pytest.approx(1.76873)
    assert first["comp-kept"].value == pytest.approx(0.813056)


def test_bmf_leaves_out_what_was_not_measured() -> None:
    assert quick().points[0].id not in msgspec.json.decode(bmf.text(changed(FAILED)))


def test_intervals_are_bmfs_lower_and_upper_values() -> None:
    side = msgspec.structs.replace(quick().points[0].comp, kept=Kept(value=0.5, low=0.4, high=0.6))
    found = msgspec.json.decode(bmf.text(changed({"comp": side})))
    kept = {"value": 0.5, "lower_value": 0.4, "upper_value": 0.6}
    assert found[quick().points[0].id]["comp-kept"] == kept


# OpenMetrics: prometheus-client's parser


def families(results: Results) -> dict[str, Any]:
    parser = pytest.importorskip(
        "prometheus_client.openmetrics.parser", reason="prometheus-client is not installed"
    )
    return {
        family.name: family for family in parser.text_string_to_metric_families(openmetrics.text(results))
    }


def test_openmetrics_is_read_back_in_base_units() -> None:
    found = families(quick())
    assert found["elbowroom_run"].samples[0].labels["plan"] == "quick"
    assert found["elbowroom_trusted"].samples[0].value == 0
    duration = found["elbowroom_duration_seconds"]
    assert (duration.type, duration.unit) == ("gauge", "seconds")
    first = duration.samples[0]
    assert first.labels["point"] == quick().points[0].id
    assert (first.labels["side"], first.labels["style"]) == ("communication", "alone")
    assert first.value == pytest.approx(1.76873e-6)
    bandwidth = found["elbowroom_bandwidth_bytes_per_second"]
    assert max(sample.value for sample in bandwidth.samples) > 1e10


def test_openmetrics_has_no_sample_of_what_was_not_measured() -> None:
    found = families(changed(FAILED))
    labels = [sample.labels for family in found.values() for sample in family.samples]
    assert not any(one.get("point") == quick().points[0].id for one in labels)


def test_labels_of_openmetrics_may_hold_any_character() -> None:
    machine = msgspec.structs.replace(quick().machine, name='a "b" \\ c\nd')
    found = families(msgspec.structs.replace(quick(), machine=machine))
    assert found["elbowroom_run"].samples[0].labels["machine"] == 'a "b" \\ c\nd'


# JUnit: junitparser


def cases(results: Results) -> dict[str, Any]:
    junitparser = pytest.importorskip("junitparser", reason="junitparser is not installed")
    xml = junitparser.JUnitXml.fromstring(junit.text(results))
    (suite,) = xml
    assert suite.tests == len(list(suite))
    assert suite.failures + suite.errors + suite.skipped <= suite.tests
    return {case.name: [type(one).__name__ for one in case.result] for case in suite}


def test_junit_fails_where_a_side_suffers_and_is_skipped_without_an_interval() -> None:
    name = quick().points[0].id
    suffering = Side(kept=Kept(value=0.5, low=0.4, high=0.6))
    undisturbed = Side(kept=Kept(value=1.0, low=0.99, high=1.01))
    found = cases(changed({"comp": suffering, "comm": undisturbed}))
    assert found[f"{name} computation"] == ["Failure"]
    assert found[f"{name} communication"] == []
    assert found[f"{quick().points[1].id} computation"] == ["Skipped"]
    assert found["trusted"] == ["Failure"]


def test_points_that_failed_are_errors_of_junit() -> None:
    found = cases(changed(FAILED))
    assert found[f"{quick().points[0].id} computation"] == ["Error"]


def test_junit_is_xml_with_any_name_of_a_machine() -> None:
    machine = msgspec.structs.replace(quick().machine, name="\x00<&>\x1b")
    root = ElementTree.fromstring(junit.text(msgspec.structs.replace(quick(), machine=machine)))
    assert root.find("testsuite").get("hostname") == "?<&>?"


# hwloc: lstopo


def test_hwloc_reads_the_measured_memory_attributes(tmp_path: Path) -> None:
    lstopo = shutil.which("lstopo-no-graphics") or shutil.which("lstopo")
    if lstopo is None:
        pytest.skip("lstopo is not installed")
    path = tmp_path / "measured.xml"
    path.write_bytes(hwloc.text(quick(), (QUICK / "topology.xml").read_text()))
    run = subprocess.run(
        [lstopo, "-i", str(path), "--memattrs"], capture_output=True, text=True, timeout=60, check=True
    )
    values = dict(re.findall(r"name `(\w+)' flags \d+\n  NUMANode L#0 = (\d+) from cpuset", run.stdout))
    assert values["Bandwidth"] == str(round(23888.15e6 / 2**20))
    assert values["MessageLatency"] == "1769"
    assert set(hwloc.ATTRIBUTES.values()) == values.keys()
    assert "Latency" not in values


def test_sets_of_cores_are_hwlocs_bitmaps() -> None:
    assert hwloc.bitmap([0]) == "0x00000001"
    assert hwloc.bitmap([1, 33, 64]) == "0x00000001,0x00000002,0x00000002"


def test_a_node_that_the_topology_lacks_is_refused() -> None:
    results = changed({"comp_node": 7})
    with pytest.raises(UsageError, match="NUMA node 7"):
        hwloc.text(results, (QUICK / "topology.xml").read_text())


# Bad input


@pytest.mark.parametrize("kind", ["osu", "bmf", "openmetrics", "junit", "hwloc"])
def test_a_run_without_a_measured_value_is_refused(kind: Any, tmp_path: Path) -> None:
    folder = RunFolder.open(QUICK)
    nothing = msgspec.structs.replace(quick(), points=())
    with pytest.raises(UsageError, match="no measured value"):
        export(folder, nothing, dict, kind, tmp_path / "out")
    assert not list(tmp_path.iterdir())


def test_an_unknown_format_names_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        api.open(QUICK).export("pdf", tmp_path / "out")  # type: ignore[arg-type]
    assert all(name in caught.value.hint for name in FORMATS)


def test_a_file_of_a_run_is_not_overwritten() -> None:
    with pytest.raises(UsageError, match=r"samples\.jsonl"):
        api.open(QUICK).export("bmf", QUICK / "samples.jsonl")
