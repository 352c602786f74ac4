"""The command line: parses, calls one function of the Python interface, prints.

Exit codes: 0 done, 1 the machine failed, 2 the request cannot be met, 3 measured, but too noisy to trust.
With --json an error is an object on stdout too: {"schema": "elbowroom/error", "error": {field, value,
message, hint}}.
"""

from __future__ import annotations

import errno
import os
import sys
from contextlib import suppress

import click

from elbowroom import heartbeat
from elbowroom.cli import console
from elbowroom.cli.commands import GROUPS, group
from elbowroom.cli.options import usage_error
from elbowroom.errors import ElbowroomError, MachineError, UsageError
from elbowroom.signals import ends_as_interrupt


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and leaves with its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    try:
        console.open_streams()
    except ElbowroomError as error:
        sys.exit(_fail(error, words))
    sys.exit(run(words))


def run(words: list[str]) -> int:
    """Runs the command line and returns its exit code; every error becomes one sentence."""
    console.prepare()
    try:
        with ends_as_interrupt(), heartbeat.Wait(_name(words), fallback=True):
            code = group.main(words, prog_name="elbowroom", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except ElbowroomError as error:
        return _fail(error, words)
    except click.ClickException as error:
        return _fail(usage_error(error), words)
    except (KeyboardInterrupt, click.Abort):
        print("elbowroom: stopped", file=sys.stderr)
        return 1
    except SystemExit as end:
        # So click and rich end where the reader has gone.
        if not isinstance(end.__context__, BrokenPipeError):
            raise
        console.discard_stdout()
        return 0
    except BrokenPipeError:
        # The reader has gone (`| head`): nothing is wrong.
        console.discard_stdout()
        return 0
    except Exception as error:
        if os.environ.get("ELBOWROOM_DEBUG") == "1":
            raise
        return _fail(_unexpected(error), words)


def _name(words: list[str]) -> str:
    """The command as it is called where nothing else is said of what takes long."""
    return " ".join(("elbowroom", *words[: 2 if words[:1] and words[0] in GROUPS else 1]))


def _unexpected(error: Exception) -> ElbowroomError:
    """An error that no other place turned into a sentence."""
    if isinstance(error, MemoryError):
        return MachineError(
            "is used up", field="memory", hint="request less at once, or use a larger machine"
        )
    if isinstance(error, console.StdoutError):
        return MachineError(
            f"cannot be written ({error.strerror})", field="stdout", hint="free space there, or redirect it"
        )
    if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
        name = None if error.filename is None else os.fsdecode(error.filename)
        return UsageError("is too long for a name", field="file", value=name, hint="use a shorter one")
    if isinstance(error, OSError) and error.filename is not None:
        return MachineError(
            f"cannot be used ({error.strerror or error})",
            field="file",
            value=os.fsdecode(error.filename),
            hint="check that it exists and that you may use it",
        )
    return MachineError(
        f"{error or 'no more is known'}",
        field=f"unexpected {type(error).__name__}",
        hint="this is a defect: set ELBOWROOM_DEBUG=1 for a traceback, and report it",
    )


def _fail(error: ElbowroomError, words: list[str]) -> int:
    """Prints the error on stderr, with --json as an object on stdout too; the exit code."""
    print(f"elbowroom: {' '.join(error.sentence().split())}", file=sys.stderr)
    if "--json" in words:
        with suppress(OSError):
            print(error.document(), flush=True)
    try:
        sys.stdout.flush()
    except OSError:
        console.discard_stdout()
    return error.exit_code
