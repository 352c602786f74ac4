"""How far FLOW predicts loads: intensity, message sizes, threads, directions, both sockets, copies.

    python benchmarks/extended.py [--machines henri,billy] [--truths G2,moved,G3] [--noise 0,1,3] [--seeds 5]
                                  [--processes 2] [--json]

Truths: G2, the network of credits of nine virtual machines (elbowroom.virtual.loads); moved, the same with
every number changed at random (benchmarks/prediction.py), the peak of cores and the latency of messages too;
G3, the same machines simulated line by line (docs/guide/simulate.md), which wants a C++ compiler. FLOW is
calibrated with 24 runs of one kernel beside large receptions (`flow_design.design`), 3 with both sockets, and
24 runs of loads: 7 of other intensities, 8 message sizes, 3 with several threads, 2 that send, 2 in both
directions, 2 with a copy. Asked are random loads, none of which was measured, by what they add to the 24:
LOADS of each family and machine, the same for every noise and seed. Errors are means of
|true - predicted| / true in percent, against the truth without noise, mean over machines and seeds, and in
brackets the worst machine; `covered` is the share of true values together inside FLOW's 90 % intervals.
Beside it:

- base FLOW: FLOW from the 27 runs, for which a load is cores that write and large receptions;
- roofline: no contention. Cores get the least of their own bandwidth, their peak, and what all cores reached;
  messages t0 + s/B, as often as there are threads up to B; sending and both as measured once;
- told alone: no contention, but told what each side gets alone in that very load;
- plain max-min: told the same; cores, threads and copies share a node's capacity fairly.

Ten minutes; no result depends on the machine (docs/reference/models.md).
"""

from __future__ import annotations

import json
import math
import multiprocessing
import zlib
from collections.abc import Sequence
from functools import cache
from itertools import product

import msgspec
import numpy as np
from flow_design import design, mixed
from naive_loads import Answer, max_min, roofline, told_alone
from prediction import VALUES, arguments, moved

from elbowroom.launch.executables import simulate
from elbowroom.models import published
from elbowroom.models.curves import STREAMS, Curves, Row, Shape, Situation, Streams
from elbowroom.models.document import Calibration, Document, Models
from elbowroom.models.flow import fit as flow_fit
from elbowroom.models.flow.part import FlowPart, LoadPart
from elbowroom.models.load import Computing, Copy, Load, LoadRow, Messages, load_of
from elbowroom.models.predict import FittedModel
from elbowroom.virtual.credits import Credits, credits
from elbowroom.virtual.loads import load_streams
from elbowroom.virtual.machines import of_name
from elbowroom.virtual.machines import truth_of as truth_with
from elbowroom.virtual.requests import Requests

BUDGET = 24
LOADS = 16
"""Random loads of each family and machine."""

FAMILIES = ("base", "intensity", "sizes", "threads", "directions", "sockets", "copies", "everything")
MODELS = ("FLOW", "base FLOW", "roofline", "told alone", "plain max-min")
SIDES = ("together", "alone")
TOLD = ("told alone", "plain max-min")  # know what each side gets alone
TRUTHS = ("G2", "moved", "G3")
SMALLEST, LARGEST = 64, 64_000_000  # bytes of the messages asked
INTENSITIES = (0.05, 30.0)  # flop/B
DEMANDS = (2_000.0, 12_000.0)  # MB/s of copies
THREADS = 8
AFTER = 1000  # repetition number of what naive models are told, apart from what is calibrated on


Simulated = Credits | Requests


class Task(msgspec.Struct, frozen=True):
    truth: str
    machine: str
    noise: float
    seed: int


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """One model's answers to one family in one task: errors in percent, shares covered by intervals."""

    truth: str
    machine: str
    noise: float
    seed: int
    model: str
    family: str
    together: float
    alone: float
    covered: float | None = None


@cache
def truth_of(name: str, machine: str) -> Simulated:
    if name == "G3":
        definition = msgspec.structs.replace(of_name(machine), truth="requests")
        simulated = truth_with(definition, simulate)
        assert isinstance(simulated, Requests)
        return simulated
    found = credits(published.load(machine).model)
    if name == "G2":
        return found
    rng = np.random.default_rng(zlib.crc32(f"{machine} cores and messages".encode()))
    network, (core, message) = moved(found.network), np.exp(rng.uniform(-VALUES, VALUES, 2)).tolist()
    return Credits(
        msgspec.structs.replace(
            network, core_peak=core * network.core_peak, near_latency=message * network.near_latency
        )
    )


@cache
def exact(truth: Simulated, load: Load) -> Streams:
    found = load_streams(truth, load)
    return found.comp_alone, found.comm_alone, found.comp_together, found.comm_together


def measured(truth: Simulated, loads: Sequence[Load], task: Task, repetition: int = 0) -> list[LoadRow]:
    """One run of each load: every value times a normal factor of its own, the same in whatever order."""
    rows = []
    for load in loads:
        keys = (zlib.crc32(text) for text in (truth.shape.name.encode(), msgspec.json.encode(load)))
        factors = np.random.default_rng([task.seed, *keys, repetition]).normal(1.0, task.noise, 4)
        a, b, c, d = (value * float(f) for value, f in zip(exact(truth, load), factors, strict=True))
        rows.append(LoadRow(load=load, comp_alone=a, comm_alone=b, comp_together=c, comm_together=d))
    return rows


def situations(shape: Shape) -> tuple[Situation, ...]:
    """What FLOW itself is fitted to: the budget, and both sockets computing."""
    return (*design(shape, BUDGET), *mixed(shape))


def more_runs(shape: Shape) -> list[Load]:
    """What is measured beyond situations."""
    most, far = shape.cores_first_socket, shape.nodes - shape.numa_per_socket
    every, half = of_cores(most), of_cores(max(most // 2, 1))
    away = of_cores(most, node=far)
    large = Messages(node=0)
    intensities = [of_cores(most, intensity=value) for value in (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)]
    sizes = (64, 1 << 10, 1 << 13, 1 << 16, 1 << 18, 1 << 20, 1 << 23)
    return [
        *(Load(computing=(group,), messages=large) for group in intensities),
        Load(computing=(of_cores(max(most // 2, 1), intensity=2.0),), messages=large),
        *(Load(computing=(every,), messages=Messages(node=0, size=size)) for size in sizes),
        Load(computing=(half,), messages=Messages(node=0, size=1 << 16)),
        *(
            Load(computing=(every,), messages=Messages(node=0, size=size, threads=threads))
            for size, threads in ((1 << 13, 2), (1 << 13, 4), (1 << 16, 8))
        ),
        *(
            Load(computing=(group,), messages=Messages(node=group.node, direction=way))
            for way in ("send", "both")
            for group in (every, away)
        ),
        Load(computing=(every,), messages=large, copies=(Copy(node=0, demand=10_000.0),)),
        Load(messages=Messages(node=0, direction="both"), copies=(Copy(node=0, demand=10_000.0),)),
    ]


def of_cores(count: int, node: int = 0, intensity: float = 0.0) -> Computing:
    return Computing(socket=0, node=node, count=count, intensity=intensity)


def asked_of(shape: Shape, family: str) -> list[Load]:
    """Random loads of a family, none of them measured."""
    rng = np.random.default_rng([zlib.crc32(text.encode()) for text in (shape.name, family)])
    known = {load_of(at) for at in situations(shape)} | set(more_runs(shape))
    found: list[Load] = []
    while len(found) < LOADS:
        load = drawn(shape, family, rng)
        if load not in known:
            found.append(load)
    return found


def drawn(shape: Shape, family: str, rng: np.random.Generator) -> Load:
    def chance(share: float) -> bool:
        return bool(rng.random() < share)

    def between(low: float, high: float) -> float:
        return float(math.exp(rng.uniform(math.log(low), math.log(high))))

    def node() -> int:
        return int(rng.integers(shape.nodes))

    every = family == "everything"
    sockets = [0] if family not in ("sockets", "everything") or chance(0.5 * every) else [0, 1]
    shared = node()
    groups = tuple(
        Computing(
            socket=socket,
            node=node() if len(sockets) > 1 and chance(0.5) else shared,
            count=int(rng.integers(1, shape.cores_first_socket + 1)),
            intensity=between(*INTENSITIES) if family == "intensity" or (every and chance(0.6)) else 0.0,
        )
        for socket in sockets
    )
    sized = family in ("sizes", "threads") or (family in ("directions", "everything") and chance(0.5))
    ways = ("receive", "send", "both")
    messages = Messages(
        node=shared if chance(0.5) else node(),
        size=round(between(SMALLEST, LARGEST)) if sized else None,
        threads=int(rng.integers(2, THREADS + 1)) if family == "threads" or (every and chance(0.4)) else 1,
        direction=ways[int(rng.integers(3))]
        if every
        else ways[int(rng.integers(1, 3))]
        if family == "directions"
        else "receive",
    )
    copied = family == "copies" or (every and chance(0.3))
    copies = (Copy(node=node(), demand=float(rng.uniform(*DEMANDS))),) if copied else ()
    return Load(computing=groups, messages=messages, copies=copies)


def score(task: Task, model: str, family: str, answers: np.ndarray, true: np.ndarray) -> Score:
    """`answers` (loads, 4), or with intervals (loads, 4, 3): value, low, high; `true` (loads, 4), MB/s."""
    values = answers if answers.ndim == 2 else answers[:, :, 0]
    there = true > 0
    errors = np.where(there, np.abs(values - true) / np.where(there, true, 1.0), np.nan)
    covered = None
    if answers.ndim == 3:
        inside = (answers[:, 2:, 1] <= true[:, 2:]) & (true[:, 2:] <= answers[:, 2:, 2])
        covered = float(inside[there[:, 2:]].mean())
    return Score(
        **msgspec.structs.asdict(task),
        model=model,
        family=family,
        together=100 * float(np.nanmean(errors[:, 2:])),
        alone=100 * float(np.nanmean(errors[:, :2])),
        covered=covered,
    )


def solve(task: Task) -> list[Score]:
    truth = truth_of(task.truth, task.machine)
    shape = truth.shape
    base = measured(truth, [load_of(at) for at in situations(shape)], task)
    more = measured(truth, more_runs(shape), task)
    flow, plain = flow_of(shape, base, more, task)
    lines = roofline(shape, [*base, *more])
    found = []
    for family in FAMILIES:
        asked = asked_of(shape, family)
        true = np.array([exact(truth, load) for load in asked])
        told = measured(truth, asked, task, AFTER)
        for model, answers in (
            ("FLOW", intervals(flow, asked)),
            ("base FLOW", without_extension(plain, asked)),
            ("roofline", lines(asked)),
            ("told alone", told_alone(told)),
            ("plain max-min", max_min(shape, base, told)),
        ):
            found.append(score(task, model, family, np.array(answers), true))
    return found


def flow_of(
    shape: Shape, base: Sequence[LoadRow], more: Sequence[LoadRow], task: Task
) -> tuple[Document, Document]:
    """FLOW with its extension, and without any."""
    curves = Curves(
        shape=shape,
        rows=tuple(
            Row(situation=at, **{stream: getattr(row, stream) for stream in STREAMS})
            for at, row in zip(situations(shape), base, strict=True)
        ),
    )
    flow = flow_fit.fit(curves, seed=task.seed)
    found = flow_fit.fit(curves, more, seed=task.seed, flow=flow)
    calibration = Calibration(
        run="", plan="", origin="virtual", kernel="memset_nt", size=LARGEST, runs=len(base), n_low=1,
        n_high=shape.cores_first_socket,
    )  # fmt: skip

    def document(of: FlowPart, load: LoadPart | None) -> Document:
        shared = ("names", "values", "low", "high", "draws", "discrepancy")
        part = FlowPart(**{name: getattr(of, name) for name in shared}, load=load)
        return Document(
            elbowroom="",
            created="",
            machine=shape,
            calibration=calibration,
            models=Models(flow=part),
        )

    return document(found, found.load), document(flow, None)


def intervals(document: Document, loads: Sequence[Load]) -> list[list[tuple[float, float, float]]]:
    """FLOW's value, low and high of the four bandwidths of each load."""
    found = FittedModel(document).predict_loads(loads)
    return [
        [(at.value, at.low, at.high) for at in (getattr(item, stream) for stream in STREAMS)]
        for item in found
    ]


def without_extension(document: Document, loads: Sequence[Load]) -> list[Answer]:
    """FLOW that takes every load for cores that do nothing but write, beside large receptions."""
    stripped = [
        Load(
            computing=tuple(msgspec.structs.replace(group, intensity=0.0) for group in load.computing),
            messages=None if load.messages is None else Messages(node=load.messages.node),
        )
        for load in loads
    ]
    found = FittedModel(document).draws(stripped)
    a, b, c, d = (getattr(found, stream)[0].tolist() for stream in STREAMS)
    return list(zip(a, b, c, d, strict=True))


def cell(scores: Sequence[Score], model: str, side: str, family: str | None) -> str:
    """Mean over machines, and the worst machine, of the means over seeds (and families)."""
    found: dict[str, list[float]] = {}
    for item in scores:
        if item.model == model and family in (None, item.family):
            found.setdefault(item.machine, []).append(getattr(item, side))
    errors = {name: float(np.mean(values)) for name, values in found.items()}
    return f"{np.mean(list(errors.values())):.2f} ({max(errors.values()):.2f})"


def show(title: str, scores: Sequence[Score], machines: Sequence[str]) -> None:
    """Markdown tables of one truth and noise: together and alone, by family; then FLOW's machines."""
    for side in SIDES:
        print(f"\n| {side}, {title} | " + " | ".join(FAMILIES) + " | all |")
        print("|---" * (len(FAMILIES) + 2) + "|")
        for model in MODELS if side == "together" else [name for name in MODELS if name not in TOLD]:
            cells = [cell(scores, model, side, family) for family in (*FAMILIES, None)]
            print(f"| {model} | " + " | ".join(cells) + " |")
        if side == "together":
            shares = [covered(scores, family) for family in (*FAMILIES, None)]
            print("| covered | " + " | ".join(f"{share:.0%}" for share in shares) + " |")
    errors = {
        name: cell([item for item in scores if item.machine == name], "FLOW", "together", None)
        for name in machines
    }
    print("\nFLOW together: " + ", ".join(f"{name} {text.split()[0]}" for name, text in errors.items()))


def covered(scores: Sequence[Score], family: str | None) -> float:
    """Mean share of FLOW's intervals that hold the truth."""
    shares = [item.covered for item in scores if item.covered is not None and family in (None, item.family)]
    return float(np.mean(shares))


def main() -> None:
    options = arguments((__doc__ or "").splitlines()[0], TRUTHS, TRUTHS, smoke="--truths G2 --noise 0")
    tasks = [
        Task(truth, machine, noise, seed)
        for truth, noise, machine in product(options.truths, options.noise, options.machines)
        for seed in range(options.seeds if noise > 0 else 1)  # without noise all seeds are the same
    ]
    with multiprocessing.Pool(options.processes) as pool:
        scores = [item for found in pool.imap(solve, tasks) for item in found]
    if options.json:
        print(json.dumps(msgspec.to_builtins(scores)))
        return
    for truth, noise in product(options.truths, options.noise):
        chosen = [item for item in scores if item.truth == truth and item.noise == noise]
        show(f"{truth}, {noise * 100:g} % noise", chosen, options.machines)


if __name__ == "__main__":
    main()
