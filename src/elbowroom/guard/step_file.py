"""The file of a rank by which a guard finds its steps and steers them, mapped. The layout is that of
lib/pmpi/guard/step_file.hpp, little endian.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from elbowroom.errors import UsageError
from elbowroom.guard.board import SETTINGS

STEPS_VARIABLE = "ELBOW_GUARD_STEPS"
"""The environment variable, 1, by which ranks make a file of steps."""
VERSION = 1
PHASES = 64
OTHERS = PHASES - 1
"""The phase of all that have no number of their own."""
ARMS = 64
TABLES = 32
FIRST_TABLE = 2
PLAN = 4096
CALLS = 8192
STEPS = 1024

_MAGIC = b"ELBSTEPS"
_HEADER_BYTES = 32768
_WORD, _LONG = struct.Struct("<I"), struct.Struct("<Q")
_RANK, _PROCESS, _THREADS, _CALLS, _STEPS, _PHASES, _FIXED = 12, 16, 20, 24, 32, 40, 44
_LEARNS, _RECOGNISED, _SITE, _EVERY, _PLANNED, _REST, _LEADS = 48, 52, 56, 60, 64, 72, 76
_SETTINGS = 80
_PLAN = _SETTINGS + 8 * ARMS * SETTINGS
_TABLES = _PLAN + PLAN
CALL = np.dtype([("site", "<u4"), ("reserved", "<u4"), ("begin", "<u8"), ("end", "<u8")])
STEP = np.dtype(
    [
        ("step", "<u8"),
        ("begin", "<u8"),
        ("end", "<u8"),
        ("arm", "<u4"),
        ("reserved", "<u4"),
        ("seconds", "<f4", PHASES),
        ("threads", "u1", PHASES),
        ("got", "u1", PHASES),
    ]
)
_SIZE = _HEADER_BYTES + CALLS * CALL.itemsize + STEPS * STEP.itemsize


class StepFile:
    """The steps of one rank. UsageError for a file that is none."""

    def __init__(self, path: Path) -> None:
        """Maps the file at `path`."""
        self.path = path
        with path.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        head = self._memory[:12]
        if len(self._memory) < _SIZE or head[:8] != _MAGIC or _WORD.unpack(head[8:12])[0] != VERSION:
            raise UsageError(
                "is not a file of steps of this release of elbowroom", field="guard", value=str(path)
            )
        self.rank = self._word(_RANK)
        self._read = 0

    def close(self) -> None:
        """Unmaps the file."""
        self._memory.close()

    @property
    def process(self) -> int:
        """The rank's process; 0 once it has ended MPI."""
        return self._word(_PROCESS)

    @property
    def threads(self) -> int:
        """Threads of a parallel region as the program has it; 0 without OpenMP."""
        return self._word(_THREADS)

    @property
    def fixed(self) -> int:
        """How often the program set a number of threads itself since its steps are recognised."""
        return self._word(_FIXED)

    @property
    def is_recognised(self) -> bool:
        """Whether steps are seen, by marks or by a site."""
        return self._word(_RECOGNISED) != 0

    @property
    def by_marks(self) -> bool:
        """Whether the program marks its steps."""
        return self._word(_RECOGNISED) == 1

    @property
    def call_count(self) -> int:
        """Calls that were recorded."""
        return self._long(_CALLS)

    @property
    def step_count(self) -> int:
        """Steps that are complete; the one with this number is running, or about to."""
        return self._long(_STEPS)

    def calls(self) -> npt.NDArray[np.void]:
        """The latest calls in their order, without the oldest, which may be written right now."""
        rows = np.frombuffer(self._memory, dtype=CALL, count=CALLS, offset=_HEADER_BYTES)
        count = self.call_count
        first = max(count - CALLS + 64, 0)
        return np.array(rows[np.arange(first, count) % CALLS])

    def new_steps(self) -> npt.NDArray[np.void]:
        """The steps that were complete since the last call, at most the latest ones that are kept."""
        offset = _HEADER_BYTES + CALLS * CALL.itemsize
        rows = np.frombuffer(self._memory, dtype=STEP, count=STEPS, offset=offset)
        count = self.step_count
        first = max(self._read, count - STEPS + 64, 0)
        self._read = count
        return np.array(rows[np.arange(first, count) % STEPS])

    def recognise(self, site: int, every: int) -> None:
        """Steps begin at the end of each so many calls of the site."""
        self._set(_SITE, site)
        self._set(_EVERY, every)
        self._set(_RECOGNISED, 2)

    def stop_learning(self) -> None:
        """Calls are not recorded any more."""
        self._set(_LEARNS, 0)

    def lead(self, leads: bool) -> None:
        """Whether this rank writes the settings of each arm to the board, where its steps begin."""
        self._set(_LEADS, int(leads))

    def set_arm(self, arm: int, settings: Mapping[int, int]) -> None:
        """The settings of an arm, by the number of the lever; 0 of others."""
        values = [settings.get(lever, 0) for lever in range(SETTINGS)]
        struct.pack_into(f"<{SETTINGS}Q", self._memory, _SETTINGS + 8 * SETTINGS * arm, *values)

    def set_table(self, table: int, threads: Mapping[int, int]) -> None:
        """The number of threads by phase; 0, as the program has it, of others."""
        values = [threads.get(phase, 0) for phase in range(PHASES)]
        struct.pack_into(f"<{PHASES}H", self._memory, _TABLES + 2 * PHASES * table, *values)

    def plan(self, first: int, arms: Sequence[int], rest: int, skipped: int = 0) -> None:
        """The arms of the steps from `first` on; `rest`, that of all that follow and of so many before them.
        Steps before these keep theirs.
        """
        self._put_arms(first - skipped, bytes([rest]) * min(skipped, PLAN))
        self._put_arms(first, bytes(arms))
        self._set(_REST, rest)
        _LONG.pack_into(self._memory, _PLANNED, first + len(arms))

    def _put_arms(self, first: int, arms: bytes) -> None:
        place = first % PLAN
        before_end = arms[: PLAN - place]
        self._memory[_PLAN + place : _PLAN + place + len(before_end)] = before_end
        self._memory[_PLAN : _PLAN + len(arms) - len(before_end)] = arms[len(before_end) :]

    def _word(self, place: int) -> int:
        return int(_WORD.unpack_from(self._memory, place)[0])

    def _long(self, place: int) -> int:
        return int(_LONG.unpack_from(self._memory, place)[0])

    def _set(self, place: int, value: int) -> None:
        _WORD.pack_into(self._memory, place, value)
