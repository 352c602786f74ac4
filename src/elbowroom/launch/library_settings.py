"""The control variables that an MPI library has in this version, asked through MPI_T.

MPI_T needs no MPI_Init. A process of its own loads the library: one that crashes harms nothing.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from elbowroom.errors import MachineError
from elbowroom.launch import mpi_variables_child, recorder
from elbowroom.launch.mpi import abi_of, launcher_identity, loaded_library, output
from elbowroom.launch.processes import run

_PATIENCE = 20.0


def library_settings(library: str | None) -> Mapping[str, str] | None:
    """The control variables of an MPI library and their values, "" where a value is no number or text; None
    where the library does not say.
    """
    if library is None:
        return None
    try:
        done = run(
            [sys.executable, "-I", "-S", mpi_variables_child.__file__, library],
            field="mpi",
            patience=_PATIENCE,
            leaves_nothing=True,
            doing="asking the MPI library for its settings",
        )
        return msgspec.json.decode(done.stdout, type=dict[str, str]) if done.code == 0 else None
    except (MachineError, msgspec.MsgspecError):
        return None


def library_of(program: Sequence[str], launcher: str) -> str | None:
    """The MPI library of a program, else the one that is installed with its launcher; None if neither is
    there.
    """
    linked = recorder.program_libraries(program).get("mpi")
    library = None if linked is None else loaded_library(Path(linked))
    if library is not None:
        return library
    path = shutil.which(launcher)
    kind = None if path is None else launcher_identity(output(path, "--version"))[0]
    if path is None or kind is None:
        return None
    for pattern in ("lib*/libmpi*.so*", "lib/*/libmpi*.so*"):
        for one in sorted(Path(path).resolve().parent.parent.glob(pattern)):
            if abi_of(one.name) == kind:
                return str(one)
    return None
