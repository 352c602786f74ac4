"""What the kernel says of this host's processor and last-level cache: what profiles are compared by."""

from __future__ import annotations

from pathlib import Path

import msgspec

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
    found = set()
    for folder in (root / _NODES).glob("node[0-9]*"):
        found |= {_number(word) for word in _text(folder / "distance").split()}
    return tuple(sorted(found - {0, _LOCAL}))


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
