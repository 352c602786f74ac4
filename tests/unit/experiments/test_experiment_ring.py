"""`ring` finds the loss ratios of Langguth et al. 2018, section III."""

from __future__ import annotations

from pathlib import Path

import pytest

from elbowroom import api, experiments
from elbowroom.errors import UsageError
from elbowroom.experiments import ring
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.plan.order import order_units
from elbowroom.plan.validation import validate
from elbowroom.points.point import Point, Steady
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
    assert full.workload.request(full, order_units([full], 1, 1)[0], Steady())["placements"]


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


def credits_run(tmp_path: Path, **settings: str) -> api.Run:
    plan = Overrides(repeat=5, settings={"comm_threads": "1", **settings})
    return api.run(
        "ring",
        overrides=plan,
        machine="henri:credits",
        out=str(tmp_path / "r"),
        report=False,
        tell=lambda _: None,
    )


def test_ring_per_core_gives_each_process_a_computing_and_a_communication_core_of_one_socket() -> None:
    plan = apply(load("ring"), Overrides(settings={"processes": "core", "comm_threads": "1"}))
    points = experiments.get("ring").expand(plan, HENRI).points
    full = max(points, key=lambda point: point.n)
    assert full.n == 18
    assert len(full.placements) == 36
    seats = [(place.comp_cores, place.comm_cores) for place in full.placements[:18]]
    assert seats[0] == ((0,), (17,))
    assert seats[9] == ((18,), (35,))
    assert len({core for comp, comm in seats for core in comp + comm}) == 36
    validate(points, HENRI)


def test_ring_per_core_needs_four_cores_of_a_single_host() -> None:
    plan = apply(load("ring"), Overrides(settings={"processes": "node,core"}))
    notes = experiments.get("ring").expand(plan, SMALL).notes
    assert "one process per core" in {note.what for note in notes}


def test_the_published_law_does_not_answer_several_processes_of_a_socket(tmp_path: Path) -> None:
    plan = Overrides(repeat=1, settings={"processes": "core", "n": "2"})
    with pytest.raises(UsageError, match="credits"):
        api.run("ring", overrides=plan, machine="henri", out=str(tmp_path / "r"), tell=lambda _: None)


def test_one_figure_shows_all_kinds_of_processes_per_node(tmp_path: Path) -> None:
    run = credits_run(tmp_path, processes="node,socket,core", n="1,8,all")
    figure = next(figure for figure in run.figures if figure.name.startswith("ring-per-node"))
    assert {series.name for series in figure.series if series.side == "communication"} == {
        f"MPI, one process per {kind}, together" for kind in ("node", "socket", "core")
    }
    by_socket = next(
        series for series in figure.series if series.name.startswith("MPI, one process per socket")
    )
    point = next(item for item in run.points() if item.id == by_socket.points[-1])
    assert by_socket.y[-1] == pytest.approx(2 * point.comm.together.median)
    assert by_socket.x[-1] == 34


def test_the_rates_of_a_ring_are_means_of_all_its_processes(tmp_path: Path) -> None:
    run = credits_run(tmp_path, processes="socket", n="all")
    point = next(item for item in run.points() if item.role == "point")
    assert [process.rank for process in point.payload.by_process] == [0, 1, 2, 3]
    near = point.payload.by_process[0].comp_together
    mean = sum(process.comp_together for process in point.payload.by_process) / 4
    assert point.comp.together.median == pytest.approx(mean, rel=0.02)
    assert abs(mean / near - 1) > 0.02
    assert any(table.title.startswith("Processes of the ring") for table in run.tables)
    assert len(run.show()["points"][0]["by_process"]) == 4
