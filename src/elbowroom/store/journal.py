"""Journals: one line for each thing measured, on the disk before the next one is asked for.

A line is complete when it ends with a newline: the last one may be torn by a kill or a crash and is then as
if never written; anything else that cannot be read is damage and is an error. The journal of a run begins
with a header of schema and version.

One process at a time may write (store.locks).

A line of a run is a JournalLine as far as it is read again; one that is none is damaged. Fields that nobody
reads may be anything: records of newer probes stay readable. The `Written` types are stricter; `elbowroom
schema samples` prints them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Hashable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec

from elbowroom.documents import check_version
from elbowroom.errors import UsageError
from elbowroom.files import check_file, disk_error, read_document, sync_folder, write_all
from elbowroom.points import point as points
from elbowroom.points.unit import Entry, Unit, failed_record
from elbowroom.store.locks import Lock

_MOST = 2.0**53
_LEAST = 1e-99
_TINY = re.compile(rb"[eE]-\d{3}|\b0\.0{98}")
"""How a number below _LEAST is written; only lines that have one are looked through."""
Number = Annotated[float, msgspec.Meta(ge=-_MOST, le=_MOST)]
"""A measured number; beyond this range whole numbers have no float, and no machine is so fast or slow. The
same holds for numbers below _LEAST except 0, which says that nothing was done.
"""
Small = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Time = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
"""ns; whole numbers as the sealed samples hold them."""


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """What the computing cores did in a phase."""

    rate: Number | None
    unit: str
    batches: list[Number | None] = []


class Due(msgspec.Struct, frozen=True, kw_only=True):
    """Messages that were due at fixed times, each a batch: the first of them in ns of the probe's clock, the
    time from one to the next, what a call of the clock takes, and how late each message started.
    """

    period_us: Number
    first_ns: Time
    clock_call_ns: Number
    late_us: list[Number]


class Value(msgspec.Struct, frozen=True, kw_only=True):
    """What the messages, or whole steps, did in a phase."""

    value: Number | None
    unit: str
    batches: list[Number | None] = []
    due: Due | msgspec.UnsetType = msgspec.UNSET


class StreamValue(msgspec.Struct, frozen=True, kw_only=True):
    """What a stream did in a phase beside the two sides: a third stream, a percentile, a clock."""

    value: Number
    unit: str


class Phase(msgspec.Struct, frozen=True, kw_only=True):
    """A measured window. Times in ns of the probe's clock, `measured_s` in seconds."""

    phase: str
    index: Small | None = None
    status: str | None = None
    flags: list[str] = []
    start_ns: Time | None = None
    end_ns: Time | None = None
    measured_s: Number | None = None
    observed: dict[str, Any] = {}
    comp: Rate | msgspec.UnsetType = msgspec.UNSET
    comm: Value | msgspec.UnsetType = msgspec.UNSET
    total: Value | msgspec.UnsetType = msgspec.UNSET
    separator: Value | msgspec.UnsetType = msgspec.UNSET
    streams: dict[str, StreamValue] = {}


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """A probe's answer; `start`: which start of the program it is from, counted over the run."""

    status: str | None = None
    reason: str = ""
    flags: list[str] = []
    start: Small = 0
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

    phase: points.AnyPhase
    index: int
    status: Literal["ok", "not_stable", "void"]
    measured_s: float
    comp: WrittenRate | msgspec.UnsetType = msgspec.UNSET
    comm: WrittenValue | msgspec.UnsetType = msgspec.UNSET
    total: WrittenDuration | msgspec.UnsetType = msgspec.UNSET
    separator: WrittenDuration | msgspec.UnsetType = msgspec.UNSET


class WrittenRecord(Record, frozen=True, kw_only=True):
    """A probe's answer; `facts`: what an application reports of its mesh and messages; `overlap`: of a call
    beside a computation, the times of each rank in each iteration (docs/reference/protocol.md).
    """

    record: Literal["repetition"] = "repetition"
    point: str
    repetition: int
    status: Literal["ok", "not_stable", "failed"]
    phases: list[WrittenPhase]  # type: ignore[assignment]
    facts: dict[str, float] = {}
    overlap: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class WrittenLine(JournalLine, frozen=True, kw_only=True):
    """A line; `closing`: a baseline alone that is measured again at the end."""

    record: WrittenRecord


SCHEMA = "elbowroom/samples"
VERSION = 1
_HINT = "name a run whose journal is there"
LARGEST = 16 << 30
"""Bytes of the largest journal that is read: a million units."""


class JournalHeader(msgspec.Struct, frozen=True, kw_only=True):
    """The first line."""

    schema: str = SCHEMA
    version: int = VERSION


HEADER = msgspec.json.encode(JournalHeader()) + b"\n"


LineType = TypeVar("LineType", bound=msgspec.Struct)
KeyType = TypeVar("KeyType", bound=Hashable)


class Format(Generic[LineType, KeyType]):
    """What the lines of a journal are, and what tells them apart; `header`: whether HEADER comes first."""

    def __init__(self, kind: type[LineType], *, header: bool) -> None:
        self.header = header
        self._decoder = msgspec.json.Decoder(kind)

    def decode(self, data: bytes) -> LineType:
        """One line; raises msgspec's errors for another shape."""
        return self._decoder.decode(data)

    def key(self, line: LineType) -> KeyType:
        """What no two lines share."""
        raise NotImplementedError

    def read(self, path: Path) -> tuple[list[LineType], int]:
        """The complete lines of a journal, and how many of its bytes they take (a torn last one lies behind).

        Raises UsageError naming file and line for damage and for a journal of a newer release.
        """
        data = read_document(path, field="journal", hint=_HINT, limit=LARGEST)
        sound = data.rfind(b"\n") + 1
        lines = data[:sound].split(b"\n")[:-1]
        if self.header:
            _check_header(path, lines)
        decoded: list[LineType] = []
        keys: set[KeyType] = set()
        for number, line in enumerate(lines[self.header :], start=1 + self.header):
            try:
                one = self.decode(line)
            except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
                raise damage(path, number, str(error)) from error
            key = self.key(one)
            if key in keys:
                raise damage(path, number, f"{self.name(one)} appears twice")
            keys.add(key)
            decoded.append(one)
        return decoded, sound

    def name(self, line: LineType) -> str:
        """How a line is called in errors."""
        raise NotImplementedError


class _UnitLines(Format[Entry, Unit]):
    """The lines of a run's journal: one for each unit."""

    def __init__(self) -> None:
        super().__init__(Entry, header=True)
        self._shape = msgspec.json.Decoder(JournalLine)

    def decode(self, data: bytes) -> Entry:
        """An entry, whose record is what the readers of samples expect."""
        line = self._shape.decode(data)
        if _TINY.search(data):
            _check_tiny(line)
        return super().decode(data)

    def key(self, line: Entry) -> Unit:
        """The unit."""
        return line.unit

    def name(self, line: Entry) -> str:
        """Repetition and point."""
        return f"repetition {line.repetition} of {line.point}"


def _check_tiny(line: JournalLine) -> None:
    """ValidationError for a measured number that is too small for any machine."""
    for phase in line.record.phases:
        sides = [side for side in (phase.comm, phase.total, phase.separator) if isinstance(side, Value)]
        numbers = [number for side in sides for number in (side.value, *side.batches)]
        numbers += [stream.value for stream in phase.streams.values()]
        if isinstance(phase.comp, Rate):
            numbers += [phase.comp.rate, *phase.comp.batches]
        for number in (phase.measured_s, *numbers):
            if number is not None and 0 < abs(number) < _LEAST:
                raise msgspec.ValidationError(f"{number!r} is not a measured number: no machine is so slow")


UNITS = _UnitLines()


def read_journal(path: Path) -> tuple[list[Entry], int]:
    """The complete entries of a run's journal, and how many of its bytes they take; raises as Format.read."""
    return UNITS.read(path)


def _check_header(path: Path, lines: list[bytes]) -> None:
    if not lines:
        raise damage(path, 1, "the header is missing")
    try:
        header = msgspec.json.decode(lines[0])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise damage(path, 1, str(error)) from error
    if not isinstance(header, dict) or header.get("schema") != SCHEMA:
        raise damage(path, 1, f"the header names no schema {SCHEMA!r}")
    check_version(path, SCHEMA, header.get("version"), VERSION)


def damage(path: Path, line: int, what: str) -> UsageError:
    """The error for a line that cannot be what was written."""
    return UsageError(
        f"line {line} is damaged ({what})",
        field="journal",
        value=str(path),
        hint=f"the lines before it are sound: cut the file before line {line} and resume, or measure again",
    )


class Lines(Generic[LineType, KeyType]):
    """An open journal that only this process may append to. `done`: the keys of its lines."""

    def __init__(self, path: Path, form: Format[LineType, KeyType], *, create: bool = False) -> None:
        """Opens for appending: takes the lock and reads what is there. The file stays as it is until a line
        is appended, which replaces a torn last one.
        """
        self.path = path
        self._form = form
        if not create:
            check_file(path, field="journal", hint=_HINT)
        flags = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        try:
            self._file = os.open(path, flags, 0o666)
        except OSError as error:
            raise disk_error(error, path, "journal") from error
        try:
            self._lock = Lock(path, self._file)
        except OSError as error:
            os.close(self._file)
            raise disk_error(error, path, "journal") from error
        except BaseException:
            os.close(self._file)
            raise
        try:
            lines, self._size = form.read(path)
            self.done = {form.key(line) for line in lines}
            self._torn = os.fstat(self._file).st_size > self._size
        except OSError as error:
            self.close()
            raise disk_error(error, path, "journal") from error
        except BaseException:
            self.close()
            raise

    def append(self, line: LineType) -> None:
        """Writes one line and waits until it is on the disk; on failure the journal is as before.

        Raises MachineError when the disk refuses.
        """
        data = msgspec.json.encode(line) + b"\n"
        try:
            if self._torn:
                self._cut()
            self._torn = True
            write_all(self._file, data)
            os.fsync(self._file)
        except BaseException as error:
            # Where even this fails, the torn line stays: readers ignore it, the next line or resume cuts it.
            with suppress(OSError):
                self._cut()
            if isinstance(error, OSError):
                raise disk_error(error, self.path, "journal") from error
            raise
        self._torn = False
        self._size += len(data)
        self.done.add(self._form.key(line))

    def _cut(self) -> None:
        os.ftruncate(self._file, self._size)
        self._torn = False

    def read(self) -> list[LineType]:
        """What is in it, in the order of writing."""
        return self._form.read(self.path)[0]

    def rewrite(self, header: bytes, lines: list[LineType]) -> None:
        """Replaces the file by one with these lines, under the lock; where that fails, nothing changes."""
        data = header + b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
        temporary = self.path.with_name(f".{self.path.name}.tmp")
        handle = None
        try:
            handle = os.open(
                temporary, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666
            )
            self._lock.move(handle)
            write_all(handle, data)
            os.fsync(handle)
            os.replace(temporary, self.path)
        except BaseException as error:
            if handle is not None:
                os.close(handle)
            with suppress(OSError):
                temporary.unlink()
            if isinstance(error, OSError):
                raise disk_error(error, self.path, "journal") from error
            raise
        os.close(self._file)
        self._file, self._size, self._torn = handle, len(data), False
        self.done = {self._form.key(line) for line in lines}
        try:
            sync_folder(self.path.parent)
        except OSError as error:
            raise disk_error(error, self.path, "journal") from error

    def close(self) -> None:
        """Releases the lock."""
        self._lock.release()
        os.close(self._file)


class Journal(Lines[Entry, Unit]):
    """The journal of a run. `done`: units with an entry, failed ones included."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, UNITS)

    def drop_failed(self) -> None:
        """Forgets failed entries, so that they are measured again."""
        self.rewrite(HEADER, [entry for entry in self.read() if entry.record.get("status") != "failed"])


def failed_entry(unit: Unit, reason: str) -> Entry:
    """The entry of a unit that got no answer: `failed` with the reason, and no phases."""
    record = failed_record(unit, reason)
    return Entry(point=unit.point, repetition=unit.repetition, closing=unit.closing, record=record)
