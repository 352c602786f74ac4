"""The events of a trace in JSON (Trace Event Format), block by block: a file may be larger than memory.

The array is cut between two events, and each block is decoded at once, which is ten times as fast as event by
event. What cannot be decoded so (NaN, which some profilers write, or damage) is read event by event, up to
the first one that is not JSON.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import msgspec

from elbowroom.errors import UsageError

BLOCK = 4 << 20
LARGEST_HEAD = 64 << 20
"""Bytes in front of the events: properties of devices, and whatever else a profiler writes."""
LARGEST_TAIL = 16 << 20
TRIES = 64
"""Places where a block may be cut: most are between two events, few inside one."""

_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[')
BETWEEN = re.compile(rb"\}\s*,\s*(?=\{)")
_SPACE = b" \t\r\n,"


class EventArguments(msgspec.Struct, gc=False):
    """What is read of `args`; as the format has them."""

    stream: Any = None
    device: Any = None
    labels: Any = None
    sort_index: Any = None
    correlation: Any = None
    external: Any = msgspec.field(name="External id", default=None)
    collective: Any = msgspec.field(name="Collective name", default=None)
    grid: msgspec.Raw = msgspec.Raw()
    block: msgspec.Raw = msgspec.Raw()
    shared: msgspec.Raw = msgspec.field(name="shared memory", default=msgspec.Raw())
    dims: msgspec.Raw = msgspec.field(name="Input Dims", default=msgspec.Raw())
    name: Any = None


NO_ARGUMENTS = EventArguments()


class JsonEvent(msgspec.Struct, gc=False):
    """An event; times in us."""

    ph: Any = ""
    name: Any = ""
    cat: Any = ""
    pid: Any = 0
    tid: Any = 0
    ts: float | str | None = None
    dur: float | str | None = None
    id: Any = None
    id2: Any = None
    scope: Any = None
    args: EventArguments | str | int | float | list[Any] | None = None


_EVENTS = msgspec.json.Decoder(list[JsonEvent])


class JsonTrace:
    """A trace that is read once: `blocks()` first, then what stands around the events (`about`), and why it
    is not whole (`doubt`; empty: it is), and what in the file is left out (`remark`).
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0  # of what is not read yet
        self._in_object = False
        self.about: dict[str, Any] = {}
        self.doubt = ""
        self.remark = ""

    def blocks(self) -> Iterator[list[JsonEvent]]:
        """The events. UsageError for what is no trace in JSON at all."""
        with open(self._path, "rb") as file:
            source = ByteSource(file)
            buffer = self._head(source)
            while True:
                more = source.read()
                if not more:
                    break
                buffer += more
                events, buffer, ended = self._cut(buffer)
                if events:
                    yield events
                if ended:
                    if not self.doubt:
                        self._tail(buffer, source)
                    return
            events, buffer, ended = self._one_by_one(buffer)
            if events:
                yield events
            if not ended or source.doubt:
                self.doubt = self.doubt or source.doubt or "ends early"
            elif not self.doubt:
                self._tail(buffer, source)

    def _head(self, source: ByteSource) -> bytes:
        """What follows the `[` of the events."""
        buffer = source.read()
        start = buffer.lstrip(b"\xef\xbb\xbf \t\r\n")
        if start[:1] == b"[":
            return self._behind(buffer, start[1:])
        while (match := _ARRAY.search(buffer)) is None:
            more = source.read()
            if not more or len(buffer) > LARGEST_HEAD or start[:1] != b"{":
                raise UsageError(
                    "is not a trace: it has no array traceEvents",
                    field="trace",
                    value=str(self._path),
                    hint="give a trace in Chrome's or Kineto's JSON",
                )
            buffer += more
        self.about |= text_in_front(buffer[: match.start()].decode("utf-8", "replace"))
        self._in_object = True
        return self._behind(buffer, buffer[match.end() :])

    def _behind(self, buffer: bytes, rest: bytes) -> bytes:
        """What is left of the buffer."""
        self._offset += len(buffer) - len(rest)
        return rest

    def _tail(self, buffer: bytes, source: ByteSource) -> None:
        while (more := source.read()) and len(buffer) < LARGEST_TAIL:
            buffer += more
        if source.doubt:
            self.doubt = source.doubt
        text = buffer.decode("utf-8", "replace")
        about, self.remark = text_behind(text, self._offset, self._path, in_object=self._in_object)
        self.about |= about

    def _cut(self, buffer: bytes) -> tuple[list[JsonEvent], bytes, bool]:
        """The events of a block, what is left of it, and whether what can be read of the array ended."""
        places = [match.start() for match in BETWEEN.finditer(buffer, max(0, len(buffer) - (1 << 16)))]
        for place in reversed(places[-TRIES:]):
            try:
                return (
                    _EVENTS.decode(b"[" + buffer[: place + 1] + b"]"),
                    self._behind(buffer, buffer[place + 1 :].lstrip(_SPACE)),
                    False,
                )
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
        events, rest, ended = self._one_by_one(buffer)
        if not ended and (len(rest) > 16 * BLOCK or (events and len(rest) > BLOCK)):
            self.doubt = f"is damaged from byte {self._offset} on"
            return events, rest, True
        return events, rest, ended

    def _one_by_one(self, buffer: bytes) -> tuple[list[JsonEvent], bytes, bool]:
        events, rest, ended = _one_by_one(buffer)
        return events, self._behind(buffer, rest), ended


def text_in_front(text: str) -> dict[str, Any]:
    """What stands in front of the events as an object; empty where it is none."""
    return _object(text.rstrip(" \t\r\n,") + "}")[0]


def text_behind(text: str, offset: int, path: Path, *, in_object: bool) -> tuple[dict[str, Any], str]:
    """What stands behind the events, at `offset` of the file, in the same object, if they are in one; and a
    remark on what is left out, as it is no part of the document. UsageError where another document follows.
    """
    whole = offset + len(text.encode())
    about: dict[str, Any] = {}
    rest = text
    if in_object:
        rest = text.lstrip(" \t\r\n,")
        about, end = _object("{" + rest)
        rest = rest[max(end - 1, 0) :]
    rest = rest.lstrip(" \t\r\n\0")
    if not rest:
        return about, ""
    place = f"byte {whole - len(rest.encode())}"
    if rest[0] in "{[":
        raise UsageError(
            f"holds several documents: another one begins at {place}",
            field="trace",
            value=str(path),
            hint="give each as a file of its own",
        )
    return about, f"what follows from {place} on is no part of the trace, and is left out"


def _object(text: str) -> tuple[dict[str, Any], int]:
    """The object at the begin of a text, and where it ends; empty, and 0, where there is none."""
    try:
        about, end = json.JSONDecoder(strict=False).raw_decode(text)
    except (ValueError, RecursionError):
        return {}, 0
    return (about, end) if isinstance(about, dict) else ({}, 0)


class ByteSource:
    """The bytes of a file, decompressed where it is compressed; `doubt`: why they end early."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._inflate = None
        self.doubt = ""
        if file.read(2) == b"\x1f\x8b":
            self._inflate = zlib.decompressobj(31)
        file.seek(0)

    def read(self) -> bytes:
        """The next block; empty at the end."""
        if self._inflate is None:
            return self._file.read(BLOCK)
        while not self.doubt:
            data = self._inflate.unconsumed_tail or self._inflate.unused_data
            if self._inflate.eof:
                data = data or self._file.read(BLOCK // 4)
                if not data.strip(b"\0"):
                    return b""
                self._inflate = zlib.decompressobj(31)
            else:
                data = data or self._file.read(BLOCK // 4)
            if not data:
                self.doubt = "ends early (the compressed data is cut)"
                return b""
            try:
                block = self._inflate.decompress(data, BLOCK)
            except zlib.error:
                self.doubt = "is damaged (the compressed data cannot be read)"
                return b""
            if block:
                return block
        return b""


def lines_of(path: Path, what: str) -> Iterator[bytes]:
    """The lines of a file, one by one, decompressed where it is compressed. UsageError where they end early;
    `what`: the program that writes such files, for the hint.
    """
    line: list[bytes] = []  # what is known of the next one
    with open(path, "rb") as file:
        source = ByteSource(file)
        for block in iter(source.read, b""):
            first, *others = block.split(b"\n")
            line.append(first)
            if others:
                yield b"".join(line)
                *whole, last = others
                yield from whole
                line = [last]
    if source.doubt:
        raise UsageError(source.doubt, field="trace", value=str(path), hint=f"write it again with {what}")
    yield b"".join(line)


def _one_by_one(buffer: bytes) -> tuple[list[JsonEvent], bytes, bool]:
    """As JsonTrace._cut, event by event."""
    text = buffer.decode("utf-8", "surrogateescape")
    decoder = json.JSONDecoder(strict=False)
    events: list[JsonEvent] = []
    at, space = 0, " \t\r\n,"
    while True:
        while at < len(text) and text[at] in space:
            at += 1
        if at >= len(text) or text[at] == "]":
            break
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        if not isinstance(value, dict) and (end == len(text) or not isinstance(value, list | str)):
            break
        at = end
        event = _event(value)
        if event is not None:
            events.append(event)
    ended = at < len(text) and text[at] == "]"
    rest = text[at + 1 if ended else at :]
    return events, rest.encode("utf-8", "surrogateescape"), ended


def _event(value: Any) -> JsonEvent | None:
    try:
        return msgspec.json.decode(json.dumps(value).encode(), type=JsonEvent)
    except (msgspec.DecodeError, ValueError, RecursionError):
        pass
    try:
        # Without what is no number (NaN) or of another type.
        known = (
            {name: value.get(name) for name in ("ph", "name", "cat", "pid", "tid", "id", "id2", "scope")}
            if isinstance(value, dict)
            else {}
        )
        return msgspec.convert(known | {"ts": _number(value, "ts"), "dur": _number(value, "dur")}, JsonEvent)
    except (msgspec.ValidationError, ValueError, RecursionError):
        return None


def _number(value: Any, name: str) -> float | None:
    number = value.get(name) if isinstance(value, dict) else None
    return float(number) if isinstance(number, int | float) and abs(number) < 1e300 else None
