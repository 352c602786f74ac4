"""The journal of a run: one line for each measured unit, on the disk before the next one is asked for.

Line 1 is a header with schema and version. A line is complete when it ends with a newline: the last one may
be torn by a kill or a crash and is then as if never written; anything else that cannot be read is damage and
is an error.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.errors import UsageError
from elbowroom.plan.point import Unit
from elbowroom.store.files import disk_error
from elbowroom.store.versions import check_version

SCHEMA = "elbowroom/samples"
VERSION = 1
HEADER = msgspec.json.encode({"schema": SCHEMA, "version": VERSION}) + b"\n"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One line: which unit, and the probe's record (docs/protocol.md, `repetition`; `failed` where none
    came).
    """

    point: str
    repetition: int
    closing: bool = False
    record: dict[str, Any]

    @property
    def unit(self) -> Unit:
        """The unit this line answers."""
        return Unit(point=self.point, repetition=self.repetition, closing=self.closing)


def read_journal(path: Path) -> tuple[list[Entry], int]:
    """The complete entries of a journal, and how many of its bytes they take (a torn last line lies behind).

    Raises UsageError naming file and line for damage and for a journal of a newer release.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot be read ({error.strerror})", field="journal", value=str(path)) from error
    sound = data.rfind(b"\n") + 1
    lines = data[:sound].split(b"\n")[:-1]
    if not lines:
        raise _damage(path, 1, "the header is missing")
    _check_header(path, lines[0])
    entries: list[Entry] = []
    seen: set[Unit] = set()
    decoder = msgspec.json.Decoder(Entry)
    for number, line in enumerate(lines[1:], start=2):
        try:
            entry = decoder.decode(line)
        except msgspec.MsgspecError as error:
            raise _damage(path, number, str(error)) from error
        if entry.unit in seen:
            raise _damage(path, number, f"repetition {entry.repetition} of {entry.point} is there twice")
        seen.add(entry.unit)
        entries.append(entry)
    return entries, sound


def _check_header(path: Path, line: bytes) -> None:
    try:
        header = msgspec.json.decode(line)
    except msgspec.DecodeError as error:
        raise _damage(path, 1, str(error)) from error
    if not isinstance(header, dict) or header.get("schema") != SCHEMA:
        raise _damage(path, 1, f"the header names no schema {SCHEMA!r}")
    check_version(path, SCHEMA, header.get("version"), VERSION)


def _damage(path: Path, line: int, what: str) -> UsageError:
    return UsageError(
        f"line {line} is damaged ({what})",
        field="journal",
        value=str(path),
        mend=f"the lines before it are sound: cut the file before line {line} and resume, or measure again",
    )


class Journal:
    """An open journal that only this process may append to. `done`: units with an entry, failed ones
    included.
    """

    def __init__(self, path: Path) -> None:
        """Opens for appending: takes the lock, reads what is there, cuts a torn last line off."""
        self.path = path
        try:
            self._file = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)
        except OSError as error:
            raise disk_error(error, path, "journal") from error
        try:
            self._lock()
            entries, self._size = read_journal(path)
            self.done = {entry.unit for entry in entries}
            os.ftruncate(self._file, self._size)
        except OSError as error:
            os.close(self._file)
            raise disk_error(error, path, "journal") from error
        except BaseException:
            os.close(self._file)
            raise

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(
                "another process is measuring into it",
                field="run",
                value=str(self.path.parent),
                mend="wait for it to end, or choose another --out",
            ) from error

    def append(self, entry: Entry) -> None:
        """Writes one line and waits until it is on the disk; on failure the journal is as before.

        Raises MachineError when the disk refuses.
        """
        line = msgspec.json.encode(entry) + b"\n"
        try:
            written = 0
            while written < len(line):
                written += os.write(self._file, line[written:])
            os.fsync(self._file)
        except OSError as error:
            self._take_back()
            raise disk_error(error, self.path, "journal") from error
        self._size += len(line)
        self.done.add(entry.unit)

    def drop_failed(self) -> None:
        """Forgets failed entries, so that they are measured again: the file is rewritten whole, under the
        lock.
        """
        kept = [entry for entry in read_journal(self.path)[0] if entry.record.get("status") != "failed"]
        data = HEADER + b"".join(msgspec.json.encode(entry) + b"\n" for entry in kept)
        temporary = self.path.with_name(f".{self.path.name}.tmp")
        try:
            handle = os.open(
                temporary, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o666
            )
            fcntl.flock(handle, fcntl.LOCK_EX)
            with open(os.dup(handle), "wb") as file:
                file.write(data)
            os.fsync(handle)
            os.replace(temporary, self.path)
        except OSError as error:
            raise disk_error(error, self.path, "journal") from error
        os.close(self._file)
        self._file, self._size = handle, len(data)
        self.done = {entry.unit for entry in kept}

    def _take_back(self) -> None:
        try:
            os.ftruncate(self._file, self._size)
        except OSError:
            # The torn line stays; readers ignore it, and the next resume cuts it off.
            return

    def close(self) -> None:
        """Releases the lock."""
        os.close(self._file)


def failed_entry(unit: Unit, reason: str) -> Entry:
    """The entry of a unit that got no answer: `failed` with the reason, and no phases."""
    record = {
        "record": "repetition",
        "point": unit.point,
        "repetition": unit.repetition,
        "status": "failed",
        "reason": reason,
        "flags": [],
        "phases": [],
    }
    return Entry(point=unit.point, repetition=unit.repetition, closing=unit.closing, record=record)
