"""Whether two descriptions are of the same machine: shapes of models, or machines as hwloc describes them.

Profiles are compared by what the kernel says of the processor and the last-level cache (`read_host`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from elbowroom.errors import UsageError
from elbowroom.machine.topology import NumaNode

SHAPE = ("name", "cores_first_socket", "numa_per_socket", "sockets")
"""What the shape of a machine is compared by; a published machine and its virtual stand-in are the same."""

STRICT_SHAPE = (*SHAPE, "virtual")

HARDWARE = ("name", "model", "cores", "nodes", "hosts", "virtual")
"""What a machine is compared by; memory and what a process may set can change between two runs."""

BOOT_MEMORY = 0.1
"""How far the memory of a node may differ between two starts of one machine: its kernel keeps some of it, now
on this node and now on that one (seen: 6 % of a node of 1 GiB).
"""


class MachineDifference(NamedTuple):
    """The first field in which two machines differ, and its values."""

    field: str
    one: object
    other: object

    def text(self, one: str = "here", other: str = "there") -> str:
        """`name is 'a' here and 'b' there`; large values are not repeated."""
        if not isinstance(self.one, str | int):
            return f"its {self.field} differ"
        return f"{self.field} is {self.one!r} {one} and {self.other!r} {other}"


def difference(
    one: object, other: object, fields: Sequence[str], *, cluster: bool = False
) -> MachineDifference | None:
    """The first of the fields in which two machines differ; None for the same machine.

    With `cluster`, names may differ in their numbers: nodes of a cluster count as one machine. Memory may
    differ as between two starts (BOOT_MEMORY).
    """
    for field in fields:
        values = getattr(one, field), getattr(other, field)
        names = (re.sub(r"\d+", "0", str(value)) for value in values)
        if cluster and field == "name" and next(names) == next(names):
            continue
        if not _equal(field, *values):
            return MachineDifference(field, *values)
    return None


def _equal(field: str, one: Any, other: Any) -> bool:
    """Whether two values of a field are those of one machine."""
    if field == "memory":
        return _equal_memory(one, other)
    if field == "nodes":
        return _without_memory(one) == _without_memory(other) and all(
            map(_equal_memory, _memories(one), _memories(other))
        )
    return bool(one == other)


def _equal_memory(one: int, other: int) -> bool:
    return abs(one - other) <= BOOT_MEMORY * max(one, other)


def _without_memory(nodes: Sequence[NumaNode]) -> list[NumaNode]:
    return [msgspec.structs.replace(node, memory=0) for node in nodes]


def _memories(nodes: Sequence[NumaNode]) -> list[int]:
    return [node.memory for node in nodes]


def check_same(
    difference: MachineDifference | None,
    *,
    field: str,
    value: object,
    hint: str,
    message: str = "is from another machine",
    places: tuple[str, str] = ("here", "there"),
) -> None:
    """UsageError where two machines differ; `places` say where each of the two values is."""
    if difference is not None:
        raise UsageError(f"{message}: {difference.text(*places)}", field=field, value=value, hint=hint)


_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_CPUS = "sys/devices/system/cpu"
_NODES = "sys/devices/system/node"
_LOCAL = 10


class HostIdentity(msgspec.Struct, frozen=True, kw_only=True):
    """A host: model of its processor, cores and sockets; `cache`: bytes of a last-level cache, `ways` its
    associativity, `caches` how many there are. 0 and "": the kernel does not say.
    """

    cpu: str = ""
    cores: int = 0
    sockets: int = 0
    cache: int = 0
    ways: int = 0
    caches: int = 0


def read_host(root: Path = Path("/")) -> HostIdentity:
    """The host below `root`, by /proc and /sys."""
    cores, sockets, caches = set(), set(), {}
    for folder in sorted((root / _CPUS).glob("cpu[0-9]*")):
        socket = _text(folder / "topology/physical_package_id")
        core = _text(folder / "topology/core_id")
        if core:
            cores.add((socket, core))
            sockets.add(socket)
        last = max(folder.glob("cache/index[0-9]*"), key=_level, default=None)
        if last is not None and _level(last) > 1:
            caches[_text(last / "shared_cpu_list")] = last
    one = next(iter(caches.values()), None)
    return HostIdentity(
        cpu=_model(root),
        cores=len(cores),
        sockets=len(sockets),
        cache=0 if one is None else _size(_text(one / "size")),
        ways=0 if one is None else _number(_text(one / "ways_of_associativity")),
        caches=len(caches),
    )


def node_distances(root: Path = Path("/")) -> tuple[int, ...]:
    """The distances between different NUMA nodes that the firmware states (ACPI SLIT: a node is 10 from
    itself), each once and in order; empty where there is one node, or none is stated.
    """
    distances = set()
    for folder in (root / _NODES).glob("node[0-9]*"):
        distances |= {_number(word) for word in _text(folder / "distance").split()}
    return tuple(sorted(distances - {0, _LOCAL}))


def _model(root: Path) -> str:
    for line in _text(root / "proc/cpuinfo").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return ""


def _level(folder: Path) -> int:
    return _number(_text(folder / "level"))


def _size(text: str) -> int:
    """Bytes of `32768K`."""
    return _number(text.rstrip("KMG")) * _UNITS.get(text[-1:], 1)


def _number(text: str) -> int:
    return int(text) if text.isdecimal() else 0


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
