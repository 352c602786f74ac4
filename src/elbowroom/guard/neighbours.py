"""Levers on neighbour jobs: they act while large messages of the guarded job move, and only then.

The neighbours are the processes of ELBOW_GUARD_NEIGHBOURS. A thread of the guard watches the board and acts
on its edges: at HIGH bytes of sends in flight, and once they have been LOW or less for QUIET seconds.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from elbowroom.errors import MachineError
from elbowroom.guard.board import Board
from elbowroom.guard.experiment import AS_IT_IS, PLACEBO
from elbowroom.guard.lever import GuardedProgram, Lever, LeverAccess

NEIGHBOURS = "ELBOW_GUARD_NEIGHBOURS"
HIGH = 1 << 20
LOW = 1 << 18
QUIET = 0.005
PERIOD = 0.001


class EdgeWatch:
    """Calls `act(True)` once much is in flight, and `act(False)` once it is over, also at the end."""

    def __init__(self, board: Board, act: Callable[[bool], None]) -> None:
        """Starts to watch. `act` may raise MachineError, which `end` raises again; then nothing acts more."""
        self._board = board
        self._act = act
        self._over = threading.Event()
        self._error: MachineError | None = None
        self.held = 0.0
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Stops, with everything as before."""
        self._over.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _watch(self) -> None:
        try:
            self._follow()
        except MachineError as error:
            self._error = error

    def _follow(self) -> None:
        above, low_since, begin = False, 0.0, 0.0
        while not self._over.wait(PERIOD):
            flight, now = sum(rank.out for rank in self._board.ranks()), time.monotonic()
            low_since = now if flight > LOW else low_since
            if not above and flight >= HIGH:
                above, begin = True, now
                self._act(True)
            elif above and now - low_since >= QUIET:
                above = False
                self._act(False)
                self.held += now - begin
        if above:
            self._act(False)
            self.held += time.monotonic() - begin


class NeighbourLever(Lever):
    """A lever whose `act` changes the neighbours at each edge."""

    inside = False

    def __init__(self) -> None:
        """Acts on nothing yet."""
        self._watch: EdgeWatch | None = None
        self._is_placebo = False

    def act(self, setting: str, above: bool, access: LeverAccess) -> None:
        """Makes a setting hold for the neighbours where `above`, else everything as before. MachineError
        where that cannot be done.
        """
        raise NotImplementedError

    def set(self, setting: str, access: LeverAccess) -> None:
        """From now on, at each edge of the board."""
        watch, self._watch = self._watch, None
        if watch is not None:
            try:
                watch.end()
            finally:
                self.held += 0.0 if self._is_placebo else watch.held
        self._is_placebo = setting == PLACEBO
        if setting != AS_IT_IS:
            self._watch = EdgeWatch(access.board, lambda above: self.act(setting, above, access))


def named_neighbours(program: GuardedProgram) -> tuple[str, ...]:
    """The words of NEIGHBOURS."""
    return tuple(program.env.get(NEIGHBOURS, "").replace(",", " ").split())


def why_no_neighbour(program: GuardedProgram) -> str | None:
    """What is wrong with NEIGHBOURS, as a sentence; None where each word is a process."""
    words = named_neighbours(program)
    if not words:
        return f"no neighbour is named; set {NEIGHBOURS} to the numbers of its processes"
    for word in words:
        if not word.isdecimal():
            return f"{NEIGHBOURS}: {word}: is not the number of a process"
        if not Path("/proc", word).is_dir():
            return f"{NEIGHBOURS}: {word}: {os.strerror(errno.ESRCH)}"
    return None


def neighbour_threads(program: GuardedProgram) -> tuple[int, ...]:
    """Those of all neighbours that still run. MachineError where none does."""
    threads: list[int] = []
    for word in named_neighbours(program):
        folder = Path("/proc") / word / "task"
        if folder.is_dir():
            threads += [int(path.name) for path in folder.iterdir()]
    if not threads:
        raise MachineError("no neighbour is left", field=NEIGHBOURS, value=program.env.get(NEIGHBOURS, ""))
    return tuple(threads)


def neighbour_cores(program: GuardedProgram) -> int:
    """How many cores the neighbours compute on at most. MachineError where none is left."""
    return min(len(neighbour_threads(program)), os.cpu_count() or 1)
