"""What a program is started with, what it is asked for at once, and what it answers."""

from __future__ import annotations

from typing import Any

import msgspec


class Startup(msgspec.Struct, frozen=True, kw_only=True):
    """What a program of apps/ is started with.

    `name` is used in errors; `settings` are written to a JSON file; `patience`: seconds that it may take
    before its `hello` record.
    """

    name: str
    ranks: int
    settings: dict[str, Any]
    patience: float


class Unit(msgspec.Struct, frozen=True, kw_only=True):
    """What the probe is asked for at once and the journal keeps as one line: one repetition of one point.

    `closing` marks the alone baselines that are measured again at the end of the run.
    """

    point: str
    repetition: int
    closing: bool = False


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line: the unit and its `repetition` record (docs/reference/protocol.md), `failed` if none came."""

    point: str
    repetition: int
    closing: bool = False
    record: dict[str, Any]

    @property
    def unit(self) -> Unit:
        """The unit this line answers."""
        return Unit(point=self.point, repetition=self.repetition, closing=self.closing)


def failed_record(unit: Unit, reason: str) -> dict[str, Any]:
    """The record of a unit that got no answer, with the reason."""
    return {
        "record": "repetition",
        "point": unit.point,
        "repetition": unit.repetition,
        "status": "failed",
        "reason": reason,
        "flags": [],
        "phases": [],
    }
