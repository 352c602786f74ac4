"""Plans for 1,000 jobs on 512 simulated nodes, whose true runtimes are known.

    python benchmarks/schedule.py [--jobs 1000] [--nodes 512] [--seeds 3] [--json]

Truth: the simulator of nodes (benchmarks/node_simulator.py), which has no matrix. The matrix is
estimated from short simulations of each pair of ten kinds of jobs, with noise. Each way to schedule the same
jobs is then simulated job by job. The bound is that of the relaxed matching (and of the best companions) with
a matrix of long simulations without noise. Exit code 1 where a plan takes more than 10 s, or 2 % more
node-hours than the bound.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from command import Command, status
from node_simulator import CLASSES, SimulatedJob, exclusive_seconds, simulate

from elbowroom.schedule import optimum
from elbowroom.schedule.groups import Group, GroupingProblem
from elbowroom.schedule.jobs import Cluster, Jobs, ScheduledJob
from elbowroom.schedule.matrix import Matrix
from elbowroom.schedule.optimum import best_groups
from elbowroom.schedule.plan import GAP, SECONDS, late, place

WIDTHS = (1, 2, 4, 8, 16, 32)
STEPS = (6, 60)
CORES = 32
SHORT = 20
"""Steps of the simulations of pairs for the estimated matrix; `--truth-steps` for the truth."""

NOISE = 0.02
MOST_REGRET = 0.02
MOST_SECONDS = 10.0

SPREADS = 0.9
"""A job whose runtime on half of the cores is below this is spread over twice the nodes."""


def matrix(steps: int, noise: float, seed: int) -> tuple[Matrix, dict[str, float]]:
    """The percents of all pairs of kinds, and with half of the cores; each run is `steps` long."""
    generator = random.Random(seed)
    alone = [exclusive_seconds(kind, steps, seed) for kind in CLASSES]

    def percent(seconds: float, measured: int) -> float:
        return 100 * seconds / alone[measured] * (1 + noise * generator.gauss(0, 1))

    rows = []
    for companion, kind in enumerate(CLASSES):
        row = []
        for measured, other in enumerate(CLASSES):
            again = int(2.5 * steps * alone[measured] / alone[companion]) + 2
            job = SimulatedJob(other, steps, seed, (0,), half=True)
            beside = SimulatedJob(kind, again, seed + 1 + companion, (0,), half=True)
            row.append(percent(simulate([job, beside])[0], measured))
        rows.append(tuple(row))
    half = {
        kind.name: percent(simulate([SimulatedJob(kind, steps, seed, (0,), half=True)])[0], index)
        for index, kind in enumerate(CLASSES)
    }
    return Matrix(names=tuple(kind.name for kind in CLASSES), percent=tuple(rows)), half


def random_jobs(count: int, nodes: int, seed: int) -> tuple[Jobs, list[SimulatedJob]]:
    """Jobs of random kinds, widths and lengths; an hour is a second of the simulator."""
    generator = random.Random(seed)
    simulated, jobs = [], []
    for number in range(count):
        kind = generator.choice(CLASSES)
        low, high = STEPS
        steps = round(low * (high / low) ** generator.random())
        job = SimulatedJob(kind, steps, seed * count + number, ())
        simulated.append(job)
        jobs.append(
            ScheduledJob(
                name=f"{kind.name}-{number}",
                application=kind.name,
                nodes=generator.choice([width for width in WIDTHS if 2 * width <= nodes]),
                hours=exclusive_seconds(kind, steps, job.seed),
            )
        )
    return Jobs(cluster=Cluster(nodes=nodes, cores=CORES), jobs=tuple(jobs)), simulated


def true_node_hours(
    problem: GroupingProblem, groups: Sequence[Group], simulated: Sequence[SimulatedJob]
) -> float:
    """Simulates every group on nodes of its own; the node-hours that all of them really take."""
    runs: list[SimulatedJob] = []
    spans: list[tuple[int, list[int]]] = []
    first = 0
    for group in groups:
        width = problem.width(group)
        mine: dict[int, int] = {}
        queues = [((group.host,), 0), *zip(group.beside, _offsets(problem, group), strict=True)]
        for queue, offset in queues:
            before = None
            for job in queue:
                nodes = problem.jobs[job].nodes * (2 if group.mode == "half" else 1)
                start = first + offset
                mine[job] = len(runs)
                runs.append(
                    simulated[job]._replace(
                        nodes=tuple(range(start, start + nodes)), half=group.mode == "half", after=before
                    )
                )
                before = mine[job]
        spans.append((width, list(mine.values())))
        first += width
    ends = simulate(runs)
    return sum(width * max(ends[run] for run in mine) for width, mine in spans)


def _offsets(problem: GroupingProblem, group: Group) -> list[int]:
    widths = [2 * max(problem.jobs[job].nodes for job in queue) for queue in group.beside]
    return [sum(widths[:place]) for place in range(len(widths))]


def in_turn(problem: GroupingProblem, order: Sequence[int]) -> Iterator[Group]:
    """Each job beside the next one of its width that it may share with."""
    left = list(order)
    while left:
        job = left.pop(0)
        for other in left:
            group = Group(job, "half", ((other,),))
            if problem.nodes[other] == problem.nodes[job] and problem.possible(group):
                left.remove(other)
                yield group
                break
        else:
            yield problem.single(job)


def random_sharing(problem: GroupingProblem, generator: random.Random) -> list[Group]:
    """Pairs at random among jobs of equal width that may share nodes; the others without a companion."""
    order = list(range(len(problem.jobs)))
    generator.shuffle(order)
    return list(in_turn(problem, order))


def spread_and_share(problem: GroupingProblem) -> list[Group]:
    """Like Spread-n-Share, by one number for each job: those that gain most from half of the cores are
    spread, each beside the job that gains least among those of its width. Nothing about pairs is used.
    """
    groups: list[Group] = []
    for width in np.unique(problem.nodes):
        part = sorted(np.flatnonzero(problem.nodes == width).tolist(), key=lambda job: problem.half[job])
        while part:
            job = part.pop(0)
            beside = [other for other in reversed(part) if problem.possible(Group(job, "half", ((other,),)))]
            if problem.half[job] > SPREADS or not beside:
                groups.append(problem.single(job))
                continue
            part.remove(beside[0])
            groups.append(Group(job, "half", ((beside[0],),)))
    return groups


def one(count: int, nodes: int, seed: int, truth_steps: int) -> dict[str, Any]:
    """All ways to schedule the jobs of one seed."""
    jobs, simulated = random_jobs(count, nodes, seed)
    problem = GroupingProblem(jobs, *matrix(SHORT, NOISE, seed))
    truth = GroupingProblem(jobs, *matrix(truth_steps, 0.0, 10_000))
    began = time.perf_counter()
    found = best_groups(problem, SECONDS, GAP)
    placed = place(problem, found.groups)
    seconds = time.perf_counter() - began
    best = best_groups(truth, 30.0, GAP)
    ways = {
        "this plan": [item.group for item in placed],
        "plan with the true matrix": list(best.groups),
        "like Spread-n-Share": spread_and_share(problem),
        "exclusive, first fit": optimum.exclusive(problem),
        "random sharing": random_sharing(problem, random.Random(seed)),
    }
    return {
        "seed": seed,
        "seconds": seconds,
        "bound": best.bound,
        "companion_bound": optimum.companion_bound(truth),
        "late": len(late(problem, placed)),
        "makespan": max(item.end for item in placed),
        "node_hours": {name: true_node_hours(problem, way, simulated) for name, way in ways.items()},
        "predicted": found.cost,
    }


def main() -> int:
    parser = Command(__doc__, smoke="--jobs 8 --nodes 8 --seeds 1 --truth-steps 10")
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--nodes", type=int, default=512)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--truth-steps", type=int, default=150, help="of the simulations of true pairs")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    found = []
    for seed in range(1, given.seeds + 1):
        row = one(given.jobs, given.nodes, seed, given.truth_steps)
        found.append(row)
        if not given.json:
            show(row)
    if given.json:
        print(json.dumps(found, indent=1))
    wrong = [
        row["seed"]
        for row in found
        if row["seconds"] > MOST_SECONDS or regret(row) > MOST_REGRET or row["late"]
    ]
    if wrong:
        print(
            f"missed: seeds {wrong} take too long, use too many node-hours, or have late jobs",
            file=sys.stderr,
        )
    return status(given, wrong)


def regret(row: dict[str, Any], way: str = "this plan") -> float:
    """Node-hours that are really taken over the bound, less 1."""
    value: float = row["node_hours"][way] / row["bound"] - 1
    return value


def show(row: dict[str, Any]) -> None:
    exclusive = row["node_hours"]["exclusive, first fit"]
    print(
        f"seed {row['seed']}: scheduled in {row['seconds']:.1f} s; makespan {row['makespan']:.0f} h, "
        f"{row['late']} late"
    )
    print(f"{'':<28} {'node-hours':>10} {'% of exclusive':>14} {'regret %':>9}")
    for name, hours in row["node_hours"].items():
        print(f"{name:<28} {hours:10.0f} {100 * hours / exclusive:14.1f} {100 * regret(row, name):9.2f}")
    for name in ("bound", "companion_bound"):
        print(f"{name.replace('_', ' '):<28} {row[name]:10.0f} {100 * row[name] / exclusive:14.1f}")
    print(flush=True)


if __name__ == "__main__":
    sys.exit(main())
