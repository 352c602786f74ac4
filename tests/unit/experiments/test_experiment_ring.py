"""`ring` finds the loss ratios of Langguth et al. 2018, section III."""

from __future__ import annotations

import pytest

from elbowroom import experiments
from elbowroom.experiments import ring
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.plan.file import Steady
from elbowroom.plan.order import order_units, request
from elbowroom.plan.point import Point
from elbowroom.plan.validation import validate
from studies import HENRI, SMALL, sound, study


def langguth(point: Point) -> tuple[float, float, float, float]:
    """Section III, Cartesius: 5.8 to 2.7 GB/s (L_N = 2.2) and 75 to 43 GB/s (L_M = 1.72) with all cores."""
    if point.kernel == "prime":
        return 1.0, 1.0, 5800.0, 5800.0
    most = 36 - len(point.comm_cores) * (2 if point.processes == "socket" else 1)
    share = point.n / most
    return 75_000 * share, 75_000 * share * (1 - share * (1 - 43 / 75)), 5800.0, 5800 - 3100 * share


def test_ring_prints_the_papers_loss_ratios() -> None:
    experiment, found = study("ring", HENRI, langguth)
    findings = experiment.findings(found, HENRI)
    assert {(item.values["processes"], item.values["comm_threads"]) for item in findings} == {
        (processes, threads) for processes in ("node", "socket") for threads in (1, 2, 4)
    }
    for finding in findings:
        assert finding.values["L_N"] == pytest.approx(2.15, abs=0.05)
        assert finding.values["L_M"] == pytest.approx(1.74, abs=0.04)
        assert "L_N = 2.1" in finding.text
    sound(experiment.figures(found, HENRI), {item.id for item in found})


def test_ring_per_socket_places_one_rank_on_each_socket_of_each_host() -> None:
    points = [
        p for p in experiments.get("ring").expand(load("ring"), HENRI).points if p.processes == "socket"
    ]
    full = max((p for p in points if len(p.comm_cores) == 2), key=lambda p: p.n)
    assert full.n == 32
    assert [place.rank for place in full.placements] == [0, 1, 2, 3]
    assert full.placements[0].comm_cores == (17, 16)
    assert full.placements[1].comm_cores == (35, 34)
    assert full.placements[1].comp_cores == tuple(range(18, 34))
    assert full.placements[1].comp_node == 2
    validate(points, HENRI)
    assert request(full, order_units([full], 1, 1)[0], Steady())["placements"]


def test_ring_on_one_host_says_that_only_one_process_computes() -> None:
    expansion = experiments.get("ring").expand(load("ring"), SMALL)
    assert {point.computing_ranks for point in expansion.points} == {"first"}
    assert {"one process per node", "one process per socket"} <= {note.what for note in expansion.notes}
    assert all(
        point.computing_ranks == "all" for point in experiments.get("ring").expand(load("ring"), HENRI).points
    )


def test_ring_per_socket_alone_has_a_control() -> None:
    plan = apply(load("ring"), Overrides(settings={"processes": "socket"}))
    points = experiments.get("ring").expand(plan, HENRI).points
    assert {point.processes for point in points} == {"socket"}
    (control,) = [point for point in points if point.role == "control"]
    assert control.kernel == "prime"
    assert control.placements


def test_a_loss_is_the_inverse_of_what_was_kept() -> None:
    assert ring.loss(None) is None
    experiment, found = study("ring", HENRI, langguth)
    kept = found[0].comm.kept
    loss = ring.loss(kept)
    assert kept is not None
    assert loss is not None
    assert loss[0] * kept.value == pytest.approx(1)
    assert loss[1] <= loss[0] <= loss[2]
    assert experiment.name == "ring"
