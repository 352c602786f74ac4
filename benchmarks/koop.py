"""Pairs on the published matrix (Koop, Luo, Panda, slides 20 and 24), and what pairing by estimates costs.

    python benchmarks/koop.py [--json]

Prints the mean runtime of the best pairs, of random pairs, of pairs chosen by a scalar model, and by
estimates in which each application in turn has run with no other one; and the regret of each against the best
pairs. Nothing is measured, so the numbers are the same on every machine. Exit code 1 where the best pairs are
not those of the matrix, or where estimates do not pair clearly better than random.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
from command import Command, status
from matrix_estimates import from_half, from_others, leave_one_out, mean_error, scalar_model

from elbowroom.schedule.matrix import parse_half, parse_matrix
from elbowroom.schedule.pairing import best_pairing, match, mean_of

FOLDER = Path(__file__).resolve().parent.parent / "machines" / "colocation"
BEST = {"BT-SP", "CG-EP", "FT-LU", "IS-MG"}


def answers() -> dict[str, Any]:
    """All figures, as plain data."""
    matrix = parse_matrix((FOLDER / "koop_shared_8x8.csv").read_text(encoding="utf-8"), "slide 24")
    half = parse_half((FOLDER / "koop_shared_max_row.csv").read_text(encoding="utf-8"), "slide 24")
    runtimes = parse_half((FOLDER / "koop_all_vs_half.csv").read_text(encoding="utf-8"), "slide 20")
    best = best_pairing(matrix, half=half)
    percent = matrix.array()
    scalar = scalar_model(percent)
    room = np.array([half[name] for name in matrix.names])
    estimates = {
        "half-core runs of the left-out application": leave_one_out(matrix, from_half(room)),
        "nothing of the left-out application": leave_one_out(matrix, from_others),
    }
    return {
        "pairs": ["-".join(pair) for pair in best.pairs],
        "mean": best.mean,
        "random": best.random,
        "bound": best.bound,
        "half_cores": best.half_cores,
        "half_cores_runtimes": float(np.mean(list(runtimes.values()))),
        "scalar": {"error": mean_error(scalar, percent), "mean": mean_of(percent, match(scalar))},
        "left_out": {
            name: {
                "error": float(np.mean([one.error for one in found])),
                "mean": float(np.mean([one.mean for one in found])),
                "worst": max(one.mean for one in found),
                "each": {one.name: round(one.mean, 4) for one in found},
            }
            for name, found in estimates.items()
        },
    }


def misses(found: dict[str, Any]) -> list[str]:
    """A sentence for each expectation that is not met."""
    wrong = [] if set(found["pairs"]) == BEST else [f"the best pairs are {', '.join(found['pairs'])}"]
    gain = found["random"] - found["mean"]
    for name, row in found["left_out"].items():
        if row["mean"] - found["mean"] > gain / 2:
            wrong.append(f"{name}: {row['mean']:.1f} % is not clearly better than random")
    return wrong


def show(found: dict[str, Any]) -> None:
    """The same as a table."""
    best = found["mean"]

    def line(name: str, value: float, note: str = "") -> None:
        print(f"{name:<58} {value:6.2f} {100 * (value / best - 1):7.2f}  {note}".rstrip())

    print(f"best pairs: {', '.join(found['pairs'])}\n")
    print(f"{'mean runtime, % of exclusive':<58} {'mean':>6} {'regret':>7}")
    line("best pairs", best)
    line("random pairs (expected)", found["random"])
    error = found["scalar"]["error"]
    note = f"mean error of cells {error:.1f} %; all pairings are equal in it"
    line("scalar model, fitted to all pairs", found["scalar"]["mean"], note)
    for name, row in found["left_out"].items():
        note = f"worst {row['worst']:.2f}, mean error {row['error']:.1f} points"
        line(f"one left out, {name}", row["mean"], note)
    line("bound: best companion of each", found["bound"])
    line("half of the cores, no companion (slide 24)", found["half_cores"])
    line("half of the cores, no companion (runtimes of slide 20)", found["half_cores_runtimes"])


def main() -> int:
    parser = Command(__doc__, smoke="")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = answers()
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        show(found)
    wrong = misses(found)
    for sentence in wrong:
        print(f"missed: {sentence}", file=sys.stderr)
    return status(options, wrong)


if __name__ == "__main__":
    sys.exit(main())
