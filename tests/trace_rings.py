"""Reads a stopped trace as it lies on disk (lib/trace/ring_file.hpp): for tests of what records."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import NamedTuple

EVENT, BEGIN, END = 0, 1, 2

_SIZES = struct.Struct(
    "<8sIIIIQQQQ"
)  # magic, version, header, slot, policy, capacity, stored, texts' capacity and bytes
_NAME = slice(88, 152)
_SLOT = struct.Struct("<QHBBIQQ")
_TEXT = struct.Struct("<QHHI")


class Event(NamedTuple):
    """An event; `time` as it was stamped, comparable within a process."""

    time: int
    thread: str
    category: str
    type: str
    kind: int
    small: int
    first: int
    second: int


class Recorded(NamedTuple):
    """One process's events by time, its texts by the name of their type and their key, its threads."""

    events: list[Event]
    texts: dict[tuple[str, int], str]
    threads: list[str]

    def of(self, name: str, kind: int = EVENT) -> list[Event]:
        """The events of one type and kind."""
        return [event for event in self.events if (event.type, event.kind) == (name, kind)]


def read_rings(folder: Path, rank: int = 0) -> Recorded:
    """What process `rank` recorded into `folder`, stopped, with the policy `stop`."""
    stem = f"rank-{rank:05}"
    lines = [json.loads(line) for line in (folder / f"{stem}.jsonl").read_text().splitlines()]
    categories = {line["number"]: line["name"] for line in lines if line["record"] == "category"}
    types = {line["number"]: line for line in lines if line["record"] == "type"}
    recorded = Recorded([], {}, [])
    for path in sorted(folder.glob(f"{stem}.*.ring")):
        content = path.read_bytes()
        _, _, header, slot, _, _, stored, _, text_bytes = _SIZES.unpack_from(content)
        thread = content[_NAME].split(b"\0")[0].decode()
        recorded.threads.append(thread)
        for place in range(header, header + stored * slot, slot):
            time, number, kind, _, small, first, second = _SLOT.unpack_from(content, place)
            category = categories.get(types[number]["category"], "")
            recorded.events.append(
                Event(time, thread, category, types[number]["name"], kind, small, first, second)
            )
        place, end = header + stored * slot, header + stored * slot + text_bytes
        while place < end:
            key, number, _, length = _TEXT.unpack_from(content, place)
            begin = place + _TEXT.size
            recorded.texts[types[number]["name"], key] = content[begin : begin + length].decode()
            place = begin + (length + 7) // 8 * 8
    recorded.events.sort()
    return recorded
