"""Checks before co-location is measured, and what the jobs of one measurement share."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from elbowroom.errors import UsageError
from elbowroom.launch import nic
from elbowroom.measure import colocation_commands
from elbowroom.measure.colocation_commands import check_commands, shared_environment
from elbowroom.schedule.applications import Application, Applications, NicTable


def apps(command: str = "sh -c true", **others: object) -> Applications:
    return Applications(apps={"a": Application(command=command)}, cores=4, nodes=2, **others)  # type: ignore[arg-type]


def test_a_program_that_is_not_there_is_refused_before_anything_runs() -> None:
    with pytest.raises(UsageError, match="is not an executable on this host"):
        check_commands(apps("nonesuch-program {job}"), os.environ)


def test_an_allocation_with_too_few_nodes_is_refused() -> None:
    with pytest.raises(UsageError, match="has 3 nodes, and half of the cores need 4"):
        check_commands(apps(), {**os.environ, "SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "3"})
    check_commands(apps(), {**os.environ, "SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "4"})


def test_emulated_nodes_need_no_allocation() -> None:
    emulated = apps(nic=NicTable(bandwidth="50MB/s"))
    check_commands(emulated, {**os.environ, "SLURM_JOB_NUM_NODES": "1"})


def test_a_program_of_another_mpi_than_its_launchers_is_refused(tmp_path: Path) -> None:
    launcher, program = shutil.which("mpirun.openmpi"), shutil.which("mpichversion")
    if launcher is None or program is None:
        pytest.skip("needs Open MPI and MPICH of the system")
    with pytest.raises(UsageError, match=r"starts a program of MPICH .* with the launcher of another MPI"):
        check_commands(apps(f"{launcher} -n {{ranks}} {program}"), os.environ)


def test_both_jobs_of_a_measurement_share_one_nic_and_no_other_one_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(nic, "preloads", lambda _settings: (Path("/lib/libelbow_nic.so"),))
    emulated = apps(nic=NicTable(bandwidth="50MB/s"), env={"LD_PRELOAD": "theirs.so", "A": "b"})
    names = []
    for mode, cores in (("exclusive", "4"), ("shared", "2")):
        with shared_environment(emulated, mode, {"PATH": "/bin"}) as env:  # type: ignore[arg-type]
            assert env["ELBOW_NIC_RANKS_PER_NODE"] == cores
            assert float(env["ELBOW_NIC_BANDWIDTH"]) == 50e6
            assert env["LD_PRELOAD"] == "/lib/libelbow_nic.so:theirs.so"
            assert (env["PATH"], env["A"]) == ("/bin", "b")
            names.append(env["ELBOW_NIC_NAME"])
    assert len(set(names)) == 2


def test_without_a_nic_the_environment_is_that_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(colocation_commands.nic, "preloads")
    with shared_environment(apps(env={"A": "b"}), "half", {"PATH": "/bin"}) as env:
        assert env == {"PATH": "/bin", "A": "b"}
