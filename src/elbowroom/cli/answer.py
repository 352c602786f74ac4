"""How the text of a command ends: what was found, why, and what to type next."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import NamedTuple

from elbowroom.cli.console import print_wrapped

TYPED = "ELBOWROOM_TYPED"
"""Environment variable: how ./elbowroom was typed, where `elbowroom` is not in the PATH."""


class Answer(NamedTuple):
    """The last three paragraphs of a command that measures or analyses."""

    verdict: str
    """What was found: one plain sentence with its numbers."""
    why: str
    """The cause, with the number that shows it: one or two sentences."""
    next: str
    """The command that leads on, as it can be typed (`command_line`)."""
    style: str = ""
    """Of the verdict: `green`, `yellow`, `red`."""


def command_line(*words: Path | str | float) -> str:
    """A command of elbowroom, with each word quoted for a shell."""
    return shlex.join(("elbowroom", *map(str, words)))


def as_typed(command: str) -> str:
    """A command line of elbowroom by the name with which it was started: `./elbowroom run quick`; one of
    another program stays as it is.
    """
    typed = os.environ.get(TYPED)
    return (
        command
        if not typed or not command.startswith("elbowroom ")
        else f"{shlex.quote(typed)} {command.removeprefix('elbowroom ')}"
    )


def print_answer(answer: Answer) -> None:
    """Prints the three paragraphs; the command stays on one line, however long, so that it can be copied."""
    print()
    print_wrapped(answer.verdict, style=f"bold {answer.style}".strip())
    print()
    print_wrapped(answer.why)
    print()
    print(f"next: {as_typed(answer.next)}")
