"""A workload of an installed package measures something new: journal, table, result and document have it."""

from __future__ import annotations

import importlib
from typing import Any

import msgspec
import pytest

from elbowroom.measure.measurements import collect
from elbowroom.points.point import WORKLOADS, Point, stored
from elbowroom.points.unit import Entry
from elbowroom.results.points import results
from elbowroom.results.result import PointResult, documented_point
from elbowroom.store.journal import UNITS
from elbowroom.store.sealed import table
from plugin_site import Install

CODE = """
from typing import ClassVar

import msgspec

from elbowroom.points.payload import SIDES, Collected, MeasuredSide, Payload
from elbowroom.points.probe import ProbeWorkload
from elbowroom.stats.interval import Side


class QueuePayload(Payload, frozen=True, kw_only=True):
    {key}: int = 0
    waiting: Side | None = None


class Queue(ProbeWorkload, msgspec.Struct, frozen=True, kw_only=True):
    key: ClassVar[str] = "{name}"
    sides = {{**SIDES, "wait": MeasuredSide("value", "waiting")}}
    payload = QueuePayload

    def id(self, point):
        return "queue"

    def collect(self, point, records):
        longest = max(phase["longest"] for _, phase in records.phases())
        return Collected(self.fill(point, records, {key}=longest, waiting=records.sides["wait"]))
"""


def plant(install_plugin: Install, package: str, *, name: str = "queue", key: str = "longest") -> None:
    files = {"__init__.py": CODE.format(name=name, key=key)}
    install_plugin(package, files, {"workloads": {name: f"{package}:Queue"}})


def point() -> Point:
    workload = WORKLOADS.get("queue")()
    axes: dict[str, Any] = {"comp_node": 0, "comm_node": 0, "comm_core": 0, "metric": "latency"}
    return Point(plan="p", kernel="none", n=1, size=4, workload=workload, **axes)


def answers() -> list[Entry]:
    """Six repetitions whose waits are 10 us alone and 20 us together."""
    phases = [
        {"phase": name, "status": "ok", "longest": longest, "wait": value, "comm": value}
        for name, wait, longest in (("B", 10.0, 3), ("AB", 20.0, 7))
        for value in [{"value": wait, "unit": "us", "batches": []}]
    ]  # fmt: skip
    record = {"record": "repetition", "status": "ok", "flags": [], "phases": phases}
    return [Entry(point="queue", repetition=number, record=record) for number in range(6)]


def measured() -> PointResult:
    points = [point()]
    collected = collect(answers(), points)
    [result] = results(points, collected.samples, entries=collected.entries)
    return result


def test_what_a_package_measures_is_in_the_result_and_in_its_document(install_plugin: Install) -> None:
    plant(install_plugin, "plugin_one")
    result = measured()
    plain = result.plain()
    assert (result.status, plain["longest"]) == ("ok", 7)
    assert plain["waiting"]["alone"]["median"] == 10
    assert plain["waiting"]["kept"]["value"] == pytest.approx(0.5)
    assert plain["added_by"] == {"queue": "plugin_one"}


def test_the_table_of_samples_has_the_sides_of_a_package(install_plugin: Install) -> None:
    plant(install_plugin, "plugin_one")
    rows = table(answers(), [point()]).to_pylist()
    assert [row["value"] for row in rows if row["side"] == "waiting"] == [10.0, 20.0] * 6


def test_the_journal_keeps_what_a_package_measures(install_plugin: Install) -> None:
    plant(install_plugin, "plugin_one")
    [entry, *_] = answers()
    line = msgspec.json.encode(entry)
    assert UNITS.decode(line) == entry
    assert stored(point(), point().workload)["queue"] == {}


def test_the_schema_of_a_point_has_the_keys_of_a_package(install_plugin: Install) -> None:
    plant(install_plugin, "plugin_one")
    fields = documented_point().__struct_fields__
    assert {"longest", "waiting", "traces", "series", "store_factor"} <= set(fields)


@pytest.mark.parametrize("key", ["series", "overlap", "streams", "reason", "kernel", "comm_threads", "gpu"])
def test_a_payload_with_a_key_of_results_is_named_and_left_out(install_plugin: Install, key: str) -> None:
    plant(install_plugin, "plugin_one", key=key)
    [problem] = WORKLOADS.problems()
    assert f"declares a payload with the key {key!r}, which " in problem
    assert "plugin_one" in problem
    assert all(member.key != "queue" for member in WORKLOADS.all())


def test_payloads_of_two_packages_with_one_key_are_named_and_left_out(install_plugin: Install) -> None:
    plant(install_plugin, "plugin_one")
    plant(install_plugin, "plugin_two", name="line")
    problems = WORKLOADS.problems()
    assert len(problems) == 2
    assert "the key 'longest', which plugin_two has" in " ".join(problems)
    assert "the key 'longest', which plugin_one has" in " ".join(problems)
    assert importlib.import_module("plugin_one").Queue not in WORKLOADS.all()
