"""Memory traffic of a host while a job ran: samples of its counters, in the profile folder."""

from __future__ import annotations

from typing import Literal

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.documents import DocumentFormat

FILE = "memory.json"
VERSION = 1

Floats = npt.NDArray[np.float64]


class MemoryTraffic(msgspec.Struct, frozen=True, kw_only=True):
    """`bytes` to and from memory since the first sample, at `times_ns` of the host's monotonic clock.
    `scope`: `host`, everything that ran there, or `job`, the program's processes.
    """

    schema: str = "elbowroom/profile-memory"
    version: int = VERSION
    host: str
    source: str
    scope: Literal["host", "job"]
    times_ns: tuple[int, ...]
    bytes: tuple[float, ...]

    @property
    def total(self) -> float:
        """Bytes of the whole job."""
        return self.bytes[-1]

    def rates(self, start_ns: int, edges: Floats) -> Floats:
        """B/s between each two of `edges`, seconds since `start_ns`; nan where nothing was sampled."""
        times = (np.array(self.times_ns) - start_ns) / 1e9
        at = np.interp(edges, times, self.bytes, left=np.nan, right=np.nan)
        rates: Floats = np.diff(at) / np.diff(edges)
        return rates


MEMORY = DocumentFormat(
    kind=MemoryTraffic,
    schema="elbowroom/profile-memory",
    version=VERSION,
    name="memory traffic",
    hint="profile the program again, into a new folder",
)
