"""A machine of which only the shape is known: sockets, NUMA nodes, cores, where the NIC is."""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import quoteattr

from elbowroom.machine.topology import Core, Machine, Nic, Node


def made(
    *,
    name: str,
    model: str,
    cores_per_socket: int,
    numa_per_socket: int,
    sockets: int,
    nic_node: int | None = None,
    memory_per_node: int = 0,
    virtual: bool = False,
) -> Machine:
    """Cores and nodes numbered from 0, socket by socket, the cores of a socket dealt evenly to its nodes.

    Caches are unknown and left out, `memory_per_node` (bytes) is 0 where unknown, and so is a NIC.
    """
    cores: list[Core] = []
    nodes: list[Node] = []
    for socket in range(sockets):
        for place in range(numa_per_socket):
            node = socket * numa_per_socket + place
            share = range(
                cores_per_socket * place // numa_per_socket, cores_per_socket * (place + 1) // numa_per_socket
            )
            numbers = tuple(socket * cores_per_socket + core for core in share)
            cores += [
                Core(number=number, logical=number, package=socket, node=node, pus=(number,))
                for number in numbers
            ]
            nodes.append(Node(number=node, package=socket, memory=memory_per_node, cores=numbers))
    return Machine(
        name=name,
        model=model,
        cores=tuple(cores),
        nodes=tuple(nodes),
        caches=(),
        nics=() if nic_node is None else (Nic(name="nic0", kind="network", node=nic_node),),
        allowed=tuple(core.number for core in cores),
        memory=memory_per_node * len(nodes),
        virtual=virtual,
    )


def topology_xml(machine: Machine) -> str:
    """What hwloc would export of it: `read_topology` gives the machine back but for `virtual` and what a
    process may set.
    """
    everything = _sets([core.number for core in machine.cores], [node.number for node in machine.nodes])
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<!DOCTYPE topology SYSTEM "hwloc2.dtd">',
        '<topology version="2.0">',
        f'<object type="Machine" os_index="0" {everything} allowed_{everything.split(" ", 1)[0]}>',
        f'<info name="HostName" value={quoteattr(machine.name)}/>',
        f'<info name="CPUModel" value={quoteattr(machine.model)}/>',
    ]
    for package in sorted({node.package for node in machine.nodes}):
        nodes = [node for node in machine.nodes if node.package == package]
        cores = [core for node in nodes for core in node.cores]
        inside = _sets(cores, [node.number for node in nodes])
        lines.append(f'<object type="Package" os_index="{package}" {inside}>')
        for node in nodes:
            lines += _node(node, machine)
        lines.append("</object>")
    lines += ["</object>", "</topology>", ""]
    return "\n".join(lines)


def _node(node: Node, machine: Machine) -> list[str]:
    """hwloc hangs the memory, the cores and the devices of a node below one group."""
    sets = _sets(node.cores, [node.number])
    lines = [f'<object type="Group" {sets}>']
    memory = f' local_memory="{node.memory}"' if node.memory else ""
    lines.append(f'<object type="NUMANode" os_index="{node.number}" {sets}{memory}/>')
    for core in node.cores:
        own = _sets([core], [node.number])
        lines.append(f'<object type="Core" os_index="{core}" {own}>')
        lines.append(f'<object type="PU" os_index="{core}" {own}/></object>')
    for nic in machine.nics:
        if nic.node == node.number:
            lines.append(f'<object type="OSDev" name={quoteattr(nic.name)} osdev_type="2"/>')
    lines.append("</object>")
    return lines


def _sets(cores: Iterable[int], nodes: Iterable[int]) -> str:
    return f'cpuset="{_bitmap(cores)}" nodeset="{_bitmap(nodes)}"'


def _bitmap(numbers: Iterable[int]) -> str:
    """hwloc's bitmap: 32-bit words, highest first."""
    bits = sum(1 << number for number in numbers)
    words: list[str] = []
    while bits or not words:
        words.append(f"0x{bits & 0xFFFFFFFF:08x}")
        bits >>= 32
    return ",".join(reversed(words))
