"""`elbowroom run runtime-overhead` with the real StarPU: two processes on this machine, one size."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from elbowroom import cli
from elbowroom.launch.mpi import Mpi
from starpu_site import starpu_mpi, starpu_program

TINY = ("window=0.005", "steady.limit=0.05", "control=false")
RUN = ["run", "runtime-overhead", *(word for one in TINY for word in ("--set", one)), "--sizes", "4"]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores: communication threads poll")
def test_a_run_takes_starpus_mpi_and_tells_what_is_added(
    embedded_mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    starpu_program("runtime")
    monkeypatch.setenv("STARPU_HOME", str(tmp_path))
    code = cli.run([*RUN, "--repeat", "8", "--no-report", "--json", "--out", str(tmp_path / "r")])
    printed = capfd.readouterr()
    assert code in (0, 3), printed.err
    mpi = starpu_mpi()
    assert f"run with its MPI, {mpi.name} in {mpi.prefix}" in printed.err
    [point] = json.loads(printed.out)["points"]
    assert point["status"] in ("ok", "not_stable"), point["reason"]
    added = point["comm"]["added"]
    assert added["low"] <= added["value"] <= added["high"]


def test_without_starpu_the_run_says_what_is_missing(
    embedded_mpi: Mpi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("ELBOWROOM_STARPU", "none")
    assert cli.run([*RUN, "--out", str(tmp_path / "r")]) == 2
    assert "unset ELBOWROOM_STARPU" in capfd.readouterr().err
    assert not (tmp_path / "r").exists()


def test_with_another_mpi_the_run_names_both(
    embedded_mpi: Mpi, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    own = starpu_mpi()
    assert cli.run([*RUN, "--mpi", "embedded", "--out", str(tmp_path / "r")]) == 2
    said = capfd.readouterr().err
    assert own.name in said
    assert embedded_mpi.name in said
