"""The two kinds of failure people see: what they asked for is wrong, or the machine failed."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST = 240
"""Characters of a value that an error repeats."""


class ElbowroomError(Exception):
    """One sentence for a person: which field, which value, and a hint."""

    exit_code = 1

    def __init__(self, message: str, *, field: str = "", value: object = None, hint: str = "") -> None:
        self.message = message
        self.field = field
        self.value = value
        self.hint = hint
        super().__init__(self.sentence())

    def sentence(self) -> str:
        """`field 'value': message; hint`, leaving out what is not known."""
        where = self.field if self.value is None else f"{self.field} {shortened(repr(self.value))}"
        head = f"{where}: {self.message}" if where else self.message
        return f"{head}; {self.hint}" if self.hint else head


def shortened(text: str) -> str:
    """The text, or both ends of it where it would fill a terminal."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}...{text[-LONGEST // 2 :]}"


class UsageError(ElbowroomError):
    """The request cannot be met as asked (exit code 2)."""

    exit_code = 2


class MachineError(ElbowroomError):
    """The request was fine; the machine, MPI or the disk failed (exit code 1)."""

    exit_code = 1


def closest(word: str, known: Iterable[str]) -> str:
    """`did you mean 'x'? known: a, b, c`, the first half only where something is close."""
    known = sorted(known)
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}known: {', '.join(known)}"
