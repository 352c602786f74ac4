"""`elbowroom run kernels` with the real program: two processes on this machine, small matrices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elbowroom import cli
from elbowroom.errors import MachineError
from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi

SMALL = ("order=256", "block=64", "builds=openmp", "control=false", "window=0.01")


@pytest.fixture
def program(embedded_mpi: Mpi) -> Path:
    """The program, built now if it is not there yet; without OpenBLAS there is none."""
    try:
        return build.application("kernels-openmp", embedded_mpi)
    except MachineError as error:
        pytest.skip(error.sentence())


def measured(capfd: pytest.CaptureFixture[str], out: Path, *settings: str) -> list[dict[str, Any]]:
    words = [word for setting in (*SMALL, *settings) for word in ("--set", setting)]
    code = cli.run(["run", "kernels", *words, "--repeat", "1", "--no-report", "--out", str(out), "--json"])
    printed = capfd.readouterr()
    assert code in (0, 3), printed.err
    points: list[dict[str, Any]] = json.loads(printed.out)["points"]
    return points


def test_small_matrices_are_solved_and_multiplied_exactly(
    program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert program.name == "kernels-openmp"
    points = {point["program"]["task"]: point for point in measured(capfd, tmp_path / "r", "tasks=cg,gemm")}
    assert set(points) == {"cg", "gemm"}
    for task, point in points.items():
        assert point["status"] == "ok", point["reason"]
        facts = point["facts"]
        assert facts["relative_error"] < (1e-12 if task == "gemm" else 1e-7)
        assert facts["order"] == 256
        assert facts["bytes_sent"] > 0
        assert point["comp"]["alone"]["unit"] == "Mflop/s"
        assert point["comm"]["together"]["unit"] == "MB/s"
        assert point["steps"]["total"]["median"] > 0
    assert points["gemm"]["facts"]["flops"] == 2 * 256**3
    assert points["cg"]["facts"]["arithmetic_intensity"] < points["gemm"]["facts"]["arithmetic_intensity"]


def test_a_solution_that_does_not_converge_fails_with_its_residual(
    program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert program.name == "kernels-openmp"
    [point] = measured(capfd, tmp_path / "r", "tasks=cg", "iterations=2")
    assert point["status"] == "failed"
    assert "did not converge in 2 iterations" in point["reason"]
