"""The srun launcher against a real Slurm of one node.

PMIx between Slurm and Open MPI also wants libpmix-dev, whose libpmix.so is what Slurm's plugin loads; MPICH
speaks PMI2, which Slurm has built in.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Iterator

import pytest

from elbowroom.errors import UsageError
from elbowroom.launch.build import probe
from elbowroom.launch.launcher import LaunchRequest
from elbowroom.launch.launchers import build_launch, detect
from elbowroom.launch.mpi import Mpi, find_mpi
from elbowroom.launch.session import Session
from elbowroom.points.unit import Unit
from slurm_cluster import Slurm, running_slurm


@pytest.fixture(scope="module")
def slurm() -> Iterator[Slurm]:
    with running_slurm(nodes=1) as cluster:
        try:
            cluster.allocate()
        except subprocess.SubprocessError as error:
            pytest.skip(f"Slurm allocates nothing here: {error}")
        yield cluster


@contextlib.contextmanager
def step(cluster: Slurm, monkeypatch: pytest.MonkeyPatch, mpi: Mpi) -> Iterator[Session]:
    """The probe's two ranks as a step of the allocation, by the launcher's own command line."""
    monkeypatch.setenv("SLURM_CONF", cluster.env["SLURM_CONF"])
    monkeypatch.setenv("SLURM_JOB_ID", cluster.job)
    assert detect(os.environ) == "srun"
    request = LaunchRequest(ranks=2, ranks_per_host=2, probe=str(probe(mpi)), mpi=mpi)
    live = Session(build_launch("srun", request), ranks=2, mpi=mpi)
    try:
        yield live
    finally:
        live.close()


def ask_for_one_phase(live: Session) -> None:
    """Counted messages come back only if rank 0 has read stdin and rank 1 has answered."""
    unit = Unit(point="srun-64KiB", repetition=0)
    answer = live.ask(
        unit,
        {
            "op": "measure",
            "point": unit.point,
            "repetition": unit.repetition,
            "sequence": ["B"],
            "kernel": "none",
            "cursor": 1,
            "comp_cores": [],
            "comp_node": 0,
            "computing_ranks": "first",
            "working_set": 0,
            "pattern": "pingpong",
            "size": 1 << 16,
            "comm_node": 0,
            "comm_cores": [0],
            "peer_cores": [0],
            "reuse": "same",
            "metric": "bandwidth",
            "window": 0.05,
            "steady": {"window": 7, "cov": 0.05, "limit": 0.3},
            "observe": [],
        },
        patience=60.0,
    )
    assert answer["record"] == "repetition", answer
    assert answer["phases"][0]["comm"]["messages"] > 0


def needs_pmix(cluster: Slurm) -> None:
    """Skips where Slurm's plugin finds no libpmix.so."""
    tried = subprocess.run(
        ["srun", f"--jobid={cluster.job}", "--overlap", "--mpi=pmix", "true"],
        env=cluster.env, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    if "Invalid MPI type" in tried.stderr:
        pytest.skip("this Slurm cannot load PMIx (Debian: libpmix-dev)")


def test_srun_starts_the_probe_of_the_embedded_open_mpi_by_pmix(
    slurm: Slurm, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_pmix(slurm)
    with step(slurm, monkeypatch, find_mpi()) as live:
        assert len(live.hello["ranks"]) == 2
        ask_for_one_phase(live)


@pytest.mark.slow
def test_srun_starts_the_probe_of_mpich_by_pmi2(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    try:
        mpi = find_mpi("mpich")
    except UsageError as error:
        pytest.skip(f"no MPICH here: {error.message}")
    monkeypatch.delenv("ELBOWROOM_PROBE", raising=False)
    with step(slurm, monkeypatch, mpi) as live:
        assert len(live.hello["ranks"]) == 2
        ask_for_one_phase(live)


def test_a_probe_that_was_closed_leaves_no_step_behind(slurm: Slurm, monkeypatch: pytest.MonkeyPatch) -> None:
    needs_pmix(slurm)
    with step(slurm, monkeypatch, find_mpi()):
        during = steps(slurm)
    end = time.monotonic() + 30
    while steps(slurm) and time.monotonic() < end:
        time.sleep(0.2)
    assert during
    assert not steps(slurm)


def steps(cluster: Slurm) -> list[str]:
    """The running steps of the allocation, without the one that stands for the job itself."""
    lines = cluster.output("squeue", "-h", "-s", "-o", "%i").split()
    return [line for line in lines if not line.endswith((".extern", ".interactive", ".batch"))]
