"""What libelbow_guard_mpi.so publishes of a program on the board of its node."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from counted import c_wrapper
from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi
from traced import MPIS, PATIENCE, mpi_called

ROOT = Path(__file__).parents[2]
EXPECTED = """\
begin: 0 out, 0 in, 2 ranks, 0 steps
posted: 2097152 out, 2097152 in, 2 ranks, 0 steps
complete: 0 out, 0 in, 2 ranks, 0 steps
made: 0 out, 0 in, 2 ranks, 0 steps
started: 2097152 out, 2097152 in, 2 ranks, 0 steps
started: 2097152 out, 2097152 in, 2 ranks, 0 steps
persistent ones are free: 0 out, 0 in, 2 ranks, 0 steps
blocking calls are over: 0 out, 0 in, 2 ranks, 0 steps
cancelled, freed and collective ones are over: 0 out, 0 in, 2 ranks, 0 steps
a step: 0 out, 0 in, 2 ranks, 2 steps
"""


@pytest.fixture(scope="module", params=MPIS)
def mpi(request: pytest.FixtureRequest) -> Mpi:
    return mpi_called(request.param)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory, mpi: Mpi) -> Path:
    path = tmp_path_factory.mktemp("guarded") / "guarded"
    sources = [
        Path(__file__).with_name("guarded.cpp"),
        *(ROOT / "lib/guard" / name for name in ("guard.cpp", "board.cpp")),
    ]
    wrapper = mpi.compiler
    folders = [f"-I{ROOT / name}" for name in ("include", "lib")]
    version = '-DELBOWROOM_VERSION="test"'
    flags = ["-std=c++20", "-O1", "-w", "-DOMPI_SKIP_MPICXX", version, *folders]
    subprocess.run([wrapper, *flags, "-o", path, *sources], check=True)
    return path


def run(mpi: Mpi, words: list[str | Path], **more: str) -> subprocess.CompletedProcess[str]:
    library = build.trace_libraries(mpi) / "libelbow_guard_mpi.so"
    told = [f"LD_PRELOAD={library}", *(f"{name}={value}" for name, value in more.items())]
    command = [mpi.launcher, "-n", "2", "env", *told, *map(str, words)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=PATIENCE, env=dict(os.environ), check=False
    )


def test_the_board_says_what_is_in_flight_of_all_ways_to_communicate(
    mpi: Mpi, program: Path, tmp_path: Path
) -> None:
    done = run(mpi, [program], ELBOW_GUARD=str(tmp_path / "board"))
    assert (done.returncode, done.stdout) == (0, EXPECTED), done.stderr
    assert list(tmp_path.iterdir()) == [tmp_path / "board"]


def test_a_program_whose_board_cannot_be_made_runs_on_and_says_why(mpi: Mpi, tmp_path: Path) -> None:
    source = tmp_path / "hello.c"
    source.write_text("#include <mpi.h>\nint main(void) { MPI_Init(0, 0); MPI_Finalize(); return 0; }\n")
    subprocess.run([c_wrapper(mpi), "-o", tmp_path / "hello", source], check=True)
    done = run(mpi, [tmp_path / "hello"], ELBOW_GUARD=str(tmp_path / "none" / "board"))
    assert done.returncode == 0
    assert "this process is not guarded" in done.stderr
    assert "No such file or directory" in done.stderr
