"""The network alone by NUMA node: nodes of a socket need not be alike (thesis, 6.3.3: billy, 8 nodes)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from elbowroom.draw.figure import Axis, Figure, Series
from elbowroom.experiments.common.panels import CAPTION, as_bandwidth
from elbowroom.experiments.common.sentences import Values, node_distance, size_text
from elbowroom.machine.topology import Machine
from elbowroom.plan.placement import nic_node
from elbowroom.results.result import Finding, PointResult

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
    found = []
    for node in machine.nodes:
        points = [item for item in results if item.size == largest and item.comm_node == node.number]
        rows = [as_bandwidth(item, item.comm.alone) for item in points if item.comm.alone is not None]
        if rows and largest:
            median, d1, d9 = (sorted(column)[len(rows) // 2] for column in zip(*rows, strict=True))
            ids = tuple(item.id for item in points)
            found.append(NodeBandwidth(node.number, node.package, median, d1, d9, ids))
    return found


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
    return (
        Figure(
            name="nodes",
            title=f"Network bandwidth alone by NUMA node ({size_text(size)} messages)",
            x=Axis(
                label="NUMA node of the messages",
                names=tuple(f"{node.node} (socket {node.package})" for node in nodes),
            ),
            left=Axis(label="Network bandwidth (MB/s)"),
            series=(
                Series(
                    name="alone",
                    side="communication",
                    style="alone",
                    drawn="bars",
                    x=tuple(float(place) for place in range(len(nodes))),
                    y=tuple(node.median for node in nodes),
                    low=tuple(node.d1 for node in nodes),
                    high=tuple(node.d9 for node in nodes),
                ),
            ),
            caption=CAPTION,
        ),
    )
