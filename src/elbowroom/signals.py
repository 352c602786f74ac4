"""Signals that end a process end it as Ctrl-C does: by way of the `finally` blocks."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


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
