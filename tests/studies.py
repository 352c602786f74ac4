"""Made-up studies: regular machines, and results drawn around a truth. Experiments must find what was put
there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from elbowroom import experiments
from elbowroom.draw.figure import Figure
from elbowroom.experiments.experiment import Experiment
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.machine.topology import Cache, Core, Machine, Nic, NumaNode
from elbowroom.plan.kernels import find
from elbowroom.points.accesses import ExtraneousAccesses, WindowTimes
from elbowroom.points.broadcasts import Forwarding
from elbowroom.points.calls import CallBesideComputation
from elbowroom.points.factorizations import FactorizationProgram
from elbowroom.points.gpu import GpuCase
from elbowroom.points.point import Point
from elbowroom.points.program import AppProgram
from elbowroom.points.unit import Entry
from elbowroom.results.points import results
from elbowroom.results.result import Finding, PointResult
from elbowroom.stats.summary import Samples
from sampled import entries, window_entries
from simulated_overlaps import Overlap, answers

MIB = 2**20

# A truth gives (computation alone, together, communication alone, together) of a point.
Truth = Callable[[Point], tuple[float, float, float, float]]


def machine(
    cores: int, nodes: int = 1, packages: int = 1, *, nic: int | None = None, hosts: int = 1
) -> Machine:
    """A regular machine of the paper's kind."""
    per_node, per_package = cores // nodes, nodes // packages
    numbers = [tuple(range(node * per_node, (node + 1) * per_node)) for node in range(nodes)]
    return Machine(
        name="test",
        model="test",
        cores=tuple(
            Core(number=core, logical=core, package=node // per_package, node=node, pus=(core,))
            for node in range(nodes)
            for core in numbers[node]
        ),
        nodes=tuple(
            NumaNode(number=node, package=node // per_package, memory=24 << 30, cores=numbers[node])
            for node in range(nodes)
        ),
        caches=tuple(Cache(level=3, size=25 * MIB, cores=item) for item in numbers),
        nics=() if nic is None else (Nic(name="mlx5_0", kind="openfabrics", node=nic),),
        allowed=tuple(range(cores)),
        memory=nodes * 24 << 30,
        hosts=hosts,
    )


HENRI = machine(36, 4, 2, nic=0, hosts=2)  # Denis et al. 2021, section 2.2
SMALL = machine(2)


def measured(
    points: Sequence[Point], truth: Truth, repetitions: int = 8, noise: float = 0.004
) -> list[PointResult]:
    """Results of samples drawn around a truth: two per phase, side and repetition, as the protocol takes
    them.
    """
    rng = np.random.default_rng(0)
    rows = []
    told: dict[str, list[Entry]] = {}
    for index, point in enumerate(points):
        kernel = find(point.kernel)
        computes = kernel is not None or isinstance(
            point.workload, (Forwarding, FactorizationProgram, GpuCase)
        )
        comp_unit = kernel.rate_unit if kernel else "MB/s"
        comm_unit = "us" if point.metric == "latency" else "MB/s"
        comp_alone, comp_together, comm_alone, comm_together = truth(point)
        cells = [("B", "comm", comm_alone, comm_unit)]
        if isinstance(point.workload, ExtraneousAccesses):
            told[point.id] = window_entries(
                point.id, accessed(point.workload, comm_alone, comm_together, rng)
            )
            cells += [("AB", "comm", comm_together, comm_unit)]
        if isinstance(point.workload, CallBesideComputation):
            ratio = comp_together / comp_alone
            overlaps = answers(Overlap(seed=index, iterations=20, kept_comp=ratio))
            told[point.id] = entries(point.id, *({"overlap": overlap} for overlap in overlaps))
        if computes:
            cells += [("A", "comp", comp_alone, comp_unit), ("AB", "comp", comp_together, comp_unit)]
        if computes or isinstance(point.workload, AppProgram):
            cells += [("AB", "comm", comm_together, comm_unit)]
        for phase, side, value, unit in cells:
            for sample in range(2 * repetitions):
                rows.append(
                    (index, sample // 2, False, phase, side, value * rng.normal(1, noise), unit, "ok")
                )
    return results(points, Samples(*zip(*rows, strict=True)), entries=told)


def accessed(
    extraneous: ExtraneousAccesses,
    without: float,
    after: float,
    rng: np.random.Generator,
    repetitions: int = 2,
) -> WindowTimes:
    """One-way times of a window around those of its truth, never below it."""
    shape = (extraneous.count, extraneous.exchanges)
    columns = [
        [value * (1 + 0.01 * rng.exponential(1, shape)) for _ in range(repetitions)]
        for value in (after, without)
    ]
    return WindowTimes(after=columns[0], without=columns[1])


def study(
    name: str, here: Machine, truth: Truth, **overrides: object
) -> tuple[Experiment, list[PointResult]]:
    plan = apply(load(name), Overrides(**overrides))  # type: ignore[arg-type]
    experiment = experiments.get(plan.experiment)
    return experiment, measured(experiment.expand(plan, here).points, truth)


def by_key(findings: Sequence[Finding], start: str) -> Finding:
    return next(finding for finding in findings if finding.key.startswith(start))


def sound(figures: Sequence[Figure], ids: set[str]) -> None:
    """Every figure has names and columns that fit each other, and points that exist."""
    assert len({figure.name for figure in figures}) == len(figures)
    for figure in figures:
        assert figure.series
        for series in figure.series:
            assert len(series.x) == len(series.y) > 0
            assert len(series.low) in (0, len(series.x))
            band = zip(series.low, series.y, series.high, strict=True) if series.low else ()
            assert all(low <= y <= high for low, y, high in band)
            assert set(series.points) <= ids
            assert series.axis == "left" or figure.below is not None
