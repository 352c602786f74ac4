"""`elbowroom accept` inside an allocation of a real Slurm with four nodes on this host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from slurm_cluster import Slurm, running_slurm

NODES = 4


@pytest.fixture
def slurm() -> Iterator[Slurm]:
    with running_slurm(nodes=NODES) as cluster:
        try:
            cluster.allocate(NODES)
        except subprocess.SubprocessError as error:
            pytest.skip(f"Slurm allocates nothing here: {error}")
        tried = subprocess.run(
            ["srun", f"--jobid={cluster.job}", "--overlap", "--mpi=pmix", "true"],
            env=cluster.env, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        if "Invalid MPI type" in tried.stderr:
            pytest.skip("this Slurm cannot load PMIx (Debian: libpmix-dev)")
        yield cluster


@pytest.mark.alone
def test_the_nodes_of_an_allocation_are_measured_without_a_word_about_them(
    slurm: Slurm, tmp_path: Path
) -> None:
    line = ["accept", "--budget", "5s", "--size", "64KiB", "--working-set", "2MiB", "--json", "-o", "run"]
    done = subprocess.run(
        [sys.executable, "-m", "elbowroom", *line],
        env={**os.environ, **slurm.allocation()},
        cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    assert done.returncode in (0, 3, 4), done.stderr
    document = json.loads(done.stdout)
    assert document["names"] == slurm.nodes
    assert not document["missing"]
    quantities = {level["quantity"] for level in document["levels"]}
    assert quantities >= {"memory", "latency", "bandwidth-beside", "memory-beside", "late"}
    assert json.loads((tmp_path / "run" / "site.json").read_text())["names"] == slurm.nodes
