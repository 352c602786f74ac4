"""A command on a pseudo-terminal: what it writes there, and when."""

from __future__ import annotations

import fcntl
import itertools
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

COLUMNS = 80
LATENESS = 0.05
"""Seconds that the clock beside the command sleeps each time."""


class Written(NamedTuple):
    """What a command wrote at once: seconds since its start, and bytes."""

    at: float
    data: bytes


class Screen(NamedTuple):
    """A command that has ended: its exit code, what it wrote, its seconds, and the longest time for which a
    thread that only sleeps was late meanwhile, s.
    """

    code: int
    written: tuple[Written, ...]
    seconds: float
    late: float

    @property
    def text(self) -> str:
        """All that was written."""
        return b"".join(item.data for item in self.written).decode(errors="replace")

    def longest_silence(self) -> tuple[float, str]:
        """Seconds without a byte, from the start to the end, and the last words before them."""
        times = [0.0, *(item.at for item in self.written), self.seconds]
        gaps = [(after - before, number) for number, (before, after) in enumerate(itertools.pairwise(times))]
        gap, number = max(gaps)
        before = b"".join(item.data for item in self.written[:number])
        return gap, before[-200:].decode(errors="replace")


def on_terminal(
    command: Sequence[str],
    *,
    folder: Path,
    env: Mapping[str, str] | None = None,
    columns: int = COLUMNS,
    stop: tuple[str, int] | None = None,
) -> Screen:
    """Runs a command on a terminal of so many columns. `stop`: a signal, sent when this is written."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    written: list[Written] = []
    clock = _Lateness()
    start = time.monotonic()
    process = subprocess.Popen(
        command,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=folder,
        env={**os.environ, "TERM": "xterm", **(env or {})},
        start_new_session=True,
    )
    os.close(slave)
    try:
        while True:
            if not select.select([master], [], [], 0.05)[0]:
                if process.poll() is not None:
                    break
                continue
            try:
                data = os.read(master, 1 << 16)
            except OSError:  # the last process has closed the terminal
                break
            if not data:
                break
            written.append(Written(time.monotonic() - start, data))
            if stop is not None and stop[0].encode() in data:
                process.send_signal(stop[1])
                stop = None
        code = process.wait()
    finally:
        late = clock.end()
        if process.poll() is None:
            process.kill()
            process.wait()
        os.close(master)
    return Screen(code, tuple(written), time.monotonic() - start, late)


def elbowroom(words: Sequence[str], folder: Path, **options: object) -> Screen:
    """The same of a command line of elbowroom."""
    return on_terminal([sys.executable, "-m", "elbowroom", *words], folder=folder, **options)  # type: ignore[arg-type]


class _Lateness:
    """How late a thread wakes up that does nothing but sleep."""

    def __init__(self) -> None:
        self._ended = threading.Event()
        self._most = 0.0
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ended.is_set():
            start = time.monotonic()
            time.sleep(LATENESS)
            self._most = max(self._most, time.monotonic() - start - LATENESS)

    def end(self) -> float:
        self._ended.set()
        self._thread.join()
        return self._most
