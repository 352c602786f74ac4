"""Which cores and NUMA nodes of a machine take the places of those that a plan was made for. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from xml.etree import ElementTree

CORE_KEYS = frozenset(
    {"comp_cores", "comm_cores", "peer_cores", "cores", "core", "peer_core", "comm_core", "submit_core"}
)
NODE_KEYS = frozenset({"node", "comp_node", "comm_node"})
"""Keys of requests and of points whose numbers are those of cores and of NUMA nodes; below 0: any."""


class Shape(NamedTuple):
    """The operating system's numbers of the cores and nodes that a plan calls 0, 1, 2 ..."""

    cores: tuple[int, ...]
    nodes: tuple[int, ...]


def cores_by_node(topology: str, allowed: set[int]) -> dict[int, tuple[int, ...]]:
    """The cores at each NUMA node that this process may use, from hwloc's XML. A core has the number of its
    first processing unit; a node without cores is left out.
    """
    root = ElementTree.fromstring(topology)
    objects = list(root.iter("object"))
    cores = [min(_bits(one)) for one in objects if one.get("type") == "Core" and _bits(one)]
    # Without cores (some virtual machines) each processing unit is one.
    cores = cores or [min(_bits(one)) for one in objects if one.get("type") == "PU"]
    usable = sorted(core for core in cores if core in allowed)
    nodes: dict[int, tuple[int, ...]] = {}
    placed: set[int] = set()
    for one in objects:
        if one.get("type") == "NUMANode":
            here = tuple(core for core in usable if core in _bits(one) and core not in placed)
            placed.update(here)
            if here:
                nodes[int(one.get("os_index", "0"))] = here
    return dict(sorted(nodes.items())) or {0: tuple(usable)}


def _bits(one: ElementTree.Element) -> frozenset[int]:
    """A bitmap of hwloc: words of 32 bits, the highest first."""
    value = 0
    for word in one.get("cpuset", "").split(","):
        value = value << 32 | int(word or "0", 16)
    return frozenset(bit for bit in range(value.bit_length()) if value >> bit & 1)


def shape_of(nodes: Mapping[int, Sequence[int]], plans: Sequence[Path]) -> tuple[Shape, dict[str, Any]]:
    """The plan for the largest shape that this machine has room for, and the machine's numbers in it.
    ValueError where it has room for none.
    """
    rooms = [len(cores) for cores in nodes.values()]
    best: dict[str, Any] | None = None
    for path in plans:
        plan = json.loads(path.read_text())
        shape = plan["shape"]
        fits = len(shape) <= len(rooms) and all(
            need <= room for need, room in zip(shape, rooms, strict=False)
        )
        if fits and (best is None or sum(shape) > sum(best["shape"])):
            best = plan
    if best is None:
        raise ValueError(f"no plan is for a machine with {' + '.join(map(str, rooms))} cores")
    chosen = list(nodes.items())[: len(best["shape"])]
    cores = [core for (_, all_), need in zip(chosen, best["shape"], strict=True) for core in all_[:need]]
    return Shape(tuple(cores), tuple(node for node, _ in chosen)), best


def replaced(document: Any, shape: Shape) -> Any:
    """A request or a point with the machine's own numbers."""
    if isinstance(document, Mapping):
        return {key: _value(key, value, shape) for key, value in document.items()}
    if isinstance(document, list):
        return [replaced(item, shape) for item in document]
    return document


def _value(key: str, value: Any, shape: Shape) -> Any:
    numbers = shape.cores if key in CORE_KEYS else shape.nodes if key in NODE_KEYS else None
    if numbers is None or isinstance(value, Mapping):
        return replaced(value, shape)
    if isinstance(value, list):
        return [numbers[item] for item in value]
    return value if value is None or value < 0 else numbers[value]
