"""False alarms of `accept` on healthy virtual sites, and how many planted faults it finds and explains.

    python benchmarks/accept.py [--sites 1000] [--faults 200] [--nodes 10 100 1000 10000] [--table FILE]

- *healthy*: sites without a fault, every second one with two kinds of nodes. At most 1 % of them have a
  suspect or a class that is flagged. *Recognised*: how many of those with two kinds say which nodes are the
  second one.
- *found*: one fault of each kind, at the drawn size and at 5 %, on a drawn node of a site, of which every
  second one has two kinds of nodes. At least 95 %.
- *cause*: of those found, how often the named cause is the planted one. At least 90 %. Without the facts of
  the nodes (BIOS, governor, link) losses alone must show it: printed, without a goal.
- *judgement*: CPU time and memory of the whole examination of a site of the last number of nodes. At most 10
  s
  and 1 GB.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np
from command import Command, status

from elbowroom.accept.acceptance import examine
from elbowroom.accept.judgement import Suspicion
from elbowroom.accept.readings import SiteReadings, fold
from elbowroom.accept.virtual_site import PLANTS, PlantedFault, VirtualSite

FALSE_MOST, FOUND_LEAST, CAUSE_LEAST = 0.01, 0.95, 0.9
SECONDS_MOST, BYTES_MOST = 10.0, 1e9
SMALL = 0.05
KINDS = tuple(kind for kind in PLANTS if kind != "site")
SPLIT = 20
"""Nodes from which half of each of two kinds differs visibly from the other half."""
PERIODIC = ("neighbour",)
"""Faults whose size is not that of a quantity: 5 % of them is no loss of 5 %."""


NAMES = {("memory-channel", SMALL): ("memory-channel", "memory")}
"""Names that are right beside the kind's own: 5 % is no channel's part."""


class WithoutFacts:
    """A site of which nothing but values is known."""

    def __init__(self, site: VirtualSite) -> None:
        self._site = site

    def measure(self) -> SiteReadings:
        return msgspec.structs.replace(self._site.measure(), facts={})

    def measure_again(self, suspicion: Suspicion) -> SiteReadings:
        return msgspec.structs.replace(self._site.measure_again(suspicion), facts={})


def virtual_site(nodes: int, seed: int, plants: Sequence[PlantedFault] = ()) -> VirtualSite:
    """A site, of which every second one has two kinds of nodes; but one kind where half of each would be
    two nodes.
    """
    few = nodes < SPLIT and any(plant.kind == "half" for plant in plants)
    return VirtualSite(nodes, plants, seed=seed, kinds=1 if few else 1 + seed % 2)


def healthy_sites(nodes: int, sites: int, first: int) -> tuple[int, int, int]:
    """On how many something is suspected; of those with two kinds of nodes, how many name the second one; and
    how many there are.
    """
    alarms = named = both = 0
    for seed in range(first, first + sites):
        site = virtual_site(nodes, seed)
        document = examine(site, name="virtual")
        alarms += document.exit_code != 0
        if seed % 2:
            both += 1
            second = fold([f"n{node}" for node in np.flatnonzero(site.switches % 2)])
            named += any(one.quantity == "memory" and one.nodes == second for one in document.classes)
    return alarms, named, both


def found(
    kind: str, nodes: int, faults: int, share: float | None, facts: bool, first: int
) -> tuple[int, int, int]:
    """How often a fault is found, its cause named, and a healthy node suspected beside it."""
    hit = named = wrong = 0
    for seed in range(first, first + faults):
        node = int(np.random.default_rng((seed, nodes)).integers(nodes))
        site = virtual_site(nodes, seed, [PlantedFault(kind, node, share)])  # type: ignore[arg-type]
        suspects = examine(site if facts else WithoutFacts(site), name="virtual").suspects
        planted = [one for one in suspects if one.between is not None or kind != "cable"]
        planted = [one for one in planted if kind in ("cable", "half") or one.node == node]
        if kind == "half":
            members = {one.node for one in planted}
            half = np.arange(nodes) // ((nodes + 1) // 2)
            expected = {int(one) for one in np.flatnonzero(half == half[node])}
            right = len(members & expected) >= 0.95 * len(expected)
            hit += right
            wrong += bool(members - expected)
        else:
            right = bool(planted)
            hit += right
            wrong += len(suspects) > len(planted)
        named += right and planted[0].cause in NAMES.get((kind, share or 0.0), (kind,))
    return hit, named, wrong


def main() -> int:
    """Prints a table for each question."""
    parser = Command(
        __doc__, "--sites 4 --faults 1 --nodes 10 100", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sites", type=int, default=1000, help="healthy sites of each number of nodes")
    parser.add_argument("--faults", type=int, default=200, help="of each kind, size and number of nodes")
    parser.add_argument("--nodes", type=int, nargs="+", default=[10, 100, 1000, 10000])
    parser.add_argument("--first", type=int, default=0, help="seed of the first site")
    parser.add_argument("--table", type=Path, help="also written here")
    options = parser.parse_args()
    missed = False
    lines = ["| nodes | healthy sites | with an alarm | two kinds recognised |", "|---|---|---|---|"]
    for nodes in options.nodes if options.sites else ():
        alarms, named, both = healthy_sites(nodes, options.sites, options.first)
        missed |= alarms > FALSE_MOST * options.sites
        share = f"{alarms} ({alarms / options.sites:.1%})"
        lines.append(f"| {nodes} | {options.sites} | {share} | {named} of {both} |")
    lines += [
        "",
        "| fault | size | nodes | found | cause named | also suspected | cause named without facts |",
        "|---|---|---|---|---|---|---|",
    ]
    for kind in KINDS:
        for share in (None, SMALL) if kind not in PERIODIC else (None,):
            for nodes in options.nodes if options.faults else ():
                faults = max(options.faults * min(1000 / nodes, 1.0), 1)
                count = round(faults)
                hit, named, wrong = found(kind, nodes, count, share, facts=True, first=options.first)
                blind = (
                    found(kind, nodes, count, share, facts=False, first=options.first)[1]
                    if kind != "half"
                    else None
                )
                missed |= hit < FOUND_LEAST * count or named < CAUSE_LEAST * hit
                size = "drawn" if share is None else f"{share:.0%}"
                shown = "-" if blind is None else f"{blind} of {count}"
                cells = (
                    kind,
                    size,
                    nodes,
                    f"{hit} of {count}",
                    f"{named} of {hit}",
                    f"{wrong} of {count}",
                    shown,
                )
                lines.append(f"| {' | '.join(map(str, cells))} |")
    start = time.process_time()
    examine(VirtualSite(options.nodes[-1], [PlantedFault("link", 3)], seed=1), name="virtual")
    seconds = time.process_time() - start
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    missed |= seconds > SECONDS_MOST or memory > BYTES_MOST
    lines += [
        "",
        f"{options.nodes[-1]} nodes: {seconds:.2f} s of CPU, {memory / 1e6:.0f} MB at most in this process.",
    ]
    print("\n".join(lines))
    if options.table is not None:
        options.table.write_text("\n".join([*lines, ""]))
    return status(options, missed)


if __name__ == "__main__":
    raise SystemExit(main())
