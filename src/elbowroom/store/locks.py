"""The lock of a journal: one writer at a time.

flock where the file system has it, else a lock file. Lustre without `-o flock` and some NFS answer flock with
an error. There a file NAME.lock, made exclusively, names host and process. It is taken over only from a
process of this host that has ended.
"""

from __future__ import annotations

import os
import secrets
import socket
from contextlib import suppress
from pathlib import Path

import msgspec

from elbowroom.errors import UsageError
from elbowroom.files import lock


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Who has a lock file; `started`: when the process began, in ticks, since numbers are used again."""

    host: str
    process: int
    started: str = ""


class Lock:
    """The lock of `path`, which is open as `handle`; UsageError where another process has it."""

    def __init__(self, path: Path, handle: int) -> None:
        self._path = path
        self._file: Path | None = None
        try:
            if not lock(handle):
                self._file = _take(path.with_name(f"{path.name}.lock"), path)
        except BlockingIOError as error:
            raise _held(path, "wait for it to end, or choose another --out") from error

    def move(self, handle: int) -> None:
        """Locks a file that is about to replace the locked one; a lock file stands for both."""
        if self._file is None:
            lock(handle)

    def release(self) -> None:
        """Gives up a lock file; a flock ends when its file is closed."""
        if self._file is not None:
            with suppress(OSError):
                self._file.unlink()


def _held(path: Path, hint: str) -> UsageError:
    return UsageError("another process is measuring into it", field="run", value=str(path.parent), hint=hint)


def _take(file: Path, path: Path) -> Path:
    """Makes the lock file. Linked or renamed into place, it has its content from the first moment on."""
    own = file.with_name(f"{file.name}.{os.getpid()}.{secrets.token_hex(4)}")
    holder = Holder(host=socket.gethostname(), process=os.getpid(), started=_started(os.getpid()))
    try:
        own.write_bytes(msgspec.json.encode(holder))
        try:
            os.link(own, file)
        except FileExistsError:
            _take_over(own, file, path)
    finally:
        own.unlink(missing_ok=True)
    return file


def _take_over(own: Path, file: Path, path: Path) -> None:
    """Replaces the lock file of a process of this host that has ended; UsageError for any other.

    One process at a time may do so, so that it replaces the file that it examined.
    """
    _refuse_living(file, path)
    turn = file.with_name(f"{file.name}.turn")
    try:
        os.link(own, turn)
    except FileExistsError as error:
        raise _held(path, f"wait for it to end; if none runs, remove {turn}") from error
    try:
        _refuse_living(file, path)
        os.rename(own, file)
    finally:
        turn.unlink()


def _refuse_living(file: Path, path: Path) -> None:
    """UsageError unless the process that has the lock file was one of this host, and has ended."""
    holder = _holder(file)
    if holder is None or holder.host != socket.gethostname():
        where = f" on {holder.host}" if holder is not None else ""
        raise _held(path, f"wait for it to end{where}; if it has ended, remove {file}")
    if _started(holder.process) == holder.started:
        raise _held(path, f"wait for process {holder.process} to end, or choose another --out")


def _holder(file: Path) -> Holder | None:
    try:
        return msgspec.json.decode(file.read_bytes(), type=Holder)
    except (OSError, msgspec.MsgspecError):
        return None


def _started(process: int) -> str:
    """When a process of this host began; empty where there is none."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return fields.rpartition(")")[2].split()[19]
