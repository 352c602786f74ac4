"""A plan's mesh from a file, and several processes on a node."""

from __future__ import annotations

from pathlib import Path

import pytest

from elbowroom import experiments
from elbowroom.errors import UsageError
from elbowroom.experiments.plans import Overrides, apply, load
from elbowroom.measure.prepare import with_mesh
from elbowroom.plan.file import Plan
from elbowroom.plan.validation import validate
from elbowroom.points.point import Expansion, Point
from made_meshes import box, gmsh
from studies import HENRI, SMALL


def plan(**settings: str) -> Plan:
    return apply(load("diffusion"), Overrides(settings={"comm_threads": "1", **settings}))


def steps(expansion: Expansion) -> list[Point]:
    return [point for point in expansion.points if point.workload.program]


@pytest.fixture
def body(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "body.msh"
    file.write_text(gmsh(box(6, jiggle=0.1)))
    return str(file)


def test_the_mesh_of_a_file_takes_the_place_of_the_box(body: str) -> None:
    chosen = plan(mesh=body)
    expansion = with_mesh(experiments.expand(chosen, HENRI), chosen, HENRI)
    for point in steps(expansion):
        assert point.workload.cells == 6 * 6**3
        program = point.workload.startup(point).settings["program"]
        assert Path(program["mesh"]).is_file()
        assert "cells" not in program


def test_a_run_does_not_continue_on_another_mesh(body: str) -> None:
    chosen = plan(mesh=body)
    begun = with_mesh(experiments.expand(chosen, HENRI), chosen, HENRI)
    assert with_mesh(begun, chosen, HENRI) == begun
    Path(body).write_text(gmsh(box(6, jiggle=0.05)))
    with pytest.raises(UsageError, match="has changed since"):
        with_mesh(begun, chosen, HENRI)


def test_a_mesh_and_a_number_of_cells_are_refused_together(body: str) -> None:
    with pytest.raises(UsageError, match="cannot be given with a mesh"):
        experiments.expand(plan(mesh=body, cells="1000"), HENRI)


def test_a_simulated_cluster_refuses_a_mesh(body: str) -> None:
    chosen, virtual = plan(mesh=body), _virtual()
    with pytest.raises(UsageError, match="boxes only"):
        with_mesh(experiments.expand(chosen, virtual), chosen, virtual)


def _virtual():
    from elbowroom.launch.virtual import load as machine
    from elbowroom.virtual.answers import VirtualMachine

    return VirtualMachine(machine("henri").definition).machine


def test_a_mesh_that_is_missing_is_refused() -> None:
    chosen = plan(mesh="nowhere.msh")
    with pytest.raises(UsageError, match="does not exist") as caught:
        with_mesh(experiments.expand(chosen, HENRI), chosen, HENRI)
    assert caught.value.field == "mesh"


def test_processes_of_a_node_have_cores_of_their_own() -> None:
    points = steps(experiments.expand(plan(processes_per_node="4"), HENRI))
    for point in points:
        assert len(point.placements) == 4 * HENRI.hosts == point.workload.processes
        assert point.workload.nodes == HENRI.hosts
        used = [core for place in point.placements[:4] for core in (*place.comp_cores, *place.comm_cores)]
        assert len(used) == len(set(used))
        assert {len(place.comp_cores) for place in point.placements} == {8}
    validate(points, HENRI)
    assert points[0].workload.startup(points[0]).ranks == 8


def test_more_processes_than_pairs_of_cores_are_refused() -> None:
    with pytest.raises(UsageError, match="leaves 1 cores") as caught:
        experiments.expand(plan(processes_per_node="2"), SMALL)
    assert caught.value.field == "processes_per_node"
