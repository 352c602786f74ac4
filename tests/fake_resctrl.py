"""A resctrl tree in a folder, whose limits of memory bandwidth act as its `behaviour` says."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

Behaviour = Literal["exact", "leaks", "bursts", "per core", "reverts", "ignores"]


class Limiter(msgspec.Struct, frozen=True, kw_only=True):
    """What a group gets of the bandwidth that it wants, B/s: MB=P limits it to P percent of `peak`.

    `leak`: times what it asks for; `every`-th windows are without a limit where it bursts; `cores` that share
    no limit; `seconds` after which it is taken back.
    """

    behaviour: Behaviour
    wanted: float
    peak: float
    leak: float = 1.0
    every: int = 7
    cores: int = 1
    seconds: float = 0.5

    def rates(self, percent: int) -> Sequence[float]:
        """All rates that a group has under a number, from time to time."""
        limit = self.peak * percent / 100
        if percent == 100 or self.behaviour == "ignores":
            return (self.wanted,)
        if self.behaviour == "leaks":
            return (min(self.wanted, limit * self.leak),)
        if self.behaviour == "per core":
            return (min(self.wanted, limit * self.cores),)
        if self.behaviour == "bursts":
            return (min(self.wanted, limit), self.wanted)
        return (min(self.wanted, limit),)


class FakeResctrl:
    """`sleep` lets time pass: the group moves memory, and is measured."""

    def __init__(self, mount: Path, limiter: Limiter, tasks: Sequence[int], least: int = 10) -> None:
        self.mount, self.limiter = mount, limiter
        self.now = 0.0
        self._windows, self._moved, self._since = 0, 0.0, 0.0
        (mount / "info/MB").mkdir(parents=True)
        (mount / "info/MB/min_bandwidth").write_text(f"{least}\n")
        (mount / "info/MB/bandwidth_gran").write_text("10\n")
        (mount / "schemata").write_text("    L3:0=ff\n    MB:0=100\n")
        self.group = mount / "batch"
        self.counter = self.group / "mon_data/mon_L3_00/mbm_total_bytes"
        self.counter.parent.mkdir(parents=True)
        self.counter.write_text("0\n")
        self.schemata = self.group / "schemata"
        self.schemata.write_text("    L3:0=ff\n    MB:0=100\n")
        (self.group / "tasks").write_text("".join(f"{task}\n" for task in tasks))

    @property
    def percent(self) -> int:
        return int(self.schemata.read_text().rpartition("=")[2])

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        percent = self.percent
        self._since = self._since + seconds if percent < 100 else 0.0
        if self.limiter.behaviour == "reverts" and self._since > self.limiter.seconds:
            self.schemata.write_text("    L3:0=ff\n    MB:0=100\n")
        self._windows += 1
        rates = self.limiter.rates(percent)
        rate = rates[-1] if self._windows % self.limiter.every == 0 else rates[0]
        self._moved += rate * seconds
        self.now += seconds
        self.counter.write_text(f"{round(self._moved)}\n")
