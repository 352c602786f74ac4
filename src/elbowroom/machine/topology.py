"""The machine as plain data: packages, cores, NUMA nodes, caches, NICs; read from hwloc's XML."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from xml.parsers import expat

import msgspec

from elbowroom.errors import UsageError
from elbowroom.files import read_document


class Core(msgspec.Struct, frozen=True, kw_only=True):
    """A physical core, named by the operating system's number of its first processing unit."""

    number: int
    logical: int
    package: int
    node: int
    pus: tuple[int, ...]


class NumaNode(msgspec.Struct, frozen=True, kw_only=True):
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
    """What plans are expanded against and reports draw. `allowed` are the cores of this process' cpuset.

    `permitted`: what this process may set here, of `core_frequency`, `uncore_frequency`, `turbo` and
    `governor`; `frequency_ranges`: the extremes of frequencies (kHz, without turbo); `governors`: those of
    every core; `refused`: why it may not set the others.
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


def read_topology(source: Path | str) -> Machine:
    """The machine that hwloc 2 described as XML: a file, or the text itself when it starts with `<`.

    Raises UsageError that names the file, the line and the hint when it cannot be read, is damaged, or was
    written by another generation of hwloc.
    """
    name, text = _text_of(source)
    return _TopologyReader(name).machine(_parse(name, text))


VIRTUAL_INFO = "ElbowroomVirtual"
"""The name of hwloc's `<info>` that marks the topology of a simulated machine."""

_HINT = "write it again: lstopo --of xml FILE.xml"
_CACHE = re.compile(r"L([1-5])Cache")
_KINDS = {"2": "network", "3": "openfabrics"}  # osdev_type of hwloc 2
_NETWORK_CLASS = "02"  # first byte of a PCI class: network controller


class _Element:
    """An XML element that knows its line and its parent."""

    def __init__(self, tag: str, attributes: dict[str, str], line: int, parent: _Element | None) -> None:
        self.tag = tag
        self.attributes = attributes
        self.line = line
        self.parent = parent
        self.children: list[_Element] = []

    @property
    def type(self) -> str:
        return self.attributes.get("type", "")

    def info(self, name: str) -> str | None:
        """The value of hwloc's `<info>` of that name."""
        for child in self.children:
            if child.tag == "info" and child.attributes.get("name") == name:
                return child.attributes.get("value")
        return None

    def walk(self) -> Iterator[_Element]:
        """This object and all below it, in hwloc's logical order."""
        yield self
        for child in self.children:
            if child.tag == "object":
                yield from child.walk()

    def ancestors(self) -> Iterator[_Element]:
        """From the parent up."""
        above = self.parent
        while above is not None:
            yield above
            above = above.parent


def _is_unserved_card(element: _Element) -> bool:
    network = element.attributes.get("pci_type", "").startswith(_NETWORK_CLASS)
    return (
        element.type == "PCIDev" and network and not any(child.type == "OSDev" for child in element.children)
    )


def _text_of(source: Path | str) -> tuple[str, bytes]:
    if isinstance(source, str) and source.lstrip().startswith("<"):
        return "(text)", source.encode()
    return str(source), read_document(Path(source), field="topology", hint=_HINT)


def _parse(name: str, text: bytes) -> _Element:
    parser = expat.ParserCreate()
    root: list[_Element] = []
    open_elements: list[_Element] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        parent = open_elements[-1] if open_elements else None
        element = _Element(tag, attributes, parser.CurrentLineNumber, parent)
        (parent.children if parent else root).append(element)
        open_elements.append(element)

    def end(_tag: str) -> None:
        open_elements.pop()

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise UsageError(
            f"line {error.lineno}: not XML ({expat.ErrorString(error.code)})",
            field="topology",
            value=name,
            hint=_HINT,
        ) from error
    return root[0]


class _TopologyReader:
    """Turns the elements of one file into a Machine; its errors name the file and the line."""

    def __init__(self, name: str) -> None:
        self.name = name

    def machine(self, root: _Element) -> Machine:
        self._check_generation(root)
        top = next((child for child in root.children if child.type == "Machine"), None)
        if top is None:
            raise self._error(root, "there is no machine in it")
        objects = list(top.walk())
        cores = self._cores(objects)
        if not cores:
            raise self._error(top, "the machine has no cores")
        nodes = self._nodes(objects, cores)
        if not nodes:
            raise self._error(top, "the machine has no NUMA nodes")
        allowed = self._set(top, "allowed_cpuset") if "allowed_cpuset" in top.attributes else None
        return Machine(
            name=top.info("HostName") or (Path(self.name).stem if self.name != "(text)" else "machine"),
            model=self._model(objects),
            cores=cores,
            nodes=nodes,
            caches=self._caches(objects, cores),
            nics=self._nics(objects),
            allowed=tuple(sorted(c.number for c in cores if allowed is None or c.number in allowed)),
            memory=sum(node.memory for node in nodes),
            virtual=top.info(VIRTUAL_INFO) == "true",
        )

    def _error(self, element: _Element, message: str) -> UsageError:
        return UsageError(f"line {element.line}: {message}", field="topology", value=self.name, hint=_HINT)

    def _check_generation(self, root: _Element) -> None:
        if root.tag != "topology":
            raise self._error(root, f"this is <{root.tag}>, not hwloc's <topology>")
        version = root.attributes.get("version", "1")
        if version.split(".")[0] != "2":
            raise UsageError(
                f"line {root.line}: written by hwloc {version}, and hwloc 2 is read here",
                field="topology",
                value=self.name,
                hint="write it with hwloc 2: lstopo --of xml FILE.xml (-i OLD.xml converts an old file)",
            )

    def _integer(self, element: _Element, name: str) -> int:
        text = element.attributes.get(name)
        if text is None or not re.fullmatch(r"\d+", text):
            raise self._error(element, f"{element.type} has {name} {text!r}, not a number")
        return int(text)

    def _set(self, element: _Element, name: str) -> frozenset[int]:
        """Bits of hwloc's bitmap: 32-bit words, highest first, empty ones zero."""
        text = element.attributes.get(name, "")
        if not re.fullmatch(r"(0x[0-9a-fA-F]{1,8})?(,(0x[0-9a-fA-F]{1,8})?)*", text) or not text:
            raise self._error(element, f"{element.type} has {name} {text!r}, not a finite set of bits")
        bits = 0
        for word in text.split(","):
            bits = bits << 32 | int(word or "0", 16)
        return frozenset(index for index in range(bits.bit_length()) if bits >> index & 1)

    def _cores(self, objects: list[_Element]) -> tuple[Core, ...]:
        """Cores in logical order; where hwloc sees none (some virtual machines), processing units instead."""
        elements = [one for one in objects if one.type == "Core"] or [
            one for one in objects if one.type == "PU"
        ]
        cores = []
        for logical, element in enumerate(elements):
            pus = tuple(sorted(self._set(element, "cpuset")))
            nodes = self._set(element, "nodeset")
            if not pus or not nodes:
                raise self._error(element, f"{element.type} has no processing unit or no NUMA node")
            # A core near several nodes (DRAM and HBM) belongs to the lowest: firmware numbers DRAM first.
            cores.append(
                Core(number=pus[0], logical=logical, package=self._package(element), node=min(nodes), pus=pus)
            )
        return tuple(cores)

    def _package(self, element: _Element) -> int:
        for above in element.ancestors():
            if above.type == "Package":
                return self._integer(above, "os_index")
        return 0

    def _nodes(self, objects: list[_Element], cores: tuple[Core, ...]) -> tuple[NumaNode, ...]:
        nodes = []
        for element in objects:
            if element.type == "NUMANode":
                near = self._near(element, cores)
                inside = any(above.type == "Package" for above in element.ancestors())
                of_core = next((core.package for core in cores if core.number in near), 0)
                sized = "local_memory" in element.attributes
                nodes.append(
                    NumaNode(
                        number=self._integer(element, "os_index"),
                        package=self._package(element) if inside else of_core,
                        memory=self._integer(element, "local_memory") if sized else 0,
                        cores=near,
                    )
                )
        return tuple(sorted(nodes, key=lambda node: node.number))

    def _near(self, element: _Element, cores: tuple[Core, ...]) -> tuple[int, ...]:
        units = self._set(element, "cpuset")
        return tuple(core.number for core in cores if core.number in units)

    def _caches(self, objects: list[_Element], cores: tuple[Core, ...]) -> tuple[Cache, ...]:
        caches = []
        for element in objects:
            level = _CACHE.fullmatch(element.type)
            if level:
                size = self._integer(element, "cache_size")
                caches.append(Cache(level=int(level.group(1)), size=size, cores=self._near(element, cores)))
        return tuple(sorted(caches, key=lambda cache: cache.level))

    def _model(self, objects: list[_Element]) -> str:
        for name in ("CPUModel", "DMIProductName"):
            for element in objects:
                value = element.info(name)
                if value:
                    return value
        return "unknown processor"

    def _nics(self, objects: list[_Element]) -> tuple[Nic, ...]:
        """Network and OpenFabrics devices, and network cards on PCI that no driver serves."""
        nics = []
        for element in objects:
            if element.type == "OSDev" and element.attributes.get("osdev_type") in _KINDS:
                kind = _KINDS[element.attributes["osdev_type"]]
                nics.append(self._nic(element, element.attributes.get("name", "?"), kind))
            elif _is_unserved_card(element):
                nics.append(self._nic(element, element.attributes.get("pci_busid", "?"), "network"))
        return tuple(nics)

    def _nic(self, element: _Element, name: str, kind: str) -> Nic:
        device = next((one for one in (element, *element.ancestors()) if one.type == "PCIDev"), None)
        around = next((one for one in element.ancestors() if "nodeset" in one.attributes), None)
        nodes = self._set(around, "nodeset") if around is not None else frozenset()
        speed = device.attributes.get("pci_link_speed", "") if device is not None else ""
        known = re.fullmatch(r"\d+(\.\d+)?", speed) is not None and float(speed) > 0
        return Nic(
            name=name,
            kind=kind,
            # Below an object with several nodes, the machine does not say which is nearest.
            node=next(iter(nodes)) if len(nodes) == 1 else None,
            pci=device.attributes.get("pci_busid") if device is not None else None,
            link=f"{float(speed):.1f} GB/s" if known else None,
        )
