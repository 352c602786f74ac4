"""Writes slices in Perfetto's protobuf, as its tracing library does: interned names, tracks, both ends."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

BEGIN, END = 1, 2


def varint(value: int) -> bytes:
    data = bytearray()
    while value > 0x7F:
        data.append(value & 0x7F | 0x80)
        value >>= 7
    data.append(value)
    return bytes(data)


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def text(field: int, value: str | bytes) -> bytes:
    data = value.encode() if isinstance(value, str) else value
    return varint(field << 3 | 2) + varint(len(data)) + data


def packet(content: bytes, sequence: int = 1) -> bytes:
    return text(1, content + number(10, sequence))


def process(uuid: int, pid: int, name: str) -> bytes:
    return packet(text(60, number(1, uuid) + text(3, number(1, pid) + text(6, name))))


def thread(uuid: int, pid: int, tid: int, parent: int) -> bytes:
    return packet(text(60, number(1, uuid) + text(4, number(1, pid) + number(2, tid)) + number(5, parent)))


def track(uuid: int, name: str, parent: int) -> bytes:
    return packet(text(60, number(1, uuid) + text(2, name) + number(5, parent)))


class Slices:
    """Slices of one sequence; names and categories are interned. `incremental`: times are differences."""

    def __init__(self, *, incremental: bool = False) -> None:
        self.numbers: dict[str, int] = {}
        self.incremental = incremental
        self.last = 0
        clock = text(6, text(1, number(1, 64) + number(2, 0) + number(3, 1))) if incremental else b""
        defaults = text(59, number(58, 64)) if incremental else b""
        self.data = packet(number(13, 1) + clock + defaults)

    def add(self, kind: int, time: int, track: int, name: str = "", category: str = "") -> None:
        event = number(9, kind) + number(11, track)
        new = b""
        for field, entry, value in ((3, 1, category), (10, 2, name)):
            if not value:
                continue
            if value not in self.numbers:
                self.numbers[value] = len(self.numbers) + 1
                new += text(entry, number(1, self.numbers[value]) + text(2, value))
            event += number(field, self.numbers[value])
        stamp = time - self.last if self.incremental else time
        self.last = time
        interned = text(12, new) if new else b""
        self.data += packet(number(8, stamp) + interned + text(11, event))

    def spans(self, spans: Sequence[tuple[str, str, int, int, int]]) -> None:
        """Spans (name, category, track, begin, end) in the order of their times."""
        begins = [(begin, 1, *rest) for *rest, begin, _ in spans]
        ends = [(end, 0, *rest) for *rest, _, end in spans]
        for time, begin, name, category, where in sorted(begins + ends):
            if begin:
                self.add(BEGIN, time, where, name, category)
            else:
                self.add(END, time, where)


def compressed(data: bytes) -> bytes:
    """The packets in one that holds them compressed."""
    return text(1, text(50, zlib.compress(data)))
