"""Evidence of whole studies from planted truths: every measurement is expanded as on a real machine and
answered by a truth, so that each statement is judged from points as a run has them, without a run.

What a virtual machine can answer is answered by one with effects (`planted`); frequencies, factorizations and
the steps of the diffusion solver, which no virtual machine has, by the truths of a World.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import msgspec
import numpy as np

import planted
from elbowroom import experiments
from elbowroom.experiments.experiment import RunPart
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.launch.virtual import load as load_machine
from elbowroom.machine.topology import Machine, Nic
from elbowroom.measure.measurements import collect
from elbowroom.measure.study import StudyRequest, StudyRun, overrides, runs_of
from elbowroom.points.factorizations import FactorizationProgram
from elbowroom.points.payload import Trace
from elbowroom.points.point import Point
from elbowroom.points.steps import ApplicationSteps
from elbowroom.points.unit import Entry, Unit
from elbowroom.results.points import results
from elbowroom.results.result import PointResult
from elbowroom.stats.summary import Samples
from elbowroom.studies import STUDIES
from elbowroom.studies.evidence import Evidence, RunEvidence
from elbowroom.studies.study import Study
from elbowroom.virtual.answers import VirtualMachine
from elbowroom.virtual.definition import decode
from elbowroom.virtual.effects import HOSTS
from sampled import entries, with_payload

REPETITIONS = 9
MHz = Callable[[str, str], float]
"""Frequency of the cores of a role in a phase."""


def unchanged(phase: str, role: str) -> float:
    """Every core always runs at 2.5 GHz."""
    return 2500.0


@dataclass(frozen=True)
class World:
    """A truth of everything that a study measures.

    `effects`: of the virtual machine; `near`, `far`: its latencies, us. `latency`, `bandwidth`: of messages
    alone at constant (core, uncore) frequencies in kHz; `mhz` by kernel. `step`: us of a variant on so many
    nodes with so many threads. `gains`: times as fast by (task, tree); `complete`: share of complete
    broadcasts. `noise`: relative standard deviation of every value.
    """

    effects: Sequence[planted.Effect] = ()
    near: float = 1.39
    far: float = 1.67
    latency: Callable[[int, int], float] = lambda core, uncore: 1.8
    bandwidth: Callable[[int, int], float] = lambda core, uncore: 10_500.0
    mhz: Mapping[str, MHz] = field(default_factory=dict)
    step: Callable[[str, int, int], float] = lambda variant, nodes, threads: 1000.0
    gains: Mapping[tuple[str, str], float] = field(default_factory=dict)
    complete: float = 0.98
    noise: float = 0.001


def machine_for(paper: str, world: World) -> tuple[VirtualMachine, Machine]:
    """A virtual machine with the world's effects, and the real machine that it stands for: one host for
    messages within a node, eight for others, with the permission to set frequencies and Omni-Path.
    """
    parts = [planted.HENRI.format(name="henri", near=world.near, far=world.far)]
    for effect in world.effects:
        parts += ["[[effects]]", *(f"{key} = {planted.toml(value)}" for key, value in effect.items())]
    definition, published = decode("\n".join(parts), "planted"), load_machine("henri").definition
    definition = msgspec.structs.replace(definition, local=published.local, remote=published.remote)
    virtual = VirtualMachine(definition, noise=0.0)
    virtual.noise = world.noise  # More than a user may ask for.
    here = msgspec.structs.replace(
        virtual.machine,
        virtual=False,
        hosts=1 if paper == "tan2012" else 8,
        permitted=("core_frequency", "uncore_frequency"),
        frequency_ranges={
            "core_frequency": (1_000_000, 2_300_000),
            "uncore_frequency": (1_200_000, 2_400_000),
        },
        nics=(Nic(name="hfi1_0", kind="openfabrics", node=0),),
    )
    return virtual, here


def evidence(paper: str, world: World, only: Sequence[str] = ()) -> tuple[Study, Machine, Evidence]:
    """The evidence of a quick study of a paper in a world; `only`: the measurements to make."""
    study = STUDIES.get(paper)
    virtual, here = machine_for(paper, world)
    asked = StudyRequest(study=paper, out="", quick=True)
    parts: dict[str, list[tuple[StudyRun, tuple[PointResult, ...]]]] = {}
    for run in runs_of(study, here):
        if not only or run.measurement.name in only:
            own = run.measurement.plan in OWN
            there = msgspec.structs.replace(here, hosts=run.hosts if own else min(run.hosts, HOSTS))
            changed = overrides(asked, run.measurement, here)
            settings = {
                **changed.settings,
                "repetitions": str(REPETITIONS),
                **WHOLE.get(run.measurement.name, {}),
            }
            plan = apply(load(run.measurement.plan), Overrides(settings=settings))
            points = experiments.get(plan.experiment).expand(plan, there).points
            parts.setdefault(run.measurement.name, []).append((run, tuple(_answered(points, virtual, world))))
    runs = {name: _joined(study, name, several, here) for name, several in parts.items()}
    return study, here, Evidence(here, runs)


OWN = ("diffusion", "cholesky", "qr")
"""Plans whose points a World answers, on any number of hosts; a virtual machine is two."""

WHOLE = {"diffusion": {"comm_threads": "1,2"}, "accesses": {"exchanges": "10"}}
"""What a quick study has too little of: communication threads, and messages of a size."""


def _joined(
    study: Study, name: str, several: Sequence[tuple[StudyRun, tuple[PointResult, ...]]], here: Machine
) -> RunEvidence:
    plan = next(item.plan for item in study.measurements if item.name == name)
    experiment = experiments.get(load(plan).experiment)
    last = several[-1][1]
    return RunEvidence(
        name=name,
        experiment=experiment.name,
        machine=here,
        points=tuple(item for _, points in several for item in points),
        # Its judges read points only, and its findings take most of the time.
        findings=() if experiment.name == "ema" else experiment.findings(last, here),
        parts=tuple(
            RunPart(name=run.name, results=points, machine=msgspec.structs.replace(here, hosts=run.hosts))
            for run, points in several
        ),
    )


def _answered(points: Sequence[Point], virtual: VirtualMachine, world: World) -> list[PointResult]:
    rng = np.random.default_rng(0)
    answered, own = [], []
    for point in points:
        if point.core_khz or point.uncore_khz or _program(point):
            own.append(point)
        elif point.role == "point" and not virtual.refuse(point):
            answered.append(point)
    found = _of_virtual(answered, virtual) + _of_world(own, world, rng)
    return [_traced(item, world, rng) for item in found]


def _program(point: Point) -> bool:
    return isinstance(point.workload, ApplicationSteps | FactorizationProgram)


def _of_virtual(points: Sequence[Point], virtual: VirtualMachine) -> list[PointResult]:
    entries = []
    steady = load("cores").steady
    for point in points:
        for number in range(REPETITIONS):
            unit = Unit(point=point.id, repetition=number)
            record = virtual.answer(unit, point.workload.request(point, unit, steady), unit)
            entries.append(Entry(point=point.id, repetition=number, record=record))
    seen = collect(entries, points)
    return results(points, seen.samples, seen.flags, repetitions=REPETITIONS, entries=seen.entries)


def _of_world(points: Sequence[Point], world: World, rng: np.random.Generator) -> list[PointResult]:
    rows, told = [], {}
    for index, point in enumerate(points):
        for phase, side, value, unit in _cells(point, world):
            for number in range(REPETITIONS):
                noisy = value * float(np.exp(rng.normal(0, world.noise)))
                rows.append((index, number, False, phase, side, noisy, unit, "ok"))
        told[point.id] = entries(point.id, {"facts": _facts(point, world, rng)})
    return results(points, Samples(*zip(*rows, strict=True)), entries=told) if points else []


def _cells(point: Point, world: World) -> list[tuple[str, str, float, str]]:
    workload = point.workload
    if isinstance(workload, ApplicationSteps):
        time = world.step(workload.variant, workload.nodes, len(point.comm_cores))
        if workload.variant == "communication":
            return [("B", "comm", time, "us"), ("B", "total", time, "us")]
        phase = "AB" if workload.variant == "overlap" else "A"
        return [(phase, "total", time, "us"), (phase, "separator", 1.0, "us"), (phase, "comp", time, "us")]
    if isinstance(workload, FactorizationProgram):
        time = 1e6 / world.gains.get((workload.task, workload.way), 1.0)
        return [
            *((phase, "comp", 1000.0, "Mflop/s") for phase in ("A", "AB")),
            *((phase, "total", time, "us") for phase in ("A", "AB")),
        ]
    held = point.core_khz or 0, point.uncore_khz or 0
    value = world.latency(*held) if point.metric == "latency" else world.bandwidth(*held)
    return [("B", "comm", value, "us" if point.metric == "latency" else "MB/s")]


def _facts(point: Point, world: World, rng: np.random.Generator) -> dict[str, float]:
    if not isinstance(point.workload, FactorizationProgram):
        sent = {"largest_message": 1e5, "largest_bytes": 3e5, "average_bytes": 2e5, "total_bytes": 4e5}
        return {"cells": 1e6, **sent}
    shares = np.clip(world.complete * np.exp(rng.normal(0, world.noise, REPETITIONS)), 0, 1)
    return {
        "broadcasts": 1000.0,
        "messages": 3000.0,
        "late": 20.0,
        "complete_share_low": float(shares.min()),
        "complete_share_high": float(shares.max()),
        "complete_share": float(np.median(shares)),
    }


def _traced(item: PointResult, world: World, rng: np.random.Generator) -> PointResult:
    """With frequencies of the communication core, of two computing cores and of two others, where the world
    has any for the kernel.
    """
    mhz = world.mhz.get(item.kernel)
    if mhz is None or not item.n:
        return item
    cores = {"communication": (35,), "computing": item.comp_cores[:2], "idle": (33, 34)}
    traces = []
    for phase in ("B", "S", "AB"):
        for role, numbers in cores.items():
            for core in numbers:
                # Computing cores sleep unless something is computed.
                now = mhz(phase, "idle" if role == "computing" and phase != "AB" else role)
                khz = tuple(float(1e3 * now * factor) for factor in np.exp(rng.normal(0, world.noise, 40)))
                traces.append(Trace(phase=phase, core=core, role=role, interval_s=0.002, khz=khz))  # type: ignore[arg-type]
    return with_payload(item, traces=tuple(traces))
