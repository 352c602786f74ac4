"""Plans that were made for machines of some shape, on the machine at hand (benchmarks/device_machine.py)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "benchmarks"))

from device_bundle import SHAPES, machine_of, planned  # noqa: E402
from device_machine import Shape, cores_by_node, replaced, shape_of  # noqa: E402
from device_plans import Part, device_parts, stand_in_parts  # noqa: E402
from device_runs import point_of  # noqa: E402

from elbowroom.launch.mpi import Mpi  # noqa: E402
from elbowroom.machine.hwloc import read_topology  # noqa: E402
from elbowroom.machine.layout import regular_machine, topology_xml  # noqa: E402
from elbowroom.plan.file import Steady  # noqa: E402
from elbowroom.points.unit import Unit  # noqa: E402

MPI = Mpi(kind="openmpi", version="5.0.11", prefix="/p", compiler="/p/bin/mpicxx", launcher="/p/bin/mpirun")
PARTS = {f"{name}-{part.name}": part for name, parts in (
    ("device", device_parts()), ("stand-in", stand_in_parts())
) for part in parts}  # fmt: skip


def plans_in(folder: Path, *shapes: tuple[int, ...]) -> list[Path]:
    """Plans that have nothing but their shape."""
    paths = [folder / f"{'-'.join(map(str, shape))}.json" for shape in shapes]
    for path, shape in zip(paths, shapes, strict=True):
        path.write_text(json.dumps({"shape": shape}))
    return paths


@pytest.mark.parametrize("path", sorted((ROOT / "machines").glob("*.xml")), ids=lambda path: path.stem)
def test_the_cores_of_each_node_are_those_that_the_project_reads(path: Path) -> None:
    machine = read_topology(path.read_text())
    expected = {node.number: node.cores for node in machine.nodes if node.cores}
    assert cores_by_node(path.read_text(), set(machine.allowed)) == expected


@given(
    cores=st.integers(1, 40), nodes=st.integers(1, 3), sockets=st.integers(1, 2), threads=st.integers(1, 2)
)
def test_cores_of_any_regular_machine_are_found_with_their_nodes(
    cores: int, nodes: int, sockets: int, threads: int
) -> None:
    machine = regular_machine(
        name="m",
        model="",
        cores_per_socket=cores,
        numa_per_socket=nodes,
        sockets=sockets,
        threads_per_core=threads,
    )
    found = cores_by_node(topology_xml(machine), set(machine.allowed))
    assert found == {node.number: node.cores for node in machine.nodes if node.cores}


def test_cores_that_this_process_may_not_use_are_left_out() -> None:
    text = topology_xml(machine_of((4, 4)))
    assert cores_by_node(text, {1, 2, 6}) == {0: (1, 2), 1: (6,)}


def test_the_largest_plan_that_fits_is_chosen_with_the_machines_own_numbers(tmp_path: Path) -> None:
    paths = plans_in(tmp_path, (2,), (4,), (8,), (4, 4), (8, 8))
    shape, plan = shape_of({1: (3, 5, 7, 9, 11), 4: (20, 21, 22, 23)}, paths)
    assert plan["shape"] == [4, 4]
    assert shape == Shape((3, 5, 7, 9, 20, 21, 22, 23), (1, 4))


def test_a_machine_without_room_for_any_plan_is_refused_with_its_cores(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="1 cores"):
        shape_of({0: (0,)}, plans_in(tmp_path, (2,)))


def test_any_place_stays_any_place() -> None:
    case = {"core": -1, "case": {"a": {"kind": "copy", "node": -1}, "b": {"cores": [1], "node": 0}}}
    expected = {"core": -1, "case": {"a": {"kind": "copy", "node": -1}, "b": {"cores": [9], "node": 3}}}
    assert replaced(case, Shape((8, 9), (3,))) == expected


def without_name(message: dict[str, Any]) -> dict[str, Any]:
    """A request without the point's name, which is that on another machine."""
    message = json.loads(json.dumps(message))
    message.pop("point")
    message.get("case", {}).pop("name", None)
    return message


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
@pytest.mark.parametrize("cores", [shape for shape in SHAPES if shape in ((2,), (16,), (8, 8))], ids=str)
def test_what_is_asked_there_is_what_the_run_folder_says_was_asked(
    part: Part, cores: tuple[int, ...]
) -> None:
    machine = machine_of(cores)
    plan = json.loads(json.dumps(planned(part, machine, MPI)))
    numbers = tuple(range(100, 100 + 2 * sum(cores), 2))
    shape = Shape(numbers, tuple(7 + node for node in range(len(cores))))
    points = {name: [point_of(one, shape) for one in run["points"]] for name, run in plan["runs"].items()}
    seen = set()
    for unit in (unit for start in plan["starts"] for unit in start["units"] if unit["run"]):
        point = points[unit["run"]][unit["point"]]
        asked = Unit(point=point.id, repetition=unit["repetition"], closing=unit["closing"])
        steady = Steady(**plan["runs"][unit["run"]]["plan"]["steady"])
        there = json.loads(json.dumps(point.workload.request(point, asked, steady)))
        assert without_name(replaced(unit["request"], shape)) == without_name(there)
        seen.add((unit["run"], unit["point"]))
    assert seen == {
        (name, place) for name, run in plan["runs"].items() for place in range(len(run["points"]))
    }


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_every_point_is_measured_once_before_any_is_measured_again(part: Part) -> None:
    plan = planned(part, machine_of((16,)), MPI)
    for start in plan["starts"]:
        order = [(unit["closing"], unit["repetition"]) for unit in start["units"]]
        assert order == sorted(order)


def test_all_parts_take_less_than_nine_minutes() -> None:
    assert sum(part.seconds for part in device_parts()) <= 540
