"""The NICs of a replay: connections of both jobs share both ends of their way, max-min fairly.

An *end* is a direction of a node's NIC. A *flow* has one or more connections, which leave one end and reach
another one, or of which only one end is known. At any time the end with the least bandwidth for each of its
connections determines theirs; what they leave at their other ends is for the others there (Bertsekas,
Gallager, Data Networks, 6.5.2). The emulated NIC does the same (lib/nic/fluid.cpp).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

ROUNDING = 1e-9
"""Seconds: what changes within this time changes the rates once."""


class End:
    """One direction of a node's NIC, and the flows that use it now; `users`: flows of each (job, rank)."""

    __slots__ = ("flows", "left", "totals", "users", "weight")

    def __init__(self, totals: Sequence[float]) -> None:
        self.totals = totals
        self.flows: dict[int, Flow] = {}
        self.users: dict[tuple[int, int], int] = {}
        self.left = self.weight = 0.0


class Flow:
    """Connections over `ends`, with the ranks that use each end; the messages in it share it alike. Its
    virtual time is bytes of each of its messages.
    """

    __slots__ = ("ends", "heap", "last", "number", "rate", "users", "version", "virtual", "weight")

    def __init__(
        self, number: int, ends: Sequence[End], users: Sequence[Sequence[tuple[int, int]]], weight: float
    ) -> None:
        self.number, self.ends, self.users, self.weight = number, ends, users, weight
        self.heap: list[tuple[float, int, int, tuple[int, ...]]] = []
        self.virtual = self.last = self.rate = 0.0
        self.version = 0

    def advance(self, now: float) -> None:
        """To a time up to which nothing has changed."""
        if self.heap:
            self.virtual += (now - self.last) * self.rate / len(self.heap)
        else:
            self.virtual = self.rate = 0.0
        self.last = now

    def then(self, now: float) -> float:
        """When its next message is complete, if nothing changes."""
        left = max(0.0, self.heap[0][0] - self.virtual)
        return now + left * len(self.heap) / self.rate


class Nics:
    """Ends, flows, and what changed since the rates were determined. `changed`: flows whose next completion
    is another one now.
    """

    def __init__(self, totals: Sequence[float]) -> None:
        self._totals = totals
        self._ends: dict[int, End] = {}
        self._flows: list[Flow] = []
        self._dirty: dict[int, End] = {}
        self._count = 0

    @property
    def dirty(self) -> bool:
        """Whether rates have to be determined again."""
        return bool(self._dirty)

    def open(self, ends: Iterable[int], users: Sequence[Sequence[tuple[int, int]]], weight: float) -> int:
        """Number of a new flow over these ends; `users`: of each end (job, rank)."""
        there = [self._ends.setdefault(end, End(self._totals)) for end in ends]
        self._flows.append(Flow(len(self._flows), there, users, weight))
        return len(self._flows) - 1

    def version(self, number: int) -> int:
        """Of a flow: it changes with the time of its next completion."""
        return self._flows[number].version

    def add(self, now: float, number: int, work: float, job: int, groups: tuple[int, ...]) -> float | None:
        """A message of `work` bytes; when the flow's next one is complete, None where `share` says it."""
        flow = self._flows[number]
        flow.advance(now)
        self._count += 1
        heapq.heappush(flow.heap, (flow.virtual + work, self._count, job, groups))
        if len(flow.heap) == 1:
            self._join(flow)
        flow.version += 1
        return flow.then(now) if flow.rate > 0 else None

    def take(self, now: float, number: int) -> tuple[int, tuple[int, ...], float | None]:
        """Job and groups of the message that is complete now, and when the flow's next one is."""
        flow = self._flows[number]
        flow.advance(now)
        flow.virtual, _, job, groups = heapq.heappop(flow.heap)
        flow.version += 1
        if flow.heap:
            return job, groups, flow.then(now)
        self._leave(flow)
        return job, groups, None

    def _join(self, flow: Flow) -> None:
        for end, users in zip(flow.ends, flow.users, strict=True):
            end.flows[flow.number] = flow
            self._dirty[id(end)] = end
            for user in users:
                end.users[user] = end.users.get(user, 0) + 1

    def _leave(self, flow: Flow) -> None:
        for end, users in zip(flow.ends, flow.users, strict=True):
            del end.flows[flow.number]
            self._dirty[id(end)] = end
            for user in users:
                end.users[user] -= 1
                if not end.users[user]:
                    del end.users[user]

    def share(self, now: float) -> list[tuple[float, int, int]]:
        """Determines the rates of all flows that share an end with one that changed, or with one that does,
        and so on. Of those whose rate is another one: when the next message is complete, number and version.
        """
        ends = self._connected()
        for end in ends:
            end.left = end.totals[min(len(end.users), len(end.totals) - 1)]
            end.weight = sum(flow.weight for flow in end.flows.values())
        found: dict[int, float] = {}
        level = 0.0
        busy = [end for end in ends if end.weight > 0]
        while busy:
            tightest = min(busy, key=_level)
            # Levels rise, but for rounding.
            level = max(level, _level(tightest))
            for number, flow in tightest.flows.items():
                if number in found:
                    continue
                found[number] = rate = level * flow.weight
                for end in flow.ends:
                    end.left -= rate
                    end.weight -= flow.weight
            tightest.weight = 0.0
            busy = [end for end in busy if end.weight > 0]
        changes = []
        for number, rate in found.items():
            flow = self._flows[number]
            if rate != flow.rate:
                flow.advance(now)
                flow.rate = rate
                flow.version += 1
                changes.append((flow.then(now), number, flow.version))
        return changes

    def _connected(self) -> list[End]:
        """The ends that changed, and those that flows connect with them."""
        seen = self._dirty
        self._dirty = {}
        ends = list(seen.values())
        for end in ends:
            for flow in end.flows.values():
                for other in flow.ends:
                    if id(other) not in seen:
                        seen[id(other)] = other
                        ends.append(other)
        return ends


def _level(end: End) -> float:
    return end.left / end.weight
