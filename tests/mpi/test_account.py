"""The account of real programs: the wait that a program plants and measures itself comes back in its part."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from counted import c_wrapper
from elbowroom import cli
from elbowroom.diagnose.account import PARTS, account_of
from elbowroom.launch.mpi import Mpi
from elbowroom.profile.profile import read_profile
from elbowroom.profile.steps import find_edges
from traced import MPIS, mpi_called

HERE = Path(__file__).parent
STEPS = 60


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    return mpi_called(request.param)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, mpi: Mpi) -> Path:
    folder = tmp_path_factory.mktemp("waits")
    subprocess.run([c_wrapper(mpi), "-O1", "-o", folder / "waits", HERE / "waits.c"], check=True)
    return folder / "waits"


@pytest.mark.parametrize(
    ("mode", "part"),
    [
        ("late", "late_ranks"),
        ("uneven", "collective_wait"),
        pytest.param("hidden", "no_progress", marks=pytest.mark.alone),
    ],
)
def test_a_planted_wait_is_in_its_part(
    mpi: Mpi, program: Path, mode: str, part: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    more = ["--oversubscribe"] if mpi.kind == "openmpi" else []
    words = [mpi.launcher, *more, "-n", "2", str(program), str(STEPS), mode]

    def is_recovered(folder: Path) -> bool:
        assert cli.run(["profile", "-o", str(folder), "--", *words]) == 0
        planted = float(capfd.readouterr().out.split()[0])
        profile = read_profile(folder)
        account = account_of(profile, find_edges(profile))
        shares = account.shares()
        assert account.count > STEPS / 2
        assert sum(share.value for share in shares.values()) == pytest.approx(1.0, abs=1e-3)
        if mode == "hidden":
            # How long a transfer takes depends on who else runs: the usual step has most of it at least.
            usual = np.median(account.seconds[:, :, PARTS.index(part)], axis=0).mean()
            return bool(usual >= planted / 4)
        return abs(shares[part].value * account.step_s - planted) <= 0.05 * account.step_s

    # Other tests may hold up the ranks of a run.
    assert any(is_recovered(tmp_path / str(number)) for number in range(3))
