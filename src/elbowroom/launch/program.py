"""A user's own program, run to its end and timed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence

import msgspec

from elbowroom.errors import MachineError, UsageError

_TAIL = 300


class Finished(msgspec.Struct, frozen=True, kw_only=True):
    """Wall time from start to end, s, and what it wrote to stdout and stderr."""

    wall_s: float
    output: str


def run_program(
    words: Sequence[str],
    patience: float | None = None,
    *,
    env: Mapping[str, str] | None = None,
    field: str = "verify.command",
) -> Finished:
    """Runs the program in a session of its own, which ends with it; `env` is its whole environment, `field`
    what errors call it.

    UsageError where there is no such program; MachineError where it fails, or has not ended after `patience`
    seconds.
    """
    begun = time.monotonic()
    try:
        process = subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
            env=env,
        )
    except OSError as error:
        raise UsageError(
            f"cannot be started ({error.strerror})",
            field=field,
            value=words[0],
            mend="mend the path",
        ) from error
    try:
        output, _ = process.communicate(timeout=patience)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise MachineError(
                f"had not ended after {patience:g} s",
                field=field,
                value=" ".join(words),
                mend="give it more: --timeout",
            ) from error
        raise
    wall = time.monotonic() - begun
    if process.returncode != 0:
        raise MachineError(
            f"ended with exit code {process.returncode}: {output.strip()[-_TAIL:] or 'it said nothing'}",
            field=field,
            value=" ".join(words),
            mend="run it by hand",
        )
    return Finished(wall_s=wall, output=output)
