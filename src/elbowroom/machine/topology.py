"""The machine as plain data: packages, cores, NUMA nodes, caches, NICs."""

from __future__ import annotations

import os
from collections.abc import Collection

import msgspec

from elbowroom.quantities import ranges


class Core(msgspec.Struct, frozen=True, kw_only=True):
    """A physical core, named by the operating system's number of its first processing unit.

    `node`: its NUMA node; the nearest one where the machine gives it none.
    """

    number: int
    logical: int
    package: int
    node: int
    pus: tuple[int, ...]


class NumaNode(msgspec.Struct, frozen=True, kw_only=True):
    """A NUMA node; `number` is the operating system's, `memory` its size in bytes.

    `cores`: those that the machine places at it; a core may be at several nodes, and a node at no core.
    """

    number: int
    package: int
    memory: int
    cores: tuple[int, ...]


class Cache(msgspec.Struct, frozen=True, kw_only=True):
    """A cache: level, size in bytes and the cores that share it."""

    level: int
    size: int
    cores: tuple[int, ...]


class ObjectKind(msgspec.Struct, frozen=True, kw_only=True):
    """Cores or NUMA nodes of one kind on a machine that has several, and what hwloc calls it."""

    name: str
    numbers: tuple[int, ...]


class Nic(msgspec.Struct, frozen=True, kw_only=True):
    """A network interface: its NUMA node (None when the machine does not say) and link as far as known."""

    name: str
    kind: str
    node: int | None
    pci: str | None = None
    link: str | None = None


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What plans are expanded against and reports draw. `allowed` are the cores of this process' cpuset.

    `permitted`: what this process may set here, of `core_frequency`, `uncore_frequency`, `turbo` and
    `governor`; `frequency_ranges`: the extremes of frequencies (kHz, without turbo); `governors`: those of
    every core; `refused`: why it may not set the others.

    `core_kinds`: where cores are of several kinds; `memory_kinds`: NUMA nodes that are not ordinary memory of
    cores; `assumed`: what the description of the machine lacks, and what is taken instead.
    """

    name: str
    model: str
    cores: tuple[Core, ...]
    nodes: tuple[NumaNode, ...]
    caches: tuple[Cache, ...]
    nics: tuple[Nic, ...]
    allowed: tuple[int, ...]
    memory: int
    hosts: int = 1
    virtual: bool = False
    permitted: tuple[str, ...] = ()
    frequency_ranges: dict[str, tuple[int, int]] = {}
    governors: tuple[str, ...] = ()
    refused: dict[str, str] = {}
    core_kinds: tuple[ObjectKind, ...] = ()
    memory_kinds: tuple[ObjectKind, ...] = ()
    assumed: tuple[str, ...] = ()

    @property
    def packages(self) -> int:
        return len({core.package for core in self.cores})

    @property
    def ordinary_nodes(self) -> tuple[NumaNode, ...]:
        """NUMA nodes without those of HBM, CXL and the like; all where there is no ordinary memory."""
        special = {number for kind in self.memory_kinds for number in kind.numbers}
        return tuple(node for node in self.nodes if node.number not in special) or self.nodes

    @property
    def sockets(self) -> tuple[tuple[int, ...], ...]:
        """Packages as models count sockets: in logical order of their cores, those that share a NUMA node as
        one, those without memory or without cores last. The first one has both.
        """
        with_memory = {node.package for node in self.nodes}
        package = {core.number: core.package for core in self.cores}
        groups: list[set[int]] = []
        for core in sorted(self.cores, key=lambda core: core.logical):
            if not any(core.package in group for group in groups):
                groups.append({core.package})
        for node in self.nodes:
            across = {package[core] for core in node.cores if core in package}
            joined = [group for group in groups if group & across]
            for group in joined[1:]:
                joined[0] |= group
                groups.remove(group)
        groups.sort(key=lambda group: not group & with_memory)
        memory_only = with_memory.difference(*groups)
        return (*(tuple(sorted(group)) for group in groups), *((one,) for one in sorted(memory_only)))

    @property
    def socket_of(self) -> dict[int, int]:
        """The place of each package in `sockets`."""
        return {package: place for place, packages in enumerate(self.sockets) for package in packages}

    @property
    def peculiarities(self) -> tuple[str, ...]:
        """Sentences about several kinds of cores or memory, and about what was assumed."""
        notes = []
        if self.core_kinds:
            kinds = (
                f"{len(kind.numbers)} {kind.name} ({ranges(kind.numbers) or 'none'})"
                for kind in self.core_kinds
            )
            notes.append(f"cores of {len(self.core_kinds)} kinds: {', '.join(kinds)}")
        for kind in self.memory_kinds:
            be = "is" if len(kind.numbers) == 1 else "are"
            notes.append(f"{numbered('NUMA node', kind.numbers)} {be} {kind.name}")
        return (*notes, *self.assumed)

    @property
    def last_level_cache(self) -> int:
        """Bytes of the largest cache of the highest level; 0 when hwloc reports none."""
        if not self.caches:
            return 0
        level = max(cache.level for cache in self.caches)
        return max(cache.size for cache in self.caches if cache.level == level)


def here(machine: Machine, allowed: set[int] | None = None, memory: int | None = None) -> Machine:
    """`machine` as this process may use it.

    `allowed` are processing units (default: this process' affinity); a core is allowed when its first unit
    is. `memory` is the kernel's total in bytes: memory plugged in after start-up is missing from what hwloc
    says, and on a machine of one node it can only be there.
    """
    units = os.sched_getaffinity(0) if allowed is None else allowed
    nodes = machine.nodes
    if memory is not None and len(nodes) == 1 and memory > nodes[0].memory:
        nodes = (msgspec.structs.replace(nodes[0], memory=memory),)
    return msgspec.structs.replace(
        machine,
        allowed=tuple(number for number in machine.allowed if number in units),
        nodes=nodes,
        memory=sum(node.memory for node in nodes),
    )


def numbered(noun: str, numbers: Collection[int]) -> str:
    """The noun with these numbers: "node 1", "nodes 0-2"."""
    return f"{noun}{'' if len(numbers) == 1 else 's'} {ranges(numbers) or 'none'}"
