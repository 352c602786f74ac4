"""How often `compare` claims a change that is none, and finds one of 3 %: pairs of virtual runs.

    python benchmarks/compare.py [--pairs 200] [--plan cores] [--machine henri] [--noise 0.01] [--json]

Each pair is two runs of a plan on a virtual machine that differ in the seed only: any change that is claimed
is wrong. Then the rates together of the communication beside one kernel (a curve over cores or sizes) are
made 3 % less in the second run: found where at least one value of that curve is claimed to be less. Each run
serves in two pairs, as second and as first. Exit code 1 where more than 5 % of the pairs claim a change, or
the planted one is found in fewer than 95 %.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from collections import Counter
from pathlib import Path

from command import Command, status

import elbowroom
from elbowroom.results.comparison import Change, ComparedRun, compare

PLANTED = 0.97
MOST, LEAST = 0.05, 0.95


def measured(options: argparse.Namespace, seed: int, folder: Path) -> ComparedRun:
    """One virtual run with that seed."""
    run = elbowroom.run(
        options.plan,
        machine=options.machine,
        noise=options.noise,
        seed=seed,
        overrides=elbowroom.Overrides(repeat=options.repeat),
        out=str(folder / str(seed)),
        report=False,
        tell=lambda _: None,
    )
    return run.measured()


def curve(run: ComparedRun) -> set[str]:
    """The points of the most frequent kernel and placement."""
    of = {
        item.id: (item.kernel, item.comp_node, item.comm_node, item.metric)
        for item in run.results
        if item.role == "point" and item.n
    }
    chosen = Counter(of.values()).most_common(1)[0][0]
    return {name for name, case in of.items() if case == chosen}


def planted(run: ComparedRun, points: set[str]) -> ComparedRun:
    """The same with less communication together on these points."""
    values = {
        key: column + math.log(PLANTED)
        if key[0] in points and key[1] == "comm" and key[2] in ("together", "kept")
        else column
        for key, column in run.values.items()
    }
    return ComparedRun(results=run.results, values=values)


def finds(changes: list[Change], points: set[str]) -> bool:
    return any(
        change.significant and change.change < 0 and change.point in points and change.side == "comm"
        for change in changes
    )


def main() -> int:
    parser = Command(__doc__, smoke="--pairs 1 --repeat 5")
    parser.add_argument("--pairs", type=int, default=200)
    parser.add_argument("--plan", default="cores")
    parser.add_argument("--machine", default="henri")
    parser.add_argument("--noise", type=float, default=0.01)
    parser.add_argument("--repeat", type=int)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    wrong = found = values = 0
    with tempfile.TemporaryDirectory() as folder:
        first = measured(options, 1000, Path(folder))
        points = curve(first)
        for pair in range(options.pairs):
            second = measured(options, 1001 + pair, Path(folder))
            claimed = compare(first, second)
            values = len(claimed)
            wrong += any(change.significant for change in claimed)
            found += finds(compare(first, planted(second, points)), points)
            first = second
    told = {
        "pairs": options.pairs,
        "values": values,
        "points_of_the_curve": len(points),
        "claimed_though_equal": wrong / options.pairs,
        "planted_found": found / options.pairs,
    }
    if options.json:
        print(json.dumps(told))
    else:
        print(f"{options.pairs} pairs of {options.plan} on {options.machine}, {values} values each")
        print(f"a change claimed though only the seed differs: {wrong} ({wrong / options.pairs:.1%})")
        print(f"3 % less on {len(points)} points found: {found} ({found / options.pairs:.1%})")
    return status(options, wrong > MOST * options.pairs or found < LEAST * options.pairs)


if __name__ == "__main__":
    sys.exit(main())
