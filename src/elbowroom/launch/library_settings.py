"""The control variables that an MPI library has in this version, asked through MPI_T.

MPI_T needs no MPI_Init. A process of its own loads the library: one that crashes harms nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

import msgspec

from elbowroom.errors import MachineError
from elbowroom.launch import mpi_variables_child
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
