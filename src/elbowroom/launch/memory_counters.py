"""Memory traffic of this host while a program runs: which counters there are, and samples of them.

The first of these that works: resctrl's bandwidth monitoring and the memory controllers' counters, which
count everything on the host, and the last-level cache misses of the program's own processes, times a line.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import re
import struct
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from elbowroom.profile.summary import MemoryTraffic

PERIOD = 0.05
"""Seconds between two samples, at first."""
MOST = 4096
"""Samples that are kept: when there are more, every second one is dropped, and the period doubled."""
LINE = 64
Scope = Literal["host", "job"]

_HARDWARE, _LLC_MISSES = 0, 3  # PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES
_TIMES = 3  # PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING
_INHERIT, _EXCLUDE_KERNEL, _EXCLUDE_HV = 1 << 1, 1 << 5, 1 << 6
_SYSCALLS = {"x86_64": 298, "aarch64": 241}
_CONTROLLERS = re.compile(r"(uncore_imc|amd_umc)_\d+")
_CAS = ("cas_count_read", "cas_count_write")


class CounterReader(Protocol):
    """A counter that is open."""

    def __call__(self) -> float | None:
        """Its count since it was opened, None if it never ran."""


class Opener(Protocol):
    """Opens an event of perf_event_open(2); OSError where it cannot be counted."""

    def __call__(self, kind: int, config: int, cpu: int | None) -> CounterReader:
        """On one CPU, everything there; None: of this process and those that it starts."""


class Counters(msgspec.Struct, frozen=True):
    """Counters of memory traffic that work: bytes since some time, and what they count."""

    source: str
    scope: Scope
    read: Callable[[], float | None]


def find_counters(root: Path = Path("/"), opener: Opener | None = None) -> Counters | str:
    """The first source of memory traffic that works here, or why there is none."""
    opened = open_event if opener is None else opener
    reasons = []
    for source in (_resctrl, _controllers, _misses):
        result = source(root, opened)
        if isinstance(result, Counters):
            return result
        reasons.append(result)
    return "; ".join(reasons)


def open_event(kind: int, config: int, cpu: int | None) -> CounterReader:
    """perf_event_open(2), with what the kernel counted scaled up if the event shared its register."""
    number = _SYSCALLS.get(platform.machine())
    if number is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    flags = (_INHERIT | _EXCLUDE_KERNEL | _EXCLUDE_HV) if cpu is None else 0
    # perf_event_attr, version 0: type, size, config, period, sample_type, read_format, flags, and 16 bytes.
    attributes = struct.pack("=IIQQQQQQQ", kind, 64, config, 0, 0, _TIMES, flags, 0, 0)
    library = ctypes.CDLL(None, use_errno=True)
    pid, where = (0, -1) if cpu is None else (-1, cpu)
    descriptor = library.syscall(number, attributes, pid, where, -1, 8)  # 8: PERF_FLAG_FD_CLOEXEC
    if descriptor < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))

    def read() -> float | None:
        value, enabled, running = struct.unpack("=QQQ", os.read(descriptor, 24))
        return float(value) * enabled / running if running else None

    return read


class Sampler:
    """Reads counters in a thread of its own from `start` to `stop`."""

    def __init__(self, counters: Counters, period: float = PERIOD) -> None:
        self._counters, self._period = counters, period
        self._times: list[int] = []
        self._bytes: list[float] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Sampler:
        self.take()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.take()

    def traffic(self, host: str) -> MemoryTraffic | None:
        """What was counted, None where a counter stopped to answer."""
        if len(self._times) < 2:
            return None
        first = self._bytes[0]
        return MemoryTraffic(
            host=host,
            source=self._counters.source,
            scope=self._counters.scope,
            times_ns=tuple(self._times),
            bytes=tuple(value - first for value in self._bytes),
        )

    def take(self) -> None:
        """One sample more."""
        now, count = time.monotonic_ns(), self._counters.read()
        if count is not None:
            self._times.append(now)
            self._bytes.append(count)
        if len(self._times) > MOST:
            self._times, self._bytes = self._times[::2], self._bytes[::2]
            self._period *= 2

    def _run(self) -> None:
        while not self._over.wait(self._period):
            self.take()


def _resctrl(root: Path, _opened: Opener) -> Counters | str:
    base = root / "sys/fs/resctrl"
    if not base.is_dir() or not any(base.iterdir()):
        return "resctrl is not mounted"
    files = sorted(base.glob("mon_data/*/mbm_total_bytes"))

    def read() -> float | None:
        values = [_text(file) for file in files]
        # A cache whose counter is "Unavailable" would make the sum wrong.
        return float(sum(map(int, values))) if values and all(map(str.isdecimal, values)) else None

    if read() is None:
        return "resctrl does not monitor memory bandwidth"
    return Counters("resctrl", "host", read)


def _controllers(root: Path, opened: Opener) -> Counters | str:
    """Lines that each memory controller reads and writes (CAS commands)."""
    folders = [
        folder
        for folder in sorted((root / "sys/bus/event_source/devices").glob("*"))
        if _CONTROLLERS.fullmatch(folder.name) and (folder / "events" / _CAS[0]).exists()
    ]
    if not folders:
        return "the kernel has no counters of memory controllers"
    readers: list[CounterReader] = []
    try:
        for folder in folders:
            kind = int(_text(folder / "type"))
            for cpu in _text(folder / "cpumask").split(","):
                readers += [opened(kind, _config(folder, event), int(cpu)) for event in _CAS]
    except (OSError, ValueError) as error:
        return f"counters of memory controllers: {_refusal(error)}"
    return Counters("memory controllers", "host", _summed(readers))


def _misses(_root: Path, opened: Opener) -> Counters | str:
    try:
        reader = opened(_HARDWARE, _LLC_MISSES, None)
    except OSError as error:
        return f"last-level cache misses: {_refusal(error)}"
    return Counters("last-level cache misses", "job", _summed([reader]))


def _summed(readers: Sequence[CounterReader]) -> Callable[[], float | None]:
    def read() -> float | None:
        values = [reader() for reader in readers]
        return LINE * sum(value for value in values if value is not None) if None not in values else None

    return read


def _config(folder: Path, event: str) -> int:
    """`event=0x04,umask=0x03` as the device's format places it (`config:0-7`)."""
    config = 0
    for word in _text(folder / "events" / event).split(","):
        name, _, value = word.partition("=")
        place = re.fullmatch(r"config:(\d+)(?:-\d+)?", _text(folder / "format" / name))
        if place is None:
            raise ValueError(f"{event} has a format that is not known here")
        config |= int(value or "1", 0) << int(place[1])
    return config


def _refusal(error: OSError | ValueError) -> str:
    if isinstance(error, OSError) and error.errno in (errno.EACCES, errno.EPERM):
        return "not permitted (as root: sysctl kernel.perf_event_paranoid=0)"
    if isinstance(error, OSError) and error.errno in (errno.ENOENT, errno.EOPNOTSUPP, errno.ENODEV):
        return "no such counter on this machine (virtual machines often have none)"
    return str(getattr(error, "strerror", None) or error)


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
