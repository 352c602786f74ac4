"""Made topologies of every shape that hwloc knows, as XML of versions 1, 2 and 3."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import NamedTuple

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n<!DOCTYPE topology SYSTEM "hwloc2.dtd">\n'
GIB = 1 << 30


class Made(NamedTuple):
    """A topology, and what a reader must find in it."""

    text: str
    cores: int
    nodes: int
    what: str


class _Core(NamedTuple):
    pus: tuple[int, ...]
    socket: int


class _Node(NamedTuple):
    """Units near it; `socket` None: beside the sockets."""

    number: int
    units: frozenset[int]
    socket: int | None
    subtype: str = ""


def bitmap(numbers: Iterable[int]) -> str:
    """hwloc's set of bits."""
    bits = sum(1 << number for number in set(numbers))
    words = []
    while bits or not words:
        words.append(f"0x{bits & 0xFFFFFFFF:08x}")
        bits >>= 32
    return ",".join(reversed(words))


def topology(seed: int) -> Made:
    """The made topology of that number: every fourth is of version 3, the others of version 2."""
    return _Maker(Random(seed), 3 if seed % 4 == 3 else 2).made()


def topology_of_version_1(seed: int) -> Made:
    """A made topology as hwloc 1 wrote it: nodes around or inside sockets, or none."""
    random = Random(seed)
    sockets, each = random.randint(1, 4), random.randint(1, 4)
    numa = random.choice(("none", "outside", "inside"))
    per_socket = random.choice((1, 2)) if numa == "inside" and each % 2 == 0 else 1
    lines, core, node = [], 0, 0
    for socket in range(sockets):
        units = range(socket * each, (socket + 1) * each)
        inner = []
        for place in range(per_socket):
            part = units[each * place // per_socket : each * (place + 1) // per_socket]
            number = node if numa != "none" else 0
            leaves = []
            for unit in part:
                sets = _sets_1([unit], [number] if numa != "none" else [])
                leaves += [
                    f'<object type="Core" os_index="{core}" {sets}>',
                    f'<object type="PU" os_index="{unit}" {sets}/></object>',
                ]
                core += 1
            if numa == "inside":
                head = f'<object type="NUMANode" os_index="{number}" {_sets_1(part, [number])}'
                leaves = [f'{head} local_memory="{GIB}">', *leaves, "</object>"]
                node += 1
            inner += leaves
        nodes = {
            "none": [],
            "outside": [socket],
            "inside": range(socket * per_socket, (socket + 1) * per_socket),
        }
        sets = _sets_1(units, nodes[numa])
        around = [f'<object type="Socket" os_index="{socket}" {sets}>', *inner, "</object>"]
        if numa == "outside":
            head = f'<object type="NUMANode" os_index="{socket}" {sets} local_memory="{GIB}">'
            around = [head, *around, "</object>"]
            node += 1
        lines += around
    total = range(sockets * each)
    allowed = f'allowed_cpuset="{bitmap(total)}"'
    machine = f'<object type="Machine" os_index="0" {_sets_1(total, range(node))} {allowed}>'
    head = HEAD.replace("hwloc2.dtd", "hwloc.dtd")
    text = "\n".join([f"{head}<topology>", machine, *lines, "</object>", "</topology>", ""])
    return Made(text, core, max(node, 1), f"{sockets} sockets of {each} cores, nodes {numa}")


def _sets_1(units: Iterable[int], nodes: Iterable[int]) -> str:
    units, nodes = list(units), list(nodes)
    sets = f'cpuset="{bitmap(units)}" complete_cpuset="{bitmap(units)}" online_cpuset="{bitmap(units)}"'
    return sets + (f' nodeset="{bitmap(nodes)}" complete_nodeset="{bitmap(nodes)}"' if nodes else "")


class _Maker:
    """Draws a machine: sockets x nodes x cores x memory or none x offline x numbers x tiers x kinds."""

    def __init__(self, random: Random, version: int) -> None:
        self.random, self.version = random, version
        self.identifier = 1
        self.shared = random.random() < 0.15
        self.numbered = random.random() < 0.75
        self.cores: list[_Core] = []
        self.nodes: list[_Node] = []
        self.offline: set[int] = set()
        self._draw_cores()
        self._draw_nodes()

    def _draw_cores(self) -> None:
        random = self.random
        sockets, most = random.choice((1, 1, 2, 2, 3, 4, 8)), random.randint(1, 5)
        threads, alike = random.choice((1, 1, 2, 4)), random.random() < 0.7
        counts = [most if alike else random.randint(1, most) for _ in range(sockets)]
        total, first = sum(counts), 0
        for socket, count in enumerate(counts):
            for _ in range(count):
                # Other threads of a core follow those of the whole machine.
                self.cores.append(_Core(tuple(first + total * thread for thread in range(threads)), socket))
                first += 1
        self.sockets = sockets
        self.numbers = list(range(sockets))[:: random.choice((1, 1, 1, -1))]
        self.unused = total * threads
        if random.random() < 0.3 and len(self.cores) > 2:
            self.offline = set(random.sample(range(total), random.randint(1, total // 3 or 1)))
            self.cores = [core for core in self.cores if core.pus[0] not in self.offline]

    def _units(self, socket: int | None = None) -> list[int]:
        return [pu for core in self.cores if socket in (None, core.socket) for pu in core.pus]

    def _draw_nodes(self) -> None:
        random = self.random
        if self.shared:
            self._node(self._units(), None)
        else:
            per_socket, bare = random.choice((1, 1, 1, 2, 3, 4)), random.random() < 0.25
            if self.sockets > 3:
                per_socket = min(per_socket, 2)  # plans grow with the square of the nodes
            for socket in range(self.sockets):
                cores = [core for core in self.cores if core.socket == socket]
                if not cores or (bare and random.random() < 0.5):
                    continue
                parts = min(per_socket, len(cores))
                for place in range(parts):
                    near = cores[len(cores) * place // parts : len(cores) * (place + 1) // parts]
                    self._node([pu for core in near for pu in core.pus], socket)
            if not self.nodes:
                self._node(self._units(self.cores[0].socket), self.cores[0].socket)
        if random.random() < 0.3:
            for near in list(self.nodes):
                self._node(near.units, near.socket, random.choice(("HBM", "NVM", "")))
        for subtype in ("CXL-DRAM", "GPUMemory"):
            if random.random() < 0.2:
                self._node(random.choice(((), self._units())), None, subtype)

    def _node(self, units: Iterable[int], socket: int | None, subtype: str = "") -> None:
        gap = self.random.random() < 0.1
        number = self.nodes[-1].number + 1 + gap * self.random.randint(1, 9) if self.nodes else 0
        self.nodes.append(_Node(number, frozenset(units), socket, subtype))

    def _sets(self, units: Iterable[int], extra: Iterable[int] = ()) -> str:
        units = set(units)
        near = {node.number for node in self.nodes if units & node.units} | set(extra)
        complete = units | (self.offline if len(units) == len(self._units()) else set())
        self.identifier += 1
        sets = f'cpuset="{bitmap(units)}" complete_cpuset="{bitmap(complete)}" '
        sets += f'nodeset="{bitmap(near)}" complete_nodeset="{bitmap(near)}" gp_index="{self.identifier}"'
        return sets + (f' id="obj{self.identifier}"' if self.version == 3 else "")

    def _numa(self, node: _Node) -> str:
        memory = self.random.choice((0, 8 * GIB, 96 * GIB))
        more = f' local_memory="{memory}"' if memory else ""
        more += f' subtype="{node.subtype}"' if node.subtype else ""
        sets = self._sets(node.units, [node.number])
        own = bitmap([node.number])
        for name in ("nodeset", "complete_nodeset"):
            sets = _replaced(sets, name, own)
        return f'<object type="NUMANode" os_index="{node.number}" {sets}{more}/>'

    def _package(self, socket: int) -> list[str]:
        cores = [core for core in self.cores if core.socket == socket]
        units = [pu for core in cores for pu in core.pus]
        inside = [node for node in self.nodes if node.socket == socket]
        number = f'os_index="{self.numbers[socket]}" ' if self.numbered else ""
        lines = [f'<object type="Package" {number}{self._sets(units)}>']
        for near in dict.fromkeys(node.units for node in inside) or [frozenset(units)]:
            here = [node for node in inside if node.units == near]
            group = near != frozenset(units)
            if group:
                lines.append(f'<object type="Group" {self._sets(near)} kind="10" subkind="0">')
            lines += [self._numa(node) for node in here]
            cache = self.random.random() < 0.5
            if cache:
                size = 'cache_size="16777216" depth="3" cache_linesize="64" cache_associativity="16" '
                lines.append(f'<object type="L3Cache" {self._sets(near)} {size}cache_type="0">')
            lines += [line for core in cores if core.pus[0] in near for line in self._core(core)]
            lines += ["</object>"] * (cache + group)
        return [*lines, "</object>"]

    def _core(self, core: _Core) -> list[str]:
        units = [f'<object type="PU" os_index="{pu}" {self._sets([pu])}/>' for pu in core.pus]
        return [f'<object type="Core" os_index="{core.pus[0]}" {self._sets(core.pus)}>', *units, "</object>"]

    def _device(self) -> list[str]:
        if self.random.random() < 0.5:
            return []
        kind = "48" if self.version == 3 else "3"
        self.identifier += 2
        bridge, card = f'gp_index="{self.identifier - 1}"', f'gp_index="{self.identifier}"'
        pci = 'pci_busid="0000:5e:00.0" pci_type="0207 [15b3:1017] [15b3:0006] 00" pci_link_speed="15.75"'
        self.identifier += 1
        return [
            f'<object type="Bridge" {bridge} bridge_type="0-1" depth="0" bridge_pci="0000:[00-ff]">',
            f'<object type="PCIDev" {card} {pci}>',
            f'<object type="OSDev" gp_index="{self.identifier}" name="mlx5_0" osdev_type="{kind}"/>',
            "</object></object>",
        ]

    def _kinds(self) -> list[str]:
        if self.random.random() < 0.75 or len(self.cores) < 2:
            return []
        half = len(self.cores) // 2
        parts = (("IntelAtom", self.cores[half:]), ("IntelCore", self.cores[:half]))
        return [
            f'<cpukind cpuset="{bitmap(pu for core in cores for pu in core.pus)}">'
            f'<info name="CoreType" value="{name}"/></cpukind>'
            for name, cores in parts
        ]

    def made(self) -> Made:
        """The XML, and counts."""
        every = self._units()
        allowed = every if self.random.random() < 0.7 else every[: len(every) // 2 or 1]
        numbers = bitmap(node.number for node in self.nodes)
        sets = self._sets(every, (node.number for node in self.nodes))
        limits = f'allowed_cpuset="{bitmap(allowed)}" allowed_nodeset="{numbers}"'
        lines = [f'<object type="Machine" os_index="0" {sets} {limits}>']
        lines += [self._numa(node) for node in self.nodes if node.socket is None]
        order = sorted({core.socket for core in self.cores})
        for socket in order:
            lines += self._package(socket)
        lines += [*self._device(), "</object>", *self._kinds()]
        if self.version == 3:
            lines.append('<info name="Backend" value="Linux"/>')
        head = f'{HEAD}<topology version="{self.version}.0">'
        text = "\n".join([head, *lines, "</topology>", ""])
        what = (
            f"{len(order)} sockets, {len(self.nodes)} nodes, {len(self.cores)} cores, version {self.version}"
        )
        return Made(text, len(self.cores), len(self.nodes), what)


def _replaced(sets: str, name: str, value: str) -> str:
    before, _, rest = sets.partition(f' {name}="')
    return f'{before} {name}="{value}"{rest[rest.index(chr(34)) + 1 :]}'
