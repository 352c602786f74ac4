"""Programs of apps/kernels and apps/factorizations on ranks of a real MPI, which share this host's cores."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from elbowroom.errors import ElbowroomError
from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi, find_mpi
from elbowroom.launch.starpu import find_starpu

PATIENCE = 120  # seconds that a busy machine may take for anything

Program = TypeVar("Program", bound="TaskProgram")

_ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_pml": "ob1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    "OMP_WAIT_POLICY": "passive",
    "TMPDIR": "/tmp",
}


class TaskProgram:
    """A build of a program, and the MPI it is started with."""

    def __init__(self, program: str, name: str, mpi: Mpi) -> None:
        self.name = name
        self._path = build.application(f"{program}-{name}", mpi)
        self._launcher = Path(mpi.compiler).parent / "mpirun"

    def start(self, ranks: int, *words: str, lines: str = "") -> subprocess.CompletedProcess[str]:
        """Runs it to its end with `lines` as its input."""
        launch = [str(self._launcher), "--bind-to", "none", "--oversubscribe", "-n", str(ranks)]
        return subprocess.run(
            [*launch, str(self._path), *words],
            input=lines,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            env={**os.environ, **_ENVIRONMENT},
        )


def program_of(kind: Callable[[str, Mpi], Program], name: str) -> Program:
    """That build, or the test is skipped with the reason."""
    try:
        return kind(name, find_starpu().mpi if name == "starpu" else find_mpi())
    except ElbowroomError as error:
        pytest.skip(error.sentence())
