"""How often FLOW's 90 % intervals hold the truth, on machines made at random (docs/reference/models.md).

    python benchmarks/intervals.py [--machines henri,billy] [--variants 3] [--first 1000] [--noise 0,1,3]
                                   [--seeds 5] [--processes 1] [--json]

Each machine is G2 of a published machine with every number moved at random as in benchmarks/prediction.py:
`--variants` of them for each name, numbered from `--first`, so that another `--first` makes machines that
nobody has looked at. FLOW is calibrated and asked as in benchmarks/prediction.py:

- points: 24 runs where `flow_design.design` wants them, asked everywhere else on one socket;
- placements: 24 runs on the two sample placements of the thesis, asked in all others;
- sockets: 3 more runs with both sockets computing (27), asked on a grid of both.

`covered` is the share of the true comp_together and comm_together inside the intervals, `error` the mean of
|true - predicted| / true, both in percent. Without noise all seeds have the same runs: one is fitted and
counts `--seeds` times. About one second for each fit; no result depends on the machine.
"""

from __future__ import annotations

import json
import multiprocessing
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product
from typing import Literal

import msgspec
import numpy as np
from command import Command
from flow_design import design, mixed
from prediction import BUDGET, Task, both_sockets, everywhere, measured, moved, names_of, on_samples

from elbowroom.models import published
from elbowroom.models.curves import Curves, Row, Situation
from elbowroom.models.evaluate import sample_placements
from elbowroom.models.flow import fit as flow_fit
from elbowroom.models.flow.model import bands
from elbowroom.virtual.credits import Credits, credits
from elbowroom.virtual.truth import Truth

Question = Literal["points", "placements", "sockets"]
QUESTIONS: tuple[Question, ...] = ("points", "placements", "sockets")
TOGETHER = (2, 3)
"""Where comp_together and comm_together stand in STREAMS."""


class Case(msgspec.Struct, frozen=True, order=True):
    """One calibration: a machine, the noise of its runs (relative) and their seed."""

    machine: str
    variant: int
    noise: float
    seed: int

    @property
    def name(self) -> str:
        return f"{self.machine} {self.variant}"


class Coverage(msgspec.Struct, frozen=True):
    """What one fit is worth for one question: `inside` of `asked` true values, their mean error in percent;
    `weight`: how many seeds it stands for.
    """

    case: Case
    question: Question
    inside: int
    asked: int
    error: float
    weight: int = 1


@cache
def machine_of(name: str, variant: int) -> Truth:
    return Credits(moved(credits(published.load(name).model).network, variant))


def calibrations(case: Case) -> list[tuple[Question, Curves, list[Situation]]]:
    """Every question with its runs and the situations that it asks."""
    truth = machine_of(case.machine, case.variant)
    shape, samples = truth.shape, sample_placements(truth.shape)
    # The noise is drawn by the name of the machine, which its variants share, and the seed.
    task = Task("", case.machine, case.noise, 1000 * case.variant + case.seed)

    def runs(asked: Sequence[Situation]) -> tuple[Row, ...]:
        return tuple(measured(truth, asked, task))

    every, spread = everywhere(shape), runs(design(shape, BUDGET))
    known = {row.situation for row in spread}
    elsewhere = [at for at in every if (at.comp_node, at.comm_node) not in samples]
    both = [at for at in both_sockets(shape) if at not in mixed(shape)]
    return [
        ("points", Curves(shape=shape, rows=spread), [at for at in every if at not in known]),
        ("placements", Curves(shape=shape, rows=runs(on_samples(shape, BUDGET))), elsewhere),
        ("sockets", Curves(shape=shape, rows=(*spread, *runs(mixed(shape)))), both),
    ]


def solve(case: Case, questions: Sequence[Question] = QUESTIONS) -> list[Coverage]:
    truth = machine_of(case.machine, case.variant)
    found = []
    for question, curves, asked in calibrations(case):
        if question not in questions:
            continue
        value, low, high = bands(flow_fit.fit(curves, seed=case.seed), curves.shape, asked)
        true = np.array([truth.streams(at) for at in asked]).T
        inside = ((low <= true) & (true <= high))[TOGETHER, :]
        error = (np.abs(value - true) / true)[TOGETHER, :]
        found.append(Coverage(case, question, int(inside.sum()), inside.size, 100 * float(error.mean())))
    return found


def solved(cases: Sequence[Case], processes: int) -> list[Coverage]:
    """The coverage of all cases, in order."""
    if processes == 1:
        return [item for case in cases for item in solve(case)]
    with multiprocessing.Pool(processes) as pool:
        return [item for found in pool.imap(solve, cases) for item in found]


def share(items: Sequence[Coverage]) -> float:
    """Percent of the true values inside; every fit counts as one, however many situations it was asked."""
    weights = [item.weight for item in items]
    return 100 * float(np.average([item.inside / item.asked for item in items], weights=weights))


def mean_error(items: Sequence[Coverage]) -> float:
    return float(np.average([item.error for item in items], weights=[item.weight for item in items]))


def show(items: Sequence[Coverage], noises: Sequence[float]) -> None:
    """Every machine by question and by noise, then the mean, the least and the greatest of the machines."""
    columns: list[tuple[str, Callable[[Coverage], bool]]] = [("all", lambda _: True)]
    columns += [(question, lambda item, q=question: item.question == q) for question in QUESTIONS]
    columns += [(f"{noise * 100:g} %", lambda item, n=noise: item.case.noise == n) for noise in noises]
    print(f"{'covered, %':24}" + "".join(f"{title:>12}" for title, _ in columns) + f"{'error, %':>12}")
    machines = sorted({item.case.name for item in items})
    table = []
    for name in machines:
        own = [item for item in items if item.case.name == name]
        row = [share([item for item in own if chosen(item)]) for _, chosen in columns]
        table.append([*row, mean_error(own)])
        print(f"{name:24}" + "".join(f"{value:12.1f}" for value in row) + f"{table[-1][-1]:12.2f}")
    for title, over in (("mean", np.mean), ("least", np.min), ("greatest", np.max)):
        row = over(np.array(table), axis=0).tolist()
        print(f"{title:24}" + "".join(f"{value:12.1f}" for value in row[:-1]) + f"{row[-1]:12.2f}")
    for question, noise in product(QUESTIONS, noises):
        part = [item for item in items if item.question == question and item.case.noise == noise]
        by_machine = [share([item for item in part if item.case.name == name]) for name in machines]
        print(
            f"{question}, {noise * 100:g} % noise: covered {np.mean(by_machine):.1f} % "
            f"(least {min(by_machine):.1f}), error {mean_error(part):.2f} %"
        )


def main() -> None:
    parser = Command(
        (__doc__ or "").splitlines()[0], smoke="--machines henri --variants 1 --seeds 1 --noise 1"
    )
    parser.add_argument("--machines", type=names_of, default=list(published.names()))
    parser.add_argument("--variants", type=int, default=3)
    parser.add_argument("--first", type=int, default=1000)
    parser.add_argument("--noise", type=lambda text: [float(part) / 100 for part in text.split(",")])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(noise=[0.0, 0.01, 0.03])
    options = parser.parse_args()
    variants = range(options.first, options.first + options.variants)
    cases = [
        Case(name, variant, noise, seed)
        for name, variant, noise in product(options.machines, variants, options.noise)
        for seed in range(options.seeds if noise > 0 else 1)
    ]
    items = [
        msgspec.structs.replace(item, weight=options.seeds if item.case.noise == 0 else 1)
        for item in solved(cases, options.processes)
    ]
    if options.json:
        print(json.dumps(msgspec.to_builtins(items)))
        return
    show(items, options.noise)


if __name__ == "__main__":
    main()
