"""Builds native programs and libraries with CMake and keeps them in a cache; `build` lists them.

Each is built once for its sources, compiler and flags.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from elbowroom.errors import MachineError
from elbowroom.files import wrong_kind
from elbowroom.launch.building import Target, build, locked
from elbowroom.launch.mpi import launch_environment
from elbowroom.launch.processes import run

COMPILER_PACKAGES = "g++ cmake ninja-build"
"""What building anything needs, by the names of Debian and Ubuntu."""

_FOLDERS = ("trace-libraries",)
"""What `given` names as a folder."""

_building_s = 0.0
_unbuilt: list[str] | None = None


def given(name: str) -> Path | None:
    """The program that the environment names: ELBOWROOM_ and `name` in capitals."""
    variable = f"ELBOWROOM_{name.upper().replace('-', '_')}"
    path = os.environ.get(variable)
    if not path:
        return None
    what = "" if name in _FOLDERS else wrong_kind(Path(path), "file")
    if what or not os.access(path, os.X_OK):
        raise MachineError(
            what or f"this {name} cannot be executed",
            field=variable,
            value=path,
            hint=f"unset the variable to let the {name} be built",
        )
    return Path(path)


@contextmanager
def dry_run() -> Iterator[list[str]]:
    """Nothing is built meanwhile: `kept` answers where a program that is missing will be. The list gets a
    description of each such program.
    """
    global _unbuilt
    before = _unbuilt
    _unbuilt = [] if before is None else before
    try:
        yield _unbuilt
    finally:
        _unbuilt = before


def is_dry_run() -> bool:
    """Whether nothing is built now, and no program can be expected."""
    return _unbuilt is not None


def kept(target: Target, kind: str, key: str) -> Path:
    """The first file that the target makes, from the cache of its `kind`; built where it is not there yet."""
    global _building_s
    name = Path(target.products[0]).name
    root = checkout_root()
    if root is not None and (shared := root / ".elbowroom" / kind / key / name).exists():
        return shared  # also where this user may only read it
    folder = cache_folder(kind) / key
    first = folder / name
    if first.exists():
        return first
    if _unbuilt is not None:
        if target.text not in _unbuilt:
            _unbuilt.append(target.text)
        return first
    begun = time.monotonic()
    with locked(folder, target) as mine:
        if not first.exists():
            _check_programs_start(folder.parent, target)
            build(
                target,
                folder,
                mine,
                cmake=_tool("cmake", target),
                ninja=_tool("ninja", target),
                environment=_environment(),
                options=_options(),
            )
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
    """Where programs of a kind are cached: .elbowroom/KIND of a checkout that can be written and where
    programs may run, else in the user's cache. MachineError where this user has neither.
    """
    root = checkout_root()
    if root is not None and os.access(root, os.W_OK) and not _noexec(root):
        return root / ".elbowroom" / kind
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not os.path.isabs(base):
        raise MachineError(
            "is no absolute path, and the programs must be kept somewhere",
            field="XDG_CACHE_HOME" if os.environ.get("XDG_CACHE_HOME") else "HOME",
            value=base,
            hint="set XDG_CACHE_HOME to a folder that can be written",
        )
    return Path(base) / "elbowroom" / kind


def _noexec(folder: Path) -> bool:
    """Whether no program can be started from the file system of a folder."""
    return bool(os.statvfs(folder).f_flag & os.ST_NOEXEC)


def _check_programs_start(folder: Path, target: Target) -> None:
    if _noexec(folder):
        raise MachineError(
            f"no program can be started from here (the file system is mounted noexec), and the {target.name} "
            "must be built",
            field="cache",
            value=str(folder),
            hint="set XDG_CACHE_HOME to a folder on another file system",
        )


def compiler_identity(name: str = "program", packages: str = COMPILER_PACKAGES) -> str:
    """First line of the compiler's `--version`; raises MachineError when there is no compiler."""
    compiler = os.environ.get("CXX", "c++")
    path = shutil.which(compiler)
    if not path:
        raise _missing(f"no C++ compiler ({compiler}) was found", name, packages)
    version = run([path, "--version"], field="compiler").stdout
    return f"{path} {version.splitlines()[0] if version else ''}"


def files_below(sources: Path, folders: Sequence[str], *, recursive: bool = True) -> list[Path]:
    """The files of these folders of the sources, in order; folders that are not there have none.

    With a folder of lib come the files of lib itself, which all libraries use.
    """
    pattern = "**/*" if recursive else "*"
    paths = {path for folder in folders for path in (sources / folder).glob(pattern)}
    if any(folder.startswith("lib/") for folder in folders):
        paths.update((sources / "lib").glob("*"))
    return sorted(path for path in paths if path.is_file())


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


def _options() -> list[str]:
    """More options of CMake, which the environment gives."""
    return shlex.split(os.environ.get("ELBOWROOM_CMAKE", ""))


def _environment() -> dict[str, str]:
    """Of the compilers. The wrapper of some wheels names one by an absolute path of the machine it was made
    on.
    """
    cxx, cc = os.environ.get("CXX", "c++"), os.environ.get("CC", "cc")
    wrapped = {"OMPI_CXX": cxx, "MPICH_CXX": cxx, "OMPI_CC": cc, "MPICH_CC": cc}
    return {**os.environ, **launch_environment(), **wrapped}


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
