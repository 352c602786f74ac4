"""Turns of tests in several workers: one that must be alone waits until those that run have ended."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path


@contextmanager
def turn(folder: Path, *, alone: bool) -> Iterator[None]:
    """Holds the turn of one test; all workers of a run have the folder in common."""
    gate, room = _locks(folder)
    kind = fcntl.LOCK_EX if alone else fcntl.LOCK_SH
    # Who waits to be alone holds the gate: others that begin meanwhile would keep the room occupied for ever.
    fcntl.flock(gate, kind)
    fcntl.flock(room, kind)
    fcntl.flock(gate, fcntl.LOCK_UN)
    try:
        yield
    finally:
        fcntl.flock(room, fcntl.LOCK_UN)


def wait_until_alone(folder: Path) -> None:
    """Until the turn that is held ends, no other test runs. It is given up first: two tests that each waited
    for the other one would wait for ever.
    """
    gate, room = _locks(folder)
    fcntl.flock(room, fcntl.LOCK_UN)
    fcntl.flock(gate, fcntl.LOCK_EX)
    fcntl.flock(room, fcntl.LOCK_EX)
    fcntl.flock(gate, fcntl.LOCK_UN)


@cache
def _locks(folder: Path) -> tuple[int, int]:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
    return os.open(folder / "gate", flags, 0o600), os.open(folder / "room", flags, 0o600)
