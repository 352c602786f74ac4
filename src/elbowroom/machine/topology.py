"""The machine as plain data: packages, cores, NUMA nodes, caches, NICs; read from hwloc's XML."""

from __future__ import annotations

import msgspec


class Core(msgspec.Struct, frozen=True, kw_only=True):
    """A physical core, named by the operating system's number of its first processing unit."""

    number: int
    logical: int
    package: int
    node: int
    pus: tuple[int, ...]


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A NUMA node; `number` is the operating system's, `memory` its size in bytes."""

    number: int
    package: int
    memory: int
    cores: tuple[int, ...]


class Cache(msgspec.Struct, frozen=True, kw_only=True):
    """A cache: level, size in bytes and the cores that share it."""

    level: int
    size: int
    cores: tuple[int, ...]


class Nic(msgspec.Struct, frozen=True, kw_only=True):
    """A network interface: its NUMA node (None when the machine does not say) and link as far as known."""

    name: str
    kind: str
    node: int | None
    pci: str | None = None
    link: str | None = None


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """What plans are expanded against and reports draw. `allowed` are the cores of this process' cpuset."""

    name: str
    model: str
    cores: tuple[Core, ...]
    nodes: tuple[Node, ...]
    caches: tuple[Cache, ...]
    nics: tuple[Nic, ...]
    allowed: tuple[int, ...]
    memory: int
    hosts: int = 1
    virtual: bool = False

    @property
    def packages(self) -> int:
        """Number of sockets."""
        return len({core.package for core in self.cores})

    @property
    def last_level_cache(self) -> int:
        """Bytes of the largest cache of the highest level; 0 when hwloc reports none."""
        if not self.caches:
            return 0
        level = max(cache.level for cache in self.caches)
        return max(cache.size for cache in self.caches if cache.level == level)
