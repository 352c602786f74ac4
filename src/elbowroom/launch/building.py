"""One build with CMake and Ninja: its lock, its progress, and its folder, which outlives an interruption."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import shutil
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from elbowroom.errors import MachineError
from elbowroom.files import lock
from elbowroom.launch.processes import Finished, run
from elbowroom.launch.status import Status

_BETWEEN = 0.2
_UNUSED_DAYS = 7
_KEPT_LINES = 12
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
    status = Status()
    try:
        while True:
            try:
                return lock(handle)
            except BlockingIOError:
                status.show(_holder(handle))
                time.sleep(_BETWEEN)
    finally:
        status.close()


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
    print(f"building {target.text}", file=sys.stderr, flush=True)
    suffix = "build" if mine.alone else f"{os.getpid()}.build"
    tree = folder.with_name(f"{folder.name}.{suffix}")
    _remove_old_trees(folder.parent)
    continued = tree.exists()
    status = Status()
    try:
        configure = [cmake, "-S", str(target.sources), "-B", str(tree), "-G", "Ninja"]
        configure += [
            f"-DCMAKE_MAKE_PROGRAM={ninja}",
            "-DCMAKE_BUILD_TYPE=Release",
            *target.options,
            *options,
        ]
        done = _step(configure, environment, target, mine, status)
        if done.code != 0 and continued:
            # Left by another compiler or in another place.
            shutil.rmtree(tree)
            done = _step(configure, environment, target, mine, status)
        if done.code == 0:
            command = [cmake, "--build", str(tree), "--target", target.called or target.name]
            done = _step(command, environment, target, mine, status)
    finally:
        status.close()
    if done.code != 0:
        full = shutil.disk_usage(folder.parent).free < _ROOM or _NO_ROOM in done.stdout
        shutil.rmtree(tree, ignore_errors=True)
        raise _no_room(target, folder) if full else _failure(target, done.stdout)
    _publish(target, tree, folder)


def _step(
    command: list[str], environment: dict[str, str], target: Target, mine: Locked, status: Status
) -> Finished:
    reached = ["[configuring]" if "--build" not in command else "[...]"]

    def watch(output: str) -> None:
        reached.extend(_STEP.findall(output)[-1:])
        mine.announce(f"{target.subject} {reached[-1]}")
        status.show(f"{reached[-1]} {target.subject}")

    # Compilers that outlive this process keep the lock, and nobody else builds in the folder meanwhile.
    return run(command, field=target.name, env=environment, merged=True, watch=watch, pass_fds=(mine.handle,))


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
