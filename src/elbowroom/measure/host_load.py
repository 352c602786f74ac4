"""Load by other processes of this host before, during, after measuring (docs/design/method.md, rule 15)."""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path

import msgspec

_BUSY_FIELDS = (0, 1, 2, 5, 6)
"""user, nice, system, irq, softirq of /proc/stat; idle, iowait and steal are not other processes' work
here.
"""


class Clocks(msgspec.Struct, frozen=True, kw_only=True):
    """CPU seconds of the whole host and of this process with its ended children, at one time."""

    wall: float
    busy: float | None
    own: float


def look() -> Clocks:
    """The clocks now; `busy` is None where /proc/stat cannot be read."""
    own = sum(
        usage.ru_utime + usage.ru_stime
        for usage in (resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN))
    )
    return Clocks(wall=time.monotonic(), busy=_busy(), own=own)


def others_busy(before: Clocks, after: Clocks) -> float | None:
    """Cores kept busy by others between two looks; None where unknown.

    Children count once they have ended, so the probe must be closed before the second look.
    """
    wall = after.wall - before.wall
    if before.busy is None or after.busy is None or wall <= 0:
        return None
    return max(0.0, (after.busy - before.busy) - (after.own - before.own)) / wall


def sample(seconds: float = 0.4) -> float | None:
    """Cores kept busy by others right now, over a short nap of this process."""
    before = look()
    time.sleep(seconds)
    return others_busy(before, look())


def _busy(path: Path = Path("/proc/stat")) -> float | None:
    try:
        fields = path.read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
        return sum(int(fields[index]) for index in _BUSY_FIELDS) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return None
