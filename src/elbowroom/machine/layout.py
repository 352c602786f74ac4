"""A machine made of what is known of it: sockets, NUMA nodes, cores, caches, where the NIC is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple
from xml.sax.saxutils import quoteattr

from elbowroom.machine.topology import VIRTUAL_INFO, Cache, Core, Machine, Nic, NumaNode

_OSDEV = {"network": "2", "openfabrics": "3"}
_NETWORK_CARD = "0207 [0000:0000] [0000:0000] 00"  # PCI class of InfiniBand; vendor and device unknown


def regular_machine(
    *,
    name: str,
    model: str,
    cores_per_socket: int,
    numa_per_socket: int,
    sockets: int,
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

    `caches`: (level, bytes, cores that share one); left out where unknown, as are a `memory_per_node` (bytes)
    of 0 and a NIC. `siblings`: the other hardware threads of a core follow those of the whole machine, or of
    the socket. `nic` describes the card that `nic_node` alone only places.
    """
    cores: list[Core] = []
    nodes: list[NumaNode] = []
    per_socket = siblings == "socket"
    stride = cores_per_socket if per_socket else cores_per_socket * sockets
    for socket in range(sockets):
        first = socket * cores_per_socket * (threads_per_core if per_socket else 1)
        for place in range(numa_per_socket):
            node = socket * numa_per_socket + place
            share = range(
                cores_per_socket * place // numa_per_socket, cores_per_socket * (place + 1) // numa_per_socket
            )
            numbers = tuple(first + core for core in share)
            cores += [
                Core(
                    number=number,
                    logical=socket * cores_per_socket + core,
                    package=socket,
                    node=node,
                    pus=tuple(number + thread * stride for thread in range(threads_per_core)),
                )
                for core, number in zip(share, numbers, strict=True)
            ]
            nodes.append(NumaNode(number=node, package=socket, memory=memory_per_node, cores=numbers))
    if nic is None and nic_node is not None:
        nic = Nic(name="nic0", kind="network", node=nic_node)
    return Machine(
        name=name,
        model=model,
        cores=tuple(cores),
        nodes=tuple(nodes),
        caches=tuple(cache for one in sorted(caches) for cache in _caches(cores, cores_per_socket, *one)),
        nics=() if nic is None else (nic,),
        allowed=tuple(sorted(core.number for core in cores)),
        memory=memory_per_node * len(nodes),
        hosts=hosts,
        virtual=virtual,
    )


def _caches(
    cores: Sequence[Core], cores_per_socket: int, level: int, size: int, sharing: int
) -> Iterator[Cache]:
    """Caches shared by that many neighbouring cores of a socket; the last of a socket may have fewer."""
    for start in range(0, len(cores), cores_per_socket):
        socket = cores[start : start + cores_per_socket]
        for first in range(0, cores_per_socket, sharing):
            shared = tuple(core.number for core in socket[first : first + sharing])
            yield Cache(level=level, size=size, cores=shared)


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
    for package in sorted({node.package for node in machine.nodes}):
        cores = [core for core in machine.cores if core.package == package]
        inside = [node.number for node in machine.nodes if node.package == package]
        sets = _sets((unit for core in cores for unit in core.pus), inside)
        lines.append(f'<object type="Package" os_index="{package}" {sets}>')
        lines += [*_nested(_boxes(machine, cores, package)), "</object>"]
    lines += [line for nic in machine.nics if nic.node is None for line in _nic(nic)]
    return "\n".join([*lines, "</object>", "</topology>", ""])


class _TopologyObject(NamedTuple):
    """An object around some cores: the lines that open it, and those inside it behind all other objects."""

    cores: frozenset[int]
    rank: int
    head: list[str]
    tail: list[str]


def _boxes(machine: Machine, cores: Sequence[Core], package: int) -> list[_TopologyObject]:
    """NUMA nodes, caches and cores of a package, each before what is inside it.

    A node is a group of cores with its memory and its devices, also where it is the whole package.
    """
    boxes = []
    for node in machine.nodes:
        if node.package == package and node.cores:
            sets = _sets(
                (unit for core in cores if core.node == node.number for unit in core.pus), [node.number]
            )
            memory = f' local_memory="{node.memory}"' if node.memory else ""
            numa = f'<object type="NUMANode" os_index="{node.number}" {sets}{memory}/>'
            devices = [line for nic in machine.nics if nic.node == node.number for line in _nic(nic)]
            boxes.append(
                _TopologyObject(frozenset(node.cores), 9, [f'<object type="Group" {sets}>', numa], devices)
            )
    within = {core.number for core in cores}
    for cache in machine.caches:
        if within.issuperset(cache.cores):
            shared = [core for core in cores if core.number in cache.cores]
            sets = _sets((unit for core in shared for unit in core.pus), {core.node for core in shared})
            head = (
                f'<object type="L{cache.level}Cache" {sets} cache_size="{cache.size}" depth="{cache.level}" '
                f'cache_linesize="64" cache_associativity="0" cache_type="{int(cache.level == 1)}">'
            )
            boxes.append(_TopologyObject(frozenset(cache.cores), cache.level, [head], []))
    for core in cores:
        head = f'<object type="Core" os_index="{core.number}" {_sets(core.pus, [core.node])}>'
        units = [f'<object type="PU" os_index="{pu}" {_sets([pu], [core.node])}/>' for pu in core.pus]
        boxes.append(_TopologyObject(frozenset([core.number]), 0, [head, *units], []))
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
