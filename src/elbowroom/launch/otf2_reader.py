"""Starts the process that reads OTF2 archives (trace.overlap.otf2_library)."""

from __future__ import annotations

import ctypes.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from elbowroom.errors import UsageError
from elbowroom.launch import processes
from elbowroom.trace.overlap import otf2_library

_NAMES = ("otf2", "open-trace-format2")
"""Of the library: OTF2's own, and Debian's."""


def library() -> str:
    """The name of libotf2. UsageError where it is not installed."""
    for name in _NAMES:
        found = ctypes.util.find_library(name)
        if found is not None:
            return found
    raise UsageError(
        "needs libotf2, which is not installed",
        field="trace",
        value="OTF2",
        hint="install libotf2-trace-dev (Debian, Ubuntu) or OTF2, or give the trace in another format",
    )


@contextmanager
def records(archive: Path) -> Iterator[IO[bytes]]:
    """What the archive holds (trace.overlap.otf2 reads it). UsageError as `library`, MachineError if the
    process cannot be started. The archive may end the process early: the stream ends then.
    """
    # -I: without the folders of the user's own modules; the program needs Python's alone.
    words = [sys.executable, "-I", str(otf2_library.__file__), library(), str(archive)]
    process = processes.start(
        words,
        field="otf2",
        hint="try again",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        yield process.stdout
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
