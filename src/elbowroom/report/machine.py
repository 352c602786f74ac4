"""The machine as clickable drawings: packages hold NUMA nodes, nodes hold cores, caches and network cards.

There is one SVG per package: packages stand side by side on a wide screen, below each other on a narrow one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from elbowroom.machine.topology import Cache, Core, Machine, Nic, NumaNode
from elbowroom.quantities import ranges, rounded_size
from elbowroom.report.columns import CoreUse

CORE_WIDTH, CORE_HEIGHT, GAP = 44, 32, 6
PAD, HEAD, BAR = 12, 24, 22
MOST_IN_ROW = 6
READABLE = 430
"""Pixels below which a package's text is too small to read: a narrower screen scrolls instead."""


def roles(uses: Mapping[str, CoreUse]) -> dict[int, tuple[str, ...]]:
    """What each core was used for in any point: `comp`, `comm`, `peer`."""
    roles_of: dict[int, set[str]] = {}
    for use in set(uses.values()):
        for role, cores in (("comp", use.comp_cores), ("comm", use.comm_cores), ("peer", use.peer_cores)):
            for core in cores:
                roles_of.setdefault(core, set()).add(role)
    return {
        core: tuple(role for role in ("comp", "comm", "peer") if role in names)
        for core, names in roles_of.items()
    }


def details(machine: Machine) -> dict[str, Any]:
    """What the page shows when a core, a node or a network card is clicked: (name, text) pairs by name."""
    return {
        "cores": {str(core.number): _core_details(machine, core) for core in machine.cores},
        "nodes": {str(node.number): _node_details(machine, node) for node in machine.nodes},
        "nics": {nic.name: _nic_details(nic) for nic in machine.nics},
    }


def drawings(machine: Machine, uses: Mapping[str, CoreUse]) -> list[str]:
    """One `<svg>` per package, and one for network cards whose node the machine does not tell."""
    used = roles(uses)
    packages = sorted({core.package for core in machine.cores} | {node.package for node in machine.nodes})
    nodes_known = {node.number for node in machine.nodes}
    result = [_package(machine, package, used) for package in packages]
    stray = [nic for nic in machine.nics if nic.node not in nodes_known]
    if stray:
        body = "".join(_nic(nic, PAD, HEAD + PAD + i * (BAR + GAP), 300) for i, nic in enumerate(stray))
        height = HEAD + PAD + len(stray) * (BAR + GAP) + PAD
        result.append(_sheet("Network cards, node unknown", 300 + 2 * PAD, height, body))
    return result


def _core_details(machine: Machine, core: Core) -> list[tuple[str, str]]:
    caches = sorted((c for c in machine.caches if core.number in c.cores), key=lambda cache: cache.level)
    facts = [
        ("core", f"{core.number} (logical {core.logical})"),
        ("package", str(core.package)),
        ("NUMA node", str(core.node)),
        ("processing units", ranges(core.pus)),
    ]
    facts += [(f"L{cache.level} cache", _cache_text(cache)) for cache in caches]
    if core.number not in machine.allowed:
        facts.append(("not allowed", "outside the cpuset of the run"))
    return facts


def _cache_text(cache: Cache) -> str:
    shared = "private" if len(cache.cores) == 1 else f"shared by cores {ranges(cache.cores)}"
    return f"{rounded_size(cache.size)}, {shared}"


def _node_details(machine: Machine, node: NumaNode) -> list[tuple[str, str]]:
    nics = ", ".join(nic.name for nic in machine.nics if nic.node == node.number)
    return [
        ("NUMA node", str(node.number)),
        ("package", str(node.package)),
        ("memory", rounded_size(node.memory) if node.memory else "unknown"),
        ("cores", ranges(node.cores) or "none (memory only)"),
        ("network cards", nics or "none"),
    ]


def _nic_details(nic: Nic) -> list[tuple[str, str]]:
    return [
        ("network card", nic.name),
        ("kind", nic.kind),
        ("NUMA node", "unknown" if nic.node is None else str(nic.node)),
        ("PCI", nic.pci or "unknown"),
        ("link", nic.link or "unknown"),
    ]


def _package(machine: Machine, package: int, used: Mapping[int, tuple[str, ...]]) -> str:
    """Nodes two by two; caches shared by several nodes as bars below them."""
    nodes = [node for node in machine.nodes if node.package == package]
    homes = {core: node.number for node in nodes for core in node.cores}
    blocks = [_node(machine, node, used) for node in nodes]
    columns = 1 if len(blocks) < 2 else 2
    x_of = [max((w for _, w, _ in blocks[c::columns]), default=0) for c in range(columns)]
    body, y = "", float(HEAD + PAD)
    for start in range(0, len(blocks), columns):
        x = float(PAD)
        row = blocks[start : start + columns]
        for column, (drawn, _, _) in enumerate(row):
            body += f'<g transform="translate({x:g} {y:g})">{drawn}</g>'
            x += x_of[column] + PAD
        y += max(height for _, _, height in row) + PAD
    width = sum(x_of) + PAD * (columns + 1)
    width = max(width, 260)
    for cache in machine.caches:
        across = {homes[core] for core in cache.cores if core in homes}
        if len(across) > 1:
            body += _bar("cache", PAD, y, width - 2 * PAD, f"L{cache.level} {rounded_size(cache.size)}")
            y += BAR + PAD
    return _sheet(f"Package {package}", width, y, body)


def _node(machine: Machine, node: NumaNode, used: Mapping[int, tuple[str, ...]]) -> tuple[str, float, float]:
    """A node's drawing at the origin, its width and its height."""
    by_number = {core.number: core for core in machine.cores}
    cores = sorted((by_number[c] for c in node.cores if c in by_number), key=lambda core: core.logical)
    groups = _by_cache(machine, cores, node)
    most = max((len(group) for _, group in groups), default=1)
    in_row = max(1, -(-most // -(-most // MOST_IN_ROW)))
    inner = max(in_row * (CORE_WIDTH + GAP) - GAP, 212)
    y = float(HEAD + 8)
    parts = []
    for cache, group in groups:
        for i, core in enumerate(group):
            parts.append(
                _core(
                    core,
                    PAD + i % in_row * (CORE_WIDTH + GAP),
                    y + i // in_row * (CORE_HEIGHT + GAP),
                    used.get(core.number, ()),
                    core.number in machine.allowed,
                )
            )
        y += -(-len(group) // in_row) * (CORE_HEIGHT + GAP)
        if cache:
            parts.append(_bar("cache", PAD, y, inner, f"L{cache.level} {rounded_size(cache.size)}"))
            y += BAR + GAP
    if not cores:
        parts.append(f'<text class="quiet" x="{PAD}" y="{y + 14:g}">memory only, no cores</text>')
        y += BAR
    for nic in machine.nics:
        if nic.node == node.number:
            parts.append(_nic(nic, PAD, y, inner))
            y += BAR + GAP
    width, height = inner + 2 * PAD, y + PAD - GAP
    memory = f" · {rounded_size(node.memory)}" if node.memory else ""
    head = (
        f'<g class="node" role="button" tabindex="0" data-node="{node.number}" aria-label="NUMA node '
        f'{node.number}{memory}">'
        f'<rect class="node-box" width="{width:g}" height="{height:g}" rx="8"/>'
        f'<text class="node-name" x="{PAD}" y="20">NUMA node {node.number}<tspan '
        f'class="quiet">{memory}</tspan></text></g>'
    )
    return head + "".join(parts), width, height


def _by_cache(
    machine: Machine, cores: Sequence[Core], node: NumaNode
) -> list[tuple[Cache | None, list[Core]]]:
    """Cores grouped by the largest shared cache inside the node; one group if there is none."""
    inside = set(node.cores)
    shared = [c for c in machine.caches if len(c.cores) > 1 and set(c.cores) <= inside]
    level = max((cache.level for cache in shared), default=0)
    groups: list[tuple[Cache | None, list[Core]]] = [
        (cache, [core for core in cores if core.number in cache.cores])
        for cache in shared
        if cache.level == level
    ]
    grouped = {core.number for _, group in groups for core in group}
    rest = [core for core in cores if core.number not in grouped]
    return ([(None, rest)] if rest else []) + [(cache, group) for cache, group in groups if group]


def _core(core: Core, x: float, y: float, used: tuple[str, ...], allowed: bool) -> str:
    classes = " ".join(("core", *used, *(() if allowed else ("outside",))))
    meaning = {"comp": "computing", "comm": "communication", "peer": "communication of a peer rank"}
    says = ", ".join(meaning[role] for role in used) or "not used"
    return (
        f'<g class="{classes}" role="button" tabindex="0" data-core="{core.number}" aria-label="core '
        f'{core.number}, {says}" '
        f'transform="translate({x:g} {y:g})"><rect width="{CORE_WIDTH}" height="{CORE_HEIGHT}" rx="5"/>'
        f'<path class="half" d="M{CORE_WIDTH / 2:g} 0h{CORE_WIDTH / 2 - 5:g}a5 5 0 0 1 5 '
        f'5v{CORE_HEIGHT - 10}a5 5 0 0 1-5 5h-{CORE_WIDTH / 2 - 5:g}z"/>'
        f'<text x="{CORE_WIDTH / 2:g}" y="21">{core.number}</text></g>'
    )


def _bar(kind: str, x: float, y: float, width: float, text: str) -> str:
    return (
        f'<g class="{kind}" transform="translate({x:g} {y:g})"><rect width="{width:g}" height="{BAR}" '
        f'rx="4"/>'
        f'<text x="{width / 2:g}" y="15">{escape(text)}</text></g>'
    )


def _nic(nic: Nic, x: float, y: float, width: float) -> str:
    text = " · ".join(part for part in (nic.name, nic.kind) if part)
    room = int(width / 6.6)
    short = text if len(text) <= room else text[: room - 1] + "…"
    return (
        f'<g class="nic" role="button" tabindex="0" data-nic="{escape(nic.name)}" aria-label="network card '
        f'{escape(text)}" '
        f'transform="translate({x:g} {y:g})"><rect width="{width:g}" height="{BAR}" rx="11"/>'
        f'<text x="{width / 2:g}" y="15">{escape(short)}</text></g>'
    )


def _sheet(name: str, width: float, height: float, body: str) -> str:
    return (
        f'<svg class="package" viewBox="0 0 {width:g} {height:g}" '
        f'style="max-width:{width:g}px;min-width:{min(width, READABLE):g}px" role="group" '
        f'aria-label="{escape(name)}">'
        f'<rect class="package-box" x="1" y="1" width="{width - 2:g}" height="{height - 2:g}" rx="12"/>'
        f'<text class="package-name" x="{PAD + 2}" y="24">{escape(name)}</text>{body}</svg>'
    )
