"""Signals that end a process end it as Ctrl-C does, by way of the `finally` blocks; what is said then."""

from __future__ import annotations

import shlex
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from elbowroom.errors import ElbowroomError


@contextmanager
def ends_as_interrupt() -> Iterator[None]:
    """SIGTERM (sent by batch systems at the time limit) and SIGHUP raise KeyboardInterrupt in the block.

    Signals that are handled or ignored already (nohup) stay as they are, and so do all signals outside the
    main thread (a notebook's worker).
    """

    def interrupt(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    changed: list[signal.Signals] = []
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                signal.signal(number, interrupt)
                changed.append(number)
    try:
        yield
    finally:
        for number in changed:
            signal.signal(number, signal.SIG_DFL)


class TimeIsUp(Exception):
    """The time of a block is up."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raises TimeIsUp in the block when so many seconds have passed: for computations, which cannot be asked
    to end. Outside the main thread, where no signal arrives, there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ended = False

    def end(_number: int, _frame: object) -> None:
        if not ended:
            raise TimeIsUp

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-3))
    try:
        yield
    finally:
        ended = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class Stopped(ElbowroomError):
    """The person stopped the run; what was measured is kept."""


@contextmanager
def stopped_by_signals(path: Path, again: str = "elbowroom run --resume") -> Iterator[None]:
    """Ctrl-C or SIGTERM ends the block with a sentence that names the run and how to go on."""
    try:
        with ends_as_interrupt():
            yield
    except KeyboardInterrupt as interrupt:
        raise Stopped(
            "stopped; what was measured is kept",
            field="run",
            value=str(path),
            hint=f"continue with: {again} {shlex.quote(str(path))}",
        ) from interrupt
