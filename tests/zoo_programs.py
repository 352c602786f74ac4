"""The zoo: programs with one planted problem each, and their repaired twins, built and started."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import msgspec

from elbowroom.launch.mpi import Mpi

FOLDER = Path(__file__).parent / "zoo"
REAL = ("nas_cg", "lulesh", "hpcg", "minimd", "fft")
"""Programs like real ones, in which nothing is planted."""
_C = ("-O2", "-g", "-std=gnu11", "-Wall", "-Wextra", "-Werror")
_FORTRAN = ("-O2", "-g", "-Wall", "-Wextra", "-Werror")


class Planted(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What plants a problem that is not in the program: words before it, environment by MPI."""

    wrapper: tuple[str, ...] = ()
    environment: dict[str, dict[str, str]] = {}


class Problem(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A row of problems.toml, which describes the fields."""

    name: str
    program: str
    arguments: tuple[str, ...] = ()
    planted: Planted = Planted()
    cause: str
    sizes: tuple[float, ...] = ()
    ranks: tuple[int, ...] = (2, 4)
    needs: str = ""

    @property
    def language(self) -> str:
        return {".c": "C", ".f90": "Fortran", ".py": "Python"}[Path(self.program).suffix]

    def missing(self) -> str | None:
        """Why it cannot run here; None where it can."""
        if self.needs == "mpi4py":
            return None if _importable("mpi4py") else "mpi4py is not installed (test extras)"
        if self.needs == "nodes":
            nodes = list(Path("/sys/devices/system/node").glob("node[0-9]*"))
            return None if len(nodes) > 1 else "this machine has one NUMA node"
        if self.needs == "siblings":
            return None if siblings() else "the cores of this machine have one hardware thread"
        if self.language == "Fortran" and shutil.which("gfortran") is None:
            return "gfortran is not installed"
        return None


@functools.cache
def problems() -> dict[str, Problem]:
    """All rows by name, in the table's order."""
    rows = tomllib.loads((FOLDER / "problems.toml").read_text(encoding="utf-8"))
    return {name: msgspec.convert({"name": name, **row}, Problem) for name, row in rows.items()}


def siblings() -> str:
    """Two hardware threads of a core, as taskset takes them; empty where there are none."""
    for path in sorted(Path("/sys/devices/system/cpu").glob("cpu*/topology/thread_siblings_list")):
        text = path.read_text(encoding="ascii").strip()
        if "," in text or "-" in text:
            return text
    return ""


def build(program: str, mpi: Mpi, folder: Path) -> list[str]:
    """The words that start a program of the zoo, which is compiled into the folder if it is not there yet.

    CalledProcessError where it does not compile.
    """
    source = FOLDER / program
    if source.suffix == ".py":
        return [sys.executable, str(source)]
    made = folder / f"{source.stem}-{mpi.kind}-{mpi.version}"
    newest = max(path.stat().st_mtime for path in (source, FOLDER / "zoo.h", FOLDER / "zoo.f90"))
    if made.exists() and made.stat().st_mtime > newest:
        return [str(made)]
    folder.mkdir(parents=True, exist_ok=True)
    if source.suffix == ".c":
        words = [_wrapper(mpi, "mpicc"), *_C, "-o", made, source, "-lpthread", "-lm"]
    else:
        modules = folder / f"{made.name}.modules"
        modules.mkdir(exist_ok=True)
        words = [_wrapper(mpi, "mpif90"), *_FORTRAN, "-J", modules, "-o", made, FOLDER / "zoo.f90", source]
    # A warning of the compiler is an error; those of the MPI's own wrapper are not.
    subprocess.run(words, check=True, capture_output=True, text=True)
    return [str(made)]


def has_compiler(program: str, mpi: Mpi) -> bool:
    """Whether the MPI has a wrapper for the program's language."""
    if not program.endswith(".f90"):
        return True
    return Path(_wrapper(mpi, "mpif90")).exists() and shutil.which("gfortran") is not None


def launch_line(
    problem: Problem,
    mpi: Mpi,
    folder: Path,
    *,
    ranks: int,
    repaired: bool,
    size: float | None = None,
    more: tuple[str, ...] = (),
    wrapper: tuple[str, ...] = (),
) -> list[str]:
    """The line that starts the problem or its twin; `more`: arguments, `wrapper`: before the program."""
    words = [
        mpi.launcher,
        *(("--oversubscribe",) if mpi.kind == "openmpi" else ()),
        "-n",
        str(ranks),
        *wrapper,
    ]
    if not repaired:
        around = [siblings() if word == "{siblings}" else word for word in problem.planted.wrapper]
        words += ["taskset", "-c", *around] if "{siblings}" in problem.planted.wrapper else around
    words += [*build(problem.program, mpi, folder), *problem.arguments, *more]
    words += [f"size={size:g}"] if size is not None else []
    return [*words, "repaired=1"] if repaired else words


def started_with(problem: Problem, mpi: Mpi, folder: Path, *, repaired: bool) -> dict[str, str]:
    """The environment that the problem or its twin starts with; `folder` has its programs."""
    own = {} if repaired else problem.planted.environment
    needed = {**own.get("all", {}), **own.get(mpi.kind, {})}
    if mpi.kind == "openmpi":
        # Root may start it, as in containers; 4.1 and 5 read these.
        needed |= {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        needed |= {"PRTE_ALLOW_RUN_AS_ROOT": "1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    if problem.language == "Python":
        needed |= _library_of_python(mpi, folder)
    return {**os.environ, **needed}


def _wrapper(mpi: Mpi, name: str) -> str:
    compiler = Path(mpi.compiler)
    return str(compiler.with_name(compiler.name.replace("mpicxx", name)))


def _library_of_python(mpi: Mpi, folder: Path) -> dict[str, str]:
    """How mpi4py finds the MPI library that programs of this MPI's wrapper are linked with."""
    shown = subprocess.run([_wrapper(mpi, "mpicc"), "-show"], capture_output=True, text=True, check=True)
    words = shown.stdout.split()
    names = [f"lib{word[2:]}.so" for word in words if word in ("-lmpi", "-lmpich")]
    folders = [word[2:] for word in words if word.startswith("-L")] + [str(Path(mpi.prefix) / "lib")]
    # Where a wheel brings the MPI, the name without a version is a script for the linker.
    places = (
        place for name in names for folder in folders for place in sorted(Path(folder).glob(f"{name}*"))
    )
    library = next((place.resolve() for place in places if _is_library(place)), None)
    if library is None:
        return {}
    if mpi.kind == "openmpi":
        return {"MPI4PY_LIBMPI": str(library)}
    # mpi4py knows the common ABI by this name, and Debian's MPICH has another one.
    known = folder / f"library-{mpi.kind}-{mpi.version}" / "libmpi.so.12"
    known.parent.mkdir(parents=True, exist_ok=True)
    known.unlink(missing_ok=True)
    known.symlink_to(library)
    paths = [str(known.parent), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return {"LD_LIBRARY_PATH": ":".join(paths), "MPI4PY_LIBMPI": str(known)}


def _is_library(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


@functools.cache
def _importable(module: str) -> bool:
    return subprocess.run([sys.executable, "-c", f"import {module}"], capture_output=True).returncode == 0
