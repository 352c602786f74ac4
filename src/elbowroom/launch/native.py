"""Builds native programs and libraries with CMake and keeps them in a cache; `build` lists them.

Each is built once for its sources, compiler and flags.

One build has a lock, its progress, and a folder that outlives an interruption (`build`).
"""

from __future__ import annotations

import contextlib
import errno
import functools
import hashlib
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from elbowroom.errors import MachineError
from elbowroom.files import lock, wrong_kind
from elbowroom.heartbeat import Wait, say
from elbowroom.launch.mpi import Mpi, launch_environment
from elbowroom.launch.processes import Finished, run
from elbowroom.quantities import duration

COMPILER_PACKAGES = "g++ cmake ninja-build"
"""What building anything needs, by the names of Debian and Ubuntu."""

INSTALLER = "ELBOWROOM_INSTALLER"
"""The environment variable by which ./elbowroom names itself: it installs Debian's packages."""

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


def prebuilt(product: str, mpi: Mpi) -> Path | None:
    """The file that a wheel carries for the embedded MPI (docs/guide/install.md); None if there is none for
    this version, or if the environment names a compiler or options.
    """
    if not mpi.embedded or any(os.environ.get(name) for name in ("CXX", "CXXFLAGS", "ELBOWROOM_CMAKE")):
        return None
    folder = Path(__file__).resolve().parents[1] / "_prebuilt"
    try:
        version = (folder / "mpi-version").read_text(encoding="ascii").strip()
    except OSError:
        return None
    return folder / product if version == mpi.version else None


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
    start = time.monotonic()
    with locked(folder, target) as mine:
        if not first.exists():
            _check_programs_start(folder.parent, target)
            install(target.packages)
            build(
                target,
                folder,
                mine,
                cmake=_tool("cmake", target),
                ninja=_tool("ninja", target),
                environment=_environment(),
                options=_options(),
            )
    _building_s += time.monotonic() - start
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
            "is not an absolute path, and the programs must be kept somewhere",
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
    """First line of the compiler's `--version`. MachineError where there is no compiler, but in a dry run."""
    compiler = os.environ.get("CXX", "c++")
    path = shutil.which(compiler)
    if not path and install(packages):
        path = shutil.which(compiler)
    if not path:
        if is_dry_run():
            return f"{compiler}, which is not installed"
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
        hint=f"on Debian or Ubuntu, as root: apt-get install {missing_packages(packages) or packages}",
    )


_BETWEEN = 0.2
_UNUSED_DAYS = 7
_KEPT_LINES = 12
_FEW = 3
"""Steps of a build after which the time of the others can be estimated."""
_ROOM = 1 << 16
"""Bytes: with less room left, a build failed for want of it, whatever CMake says."""
_NO_ROOM = os.strerror(errno.ENOSPC)
_STEP = re.compile(r"^\[\d+/\d+\]", re.MULTILINE)


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

    @property
    def subject(self) -> str:
        """`text` without what is said of the time in brackets."""
        return self.text.partition(" (")[0]


class Locked(NamedTuple):
    """The lock of a build; `alone` is false where the file system has no locks, and two may build at once."""

    handle: int
    alone: bool

    def announce(self, text: str) -> None:
        """Writes who builds what, for those who wait."""
        with contextlib.suppress(OSError):
            os.ftruncate(self.handle, 0)
            os.pwrite(self.handle, f"{os.getpid()}\n{socket.gethostname()}\n{text}".encode(), 0)


@contextlib.contextmanager
def locked(folder: Path, target: Target) -> Iterator[Locked]:
    """One builder at a time for one folder of the cache; a second one waits, and says for which process."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        name = folder.with_name(f"{folder.name}.lock")
        handle = os.open(name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        try:
            mine = Locked(handle, _wait_for(handle))
            mine.announce(target.subject)
            yield mine
        finally:
            os.close(handle)
    except OSError as error:
        raise MachineError(
            f"the {target.name} cannot be kept here ({error.strerror})",
            field="cache",
            value=str(folder.parent),
            hint="set XDG_CACHE_HOME to a folder that can be written and has room",
        ) from error


def _wait_for(handle: int) -> bool:
    """Waits for the lock; False where the file system has none."""
    with Wait(lambda: _holder(handle)):
        while True:
            try:
                return lock(handle)
            except BlockingIOError:
                time.sleep(_BETWEEN)


def _holder(handle: int) -> str:
    """Who has the lock, as `Locked.announce` wrote it."""
    process, _, rest = os.pread(handle, 4096, 0).decode(errors="replace").partition("\n")
    host, _, text = rest.partition("\n")
    if not text:
        return "waiting for another build"
    where = "" if host == socket.gethostname() else f" on {host}"
    return f"waiting for process {process}{where}, which builds {text}"


def build(target: Target, folder: Path, mine: Locked, *, cmake: str, ninja: str, environment: dict[str, str],
          options: list[str]) -> None:  # fmt: skip
    """Builds the target's products into `folder`, which appears whole or not at all.

    The build's own folder stays where it is interrupted, and the next build goes on with it; a build that
    failed begins anew. MachineError with the compiler's last lines.
    """
    say(f"building {target.text}")
    suffix = "build" if mine.alone else f"{os.getpid()}.build"
    tree = folder.with_name(f"{folder.name}.{suffix}")
    _remove_old_trees(folder.parent)
    continued = tree.exists()
    configure = [cmake, "-S", str(target.sources), "-B", str(tree), "-G", "Ninja"]
    configure += [
        f"-DCMAKE_MAKE_PROGRAM={ninja}",
        "-DCMAKE_BUILD_TYPE=Release",
        *target.options,
        *options,
    ]
    done = _step(configure, environment, target, mine)
    if done.code != 0 and continued:
        # Left by another compiler or in another place.
        shutil.rmtree(tree)
        done = _step(configure, environment, target, mine)
    if done.code == 0:
        command = [cmake, "--build", str(tree), "--target", target.called or target.name]
        done = _step(command, environment, target, mine)
    if done.code != 0:
        full = shutil.disk_usage(folder.parent).free < _ROOM or _NO_ROOM in done.stdout
        shutil.rmtree(tree, ignore_errors=True)
        raise _no_room(target, folder) if full else _failure(target, done.stdout)
    _publish(target, tree, folder)


def _step(command: list[str], environment: dict[str, str], target: Target, mine: Locked) -> Finished:
    reached = ["[configuring]" if "--build" not in command else "[...]"]
    start = time.monotonic()

    def doing(output: str) -> str:
        reached.extend(_STEP.findall(output)[-1:])
        mine.announce(f"{target.subject} {reached[-1]}")
        return f"{reached[-1]} {target.subject}{_rest(reached[-1], time.monotonic() - start)}"

    # Compilers that outlive this process keep the lock, and nobody else builds in the folder meanwhile.
    return run(command, field=target.name, env=environment, merged=True, doing=doing, pass_fds=(mine.handle,))


def _rest(step: str, spent: float) -> str:
    """About how long a build still takes after `[12/40]` in so many seconds; empty where that is not known
    yet.
    """
    done, _, total = step.strip("[]").partition("/")
    if not total or int(done) < _FEW or done == total:
        return ""
    return f", about {duration(spent / int(done) * (int(total) - int(done)))} left"


def _publish(target: Target, tree: Path, folder: Path) -> None:
    finished = tree / "finished"
    finished.mkdir(exist_ok=True)
    for pattern in target.products:
        for path in sorted(tree.glob(pattern)):
            shutil.copy2(path, finished / path.name)
    if folder.exists():  # files of it were removed, for them to be built again
        shutil.rmtree(folder)
    os.rename(finished, folder)
    shutil.rmtree(tree, ignore_errors=True)


def _remove_old_trees(parent: Path) -> None:
    """Removes build folders that nobody has gone on with for a week: their sources have changed."""
    for tree in parent.glob("*.build"):
        with contextlib.suppress(OSError):
            if time.time() - tree.stat().st_mtime > _UNUSED_DAYS * 86400:
                shutil.rmtree(tree, ignore_errors=True)


def _no_room(target: Target, folder: Path) -> MachineError:
    return MachineError(
        f"the disk is full, and the {target.name} could not be built",
        field="cache",
        value=str(folder.parent),
        hint="free space there, or set XDG_CACHE_HOME to a folder on another disk",
    )


def _failure(target: Target, output: str) -> MachineError:
    lacking = missing_packages(target.packages)
    if lacking:
        return MachineError(
            f"the {target.name} could not be built, and of what it needs {lacking} is not installed",
            field=target.name,
            hint=f"as root: apt-get install {lacking}",
        )
    lines = [line for line in output.splitlines() if line.strip()]
    telling = [line for line in lines if "error" in line.lower()] or lines
    return MachineError(
        "building it failed: " + " | ".join(line.strip() for line in telling[-_KEPT_LINES:]),
        field=target.name,
        hint=f"what it needs, by Debian's names: {target.packages}",
    )


def missing_packages(names: str) -> str:
    """Those of Debian's packages that are not installed; empty where dpkg does not exist."""
    if shutil.which("dpkg-query") is None:
        return ""
    query = ["dpkg-query", "-W", "-f=${Package} ${db:Status-Status}\n", *names.split()]
    listed = run(query, field="dpkg-query").stdout.splitlines()
    installed = {line.split()[0] for line in listed if line.endswith(" installed")}
    return " ".join(name for name in names.split() if name not in installed)


def install(packages: str) -> bool:
    """Installs those of Debian's packages that are missing, where ./elbowroom started this process as root,
    and not in a dry run; returns whether it did.
    """
    script = os.environ.get(INSTALLER)
    if not script or os.geteuid() != 0 or is_dry_run():
        return False
    lacking = missing_packages(packages)
    if not lacking:
        return False
    words = [script, "install", *lacking.split()]
    # Its progress is on stderr; stdout may hold a document.
    return subprocess.run(words, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False).returncode == 0


_PATIENCE = 10


@functools.cache
def commit(root: Path) -> str | None:
    """The commit of a checkout, with `+` where tracked files differ from it; None where git cannot tell. Read
    once in a process.
    """
    try:
        named, changed = (
            subprocess.run(
                ["git", "-C", str(root), *words], capture_output=True, text=True, timeout=_PATIENCE
            )
            for words in (("rev-parse", "HEAD"), ("status", "--porcelain", "--untracked-files=no"))
        )
    except (OSError, subprocess.SubprocessError):
        return None
    if named.returncode or changed.returncode:
        return None
    return named.stdout.strip() + ("+" if changed.stdout.strip() else "")
