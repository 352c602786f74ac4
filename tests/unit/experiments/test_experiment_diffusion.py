"""The diffusion experiment: who runs where, Table II from results, what it finds and draws."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import pytest

from compared import as_measured
from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.diffusion.steps import mean_errors, rows, sentence
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.launch.mpi import Mpi, refused_threads
from elbowroom.machine.topology import Machine
from elbowroom.measure.prepare import check_overlap, groups
from elbowroom.models.overlap.law import OverlappedStep
from elbowroom.plan.order import order_units
from elbowroom.points.point import Expansion, Note, Point
from elbowroom.points.steps import ApplicationSteps, Losses
from elbowroom.results.comparison import compare
from elbowroom.results.points import results
from elbowroom.results.result import PointResult
from elbowroom.stats.interval import Summary
from elbowroom.stats.summary import Samples
from sampled import entries, with_payload
from studies import SMALL, machine, sound

DIFFUSION = experiments.get("diffusion")
LOSSES = Losses(comp=1.2, comp_low=1.1, comp_high=1.3, comm=2.0, comm_low=1.8, comm_high=2.2, source="M.json")
FACTS = {
    "cells": 6400.0,
    "largest_message": 100.0,
    "largest_bytes": 300.0,
    "average_bytes": 200.0,
    "total_bytes": 400.0,
}


def expanded(here: Machine, **settings: str) -> Expansion:
    return DIFFUSION.expand(apply(load("diffusion"), Overrides(settings=settings)), here)


def steps_of(expansion: Expansion) -> list[Point]:
    return [point for point in expansion.points if isinstance(point.workload, ApplicationSteps)]


def measured(points: Sequence[Point], wiggle: float = 0.001) -> list[PointResult]:
    """Steps in us: 10 of separator, then 1000 of interior and 100 of exchange on two nodes, half on four; k
    threads exchange in 100/k; overlapped the step takes 1130 and a bit, one after the other 1120.
    """
    messages, columns = [], []
    for point in points:
        assert isinstance(point.workload, ApplicationSteps)
        messages.append(
            msgspec.structs.replace(point, workload=msgspec.structs.replace(point.workload, losses=LOSSES))
        )
        share, variant = 2 / point.workload.nodes, point.workload.variant
        inner, outer = 1000 * share, 100 * share / len(point.comm_cores)
        whole = {
            "none": inner,
            "communication": outer,
            "apart": inner + outer,
            "overlap": inner + 1.2 * outer,
        }
        phase = {"none": "A", "communication": "B", "apart": "A", "overlap": "AB"}[variant]
        for repetition in range(8):
            factor = 1 + wiggle * (repetition - 3.5)
            sides = {"comp": inner, "comm": outer, "total": whole[variant] + 10, "separator": 10.0}
            for side, value in sides.items():
                columns.append(
                    (len(messages) - 1, repetition, False, phase, side, value * factor, "us", "ok")
                )
    told = {point.id: entries(point.id, {"facts": FACTS}) for point in messages}
    return results(messages, Samples(*zip(*columns, strict=True)), entries=told)


def test_two_cores_are_one_nodes_worth_for_two_processes() -> None:
    outcome = expanded(SMALL)
    assert {note.what for note in outcome.notes} >= {"2 communication threads"}
    for point in steps_of(outcome):
        assert isinstance(point.workload, ApplicationSteps)
        assert point.workload.nodes == 2
        seats = [(place.comp_cores, place.comm_cores) for place in point.placements]
        assert seats == [((1,), (0,)), ((1,), (0,))]
        assert point.workload.startup(point).settings["scheduling"] is True


def test_processes_of_one_larger_host_share_out_its_cores() -> None:
    outcome = expanded(machine(10), pool="machine")
    for point in steps_of(outcome):
        first, second = point.placements
        assert first.comp_cores == (0, 1, 2)
        assert second.comp_cores == (3, 4, 5)
        assert not set(first.comm_cores) & set(second.comm_cores)
        assert point.workload.startup(point).settings["scheduling"] is False
    assert max(len(point.comm_cores) for point in outcome.points) == 2


def test_every_variant_computes_on_the_same_cores_as_the_contention_benchmark() -> None:
    outcome = expanded(machine(36, 2, 2, hosts=2), comm_threads="1,2,4")
    assert len({point.comp_cores for point in outcome.points}) == 1
    rings = {len(point.comm_cores) for point in outcome.points if point.pattern == "ring"}
    threads = {len(point.comm_cores) for point in steps_of(outcome)}
    assert rings == threads == {1, 2, 4}


def test_a_model_takes_the_place_of_the_benchmark_but_not_of_the_control() -> None:
    outcome = expanded(SMALL, model="M.json")
    kernels = [point.role for point in outcome.points if not isinstance(point.workload, ApplicationSteps)]
    assert kernels == ["control"]


def test_the_application_is_started_once_after_the_probe() -> None:
    cluster = machine(36, 2, 2, hosts=2)
    points = expanded(cluster).points
    outcome = groups(order_units(points, 3, seed=1), {point.id: point for point in points}, cluster)
    assert [group.probe.program is not None for group in outcome] == [False] * (len(outcome) - 1) + [True]
    assert outcome[-1].probe.program is not None
    assert len(outcome[-1].probe.program.comm_cores) == 2


def test_rows_are_the_papers_formula_with_both_definitions_of_the_error() -> None:
    points = measured(steps_of(expanded(machine(36, 2, 2, hosts=2), comm_threads="1")))
    [row] = rows(points)
    step = OverlappedStep(t_comp=1000.0, t_comm=100.0, l_comp=1.2, l_comm=2.0)
    assert row.predicted == pytest.approx(step.total + 10, rel=1e-3)
    assert row.naive_max == pytest.approx(1010, rel=1e-3)
    assert row.naive_sum == pytest.approx(1110, rel=1e-3)
    assert row.measured.median == pytest.approx(1130, rel=1e-3)
    assert row.low < row.predicted < row.high
    assert row.error("naive_max") == pytest.approx(1010 / 1130 - 1, abs=1e-3)
    of_measured, of_predicted = mean_errors([row])["naive_max"]
    assert of_measured == pytest.approx(120 / 1130, abs=1e-3)
    assert of_predicted == pytest.approx(120 / 1010, abs=1e-3)


def test_a_ratio_below_one_counts_as_no_contention_and_is_shown_as_it_came() -> None:
    points = measured(steps_of(expanded(SMALL)))
    low = msgspec.structs.replace(LOSSES, comp=0.98, comp_low=0.97, comp_high=1.01)
    changed = []
    for item in points:
        assert isinstance(item.workload, ApplicationSteps)
        app = msgspec.structs.replace(item.workload, losses=low)
        changed.append(msgspec.structs.replace(item, workload=app))
    [row] = rows(changed)
    assert row.step.l_comp == 1.0
    assert row.l_comp[0] == 0.98


@pytest.mark.parametrize(
    ("apart", "said"),
    [
        (2000.0, "Overlapping paid"),
        (1000.0, "Overlapping did not pay"),
        (1130.0, "Overlapping made no difference"),
    ],
)
def test_the_sentence_follows_the_two_measured_steps(apart: float, said: str) -> None:
    [row] = rows(measured(steps_of(expanded(SMALL))))
    assert row.apart is not None
    factor = apart / 1130
    values = {name: getattr(row.measured, name) * factor for name in ("median", "d1", "d9", "low", "high")}
    changed = msgspec.structs.replace(row, apart=msgspec.structs.replace(row.apart, **values))
    assert sentence(changed).startswith(said)


def test_a_variant_that_failed_leaves_no_row() -> None:
    points = measured(steps_of(expanded(SMALL)))
    without = [
        msgspec.structs.replace(item, status="failed")
        if isinstance(item.workload, ApplicationSteps) and item.workload.variant == "none"
        else item
        for item in points
    ]
    assert rows(without) == ()
    assert [finding.level for finding in DIFFUSION.findings(without, SMALL)] == ["n/a"]


def test_more_nodes_are_drawn_as_volumes_and_as_performance() -> None:
    here = msgspec.structs.replace(machine(36, 2, 2, hosts=2), virtual=True)
    points = measured(steps_of(expanded(here, nodes="2,4", comm_threads="1,2")))
    outcome = DIFFUSION.figures(points, here)
    assert [figure.name for figure in outcome] == [
        "diffusion-volumes", "diffusion-performance", "diffusion-sides",
    ]  # fmt: skip
    sound(outcome, {item.id for item in points})
    silent = outcome[1].series[0]
    assert silent.x == (2, 4)
    assert silent.y == pytest.approx((12e-3 * 6400 / 2 / 1010, 12e-3 * 6400 / 4 / 510), rel=1e-3)
    keys = [finding.key for finding in DIFFUSION.findings(points, here)]
    assert keys == [
        "diffusion-overlap", "diffusion-step", "diffusion-errors", "diffusion-sum", "diffusion-limit",
    ]  # fmt: skip


def test_one_number_of_nodes_is_drawn_over_communication_threads() -> None:
    here = machine(36, 2, 2, hosts=2)
    points = measured(steps_of(expanded(here, comm_threads="1,2")))
    [figure] = DIFFUSION.figures(points, here)
    assert figure.name == "diffusion-step"
    assert figure.series[0].x == (1, 2)
    sound([figure], {item.id for item in points})
    assert DIFFUSION.figures(measured(steps_of(expanded(SMALL))), SMALL) == ()


def test_whole_steps_of_two_runs_are_compared() -> None:
    a, b = (measured(steps_of(expanded(SMALL)), wiggle) for wiggle in (0.001, 0.0))
    slower = [
        with_payload(item, steps=msgspec.structs.replace(steps, total=twice(steps.total)))
        for item in b
        if (steps := item.payload.steps) is not None
    ]
    changes = [change for change in compare(as_measured(a), as_measured(slower)) if change.side == "step"]
    assert {change.point.split("-")[1]: change.phase for change in changes} == {
        "none": "alone",
        "communication": "alone",
        "apart": "alone",
        "overlap": "together",
    }
    assert all(change.change == pytest.approx(1, abs=0.01) and change.better == "a" for change in changes)


def twice(step: Summary) -> Summary:
    values = {name: 2 * getattr(step, name) for name in ("median", "d1", "d9", "low", "high")}
    return msgspec.structs.replace(step, **values)


def test_several_threads_on_one_host_are_known_to_crash_open_mpi() -> None:
    openmpi = Mpi(kind="openmpi", version="5.0.11", prefix="/", compiler="c", launcher="l")
    mpich = msgspec.structs.replace(openmpi, kind="mpich")
    assert "crash or hang" in refused_threads(openmpi, 1)
    assert refused_threads(openmpi, 2) == refused_threads(mpich, 1) == ""


def test_a_run_without_any_overlap_is_refused_with_the_reason() -> None:
    wanted = expanded(machine(10), comm_threads="2", pool="machine")
    left = tuple(point for point in wanted.points if not isinstance(point.workload, ApplicationSteps))
    notes = (*wanted.notes, Note(what="4 points", reason="several communication threads crash"))
    with pytest.raises(UsageError, match=r"comm_threads 2: several communication threads crash"):
        check_overlap(Expansion(points=left, notes=notes), wanted)
    check_overlap(wanted, wanted)
