"""Levers inside the ranks: what they have seen of their setting."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import ClassVar

from elbowroom.guard.board import SETTINGS
from elbowroom.guard.experiment import AS_IT_IS, PLACEBO
from elbowroom.guard.lever import GuardedProgram, Lever, LeverAccess, LeverReading

LATEST = 1.0
"""Seconds in which a lever must see a setting; one that looks more seldom cannot act in time."""
REFUSAL = 256
_NAP = 0.001


class InsideLever(Lever):
    """A lever that writes the setting that it saw last to the place `SETTINGS - 1 - number` of the board
    (lib/guard/movement.hpp).
    """

    refusals: ClassVar[Mapping[int, str]] = {}
    """Why the ranks cannot have a setting, by the number that they write times REFUSAL, and the setting."""

    def word(self, value: int, program: GuardedProgram) -> str:
        """The setting of a number on the board, or why it is refused."""
        if value // REFUSAL in self.refusals:
            return f"n/a: {self.refusals[value // REFUSAL]}"
        words = (AS_IT_IS, PLACEBO, *self.settings(program))
        setting = value % REFUSAL
        return words[setting] if setting < len(words) else f"number {setting}"

    def read(self, access: LeverAccess) -> str:
        """What was seen last."""
        return self.word(self.written_by_ranks(access), access.program)

    def written_by_ranks(self, access: LeverAccess) -> int:
        """What the ranks wrote last: the number of the setting, and more times REFUSAL."""
        return access.board.setting(SETTINGS - 1 - self.number)

    def calibrate(self, setting: str, access: LeverAccess) -> LeverReading:
        """Whether the ranks see the setting, and how long that takes."""
        begin = time.monotonic()
        try:
            self.set(setting, access)
            value = self.value(setting, access.program)
            while self.written_by_ranks(access) % REFUSAL != value and time.monotonic() < begin + LATEST:
                time.sleep(_NAP)
            there = self.read(access)
        finally:
            self.set(AS_IT_IS, access)
        took = f"{setting} after {(time.monotonic() - begin) * 1e3:.0f} ms"
        got = took if there == setting else there if there.startswith("n/a") else f"{there} for {LATEST:g} s"
        return LeverReading(setting=setting, requested=setting, got=got, works=there == setting)
