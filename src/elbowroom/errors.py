"""The two kinds of failure people see: what they asked for is wrong, or the machine failed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec


class ElbowroomError(Exception):
    """One sentence for a person: which field, which value, and what mends it."""

    exit_code = 1

    def __init__(self, message: str, *, field: str = "", value: object = None, mend: str = "") -> None:
        self.message = message
        self.field = field
        self.value = value
        self.mend = mend
        super().__init__(self.sentence())

    def sentence(self) -> str:
        """`field 'value': message; mend`, leaving out what is not known."""
        where = self.field if self.value is None else f"{self.field} {self.value!r}"
        head = f"{where}: {self.message}" if where else self.message
        return f"{head}; {self.mend}" if self.mend else head


class UsageError(ElbowroomError):
    """The request cannot be met as asked (exit code 2)."""

    exit_code = 2


class MachineError(ElbowroomError):
    """The request was fine; the machine, MPI or the disk failed (exit code 1)."""

    exit_code = 1


def explained(
    error: msgspec.ValidationError, data: Mapping[str, Any], where: str, *, subject: str, page: str
) -> UsageError:
    """msgspec's message about `data`, which came from `where`, as a sentence: which field, which value, what
    would do; `subject`: the field where none is told, `page`: where the format is described.
    """
    message, _, path = str(error).partition(" - at `$")
    words = re.findall(r"\w+", path)
    value: Any = data
    for word in words:
        value = value.get(word) if isinstance(value, dict) else value
    missing = re.search(r"missing required field `(\w+)`", message)
    if missing:
        field = ".".join([*words, missing[1]])
        return UsageError(f"is missing in {where}", field=field, mend=f"add it, see {page}")
    expected = re.search(r"Expected (.*?)(, got|$)", message)
    sentence = message.replace("`", "")
    return UsageError(
        f"{sentence[:1].lower()}{sentence[1:]} in {where}",
        field=".".join(word for word in words if not word.isdigit()) or subject,
        value=value if isinstance(value, str | int | float | bool | list) else None,
        mend=f"give {expected[1].replace('`', '')}" if expected else f"see {page}",
    )
