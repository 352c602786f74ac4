"""`cores` and `placement` find the sentences of the paper's Figures 4 and 5 and Table 1 in its curves."""

from __future__ import annotations

import msgspec
import pytest

from elbowroom import experiments
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.plan.placement import near_node
from elbowroom.points.point import Point
from studies import HENRI, SMALL, machine, measured, sound, study


def henri(point: Point) -> tuple[float, float, float, float]:
    """Sections 4.2 and 4.3: latency by where the thread is, bandwidth by where the data is."""
    n, near_thread = point.n, point.comm_core == 8
    triad = 12_000.0 * min(n, 6)
    if point.kernel == "prime":
        return (
            n,
            n,
            (1.4 if point.metric == "latency" else 10_500.0),
            (1.4 if point.metric == "latency" else 10_500.0),
        )
    if point.metric == "latency":
        alone = 1.39 if near_thread else 1.67
        if near_thread:
            return triad, triad, alone, 2.0 if n >= 6 else alone
        return triad, triad, alone, alone * (1 + max(0, n - 24) * 0.1)
    steady, abrupt = (1.0 if n < 3 else 1 - 0.019 * (n - 1)), (1.0 if n < 4 else 0.45)
    kept = steady if point.comm_node == 0 else abrupt
    comp = {5: 0.75, 4: 0.85, 6: 0.85}.get(n, 0.99)
    return triad, triad * comp, 10_500.0, 10_500 * kept


def test_cores_finds_the_papers_figure_4() -> None:
    experiment, found = study("cores", HENRI, henri)
    findings = experiment.findings(found, HENRI)
    latency = next(item for item in findings if item.values["metric"] == "latency")
    bandwidth = next(item for item in findings if item.values["metric"] == "bandwidth")
    assert latency.values["comm_from"] == 25
    assert latency.values["comp_first"] is None
    assert bandwidth.values["comm_from"] in (3, 4)
    assert bandwidth.values["comm_manner"] == "steadily"
    assert (bandwidth.values["comp_first"], bandwidth.values["comp_last"]) == (4, 6)
    assert bandwidth.values["comp_worst_at"] == 5
    assert "times its value alone" in latency.text
    figures = experiment.figures(found, HENRI)
    sound(figures, {item.id for item in found})
    assert figures[0].left.label == "Network latency (µs)"
    assert figures[0].below is not None
    assert "per core" in figures[0].below.label
    assert {(series.style, series.axis, series.side) for series in figures[0].series} == {
        (style, axis, side)
        for style in ("alone", "together")
        for axis, side in (("left", "communication"), ("below", "computation"))
    }


@pytest.mark.parametrize(
    ("comp_node", "comm_core", "latency", "first", "bandwidth"),
    [
        (0, 8, "latency increases slightly", 6, "decreases steadily"),
        (0, 35, "latency increases highly", 25, "decreases steadily"),
        (3, 8, "latency increases slightly", 6, "decreases abruptly"),
        (3, 35, "latency increases highly", 25, "decreases abruptly"),
    ],
)
def test_placement_finds_the_papers_table_1(
    comp_node: int, comm_core: int, latency: str, first: int, bandwidth: str
) -> None:
    experiment, found = study(
        "placement", HENRI, henri, comp_node=comp_node, comm_node=comp_node, comm_core=comm_core
    )
    row, of_copy = experiment.findings(found, HENRI)
    assert of_copy.values["latency_from"] == first
    assert "COPY is impacted only beside large messages" in of_copy.text
    data, thread = ("near" if comp_node == 0 else "far"), ("near" if comm_core == 8 else "far")
    assert row.text.startswith(f"Data {data} (node {comp_node}), communication thread {thread}")
    assert latency in row.text
    assert f"starting from {first} computing cores" in row.text
    assert row.values["latency_from"] == first
    assert bandwidth in row.text
    assert "TRIAD is impacted only beside large messages" in row.text
    assert row.level == "interference"


def test_placement_has_a_row_for_every_pair_of_nodes_and_both_threads() -> None:
    plan = apply(load("placement"), Overrides(settings={"n": "1,2,3"}))
    experiment = experiments.get("placement")
    found = measured(experiment.expand(plan, HENRI).points, henri, repetitions=3)
    rows = [row for row in experiment.findings(found, HENRI) if row.key.startswith("table")]
    assert {(row.values["comp_node"], row.values["comm_node"], row.values["comm_core"]) for row in rows} == {
        (comp, comm, core) for comp in range(4) for comm in range(4) for core in (8, 35)
    }
    mixed = next(row for row in rows if (row.values["comp_node"], row.values["comm_node"]) == (0, 3))
    assert "data of computations near" in mixed.text.lower()
    assert "of communications far" in mixed.text


def test_nodes_of_a_socket_that_are_not_alike_are_named_with_the_network_of_each() -> None:
    billy = machine(64, 8, 2, nic=3, hosts=2)

    def uneven(point: Point) -> tuple[float, float, float, float]:
        comp, together, comm, beside = henri(point)
        factor = 1.4 if point.metric == "bandwidth" and point.comm_node == 2 else 1.0
        return comp, together, comm * factor, beside * factor

    experiment, found = study(
        "placement", billy, uneven, settings={"n": "2", "comp_nodes": "0", "kernels": "triad"}
    )
    (nodes,) = (item for item in experiment.findings(found, billy) if item.key == "nodes")
    assert nodes.values["odd_sockets"] == "0"
    assert nodes.values["node2"] == pytest.approx(14_700, rel=0.02)
    assert "MB/s into near node 3" in nodes.text
    assert "nodes of socket 0 are not alike" in nodes.text
    drawn = next(figure for figure in experiment.figures(found, billy) if figure.name == "nodes")
    assert drawn.x.names[2] == "2 (socket 0)"
    sound([drawn], {item.id for item in found})


def test_a_machine_without_numa_and_nic_says_what_it_cannot_answer() -> None:
    notes = {note.what for note in experiments.get("placement").expand(load("placement"), SMALL).notes}
    assert "data and thread far from the NIC" in notes
    assert "near and far from the NIC" in notes
    assert "exchange over the network" in notes


def test_near_and_far_are_not_said_where_the_nic_does_not_tell() -> None:
    unknown = machine(8, 2, 2, hosts=2)
    experiment, found = study("placement", unknown, henri, settings={"n": "1,2,3"})
    texts = [finding.text for finding in experiment.findings(found, unknown)]
    assert texts
    assert not any("near" in text or "far" in text for text in texts)
    assert near_node(unknown) == 0


def test_failed_points_and_the_control_are_left_out_of_findings() -> None:
    experiment, found = study("cores", HENRI, henri)
    failed = [msgspec.structs.replace(item, status="failed") for item in found]
    assert experiment.findings(failed, HENRI)[0].level == "n/a"
    ids = {identity for finding in experiment.findings(found, HENRI) for identity in finding.points}
    assert not any("control" in identity for identity in ids)
