"""How good the advice is, on virtual machines whose best setup is known (docs/reference/advice.md).

    python benchmarks/advise.py [--jobs 200] [--machines henri,billy] [--noise 1] [--seed 1] [--processes 2]
                                [--each]

Random jobs (what they compute, at which intensity, what they send, in messages of which size and direction,
how they run now, what they may choose) on the nine published machines as networks of credits (G2), whose law
is none of the models'. Each machine's model is fitted to 24 runs of one socket and a few more of both
sockets, intensity, sizes, threads and directions, all with noise. The truth's step is known for every setup
of a job, so the best is. Beside the advice:

- threshold: advised by the thesis' model, which knows one socket, no intensity, one thread that receives;
- all cores: as now, but every core that may compute does;
- random: what one of the setups gives on average;
- nothing: as now.

Excess is the time of a step over that of the best setup; the worst beside nothing is over the present one's.
No result depends on the machine or its clock.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
from collections.abc import Sequence
from functools import cache

import extended
import msgspec
import numpy as np
from command import Command

from elbowroom.advise.advisor import advise
from elbowroom.advise.job import Accelerator, Job, JobStep, May, Setup, check
from elbowroom.advise.setups import load_of, setups
from elbowroom.advise.steps import SetupRates, steps
from elbowroom.errors import UsageError
from elbowroom.models import fit as fitting
from elbowroom.models import published
from elbowroom.models.base import Provenance
from elbowroom.models.curves import STREAMS, Curves, Row, Shape, Situation
from elbowroom.models.document import Document
from elbowroom.models.load import Direction, Load
from elbowroom.models.load import load_of as load_at
from elbowroom.models.message_size import MessageBandwidth
from elbowroom.virtual.credits import Credits, credits
from elbowroom.virtual.loads import load_streams

SIZES = (16_384, 131_072, 1_048_576, 8_388_608)
WITHIN = 0.02
METHODS = ("advice", "threshold", "all cores", "random", "nothing")


class Task(msgspec.Struct, frozen=True):
    machine: str
    number: int
    noise: float
    seed: int


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """True times of one job's step (s) by method, and the best of all its setups."""

    task: Task
    setups: int
    best: float
    times: dict[str, float]
    changes: tuple[str, ...]


@cache
def truth_of(machine: str) -> Credits:
    return credits(published.load(machine).model)


@cache
def document_of(machine: str, noise: float, seed: int) -> Document:
    """FLOW, fitted as in benchmarks/extended.py."""
    truth, task = truth_of(machine), extended.Task("G2", machine, noise, seed)
    base = [load_at(situation) for situation in extended.situations(truth.shape)]
    more = extended.more_runs(truth.shape)
    rows = (extended.measured(truth, loads, task) for loads in (base, more))
    return extended.flow_of(truth.shape, *rows, task)[0]


@cache
def thesis_of(machine: str, noise: float, seed: int) -> Document:
    """The thesis' model, calibrated on every number of cores of its two sample placements, and the law of
    message sizes.
    """
    truth, task = truth_of(machine), extended.Task("G2", machine, noise, seed)
    shape, far = truth.shape, truth.shape.numa_per_socket
    asked = [
        Situation(comp_node=node, comm_node=node, n=n)
        for node in (0, far)
        for n in range(1, shape.cores_first_socket + 1)
    ]
    found = extended.measured(truth, [load_at(situation) for situation in asked], task)
    sized = [load for load in extended.more_runs(shape) if _one_thread(load)]
    curves = Curves(
        shape=shape,
        rows=tuple(
            Row(situation=at, **{stream: getattr(row, stream) for stream in STREAMS})
            for at, row in zip(asked, found, strict=True)
        ),
    )
    observations = tuple(
        MessageBandwidth(node=row.load.messages.node, size=row.load.messages.size, bandwidth=row.comm_alone)
        for row in extended.measured(truth, sized, task)
        if row.load.messages is not None and row.load.messages.size is not None and row.comm_alone
    )
    return fitting.fit(curves, Provenance(origin="virtual", sizes=observations), created="")


def _one_thread(load: Load) -> bool:
    messages = load.messages
    return messages is not None and messages.size is not None and messages.threads == 1


def random_job(shape: Shape, rng: np.random.Generator, truth: Credits) -> Job:
    """A job that is neither all computation nor all communication, with two axes to choose or more."""
    while True:
        try:
            job = _random(shape, rng, truth)
            check(job)
            if len(setups(job, shape)) >= 4:
                return job
        except UsageError:
            continue


def _random(shape: Shape, rng: np.random.Generator, truth: Credits) -> Job:
    most = shape.cores_first_socket
    now = Setup(
        cores=int(rng.integers(1, most + 1)),
        comp_node=int(rng.integers(shape.nodes)),
        comm_node=int(rng.integers(shape.nodes)),
        cores_other=int(rng.integers(1, most)) if rng.random() < 0.25 else 0,
        size=int(rng.choice(SIZES)) if rng.random() < 0.6 else None,
        comm_threads=int(rng.choice([1, 2, 4])) if rng.random() < 0.3 else 1,
        overlap=bool(rng.random() < 0.8),
    )
    direction: Direction = rng.choice(["receive", "send", "both"], p=[0.6, 0.2, 0.2]).item()
    intensity = 0.0 if rng.random() < 0.5 else float(np.exp(rng.uniform(math.log(0.05), math.log(4.0))))
    plain = JobStep(comp_bytes=1.0, comm_bytes=256e6, direction=direction, intensity=intensity)
    alone = load_streams(truth, load_of(now, plain))
    # T_M between an eighth and eight times T_N, alone, as it runs now.
    ratio = float(np.exp(rng.uniform(-math.log(8.0), math.log(8.0))))
    step = msgspec.structs.replace(
        plain,
        comp_bytes=ratio * plain.comm_bytes / alone.comm_alone * alone.comp_alone,
        separator=float(rng.uniform(0.0, 0.2)) if rng.random() < 0.3 else 0.0,
    )
    may = _may(now, shape, rng)
    accelerator = None
    if rng.random() < 0.15:
        whole = step.comp_bytes / (alone.comp_alone * 1e6) if step.comp_bytes else 0.0
        accelerator = Accelerator(seconds=whole / float(rng.uniform(0.5, 6.0)))
        may = msgspec.structs.replace(may, w="best")
    return Job(name="random", step=step, now=now, may=may, accelerator=accelerator)


def _may(now: Setup, shape: Shape, rng: np.random.Generator) -> May:
    most = shape.cores_first_socket
    few = tuple(sorted({0, most // 3, 2 * most // 3, most - 1}))
    free = {
        "cores": "every",
        "cores_other": few if now.cores else None,
        "comp_node": "every",
        "comm_node": "every",
        "overlap": (True, False),
        "size": SIZES if now.size is not None else None,
        "comm_threads": (1, 2, 4),
    }
    chosen = {axis: value for axis, value in free.items() if value is not None and rng.random() < 0.5}
    return May(**chosen)


def true_times(job: Job, asked: Sequence[Setup], truth: Credits) -> np.ndarray:
    """The truth's step of each setup, s."""
    loads = [load_of(setup, job.step) for setup in asked]
    known = {load: load_streams(truth, load) for load in dict.fromkeys(loads)}
    streams = np.array([[[getattr(known[load], stream) for load in loads]] for stream in STREAMS])
    given = SetupRates(
        streams=streams, moved=np.array([job.step.moved]), discrepancy=np.zeros((4, len(loads)))
    )
    return steps(job, asked, given).total[0]


def simple(job: Job) -> Job | None:
    """The job as the threshold model can be asked; None where it cannot be told how it runs now."""
    if job.now.cores_other or not job.now.cores:
        return None
    may = msgspec.structs.replace(job.may, cores_other=None, comm_threads=None)
    return msgspec.structs.replace(
        job,
        step=msgspec.structs.replace(job.step, intensity=0.0, direction="receive"),
        now=msgspec.structs.replace(job.now, comm_threads=1),
        may=may,
    )


def by_threshold(job: Job, document: Document) -> Setup:
    """What the thesis' model advises; as now where it has no answer."""
    asked = simple(job)
    if asked is None:
        return job.now
    try:
        check(asked)
        found = advise(document, asked, name="threshold").advised.setup
    except UsageError:
        return job.now
    return msgspec.structs.replace(found, comm_threads=job.now.comm_threads)


def solve(task: Task) -> Outcome:
    truth = truth_of(task.machine)
    shape = msgspec.structs.replace(truth.shape, virtual=True)
    rng = np.random.default_rng([task.seed, task.number])
    job = random_job(shape, rng, truth)
    every = setups(job, shape)
    times = true_times(job, every, truth)
    document = document_of(task.machine, task.noise, task.seed)
    found = advise(document, job)
    full = [setup for setup in every if _as_now_but_cores(setup, job.now)]
    chosen = {
        "advice": found.advised.setup,
        "threshold": by_threshold(job, thesis_of(task.machine, task.noise, task.seed)),
        "all cores": max(full, key=lambda setup: setup.cores + setup.cores_other),
        "nothing": job.now,
    }
    of = {name: float(true_times(job, [setup], truth)[0]) for name, setup in chosen.items()}
    return Outcome(
        task=task,
        setups=len(every),
        best=float(times.min()),
        times={**of, "random": float(times.mean())},
        changes=tuple(f"{c.axis} {c.now}->{c.advised}" for c in found.changes),
    )


def _as_now_but_cores(setup: Setup, now: Setup) -> bool:
    return msgspec.structs.replace(setup, cores=now.cores, cores_other=now.cores_other) == now


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """A row for each method."""
    lines = [
        f"| {len(outcomes)} jobs | within 2 % of the best | mean excess | worst excess "
        "| worst beside nothing | longer than nothing by over 1 % |",
        "|---|---|---|---|---|---|",
    ]
    for name in METHODS:
        excess = np.array([item.times[name] / item.best - 1 for item in outcomes])
        beside = np.array([item.times[name] / item.times["nothing"] - 1 for item in outcomes])
        lines.append(
            f"| {name} | {np.mean(excess <= WITHIN):.1%} | {excess.mean():.2%} | {excess.max():.1%} "
            f"| {beside.max():+.1%} | {np.mean(beside > 0.01):.1%} |"
        )
    return lines


def by_machine(outcomes: Sequence[Outcome]) -> list[str]:
    names = list(dict.fromkeys(item.task.machine for item in outcomes))
    lines = [
        "| advice | jobs | within 2 % | mean excess | worst excess | worst beside nothing |",
        "|---|---|---|---|---|---|",
    ]
    for name in names:
        of = [item for item in outcomes if item.task.machine == name]
        excess = np.array([item.times["advice"] / item.best - 1 for item in of])
        beside = max(item.times["advice"] / item.times["nothing"] - 1 for item in of)
        lines.append(
            f"| {name} | {len(of)} | {np.mean(excess <= WITHIN):.0%} | {excess.mean():.2%} "
            f"| {excess.max():.1%} | {beside:+.1%} |"
        )
    return lines


def arguments() -> argparse.Namespace:
    parser = Command((__doc__ or "").splitlines()[0], smoke="--jobs 2 --machines henri --processes 1")
    parser.add_argument("--jobs", type=int, default=200)
    parser.add_argument("--machines", type=lambda text: text.split(","), default=list(published.names()))
    parser.add_argument("--noise", type=float, default=1.0, help="percent")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--each", action="store_true", help="a line for every job")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    machines = options.machines
    tasks = [
        Task(machines[number % len(machines)], number, options.noise / 100, options.seed)
        for number in range(options.jobs)
    ]
    # One machine's jobs after another, so that a process fits few models.
    tasks.sort(key=lambda task: machines.index(task.machine))
    with multiprocessing.Pool(options.processes) as pool:
        outcomes = pool.map(solve, tasks, chunksize=max(1, options.jobs // len(machines)))
    for item in outcomes if options.each else ():
        excess, beside = (item.times["advice"] / of - 1 for of in (item.best, item.times["nothing"]))
        print(
            f"{item.task.machine} {item.task.number}: {item.setups} setups, excess {excess:.2%}, "
            f"beside nothing {beside:+.1%}, {', '.join(item.changes) or 'nothing'}"
        )
    print("\n".join([*table(outcomes), "", *by_machine(outcomes)]))


if __name__ == "__main__":
    main()
