"""Simulated factorizations: what can be asked, the counts of their broadcasts, and what trees are worth."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import elbowroom
from elbowroom import cli
from elbowroom.broadcast.factorizations import (
    STEPS,
    FactorizationRequest,
    KernelTimes,
    SimulatedFactorization,
    read_step_times,
)
from elbowroom.errors import ElbowroomError, UsageError
from elbowroom.launch import build
from elbowroom.launch.executables import bound_factorization

TIMES = KernelTimes(block=320, seconds=dict.fromkeys(STEPS, 1e-3))
NETWORK = {"workers": 4, "bandwidth": 6e9, "latency": 2e-6, "times": TIMES}


@pytest.fixture(scope="module")
def simulator() -> None:
    try:
        build.taskflow_simulator()
    except ElbowroomError as error:
        pytest.skip(error.sentence())


def asked(task: str = "cholesky", rows: int = 12, columns: int = 12, **others: Any) -> FactorizationRequest:
    return FactorizationRequest(
        **{"task": task, "rows": rows, "columns": columns, "grid": (3, 4)} | NETWORK | others
    )


def simulated(*names: str, **others: Any) -> SimulatedFactorization:
    return elbowroom.simulate_factorization(asked(*names, **others))


@pytest.mark.usefixtures("simulator")
def test_cholesky_on_a_grid_sends_each_tile_to_its_row_and_column_of_processes() -> None:
    found = simulated(rows=24, columns=24)
    tiles = 24 * 25 // 2
    assert (found.data, found.most_recipients) == (tiles - 1, 3 + 4 - 2)
    assert found.complete == found.broadcasts


@pytest.mark.usefixtures("simulator")
@pytest.mark.parametrize("tree", ["none", "binomial", "binary"])
@pytest.mark.parametrize("task", ["cholesky", "qr"])
def test_no_simulation_is_faster_than_its_workers_its_links_or_its_longest_chain(
    task: str, tree: str
) -> None:
    for bandwidth in (5e8, 6e9):
        bounds = bound_factorization(asked(task, tree=tree, bandwidth=bandwidth))
        seconds = simulated(task, tree=tree, bandwidth=bandwidth).seconds
        assert 0 < max(bounds.work, bounds.links, bounds.path) <= seconds * (1 + 1e-9)


@pytest.mark.usefixtures("simulator")
@pytest.mark.parametrize("tree", ["none", "binomial", "binary"])
@pytest.mark.parametrize("task", ["cholesky", "qr"])
def test_a_schedule_takes_as_long_as_the_simulation_where_the_network_is_fast(task: str, tree: str) -> None:
    bounds = bound_factorization(asked(task, tree=tree, bandwidth=6e9))
    assert bounds.schedule == pytest.approx(simulated(task, tree=tree, bandwidth=6e9).seconds, rel=0.1)


@pytest.mark.usefixtures("simulator")
def test_bounds_of_segments_are_refused() -> None:
    with pytest.raises(ElbowroomError, match="without segments"):
        bound_factorization(asked(segment=65536))


@pytest.mark.usefixtures("simulator")
def test_broadcasts_change_no_count_of_the_graph() -> None:
    first, second = simulated(tree="none"), simulated(tree="binary", segment=65536)
    assert (first.tasks, first.data, first.messages) == (second.tasks, second.data, second.messages)


@pytest.mark.usefixtures("simulator")
def test_one_process_takes_the_time_of_its_tasks() -> None:
    found = simulated(grid=(1, 1), workers=1)
    assert found.seconds == pytest.approx(found.tasks * 1e-3)
    assert found.busy == pytest.approx(1)
    assert found.messages == 0


@pytest.mark.usefixtures("simulator")
def test_trees_are_faster_than_single_messages_where_each_column_goes_to_all_processes() -> None:
    quick = KernelTimes(block=320, seconds=dict.fromkeys(STEPS, 1e-5))
    none, binary = (
        simulated("qr", rows=4, columns=40, grid=(1, 40), times=quick, tree=tree)
        for tree in ("none", "binary")
    )
    assert none.seconds > 1.5 * binary.seconds


@pytest.mark.parametrize(
    ("field", "others"),
    [
        ("rows", {"rows": 0}),
        ("tile_columns", {"columns": 13}),
        ("grid", {"grid": (40, 40)}),
        ("tree", {"tree": "oak"}),
        ("workers", {"workers": 0}),
    ],
)
def test_what_cannot_be_simulated_is_refused_with_its_field(field: str, others: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as refusal:
        asked(**others)
    assert refusal.value.field == field


def test_a_kernel_without_a_time_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "times.json"
    seconds = {step: 1e-3 for step in STEPS if step != "gemm"}
    file.write_bytes(
        msgspec.json.encode({"schema": TIMES.schema, "version": 1, "block": 320, "seconds": seconds})
    )
    with pytest.raises(UsageError, match=r"seconds\.gemm"):
        read_step_times(file)


@pytest.mark.usefixtures("simulator")
def test_the_command_prints_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "times.json"
    file.write_bytes(msgspec.json.encode(TIMES))
    words = ["--tile-rows", "6", "--grid", "2x2", "--times", str(file), "--tree", "two", "--json"]
    assert cli.run(["broadcast", "factorize", *words]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "elbowroom/factorization"
    assert document["complete_share"] == 1
    assert document["time_us"] > 0


@pytest.mark.usefixtures("simulator")
def test_processes_that_share_a_link_are_slower() -> None:
    quick = KernelTimes(block=320, seconds=dict.fromkeys(STEPS, 1e-5))
    own, shared = (simulated(rows=16, columns=16, times=quick, sharing=sharing) for sharing in (1, 2))
    assert own.messages == shared.messages
    assert shared.seconds > 1.1 * own.seconds
