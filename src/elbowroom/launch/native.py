"""Builds native programs and libraries with CMake and keeps them in a cache; `build` lists them.

Each is built once for its sources, compiler and flags.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shlex
import shutil
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from elbowroom.errors import MachineError
from elbowroom.files import NO_LOCKS
from elbowroom.launch.mpi import launch_environment
from elbowroom.launch.processes import run

COMPILER_PACKAGES = "g++ cmake ninja-build"
"""What building anything needs, by the names of Debian and Ubuntu."""

_KEPT_LINES = 12
_building_s = 0.0


class Target(NamedTuple):
    """What CMake builds.

    `name` is for people; `sources` is the folder of the CMakeLists.txt; `options` are CMake's. `products` are
    the files to keep (paths in the build folder, all but the first may be patterns); `packages` the Debian
    packages it needs; `text` is printed meanwhile; `called` is CMake's name if that differs (`all`:
    everything).
    """

    name: str
    sources: Path
    options: tuple[str, ...]
    products: tuple[str, ...]
    packages: str
    text: str
    called: str = ""


def given(name: str) -> Path | None:
    """The program that the environment names: ELBOWROOM_ and `name` in capitals."""
    variable = f"ELBOWROOM_{name.upper().replace('-', '_')}"
    path = os.environ.get(variable)
    if not path:
        return None
    if not os.access(path, os.X_OK):
        raise MachineError(
            f"this {name} does not exist or is not executable",
            field=variable,
            value=path,
            hint=f"unset the variable to let the {name} be built",
        )
    return Path(path)


def kept(target: Target, folder: Path) -> Path:
    """The first file that the target makes, in this folder of the cache; built where it is not there yet."""
    global _building_s
    first = folder / Path(target.products[0]).name
    if not first.exists():
        begun = time.monotonic()
        with _locked(folder, target.name):
            if not first.exists():
                _build(target, folder)
        _building_s += time.monotonic() - begun
    return first


def building_seconds() -> float:
    """Seconds that this process has waited so far for programs to be built, by itself or by another."""
    return _building_s


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
        hint="install elbowroom again",
    )


def cache_folder(kind: str = "probes") -> Path:
    """Where programs of a kind are cached: .elbowroom/KIND of a writable checkout, else the user's cache."""
    root = checkout_root()
    if root is not None and os.access(root, os.W_OK):
        return root / ".elbowroom" / kind
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return Path(base) / "elbowroom" / kind


def compiler_identity(name: str = "program", packages: str = COMPILER_PACKAGES) -> str:
    """First line of the compiler's `--version`; raises MachineError when there is no compiler."""
    compiler = os.environ.get("CXX", "c++")
    path = shutil.which(compiler)
    if not path:
        raise _missing(f"no C++ compiler ({compiler}) was found", name, packages)
    version = run([path, "--version"], field="compiler").stdout
    return f"{path} {version.splitlines()[0] if version else ''}"


def files_below(sources: Path, folders: Sequence[str], *, recursive: bool = True) -> list[Path]:
    """The files of these folders of the sources, in order; folders that are not there have none."""
    pattern = "**/*" if recursive else "*"
    return sorted(path for folder in folders for path in (sources / folder).glob(pattern) if path.is_file())


def source_key(sources: Path, files: Sequence[Path], others: Sequence[str]) -> str:
    """Hash of the contents of the files but tests, of flags, and of what else decides what is built."""
    digest = hashlib.sha256()
    for part in (*others, os.environ.get("CXXFLAGS", ""), *_options()):
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
            _wait_for(lock.fileno())
            yield
    except OSError as error:
        raise MachineError(
            f"the {name} cannot be kept here ({error.strerror})",
            field="cache",
            value=str(folder.parent),
            hint="set XDG_CACHE_HOME to a folder that can be written",
        ) from error


def _wait_for(handle: int) -> None:
    """Waits for the lock. Where the file system has none, two may build at once: the last one's stays."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise


def _options() -> list[str]:
    """More options of CMake, which the environment gives."""
    return shlex.split(os.environ.get("ELBOWROOM_CMAKE", ""))


def _build(target: Target, folder: Path) -> None:
    cmake, ninja = _tool("cmake", target), _tool("ninja", target)
    print(f"building {target.text}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory(prefix=f"{folder.name}.", dir=folder.parent) as temporary:
        tree = Path(temporary) / "tree"
        # The wrapper of some wheels names an absolute compiler of the machine it was made on.
        environment = {
            **os.environ,
            **launch_environment(),
            "OMPI_CXX": os.environ.get("CXX", "c++"),
            "MPICH_CXX": os.environ.get("CXX", "c++"),
            "OMPI_CC": os.environ.get("CC", "cc"),
            "MPICH_CC": os.environ.get("CC", "cc"),
        }
        configure = [cmake, "-S", str(target.sources), "-B", str(tree), "-G", "Ninja"]
        configure += [f"-DCMAKE_MAKE_PROGRAM={ninja}", "-DCMAKE_BUILD_TYPE=Release", *target.options]
        configure += _options()
        _step(configure, environment, target)
        called = target.called or target.name
        _step([cmake, "--build", str(tree), "--target", called], environment, target)
        finished = Path(temporary) / "finished"
        finished.mkdir()
        for pattern in target.products:
            for path in sorted(tree.glob(pattern)):
                shutil.copy2(path, finished / path.name)
        if folder.exists():  # files of it were removed, for them to be built again
            shutil.rmtree(folder)
        os.rename(finished, folder)


def _tool(name: str, target: Target) -> str:
    """A build tool from PATH or from a wheel in this virtual environment."""
    path = shutil.which(name) or shutil.which(name, path=sysconfig.get_path("scripts"))
    if not path:
        raise _missing(f"{name} was not found", target.name, target.packages)
    return path


def _missing(what: str, name: str, packages: str) -> MachineError:
    return MachineError(
        f"{what}, and the {name} must be built",
        field=name,
        hint=f"on Debian or Ubuntu `apt-get install {packages}`",
    )


def _step(command: list[str], environment: dict[str, str], target: Target) -> None:
    done = run(command, field=target.name, env=environment, merged=True)
    if done.code != 0:
        lines = [line for line in done.stdout.splitlines() if line.strip()]
        telling = [line for line in lines if "error" in line.lower()] or lines
        raise MachineError(
            "building it failed: " + " | ".join(line.strip() for line in telling[-_KEPT_LINES:]),
            field=target.name,
            hint=f"what it needs, by Debian's names: {target.packages}",
        )
