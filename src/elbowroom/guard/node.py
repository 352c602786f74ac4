"""The one guard that acts on a node.

Where a launcher starts a guard for each rank (`mpirun elbowroom guard -- ./app`), the first one on each node
acts for all of them, and the others start their ranks on its board. So each node of a job has its guard,
which acts on its own.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from elbowroom.guard.board import SHARED, VARIABLE

NODE_LOCK = "elbow-guard-node.lock"
PATIENCE = 60.0
"""Seconds in which the guard that acts says where its board is: a first run builds its libraries before."""
_RANKS = ("PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID")
_NAP = 0.02


class NodeGuard(NamedTuple):
    """What a guard may do on its node: `reason`: why it must not act, None where it may; `board`: that of the
    guard that acts for its rank; `lock`: the file by which it acts, -1: none.
    """

    reason: str | None = None
    board: Path | None = None
    lock: int = -1

    def offer(self, board: Path | None) -> None:
        """Lets the other guards of the same launcher use the board; None: there is none."""
        if self.lock >= 0:
            with contextlib.suppress(OSError):  # another user's file: nothing is offered
                os.pwrite(self.lock, f"{os.getppid()} {board or ''}\n".encode(), 0)


def rank_of(env: Mapping[str, str]) -> int | None:
    """The rank as which a launcher started this guard; None where none did."""
    numbers = (env[name] for name in _RANKS if env.get(name, "").isdecimal())
    return next(map(int, numbers), None)


@contextlib.contextmanager
def guard_of_node(env: Mapping[str, str]) -> Iterator[NodeGuard]:
    """Whether this guard may act, until the block ends."""
    if env.get(VARIABLE):
        yield NodeGuard("a guard runs this guard: only the outer one acts")
        return
    path = SHARED / NODE_LOCK
    try:
        number = _open(path)
    except OSError as error:
        yield NodeGuard(f"{path}: cannot be opened ({error.strerror}), so another guard would not be seen")
        return
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        board = None if rank_of(env) is None else _offered_board(number)
        reason = "another guard runs on this node: one guard acts at a time"
        yield NodeGuard(reason if board is None else None, board)
    else:
        with contextlib.suppress(OSError):  # another user's file: nothing is offered
            os.truncate(number, 0)
        yield NodeGuard(lock=number)
    finally:
        os.close(number)


def _open(path: Path) -> int:
    try:
        # Another user's file may be opened, but not with O_CREAT.
        return os.open(path, os.O_RDWR if path.exists() else os.O_RDWR | os.O_CREAT, 0o644)
    except PermissionError:
        return os.open(path, os.O_RDONLY)


def _offered_board(number: int) -> Path | None:
    """That of the guard that acts, if the same process of the launcher started it."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        line = os.pread(number, 4096, 0).decode()
        if line.endswith("\n"):
            launcher, _, board = line.rstrip("\n").partition(" ")
            return Path(board) if board and launcher == str(os.getppid()) else None
        time.sleep(_NAP)
    return None
