"""Writes traces as processes leave them on disk (lib/trace/ring_file.hpp), for tests of what reads them."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from pathlib import Path

EVENT, BEGIN, END, COUNTER, SEND, RECEIVE = range(6)

_HEADER = struct.Struct("<8sIIIIQQQQQiiiiq64s64sQQqQQQQQ")
_HEADER_BYTES = 4096
_RING = struct.Struct("<QQQQiI")
_RING_AT = 320
_SLOT = struct.Struct("<QHBBIQQ")
_TEXT = struct.Struct("<QHHI")
_FEWEST = 64


class MadeRank:
    """A process whose stamps are ns: its threads' events and texts, and its comparisons of clocks."""

    def __init__(self, rank: int, ranks: int) -> None:
        self.rank, self.ranks = rank, ranks
        self.types: list[tuple[str, str, Sequence[str | None]]] = []
        self.syncs: list[dict[str, object]] = []
        self.threads: list[tuple[bytes, list[bytes], list[bytes]]] = []
        self.lost: dict[int, int] = {}

    def type(self, name: str, category: str, fields: Sequence[str | None] = (None, None, None)) -> int:
        self.types.append((name, category, fields))
        return len(self.types) - 1

    def thread(self, name: bytes = b"") -> int:
        self.threads.append((name, [], []))
        return len(self.threads) - 1

    def add(
        self, thread: int, time: int, type_: int, kind: int, small: int = 0, first: int = 0, second: int = 0
    ) -> None:
        slot = _SLOT.pack(time, type_, kind, 0, small & 0xFFFFFFFF, first & (2**64 - 1), second & (2**64 - 1))
        self.threads[thread][1].append(slot)

    def text(self, thread: int, type_: int, key: int, text: bytes) -> None:
        record = _TEXT.pack(key, type_, 0, len(text)) + text
        self.threads[thread][2].append(record + bytes(-len(record) % 8))

    def sync(self, local: int, offset: int, width: int = 50) -> None:
        self.syncs.append(
            {
                "record": "sync",
                "local": local,
                "offset": offset,
                "low": offset - width,
                "high": offset + width,
                "same_source": True,
            }
        )

    def write(self, folder: Path, job: int = 7) -> None:
        folder.mkdir(exist_ok=True)
        for number in range(len(self.threads)):
            self._ring(folder / f"rank-{self.rank:05}.thread-{number:05}.ring", number, job)
        kept = sum(len(slots) for _, slots, _ in self.threads)
        lost = sum(self.lost.values())
        lines: list[dict[str, object]] = [
            {
                "record": "trace",
                "format": 1,
                "job": job,
                "rank": self.rank,
                "ranks": self.ranks,
                "pid": 100 + self.rank,
                "memory": "/dev/shm/none",
                "policy": "stop",
                "clock": {"counter": False, "start_ticks": 0, "start_ns": 0, "scale": 0},
            }
        ]
        categories = sorted({category for _, category, _ in self.types})
        for number, name in enumerate(categories):
            lines.append({"record": "category", "number": number, "name": name})
        for number, (name, category, fields) in enumerate(self.types):
            of = categories.index(category)
            lines.append(
                {"record": "type", "number": number, "name": name, "category": of, "fields": list(fields)}
            )
        lines += self.syncs
        lines.append(
            {
                "record": "end",
                "recorded": kept + lost,
                "kept": kept,
                "lost": lost,
                "fullest": kept,
                "capacity": _FEWEST,
                "threads": len(self.threads),
                "texts_kept": 0,
                "texts_lost": 0,
                "advised_bytes": 4096,
                "event_ns": 10.0,
            }
        )
        text = "".join(json.dumps(line) + "\n" for line in lines)
        (folder / f"rank-{self.rank:05}.jsonl").write_text(text)

    def _ring(self, path: Path, number: int, job: int) -> None:
        name, slots, texts = self.threads[number]
        said = b"".join(texts)
        lost = self.lost.get(number, 0)
        capacity = max(_FEWEST, 1 << max(len(slots) - 1, 0).bit_length())
        header = _HEADER.pack(
            *(b"elbowtr\1", 1, _HEADER_BYTES, _SLOT.size, 0),
            *(capacity, len(slots), max(len(said), 64), len(said), job),
            *(self.rank, self.ranks, number, 1000 + number, 100 + self.rank),
            *(name, f"node{self.rank}".encode()),
            *(0, 0, 0, 0, 1, len(said), len(texts), 0),
        )
        ring = _RING.pack(len(slots) + lost, capacity, capacity - 1, 0, 0, 0)
        page = header.ljust(_RING_AT, b"\0") + ring
        path.write_bytes(page.ljust(_HEADER_BYTES, b"\0") + b"".join(slots) + said)
