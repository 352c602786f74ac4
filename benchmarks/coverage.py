"""How often the 95 % interval of `kept` holds the truth, by simulation.

    python benchmarks/coverage.py [--simulations 8000] [--repetitions 5,8,11] [--seed 1] [--json]

One simulation is one point: so many repetitions of A, B, AB, AB, B, A with noise in every phase, and what
elbowroom makes of the samples of one side. The truth is what the estimate tends to as repetitions grow: the
pseudo-median of the ratios inside the repetitions, known for symmetric noise, else computed from a million
repetitions. Prints the share of intervals that hold it, with its own standard error, for each kind of noise
and number of repetitions, and the median width of the intervals. Exit code 1 where a share is outside 93 to
97 % with noise that both sides have; noise of the phases together only is printed beside.

A second table is of runs with several starts of the program (`--starts`), four repetitions each, where pages
and the like move what a side keeps by 5 % from start to start, beside 5 % of noise; and what intervals over
repetitions would cover there. One core, about two minutes.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable

import numpy as np
from command import Command, status
from numpy.typing import NDArray

from elbowroom.points.point import Point
from elbowroom.results.points import results
from elbowroom.stats.interval import Kept
from elbowroom.stats.summary import Samples, kept, side_of

KEPT = 0.8
"""What the simulated side keeps."""
PHASES = 6
ALONE, TOGETHER = (0, 5), (2, 3)
"""Places of the side's phases in A, B, AB, AB, B, A."""
WANTED = (0.93, 0.97)
CHECKED = 20
"""Simulations of each cell that go through `results` too, as samples of a run."""

Floats = NDArray[np.float64]
Noise = Callable[[np.random.Generator, int, int], Floats]


def normal(rng: np.random.Generator, points: int, repetitions: int) -> Floats:
    """Standard deviation 10 %."""
    return 1 + 0.1 * rng.standard_normal((points, repetitions, PHASES))


def log_normal(rng: np.random.Generator, points: int, repetitions: int) -> Floats:
    """Standard deviation of the logarithm 0.3: a long tail of fast phases."""
    return np.exp(0.3 * rng.standard_normal((points, repetitions, PHASES)))


def bimodal(rng: np.random.Generator, points: int, repetitions: int) -> Floats:
    """One phase in five runs at 0.7 of the speed; 2 % beside."""
    slow = np.where(rng.random((points, repetitions, PHASES)) < 0.2, 0.7, 1.0)
    return slow * (1 + 0.02 * rng.standard_normal((points, repetitions, PHASES)))


def drifting(rng: np.random.Generator, points: int, repetitions: int) -> Floats:
    """20 % slower at the end of the run than at its start, a random walk of 1 % a phase, and 2 % beside."""
    phases = repetitions * PHASES
    walk = np.cumsum(0.01 * rng.standard_normal((points, phases)), axis=1)
    slower = 1 - 0.2 * np.arange(phases) / phases
    beside = 1 + 0.02 * rng.standard_normal((points, phases))
    found: Floats = (np.exp(walk) * slower * beside).reshape(points, repetitions, PHASES)
    return found


def bimodal_together(rng: np.random.Generator, points: int, repetitions: int) -> Floats:
    """Only phases together are slow, three in ten at 0.7: noise that is not the same on both sides."""
    found = 1 + 0.02 * rng.standard_normal((points, repetitions, PHASES))
    found[..., TOGETHER] *= np.where(rng.random((points, repetitions, 2)) < 0.3, 0.7, 1.0)
    return found


NOISES: dict[str, Noise] = {
    "normal": normal,
    "log-normal": log_normal,
    "bimodal": bimodal,
    "drifting": drifting,
    "bimodal together": bimodal_together,
}


def truth(noise: Noise, rng: np.random.Generator) -> float:
    """What the estimate of `kept` tends to: KEPT where both sides have the same noise, else counted."""
    if noise is not bimodal_together:
        return KEPT
    speeds = noise(rng, 1, 1_000_000)[0]
    logs = np.log(speeds[:, TOGETHER].mean(axis=1) / speeds[:, ALONE].mean(axis=1))
    pairs = (logs[:500_000] + logs[500_000:]) / 2
    return KEPT * float(np.exp(np.median(pairs)))


def cell(
    noise: Noise, repetitions: int, simulations: int, rng: np.random.Generator, true: float
) -> dict[str, float]:
    """Coverage, its standard error and the median width of one kind of noise and number of repetitions."""
    speeds = noise(rng, simulations, repetitions)
    speeds[..., TOGETHER] *= KEPT
    found = [_kept(one) for one in speeds]
    for point, again in zip(found, through_results(speeds[:CHECKED]), strict=False):
        assert point == again, "results() and kept() disagree"
    ends = np.array([one.bounds for one in found])
    share = float(np.mean((ends[:, 0] <= true) & (true <= ends[:, 1])))
    return {
        "repetitions": repetitions,
        "coverage": share,
        "standard_error": float(np.sqrt(share * (1 - share) / simulations)),
        "width": float(np.median(ends[:, 1] - ends[:, 0])),
    }


def _kept(speeds: Floats) -> Kept:
    found = kept(*(dict(enumerate(speeds[:, list(places)].tolist())) for places in (ALONE, TOGETHER)))
    assert found is not None
    return found


def through_results(speeds: Floats) -> list[Kept]:
    """The same from the samples of a run with a point for each simulation."""
    points, repetitions, _ = speeds.shape
    places = [*ALONE, *TOGETHER]
    made = [
        Point(
            plan="coverage", kernel="triad", n=1, size=number + 1, comp_node=0, comm_node=0, comm_core=0,
            metric="bandwidth",
        )
        for number in range(points)
    ]  # fmt: skip
    rows = points * repetitions * len(places)
    samples = Samples(
        point=np.repeat(np.arange(points), repetitions * len(places)),
        repetition=np.tile(np.repeat(np.arange(repetitions), len(places)), points),
        closing=np.zeros(rows, dtype=bool),
        phase=["A", "A", "AB", "AB"] * (points * repetitions),
        side=["comp"] * rows,
        value=speeds[:, :, places].ravel(),
        unit=["MB/s"] * rows,
        status=["ok"] * rows,
    )
    found = [result.comp.kept for result in results(made, samples)]
    return [one for one in found if one is not None]


STARTS = (2, 3, 4, 5, 8, 12)
OF_A_START = 4
"""Repetitions of each start."""


def of_starts(starts: int, between: str, simulations: int, rng: np.random.Generator) -> dict[str, float]:
    """Coverage of intervals over starts, and of those over repetitions, with variation between starts."""
    shift = 0.05 * rng.standard_normal((simulations, starts))
    if between == "two states":
        shift = np.where(rng.random((simulations, starts)) < 0.5, 0.05, -0.05)
    repetitions = starts * OF_A_START
    numbers = np.arange(repetitions) // OF_A_START
    speeds = np.exp(0.05 * rng.standard_normal((simulations, repetitions, PHASES)))
    speeds[..., TOGETHER] *= KEPT * np.exp(shift[:, numbers, None])
    at = np.repeat(np.arange(repetitions), 2)
    hits, naive, width = [], [], []
    for one in speeds:
        alone, joined = one[:, ALONE].ravel(), one[:, TOGETHER].ravel()
        found = side_of(alone, at, joined, at, unit="MB/s", starts=(numbers[at], numbers[at])).kept
        assert found is not None
        ends, beside = found.bounds, _kept(one).bounds
        assert ends is not None
        assert beside is not None
        hits.append(ends[0] <= KEPT <= ends[1])
        naive.append(beside[0] <= KEPT <= beside[1])
        width.append(ends[1] - ends[0])
    share = float(np.mean(hits))
    return {
        "starts": starts,
        "coverage": share,
        "standard_error": float(np.sqrt(share * (1 - share) / simulations)),
        "width": float(np.median(width)),
        "over_repetitions": float(np.mean(naive)),
    }


def main() -> int:
    parser = Command(__doc__, smoke="--simulations 20 --repetitions 5")
    parser.add_argument("--simulations", type=int, default=8000)
    parser.add_argument("--repetitions", default="5,6,7,8,9,11,20,50")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    counts = [int(word) for word in options.repetitions.split(",")]
    rng = np.random.default_rng(options.seed)
    table = {}
    for name, noise in NOISES.items():
        true = truth(noise, rng)
        table[name] = [cell(noise, count, options.simulations, rng, true) for count in counts]
    by_start = {
        between: [of_starts(count, between, options.simulations, rng) for count in STARTS]
        for between in ("normal", "two states")
    }
    missed = [
        (name, one["repetitions"])
        for name, cells in table.items()
        for one in cells
        if NOISES[name] is not bimodal_together and not WANTED[0] <= one["coverage"] <= WANTED[1]
    ]
    missed_starts = [
        one["starts"] for one in by_start["normal"] if not WANTED[0] <= one["coverage"] <= WANTED[1]
    ]
    if options.json:
        heading = {"simulations": options.simulations, "seed": options.seed}
        print(json.dumps({**heading, "coverage": table, "starts": by_start}))
    else:
        print(f"{'repetitions':<18}" + "".join(f"{count:>22}" for count in counts))
        for name, cells in table.items():
            said = (
                f"{one['coverage']:.1%} ± {one['standard_error']:.1%} ({one['width']:.3f})" for one in cells
            )
            print(f"{name:<18}" + "".join(f"{text:>22}" for text in said))
        print(f"Coverage ± its standard error (median width), {options.simulations} simulations each.")
        print(f"\n{'starts':<18}" + "".join(f"{count:>30}" for count in STARTS))
        for name, cells in by_start.items():
            said = (
                f"{one['coverage']:.1%} ({one['width']:.3f}), else {one['over_repetitions']:.1%}"
                for one in cells
            )
            print(f"{name:<18}" + "".join(f"{text:>30}" for text in said))
        print("Coverage (median width), and that of intervals over repetitions.")
    for name, count in missed:
        print(f"outside {WANTED[0]:.0%} to {WANTED[1]:.0%}: {name}, {count} repetitions", file=sys.stderr)
    for count in missed_starts:
        print(f"outside {WANTED[0]:.0%} to {WANTED[1]:.0%}: {count} starts", file=sys.stderr)
    return status(options, missed or missed_starts)


if __name__ == "__main__":
    sys.exit(main())
