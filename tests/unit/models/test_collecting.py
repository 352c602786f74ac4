"""Points of a run become the curves that models learn from; what is left out is counted."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from elbowroom.errors import UsageError
from elbowroom.machine.layout import regular_machine
from elbowroom.machine.topology import Nic, NumaNode
from elbowroom.models.curves import Situation
from elbowroom.models.load import Computing, Messages
from elbowroom.models.run_data import FitData, collect, layout_of
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Side, Summary

MACHINE = regular_machine(
    name="twin", model="m", cores_per_socket=4, numa_per_socket=2, sockets=2, nic_node=2, virtual=False
)


def summary(value: float, *, unit: str = "MB/s", count: int = 18) -> Summary:
    return Summary(
        median=value, d1=value, d9=value, low=value * 0.98, high=value * 1.02, count=count, unit=unit
    )


def point(name: str, **changes: Any) -> PointResult:
    side = Side(alone=summary(8000.0), together=summary(6000.0))
    found: dict[str, Any] = {
        "id": name,
        "plan": "model",
        "kernel": "memset_nt",
        "n": 2,
        "size": 64_000_000,
        "comp_node": 0,
        "comm_node": 0,
        "comm_core": 7,
        "metric": "bandwidth",
        "status": "ok",
        "flags": (),
        "comp": side,
        "comm": side,
        "pattern": "receive",
    }
    return PointResult(**{**found, **changes})


def collected(
    *points: PointResult, cores: dict[str, tuple[int, ...]] | None = None, **options: Any
) -> FitData:
    return collect(points, {item.id: (0, 1) for item in points} | (cores or {}), MACHINE, **options)


def test_a_point_is_a_row_with_its_spread() -> None:
    row = collected(point("a", comp_node=3, comm_node=1)).curves.rows[0]
    assert row.situation == Situation(comp_node=3, comm_node=1, n=2)
    assert row.streams == (8000.0, 8000.0, 6000.0, 6000.0)
    assert row.spread[0] == pytest.approx(0.02 / 1.96, rel=1e-3)
    assert row.source == "a"


def test_values_without_an_interval_tell_no_spread() -> None:
    alone, together = (
        msgspec.structs.replace(summary(median), low=None, high=None) for median in (8000.0, 6000.0)
    )
    side = Side(alone=alone, together=together)
    assert collected(point("a", comp=side, comm=side)).curves.rows[0].spread == (None,) * 4


def test_cores_of_the_second_socket_are_counted_apart() -> None:
    row = collected(point("a", n=3), cores={"a": (0, 3, 4)}).curves.rows[0]
    assert (row.situation.n, row.situation.n_other) == (2, 1)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"role": "control"}, "control"),
        ({"metric": "latency"}, "measured as latency"),
        ({"status": "failed"}, "status failed"),
        ({"status": "not_stable"}, "status not_stable"),
        ({"kernel": "none"}, "no computation"),
        ({"comp": Side(alone=summary(5.0, unit="M/s"))}, "not in MB/s (M/s, MB/s)"),
        ({"comp": Side(alone=summary(0.0))}, "a bandwidth of 0"),
        ({"comp": Side(), "comm": Side()}, "not in MB/s (no values)"),
    ],
)
def test_a_point_that_tells_no_bandwidth_is_left_out_and_said(changes: dict[str, Any], reason: str) -> None:
    found = collected(point("a"), point("b", **changes))
    assert [row.source for row in found.curves.rows] == ["a"]
    assert found.left_out == {reason: 1}


def test_the_benchmark_of_most_points_is_taken_and_the_others_are_named() -> None:
    found = collected(point("a"), point("b", n=1, comp_node=1), point("c", kernel="triad"))
    assert found.curves.kernel == "memset_nt"
    assert list(found.left_out.values()) == [1]
    assert "triad, 64 MB receive, communication thread on core 7" in next(iter(found.left_out))


@pytest.mark.parametrize(("factor", "scale"), [(2.0, 3 / 4), (1.0, 1.0)])
def test_other_kernels_are_counted_with_the_store_factor_of_the_machine(factor: float, scale: float) -> None:
    points = (point("a"), point("b", n=1), point("c", kernel="triad", store_factor=factor))
    found = collected(*points)
    (row,) = found.loads
    assert found.store_factor == factor
    assert row.comp_alone == pytest.approx(8000 / scale)


def test_a_store_factor_that_was_measured_apart_counts_before_the_run() -> None:
    points = (point("a"), point("b", n=1), point("c", kernel="triad", store_factor=2.0))
    (row,) = collected(*points, store_factor=1.0).loads
    assert row.comp_alone == pytest.approx(8000)
    unknown = [msgspec.structs.replace(item, store_factor=msgspec.UNSET) for item in points]
    (assumed,) = collected(*unknown).loads
    assert assumed.comp_alone == pytest.approx(8000 * 4 / 3)


def test_a_kernel_and_a_size_may_be_asked_for() -> None:
    points = (point("a"), point("b", n=1), point("c", kernel="triad", size=4_000_000))
    found = collected(*points, kernel="triad").curves
    assert (found.kernel, found.size, len(found.rows)) == ("triad", 4_000_000, 1)
    assert collected(*points, size=4_000_000).curves.kernel == "triad"
    with pytest.raises(UsageError, match="no point of copy and 64 MB"):
        collected(*points, kernel="copy", size=64_000_000)


def test_as_many_other_cores_are_left_out() -> None:
    found = collected(point("a"), point("b"), cores={"b": (2, 3)})
    assert found.left_out == {"other computing cores, as many": 1}


def test_a_run_without_bandwidths_is_refused_with_the_reasons() -> None:
    with pytest.raises(UsageError, match="1 points: measured as latency") as caught:
        collected(point("a", metric="latency"))
    assert "elbowroom run model" in caught.value.hint


def test_a_node_outside_the_machine_is_refused() -> None:
    with pytest.raises(UsageError, match="on a node that the machine does not have"):
        collected(point("a", comm_node=9))


def renumbered(numbers: tuple[int, ...]) -> Any:
    nodes = tuple(
        NumaNode(number=number, package=old.package, memory=old.memory, cores=old.cores)
        for number, old in zip(numbers, MACHINE.nodes, strict=True)
    )
    return msgspec.structs.replace(
        MACHINE, nodes=nodes, nics=(Nic(name="a", kind="network", node=numbers[3]),)
    )


def test_nodes_are_counted_socket_by_socket_whatever_their_numbers() -> None:
    found = layout_of(renumbered((0, 8, 16, 24)))
    assert found.nodes == (0, 8, 16, 24)
    assert found.shape.nic_node == 3
    assert (found.shape.numa_per_socket, found.shape.sockets, found.shape.cores_first_socket) == (2, 2, 4)
    interleaved = layout_of(renumbered((0, 2, 1, 3)))
    assert interleaved.nodes == (0, 2, 1, 3)


def test_cards_on_different_nodes_leave_the_nic_unknown() -> None:
    two = (Nic(name="a", kind="network", node=0), Nic(name="b", kind="network", node=3))
    assert layout_of(msgspec.structs.replace(MACHINE, nics=two)).shape.nic_node is None


def test_sockets_that_differ_in_nodes_are_told_apart() -> None:
    shape = layout_of(msgspec.structs.replace(MACHINE, nodes=MACHINE.nodes[:3])).shape
    assert shape.layout == ((4, 2), (4, 1))
    assert [shape.socket(node) for node in range(3)] == [0, 0, 1]
    assert (shape.nodes, shape.cores, shape.cores_other) == (3, 8, 4)


def other(**changes: Any) -> PointResult:
    return point("b", **changes)


def test_another_size_and_pattern_is_a_row_and_no_situation() -> None:
    found = collected(
        point("a"), point("c", n=3), other(pattern="pingpong", size=4096), cores={"c": (0, 1, 2)}
    )
    assert len(found.curves.rows) == 2
    (row,) = found.loads
    assert row.load.messages == Messages(node=0, size=4096)
    assert (row.kernel, row.pattern, row.source) == ("", "pingpong", "b")
    assert found.unused == {}


def test_a_latency_is_a_bandwidth() -> None:
    side = Side(alone=summary(2.0, unit="us"), together=summary(4.0, unit="us"))
    found = collected(
        point("a"), point("c", n=3), other(pattern="pingpong", size=4096, metric="latency", comm=side)
    )
    assert (found.loads[0].comm_alone, found.loads[0].comm_together) == (2048.0, 1024.0)


def test_another_kernel_is_told_by_what_it_moves_on_the_bus() -> None:
    """triad_cursor moves 32 B over the bus for 24 of its own, memset_nt 8 for 8."""
    found = collected(
        point("a"), point("c", n=3), other(kernel="triad_cursor", cursor=12, pattern="pingpong")
    )
    (row,) = found.loads
    assert row.comp_alone == pytest.approx(8000.0 * 32 / 24)
    assert row.load.computing == (Computing(socket=0, node=0, count=2, intensity=0.75),)
    assert row.kernel == "triad_cursor"
    assert row.load.messages == Messages(node=0)


def test_both_ways_at_once_are_counted_together() -> None:
    found = collected(point("a"), point("c", n=3), other(pattern="ring", comm_cores=(7, 8)))
    (row,) = found.loads
    assert row.load.messages == Messages(node=0, direction="both", threads=2)
    assert (row.comm_alone, row.pattern) == (16000.0, "")


def test_the_pattern_of_most_points_is_the_calibrated_one() -> None:
    found = collected(point("a", pattern="ring"), point("c", n=3, pattern="ring"), other(pattern="pingpong"))
    assert found.pattern == "ring"
    assert found.loads[0].load.messages == Messages(node=0)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"kernel": "fma"}, "fma moves no memory"),
        ({"size": 4096}, "two messages of another size in flight"),
        ({"reuse": "rotate", "pattern": "pingpong"}, "another reuse"),
        ({"comm_core": 1, "pattern": "pingpong"}, "communication thread on another socket"),
        ({"status": "failed"}, "status failed"),
        ({"role": "control"}, "control"),
    ],
)
def test_a_point_that_is_no_load_is_left_out_and_said(changes: dict[str, Any], reason: str) -> None:
    found = collected(point("a"), point("c", n=3), other(**changes))
    assert found.loads == ()
    assert found.unused == {reason: 1}
