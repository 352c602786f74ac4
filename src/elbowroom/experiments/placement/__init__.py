"""Where data and communication thread are, near or far from the NIC (paper, Figure 5 and Table 1); the
network alone by NUMA node: nodes of a socket need not be alike (thesis, 6.3.3: billy, 8 nodes).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from elbowroom.draw.figure import RULE, Axis, Figure
from elbowroom.experiments import cores
from elbowroom.experiments.common.panels import as_bandwidth, cores_of, line
from elbowroom.experiments.common.points import machine_notes, with_notes
from elbowroom.experiments.common.sentences import (
    Values,
    case_key,
    cores_text,
    grouped,
    level_of,
    node_distance,
    nothing,
    onset_over,
    onset_values,
    place_text,
    size_text,
    usable,
)
from elbowroom.experiments.experiment import Experiment
from elbowroom.machine.topology import Machine
from elbowroom.plan.axes import expand as multiply
from elbowroom.plan.file import Plan
from elbowroom.plan.kernels import kernel_name
from elbowroom.plan.placement import nic_node
from elbowroom.points.point import Expansion, Note
from elbowroom.results.curves import Onset
from elbowroom.results.result import Finding, PointResult

# Between the paper's two words: 1.39 to 2 us (1.4 times) "increases slightly", doubling "increases highly"
# (Table 1).
HIGHLY = 1.7

Place = tuple[str, int, int, int]


def _place(item: PointResult) -> Place:
    return item.kernel, item.comp_node, item.comm_node, item.comm_core


def expand(plan: Plan, machine: Machine) -> Expansion:
    """Every pair of nodes, communication thread near and far; a note if there is one node or no NIC."""
    expansion = multiply(plan, machine)
    notes = list(machine_notes(machine))
    if len(machine.nodes) < 2:
        notes.append(Note(what="data and thread far from the NIC", reason="this machine has one NUMA node"))
    return with_notes(expansion, notes)


def _latency(onset: Onset) -> str:
    """Table 1's words for a latency."""
    if onset.worst is None:
        return "latency was not measured"
    if onset.first is None:
        return "latency does not increase"
    extent = "highly" if 1 / onset.worst >= HIGHLY else "slightly"
    extent += f" and {onset.manner}" if onset.manner else ""
    return (
        f"latency increases {extent} ({1 / onset.worst:.1f} times at "
        f"{cores_text(onset.worst_x or 0)}), {_from(onset)}"
    )


def _bandwidth(onset: Onset) -> str:
    """Table 1's words for a bandwidth."""
    if onset.worst is None:
        return "bandwidth was not measured"
    if onset.first is None:
        return "bandwidth does not decrease"
    manner = f" {onset.manner}" if onset.manner else ""
    return (
        f"bandwidth decreases{manner} (to {onset.worst:.2f} at "
        f"{cores_text(onset.worst_x or 0)}), {_from(onset)}"
    )


def _from(onset: Onset) -> str:
    if onset.x is not None:
        return f"starting from {cores_text(onset.x)}"
    return f"between {cores_text(onset.first or 0)} and {cores_text(onset.last or 0)}"


def _computation(
    latency: Sequence[PointResult], bandwidth: Sequence[PointResult]
) -> tuple[str, Onset, Onset]:
    """Table 1's last column: beside which messages the computation suffers."""
    small, large = onset_over(latency, "comp", cores_of), onset_over(bandwidth, "comp", cores_of)
    name = kernel_name((latency or bandwidth)[0].kernel)
    if small.first is None and large.first is None:
        return f"{name} is not impacted", small, large
    if small.first is None:
        worst = f"worst {large.worst or 0:.2f} at {cores_text(large.worst_x or 0)}"
        return f"{name} is impacted only beside large messages ({worst})", small, large
    if large.first is None:
        return f"{name} is impacted only beside small messages", small, large
    return f"{name} is impacted beside small and large messages", small, large


def _row(group: Sequence[PointResult], machine: Machine) -> Finding:
    """One row of Table 1: the smallest size measured as latency, the largest as bandwidth."""
    latency = [item for item in group if item.metric == "latency"]
    latency = [item for item in latency if item.size == min(other.size for other in latency)]
    bandwidth = [item for item in group if item.metric == "bandwidth"]
    bandwidth = [item for item in bandwidth if item.size == max(other.size for other in bandwidth)]
    slow, narrow = onset_over(latency, "comm", cores_of), onset_over(bandwidth, "comm", cores_of)
    computation, small, large = _computation(latency, bandwidth)
    place = place_text(group[0], machine)
    values: Values = {
        "comp_node": group[0].comp_node,
        "comm_node": group[0].comm_node,
        "comm_core": group[0].comm_core,
        "latency_extent": None if slow.worst is None else 1 / slow.worst,
    }
    for prefix, onset in (
        ("latency", slow),
        ("bandwidth", narrow),
        ("comp_small", small),
        ("comp_large", large),
    ):
        values |= onset_values(prefix, onset)
    sizes = "/".join(size_text(item[0].size) for item in (latency, bandwidth) if item)
    return Finding(
        key=case_key("table", _place(group[0])),
        level=level_of(slow, narrow, small, large),
        text=(
            f"{place[:1].upper()}{place[1:]} ({sizes}): {_latency(slow)}; {_bandwidth(narrow)}; "
            f"{computation}."
        ),
        values=values,
        points=tuple(item.id for item in (*latency, *bandwidth)),
    )


def findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """The paper's Table 1, row by row, found from the data; then the network alone by node."""
    points = usable(results)
    rows = tuple(_row(group, machine) for group in grouped(points, _place).values())
    return (*rows, *node_findings(points, machine)) or (nothing("table", "Placement"),)


def figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:
    """The panels of Figure 5: those of `cores`, one per placement and size; the network alone by node."""
    return (*cores.EXPERIMENT.figures(results, machine), *node_figures(usable(results), machine))


EXPERIMENT = Experiment(
    name="placement",
    question=(
        "How does interference depend on where the data and the communication thread are, "
        "near or far from the NIC?"
    ),
    expand=expand,
    findings=findings,
    figures=figures,
)


ALIKE = 0.05
"""Bandwidths alone that differ by more than this, with bands apart, are those of nodes that are not alike."""


class NodeBandwidth(NamedTuple):
    """Bandwidth of the largest messages into a node, nothing computing, MB/s: medians over the points."""

    node: int
    package: int
    median: float
    d1: float
    d9: float
    points: tuple[str, ...]


def node_bandwidths(results: Sequence[PointResult], machine: Machine) -> list[NodeBandwidth]:
    """Of each node that messages were received into, in order; by the largest size that was measured."""
    largest = max((item.size for item in results if item.metric == "bandwidth"), default=0)
    bandwidths = []
    for node in machine.nodes:
        points = [item for item in results if item.size == largest and item.comm_node == node.number]
        rows = [as_bandwidth(item, item.comm.alone) for item in points if item.comm.alone is not None]
        if rows and largest:
            median, d1, d9 = (sorted(column)[len(rows) // 2] for column in zip(*rows, strict=True))
            ids = tuple(item.id for item in points)
            bandwidths.append(NodeBandwidth(node.number, node.package, median, d1, d9, ids))
    return bandwidths


def node_findings(results: Sequence[PointResult], machine: Machine) -> tuple[Finding, ...]:
    """With more nodes than two: the network alone by node, and whether those of a socket differ."""
    nodes = node_bandwidths(results, machine)
    if len(nodes) < 3:
        return ()
    place = "" if nic_node(machine) is None else "{distance} "
    texts = [
        f"{node.median:.4g} MB/s into {place}node {node.node}".format(
            distance=node_distance(machine, node.node)
        )
        for node in nodes
    ]
    odd = [package for package in dict.fromkeys(node.package for node in nodes) if _differ(nodes, package)]
    if odd:
        sockets = f"socket{'s' if len(odd) > 1 else ''} {', '.join(map(str, odd))}"
        verdict = f"The nodes of {sockets} are not alike: a model that takes them for equal is wrong there."
    else:
        verdict = "The nodes of each socket are alike within 5 % or within their bands."
    values: Values = {f"node{node.node}": node.median for node in nodes}
    return (
        Finding(
            key="nodes",
            level="note",
            text=f"Network bandwidth alone: {', '.join(texts)}. {verdict}",
            values=values | {"odd_sockets": ",".join(map(str, odd))},
            points=tuple(point for node in nodes for point in node.points),
        ),
    )


def _differ(nodes: Sequence[NodeBandwidth], package: int) -> bool:
    own = sorted((node for node in nodes if node.package == package), key=lambda node: node.median)
    if len(own) < 2:
        return False
    low, high = own[0], own[-1]
    return high.median > low.median * (1 + ALIKE) and high.d1 > low.d9


def node_figures(results: Sequence[PointResult], machine: Machine) -> tuple[Figure, ...]:
    """The same as bars with bands."""
    nodes = node_bandwidths(results, machine)
    if len(nodes) < 3:
        return ()
    size = max(item.size for item in results if item.metric == "bandwidth")
    rows = [(float(place), node.median, node.d1, node.d9) for place, node in enumerate(nodes)]
    return (
        Figure(
            name="nodes",
            title=f"Network bandwidth alone by NUMA node ({size_text(size)} messages)",
            x=Axis(
                label="NUMA node of the messages",
                names=tuple(f"{node.node} (socket {node.package})" for node in nodes),
            ),
            left=Axis(label="Network bandwidth (MB/s)"),
            series=(line("alone", rows, side="communication", style="alone", drawn="bars"),),
            caption=RULE,
        ),
    )
