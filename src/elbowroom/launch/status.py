"""What is said on stderr while something takes long: nothing is silent for more than PERIOD seconds."""

from __future__ import annotations

import contextlib
import select
import shutil
import sys
import threading
import time
from collections.abc import Iterator

PERIOD = 2.0
"""Seconds between two lines where stderr is no terminal, and until the first one of a wait."""


class Status:
    """How far something is that takes long, on stderr: one line that is rewritten on a terminal, elsewhere a
    line every PERIOD seconds.
    """

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._shown = -PERIOD
        self._drawn = False

    def show(self, text: str) -> None:
        """Shows the text and the seconds since the beginning, if a line is due."""
        spent = time.monotonic() - self._begun
        if sys.stderr.isatty():
            line = f"{text}, {spent:.0f} s"[: shutil.get_terminal_size().columns - 1]
            sys.stderr.write(f"\r\033[K{line}")
            self._drawn = True
        elif spent - self._shown >= PERIOD:
            self._shown = spent
            sys.stderr.write(f"{text}, {spent:.0f} s\n")
        sys.stderr.flush()

    def close(self) -> None:
        """Removes the line from a terminal."""
        if self._drawn:
            sys.stderr.write("\r\033[K")
            sys.stderr.flush()


def poll(waiter: select.poll, deadline: float | None, doing: str) -> list[tuple[int, int]]:
    """The events of `waiter`; none at the `deadline` (time.monotonic(); None: never).

    Says `doing` and the seconds every PERIOD seconds. This process sleeps in between: what is measured
    meanwhile loses some ten microseconds of one core each time.
    """
    status = Status()
    try:
        while True:
            left = PERIOD if deadline is None else min(PERIOD, deadline - time.monotonic())
            events = waiter.poll(max(0.0, left) * 1000)
            if events or (deadline is not None and deadline <= time.monotonic()):
                return events
            status.show(doing)
    finally:
        status.close()


@contextlib.contextmanager
def computing(doing: str) -> Iterator[None]:
    """Says `doing` and the seconds every PERIOD seconds while this process computes. It takes a thread, so it
    must not be used while something is measured.
    """
    ended = threading.Event()
    status = Status()

    def say() -> None:
        while not ended.wait(PERIOD):
            status.show(doing)

    thread = threading.Thread(target=say, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
        status.close()
