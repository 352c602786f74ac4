"""The two kinds of failure people see: what they asked for is wrong, or the machine failed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

from elbowroom.synonyms import nearest

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

    def document(self) -> str:
        """An ErrorDocument as JSON on one line; a value that JSON does not know is written as text."""
        value = self.value
        plain = value if isinstance(value, str | int | float | bool | list | tuple | None) else str(value)
        if isinstance(plain, tuple):
            plain = list(plain)
        if isinstance(plain, float) and not math.isfinite(plain):
            plain = str(plain)
        parts = ErrorParts(field=self.field, value=plain, message=self.message, hint=self.hint)
        # Not by msgspec: names of files may hold bytes that are no UTF-8, which only \u escapes can say.
        return json.dumps(asdict(ErrorDocument(error=parts, exit_code=self.exit_code)))


@dataclass(frozen=True, kw_only=True)
class ErrorParts:
    """`field` and `value` that are wrong, what is wrong with them, and a hint; empty where there is none."""

    field: str
    value: str | int | float | bool | list[Any] | None
    message: str
    hint: str


@dataclass(frozen=True, kw_only=True)
class ErrorDocument:
    """What a command that fails prints with --json; `exit_code` as in `elbowroom.cli`."""

    schema: str = "elbowroom/error"
    version: int = 1
    error: ErrorParts
    exit_code: int


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
    """`did you mean 'x'? known: a, b, c`, the first half only where a name is close or a synonym."""
    known = sorted(known)
    near = nearest(word, known)
    hint = f"did you mean {near[0]!r}? " if near else ""
    return f"{hint}known: {', '.join(known)}"
