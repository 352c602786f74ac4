"""hwloc's XML of the machine with memory attributes from a run, which every program with hwloc 2.3 can read.

`Bandwidth` is hwloc's own attribute; the others are registered by their names. `Latency`, the time of an
access to memory, is left out: elbowroom does not measure it.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.etree import ElementTree

from elbowroom.errors import UsageError
from elbowroom.machine.topology import Machine
from elbowroom.measure.formats.values import STYLES, Style, measured, source
from elbowroom.measure.results import Results
from elbowroom.plan.kernels import find
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Summary

_DOCTYPE = b'<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
_HIGHER_FIRST, _LOWER_FIRST, _NEED_INITIATOR = 1, 2, 4
_MIB = 2**20

ATTRIBUTES = {
    ("comp", "alone"): "Bandwidth",
    ("comp", "together"): "BandwidthBesideMessages",
    ("MB/s", "alone"): "MessageBandwidth",
    ("MB/s", "together"): "MessageBandwidthBesideComputation",
    ("us", "alone"): "MessageLatency",
    ("us", "together"): "MessageLatencyBesideComputation",
}
"""By side, or unit of messages, and style. Bandwidths in MiB/s, latencies in ns, as hwloc has them."""

Place = tuple[int, tuple[int, ...]]
"""A NUMA node, and the cores that use it."""


def text(results: Results, topology: str) -> bytes:
    """The topology with the best value alone, and the worst together, of each NUMA node and set of cores.

    UsageError where neither a kernel that uses memory nor messages were measured, or a node is not in the
    topology.
    """
    by_name: dict[str, dict[Place, float]] = {}
    points = measured(results, "hwloc")
    for style in STYLES:
        for point in points:
            if point.workload.facts.beside_messages and point.role != "control":
                _collect(by_name, point, style)
    if not by_name:
        raise UsageError(
            "has no bandwidth of memory or of messages",
            field="format",
            value="hwloc",
            hint="--format json has its results",
        )
    root = ElementTree.fromstring(topology)
    nodes = {
        int(item.get("os_index", "-1")): item.get("gp_index", "")
        for item in root.iter("object")
        if item.get("type") == "NUMANode"
    }
    machine = next(root.iter("object"))
    machine.insert(0, ElementTree.Element("info", name="MeasuredBy", value=source(results)))
    at = _position(root)
    for name, values in sorted(by_name.items()):
        root.insert(at, _attribute(name, values, nodes, results.machine))
        at += 1
    ElementTree.indent(root)
    whole: bytes = ElementTree.tostring(root, encoding="utf-8")
    return _DOCTYPE + whole + b"\n"


def _collect(by_name: dict[str, dict[Place, float]], point: PointResult, style: Style) -> None:
    kernel = find(point.kernel)
    comp: Summary | None = getattr(point.comp, style)
    if comp is not None and kernel is not None and kernel.moves_memory and point.comp_cores:
        _keep(
            by_name,
            ATTRIBUTES["comp", style],
            (point.comp_node, point.comp_cores),
            comp.median * 1e6 / _MIB,
            style,
        )
    comm: Summary | None = getattr(point.comm, style)
    name = "" if comm is None else ATTRIBUTES.get((comm.unit, style), "")
    if comm is not None and name and point.comm_core >= 0:
        factor = 1e3 if comm.unit == "us" else 1e6 / _MIB
        _keep(by_name, name, (point.comm_node, (point.comm_core,)), comm.median * factor, style)


def _keep(names: dict[str, dict[Place, float]], name: str, place: Place, value: float, style: Style) -> None:
    """The best of several kernels and sizes alone, the worst together."""
    values = names.setdefault(name, {})
    largest = ("Latency" in name) == (style == "together")
    values[place] = (max if largest else min)(values.get(place, value), value)


def _position(root: ElementTree.Element) -> int:
    """Behind objects, distances and support, as hwloc's document type says."""
    before = {"object", "distances2", "distances2hetero", "support", "memattr"}
    return max((at + 1 for at, item in enumerate(root) if item.tag in before), default=0)


def _attribute(
    name: str, values: dict[Place, float], nodes: dict[int, str], machine: Machine
) -> ElementTree.Element:
    order = _LOWER_FIRST if "Latency" in name else _HIGHER_FIRST
    attribute = ElementTree.Element("memattr", name=name, flags=str(order | _NEED_INITIATOR))
    pus = {core.number: core.pus for core in machine.cores}
    for (node, cores), value in sorted(values.items()):
        if node not in nodes:
            raise UsageError(
                f"NUMA node {node} is not in the topology of the run", field="format", value="hwloc",
                hint="copy topology.xml from a run of the same machine",
            )  # fmt: skip
        ElementTree.SubElement(
            attribute,
            "memattr_value",
            target_obj_type="NUMANode",
            target_obj_gp_index=nodes[node],
            value=str(round(value)),
            initiator_cpuset=bitmap(pu for core in cores for pu in pus.get(core, (core,))),
        )
    return attribute


def bitmap(numbers: Iterable[int]) -> str:
    """A set of processing units as hwloc writes it: words of 32 bits, the highest first."""
    mask = sum(1 << number for number in set(numbers))
    words: list[str] = []
    while mask or not words:
        words.append(f"0x{mask & 0xFFFFFFFF:08x}")
        mask >>= 32
    return ",".join(reversed(words))
