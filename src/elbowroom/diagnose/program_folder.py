"""What a program reads and writes beside its messages: files of its working directory and standard input.

A program that is run again must find what it found, and leave what it left. A listing before and after its
first run shows the files that it wrote; standard input that is a file is given to each run anew.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import stat
import sys
import tempfile
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from elbowroom.errors import MachineError, UsageError
from elbowroom.quantities import format_size

MOST_FILES = 50_000
MOST_COPIED = 2 << 30
"""Bytes of a working directory that is copied."""
MOST_READ = 64 << 20
"""Bytes of standard input that are given to each run."""

Listing = Mapping[str, tuple[int, int]]


class Before(NamedTuple):
    """What was there before the first run. `files`: time of change and size of each, None if there are too
    many; `offset`: in the file that is standard input; `waiting`: whether something can be read from it.
    """

    folder: Path
    files: Listing | None
    offset: int | None
    waiting: bool
    closed: bool


def before_first_run(folder: Path | None = None) -> Before:
    """The working directory and standard input as they are now."""
    folder = Path.cwd() if folder is None else folder
    offset, waiting, closed = _input()
    return Before(folder, listing(folder), offset, waiting, closed)


def listing(folder: Path) -> Listing | None:
    """All files below a folder; None if there are more than MOST_FILES."""
    files = {}
    for where, folders, names in os.walk(folder):
        folders.sort()
        for name in names:
            path = os.path.join(where, name)
            with contextlib.suppress(OSError):
                status = os.lstat(path)
                files[os.path.relpath(path, folder)] = (status.st_mtime_ns, status.st_size)
            if len(files) > MOST_FILES:
                return None
    return files


def written_files(before: Before, own: Collection[Path] = ()) -> tuple[str, ...] | None:
    """The files that were written, changed or removed since, without those below our `own` folders; None if
    that is not known.
    """
    after = listing(before.folder)
    if before.files is None or after is None:
        return None
    ours = [os.path.relpath(path.resolve(), before.folder.resolve()) for path in own]
    changed = [name for name in {*before.files, *after} if before.files.get(name) != after.get(name)]
    return tuple(sorted(name for name in changed if not _below(name, ours)))


def _below(name: str, folders: Collection[str]) -> bool:
    return any(name == folder or name.startswith(f"{folder}/") for folder in folders)


def _input() -> tuple[int | None, bool, bool]:
    """Offset in the file that is standard input (None: it is no file), whether something waits there, and
    whether its other end is closed.
    """
    try:
        number = sys.stdin.fileno() if sys.stdin is not None else 0
        mode = os.fstat(number).st_mode
    except (OSError, ValueError):
        return None, False, True
    if stat.S_ISREG(mode):
        return os.lseek(number, 0, os.SEEK_CUR), False, False
    if stat.S_ISCHR(mode):
        return None, False, True
    waiter = select.poll()
    waiter.register(number, select.POLLIN | select.POLLHUP)
    events = dict(waiter.poll(0)).get(number, 0)
    return None, bool(events & select.POLLIN), bool(events & select.POLLHUP)


def refused_input(before: Before) -> str:
    """Why the program's standard input cannot be given to it again; empty if it can."""
    if before.offset is not None:
        size = os.fstat(0).st_size - before.offset
        return f"its standard input has {format_size(size)}" if size > MOST_READ else ""
    _, waiting, closed = _input()
    if before.waiting or waiting or (closed and not before.closed):
        return "it reads standard input from a pipe; write that to a file: < FILE"
    return ""


def input_file(before: Before) -> str | None:
    """The file that is standard input, so that it can be read again; None if it is none."""
    return None if before.offset is None else os.path.realpath("/proc/self/fd/0")


def check_copied(folder: Path) -> None:
    """UsageError for a working directory that is too large to copy."""
    files = listing(folder)
    size = None if files is None else sum(size for _, size in files.values())
    if size is None or size > MOST_COPIED:
        what = f"more than {MOST_FILES} files" if size is None else format_size(size)
        raise UsageError(
            f"has {what}, too much to copy for each trial",
            field="copy_dir",
            value=str(folder),
            hint="start the program in a folder of its own, or leave trials out: --no-try",
        )


@contextlib.contextmanager
def copied(folder: Path, without: Collection[Path] = ()) -> Iterator[Path]:
    """A copy of a folder, without these folders in it; it is removed at the end."""
    skipped = {path.resolve() for path in without}

    def ignored(where: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(where, name).resolve() in skipped]

    try:
        place = tempfile.mkdtemp(prefix="elbowroom-trial-")
    except OSError as error:
        raise MachineError(
            f"cannot be copied ({error.strerror})", field="copy_dir", value=str(folder), hint="set TMPDIR"
        ) from error
    try:
        target = Path(place, folder.name or "root")
        shutil.copytree(folder, target, symlinks=True, ignore=ignored)
        yield target
    except shutil.Error as error:
        raise MachineError(
            f"cannot be copied ({error.args[0][0][2]})",
            field="copy_dir",
            value=str(folder),
            hint="set TMPDIR",
        ) from error
    finally:
        shutil.rmtree(place, ignore_errors=True)
