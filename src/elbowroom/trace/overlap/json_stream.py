"""A document in JSON, piece by piece: large arrays come in batches, so a file may be larger than memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from elbowroom.errors import UsageError
from elbowroom.trace.overlap.json_events import BETWEEN, BLOCK, ByteSource

_TRIES = 16
"""Places where a block may be cut before it is read token by token."""
_LAST = 1 << 16
"""Bytes at the end of a block in which these places are."""
_CLOSE = re.compile(rb"\}\s*\]")
_SPACE = re.compile(rb"[ \t\r\n,]*")
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|["{}\[\]]', re.DOTALL)
"""A string, a quote whose string is cut, or a bracket."""
_SCALAR = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[^][{}",:\s]+', re.DOTALL)
_ANY = msgspec.json.Decoder(list[msgspec.Raw])


@contextmanager
def json_stream(path: Path, what: str) -> Iterator[JsonStream]:
    """The document of a file, plain or compressed. UsageError where the compressed data are damaged; `what`:
    the program that writes such files, for the hint.
    """
    with open(path, "rb") as file:
        source = ByteSource(file)
        stream, damage = JsonStream(source), None
        try:
            yield stream
            stream.finish()
        except msgspec.DecodeError as error:
            damage = error
        if source.doubt:
            hint = f"write it again with {what}"
            raise UsageError(source.doubt, field="trace", value=str(path), hint=hint) from damage
        if damage is not None:
            raise damage


class JsonStream:
    """Stands in front of a value, which one of its methods reads. msgspec.DecodeError for damage."""

    def __init__(self, source: ByteSource) -> None:
        self._source = source
        self._buffer = b""
        self._at = 0
        self._ended = False

    def members(self) -> Iterator[str]:
        """The keys of an object; the value of each is to be read before the next one."""
        self._expect(b"{")
        while self._next() != b"}":
            key = self.value(str)
            self._expect(b":")
            yield key
        self._at += 1

    def items(self) -> Iterator[None]:
        """Stands in front of each value of an array, which is to be read before the next one."""
        self._expect(b"[")
        while self._next() != b"]":
            yield None
        self._at += 1

    def batches(self, decoder: msgspec.json.Decoder[list[Any]]) -> Iterator[list[Any]]:
        """The values of an array of objects, as the decoder of a list of them reads them."""
        self._expect(b"[")
        wanted = BLOCK
        while self._next() != b"]":
            self._fill(wanted)
            values, size = self._decoded(decoder)
            if values:
                yield values
            elif self._ended:
                raise msgspec.DecodeError("an array ends early")
            self._at += size
            wanted = BLOCK if size else 2 * wanted
        self._at += 1

    def value(self, kind: Any) -> Any:
        """The value, as msgspec reads this type."""
        wanted = BLOCK
        scalar = self._next() not in (b"{", b"[")
        while True:
            self._fill(wanted)
            if scalar:
                match = _SCALAR.match(self._buffer, self._at)
                end = match.end() if match else 0
                if end == len(self._buffer) and not self._ended:
                    end = 0  # it may go on
            else:
                end = self._end_of_value()
            if end:
                data = self._buffer[self._at : end]
                self._at = end
                return msgspec.json.decode(data, type=kind)
            if self._ended:
                raise msgspec.DecodeError("a value ends early")
            wanted *= 2

    def skip(self) -> None:
        """Leaves the value out."""
        following = self._next()
        if following == b"{":
            for _ in self.members():
                self.skip()
        elif following == b"[":
            for _ in self.batches(_ANY):
                pass
        else:
            self.value(msgspec.Raw)

    def finish(self) -> None:
        """Nothing follows."""
        self._space()
        if self._at < len(self._buffer):
            raise msgspec.DecodeError("something follows the document")

    def _decoded(self, decoder: msgspec.json.Decoder[list[Any]]) -> tuple[list[Any], int]:
        """Some values of the array, from here on, and how many bytes they are; none: more are needed."""
        close = _CLOSE.search(self._buffer, self._at)
        places = [] if close is None else [close.start()]
        last = max(self._at, len(self._buffer) - _LAST)
        places += [one.start() for one in BETWEEN.finditer(self._buffer, last)][: -_TRIES - 1 : -1]
        for place in places:
            try:
                return decoder.decode(self._part(place + 1)), place + 1 - self._at
            except (msgspec.DecodeError, UnicodeDecodeError):
                continue
        end = self._end_of_values()
        return (decoder.decode(self._part(end)), end - self._at) if end else ([], 0)

    def _part(self, end: int) -> bytes:
        return b"[" + self._buffer[self._at : end] + b"]"

    def _end_of_value(self) -> int:
        """Where the object or array ends that begins here; 0: not in the buffer."""
        depth = 0
        for token in _TOKEN.finditer(self._buffer, self._at):
            text = token[0]
            depth += (text in b"{[") - (text in b"]}")
            if not depth:
                return token.end()
        return 0

    def _end_of_values(self) -> int:
        """Where the last value ends that is whole in the buffer, of the array that goes on here; 0: none."""
        depth = end = 0
        for token in _TOKEN.finditer(self._buffer, self._at):
            text = token[0]
            if text == b'"':
                break
            if text in b"]}" and not depth:
                return token.start()
            depth += (text in b"{[") - (text in b"]}")
            if not depth and text in b"]}":
                end = token.end()
        return end

    def _expect(self, text: bytes) -> None:
        if self._next() != text:
            raise msgspec.DecodeError(f"{text.decode()!r} is missing")
        self._at += 1

    def _next(self) -> bytes:
        """The byte in front of which it stands, behind spaces and commas."""
        self._space()
        if self._at == len(self._buffer):
            raise msgspec.DecodeError("ends early")
        return self._buffer[self._at : self._at + 1]

    def _space(self) -> None:
        while True:
            match = _SPACE.match(self._buffer, self._at)
            self._at = match.end() if match else self._at
            if self._at < len(self._buffer) or self._ended:
                return
            self._fill(BLOCK)

    def _fill(self, wanted: int) -> None:
        """Reads until so many bytes are there, or the file ends."""
        if self._ended or len(self._buffer) - self._at >= wanted:
            return
        blocks = [self._buffer[self._at :]]
        there = len(blocks[0])
        while there < wanted and not self._ended:
            blocks.append(self._source.read())
            there += len(blocks[-1])
            self._ended = not blocks[-1]
        self._buffer, self._at = b"".join(blocks), 0
