"""The shape of a line of a run's journal: as far as it is read again, and as this release writes it.

A line that is no JournalLine is damaged. Fields that nobody reads may be anything: records of newer
probes stay readable. The `Written` types are stricter; `elbowroom schema samples` prints them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from elbowroom.plan import point as points


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """What the computing cores did in a phase."""

    rate: float | None
    unit: str
    batches: list[float | None] = []


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """What the messages, or whole steps, did in a phase."""

    value: float | None
    unit: str
    batches: list[float | None] = []


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """A measured window. Times in ns of the probe's clock, `measured_s` in seconds."""

    phase: str
    index: int | None = None
    status: str | None = None
    flags: list[str] = []
    start_ns: int | None = None
    end_ns: int | None = None
    measured_s: float | None = None
    observed: dict[str, Any] = {}
    comp: Rate | msgspec.UnsetType = msgspec.UNSET
    comm: Value | msgspec.UnsetType = msgspec.UNSET
    total: Value | msgspec.UnsetType = msgspec.UNSET
    separator: Value | msgspec.UnsetType = msgspec.UNSET


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A probe's answer."""

    status: str | None = None
    reason: str = ""
    flags: list[str] = []
    phases: list[Phase] = []


class JournalLine(msgspec.Struct, frozen=True, kw_only=True):
    """A line: which unit, and the record."""

    point: str
    repetition: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    closing: bool = False
    record: Record


class WrittenRate(Rate, frozen=True, kw_only=True):
    """What the computing cores did in a phase; a program's interior is a duration."""

    rate: float
    unit: Literal["MB/s", "M/s", "Mflop/s", "us"]
    per_core: list[float] = []
    batches: list[float]  # type: ignore[assignment]


class WrittenValue(Value, frozen=True, kw_only=True):
    """What the messages did in a phase."""

    value: float
    unit: Literal["MB/s", "us"]
    batches: list[float]  # type: ignore[assignment]


class WrittenDuration(WrittenValue, frozen=True, kw_only=True):
    """Whole steps of an application, or of these steps the part before anything can be sent."""

    unit: Literal["us"]


class WrittenPhase(Phase, frozen=True, kw_only=True):
    """A measured window; what could not be observed is absent from `observed`, never 0."""

    phase: points.Phase
    index: int
    status: Literal["ok", "not_stable", "void"]
    measured_s: float
    comp: WrittenRate | msgspec.UnsetType = msgspec.UNSET
    comm: WrittenValue | msgspec.UnsetType = msgspec.UNSET
    total: WrittenDuration | msgspec.UnsetType = msgspec.UNSET
    separator: WrittenDuration | msgspec.UnsetType = msgspec.UNSET


class WrittenRecord(Record, frozen=True, kw_only=True):
    """A probe's answer; `facts`: what an application reports of its mesh and messages."""

    record: Literal["repetition"] = "repetition"
    point: str
    repetition: int
    status: Literal["ok", "not_stable", "failed"]
    phases: list[WrittenPhase]  # type: ignore[assignment]
    facts: dict[str, float] = {}


class WrittenLine(JournalLine, frozen=True, kw_only=True):
    """A line; `closing`: a baseline alone that is measured again at the end."""

    record: WrittenRecord
