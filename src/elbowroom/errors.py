"""The two kinds of failure people see: what they asked for is wrong, or the machine failed."""

from __future__ import annotations


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
