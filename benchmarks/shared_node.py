"""Two jobs in one node's memory, and in one cache: the forecast beside simulations of another law.

    python benchmarks/shared_node.py [--machines henri,billy] [--truths G2,moved,G3] [--noise 0,1]
                                     [--pairs 24] [--seeds 3] [--json]

Memory: truths as in extended.py, which know nothing of FLOW: G2, networks of credits of the virtual machines;
moved, the same with every number changed; G3, the node line by line. FLOW is fitted to 27 runs of one kernel
beside messages (`extended.situations`) and 7 of other intensities, none with two kinds of cores. Pairs of
jobs have up to all cores of each socket together, on data beside them, and random intensities. The forecast
gets what counters would say: the traffic of each job alone. Errors are means of |predicted / true - 1| of
both slowdowns, in percent; `max-min` divides the capacity that all cores reached fairly, `none` expects no
slowdown.

Cache: two jobs pass over arrays in a simulated cache of 16 ways whose sets are a hash of the address, with
least-recently-used replacement, at different speeds, one of them or none beside a stream. The error is
that of the share of accesses that hit, in percentage points.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np
from command import Command
from extended import Simulated, Task, flow_of, measured, more_runs, situations, truth_of

from elbowroom.models import published
from elbowroom.models.curves import Shape
from elbowroom.models.document import Document
from elbowroom.models.load import Computing, Load, load_of
from elbowroom.models.node_sharing import CacheUse, NodeUse, SharedCache, hits_alone, hits_beside, share_node
from elbowroom.virtual.loads import load_streams

INTENSITIES = (0.05, 2.0)
"""flop/B; below the least all cores are bound by memory."""
MEGA = 1e6
INTENSE = 7
"""The first of `extended.more_runs`: other intensities beside messages."""
LINES = 4096
WAYS = 16
LINE = 64


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """Errors in percent of one machine and seed; `covered`: true slowdowns in the 90 % intervals."""

    truth: str
    machine: str
    noise: float
    seed: int
    flow: float
    max_min: float
    none: float
    covered: float


def jobs_of(shape: Shape, pairs: int) -> Iterator[tuple[Load, Load]]:
    """Pairs of jobs on all sockets, each core on data beside it."""
    rng = np.random.default_rng(zlib.crc32(f"{shape.name} jobs".encode()))
    for _ in range(pairs):
        pair = []
        cores = shape.cores_first_socket
        first = int(rng.integers(1, cores))
        for count in (first, int(rng.integers(1, cores - first + 1))):
            low, high = np.log(INTENSITIES)
            intensity = 0.0 if rng.random() < 0.5 else float(np.exp(rng.uniform(low, high)))
            pair.append(
                Load(
                    computing=tuple(
                        Computing(
                            socket=socket,
                            node=socket * shape.numa_per_socket,
                            count=count,
                            intensity=intensity,
                        )
                        for socket in range(shape.sockets)
                    )
                )
            )
        yield pair[0], pair[1]


def uses(truth: Simulated, pair: tuple[Load, Load]) -> tuple[list[NodeUse], list[float]]:
    """What counters would say of both jobs alone, and their true slowdowns."""
    alone = [sum(load_streams(truth, job).groups) for job in pair]
    both = load_streams(truth, Load(computing=(*pair[0].computing, *pair[1].computing))).groups
    half = len(pair[0].computing)
    together = (sum(both[:half]), sum(both[half:]))
    found = [
        NodeUse(cores=sum(group.count for group in job.computing), memory=rate * MEGA)
        for job, rate in zip(pair, alone, strict=True)
    ]
    return found, [before / after for before, after in zip(alone, together, strict=True)]


def fair(pair: Sequence[NodeUse], capacity: float) -> list[float]:
    """Slowdowns by max-min fairness over the cores, without floors or soft knees."""
    rates = [use.memory for use in pair]
    if sum(rates) <= capacity:
        return [1.0, 1.0]
    shares = [capacity * use.cores / (pair[0].cores + pair[1].cores) for use in pair]
    for job in (0, 1):
        if rates[job] <= shares[job]:
            shares[1 - job] = capacity - rates[job]
            shares[job] = rates[job]
    return [max(1.0, rate / share) for rate, share in zip(rates, shares, strict=True)]


def solve(task: Task, pairs: int) -> Score:
    truth = truth_of(task.truth, task.machine)
    shape = truth.shape
    # One node of each socket: of more the jobs use the first.
    plain = msgspec.structs.replace(shape, numa_per_socket=1)
    base = measured(truth, [load_of(at) for at in situations(shape)], task)
    document, _ = flow_of(shape, base, measured(truth, more_runs(shape)[:INTENSE], task), task)
    document = msgspec.structs.replace(document, machine=plain)
    capacity = max(row.comp_alone or 0.0 for row in base if len(row.load.computing) == 1) * shape.sockets
    return _score(task, document, truth, [*jobs_of(shape, pairs)], capacity * MEGA)


def _score(
    task: Task, document: Document, truth: Simulated, pairs: Sequence[tuple[Load, Load]], capacity: float
) -> Score:
    errors: dict[str, list[float]] = {"flow": [], "max_min": [], "none": []}
    inside = []
    for pair in pairs:
        known, true = uses(truth, pair)
        predicted = share_node(document, *known).slower
        for one, other, real in zip(predicted, fair(known, capacity), true, strict=True):
            errors["flow"].append(abs(one.value / real - 1))
            errors["max_min"].append(abs(other / real - 1))
            errors["none"].append(abs(1 / real - 1))
            inside.append(one.low <= real <= one.high)
    means = {name: 100 * float(np.mean(values)) for name, values in errors.items()}
    return Score(**msgspec.structs.asdict(task), **means, covered=float(np.mean(inside)))


def simulated_hits(
    jobs: Sequence[CacheUse], cache: SharedCache, passes: int = 6, seed: int = 0
) -> list[float]:
    """Shares of the accesses to their arrays that hit, of jobs in a cache with LRU sets; the last passes."""
    rng = np.random.default_rng(seed)
    sets = cache.size // (cache.ways * LINE)
    content: list[list[int]] = [[] for _ in range(sets)]
    seconds = passes * max((job.working_set / job.reuse for job in jobs if job.reuse), default=0.0)
    events = []
    for number, job in enumerate(jobs):
        lines = int(job.working_set // LINE)
        count = int(job.reuse * seconds / LINE)
        if count:
            events.append((np.arange(count) / count, np.full(count, 2 * number), np.arange(count) % lines))
        streamed = int(job.stream * seconds / LINE)
        if streamed:
            times = np.arange(streamed) / streamed
            events.append((times, np.full(streamed, 2 * number + 1), np.arange(streamed)))
    time, kind, line = (np.concatenate(column) for column in zip(*events, strict=True))
    where = rng.integers(0, sets, size=(2 * len(jobs), int(line.max()) + 1))
    hits, all_ = [0] * len(jobs), [0] * len(jobs)
    for index in np.argsort(time, kind="stable").tolist():
        own, address = int(kind[index]), int(line[index])
        tags, tag = content[where[own, address]], (own << 40) | address
        found = tag in tags
        if found:
            tags.remove(tag)
        elif len(tags) >= cache.ways:
            tags.pop(0)
        tags.append(tag)
        if own % 2 == 0 and time[index] > 0.5:
            hits[own // 2] += found
            all_[own // 2] += 1
    return [hit / count if count else 1.0 for hit, count in zip(hits, all_, strict=True)]


def cache_errors(pairs: int, seed: int = 0) -> tuple[float, float, float]:
    """Mean and largest error of the share of hits, and the mean where each job is taken to be alone."""
    rng = np.random.default_rng(seed)
    cache = SharedCache(size=LINES * LINE, ways=WAYS)
    errors, naive = [], []
    for number in range(pairs):
        jobs = [
            CacheUse(
                working_set=float(rng.uniform(0.1, 0.9)) * cache.size,
                reuse=float(np.exp(rng.uniform(0, np.log(4)))),
                stream=float(rng.uniform(0, 1)) if rng.random() < 0.3 else 0.0,
            )
            for _ in (0, 1)
        ]
        true = simulated_hits(jobs, cache, seed=number)
        for job in (0, 1):
            errors.append(abs(hits_beside(cache, jobs[job], jobs[1 - job]) - true[job]))
            naive.append(abs(hits_alone(cache, jobs[job]) - true[job]))
    return 100 * float(np.mean(errors)), 100 * float(np.max(errors)), 100 * float(np.mean(naive))


def main() -> None:
    parser = Command(__doc__, smoke="--machines henri --truths G2 --noise 0 --pairs 1 --seeds 1")
    parser.add_argument("--machines", default=",".join(published.names()))
    parser.add_argument("--truths", default="G2,moved")
    parser.add_argument("--noise", default="0,1", help="percent")
    parser.add_argument("--pairs", type=int, default=24)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    chosen = parser.parse_args()
    scores = [
        solve(Task(truth=truth, machine=machine, noise=float(noise) / 100, seed=seed), chosen.pairs)
        for truth in chosen.truths.split(",")
        for noise in chosen.noise.split(",")
        for machine in chosen.machines.split(",")
        for seed in range(chosen.seeds if float(noise) else 1)
    ]
    cache = cache_errors(chosen.pairs)
    if chosen.json:
        print(json.dumps({"scores": msgspec.to_builtins(scores), "cache": cache}))
        return
    print("| truth, noise | FLOW | worst machine | in the interval | max-min | none |")
    print("|---|---|---|---|---|---|")
    for key in dict.fromkeys((one.truth, one.noise) for one in scores):
        some = [one for one in scores if (one.truth, one.noise) == key]
        worst = max(some, key=lambda one: one.flow)
        means = [np.mean([getattr(one, name) for one in some]) for name in ("flow", "max_min", "none")]
        covered = np.mean([one.covered for one in some])
        print(
            f"| {key[0]}, {100 * key[1]:.0f} % | {means[0]:.2f} | {worst.flow:.2f} ({worst.machine}) | "
            f"{100 * covered:.0f} % | {means[1]:.2f} | {means[2]:.2f} |"
        )
    print(f"\ncache: {cache[0]:.1f} points (worst {cache[1]:.1f}); each job as if alone: {cache[2]:.1f}")


if __name__ == "__main__":
    main()
