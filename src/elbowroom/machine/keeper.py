"""A process that holds a host's settings for the probe (docs/reference/protocol.md).

A line on stdin holds the settings that it names, after setting back those before; an empty object only sets
back. Each line is answered by one line. At the end of stdin, which comes when the rank that started it dies
in any way, everything is set back.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import msgspec

from elbowroom.errors import MachineError
from elbowroom.machine.frequencies import Frequencies, FrequencySettings

_SOURCE = Path(__file__).parents[2]
_START = "import sys; sys.path.insert(0, sys.argv.pop(1)); from elbowroom.machine.keeper import main; main()"


def command(*arguments: str) -> tuple[str, ...]:
    """What starts a keeper, from this installation, on a host that can read its files."""
    return (sys.executable, "-c", _START, str(_SOURCE), *arguments)


def serve(requests: Iterable[bytes], answers: IO[bytes], frequencies: Frequencies) -> None:
    """Answers each line of `requests` with one line of JSON; sets back what is held when they end."""
    changed: Callable[[], str] = str
    held = ExitStack()
    with ExitStack() as whole:
        whole.callback(lambda: held.close())
        for line in requests:
            answer: dict[str, Any] = {}
            if sentence := changed():
                answer["changed"] = sentence
            try:
                held.close()
            except MachineError as error:
                answer["left"] = error.sentence()
            held, changed = ExitStack(), str
            try:
                frequencies.restore()
                changed = held.enter_context(
                    frequencies.constant(msgspec.json.decode(line, type=FrequencySettings, strict=True))
                )
            except MachineError as error:
                answer["error"] = _error(error)
            answers.write(msgspec.json.encode(answer) + b"\n")
            answers.flush()


def _error(error: MachineError) -> dict[str, str]:
    """As ranks send errors to each other."""
    value = "" if error.value is None else str(error.value)
    fields = {"field": error.field, "value": value, "message": error.message}
    return {**fields, "hint": error.hint, "kind": "machine"}


def main() -> None:
    """Serves stdin and stdout; `--root` and `--state` are for tests."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=Path("/sys"))
    parser.add_argument("--state", type=Path)
    options = parser.parse_args()
    # What the rank had open (connections of the MPI) must not stay open when it dies.
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    serve(iter(sys.stdin.buffer.readline, b""), sys.stdout.buffer, Frequencies(options.root, options.state))
