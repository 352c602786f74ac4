"""Builds the probe for an MPI, once per sources, MPI, compiler and flags, and keeps it in a cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elbowroom.errors import MachineError
from elbowroom.launch.mpi import Mpi, find_mpi

DEBIAN_PACKAGES = (
    "g++ cmake ninja-build pkg-config libhwloc-dev libhwy-dev libcli11-dev nlohmann-json3-dev libfmt-dev"
)
"""What building the probe needs, by the names of Debian and Ubuntu."""

_KEPT_LINES = 12


def probe(mpi: Mpi | None = None) -> Path:
    """The probe for `mpi` (default: the embedded one), built now if it is not in the cache.

    The environment variable ELBOWROOM_PROBE names one that was built already (packages of a site) and must
    then have been built for the same MPI. Raises MachineError with the compiler's last lines when it cannot
    be built.
    """
    given = os.environ.get("ELBOWROOM_PROBE")
    if given:
        return _given(given)
    if mpi is None:
        mpi = find_mpi()
    sources = native_sources()
    compiler = compiler_identity()
    folder = cache_folder() / build_key(sources, mpi, compiler)
    if not (folder / "probe").exists():
        with _locked(folder):
            if not (folder / "probe").exists():
                _build(sources, mpi, folder)
    return folder / "probe"


def _given(path: str) -> Path:
    if not os.access(path, os.X_OK):
        raise MachineError(
            "this probe does not exist or is not executable",
            field="ELBOWROOM_PROBE",
            value=path,
            mend="unset the variable to let the probe be built",
        )
    return Path(path)


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
        "the sources of the probe are missing from this installation",
        field="probe",
        value=str(packaged),
        mend="install elbowroom again",
    )


def cache_folder() -> Path:
    """Where probes are kept: .elbowroom/probes of a checkout that can be written, else the user's cache."""
    root = checkout_root()
    if root is not None and os.access(root, os.W_OK):
        return root / ".elbowroom" / "probes"
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "elbowroom" / "probes"


def compiler_identity() -> str:
    """First line of the compiler's `--version`; raises MachineError when there is no compiler."""
    compiler = os.environ.get("CXX", "c++")
    found = shutil.which(compiler)
    if not found:
        raise _missing(f"no C++ compiler ({compiler}) was found")
    said = subprocess.run([found, "--version"], capture_output=True, text=True, check=False).stdout
    return f"{found} {said.splitlines()[0] if said else ''}"


def build_key(sources: Path, mpi: Mpi, compiler: str) -> str:
    """Hash of all that decides what the probe is: sources, MPI, compiler and flags."""
    digest = hashlib.sha256()
    for part in (mpi.kind, mpi.version, mpi.prefix, mpi.compiler, compiler, os.environ.get("CXXFLAGS", "")):
        digest.update(part.encode() + b"\0")
    files = [sources / "CMakeLists.txt", *sorted((sources / "core").rglob("*.[ch]pp"))]
    for file in files:
        if file.name.endswith("_test.cpp"):
            continue
        digest.update(str(file.relative_to(sources)).encode() + b"\0")
        digest.update(file.read_bytes() + b"\0")
    return f"{mpi.kind}-{mpi.version}-{digest.hexdigest()[:16]}"


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One builder at a time for one key; a second one waits and then finds the probe there."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with open(folder.parent / f"{folder.name}.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise MachineError(
            f"the probe cannot be kept here ({error.strerror})",
            field="cache",
            value=str(folder.parent),
            mend="set XDG_CACHE_HOME to a folder that can be written",
        ) from error


def _build(sources: Path, mpi: Mpi, folder: Path) -> None:
    cmake, ninja = _tool("cmake"), _tool("ninja")
    print(f"building the probe for {mpi.name} (about a minute, once)", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as temporary:
        tree = Path(temporary) / "tree"
        # The wrapper of some wheels names an absolute compiler of the machine it was made on.
        environment = {
            **os.environ,
            "OMPI_CXX": os.environ.get("CXX", "c++"),
            "MPICH_CXX": os.environ.get("CXX", "c++"),
        }
        _step(
            [
                cmake,
                "-S",
                str(sources),
                "-B",
                str(tree),
                "-G",
                "Ninja",
                f"-DCMAKE_MAKE_PROGRAM={ninja}",
                "-DCMAKE_BUILD_TYPE=Release",
                "-DELBOWROOM_TESTS=OFF",
                "-DELBOWROOM_LIBRARIES=OFF",
                f"-DMPI_CXX_COMPILER={mpi.compiler}",
            ],
            environment,
        )
        _step([cmake, "--build", str(tree), "--target", "probe"], environment)
        finished = Path(temporary) / "finished"
        finished.mkdir()
        shutil.copy2(tree / "probe", finished / "probe")
        os.rename(finished, folder)


def _tool(name: str) -> str:
    """A build tool from PATH or from a wheel in this virtual environment."""
    found = shutil.which(name) or shutil.which(name, path=sysconfig.get_path("scripts"))
    if not found:
        raise _missing(f"{name} was not found")
    return found


def _missing(what: str) -> MachineError:
    return MachineError(
        f"{what}, and the probe must be built",
        field="probe",
        mend=f"on Debian or Ubuntu `apt-get install {DEBIAN_PACKAGES}`",
    )


def _step(command: list[str], environment: dict[str, str]) -> None:
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
            field="probe",
            mend=f"what it needs, by Debian's names: {DEBIAN_PACKAGES}",
        )
