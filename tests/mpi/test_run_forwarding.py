"""`elbowroom run forwarding` with the real program: four processes on this machine, small broadcasts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from elbowroom import cli
from elbowroom.errors import MachineError
from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi

SMALL = (
    "ranks=4", "working_set=2MiB", "control=false", "window=0.1", "steady.limit=0.1", "n=1",
    "trees=flat,chain",
)  # fmt: skip


@pytest.fixture
def program(embedded_mpi: Mpi) -> Path:
    """The program, built now if it is not there yet; without OpenBLAS there is none."""
    try:
        return build.application("forwarder", embedded_mpi)
    except MachineError as error:
        pytest.skip(error.sentence())


def run(capfd: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    code = cli.run([*words, "--json"])
    printed = capfd.readouterr()
    assert code in (0, 3), printed.err
    result: dict[str, Any] = json.loads(printed.out)
    return result


def test_a_rank_computes_beside_the_broadcasts_that_it_forwards(
    program: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert program.name == "forwarder"
    out = tmp_path / "r"
    settings = [word for setting in SMALL for word in ("--set", setting)]
    words = ("run", "forwarding", *settings, "--sizes", "48KiB", "--repeat", "1", "--no-report")
    points = {
        (point["forwarding"]["kernel"], point["forwarding"]["tree"]): point
        for point in run(capfd, *words, "--out", str(out))["points"]
    }
    assert len(points) == 4
    for (kernel, tree), point in points.items():
        facts = point["facts"]
        assert facts["received_bytes"] == facts["broadcasts"] * 48 * 1024
        assert facts["forwarded_bytes"] == (tree == "chain") * facts["received_bytes"]
        assert point["comp"]["alone"]["unit"] == ("Mflop/s" if kernel == "gemm" else "MB/s")
        assert point["comm"]["alone"]["unit"] == "MB/s"
        assert "validation_failed" not in point["flags"]
    resumed = run(capfd, "run", "--resume", str(out), "--no-report")
    assert len(resumed["points"]) == 4
    assert cli.run(["report", str(out)]) == 0
