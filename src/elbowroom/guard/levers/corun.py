"""The lever `corun`: neighbour jobs yield while large messages of the guarded job move.

The neighbours are the processes of ELBOW_GUARD_NEIGHBOURS. A thread of the guard watches the board and acts
on its edges: at HIGH bytes of sends in flight, and once they have been LOW or less for QUIET seconds.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from elbowroom.errors import MachineError
from elbowroom.guard.board import Board
from elbowroom.guard.experiment import AS_IT_IS, PLACEBO
from elbowroom.guard.lever import GuardedProgram, Lever, LeverAccess, LeverReading

NEIGHBOURS = "ELBOW_GUARD_NEIGHBOURS"
HIGH = 1 << 20
LOW = 1 << 18
QUIET = 0.005
PERIOD = 0.001
_NORMAL = (os.SCHED_OTHER, os.SCHED_BATCH, os.SCHED_IDLE)


class EdgeWatch:
    """Calls `act(True)` once much is in flight, and `act(False)` once it is over, also at the end."""

    def __init__(self, board: Board, act: Callable[[bool], None]) -> None:
        """Starts to watch. `act` may raise MachineError, which `end` raises again; then nothing acts more."""
        self._board = board
        self._act = act
        self._over = threading.Event()
        self._error: MachineError | None = None
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
        above, low_since = False, 0.0
        while not self._over.wait(PERIOD):
            flight, now = sum(rank.out for rank in self._board.ranks()), time.monotonic()
            low_since = now if flight > LOW else low_since
            if not above and flight >= HIGH:
                above = True
                self._act(True)
            elif above and now - low_since >= QUIET:
                above = False
                self._act(False)
        if above:
            self._act(False)


class Corun(Lever):
    """Neighbours yield: `idle`: they get the processor time that nobody else wants; `away`: they leave the
    cores of the ranks.
    """

    name = "corun"
    number = 4
    inside = False

    def __init__(self) -> None:
        """Acts on nothing yet."""
        self._watch: EdgeWatch | None = None
        self._before: dict[int, tuple[int, tuple[int, ...]]] = {}

    def missing(self, program: GuardedProgram) -> str | None:
        """Where nobody names neighbours, or they are another user's."""
        words = program.env.get(NEIGHBOURS, "").replace(",", " ").split()
        if not words:
            return f"no neighbour is named; set {NEIGHBOURS} to the numbers of its processes"
        for word in words:
            try:
                policy = os.sched_getscheduler(int(word))
                if policy not in _NORMAL:
                    return f"{NEIGHBOURS}: {word}: has a real-time policy, which is left alone"
                os.sched_setscheduler(int(word), policy, os.sched_param(0))  # whether that is allowed
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or "is not the number of a process"
                return f"{NEIGHBOURS}: {word}: {reason}"
        return None

    def settings(self, program: GuardedProgram) -> tuple[str, ...]:
        """Both."""
        return ("idle", "away")

    def set(self, setting: str, access: LeverAccess) -> None:
        """From now on, at each edge of the board."""
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.end()
        if setting != AS_IT_IS:
            self._watch = EdgeWatch(access.board, lambda above: self._act(setting, above, access))

    def read(self, access: LeverAccess) -> str:
        """What holds for all threads of the neighbours at this moment."""
        threads = _threads(access.program)
        if threads and all(os.sched_getscheduler(thread) == os.SCHED_IDLE for thread in threads):
            return "idle"
        cores = _cores_of_ranks(access)
        if threads and not any(cores & os.sched_getaffinity(thread) for thread in threads):
            return "away"
        return AS_IT_IS

    def calibrate(self, setting: str, access: LeverAccess) -> LeverReading:
        """Acts once, whatever is in flight, looks at all threads, and says how long acting took."""
        begin = time.monotonic()
        try:
            self._act(setting, True, access)
            took = time.monotonic() - begin
            got = self.read(access)
        except MachineError as error:
            return LeverReading(setting=setting, requested=setting, got=error.sentence(), works=False)
        finally:
            self._act(setting, False, access)
        works = got == setting or setting == PLACEBO
        count = len(_threads(access.program))
        got = f"{got} in {count} threads after {took * 1e3:.1f} ms"
        return LeverReading(setting=setting, requested=setting, got=got, works=works)

    def _act(self, setting: str, above: bool, access: LeverAccess) -> None:
        free = tuple(sorted(os.sched_getaffinity(0) - _cores_of_ranks(access)))
        if setting == "away" and above and not free:
            raise MachineError("no core is left beside those of the ranks", field="corun", value=setting)
        for thread in _threads(access.program):
            policy, cores = self._before.setdefault(
                thread, (os.sched_getscheduler(thread), tuple(sorted(os.sched_getaffinity(thread))))
            )
            if setting == "away":
                access.keeper.move(thread, free if above else cores)
            else:
                idle = above and setting != PLACEBO
                access.keeper.schedule(thread, os.SCHED_IDLE if idle else policy)


def _threads(program: GuardedProgram) -> tuple[int, ...]:
    """Of all neighbours that are still there. MachineError where none is."""
    threads: list[int] = []
    for word in program.env.get(NEIGHBOURS, "").replace(",", " ").split():
        folder = Path("/proc") / word / "task"
        if folder.is_dir():
            threads += [int(path.name) for path in folder.iterdir()]
    if not threads:
        raise MachineError("no neighbour is left", field=NEIGHBOURS, value=program.env.get(NEIGHBOURS, ""))
    return tuple(threads)


def _cores_of_ranks(access: LeverAccess) -> set[int]:
    cores: set[int] = set()
    for process in access.processes:
        try:
            cores |= os.sched_getaffinity(process)
        except ProcessLookupError:
            continue
    return cores


LEVER = Corun()
