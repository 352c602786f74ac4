"""`colocate measure` with real ranks: both jobs of a pair meet one emulated NIC."""

from __future__ import annotations

from pathlib import Path

import pytest

from elbowroom import api
from elbowroom.errors import MachineError
from elbowroom.launch import build
from elbowroom.launch.mpi import find_mpi, launch_environment

SECONDS = 0.4
"""On the network, of a run on half of the cores: 20 exchanges of 1 MB behind 50 MB/s."""


def test_two_programs_that_always_send_slow_each_other_down(tmp_path: Path) -> None:
    mpi = find_mpi()
    program = build.application("elbow_minikernel", mpi)
    words = f"{mpi.launcher} -n {{ranks}} --bind-to none --oversubscribe {program} cg"
    variables = "\n".join(f'{name} = "{value}"' for name, value in launch_environment().items())
    apps = tmp_path / "apps.toml"
    number = '"seconds":([0-9.]+)'
    apps.write_text(
        f"cores = 2\nnumber = '{number}'\n[nic]\nbandwidth = '50MB/s'\n[env]\n{variables}\n[apps.cg]\n"
        f"command = '{words} --steps 1 --size 800000 --seconds-per-step 0'\n"
    )
    slowdowns = []
    # A busy machine may slow down the job alone by as much, now and then.
    for attempt in range(3):
        found = api.measure_pairs(apps, tmp_path / f"m{attempt}", repetitions=1, timeout=60)
        alone = found.half[0].value / 100 * found.exclusive_s[0]
        assert alone > 0.9 * SECONDS
        assert found.prediction is None
        slowdowns.append(found.percent("cg", "cg") / found.half[0].value)
        if slowdowns[-1] > 1.3:
            break
    # The time of a job beside the other one, while both exchange without a pause, is twice that alone.
    assert max(slowdowns) > 1.3


def test_a_program_that_fails_is_named_with_its_exit_code(tmp_path: Path) -> None:
    mpi = find_mpi()
    program = build.application("elbow_minikernel", mpi)
    apps = tmp_path / "apps.toml"
    words = f"{mpi.launcher} --allow-run-as-root -n 3 --oversubscribe {program} cg"
    apps.write_text(f"cores = 2\n[apps.cg]\ncommand = '{words}'\n")
    with pytest.raises(MachineError, match="elbow_minikernel cg': ended with exit code 2"):
        api.measure_pairs(apps, tmp_path / "m", repetitions=1, timeout=60)
