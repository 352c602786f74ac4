"""Network intervals: when the messages of each rank are on the network, which is not the time inside MPI.

A message between nodes is transferred between its post and its completion. It can begin when it is sent, or,
if it is larger than the eager limit, when its receive is posted too. From then on it shares its node's NIC
with the other messages there until its bytes are transferred (`shared_finish`), at its sender's node and at
its receiver's; but not longer than until its receive is complete. What is left up to the completion is
waiting, unless a rank waits for the message in MPI_Wait: then it was transferred at the end of that wait
(spans.py).

Messages that share a NIC: when each of them is transferred, if at any time all ranks with messages get the
same bandwidth, and all messages of a rank the same part of it.

That is processor sharing on two levels. The service is how many bytes each active rank has got so far. In a
rank, a message that comes when each of its messages has got v bytes, and has w bytes, is complete at v + w.
So only the order of these values is kept, in heaps, and n messages take O(n log n).
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from elbowroom.profile import matching
from elbowroom.profile import rank_file as f
from elbowroom.profile.curve import ESTIMATED, NicCurve, estimated_bandwidth, shared
from elbowroom.profile.matching import last_begins, matched_messages
from elbowroom.profile.profile import MpiEvents, Profile
from elbowroom.profile.spans import FASTEST, SHORTEST, Waits, find_waits

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

SENDS = (f.SEND, f.SENDRECV, f.POSTED_SEND)
RECEIVES = (f.RECEIVE, f.POSTED_RECEIVE)
COLLECTIVES = (f.COLLECTIVE, f.POSTED_COLLECTIVE)


class NetworkIntervals(msgspec.Struct, frozen=True, kw_only=True):
    """N transfers, each of one rank and direction; times in seconds since the job's start.

    `out`: leaves the node (else it comes to it); `posted`, `completed`: bounds that were recorded; `begin`,
    `end`: the estimate between them; `event`: the record of `rank` that it belongs to, -1 where that is lost;
    `peer`: the other rank, -1 of collectives; `pair`: the row of the same message at its other end, or -1;
    `exact`: whether its bytes are known and not those of a usual algorithm; `ready`: from when it could be
    transferred; `waits`: of all records of the profile.
    """

    rank: Ints
    node: Ints
    out: Bools
    bytes: Floats
    posted: Floats
    completed: Floats
    begin: Floats
    end: Floats
    event: Ints
    peer: Ints
    pair: Ints
    exact: Bools
    ready: Floats
    waits: Waits
    curve: NicCurve


def network_intervals(profile: Profile, curve: NicCurve | None = None) -> NetworkIntervals:
    """The transfers of a job. Without a `curve`, n senders share a bandwidth: that of the emulated NIC, or
    the highest that the profile shows.
    """
    nic = profile.manifest.nic if profile.manifest else None
    if curve is None and nic is not None and nic.bandwidth:
        curve = shared(nic.bandwidth, source="emulated NIC")
    events = profile.events
    eager = curve.eager if curve else NicCurve(total=(1.0,)).eager
    rows = _joined([*_messages(profile, events, eager), _collective(profile, events)])
    waits = find_waits(profile)
    if curve is None:
        curve = _own_curve(profile, rows, waits)
    return _estimated(profile, rows, curve, waits)


def _messages(profile: Profile, events: MpiEvents, eager: int) -> list[dict[str, npt.NDArray[Any]]]:
    """Both ends of each message between nodes."""
    known = events.between
    is_get = np.array(["get" in name.lower() for name in events.names] or [False])[events.call]
    one_sided = known & (events.kind == f.ONE_SIDED) & (events.bytes > 0)
    sends = np.flatnonzero((known & np.isin(events.kind, SENDS)) | (one_sided & ~is_get))
    receives = np.flatnonzero((known & np.isin(events.kind, RECEIVES)) | (one_sided & is_get))
    two_sided = (events.kind != f.ONE_SIDED) & (events.peer >= 0)
    s, r = sends[two_sided[sends]], receives[two_sided[receives]]
    a, b = matched_messages(_ends(events, s, "rank", "peer"), _ends(events, r, "peer", "rank"))
    a, b = s[a], r[b]
    large = events.bytes[a] > eager
    start = np.where(large, np.maximum(events.begin[a], events.begin[b]), events.begin[a]) / 1e9
    limit = events.end[b] / 1e9
    pairs = np.arange(len(a))
    both = [
        _rows(profile, events, rank=events.rank[a], peer=events.rank[b], out=True, size=events.bytes[a],
              event=a, start=start, limit=limit, pair=pairs + len(a), own=a),
        _rows(profile, events, rank=events.rank[b], peer=events.rank[a], out=False, size=events.bytes[a],
              event=b, start=start, limit=limit, pair=pairs, own=b),
    ]  # fmt: skip
    there = np.zeros(profile.size, dtype=bool)
    there[[rank.rank for rank in profile.ranks]] = True
    return [
        *both,
        *_single(profile, events, np.setdiff1d(sends, a, True), there, is_out=True),
        *_single(profile, events, np.setdiff1d(receives, b, True), there, is_out=False),
    ]


def _ends(events: MpiEvents, which: Ints, sender: str, receiver: str) -> dict[str, Ints]:
    columns = {"from": sender, "to": receiver, "bytes": "bytes", "begin": "begin", "end": "end"}
    return {name: getattr(events, field)[which] for name, field in columns.items()}


def _single(
    profile: Profile, events: MpiEvents, which: Ints, there: Bools, *, is_out: bool
) -> list[dict[str, npt.NDArray[Any]]]:
    """Messages of which one end is known: the other one is on the other node's NIC too, where its rank has no
    file that tells. Of processes of other jobs no node is known.
    """
    begin, end = events.begin[which] / 1e9, events.end[which] / 1e9
    peer = events.peer[which]
    lone = which[(peer >= 0) & (~there[peer] | (events.kind[which] == f.ONE_SIDED))]
    other = np.isin(which, lone)
    own = _rows(profile, events, rank=events.rank[which], peer=events.peer[which], out=is_out,
                size=events.bytes[which], event=which, start=begin, limit=end, own=which)  # fmt: skip
    far = _rows(profile, events, rank=events.peer[lone], peer=events.rank[lone], out=not is_out,
                size=events.bytes[lone], event=np.full(len(lone), -1), start=begin[other], limit=end[other],
                own=lone)  # fmt: skip
    return [own, far]


def _rows(
    profile: Profile,
    events: MpiEvents,
    *,
    rank: Ints,
    peer: Ints,
    out: bool,
    size: npt.NDArray[Any],
    event: Ints,
    start: Floats,
    limit: Floats,
    own: Ints,
    pair: Ints | None = None,
    exact: bool = True,
) -> dict[str, npt.NDArray[Any]]:
    return {
        "rank": rank,
        "node": profile.nodes_of[rank],
        "out": np.full(len(rank), out),
        "bytes": size.astype(np.float64),
        "posted": events.begin[own] / 1e9,
        "completed": np.maximum(events.end[own] / 1e9, limit),
        "start": start,
        "limit": limit,
        "event": event,
        "peer": peer,
        "pair": np.full(len(rank), -1) if pair is None else pair,
        "exact": np.full(len(rank), exact),
    }


def _collective(profile: Profile, events: MpiEvents) -> dict[str, npt.NDArray[Any]]:
    """Both directions of the collective operations between nodes."""
    which = np.flatnonzero(events.between & np.isin(events.kind, COLLECTIVES))
    names = np.array([matching.base_name(name) for name in events.names] or [""])
    start = collective_start(profile, events, which, names) / 1e9
    parts = []
    for number in np.unique(events.call[which]):
        own = which[events.call[which] == number]
        name = str(names[number])
        sent = collective_bytes(profile, events, own, name)
        begin, limit = start[events.call[which] == number], events.end[own] / 1e9
        for out, size in ((True, sent.out), (False, sent.into)):
            some = size > 0
            parts.append(
                _rows(
                    profile,
                    events,
                    rank=events.rank[own[some]],
                    peer=np.full(some.sum(), -1),
                    out=out,
                    size=size[some],
                    event=own[some],
                    start=np.minimum(begin, limit)[some],
                    limit=limit[some],
                    own=own[some],
                    exact=name in matching.EXACT,
                )
            )
    none = np.zeros(0, dtype=np.int64)
    empty = _rows(profile, events, rank=none, peer=none, out=True, size=none, event=none,
                  start=none / 1.0, limit=none / 1.0, own=none)  # fmt: skip
    return _joined([empty, *parts])


def collective_bytes(profile: Profile, events: MpiEvents, which: Ints, name: str) -> matching.Moved:
    """Bytes of these records, all of one function, that leave their node and that reach it."""
    nodes = profile.nodes_of[events.rank[which]]
    on_node = np.bincount(profile.nodes_of, minlength=profile.nodes)[nodes].astype(np.float64)
    members = members_of(profile, events, which)
    # Of a part of the job nothing is known but its size: it is spread over the nodes as the job is.
    local = np.where(
        members == profile.size, on_node, np.maximum(1.0, np.round(members * on_node / profile.size))
    )
    return matching.moved(
        name, events.bytes[which].astype(np.float64), members, local, events.peer[which] == events.rank[which]
    )


def members_of(profile: Profile, events: MpiEvents, which: Ints) -> Floats:
    """How many processes take part in these collective operations; those of other jobs are not known, but
    there are some.
    """
    unknown = max(profile.size, 2)
    return np.where(events.members[which] > 0, events.members[which], unknown).astype(np.float64)


def collective_start(profile: Profile, events: MpiEvents, which: Ints, names: npt.NDArray[np.str_]) -> Ints:
    """From when the bytes of these operations can be transferred, ns: where it needs all ranks, when the last
    one called it.
    """
    start = events.begin[which].copy()
    whole = (events.members[which] == profile.size) | (events.members[which] < 0)
    waits = whole & np.isin(names, matching.WAITING)[events.call[which]]
    own = which[waits]
    start[waits] = last_begins(events.rank[own], events.call[own], events.begin[own], len(profile.ranks))
    return np.minimum(start, events.end[which])


def _joined(parts: list[dict[str, npt.NDArray[Any]]]) -> dict[str, npt.NDArray[Any]]:
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def _own_curve(profile: Profile, rows: dict[str, npt.NDArray[Any]], waits: Waits) -> NicCurve:
    """One bandwidth, the highest that any node's transfers show in one direction."""
    start = _shown_start(rows, waits)
    shown = [
        estimated_bandwidth(start[some], rows["limit"][some], rows["bytes"][some])
        for node in range(profile.nodes)
        for out in (True, False)
        for some in ((rows["node"] == node) & (rows["out"] == out),)
    ]
    known = [value for value in shown if value]
    return shared(max(known) if known else 1e9, source=ESTIMATED)


def _shown_start(rows: dict[str, npt.NDArray[Any]], waits: Waits) -> Floats:
    """From when the time of each transfer shows a bandwidth. Where ranks wait for most bytes of nonblocking
    operations, the library transfers them inside calls: then from the begin of the wait.
    """
    some = np.flatnonzero(rows["event"] >= 0)
    event = rows["event"][some]
    some = some[(waits.call[event] >= 0) & ~waits.tests[event]]
    event, start = rows["event"][some], rows["start"].copy()
    waited = waits.waited(event, start[some], rows["limit"][some])
    stuck = (waited >= SHORTEST) & (rows["bytes"][some] <= FASTEST * waited)
    if 2 * rows["bytes"][some[stuck]].sum() > rows["bytes"][some].sum():
        start[some[stuck]] = np.maximum(start[some[stuck]], waits.begin[event[stuck]])
    return start


def _waited(rows: dict[str, npt.NDArray[Any]], end: Floats, waits: Waits) -> Floats:
    """How much later than estimated each transfer ends, since a rank still waited for it: the operations that
    one call completes end with it.
    """
    later = np.zeros(len(end))
    some = np.flatnonzero(rows["event"] >= 0)
    some = some[waits.call[rows["event"][some]] >= 0]
    if len(some):
        event = rows["event"][some]
        calls, group = np.unique(waits.call[event], return_inverse=True)
        last = np.full(len(calls), -np.inf)
        np.maximum.at(last, group, end[some])
        over = np.zeros(len(calls))
        np.maximum.at(over, group, np.minimum(waits.end[event], rows["limit"][some]))
        waited = over[group] - np.maximum(waits.begin[event], last[group]) >= SHORTEST
        later[some] = np.where(waited, over[group] - last[group], 0.0)
    paired = rows["pair"] >= 0
    later[paired] = np.maximum(later[paired], later[rows["pair"][paired]])
    result: Floats = np.minimum(later, np.maximum(rows["limit"] - end, 0.0))
    return result


def _estimated(
    profile: Profile, rows: dict[str, npt.NDArray[Any]], curve: NicCurve, waits: Waits
) -> NetworkIntervals:
    work = curve.work(rows["bytes"])
    start = np.minimum(rows["start"] + curve.latency, rows["limit"])
    end = start.copy()
    senders = np.bincount(profile.nodes_of, minlength=profile.nodes)
    for node in range(profile.nodes):
        for outs in ((True,), (False,)) if curve.duplex else ((True, False),):
            some = np.flatnonzero((rows["node"] == node) & np.isin(rows["out"], outs))
            end[some] = shared_finish(
                start[some],
                rows["limit"][some],
                work[some],
                rows["rank"][some],
                curve.totals(int(senders[node])),
            )
    # A message is there when both NICs have transferred it.
    paired = rows["pair"] >= 0
    end[paired] = np.maximum(end[paired], end[rows["pair"][paired]])
    begin, ended = np.minimum(rows["start"], rows["limit"]), np.minimum(end, rows["limit"])
    # Of a receive without its send only the end is known.
    late = (rows["event"] >= 0) & ~rows["out"] & (rows["pair"] < 0) & (rows["peer"] >= 0)
    shift = np.where(late, rows["limit"] - ended, _waited(rows, ended, waits))
    ready = rows["start"]
    kept = {name: value for name, value in rows.items() if name not in ("start", "limit")}
    return NetworkIntervals(
        **kept, begin=begin + shift, end=ended + shift, ready=ready, waits=waits, curve=curve
    )


def shared_finish(
    start: Floats, limit: Floats, work: Floats, sender: Ints, totals: Sequence[float]
) -> Floats:
    """When each message is transferred, seconds: never after its `limit`, where it is known to be.

    `start` (N,): from when it can be transferred; `work`: its bytes; `sender`: who has it, from 0; `totals`:
    bandwidth of 0, 1, 2 … senders together (curve.totals), as many as there are senders.
    """
    if not len(start):
        return start
    limit = np.maximum(limit, start)
    finish = np.minimum(start + work / totals[min(1, len(totals) - 1)], limit)
    order = np.argsort(start, kind="stable")
    until = np.maximum.accumulate(limit[order])
    # Most messages of many programs overlap no other one: they need no simulation.
    first = np.r_[True, start[order][1:] >= until[:-1]]
    period = np.cumsum(first) - 1
    crowded = np.bincount(period)[period] > 1
    rest = order[crowded]
    if len(rest):
        finish[rest] = _simulated(start[rest], limit[rest], work[rest], sender[rest], totals)
    return finish


class _Sender:
    """The messages of a rank: `given` bytes to each when the service was `at`."""

    __slots__ = ("at", "count", "given", "queue", "version")

    def __init__(self) -> None:
        self.queue: list[tuple[float, int]] = []
        self.count = self.version = 0
        self.given = self.at = 0.0

    def advance(self, service: float) -> None:
        """Up to this service."""
        if self.count:
            self.given += (service - self.at) / self.count
        self.at = service

    def next_done(self, left: Sequence[bool]) -> float | None:
        """The service at which its next message is complete; None without messages."""
        while self.queue and not left[self.queue[0][1]]:
            heapq.heappop(self.queue)
        return self.at + (self.queue[0][0] - self.given) * self.count if self.queue else None


def _simulated(start: Floats, limit: Floats, work: Floats, sender: Ints, totals: Sequence[float]) -> Floats:
    """The same for messages in order of `start`."""
    starts, limits, works, who = start.tolist(), limit.tolist(), work.tolist(), sender.tolist()
    by_limit = np.argsort(limit, kind="stable").tolist()
    finish = list(limits)
    left = [True] * len(starts)
    ranks = [_Sender() for _ in range(max(who) + 1)]
    due: list[tuple[float, int, int]] = []  # service, rank and its version
    arriving, limiting, active, total = 0, 0, 0, len(starts)
    now = service = 0.0
    while arriving < total or active:
        while due and due[0][2] != ranks[due[0][1]].version:
            heapq.heappop(due)
        while limiting < total and not left[by_limit[limiting]]:
            limiting += 1
        come = starts[arriving] if arriving < total else float("inf")
        now = now if active else come
        rate = totals[active] / active if active else 1.0
        done = now + (due[0][0] - service) / rate if active else float("inf")
        ends = limits[by_limit[limiting]]
        until = min(come, done, ends)
        service += (until - now) * rate
        now = until
        comes = come == until
        if comes:
            one = arriving
        elif done == until:
            service, one = due[0][0], ranks[due[0][1]].queue[0][1]
        else:
            one = by_limit[limiting]
        rank = ranks[who[one]]
        rank.advance(service)
        if comes:
            heapq.heappush(rank.queue, (rank.given + works[one], one))
            arriving += 1
            rank.count += 1
            active += rank.count == 1
        else:
            finish[one] = now
            left[one] = False
            rank.count -= 1
            active -= rank.count == 0
        rank.version += 1
        following = rank.next_done(left)
        if following is not None:
            heapq.heappush(due, (following, who[one], rank.version))
    return np.array(finish)
