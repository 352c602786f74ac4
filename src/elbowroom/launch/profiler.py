"""Run a program with the profiler preloaded. Programs that cannot be profiled are rejected first.

Nothing can be preloaded into programs that are linked statically, and the library must be of their MPI.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from elbowroom.errors import UsageError
from elbowroom.launch import nic, recorder
from elbowroom.launch.launch_line import WRAPPERS, launcher_of
from elbowroom.launch.mpi import describe, find_mpi, loaded_library, stdout_of, wrapper_of
from elbowroom.launch.nic import NicSettings
from elbowroom.launch.recorder import Adapter, RecordedCommand

DEFAULT_RECORDS = 1 << 20
MOST_RECORDS = 1 << 32
AGREEMENTS = "agreement-*"
"""Folders of a profile in which the processes of a job agreed on who is profiled; not needed afterwards."""


class ProfilerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the profiler in each process: `records` of 32 B, a power of two, of which the latest are
    kept.
    """

    directory: str
    records: int = DEFAULT_RECORDS

    def environment(self) -> dict[str, str]:
        """As the environment of a process."""
        return {
            "ELBOW_PROFILE_DIRECTORY": os.path.abspath(self.directory),
            "ELBOW_PROFILE_RECORDS": str(self.records),
        }

    def library(self, adapter: Adapter) -> str:
        """The profiler of MPI calls."""
        return f"libelbow_profile_{adapter}.so"


def prepare(
    words: Sequence[str],
    settings: ProfilerSettings,
    mpi: str | None = None,
    emulated: NicSettings | None = None,
) -> RecordedCommand:
    """The command that runs `words` and profiles them.

    `mpi`: where the command's cannot be told; `emulated`: the NIC to run behind. UsageError for programs that
    have no MPI, are linked statically or have another MPI, and as recorder.prepare and nic.check.
    """
    place = launcher_of(words)
    behind = words[0 if place is None else place + 1 :]
    linked = recorder.program_libraries(behind).get("mpi")
    if linked is None:
        _refuse_without_mpi(behind, launched=place is not None, named=mpi is not None)
    elif mpi is not None:
        _refuse_other_mpi(linked, mpi)
    if emulated is None:
        return recorder.prepare(words, settings, adapters=("mpi",), mpi=mpi)
    return recorder.prepare(
        words,
        settings,
        adapters=("mpi",),
        mpi=mpi,
        preloads=nic.preloads(emulated),
        variables=emulated.environment(),
    )


def _refuse_without_mpi(words: Sequence[str], *, launched: bool, named: bool) -> None:
    """A script, or a program that loads its MPI while it runs, may have one all the same."""
    program = _first_program(words)
    if program is not None and not stdout_of("ldd", program):
        raise UsageError(
            "is linked statically, so nothing can be preloaded into it",
            field="command",
            value=program,
            hint="link it with the shared library of its MPI",
        )
    if not launched and not named:
        raise UsageError(
            "starts no MPI launcher, and no program in it is linked with MPI",
            field="command",
            value=words[0] if words else None,
            hint="profile an MPI program: -- mpirun -n 4 ./app; for a script that starts one name its MPI "
            "with --mpi PREFIX",
        )


def _first_program(words: Sequence[str]) -> str | None:
    """The first program among words that does not only run another one."""
    for word in words:
        path = shutil.which(word)
        if path is not None and Path(path).name not in WRAPPERS and recorder.is_elf(path):
            return path
    return None


def _refuse_other_mpi(program: str, mpi: str) -> None:
    library, named = loaded_library(Path(program)), find_mpi(mpi)
    wrapper = None if library is None else wrapper_of(library)
    if wrapper is None:
        if library is not None:
            recorder.check_abi(program, library, named)
        return
    own = describe(wrapper)
    if own.kind != named.kind:
        raise UsageError(
            f"is {named.name}, and {program} is linked with {own.name}",
            field="mpi",
            value=mpi,
            hint="leave --mpi out",
        )
