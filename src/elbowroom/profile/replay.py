"""One or two profiled jobs replayed on shared NICs, event by event.

Each rank computes, calls, and waits as in its profile, so a message that comes late delays who waits for it,
and so on. Messages of both jobs that use a NIC at once share it.

The NICs of a replay: connections of both jobs share both ends of their way, max-min fairly.

An *end* is a direction of a node's NIC. A *flow* has one or more connections, which leave one end and reach
another one, or of which only one end is known. At any time the end with the least bandwidth for each of its
connections determines theirs; what they leave at their other ends is for the others there (Bertsekas,
Gallager, Data Networks, 6.5.2). The emulated NIC does the same (lib/nic/fluid.cpp).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from elbowroom.profile.replay_job import Flows, Ints, Links, ReplayJob

_ARRIVE, _NIC, _RELEASE = range(3)


class Stretch(msgspec.Struct, frozen=True, kw_only=True):
    """A part of a job, in plain lists: `ranks`: first and last call of each; `gap`: computation before each
    call; `rest`: after the last one of each rank. `needs`, `groups`: of each gate how many posts it needs,
    and its groups of units that are waited for together; `left`: how much each group waits for.
    """

    length: float
    ranks: list[tuple[int, int]]
    gap: list[float]
    residual: list[float]
    rest: list[float]
    posts: list[list[int]]
    waits: list[list[int]]
    needs: list[int]
    groups: list[list[int]]
    left: list[int]
    units: list[list[tuple[int, float, tuple[int, ...]]]]
    """Of each gate: flow, bytes, groups that wait for it."""
    flows: Flows


def stretch(job: ReplayJob, start: float, length: float) -> Stretch:
    """The calls of a job that begin in [start, start + length]; what was posted before is there already."""
    until = start + length
    bounds = [_within(job, rank, start, until) for rank in range(job.size)]
    calls = np.concatenate([np.arange(low, high) for low, high in bounds] or [np.zeros(0, dtype=np.int64)])
    counts = np.array([high - low for low, high in bounds])
    lasts = np.cumsum(counts)
    firsts = lasts - counts
    before = np.concatenate([[0.0], job.end[calls[:-1]]]) if len(calls) else np.zeros(0)
    before[firsts[counts > 0]] = start
    post_call, post_gate = _rows(job.posts, calls)
    gates, post_at = np.unique(post_gate, return_inverse=True)
    wait_call, wait_gate = _rows(job.waits, calls)
    there = np.isin(wait_gate, gates)
    wait_call, wait_gate = wait_call[there], wait_gate[there]
    ranks = np.repeat(np.arange(job.size), counts)
    some = np.flatnonzero(np.isin(job.units.gate, gates))
    unit_gate = job.units.gate[some]
    row, unit_key = _waiting(job, some)
    keys, key_at = np.unique(
        np.concatenate([unit_key, _keys(job, wait_gate, ranks[wait_call])]), return_inverse=True
    )
    row_group, wait_group = key_at[: len(row)], key_at[len(row) :]
    gate_of_group = np.searchsorted(gates, keys // (job.size + 1))
    groups_of = _lists(row, row_group, len(some))
    units: list[list[tuple[int, float, tuple[int, ...]]]] = [[] for _ in gates]
    columns = (np.searchsorted(gates, unit_gate), job.units.flow[some], job.units.work[some])
    for at, (gate, flow, work) in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
        units[gate].append((flow, work, tuple(groups_of[at])))
    ended = np.where(counts > 0, job.end[calls[np.maximum(lasts - 1, 0)]] if len(calls) else start, start)
    return Stretch(
        length=length,
        ranks=list(zip(firsts.tolist(), lasts.tolist(), strict=True)),
        gap=np.maximum(job.begin[calls] - before, 0.0).tolist(),
        residual=job.residual[calls].tolist(),
        rest=np.maximum(until - ended, 0.0).tolist(),
        posts=_lists(post_call, post_at, len(calls)),
        waits=_lists(wait_call, wait_group, len(calls)),
        needs=np.bincount(post_at, minlength=len(gates)).tolist(),
        groups=_lists(gate_of_group, np.arange(len(keys)), len(gates)),
        left=(1 + np.bincount(row_group, minlength=len(keys))).tolist(),
        units=units,
        flows=job.flows,
    )


def _within(job: ReplayJob, rank: int, start: float, until: float) -> tuple[int, int]:
    first, last = int(job.first[rank]), int(job.first[rank + 1])
    low, high = np.searchsorted(job.begin[first:last], (start, until))
    return first + int(low), first + int(high)


def _waiting(job: ReplayJob, units: Ints) -> tuple[Ints, Ints]:
    """Place in `units` and key of each group that waits for one. A message is one for both ranks; of a
    collective operation each rank has its own part.
    """
    row, rank = _rows(job.flows.ranks, job.units.flow[units])
    key = _keys(job, job.units.gate[units][row], rank)
    both = np.unique(np.stack([row, key]), axis=1)
    return both[0], both[1]


def _keys(job: ReplayJob, gate: Ints, rank: Ints) -> Ints:
    return gate * (job.size + 1) + np.where(gate < job.messages, 0, rank + 1)


def _rows(links: Links, calls: Ints) -> tuple[Ints, Ints]:
    """Place in `calls` and value of each of their links."""
    counts = links.first[calls + 1] - links.first[calls]
    rows = np.repeat(np.arange(len(calls)), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    return rows, links.values[np.repeat(links.first[calls], counts) + within]


def _lists(rows: Ints, values: Ints, count: int) -> list[list[int]]:
    lists: list[list[int]] = [[] for _ in range(count)]
    for row, value in zip(rows.tolist(), values.tolist(), strict=True):
        lists[row].append(value)
    return lists


class _State:
    """What changes of a job while it runs."""

    def __init__(self, part: Stretch) -> None:
        self.part = part
        self.needs = part.needs.copy()
        self.left = part.left.copy()
        self.at = [low for low, _ in part.ranks]
        self.pending = [0] * len(part.ranks)
        self.waiting: dict[int, list[int]] = {}
        self.running = len(part.ranks)


class Replay:
    """Runs jobs at once until each has ended; one that ends earlier starts again, as a companion does.

    `totals`: bandwidth of 0, 1, 2 … senders of a node; `factors`: how much longer each job computes than in
    its profile.
    """

    def __init__(
        self,
        parts: Sequence[Stretch],
        totals: Sequence[float],
        latency: float = 0.0,
        factors: Sequence[float] = (1.0, 1.0),
    ) -> None:
        self._nics = Nics(totals)
        self._flows = [self._opened(job, part.flows) for job, part in enumerate(parts)]
        self._latency, self._factors = latency, factors
        self._parts = list(parts)
        self._jobs = [_State(part) for part in parts]
        self._rounds = [-1] * len(parts)
        self._events: list[tuple[float, int, int, int]] = []
        self._ended: list[float | None] = [None] * len(parts)

    def _opened(self, job: int, flows: Flows) -> list[int]:
        """Numbers of the flows of a job."""
        return [
            self._nics.open(ends, [[(job, rank) for rank in ranks] for ranks in users], weight)
            for ends, users, weight in flows.rows()
        ]

    def run(self) -> list[float]:
        """When each job ended first, seconds after its start."""
        for job in range(len(self._jobs)):
            self._start(0.0, job)
        now = 0.0
        while None in self._ended:
            if self._nics.dirty and not (self._events and self._events[0][0] <= now + ROUNDING):
                for then, flow, version in self._nics.share(now):
                    heapq.heappush(self._events, (then, _NIC, flow, version))
            if not self._events:
                self._release_blocked(now)
                continue
            now, kind, a, b = heapq.heappop(self._events)
            if kind == _ARRIVE:
                self._arrive(now, a, b)
            elif kind == _RELEASE:
                self._release(now, a, b)
            elif b == self._nics.version(a):
                job, groups, next_one = self._nics.take(now, a)
                self._expect(a, next_one)
                for group in groups:
                    self._complete(now, job, group)
        return [ended if ended is not None else now for ended in self._ended]

    def _expect(self, flow: int, then: float | None) -> None:
        if then is not None:
            heapq.heappush(self._events, (then, _NIC, flow, self._nics.version(flow)))

    def _start(self, now: float, job: int) -> None:
        self._jobs[job] = _State(self._parts[job])
        self._rounds[job] += 1
        for rank in range(len(self._parts[job].ranks)):
            self._compute(now, job, rank)

    def _compute(self, now: float, job: int, rank: int) -> None:
        """The rank computes until its next call, or until the end."""
        part, at = self._parts[job], self._jobs[job].at[rank]
        gap = part.gap[at] if at < part.ranks[rank][1] else part.rest[rank]
        heapq.heappush(self._events, (now + gap * self._factors[job], _ARRIVE, job, rank))

    def _arrive(self, now: float, job: int, rank: int) -> None:
        state = self._jobs[job]
        part, at = state.part, state.at[rank]
        if at == part.ranks[rank][1]:
            self._rank_ended(now, job)
            return
        # The call is not over while it posts: a group that completes at once must not end it twice.
        state.pending[rank] = 1
        for gate in part.posts[at]:
            state.needs[gate] -= 1
            if state.needs[gate] == 0:
                self._open(now, job, gate)
        for group in part.waits[at]:
            if state.left[group] > 0:
                state.pending[rank] += 1
                state.waiting.setdefault(group, []).append(rank)
        self._come(now, job, rank)

    def _come(self, now: float, job: int, rank: int) -> None:
        """One thing less that the rank's call waits for."""
        state = self._jobs[job]
        state.pending[rank] -= 1
        if state.pending[rank] == 0:
            then = now + state.part.residual[state.at[rank]]
            state.at[rank] += 1
            self._compute(then, job, rank)

    def _open(self, now: float, job: int, gate: int) -> None:
        part = self._parts[job]
        if part.units[gate]:
            if self._latency:
                turn = gate + self._rounds[job] * len(part.units)
                heapq.heappush(self._events, (now + self._latency, _RELEASE, job, turn))
            else:
                self._transfer(now, job, gate)
        for group in part.groups[gate]:
            self._less(now, job, group)

    def _release(self, now: float, job: int, turn: int) -> None:
        """The latency of a gate's units is over; of an earlier round nothing is left to transfer."""
        turn -= self._rounds[job] * len(self._parts[job].units)
        if turn >= 0:
            self._transfer(now, job, turn)

    def _transfer(self, now: float, job: int, gate: int) -> None:
        first = self._rounds[job] * len(self._parts[job].left)
        for flow, work, groups in self._parts[job].units[gate]:
            number = self._flows[job][flow]
            shifted = tuple([first + group for group in groups])
            self._expect(number, self._nics.add(now, number, work, job, shifted))

    def _complete(self, now: float, job: int, group: int) -> None:
        """A unit is there; one of an earlier round is not waited for."""
        group -= self._rounds[job] * len(self._parts[job].left)
        if group >= 0:
            self._less(now, job, group)

    def _less(self, now: float, job: int, group: int) -> None:
        state = self._jobs[job]
        state.left[group] -= 1
        if state.left[group] == 0:
            for rank in state.waiting.pop(group, ()):
                self._come(now, job, rank)

    def _rank_ended(self, now: float, job: int) -> None:
        state = self._jobs[job]
        state.running -= 1
        if state.running:
            return
        if self._ended[job] is None:
            self._ended[job] = now
        if None in self._ended:
            self._start(now, job)

    def _release_blocked(self, now: float) -> None:
        """Records that contradict each other may block all ranks: then each goes on."""
        for job, state in enumerate(self._jobs):
            state.waiting.clear()
            for rank, pending in enumerate(state.pending):
                if pending:
                    state.pending[rank] = 1
                    self._come(now, job, rank)


ROUNDING = 1e-9
"""Seconds: what changes within this time changes the rates once."""


class NicDirection:
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
        self,
        number: int,
        ends: Sequence[NicDirection],
        users: Sequence[Sequence[tuple[int, int]]],
        weight: float,
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
        self._ends: dict[int, NicDirection] = {}
        self._flows: list[Flow] = []
        self._dirty: dict[int, NicDirection] = {}
        self._count = 0

    @property
    def dirty(self) -> bool:
        """Whether rates have to be determined again."""
        return bool(self._dirty)

    def open(self, ends: Iterable[int], users: Sequence[Sequence[tuple[int, int]]], weight: float) -> int:
        """Number of a new flow over these ends; `users`: of each end (job, rank)."""
        there = [self._ends.setdefault(end, NicDirection(self._totals)) for end in ends]
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
        rates: dict[int, float] = {}
        level = 0.0
        busy = [end for end in ends if end.weight > 0]
        while busy:
            tightest = min(busy, key=_level)
            # Levels rise, but for rounding.
            level = max(level, _level(tightest))
            for number, flow in tightest.flows.items():
                if number in rates:
                    continue
                rates[number] = rate = level * flow.weight
                for end in flow.ends:
                    end.left -= rate
                    end.weight -= flow.weight
            tightest.weight = 0.0
            busy = [end for end in busy if end.weight > 0]
        changes = []
        for number, rate in rates.items():
            flow = self._flows[number]
            if rate != flow.rate:
                flow.advance(now)
                flow.rate = rate
                flow.version += 1
                changes.append((flow.then(now), number, flow.version))
        return changes

    def _connected(self) -> list[NicDirection]:
        """The ends that changed, and those that flows connect with them."""
        reached = self._dirty
        self._dirty = {}
        ends = list(reached.values())
        for end in ends:
            for flow in end.flows.values():
                for other in flow.ends:
                    if id(other) not in reached:
                        reached[id(other)] = other
                        ends.append(other)
        return ends


def _level(end: NicDirection) -> float:
    return end.left / end.weight
