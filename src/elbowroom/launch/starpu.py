"""Finds StarPU and the MPI it was built with. An optional component: without it everything else works."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from elbowroom.errors import ElbowroomError, MachineError
from elbowroom.launch.mpi import Ask, Mpi, describe, loaded_library, stdout_of, wrapper_of

DEBIAN_PACKAGES = "libstarpu-dev libopenmpi-dev openmpi-bin"
"""StarPU and the MPI that Debian builds it with, launcher included."""

MODULES = ("starpumpi-1.4", "starpumpi-1.3")
"""StarPU-MPI by the names that pkg-config knows it by, newest first (as in CMakeLists.txt)."""

HIDDEN = "ELBOWROOM_STARPU"
"""Environment variable: `none` hides an installed StarPU."""


class StarPU(msgspec.Struct, frozen=True, kw_only=True):
    """StarPU-MPI as installed: its version, pkg-config's name, the MPI library it loads and that MPI."""

    version: str
    module: str
    library: str
    mpi: Mpi


def find_starpu(env: Mapping[str, str] | None = None, ask: Ask | None = None) -> StarPU:
    """StarPU-MPI and the MPI it belongs to: that whose library the dynamic linker gives it.

    MachineError with the one command that provides it where StarPU, or the compiler of its MPI, is absent.
    """
    env = os.environ if env is None else env
    ask = ask or stdout_of
    if env.get(HIDDEN) == "none":
        raise _absent(f"hidden by {HIDDEN}=none", f"unset {HIDDEN}")
    for module in MODULES:
        version = installed(module, ask)
        if version:
            break
    else:
        raise _absent("is not installed", f"on Debian or Ubuntu `apt-get install {DEBIAN_PACKAGES}`")
    folder = ask("pkg-config", "--variable=libdir", module).strip()
    library = loaded_library(Path(folder) / f"lib{module}.so")
    if library is None:
        raise _absent(f"{version} in {folder} loads no MPI library", f"`apt-get install {DEBIAN_PACKAGES}`")
    return StarPU(version=version, module=module, library=library, mpi=_mpi_of(library, version, ask))


def installed(module: str, ask: Ask | None = None) -> str:
    """The version of a library by the name that pkg-config knows it by; empty where there is none."""
    return (ask or stdout_of)("pkg-config", "--modversion", module).strip()


def refused(starpu: StarPU | ElbowroomError, mpi: Mpi) -> str:
    """Why programs over StarPU cannot be part of a run with `mpi`; empty where they can.

    Two MPIs in one process, or a launcher of another MPI, end in crashes or in jobs of one rank each.
    """
    if isinstance(starpu, ElbowroomError):
        return starpu.sentence()
    if os.path.realpath(starpu.mpi.compiler) == os.path.realpath(mpi.compiler):
        return ""
    return (
        f"StarPU {starpu.version} is of {starpu.mpi.name} in {starpu.mpi.prefix}, and this run's MPI is "
        f"{mpi.name} in {mpi.prefix}; leave --mpi out to take StarPU's for the whole run"
    )


def look(env: Mapping[str, str] | None = None) -> StarPU | ElbowroomError:
    """StarPU, or why there is none."""
    try:
        return find_starpu(env)
    except ElbowroomError as error:
        return error


def _absent(why: str, hint: str) -> MachineError:
    return MachineError(f"StarPU {why}", field="starpu", hint=hint)


def _mpi_of(library: str, version: str, ask: Ask) -> Mpi:
    """The MPI whose compiler wrapper links that very library; its prefix is above the library or in PATH."""
    compiler = wrapper_of(library, ask)
    if compiler is not None:
        return describe(compiler)
    raise _absent(
        f"{version} belongs to the MPI in {library}, whose mpicxx was not found",
        f"on Debian or Ubuntu `apt-get install {DEBIAN_PACKAGES}`",
    )
