"""Builds native programs, once per sources, compiler and flags, and keeps them in a cache.

The probe is built for an MPI and once for each; the simulator needs none.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from elbowroom.errors import MachineError, UsageError
from elbowroom.launch import starpu
from elbowroom.launch.mpi import Mpi, find_mpi

DEBIAN_PACKAGES = (
    "g++ cmake ninja-build pkg-config libhwloc-dev libhwy-dev libcli11-dev nlohmann-json3-dev libfmt-dev "
    "libmetis-dev libopenblas-dev libprotozero-dev libotf2-trace-dev"
)
"""What building the probe and the applications needs, by the names of Debian and Ubuntu."""


class Application(NamedTuple):
    """The folder of apps/ that a program is built in, with which options of CMake, and the Debian packages
    that it needs beside DEBIAN_PACKAGES.
    """

    folder: str
    options: tuple[str, ...]
    packages: str = ""
    over_starpu: bool = False


APPLICATIONS = {
    "diffusion": Application("diffusion", ("-DELBOWROOM_APPS=ON",)),
    "runtime": Application("runtime", ("-DELBOWROOM_STARPU=ON",), starpu.DEBIAN_PACKAGES, True),
    "kernels-openmp": Application("kernels", ("-DELBOWROOM_KERNELS=ON",)),
    "kernels-starpu": Application(
        "kernels", ("-DELBOWROOM_KERNELS=ON", "-DELBOWROOM_STARPU=ON"), starpu.DEBIAN_PACKAGES, True
    ),
}
"""The programs of applications."""

SIMULATOR_PACKAGES = "g++ cmake ninja-build nlohmann-json3-dev"
"""The same of the simulator."""

_KEPT_LINES = 12


class Target(NamedTuple):
    """A program that CMake builds: its name, the folder of the CMakeLists.txt and the options it is built
    with, where the program lies in the build folder, the Debian packages it needs, and what is said
    meanwhile.
    """

    name: str
    sources: Path
    options: tuple[str, ...]
    made: str
    packages: str
    text: str


def probe(mpi: Mpi | None = None) -> Path:
    """The probe for `mpi` (default: the embedded one), built now if it is not in the cache.

    The environment variable ELBOWROOM_PROBE names one that was built already (packages of a site) and must
    then have been built for the same MPI. Raises MachineError with the compiler's last lines when it cannot
    be built.
    """
    return _with_mpi("probe", mpi)


def application(name: str, mpi: Mpi | None = None) -> Path:
    """The application `name` (one of APPLICATIONS) for `mpi`, as `probe`; ELBOWROOM_ and its name in capitals
    names one that was built already. Raises MachineError when it cannot be built, METIS missing for instance,
    and for a program over StarPU UsageError when `mpi` (default: StarPU's own) is another than StarPU's.
    """
    if name not in APPLICATIONS:
        raise UsageError(
            "no such application", field="application", value=name, mend=f"one of: {', '.join(APPLICATIONS)}"
        )
    app = APPLICATIONS[name]
    if app.over_starpu:
        found = starpu.find_starpu()
        mpi = found.mpi if mpi is None else mpi
        reason = starpu.refused(found, mpi)
        if reason:
            raise UsageError(reason, field="mpi", value=mpi.prefix)
    return _with_mpi(name, mpi, app)


def simulator() -> Path:
    """The simulator of single requests, as `probe`, for no MPI; ELBOWROOM_SIMULATOR names one."""
    given = _given("simulator")
    if given is not None:
        return given
    sources = native_sources()
    compiler = compiler_identity("simulator", SIMULATOR_PACKAGES)
    folder = sources / "core" / "simulate"
    key = source_key(sources, sorted(path for path in folder.iterdir() if path.is_file()), [compiler])
    target = Target(
        "simulator", folder, (), "simulator", SIMULATOR_PACKAGES, "the simulator (some seconds, once)"
    )
    return _kept(target, cache_folder("simulators") / key)


def _with_mpi(name: str, mpi: Mpi | None, app: Application | None = None) -> Path:
    """The probe, or the program of an application, linked to an MPI and to what it shares with the probe."""
    given = _given(name)
    if given is not None:
        return given
    if mpi is None:
        mpi = find_mpi()
    sources = native_sources()
    folder = "" if app is None else f"apps/{app.folder}"
    extra = "" if app is None else app.packages
    packages = f"{DEBIAN_PACKAGES} {extra}".rstrip()
    folders = () if app is None else (folder, "apps/program")
    key = build_key(sources, mpi, compiler_identity(name, packages), folders, app.options if app else ())
    options = (
        "-DELBOWROOM_TESTS=OFF",
        "-DELBOWROOM_LIBRARIES=OFF",
        "-DELBOWROOM_APPS=OFF",
        *(() if app is None else app.options),
        f"-DMPI_CXX_COMPILER={mpi.compiler}",
    )
    called = "the probe" if app is None else name
    target = Target(
        name,
        sources,
        options,
        name if app is None else f"{folder}/{name}",
        packages,
        f"{called} for {mpi.name} (a minute or two, once)",
    )
    return _kept(target, cache_folder("probes" if app is None else "applications") / key)


def _given(name: str) -> Path | None:
    """The program that the environment names."""
    variable = f"ELBOWROOM_{name.upper().replace('-', '_')}"
    path = os.environ.get(variable)
    if not path:
        return None
    if not os.access(path, os.X_OK):
        raise MachineError(
            f"this {name} does not exist or is not executable",
            field=variable,
            value=path,
            mend=f"unset the variable to let the {name} be built",
        )
    return Path(path)


def _kept(target: Target, folder: Path) -> Path:
    """The program in its folder of the cache, built where it is not there yet."""
    if not (folder / target.name).exists():
        with _locked(folder, target.name):
            if not (folder / target.name).exists():
                _build(target, folder)
    return folder / target.name


def checkout_root() -> Path | None:
    """The root of the source tree this package runs from; None when it is installed."""
    root = Path(__file__).resolve().parents[3]
    return root if (root / "CMakeLists.txt").exists() and (root / "core").is_dir() else None


def native_sources() -> Path:
    """The folder with CMakeLists.txt and core/: the checkout, or what the wheel brought along."""
    root = checkout_root()
    if root is not None:
        return root
    packaged = Path(__file__).resolve().parents[1] / "_native"
    if (packaged / "CMakeLists.txt").exists():
        return packaged
    raise MachineError(
        "the sources of the native programs are missing from this installation",
        field="sources",
        value=str(packaged),
        mend="install elbowroom again",
    )


def cache_folder(kind: str = "probes") -> Path:
    """Where probes are kept: .elbowroom/probes of a checkout that can be written, else the user's cache;
    other kinds of programs beside them.
    """
    root = checkout_root()
    if root is not None and os.access(root, os.W_OK):
        return root / ".elbowroom" / kind
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "elbowroom" / kind


def compiler_identity(name: str = "probe", packages: str = DEBIAN_PACKAGES) -> str:
    """First line of the compiler's `--version`; raises MachineError when there is no compiler."""
    compiler = os.environ.get("CXX", "c++")
    found = shutil.which(compiler)
    if not found:
        raise _missing(f"no C++ compiler ({compiler}) was found", name, packages)
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    return f"{found} {said.splitlines()[0] if said else ''}"


def build_key(
    sources: Path, mpi: Mpi, compiler: str, folders: Sequence[str] = (), options: Sequence[str] = ()
) -> str:
    """Hash of all that decides what a program is: the probe's sources, those of these folders, MPI, compiler,
    flags and options.
    """
    files = [sources / "CMakeLists.txt"]
    for folder in ("core", *folders):
        found = sorted([*(sources / folder).rglob("*.[ch]pp"), *(sources / folder).glob("CMakeLists.txt")])
        files += [path for path in found if "simulate" not in path.relative_to(sources).parts]
    others = [mpi.kind, mpi.version, mpi.prefix, mpi.compiler, compiler, *options]
    return f"{mpi.kind}-{mpi.version}-{source_key(sources, files, others)}"


def source_key(sources: Path, files: Sequence[Path], others: Sequence[str]) -> str:
    """Hash of the contents of the files but tests, of flags, and of what else decides what is built."""
    digest = hashlib.sha256()
    for part in (*others, os.environ.get("CXXFLAGS", "")):
        digest.update(part.encode() + b"\0")
    for file in files:
        if file.name.endswith("_test.cpp"):
            continue
        digest.update(str(file.relative_to(sources)).encode() + b"\0")
        digest.update(file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


@contextmanager
def _locked(folder: Path, name: str) -> Iterator[None]:
    """One builder at a time for one key; a second one waits and then finds the probe there."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(folder.parent / f"{folder.name}.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise MachineError(
            f"the {name} cannot be kept here ({error.strerror})",
            field="cache",
            value=str(folder.parent),
            mend="set XDG_CACHE_HOME to a folder that can be written",
        ) from error


def _build(target: Target, folder: Path) -> None:
    cmake, ninja = _tool("cmake", target), _tool("ninja", target)
    print(f"building {target.text}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as temporary:
        tree = Path(temporary) / "tree"
        # The wrapper of some wheels names an absolute compiler of the machine it was made on.
        environment = {
            **os.environ,
            "OMPI_CXX": os.environ.get("CXX", "c++"),
            "MPICH_CXX": os.environ.get("CXX", "c++"),
        }
        configure = [cmake, "-S", str(target.sources), "-B", str(tree), "-G", "Ninja"]
        configure += [f"-DCMAKE_MAKE_PROGRAM={ninja}", "-DCMAKE_BUILD_TYPE=Release", *target.options]
        _step(configure, environment, target)
        _step([cmake, "--build", str(tree), "--target", target.name], environment, target)
        finished = Path(temporary) / "finished"
        finished.mkdir()
        shutil.copy2(tree / target.made, finished / target.name)
        os.rename(finished, folder)


def _tool(name: str, target: Target) -> str:
    """A build tool from PATH or from a wheel in this virtual environment."""
    found = shutil.which(name) or shutil.which(name, path=sysconfig.get_path("scripts"))
    if not found:
        raise _missing(f"{name} was not found", target.name, target.packages)
    return found


def _missing(what: str, name: str, packages: str) -> MachineError:
    return MachineError(
        f"{what}, and the {name} must be built",
        field=name,
        mend=f"on Debian or Ubuntu `apt-get install {packages}`",
    )


def _step(command: list[str], environment: dict[str, str], target: Target) -> None:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
        check=False,
    )
    if done.returncode != 0:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        telling = [line for line in lines if "error" in line.lower()] or lines
        raise MachineError(
            "building it failed: " + " | ".join(line.strip() for line in telling[-_KEPT_LINES:]),
            field=target.name,
            mend=f"what it needs, by Debian's names: {target.packages}",
        )
