"""Real ranks behind an emulated NIC: the bandwidth they meet, who shares it, and what is left of it.

The log of the NIC is what is compared: it holds on a busy machine too.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import benchmark_modules
from elbowroom import api, cli
from elbowroom.launch import nic, recorder
from elbowroom.launch.mpi import Mpi, launch_environment, spec_of
from elbowroom.launch.nic import NicSettings
from elbowroom.launch.processes import kill_all
from traced import MPIS, minikernel, mpi_called

_TRANSFERS = benchmark_modules.load("nic_transfers")
Transfers = _TRANSFERS.Transfers
read_transfers = _TRANSFERS.read_transfers

BANDWIDTH = 20e6
SLACK = 3 * (1 << 20)
"""Bytes that waiting processes may get at once: the burst and their windows (lib/nic/fluid.hpp)."""
SECONDS = 30


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    found = mpi_called(request.param)
    os.environ.update(launch_environment())
    return found


@pytest.fixture(scope="module")
def program(mpi: Mpi) -> str:
    return str(minikernel(mpi))


def words_of(mpi: Mpi, *words: str) -> list[str]:
    more = ["--oversubscribe"] if mpi.kind == "openmpi" else []
    return ["timeout", str(SECONDS), mpi.launcher, *more, "-n", "4", *words]


def ft(mpi: Mpi, program: str) -> list[str]:
    """Sends 8 MiB from each of two nodes of two ranks to the other one."""
    return words_of(mpi, program, "ft", "--steps", "2", "--size", "1MiB", "--seconds-per-step", "0")


def behind(words: list[str], settings: NicSettings) -> int:
    prepared = nic.prepare(words, settings)
    return recorder.run(prepared, subprocess.DEVNULL)


def most_above(logs: list[Transfers], node: int, *, leaves: bool) -> float:
    """How many bytes more than the bandwidth allows pass a node's end in any time."""
    rows = [(log.source if leaves else log.target) == node for log in logs]
    ended = np.concatenate([log.ended[which] for log, which in zip(logs, rows, strict=True)])
    sizes = np.concatenate([log.bytes[which] for log, which in zip(logs, rows, strict=True)])
    order = np.argsort(ended)
    above = np.cumsum(sizes[order]) - BANDWIDTH * (ended[order] - ended.min())
    return float((above - np.minimum.accumulate(above)).max())


def test_ranks_meet_the_bandwidth_between_nodes_and_none_inside(mpi: Mpi) -> None:
    slow = BANDWIDTH / 4  # a busy machine has more than that inside a node
    settings = NicSettings(bandwidth=slow, ranks_per_node=2)
    found = api.calibrate_network([65536], nic=settings, repeat=1, seconds=0.2, mpi=spec_of(mpi))
    assert found.nodes == 2
    between = [row.bandwidth for row in found.rows if not row.inside]
    (inside,) = (row.bandwidth for row in found.rows if row.inside)
    assert len(between) == 3
    assert all(one * 1e6 < 1.3 * slow for one in between), between
    assert max(between) * 1e6 > 0.5 * slow, "a busy machine makes some of them slower"
    assert inside * 1e6 > 2 * slow
    assert found.curve is not None


def test_jobs_of_one_name_share_each_nodes_nic(mpi: Mpi, program: str, tmp_path: Path) -> None:
    logs = [str(tmp_path / name) for name in "ab"]
    settings = [
        NicSettings(bandwidth=BANDWIDTH, ranks_per_node=2, name=f"shared-{os.getpid()}", log=log)
        for log in logs
    ]
    with nic.emulated(settings[0]), ThreadPoolExecutor() as pool:
        assert list(pool.map(lambda one: behind(ft(mpi, program), one), settings)) == [0, 0]
    found = [read_transfers(Path(log)) for log in logs]
    assert all(len(log.bytes) for log in found)
    for node in (0, 1):
        for leaves in (True, False):
            assert most_above(found, node, leaves=leaves) < SLACK
    # They ran at the same time: with a NIC each they would have passed more than one carries.
    assert max(log.began.min() for log in found) < min(log.ended.max() for log in found)


def test_a_job_is_on_the_nodes_that_it_names(mpi: Mpi, program: str, tmp_path: Path) -> None:
    settings = NicSettings(bandwidth=1e9, ranks_per_node=2, nodes=(5, 3), log=str(tmp_path / "log"))
    with nic.emulated(settings):
        assert behind(ft(mpi, program), settings) == 0
    found = read_transfers(tmp_path / "log")
    ends = {(int(source), int(target)) for source, target in zip(found.source, found.target, strict=True)}
    assert ends == {(5, 3), (3, 5)}
    assert set(found.rank[found.source == 5]) <= {0, 1}
    for node in (5, 3):
        # All that ft passes to the other node, and what MPI adds.
        assert 8 << 20 <= found.bytes[found.source == node].sum() < 9 << 20


def test_output_and_exit_code_are_the_programs(mpi: Mpi, capfd: pytest.CaptureFixture[str]) -> None:
    options = ["--nic", "50MB/s", "--ranks-per-node", "2"]
    words = words_of(mpi, "sh", "-c", "echo said; sleep 0.5; exit 7")
    assert cli.run(["nic", "run", *options, "--", *words]) == 7
    assert capfd.readouterr().out.split() == ["said"] * 4


def test_a_profile_knows_its_nic(mpi: Mpi, program: str, tmp_path: Path) -> None:
    settings = NicSettings(bandwidth=5e7, ranks_per_node=2, nodes=(0, 2), name=f"known-{os.getpid()}")
    api.record_profile(ft(mpi, program), tmp_path / "p", nic=settings, stdout=subprocess.DEVNULL)
    shown = api.show_profile(tmp_path / "p")
    emulated = shown.analysis.profile.manifest
    assert emulated is not None
    assert emulated.nic is not None
    assert (emulated.nic.bandwidth, emulated.nic.ranks_per_node, emulated.nic.nodes) == (5e7, 2, (0, 2))
    assert (shown.summary.curve.source, shown.summary.curve.total) == ("emulated NIC", (5e7,))
    assert [node.ranks for node in shown.summary.nodes] == [2, 2]


def test_nothing_is_left_of_a_command_that_was_killed(mpi: Mpi, program: str) -> None:
    name = f"killed-{os.getpid()}"
    words = words_of(mpi, program, "ep", "--steps", "1000")
    line = [sys.executable, "-m", "elbowroom", "nic", "run", "--nic", "50MB/s", "--nic-name", name, "--"]
    started = subprocess.Popen([*line, *words], start_new_session=True, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + SECONDS
        while not nic.remove_unused(name):
            assert time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        kill_all(started)
    with nic.emulated(NicSettings(bandwidth=5e7)):
        assert not list(Path("/dev/shm").glob(f"elbow-nic-*-{name}"))
