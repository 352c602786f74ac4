"""Simulated clusters: what is sent by parts of a mesh, and what the steps of a cluster take."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.models.overlap.law import OverlappedStep
from elbowroom.points.point import Point
from elbowroom.points.steps import ApplicationSteps
from elbowroom.points.unit import Unit
from elbowroom.virtual.answers import VirtualMachine
from elbowroom.virtual.cluster import CELL_BYTES, SimulatedCluster, node_rates
from elbowroom.virtual.machines import of_name
from elbowroom.virtual.partitions import Volumes, partitions, resized, scaled


def cut(cells: int, parts: int) -> Volumes:
    """A mesh whose parts are cubes: every border is 6 (cells/parts)^(2/3) cells."""
    border = 6 * (cells / parts) ** (2 / 3)
    return Volumes(
        parts=parts,
        cells=cells,
        cells_largest=cells / parts,
        separator_cells_average=border,
        separator_cells_largest=border,
        sent_total=8 * border * parts,
        sent_average=8 * border,
        sent_largest=8 * border,
        message_largest=8 * border / 6,
        messages_average=6,
        messages_largest=6,
    )


CUBES = tuple(cut(cells, parts) for cells in (8_000, 512_000) for parts in (8, 64))


def surface_law(counted: Sequence[Volumes] | None = None) -> float:
    """The mean error of the scaling: bytes sent on average in the largest mesh, predicted from the next
    smaller one, as a share of what was counted, over all numbers of parts that both have.
    """
    counted = partitions().volumes if counted is None else counted
    small, large = sorted({item.cells for item in counted})[-2:]
    of = {(item.cells, item.parts): item for item in counted}
    pairs = [
        (resized(item, large).sent_average, of[large, parts].sent_average)
        for (cells, parts), item in of.items()
        if cells == small and (large, parts) in of
    ]
    return sum(abs(predicted - true) / true for predicted, true in pairs) / len(pairs)


def cluster(nodes: int, name: str = "henri", threads: int = 1) -> SimulatedCluster:
    plan = apply(load("diffusion"), Overrides(settings={"nodes": str(nodes), "comm_threads": str(threads)}))
    machine = VirtualMachine(of_name(name), noise=0.0)
    points = experiments.get("diffusion").expand(plan, machine.machine).points
    return SimulatedCluster(machine, next(point for point in points if overlapped(point)))


def overlapped(point: Point) -> bool:
    return isinstance(point.workload, ApplicationSteps) and point.workload.variant == "overlap"


def asked(variant: str, steps: int = 3) -> dict[str, object]:
    return {"variant": variant, "comm_threads": 1, "steps": steps, "warmup": 0}


def steps_of(record: dict[str, Any]) -> list[float]:
    """Whole steps, us."""
    batches: list[float] = record["phases"][0]["total"]["batches"]
    return batches


def test_borders_grow_as_surfaces() -> None:
    assert scaled(64_000_000, 64, CUBES).sent_average == pytest.approx(cut(64_000_000, 64).sent_average)
    assert scaled(64_000_000, 64, CUBES).cells_largest == pytest.approx(1_000_000)
    assert surface_law(CUBES) == pytest.approx(0, abs=1e-12)


def test_numbers_of_parts_between_those_counted_are_interpolated() -> None:
    result, exact = scaled(512_000, 23, CUBES), cut(512_000, 23)
    assert result.parts == 23
    for name in ("sent_total", "sent_average", "message_largest", "separator_cells_largest", "cells_largest"):
        assert getattr(result, name) == pytest.approx(getattr(exact, name))


@pytest.mark.parametrize("parts", [4, 65])
def test_other_numbers_of_parts_are_refused(parts: int) -> None:
    with pytest.raises(UsageError, match="partitions were counted for 8 to 64 nodes"):
        scaled(512_000, parts, CUBES)


def test_the_partitions_that_were_counted_follow_the_law_of_surfaces() -> None:
    result = partitions()
    assert {"4", "256"} <= {str(item.parts) for item in result.volumes}
    assert surface_law() < 0.05
    for mesh in result.meshes:
        for item in mesh.volumes:
            assert item.cells == mesh.cells
            assert item.sent_total == pytest.approx(item.parts * item.sent_average)
            assert item.sent_largest >= item.sent_average
            assert item.message_largest <= item.sent_largest


def test_an_overlapped_step_is_the_papers_formula_on_the_rates_of_the_truth() -> None:
    """The fluid simulation with one computation and one exchange is the model of section IV."""
    result = cluster(16)
    volumes = result.volumes
    rates = node_rates(result._answer(1))
    alone = {name: rates(frozenset([name]))[name] for name in ("interior 0", "exchange 0")}
    both = rates(frozenset(alone))
    interior = volumes.cells_largest - volumes.separator_cells_largest
    step = OverlappedStep(
        t_comp=interior * CELL_BYTES / alone["interior 0"],
        t_comm=volumes.sent_largest / alone["exchange 0"],
        l_comp=alone["interior 0"] / both["interior 0"],
        l_comm=alone["exchange 0"] / both["exchange 0"],
    )
    times = result.times("overlap", 1, volumes.sent_largest)
    assert max(times.interior, times.exchange) == pytest.approx(step.total)
    assert result.times("none", 1, volumes.sent_largest).interior == pytest.approx(step.t_comp)
    assert result.times("communication", 1, volumes.sent_largest).exchange == pytest.approx(step.t_comm)


def test_one_after_the_other_takes_the_sum_of_both_alone() -> None:
    result = cluster(64)
    unit = Unit(point="p", repetition=0)
    step, none, messages = (
        steps_of(result.answer(unit, asked(variant)))[0] for variant in ("apart", "none", "communication")
    )
    barrier = result.times("none", 1, 0.0).barrier
    assert step == pytest.approx(none + messages - barrier)


def test_steps_of_a_cluster_end_with_its_slowest_node() -> None:
    result = cluster(256)
    result._machine.noise = 0.02
    exact = steps_of(cluster(256).answer(Unit(point="p", repetition=0), asked("none")))[0]
    noisy = steps_of(result.answer(Unit(point="p", repetition=0), asked("none", steps=20)))
    assert min(noisy) > exact
    assert len(set(noisy)) == 20


def test_noise_is_the_units_own_and_repeatable() -> None:
    result = cluster(8)
    result._machine.noise = 0.01
    first, again = (result.answer(Unit(point="p", repetition=1), asked("overlap")) for _ in range(2))
    other = result.answer(Unit(point="p", repetition=2), asked("overlap"))
    assert first == again
    assert steps_of(first) != steps_of(other)
