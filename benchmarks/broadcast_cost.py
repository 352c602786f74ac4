"""The predicted time of broadcasts beside the simulated one, over random cases.

    python benchmarks/broadcast_cost.py [--cases 1000] [--seed 1] [--json]

The cost model of lib/broadcast, which `auto` uses, evaluates the rules of the library over links that
messages share; SimGrid simulates the library itself. Cases: 1 to 200 recipients, 4 B to 32 MiB, all kinds of
trees, segments from 8 KiB, latencies of 0.1 to 30 us, 0.3 to 100 GB/s, a third of them with 0.1 to 1 us of
overhead. Then how long predictions and choices take. Exit code 1 where the mean error is above 5 %. Times of
broadcasts are predicted or simulated, those of predictions are measured. A minute.
"""

from __future__ import annotations

import json
import random
import statistics
import sys
from typing import NamedTuple

from command import Command, status

import elbowroom
from elbowroom.broadcast.network import Network
from elbowroom.launch.executables import BroadcastCase, predict_broadcasts

TREES = (
    "flat", "chain", "binary", "binomial", "4-ary", "4-nomial", "8-nomial", "delegate-binary",
    "split3-binary", "two",
)  # fmt: skip
SEGMENTS = (0, 8, 16, 32, 64, 128, 256)
MOST_TRANSFERS = 60_000
"""More take SimGrid too long."""

GOAL = 0.05


class Compared(NamedTuple):
    """A case, and its predicted and simulated time, us."""

    network: Network
    case: BroadcastCase
    predicted_us: float
    simulated_us: float

    @property
    def error(self) -> float:
        return self.predicted_us / self.simulated_us - 1


def random_case(draw: random.Random) -> tuple[Network, BroadcastCase]:
    while True:
        case = BroadcastCase(
            size=int(2 ** draw.uniform(2, 25)),
            recipients=round(2 ** draw.uniform(0, 7.64)),
            tree=draw.choice(TREES),
            segment=draw.choice(SEGMENTS) * 1024,
        )
        if case.recipients * case.size <= MOST_TRANSFERS * (case.segment or case.size):
            break
    network = Network(
        latency=10 ** draw.uniform(-7, -4.5),
        bandwidth=10 ** draw.uniform(8.5, 11),
        overhead=0.0 if draw.random() < 2 / 3 else 10 ** draw.uniform(-7, -6),
    )
    return network, case


def compare(network: Network, case: BroadcastCase) -> Compared:
    simulated = elbowroom.simulate_broadcast(
        case.recipients,
        case.size,
        bandwidth=network.bandwidth,
        latency=network.latency,
        overhead=network.overhead,
        tree=case.tree,
        segment=case.segment,
    )
    (predicted,) = predict_broadcasts(network, [case])
    return Compared(network, case, predicted.received * 1e6, simulated.seconds * 1e6)


def prediction_us() -> dict[str, float]:
    """Median us of predicting 40 recipients and 8 segments, by tree."""
    network = Network(latency=2e-6, bandwidth=6e9)
    cases = {
        tree: BroadcastCase(size=8 << 16, recipients=40, tree=tree, segment=1 << 16)
        for tree in ("binary", "binomial", "two")
    }
    return {
        tree: statistics.median(found.predicting * 1e6 for found in predict_broadcasts(network, [case] * 51))
        for tree, case in cases.items()
    }


def choosing_ms() -> dict[int, float]:
    """Median ms of choosing the tree for 429 KiB, by the number of recipients."""
    network = Network(latency=2e-6, bandwidth=6e9, overhead=0.5e-6)
    return {
        recipients: statistics.median(
            found.choosing * 1e3
            for found in predict_broadcasts(network, [BroadcastCase(size=439296, recipients=recipients)] * 11)
        )
        for recipients in (7, 38, 195)
    }


def main() -> int:
    parser = Command(__doc__, smoke="--cases 2")
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    draw = random.Random(options.seed)
    found = [compare(*random_case(draw)) for _ in range(options.cases)]
    times = prediction_us()
    mean = statistics.fmean(abs(one.error) for one in found)
    if options.json:
        print(json.dumps({"mean": mean, "predicting_us": times, "errors": [one.error for one in found]}))
        return status(options, mean > GOAL)
    print(f"{'tree':<16} {'cases':>5} {'mean':>7} {'worst':>7}")
    for tree in TREES:
        errors = [abs(one.error) for one in found if one.case.tree == tree]
        if errors:
            print(f"{tree:<16} {len(errors):>5} {statistics.fmean(errors):>7.2%} {max(errors):>7.2%}")
    print(f"{'all':<16} {len(found):>5} {mean:>7.2%} {max(abs(one.error) for one in found):>7.2%}")
    for one in sorted(found, key=lambda one: -abs(one.error))[:5]:
        print(f"{one.error:+.2%}: {one.case}, {one.network}")
    for tree, median in times.items():
        print(f"{tree}: a prediction of 40 recipients and 8 segments takes {median:.0f} us")
    for recipients, median in choosing_ms().items():
        print(f"auto: the first choice for {recipients} recipients takes {median:.1f} ms")
    return status(options, mean > GOAL)


if __name__ == "__main__":
    sys.exit(main())
