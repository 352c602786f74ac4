"""`elbowroom run diffusion` with the real solver: two processes on this machine, a small mesh."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from elbowroom import cli
from elbowroom.errors import MachineError
from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi

TINY = (
    "cells=20000",
    "steps=5",
    "warmup=1",
    "window=0.01",
    "working_set=8MiB",
    "sizes=64KiB",
    "comm_threads=1",
)


@pytest.fixture
def solver(embedded_mpi: Mpi) -> Path:
    """The solver, built now if it is not there yet; without METIS there is none."""
    try:
        return build.application("diffusion", embedded_mpi)
    except MachineError as error:
        pytest.skip(error.sentence())


def test_a_small_mesh_is_measured_and_its_steps_are_predicted(
    solver: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert solver.name == "diffusion"
    settings = [word for setting in TINY for word in ("--set", setting)]
    out = str(tmp_path / "r")
    code = cli.run(["run", "diffusion", *settings, "--repeat", "8", "--no-report", "--out", out, "--json"])
    printed = capfd.readouterr()
    assert code in (0, 3), printed.err
    shown = json.loads(printed.out)
    steps = [point for point in shown["points"] if point["application"] is not None]
    assert {point["application"]["variant"] for point in steps} == {
        "none",
        "communication",
        "apart",
        "overlap",
    }
    # A step whose values were wrong is void, and a point of void steps failed.
    assert {point["status"] for point in steps} == {"ok"}, [point["reason"] for point in steps]
    [row] = shown["steps"]["rows"]
    assert row["step"]["t_comp"] > row["separator"] > 0
    assert row["step"]["t_comm"] > 0
    assert row["predicted"] >= row["naive_max"]
    assert row["facts"]["cells"] == pytest.approx(20000, rel=0.2)
    assert row["facts"]["total_bytes"] == 2 * row["facts"]["largest_message"]
