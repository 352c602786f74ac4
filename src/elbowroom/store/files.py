"""Files written whole or not at all, and the sentences for disks that refuse."""

from __future__ import annotations

import errno
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from elbowroom.errors import MachineError

_MENDS = {
    errno.ENOSPC: "make room there, or choose another disk",
    errno.EDQUOT: "make room in your quota, or choose another disk",
    errno.EROFS: "the disk is read-only: choose another place",
    errno.EACCES: "choose a place you may write to",
    errno.EPERM: "choose a place you may write to",
    errno.ENOENT: "its parent folder must exist",
    errno.ENOTDIR: "its parent must be a folder",
}


def disk_error(error: OSError, path: Path | str, field: str = "file") -> MachineError:
    """One sentence for a write that the disk refused."""
    return MachineError(
        f"cannot be written ({error.strerror or error})",
        field=field,
        value=str(path),
        mend=_MENDS.get(error.errno or 0, ""),
    )


def write_atomically(path: Path, data: bytes) -> None:
    """Replaces `path` by `data`; after a crash or a full disk the earlier content is still there."""
    write_with(path, lambda temporary: temporary.write_bytes(data))


def write_with(path: Path, write: Callable[[Path], object]) -> None:
    """Like write_atomically, with the content produced by `write(temporary path)`."""
    temporary: Path | None = None
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
        os.close(handle)
        temporary = Path(name)
        write(temporary)
        # mkstemp makes files for the owner alone; results are for whoever may read the folder.
        os.chmod(temporary, 0o666 & ~_umask())
        sync(temporary)
        os.replace(temporary, path)
    except OSError as error:
        raise disk_error(error, path) from error
    finally:
        if temporary is not None:
            with suppress(OSError):
                temporary.unlink()
    sync(path.parent)


def sync(path: Path) -> None:
    """Forces a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
