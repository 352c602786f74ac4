"""The board of a node (include/elbowroom/guard.h), mapped: what its ranks have in flight, and the settings of
levers. The layout is that of lib/guard/board.hpp, little endian.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.errors import UsageError

VARIABLE = "ELBOW_GUARD"
"""The environment variable that tells the ranks where their board is."""
SHARED = Path("/dev/shm")
SETTINGS = 32
VERSION = 2

_MAGIC = b"ELBGUARD"
_HEADER = struct.Struct("<8sIIIIQ")
_HEADER_BYTES = 4096
_AMOUNT_BYTES, _LINE = 4, 64
_FIRST_SETTING = 32
_HELD_UNIT = 1e-5
_BYTES_IN_FLIGHT = (1 << 48) - 1
_PLACE = np.dtype(
    [
        ("process", "<u4"),
        ("rank", "<i4"),
        ("flight", "<u8", 2),
        ("moved", "<u8", 2),
        ("waiting", "<u4"),
        ("held", "<u4"),
        ("step_begin", "<u8"),
        ("steps", "<u8"),
    ]
)


class RankTraffic(msgspec.Struct, frozen=True, kw_only=True):
    """What one rank of this node does. `out`, `in_`: bytes in flight; `moved_out`, `moved_in`: bytes of
    messages that are complete; `waiting`: whether it is inside a call that waits; `steps` that it began, the
    latest at `step_begin` (CLOCK_MONOTONIC, s; None before the first one).
    """

    rank: int
    process: int
    out: int
    in_: int
    moved_out: int
    moved_in: int
    waiting: bool
    steps: int
    step_begin: float | None


class Board:
    """A board that exists. UsageError for a file that is none."""

    def __init__(self, path: Path | str) -> None:
        """Maps the board at `path`."""
        self.path = Path(path)
        try:
            with self.path.open("r+b") as file:
                self._memory = mmap.mmap(file.fileno(), 0)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or "is empty"
            raise UsageError(f"cannot be opened ({reason})", field="board", value=str(path)) from error
        magic, version, self._places, _, _, _ = _HEADER.unpack(
            self._memory[: _HEADER.size].ljust(_HEADER.size)
        )
        self._first = _HEADER_BYTES + -(-self._places * _AMOUNT_BYTES // _LINE) * _LINE
        size = self._first + self._places * _PLACE.itemsize
        if magic != _MAGIC or version != VERSION or len(self._memory) < size:
            raise UsageError(
                "is not a board of this release of elbowroom",
                field="board",
                value=str(path),
                hint="boards are in /dev/shm while a guarded job runs",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Unmaps the board, which stays for others."""
        self._memory.close()

    def ranks(self) -> tuple[RankTraffic, ...]:
        """The ranks of this node that are guarded, by rank."""
        rows = [row for row in self._rows() if row["process"] != 0]
        return tuple(_traffic(row) for row in sorted(rows, key=lambda row: int(row["rank"])))

    def held(self) -> dict[int, float]:
        """For how long levers held tasks back, added up, s, by the process of the rank."""
        rows = self._rows()
        held: dict[int, float] = {}
        for process, units in zip(rows["process"].tolist(), rows["held"].tolist(), strict=True):
            held[process] = held.get(process, 0.0) + units * _HELD_UNIT
        held.pop(0, None)  # free places
        return held

    def in_flight(self) -> int:
        """Bytes of all ranks, in both directions."""
        return int((self._rows()["flight"] & np.uint64(_BYTES_IN_FLIGHT)).sum())

    def set(self, lever: int, value: int) -> None:
        """Writes the setting of a lever, which the ranks read. IndexError for a lever beyond SETTINGS."""
        struct.pack_into("<Q", self._memory, self._place_of(lever), value)

    def setting(self, lever: int) -> int:
        """The setting of a lever; 0 before the first one."""
        (value,) = struct.unpack_from("<Q", self._memory, self._place_of(lever))
        return int(value)

    def _rows(self) -> npt.NDArray[np.void]:
        used = min(_HEADER.unpack_from(self._memory)[3], self._places)
        bytes_ = self._memory[self._first : self._first + used * _PLACE.itemsize]
        return np.frombuffer(bytes_, dtype=_PLACE)

    def _place_of(self, lever: int) -> int:
        if not 0 <= lever < SETTINGS:
            raise IndexError(f"lever {lever}: levers are numbered from 0 to {SETTINGS - 1}")
        return _FIRST_SETTING + 8 * lever


def _traffic(row: np.void) -> RankTraffic:
    out, inside = (int(value) & _BYTES_IN_FLIGHT for value in row["flight"])
    begin = int(row["step_begin"])
    return RankTraffic(
        rank=int(row["rank"]),
        process=int(row["process"]),
        out=out,
        in_=inside,
        moved_out=int(row["moved"][0]),
        moved_in=int(row["moved"][1]),
        waiting=bool(row["waiting"]),
        steps=int(row["steps"]),
        step_begin=begin / 1e9 if begin else None,
    )


@contextlib.contextmanager
def board_path() -> Iterator[Path]:
    """A name for the board of a new guard on each of its nodes; what is there on this one is removed at the
    end.
    """
    path = SHARED / f"elbow-guard-{os.getuid()}-{os.urandom(6).hex()}"
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)
