"""The lever `progress`: threads and variables of each MPI that is installed, asked against got."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from counted import c_wrapper
from traced import PATIENCE, mpi_called

STENCIL = Path(__file__).parents[2] / "benchmarks/guard_stencil.c"
ENVIRONMENT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_NUM_THREADS": "1"}


def receipt_of(name: str, folder: Path, *before: str, **env: str) -> dict[str, Any]:
    """Of a guarded program of one rank, launched behind the words `before`."""
    mpi = mpi_called(name)
    program = folder / "stencil"
    subprocess.run([c_wrapper(mpi), "-O2", "-fopenmp", "-o", program, STENCIL], check=True)
    words = [*before, str(mpi.launcher), "-n", "1", str(program), "60", "2048", "1", "marks"]
    own = [sys.executable, "-m", "elbowroom", "guard", "--levers", "progress"]
    done = subprocess.run(
        [*own, "--receipt", str(folder / "r.json"), "--", *words],
        env={**os.environ, **ENVIRONMENT, **env},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    receipt: dict[str, Any] = json.loads((folder / "r.json").read_text())
    return receipt


def test_an_mpi_without_a_thread_and_a_variable_is_left_alone_and_the_reasons_are_said(
    tmp_path: Path,
) -> None:
    receipt = receipt_of("openmpi", tmp_path)
    assert receipt["levers"] == []
    (reason,) = (one for one in receipt["reasons"] if one.startswith("progress: not used"))
    assert "no control variable of its polling" in reason
    assert "no thread that works" in reason or "all cores are those of ranks" in reason


def test_a_progress_thread_is_moved_and_made_idle_and_polling_gives_up_the_core(tmp_path: Path) -> None:
    cores = os.sched_getaffinity(0)
    receipt = receipt_of("mpich", tmp_path, "taskset", "-c", str(min(cores)), MPICH_ASYNC_PROGRESS="1")
    got = {one["setting"]: one["got"] for one in receipt["levers"]}
    assert got["idle"].startswith("idle after "), receipt
    assert got["yield"].startswith("yield after ")
    assert got["away"].startswith("away after ") == (len(cores) > 1)
