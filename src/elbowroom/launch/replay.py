"""Answers the points of a plan from a recorded run: tests without timing, and a look at somebody else's run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from elbowroom.launch.session import SessionLost
from elbowroom.plan.point import Unit

PREFIX = "replay:"


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded answer and what it was the answer to."""

    unit: Unit
    record: dict[str, Any]


class Replay:
    """A conversation with a recording: same requests, same answers, at once.

    A recording in which a point was measured fewer times answers those; the others are lost with that reason.
    """

    def __init__(self, hello: dict[str, Any], recording: Iterable[Recorded]) -> None:
        self.hello = hello
        self._answers = {item.unit: item.record for item in recording}

    def ask(self, unit: Unit, request: dict[str, Any], patience: float) -> dict[str, Any]:
        """The recorded answer; raises SessionLost when this unit is not in the recording."""
        answer = self._answers.get(unit)
        if answer is None:
            raise SessionLost(f"repetition {unit.repetition} of {unit.point} is not in the recorded run")
        return answer

    def close(self) -> None:
        """Nothing runs, so nothing ends."""
