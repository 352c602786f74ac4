"""The command line: parses, calls one function of the Python interface, prints.

Exit codes: 0 done, 1 the machine failed, 2 the request cannot be met, 3 measured, but too noisy to trust.
With --json an error is an object on stdout too: {"schema": "elbowroom/error", "error": {field, value,
message, mend}}.
"""

from __future__ import annotations

import json
import os
import sys

import click

import elbowroom.cli.advising
import elbowroom.cli.calibrating
import elbowroom.cli.explaining
import elbowroom.cli.machines
import elbowroom.cli.overlapping
import elbowroom.cli.predicting
import elbowroom.cli.simulating
import elbowroom.cli.tracing  # noqa: F401 (all add their commands to the group)
from elbowroom.cli.commands import group
from elbowroom.errors import ElbowroomError, UsageError

ERROR_SCHEMA = "elbowroom/error"


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and leaves with its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    sys.exit(run(words))


def run(words: list[str]) -> int:
    """Runs the command line and returns its exit code; every error becomes one sentence."""
    try:
        code = group.main(words, prog_name="elbowroom", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except ElbowroomError as error:
        return _fail(error, words)
    except click.ClickException as error:
        field = (
            getattr(getattr(error, "param", None), "name", None) or getattr(error, "option_name", None) or ""
        )
        sentence = error.format_message().rstrip(".")
        sentence = sentence[:1].lower() + sentence[1:]
        context = getattr(error, "ctx", None)
        path = context.command_path if context is not None else "elbowroom"
        return _fail(UsageError(sentence, field=str(field), mend=f"see `{path} --help`"), words)
    except (KeyboardInterrupt, click.Abort):
        print("elbowroom: stopped", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader has gone (`| head`): nothing is wrong, and the interpreter must not complain at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def _fail(error: ElbowroomError, words: list[str]) -> int:
    print(f"elbowroom: {error.sentence()}", file=sys.stderr)
    if "--json" in words:
        value = error.value
        told = value if isinstance(value, str | int | float | bool | list | tuple | None) else str(value)
        found = {"field": error.field, "value": told, "message": error.message, "mend": error.mend}
        print(
            json.dumps({"schema": ERROR_SCHEMA, "version": 1, "error": found, "exit_code": error.exit_code})
        )
    return error.exit_code
