"""The machine that hwloc described as XML. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from elbowroom.machine.hwloc_xml import SET, Element, HwlocDocument, parse_topology
from elbowroom.machine.topology import Cache, Core, Machine, Nic, NumaNode, ObjectKind, numbered

VIRTUAL_INFO = "ElbowroomVirtual"
"""The name of hwloc's `<info>` that marks the topology of a simulated machine."""

_CACHE = re.compile(r"L([1-5])Cache")
_KINDS = {"2": "network", "3": "openfabrics"}  # osdev_type of hwloc 2
_NETWORK_CLASS = "02"  # first byte of a PCI class: network controller
_DRAM = "DRAM"
_PackageOf = Callable[[Element], "int | None"]
_SECOND, _NO_CORES = UNNAMED = ("second memory of the same cores", "memory without cores")
"""Kinds of memory that follow from the place of a node: hwloc does not name them."""


def read_topology(source: Path | str) -> Machine:
    """The machine that hwloc 2 described as XML: a file, or the text itself when it starts with `<`.

    Raises UsageError that names the file, the line and the hint when it cannot be read, is damaged, or was
    written by another generation of hwloc.
    """
    document = parse_topology(source)
    if document.version.split(".")[0] != "2":
        raise document.error(f"written by hwloc {document.version}, and hwloc 2 is read here", document.root)
    return machine_of_document(document)


def machine_of_document(document: HwlocDocument) -> Machine:
    """The machine of a parsed topology in the format of hwloc 2."""
    return _MachineBuilder(document).machine()


class _Node(NamedTuple):
    """A NUMA node as hwloc has it: units and packages at it; `kind` is empty for ordinary memory."""

    number: int
    element: Element
    units: int
    kind: str


class _MachineBuilder:
    """Turns the elements of one file into a Machine; its errors name the file and the line."""

    def __init__(self, document: HwlocDocument) -> None:
        self.document = document
        top = next((child for child in document.root.children if child.type == "Machine"), None)
        if top is None:
            raise document.error("it describes no machine", document.root)
        self.top = top
        self.objects = list(top.walk())
        self.assumed: list[str] = []
        self.packages = self._numbers("Package", "sockets")
        self.node_numbers = self._numbers("NUMANode", "NUMA nodes")

    def machine(self) -> Machine:
        nodes = self._nodes()
        cores = self._cores(nodes)
        of_node = _packages_of_nodes(nodes, cores, self._package)
        top = self.top
        allowed = self._mask(top, "allowed_cpuset") if "allowed_cpuset" in top.attributes else -1
        memories = tuple(
            NumaNode(
                number=node.number,
                package=of_node[node.number],
                memory=self._integer(node.element, "local_memory", 0),
                cores=tuple(core.number for core in cores if node.units >> core.number & 1),
            )
            for node in nodes
        )
        self._note_shared_nodes(memories, cores)
        name = self.document.name
        return Machine(
            name=top.info("HostName") or (Path(name).stem if name != "(text)" else "machine"),
            model=self._model(),
            cores=cores,
            nodes=memories,
            caches=self._caches(cores),
            nics=self._nics(nodes, cores),
            allowed=tuple(sorted(core.number for core in cores if allowed >> core.number & 1)),
            memory=sum(node.memory for node in memories),
            virtual=top.info(VIRTUAL_INFO) == "true",
            core_kinds=self._core_kinds(cores),
            memory_kinds=tuple(
                ObjectKind(name=name, numbers=tuple(node.number for node in nodes if node.kind == name))
                for name in dict.fromkeys(node.kind for node in nodes if node.kind)
            ),
            assumed=tuple(self.assumed),
        )

    def _integer(self, element: Element, name: str, missing: int) -> int:
        text = element.attributes.get(name)
        if text is None:
            return missing
        if not re.fullmatch(r"[0-9]{1,20}", text):
            raise self.document.error(f"{element.type} has {name} {text!r}, not a number", element)
        return int(text)

    def _mask(self, element: Element, name: str) -> int:
        """hwloc's bitmap as the bits of a number, negative where it is infinite: 32-bit words, highest first,
        empty ones zero.
        """
        text = element.attributes.get(name, "0x0")
        if not text or not SET.fullmatch(text):
            raise self.document.error(f"{element.type} has {name} {text!r}, not a set of bits", element)
        bits = 0
        for word in text.split(","):
            bits = -1 if word == "0xf...f" else bits << 32 | int(word or "0", 16)
        return bits

    def _bits(self, element: Element, name: str) -> tuple[int, ...]:
        mask = self._mask(element, name)
        if mask < 0:
            text = element.attributes[name]
            message = f"{element.type} has {name} {text!r}, not a finite set of bits"
            raise self.document.error(message, element)
        return tuple(index for index in range(mask.bit_length()) if mask >> index & 1)

    def _numbers(self, kind: str, noun: str) -> dict[int, int]:
        """The numbers of all objects of a type, by identity; counted from 0 if any is missing or not unique.

        POWER, s390x and virtual machines leave sockets without numbers.
        """
        elements = [one for one in self.objects if one.type == kind]
        numbers = [self._integer(one, "os_index", -1) for one in elements]
        if -1 in numbers or len(set(numbers)) < len(numbers):
            if kind == "NUMANode" and -1 not in numbers:
                twice = next(number for number, count in Counter(numbers).items() if count > 1)
                raise self.document.error(f"NUMA node {twice} appears twice", elements[-1])
            self.assumed.append(f"the {noun} have no numbers of their own and are counted from 0")
            numbers = list(range(len(numbers)))
        return {id(one): number for one, number in zip(elements, numbers, strict=True)}

    def _package(self, element: Element) -> int | None:
        """The socket around an object; None outside of all."""
        around = element.inside("Package")
        return None if around is None else self.packages[id(around)]

    def _nodes(self) -> tuple[_Node, ...]:
        nodes: list[_Node] = []
        elements = (one for one in self.objects if one.type == "NUMANode")
        for element in sorted(elements, key=lambda one: self.node_numbers[id(one)]):
            units = self._mask(element, "cpuset")
            kind = _memory_kind(element)
            if not kind and not units:
                kind = _NO_CORES
            elif not kind and any(node.units == units and not node.kind for node in nodes):
                # Firmware numbers ordinary memory first.
                kind = _SECOND
            nodes.append(_Node(self.node_numbers[id(element)], element, units, kind))
        if not nodes:
            raise self.document.error("the machine has no NUMA nodes", self.top)
        if all(node.kind for node in nodes):
            # Nothing to be set apart from: KNL in flat mode without DRAM, processors with HBM only.
            nodes = [node._replace(kind=node.kind if _named(node) else "") for node in nodes]
        return tuple(nodes)

    def _cores(self, nodes: Sequence[_Node]) -> tuple[Core, ...]:
        """Cores in logical order; processing units where hwloc sees no cores (some virtual machines)."""
        elements = [
            one for one in self.objects
            if one.type == "Core" or (one.type == "PU" and one.inside("Core") is None)
        ]  # fmt: skip
        placed = []
        for element in elements:
            pus = self._bits(element, "cpuset")
            if pus:
                placed.append((element, pus, self._node_of(element, pus, nodes)))
        if not placed:
            raise self.document.error("the machine has no cores", self.top)
        units = Counter(pu for _, pus, _ in placed for pu in pus)
        twice = next((pu for pu, count in units.items() if count > 1), None)
        if twice is not None:
            raise self.document.error(f"processing unit {twice} is in two cores", self.top)
        packages = [self._package(element) for element, _, _ in placed]
        nearest = _nearest([node for _, _, node in placed], packages, nodes, self._package)
        self._note_adopted(placed, nearest)
        outside = min((number for number in packages if number is not None), default=0)
        return tuple(
            Core(
                number=pus[0],
                logical=logical,
                package=outside if package is None else package,
                node=nearest[logical],
                pus=pus,
            )
            for logical, ((_, pus, _), package) in enumerate(zip(placed, packages, strict=True))
        )

    def _node_of(self, element: Element, pus: Sequence[int], nodes: Sequence[_Node]) -> int | None:
        """The node of a core: of several (DRAM and HBM) the lowest of ordinary memory; None without any."""
        nodeset = self._mask(element, "nodeset") if "nodeset" in element.attributes else 0
        near = [node for node in nodes if nodeset >> node.number & 1 or node.units >> pus[0] & 1]
        return min(near, key=lambda node: (node.kind != "", node.number)).number if near else None

    def _note_adopted(
        self, placed: Sequence[tuple[Element, tuple[int, ...], int | None]], nearest: Sequence[int]
    ) -> None:
        adopted: dict[int, list[int]] = {}
        for (_, pus, node), near in zip(placed, nearest, strict=True):
            if node is None:
                adopted.setdefault(near, []).append(pus[0])
        for node, numbers in sorted(adopted.items()):
            have = "has" if len(numbers) == 1 else "have"
            cores = numbered("core", numbers)
            self.assumed.append(f"{cores} {have} no NUMA node; node {node}, the nearest, is taken")

    def _note_shared_nodes(self, nodes: Sequence[NumaNode], cores: Sequence[Core]) -> None:
        package = {core.number: core.package for core in cores}
        for node in nodes:
            across = {package[core] for core in node.cores}
            if len(across) > 1:
                self.assumed.append(
                    f"{numbered('socket', across)} share NUMA node {node.number}: models count them as one"
                )

    def _caches(self, cores: Sequence[Core]) -> tuple[Cache, ...]:
        caches = []
        for element in self.objects:
            level = _CACHE.fullmatch(element.type)
            if level:
                mask = self._mask(element, "cpuset")
                shared = tuple(core.number for core in cores if mask >> core.number & 1)
                if shared:
                    size = self._integer(element, "cache_size", 0)
                    caches.append(Cache(level=int(level.group(1)), size=size, cores=shared))
        return tuple(sorted(caches, key=lambda cache: cache.level))

    def _core_kinds(self, cores: Sequence[Core]) -> tuple[ObjectKind, ...]:
        """hwloc's kinds of cores, where there are several; in the order of their efficiency."""
        kinds = []
        for at, element in enumerate(one for one in self.document.root.children if one.tag == "cpukind"):
            mask = self._mask(element, "cpuset")
            inside = tuple(core.number for core in cores if mask >> core.number & 1)
            name = element.info("CoreType") or f"kind {at}"
            top = element.info("FrequencyMaxMHz")
            if inside:
                kinds.append(ObjectKind(name=f"{name} up to {top} MHz" if top else name, numbers=inside))
        return tuple(kinds) if len(kinds) > 1 else ()

    def _model(self) -> str:
        for name in ("CPUModel", "DMIProductName"):
            for element in (*self.objects, self.document.root):
                value = element.info(name)
                if value:
                    return value
        return "unknown processor"

    def _nics(self, nodes: Sequence[_Node], cores: Sequence[Core]) -> tuple[Nic, ...]:
        """Network and OpenFabrics devices, and network cards on PCI that no driver serves."""
        nics = []
        for element in self.objects:
            if element.type == "OSDev" and element.attributes.get("osdev_type") in _KINDS:
                name, kind = element.attributes.get("name", "?"), _KINDS[element.attributes["osdev_type"]]
            elif _is_unserved_card(element):
                name, kind = element.attributes.get("pci_busid", "?"), "network"
            else:
                continue
            nics.append(_nic(element, name, kind, self._nic_node(element, nodes, cores)))
        return tuple(nics)

    def _nic_node(self, element: Element, nodes: Sequence[_Node], cores: Sequence[Core]) -> int | None:
        """The node of a device; None below an object with several: which is nearest is not known."""
        around = next((one for one in element.ancestors() if "nodeset" in one.attributes), None)
        if around is None:
            return None
        nodeset, units = self._mask(around, "nodeset"), self._mask(around, "cpuset")
        near = {node.number for node in nodes if nodeset >> node.number & 1}
        ordinary = near - {node.number for node in nodes if node.kind}
        candidates = ordinary or near or {core.node for core in cores if units >> core.number & 1}
        return candidates.pop() if len(candidates) == 1 else None


def _memory_kind(element: Element) -> str:
    """What hwloc reports of a node's memory (subtype since 2.10; devices before); empty for DRAM."""
    subtype = element.attributes.get("subtype", "")
    if subtype:
        return "" if subtype == _DRAM else subtype
    if element.info("CXLDevice") is not None:
        return "CXL-DRAM"
    return element.info("DAXType") or ("DAX memory" if element.info("DAXDevice") is not None else "")


def _named(node: _Node) -> bool:
    return node.kind not in UNNAMED


def _nearest(
    own: Sequence[int | None],
    packages: Sequence[int | None],
    nodes: Sequence[_Node],
    package_of: _PackageOf,
) -> tuple[int, ...]:
    """The node of each core in logical order; for those without: a node of the same socket, else that of the
    nearest core in logical order, else the first one.
    """
    in_socket: dict[int | None, int] = {}
    for node in sorted(nodes, key=lambda node: (node.kind != "", node.number)):
        if node.units:
            in_socket.setdefault(package_of(node.element), node.number)
    in_socket.pop(None, None)
    with_node = [place for place, node in enumerate(own) if node is not None]

    def nearest(place: int) -> int:
        if packages[place] in in_socket:
            return in_socket[packages[place]]
        if with_node:
            neighbour = own[min(with_node, key=lambda other: abs(other - place))]
            assert neighbour is not None
            return neighbour
        return min(nodes, key=lambda node: (node.kind != "", node.number)).number

    return tuple(nearest(place) if node is None else node for place, node in enumerate(own))


def _packages_of_nodes(
    nodes: Sequence[_Node], cores: Sequence[Core], package_of: _PackageOf
) -> dict[int, int]:
    """The socket of each node: the one around it, else that of its first core, else the first socket.

    A socket without cores keeps memory only where no other socket's cores take it for theirs.
    """
    of_cores = {core.package for core in cores}
    users: Mapping[int, int] = {core.node: core.package for core in reversed(cores)}
    packages = {}
    for node in nodes:
        around = package_of(node.element)
        near = next((core.package for core in cores if node.units >> core.number & 1), None)
        if around is None or (around not in of_cores and node.number in users):
            around = users.get(node.number) if near is None else near
        packages[node.number] = cores[0].package if around is None else around
    return packages


def _is_unserved_card(element: Element) -> bool:
    network = element.attributes.get("pci_type", "").startswith(_NETWORK_CLASS)
    return (
        element.type == "PCIDev" and network and not any(child.type == "OSDev" for child in element.children)
    )


def _nic(element: Element, name: str, kind: str, node: int | None) -> Nic:
    device = next((one for one in (element, *element.ancestors()) if one.type == "PCIDev"), None)
    speed = device.attributes.get("pci_link_speed", "") if device is not None else ""
    known = re.fullmatch(r"\d+(\.\d+)?", speed) is not None and float(speed) > 0
    return Nic(
        name=name,
        kind=kind,
        node=node,
        pci=device.attributes.get("pci_busid") if device is not None else None,
        link=f"{float(speed):.1f} GB/s" if known else None,
    )
