"""Answers the points of a plan from a recorded run, for tests and for other people's runs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from elbowroom.plan.point import Unit

PREFIX = "replay:"


class RecordedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One recorded answer and what it was the answer to."""

    unit: Unit
    record: dict[str, Any]


class Replay:
    """A conversation with a recording: same requests, same answers, at once.

    What is not in the recording (other points, more repetitions) is answered as `failed` with that reason.
    """

    def __init__(self, hello: dict[str, Any], recording: Iterable[RecordedAnswer]) -> None:
        self.hello = hello
        self._answers = {item.unit: item.record for item in recording}

    def ask(self, unit: Unit, request: dict[str, Any], patience: float) -> dict[str, Any]:
        """The recorded answer."""
        answer = self._answers.get(unit)
        if answer is not None:
            return answer
        return {
            "record": "repetition",
            "point": unit.point,
            "repetition": unit.repetition,
            "status": "failed",
            "reason": "not in the recorded run",
            "flags": [],
            "phases": [],
        }

    def close(self) -> None:
        """Nothing runs, so nothing ends."""
