"""Errors of FLOW and the other models on virtual machines of three kinds (docs/reference/models.md).

    python benchmarks/prediction.py [--machines henri,billy] [--truths G1,G2,moved,G3] [--noise 0,1,3]
                                    [--seeds 5] [--processes 2] [--json]

Truths: G1, the thesis' own curves; G2, a closed network of credits whose law is none of the models'; moved,
nine machines that nobody looked at while FLOW was written: G2 with every capacity, latency and number of
credits changed at random by a factor of up to 1.4, and every waiting time by up to 2.7. On request, G3: the
nine machines line by line, as benchmarks/simulate.py asks for. Errors are means of
|true - predicted| / true of comp_together and comm_together in percent, against the truth without noise, mean
over machines and seeds, and in brackets the worst machine:

- placements: calibrated on the two sample placements of the thesis only, asked in all others;
- points: 24 runs where `flow_design.design` wants them, asked everywhere else (one socket computing);
- table 6.1: the same, asked everywhere, against noisy measurements, as the thesis counts;
- sockets: 3 more runs with both sockets computing (27), asked on a grid of both; not G1;
- covered: share of the true values of both streams inside FLOW's 90 % intervals, for the three of them.

`few` models had the 24 runs that FLOW had, `full` ones every n of both sample placements. The naive models
are told what each stream gets alone in the very situation asked. Ten minutes (OMP_NUM_THREADS=1 saves some);
no result depends on the machine.
"""

from __future__ import annotations

import argparse
import json
import math
import multiprocessing
import zlib
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import product
from typing import Literal

import msgspec
import numpy as np
from command import Command
from flow_design import design, mixed

from elbowroom.errors import UsageError
from elbowroom.models import published
from elbowroom.models.curves import STREAMS, Curves, Row, Shape, Situation
from elbowroom.models.evaluate import (
    Answer,
    Predictor,
    max_min,
    no_contention,
    sample_placements,
    threshold_predictor,
)
from elbowroom.models.flow import fit as flow_fit
from elbowroom.models.flow.model import bands
from elbowroom.models.flow.part import FlowPart
from elbowroom.models.load import Prediction
from elbowroom.models.threshold import fit as threshold_fit
from elbowroom.stats.interval import Interval
from elbowroom.virtual.credits import Credits, DataSide, NodeResources, credits
from elbowroom.virtual.machines import PublishedCurves
from elbowroom.virtual.network import Resource
from elbowroom.virtual.truth import Truth, generator

Question = Literal["placements", "points", "table 6.1", "sockets"]
QUESTIONS: tuple[Question, ...] = ("placements", "points", "table 6.1", "sockets")
TRUTHS = ("G1", "G2", "moved")
LINE_BY_LINE = "G3"
VALUES, WAITING = math.log(1.4), 1.0  # of the machines moved: largest logarithm of a factor
BUDGET = 24
GRID = 6  # numbers of cores of either socket that are asked with both computing
MODELS = (
    "FLOW",
    "thesis, full",
    "thesis, few",
    "robust, full",
    "robust, few",
    "plain max-min",
    "no contention",
)
AFTER = 1000  # repetition number of what is measured to compare with, apart from what is calibrated on


class Task(msgspec.Struct, frozen=True):
    truth: str
    machine: str
    noise: float
    seed: int


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """One model's answer to one question in one task: error in percent, None where it has no answer."""

    truth: str
    machine: str
    noise: float
    seed: int
    model: str
    question: Question
    error: float | None
    covered: float | None = None


@cache
def truth_of(name: str, machine: str) -> Truth:
    model = published.load(machine).model
    if name == "G1":
        return PublishedCurves(model)
    if name == LINE_BY_LINE:
        # Imported here: only this truth needs a compiler.
        from elbowroom.launch.executables import simulate
        from elbowroom.virtual.machines import of_name
        from elbowroom.virtual.request_calibration import scaled
        from elbowroom.virtual.requests import Requests

        return Requests(scaled(of_name(machine), simulate), simulate)
    return credits(model) if name == "G2" else Credits(moved(credits(model).network))


def moved(network: NodeResources, variant: int | None = None) -> NodeResources:
    """The network of a machine that nobody has seen: the same streams and routes, all numbers moved; another
    one for each `variant`.
    """
    name = zlib.crc32(network.shape.name.encode())
    rng = np.random.default_rng(name if variant is None else [name, variant])

    def times(value: float, spread: float) -> float:
        return float(value * math.exp(rng.uniform(-spread, spread)))

    def resource(item: Resource) -> Resource:
        return Resource(capacity=times(item.capacity, VALUES), delay=times(item.delay, WAITING))

    def side(item: DataSide) -> DataSide:
        return DataSide(
            **{name: times(value, VALUES) for name, value in msgspec.structs.asdict(item).items()}
        )

    return msgspec.structs.replace(
        network,
        uplink=resource(network.uplink),
        link=resource(network.link),
        memory=resource(network.memory),
        local=side(network.local),
        remote=side(network.remote) if network.remote is not None else None,
    )


def measured(truth: Truth, asked: Sequence[Situation], task: Task, repetition: int = 0) -> list[Row]:
    rows = []
    for at in asked:
        rng = generator(task.seed, truth.shape, at, repetition)
        values = truth.sample(at, task.noise, rng)
        rows.append(
            Row(
                situation=at,
                comp_alone=values[0],
                comm_alone=values[1],
                comp_together=values[2],
                comm_together=values[3],
            )
        )
    return rows


def everywhere(shape: Shape) -> list[Situation]:
    nodes, cores = range(shape.nodes), range(1, shape.cores_first_socket + 1)
    return [Situation(comp_node=i, comm_node=j, n=n) for i, j, n in product(nodes, nodes, cores)]


def both_sockets(shape: Shape) -> list[Situation]:
    """A grid of both sockets' cores in every placement, the largest machine's thinned to every third."""
    most = shape.cores_first_socket
    counts = sorted({round(1 + (most - 1) * k / (GRID - 1)) for k in range(GRID)})
    nodes = range(shape.nodes)
    found = [
        Situation(comp_node=i, comm_node=j, n=n, n_other=other)
        for i, j, n, other in product(nodes, nodes, counts, counts)
    ]
    return found[::3] if shape.numa_per_socket > 1 else found


def on_samples(shape: Shape, budget: int | None) -> list[Situation]:
    """Every n of the sample placements, or that many spread evenly over both."""
    places = sample_placements(shape)
    most = shape.cores_first_socket
    each = most if budget is None else min(budget // len(places), most)
    counts = sorted({round(1 + (most - 1) * k / (each - 1)) for k in range(each)})
    return [Situation(comp_node=i, comm_node=j, n=n) for i, j in places for n in counts]


def predictions(part: FlowPart, shape: Shape, asked: Sequence[Situation]) -> list[Prediction]:
    """What a fitted FLOW predicts for situations."""
    value, low, high = bands(part, shape, asked)
    return [
        Prediction(
            situation=at,
            **{
                stream: Interval(value=value[k, s], low=low[k, s], high=high[k, s])
                for k, stream in enumerate(STREAMS)
            },
        )
        for s, at in enumerate(asked)
    ]


def calibrated(full: Curves, given: Curves, seed: int) -> dict[str, Predictor]:
    """The models, each with all of the samples or with what FLOW is given."""
    flow = flow_fit.fit(given, seed=seed)
    return {
        "FLOW": lambda asked: predictions(flow, given.shape, asked),
        "thesis, full": threshold(full, "thesis"),
        "thesis, few": threshold(given, "thesis"),
        "robust, full": threshold(full, "robust"),
        "robust, few": threshold(given, "robust"),
    }


def threshold(curves: Curves, method: threshold_fit.Method) -> Predictor:
    try:
        model = threshold_fit.fit(curves, method, resamples=0).model
    except UsageError:
        return lambda asked: [None] * len(asked)
    return threshold_predictor(model, faithful=method == "thesis")


def score(answers: Sequence[Answer], true: np.ndarray) -> tuple[float | None, float | None]:
    """Mean error in percent and share covered of both streams together; None where one is not answered.
    `true`: (situations, 4), MB/s.
    """
    errors, inside = [], []
    for answer, (_, _, comp, comm) in zip(answers, true, strict=True):
        if answer is None:
            return None, None
        if isinstance(answer, Prediction):
            pairs = ((answer.comp_together, comp), (answer.comm_together, comm))
            errors += [abs(found.value - value) / value for found, value in pairs]
            inside += [found.low <= value <= found.high for found, value in pairs]
        else:
            errors += [abs(answer[2] - comp) / comp, abs(answer[3] - comm) / comm]
    return 100 * float(np.mean(errors)), float(np.mean(inside)) if inside else None


def solve(task: Task) -> list[Score]:
    truth = truth_of(task.truth, task.machine)
    shape, samples = truth.shape, sample_placements(truth.shape)
    full = Curves(shape=shape, rows=tuple(measured(truth, on_samples(shape, None), task)))
    few = Curves(shape=shape, rows=tuple(measured(truth, on_samples(shape, BUDGET), task)))
    spread = Curves(shape=shape, rows=tuple(measured(truth, design(shape, BUDGET), task)))
    every = everywhere(shape)
    elsewhere = [at for at in every if (at.comp_node, at.comm_node) not in samples]
    known = {row.situation for row in spread.rows}
    unseen = [at for at in every if at not in known]
    questions: list[tuple[Curves, dict[Question, list[Situation]]]] = [
        (few, {"placements": elsewhere}),
        (spread, {"points": unseen, "table 6.1": every}),
    ]
    if task.truth != "G1":
        more = tuple(measured(truth, mixed(shape), task))
        both = [at for at in both_sockets(shape) if at not in mixed(shape)]
        questions.append((msgspec.structs.replace(spread, rows=(*spread.rows, *more)), {"sockets": both}))
    found = []
    for given, asked_of in questions:
        models = calibrated(full, given, task.seed)
        for question, asked in asked_of.items():
            found += answered(task, truth, models, question, asked, full)
    return found


def solved(tasks: Sequence[Task], processes: int) -> list[Score]:
    """The scores of all tasks, in order."""
    with multiprocessing.Pool(processes) as pool:
        return [item for found in pool.imap(solve, tasks) for item in found]


def answered(
    task: Task,
    truth: Truth,
    models: Mapping[str, Predictor],
    question: Question,
    asked: Sequence[Situation],
    full: Curves,
) -> list[Score]:
    """Every model's score, the naive ones told what a run there measures alone."""
    noisy = question == "table 6.1"
    rows = measured(truth, asked, task, AFTER)
    true = np.array([row.streams if noisy else truth.streams(row.situation) for row in rows])
    answers = {name: predictor(asked) for name, predictor in models.items()}
    answers["plain max-min"] = max_min(full, rows, sample_placements(truth.shape))
    answers["no contention"] = no_contention(rows)
    found = []
    for name, said in answers.items():
        error, covered = score(said, true)
        found.append(
            Score(
                **msgspec.structs.asdict(task),
                model=name,
                question=question,
                error=error,
                covered=None if noisy else covered,
            )
        )
    return found


def by_machine(scores: Sequence[Score], model: str, question: Question) -> dict[str, float]:
    """Mean error over seeds of each machine that was answered."""
    found: dict[str, list[float]] = {}
    for item in scores:
        if item.model == model and item.question == question and item.error is not None:
            found.setdefault(item.machine, []).append(item.error)
    return {name: float(np.mean(errors)) for name, errors in found.items()}


def cell(scores: Sequence[Score], model: str, question: Question) -> str:
    errors = by_machine(scores, model, question)
    if not errors:
        return "-"
    missing = len({item.machine for item in scores}) - len(errors)
    note = f" -{missing}" if missing else ""
    return f"{np.mean(list(errors.values())):.2f} ({max(errors.values()):.2f}){note}"


def show(truth: str, noise: float, scores: Sequence[Score], machines: Sequence[str]) -> None:
    print(f"\n{truth}, noise {noise * 100:g} %: mean error in % (worst machine)")
    print(f"{'':15}" + "".join(f"{question:>17}" for question in QUESTIONS))
    for model in MODELS:
        print(f"{model:15}" + "".join(f"{cell(scores, model, question):>17}" for question in QUESTIONS))
    covered = []
    for question in QUESTIONS:
        shares = [item.covered for item in scores if item.question == question and item.covered is not None]
        covered.append(f"{100 * np.mean(shares):.0f} %" if shares else "-")
    print(f"{'covered by FLOW':15}" + "".join(f"{text:>17}" for text in covered))
    for question in QUESTIONS:
        errors = by_machine(scores, "FLOW", question)
        if errors:
            print(f"FLOW, {question}: " + ", ".join(f"{name} {errors[name]:.2f}" for name in machines))


def names_of(text: str) -> list[str]:
    names = text.split(",")
    unknown = set(names) - set(published.names())
    if unknown:
        raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: choose from {', '.join(published.names())}")
    return names


def arguments(text: str, truths: Sequence[str], default: Sequence[str], smoke: str) -> argparse.Namespace:
    """What both tables of errors take on their command lines; `text`: the first line of the help."""

    def truths_of(said: str) -> list[str]:
        names = said.split(",")
        unknown = set(names) - set(truths)
        if unknown:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: choose from {', '.join(truths)}")
        return names

    parser = Command(text, smoke=f"--machines henri --seeds 1 --processes 1 {smoke}")
    parser.add_argument("--machines", type=names_of, default=list(published.names()))
    parser.add_argument("--truths", type=truths_of, default=list(default))
    parser.add_argument("--noise", type=lambda said: [float(part) / 100 for part in said.split(",")])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(noise=[0.0, 0.01, 0.03])
    return parser.parse_args()


def main() -> None:
    text, truths = (__doc__ or "").splitlines()[0], (*TRUTHS, LINE_BY_LINE)
    options = arguments(text, truths, TRUTHS, smoke="--truths G2 --noise 1")
    tasks = [
        Task(truth, machine, noise, seed)
        for truth, noise, machine in product(options.truths, options.noise, options.machines)
        for seed in range(options.seeds if noise > 0 else 1)  # without noise all seeds are the same
    ]
    scores = solved(tasks, options.processes)
    if options.json:
        print(json.dumps(msgspec.to_builtins(scores)))
        return
    for truth, noise in product(options.truths, options.noise):
        chosen = [item for item in scores if item.truth == truth and item.noise == noise]
        show(truth, noise, chosen, options.machines)


if __name__ == "__main__":
    main()
