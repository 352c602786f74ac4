"""Files: outputs that replace a file whole or not at all, inputs that are bounded, and sentences for disks.

Every output of elbowroom is written here, so one place decides what happens to what is there already: a
regular file is replaced at once (a symbolic link stays, its target is replaced), a device or a pipe is
written into, and a folder, a file of a run or a file of a trace is refused.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal

from elbowroom.errors import ElbowroomError, MachineError, UsageError

LARGEST = 256 << 20
"""Bytes of the largest document that is read; plans, models and manifests are far below 1 MiB."""

RUN_FILES = ("manifest.json", "topology.xml", "samples.jsonl", "samples.parquet")
CHECK_FILES = ("times.jsonl", "advice.json")
"""Files that hold what was measured: of a run, and of a check of an advice (measure.verify)."""

_TRACE_FILE = re.compile(r"rank-\d+(\.jsonl|\.thread-\d+\.ring)")
_STDOUT = "-"
_READER_WAIT = 3.0
"""Seconds that a pipe without a reader is given to get one."""

NO_LOCKS = (errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOLCK)
"""What flock answers on file systems without locks: Lustre without -o flock, some NFS."""
_NO_DIRECTORY_SYNC = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EBADF, errno.EACCES)
"""What opening or syncing a directory answers where that is not possible: CIFS, some FUSE file systems."""

_HINTS = {
    errno.ENOSPC: "free space there, or choose another disk",
    errno.EDQUOT: "free space in your quota, or choose another disk",
    errno.EFBIG: "raise the limit of file sizes (ulimit -f), or choose another disk",
    errno.EIO: "the disk reports an error: choose another disk",
    errno.EROFS: "the disk is read-only: choose another place",
    errno.EACCES: "choose a place you may write to",
    errno.EPERM: "choose a place you may write to",
    errno.ENOENT: "its parent folder must exist",
    errno.ENOTDIR: "its parent must be a folder",
    errno.EISDIR: "name a file in it",
    errno.EEXIST: "a file is in the place of its parent folder: choose another place",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ELOOP: "the symbolic link leads to itself: choose another name",
    errno.ENXIO: "nothing reads it: start its reader first, or name a file",
    errno.EPIPE: "its reader ended early: choose a file",
}
_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


_WRONG_NAMES = (
    errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ELOOP, errno.ENAMETOOLONG
)  # fmt: skip
"""Errors of a path that can never be written, whatever the disk's state: the request must change."""


def disk_error(error: OSError, path: Path | str, field: str = "file") -> ElbowroomError:
    """One sentence for a write that failed: a UsageError for a wrong path, a MachineError for the disk's
    refusal.
    """
    kind = UsageError if error.errno in _WRONG_NAMES else MachineError
    return kind(
        f"cannot be written ({error.strerror or error})",
        field=field,
        value=str(path),
        hint=_HINTS.get(error.errno or 0, "choose another place"),
    )


def no_space(what: str) -> MachineError:
    """The error where the disk of temporary files has none for what is written there."""
    return MachineError(
        f"has no space for {what}",
        field="TMPDIR",
        value=tempfile.gettempdir(),
        hint="name a larger folder",
    )


def wrong_kind(path: Path, wanted: Literal["file", "folder"]) -> str:
    """Why there is no file or folder at a path: nothing is there, or something else; empty where there is."""
    try:
        mode = os.stat(path).st_mode
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):
            return f"cannot be read ({error.strerror})"
        return "is a symbolic link that leads nowhere" if path.is_symlink() else "does not exist"
    kind = "a file" if stat.S_ISREG(mode) else _kind(mode)
    return "" if kind == f"a {wanted}" else f"is {kind}, not a {wanted}"


def read_document(path: Path, *, field: str, hint: str, limit: int = LARGEST) -> bytes:
    """The content of a file that a person named.

    UsageError where it cannot be read, is not a regular file (a pipe or a device may never end), or has more
    than `limit` bytes; `field` and `hint` are those of the error.
    """
    try:
        # A pipe without a writer would wait for one.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError) as error:
        raise _unreadable(error, path, field, hint) from error
    try:
        status = os.fstat(handle)
        _check_regular(status.st_mode, path, field, hint)
        with open(handle, "rb", closefd=False) as file:
            # Not `limit` at once: so much memory would be reserved.
            data = file.read(1 + min(limit, max(status.st_size, 1 << 20)))
    except OSError as error:
        raise _unreadable(error, path, field, hint) from error
    finally:
        os.close(handle)
    if len(data) > limit:
        raise UsageError(
            f"is larger than {limit >> 20} MiB and cannot be such a file",
            field=field,
            value=str(path),
            hint=hint,
        )
    return data


def data_folder(name: str) -> Path:
    """A folder of data: inside the installed package, or beside the sources of a checkout."""
    package = Path(__file__).resolve().parent
    installed = package / name
    return installed if installed.is_dir() else package.parents[1] / name


def check_file(path: Path, *, field: str, hint: str) -> None:
    """Raises the errors of `read_document` for a path that is not a regular file; reads nothing."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError) as error:
        raise _unreadable(error, path, field, hint) from error
    _check_regular(mode, path, field, hint)


def _check_regular(mode: int, path: Path, field: str, hint: str) -> None:
    if not stat.S_ISREG(mode):
        raise UsageError(f"is {_kind(mode)}, not a file", field=field, value=str(path), hint=hint)


def _unreadable(error: OSError | ValueError, path: Path, field: str, hint: str) -> UsageError:
    why = getattr(error, "strerror", None) or str(error)
    return UsageError(f"cannot be read ({why})", field=field, value=str(path), hint=hint)


def read_text(path: Path, *, field: str, hint: str, limit: int = LARGEST) -> str:
    """The same for text in UTF-8, with or without a byte order mark."""
    try:
        return read_document(path, field=field, hint=hint, limit=limit).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError("is not text in UTF-8", field=field, value=str(path), hint=hint) from error


def check_output(path: Path, inputs: Iterable[Path] = (), *, field: str = "out") -> None:
    """Raises UsageError for an output that would destroy measured data.

    That is a file of a run or of a trace, one of the `inputs`, or a file of a run or trace folder among them.
    Links are followed, and hard links are recognised.
    """
    _refuse_kept(path, field)
    same = _identity(path)
    if same is None:
        return
    for source in inputs:
        files = (source, *_kept_in(source)) if source.is_dir() else (source,)
        if any(_identity(file) == same for file in files):
            raise UsageError(
                "is what is read, and would be destroyed" if source in files[:1] else "holds measured data",
                field=field,
                value=str(path),
                hint="choose another name for the output",
            )


def try_output(path: Path, *, field: str = "out") -> None:
    """Raises the errors of `write_atomically` before anything is computed for the output.

    UsageError also if the folder does not exist, MachineError if it cannot be written to. Creates no file.
    """
    _refuse_kept(path, field)
    try:
        target = _target(path)
        if target is not None:
            os.stat(target.parent)
            if not os.access(target.parent, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise disk_error(error, path, field) from error


def check_writable(path: Path, *, field: str = "out") -> None:
    """Writes a temporary file beside the output and removes it, before anything is measured for it.

    UsageError for a wrong path and for a file of a run, MachineError if the disk refuses.
    """
    _refuse_kept(path, field)
    try:
        target = _target(path)
        if target is not None:
            handle, name = tempfile.mkstemp(prefix=temporary_prefix(target), suffix=".tmp", dir=target.parent)
            os.close(handle)
            os.unlink(name)
    except OSError as error:
        raise disk_error(error, path, field) from error


def write_atomically(path: Path, data: bytes, *, own: bool = False) -> None:
    """Replaces `path` by `data`; after a crash or a full disk the earlier content is still there.

    A device or a pipe is written into. UsageError for a wrong path and for a file of a run or of a trace,
    unless it is the store's `own`; MachineError when the disk refuses.
    """
    write_with(path, lambda temporary: temporary.write_bytes(data), own=own)


def write_with(path: Path, write: Callable[[Path], object], *, own: bool = False) -> None:
    """Like write_atomically, with the content produced by `write(temporary path)`."""
    if not own:
        _refuse_kept(path, "out")
    try:
        target = _target(path)
        if target is None:
            _write_into(path, write)
        else:
            _replace(target, write)
    except OSError as error:
        raise disk_error(error, path, "file" if own else "out") from error


def make_folder(path: Path, *, field: str, hint: str) -> None:
    """Makes a folder and those above it; UsageError where that is impossible."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"cannot be made ({error.strerror})", field=field, value=str(path), hint=hint
        ) from error


def sync(path: Path) -> None:
    """Forces a file to the disk."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def sync_folder(path: Path) -> None:
    """Forces the names in a folder to the disk, where the file system can."""
    try:
        sync(path)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise


def write_all(handle: int, data: bytes) -> None:
    """Writes all of `data` to a file descriptor; a short write goes on, or tells why it cannot."""
    left = memoryview(data)
    while left:
        written = os.write(handle, left)
        if written <= 0:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        left = left[written:]


def lock(handle: int) -> bool:
    """Takes the lock of an open file for this process; False where the file system has no locks.

    BlockingIOError where another process has it.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in NO_LOCKS:
            return False
        raise
    return True


def is_stdout(path: Path | str) -> bool:
    """Whether an output goes where this process prints: `-`, /dev/stdout or the same file by another name."""
    return str(path) == _STDOUT or _open_as(Path(path)) == 1


def _kind(mode: int) -> str:
    return next((name for test, name in _KINDS if test(mode)), "no regular file")


def _refuse_kept(path: Path, field: str) -> None:
    """Refuses names under which a run or a trace keeps what was measured."""
    real = Path(os.path.realpath(path))
    if real.name in RUN_FILES and any(
        (real.parent / name).exists() for name in ("manifest.json", "samples.jsonl")
    ):
        what = "is a file of a run, which holds what was measured"
    elif real.name in CHECK_FILES and (real.parent / CHECK_FILES[0]).exists():
        what = "is a file of a check of an advice, which holds what was measured"
    elif _TRACE_FILE.fullmatch(real.name):
        what = "is the name of a file of a trace"
    else:
        return
    raise UsageError(what, field=field, value=str(path), hint="choose another name for the output")


def _kept_in(folder: Path) -> list[Path]:
    """The files of a run or trace folder that hold what was measured."""
    with suppress(OSError):
        names = os.listdir(folder)
        return [
            folder / name
            for name in names
            if name in (*RUN_FILES, *CHECK_FILES) or _TRACE_FILE.fullmatch(name)
        ]
    return []


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and number of a regular file; None for anything else."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None


def _open_as(path: Path) -> int | None:
    """1 or 2 where the path is this process' own stdout or stderr."""
    for number in (1, 2):
        with suppress(OSError, ValueError):
            if os.path.samestat(os.stat(path), os.fstat(number)):
                return number
    return None


def _target(path: Path) -> Path | None:
    """The regular file to replace, links followed; None where what is there is written into."""
    if not str(path) or path == Path():
        raise UsageError("names no file", field="out", value=str(path), hint="name a file")
    if str(path) == _STDOUT or _open_as(path) is not None:
        return None
    real = Path(os.path.realpath(path))
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return real
    if stat.S_ISDIR(mode):
        raise UsageError("is a folder", field="out", value=str(path), hint="name a file in it")
    # What lies below /proc/self/fd is open already, and its reader would not see a new file.
    through_proc = Path(os.path.realpath(path.parent)).is_relative_to("/proc")
    return real if stat.S_ISREG(mode) and not through_proc else None


def _replace(target: Path, write: Callable[[Path], object]) -> None:
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=temporary_prefix(target), suffix=".tmp", dir=target.parent)
        os.close(handle)
        temporary = Path(name)
        write(temporary)
        # mkstemp makes files for the owner alone; results are for whoever may read the folder.
        os.chmod(temporary, _mode(target))
        sync(temporary)
        os.replace(temporary, target)
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink()
    sync_folder(target.parent)


def temporary_prefix(target: Path) -> str:
    """How the name of a file begins that will replace `target`, cut so that the whole name stays legal."""
    name = os.fsencode(target.name)[:200]
    return f".{os.fsdecode(name)}."


def _mode(target: Path) -> int:
    """The permissions of the file that is replaced; of a new one what the umask leaves."""
    try:
        return os.stat(target).st_mode & 0o777
    except OSError:
        mask = os.umask(0o022)
        os.umask(mask)
        return 0o666 & ~mask


def _write_into(path: Path, write: Callable[[Path], object]) -> None:
    """Writes into a device, a pipe or this process' own output, which cannot be replaced."""
    with tempfile.TemporaryDirectory(prefix="elbowroom-") as folder:
        # Some formats must seek, or go by the suffix.
        temporary = Path(folder) / f"output{path.suffix}"
        write(temporary)
        data = temporary.read_bytes()
    handle = _opened(path)
    try:
        write_all(handle, data)
    finally:
        os.close(handle)


def _opened(path: Path) -> int:
    number = 1 if str(path) == _STDOUT else _open_as(path)
    if number is not None:
        # Opened anew, a file would be written from its beginning.
        (sys.stdout if number == 1 else sys.stderr).flush()
        return os.dup(number)
    end = time.monotonic() + _READER_WAIT
    while True:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
        except OSError as error:
            if error.errno != errno.ENXIO or not path.is_fifo() or time.monotonic() > end:
                raise
            time.sleep(0.02)
        else:
            os.set_blocking(handle, True)
            return handle
