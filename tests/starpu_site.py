"""StarPU for tests: where it is, and its programs, each built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from elbowroom.errors import ElbowroomError
from elbowroom.launch import build
from elbowroom.launch.mpi import Mpi
from elbowroom.launch.starpu import find_starpu


def starpu_mpi() -> Mpi:
    """The MPI of the StarPU installed here; skips the test, with the reason, where there is none."""
    try:
        return find_starpu().mpi
    except ElbowroomError as error:
        pytest.skip(error.sentence())


def starpu_program(name: str) -> Path:
    """The program over StarPU of that name (launch.build.APPLICATIONS), built at its first use and kept."""
    return build.application(name, starpu_mpi())
