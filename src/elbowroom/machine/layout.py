"""A machine made of what is known of it: sockets, NUMA nodes, cores, caches, where the NIC is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Literal, NamedTuple
from xml.sax.saxutils import quoteattr

from elbowroom.machine.hwloc import UNNAMED, VIRTUAL_INFO
from elbowroom.machine.topology import Cache, Core, Machine, Nic, NumaNode

_OSDEV = {"network": "2", "openfabrics": "3"}
_NETWORK_CARD = "0207 [0000:0000] [0000:0000] 00"  # PCI class of InfiniBand; vendor and device unknown


def regular_machine(
    *,
    name: str,
    model: str,
    cores_per_socket: int,
    numa_per_socket: int,
    sockets: int,
    layout: Sequence[tuple[int, int]] = (),
    nic_node: int | None = None,
    nic: Nic | None = None,
    memory_per_node: int = 0,
    caches: Sequence[tuple[int, int, int]] = (),
    threads_per_core: int = 1,
    siblings: Literal["machine", "socket"] = "machine",
    hosts: int = 1,
    virtual: bool = False,
) -> Machine:
    """Cores and nodes numbered from 0, socket by socket, the cores of a socket dealt evenly to its nodes.

    `layout`: cores and nodes of each socket, where they are not alike; cores of a socket without nodes are at
    the node before. `caches`: (level, bytes, cores that share one); left out where unknown, as are a
    `memory_per_node` (bytes) of 0 and a NIC. `siblings`: the other hardware threads of a core follow those of
    the whole machine, or of the socket. `nic` describes the card that `nic_node` alone only places.
    """
    layout = tuple(layout) or ((cores_per_socket, numa_per_socket),) * sockets
    cores: list[Core] = []
    nodes: list[NumaNode] = []
    per_socket = siblings == "socket"
    total = sum(count for count, _ in layout)
    for socket, (count, places) in enumerate(layout):
        before = len(cores)
        first = before * threads_per_core if per_socket else before
        stride = count if per_socket else total
        for place in range(max(places, 1)):
            node = len(nodes) if places else len(nodes) - 1
            share = range(count * place // max(places, 1), count * (place + 1) // max(places, 1))
            numbers = tuple(first + core for core in share)
            cores += [
                Core(
                    number=number,
                    logical=before + core,
                    package=socket,
                    node=node,
                    pus=tuple(number + thread * stride for thread in range(threads_per_core)),
                )
                for core, number in zip(share, numbers, strict=True)
            ]
            if places:
                nodes.append(NumaNode(number=node, package=socket, memory=memory_per_node, cores=numbers))
    if nic is None and nic_node is not None:
        nic = Nic(name="nic0", kind="network", node=nic_node)
    return Machine(
        name=name,
        model=model,
        cores=tuple(cores),
        nodes=tuple(nodes),
        caches=tuple(cache for one in sorted(caches) for cache in _caches(cores, *one)),
        nics=() if nic is None else (nic,),
        allowed=tuple(sorted(core.number for core in cores)),
        memory=memory_per_node * len(nodes),
        hosts=hosts,
        virtual=virtual,
    )


def _caches(cores: Sequence[Core], level: int, size: int, sharing: int) -> Iterator[Cache]:
    """Caches shared by that many neighbouring cores of a socket; the last of a socket may have fewer."""
    for _, group in groupby(cores, key=lambda core: core.package):
        socket = [core.number for core in group]
        for first in range(0, len(socket), sharing):
            yield Cache(level=level, size=size, cores=tuple(socket[first : first + sharing]))


def topology_xml(machine: Machine) -> str:
    """The machine as hwloc 2 would export it.

    `read_topology` returns the same machine, except for `hosts` and the permissions of this process.
    """
    nodes = [node.number for node in machine.nodes]
    sets = _sets((unit for core in machine.cores for unit in core.pus), nodes)
    allowed = (unit for core in machine.cores if core.number in machine.allowed for unit in core.pus)
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<!DOCTYPE topology SYSTEM "hwloc2.dtd">',
        '<topology version="2.0">',
        f'<object type="Machine" os_index="0" {sets} allowed_cpuset="{_bitmap(allowed)}" '
        f'allowed_nodeset="{_bitmap(nodes)}">',
        f'<info name="HostName" value={quoteattr(machine.name)}/>',
        f'<info name="CPUModel" value={quoteattr(machine.model)}/>',
    ]
    if machine.virtual:
        lines.append(f'<info name="{VIRTUAL_INFO}" value="true"/>')
    packages = {core.number: core.package for core in machine.cores}
    shared = [node for node in machine.nodes if len({packages[core] for core in node.cores}) > 1]
    lines += [_numa_line(machine, node) for node in shared]
    order = dict.fromkeys(core.package for core in sorted(machine.cores, key=lambda core: core.logical))
    placed: set[int] = set()
    for package in (*order, *(node.package for node in machine.nodes if node.package not in order)):
        if package not in placed:
            placed.add(package)
            lines += _package(machine, package, shared)
    inside = {node.number for node in machine.nodes if node.cores and node not in shared}
    lines += [line for nic in machine.nics if nic.node not in inside for line in _nic(nic)]
    return "\n".join([*lines, "</object>", *_core_kinds(machine), "</topology>", ""])


def _package(machine: Machine, package: int, shared: Sequence[NumaNode]) -> list[str]:
    """A socket, with its memory without cores before all that has some."""
    cores = [core for core in machine.cores if core.package == package]
    inside = [node for node in machine.nodes if node.package == package and node not in shared]
    beside = {node.number for core in cores for node in _nodes_at(machine, core)}
    sets = _sets((unit for core in cores for unit in core.pus), {node.number for node in inside} | beside)
    bare = [_numa_line(machine, node) for node in inside if not node.cores]
    boxes = _boxes(machine, cores, [node for node in inside if node.cores])
    return [f'<object type="Package" os_index="{package}" {sets}>', *bare, *_nested(boxes), "</object>"]


def _nodes_at(machine: Machine, core: Core) -> list[NumaNode]:
    return [node for node in machine.nodes if core.number in node.cores]


def _numa_line(machine: Machine, node: NumaNode) -> str:
    units = (unit for core in machine.cores if core.number in node.cores for unit in core.pus)
    kinds = (kind.name for kind in machine.memory_kinds if node.number in kind.numbers)
    more = "".join(f" subtype={quoteattr(kind)}" for kind in kinds if kind not in UNNAMED)
    more += f' local_memory="{node.memory}"' if node.memory else ""
    return f'<object type="NUMANode" os_index="{node.number}" {_sets(units, [node.number])}{more}/>'


def _core_kinds(machine: Machine) -> Iterator[str]:
    for kind in machine.core_kinds:
        units = _bitmap(unit for core in machine.cores if core.number in kind.numbers for unit in core.pus)
        info = f'<info name="CoreType" value={quoteattr(kind.name)}/>'
        yield f'<cpukind cpuset="{units}">{info}</cpukind>'


class _TopologyObject(NamedTuple):
    """An object around some cores: the lines that open it, and those inside it behind all other objects."""

    cores: frozenset[int]
    rank: int
    head: list[str]
    tail: list[str]


def _boxes(machine: Machine, cores: Sequence[Core], nodes: Sequence[NumaNode]) -> list[_TopologyObject]:
    """NUMA nodes, caches and cores of a package, each before what is inside it.

    A node is a group of cores with its memory and its devices, also where it is the whole package; nodes of
    the same cores share a group.
    """
    boxes = []
    alike: dict[frozenset[int], list[NumaNode]] = {}
    for node in nodes:
        alike.setdefault(frozenset(node.cores), []).append(node)
    for near, group in alike.items():
        numbers = [node.number for node in group]
        sets = _sets((unit for core in cores if core.number in near for unit in core.pus), numbers)
        head = [f'<object type="Group" {sets}>', *(_numa_line(machine, node) for node in group)]
        devices = [line for nic in machine.nics if nic.node in numbers for line in _nic(nic)]
        boxes.append(_TopologyObject(near, 9, head, devices))
    at = {core.number: {node.number for node in _nodes_at(machine, core)} for core in cores}
    for cache in machine.caches:
        if at.keys() >= set(cache.cores):
            shared = [core for core in cores if core.number in cache.cores]
            sets = _sets(
                (unit for core in shared for unit in core.pus), set().union(*(at[c] for c in cache.cores))
            )
            line = (
                f'<object type="L{cache.level}Cache" {sets} cache_size="{cache.size}" depth="{cache.level}" '
                f'cache_linesize="64" cache_associativity="0" cache_type="{int(cache.level == 1)}">'
            )
            boxes.append(_TopologyObject(frozenset(cache.cores), cache.level, [line], []))
    for core in cores:
        line = f'<object type="Core" os_index="{core.number}" {_sets(core.pus, at[core.number])}>'
        units = [f'<object type="PU" os_index="{pu}" {_sets([pu], at[core.number])}/>' for pu in core.pus]
        boxes.append(_TopologyObject(frozenset([core.number]), 0, [line, *units], []))
    order = {core.number: core.logical for core in cores}
    return sorted(boxes, key=lambda box: (min(order[c] for c in box.cores), -len(box.cores), -box.rank))


def _nested(boxes: Iterable[_TopologyObject]) -> Iterator[str]:
    """Lines of objects inside one another, each closed before the next one that is not inside it."""
    around: list[_TopologyObject] = []
    for box in boxes:
        while around and not box.cores <= around[-1].cores:
            yield from (*around.pop().tail, "</object>")
        yield from box.head
        around.append(box)
    while around:
        yield from (*around.pop().tail, "</object>")


def _nic(nic: Nic) -> list[str]:
    device = f'<object type="OSDev" name={quoteattr(nic.name)} osdev_type="{_OSDEV.get(nic.kind, "2")}"/>'
    if nic.pci is None:
        return [device]
    bus = nic.pci.split(":")[1]
    speed = f"{float(nic.link.split()[0]):.6f}" if nic.link else "0.000000"
    return [
        f'<object type="Bridge" bridge_type="0-1" depth="0" bridge_pci="0000:[{bus}-{bus}]">',
        f'<object type="PCIDev" pci_busid="{nic.pci}" pci_type="{_NETWORK_CARD}" pci_link_speed="{speed}">',
        device,
        "</object></object>",
    ]


def _sets(units: Iterable[int], nodes: Iterable[int]) -> str:
    """Both sets of an object, and the same as complete ones: nothing is offline."""
    cpus, numa = _bitmap(units), _bitmap(nodes)
    return f'cpuset="{cpus}" complete_cpuset="{cpus}" nodeset="{numa}" complete_nodeset="{numa}"'


def _bitmap(numbers: Iterable[int]) -> str:
    """hwloc's bitmap: 32-bit words, highest first."""
    bits = sum(1 << number for number in set(numbers))
    words: list[str] = []
    while bits or not words:
        words.append(f"0x{bits & 0xFFFFFFFF:08x}")
        bits >>= 32
    return ",".join(reversed(words))
